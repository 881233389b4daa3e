"""A comparison as one offline HTML page: the figures, then each graph's changes with both texts side by side."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.diff.compare import METRICS, Change, Comparison, GraphPair
from irscope.diff.report import change_of, figure, title
from irscope.graph import Module, Node
from irscope.source.page_policy import policy_of
from irscope.source.visible import markup

OPEN = 200
"""Graphs with at most this many changes are open when the page is; the others open with a click."""
SHOWN = 20_000
"""Changes of one graph that the page holds; the rest is counted."""
WIDEST = 400
"""Characters of a statement that are shown."""

_STYLE = """:root { color-scheme: light dark; --line: #8884; --soft: #8881; --gone: #cf222e22; --new: #1a7f3722; --other: #9a670022; }
body { font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; margin: 2em auto; max-width: 1500px; padding: 0 1em; }
h1 { font-size: 20px; overflow-wrap: anywhere; } table { border-collapse: collapse; }
td, th { border-bottom: 1px solid var(--line); padding: 3px 10px; text-align: left; vertical-align: top; }
table.figures td:not(:first-child), table.figures th:not(:first-child) { text-align: right; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; font-weight: 600; margin: 1em 0 .3em; }
table.changes { width: 100%; table-layout: fixed; } table.changes th:last-child { width: 22%; }
td.text { font: 12px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
tr.gone td.before { background: var(--gone); } tr.new td.after { background: var(--new); } tr.other td.text { background: var(--other); }
.failed { background: var(--gone); padding: 4px 10px; } .same { background: var(--new); padding: 4px 10px; } small { opacity: .7; }
input { font: inherit; padding: 3px 8px; width: 24em; margin-top: 1em; }"""
_SCRIPT = """const find = document.getElementById("find");
find.addEventListener("input", () => {
  const word = find.value.toLowerCase();
  for (const row of document.querySelectorAll("table.changes tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(word);
});"""


def as_html(comparison: Comparison, before: Module, after: Module, names: tuple[str, str], failed: Sequence[str]) -> str:
    """The page; ``names`` are those of the two files, ``failed`` the gates that do not hold."""
    return "\n".join(_page(comparison, before, after, names, failed)) + "\n"


def _page(comparison: Comparison, before: Module, after: Module, names: tuple[str, str], failed: Sequence[str]) -> Iterator[str]:
    first, second = map(markup, names)
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    yield policy_of(_SCRIPT, _STYLE)
    yield f"<title>{first} against {second}</title><style>{_STYLE}</style></head>"
    yield f"<body><h1>{first} → {second}</h1>"
    for failure in failed:
        yield f'<p class="failed">gate failed: {markup(failure)}</p>'
    for name, cut in zip((first, second), comparison.cuts, strict=True):
        if cut is not None:
            yield f'<p class="failed">{name}: {markup(str(cut))}</p>'
    if comparison.same:
        yield '<p class="same">They are the same graph.</p></body></html>'
        return
    if not comparison.partial:
        yield from _figures(comparison)
    yield '<input id="find" placeholder="show only changes that hold these words" aria-label="filter">'
    for pair in comparison.pairs:
        if not pair.same:
            yield from _graph(pair, before, after)
    yield f"<script>{_SCRIPT}</script></body></html>"


def _figures(comparison: Comparison) -> Iterator[str]:
    yield '<table class="figures"><thead><tr><th></th><th>before</th><th>after</th><th>change</th><th></th></tr></thead><tbody>'
    operators = sorted(comparison.op_changes(), key=lambda name: (-abs(comparison.ops_after[name] - comparison.ops_before[name]), name))
    for name in [*METRICS, *(f"ops.{operator}" for operator in operators)]:
        a, b = comparison.metric(name)
        change, share = change_of(a, b)
        yield f"<tr><td>{markup(name)}</td><td>{figure(a)}</td><td>{figure(b)}</td><td>{change}</td><td>{share}</td></tr>"
    yield "</tbody></table>"


def _graph(pair: GraphPair, before: Module, after: Module) -> Iterator[str]:
    n = len(pair.changes)
    yield f"<details{' open' if n <= OPEN else ''}><summary>{markup(title(pair.before, pair.after))} <small>{n} changes</small></summary>"
    yield '<table class="changes"><thead><tr><th>before</th><th>after</th><th>what</th></tr></thead><tbody>'
    for change in pair.changes[:SHOWN]:
        kind = "new" if change.before is None else "gone" if change.after is None else "other"
        yield (f'<tr class="{kind}"><td class="text before">{_text(change.before, before)}</td>'
               f'<td class="text after">{_text(change.after, after)}</td><td>{markup(_what(change))}</td></tr>')
    yield "</tbody></table>"
    if n > SHOWN:
        yield f"<p>... and {n - SHOWN} more</p>"
    yield "</details>"


def _what(change: Change) -> str:
    return "added" if change.before is None else "removed" if change.after is None else change.why


def _text(node: Node | None, module: Module) -> str:
    """The statement as the file writes it, and where that is; a node that no text wrote by its operator and type."""
    if node is None:
        return ""
    if node.loc < 0:
        return markup(f"%{node.name} = {node.type} {node.op.name}")
    source = module.source
    end = source.text.find("\n", node.loc)
    begin = max(source.text.rfind("\n", 0, node.loc) + 1, node.loc - WIDEST)
    line = source.text[begin:min(end if end >= 0 else len(source.text), node.loc + WIDEST)].strip()
    return f"<small>{source.place(node.loc).line}</small> {markup(line)}"
