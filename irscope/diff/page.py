"""A comparison as one offline HTML page: the figures, then each graph's changes with both texts side by side."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irscope.diff.changes import ChangeGroup, groups
from irscope.diff.compare import METRICS, Comparison, GraphPair
from irscope.diff.report import counted, figure_rows, title
from irscope.graph import Graph, Module, Node
from irscope.source.page_policy import policy_of
from irscope.source.visible import markup

OPEN = 200
"""Graphs with at most this many changes are open when the page is; the others open with a click."""
SHOWN = 20_000
"""Changes of one graph that the page holds; the rest is counted."""
WIDEST = 400
"""Characters of a statement that are shown."""

_STYLE = """:root { color-scheme: light dark; --line: #8884; --soft: #8881;
  --removed: #cf222e22; --added: #1a7f3722; --changed: #9a670022; --moved: #0969da22; }
body { font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; margin: 2em auto; max-width: 1500px; padding: 0 1em; }
h1 { font-size: 20px; overflow-wrap: anywhere; } table { border-collapse: collapse; }
td, th { border-bottom: 1px solid var(--line); padding: 3px 10px; text-align: left; vertical-align: top; }
table.figures td:not(:first-child), table.figures th:not(:first-child) { text-align: right; font-variant-numeric: tabular-nums; }
summary { cursor: pointer; font-weight: 600; margin: 1em 0 .3em; }
table.changes { width: 100%; table-layout: fixed; } table.changes th:last-child { width: 22%; }
td.text { font: 12px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
tr.removed td.before, tr.merged td.before { background: var(--removed); }
tr.added td.after, tr.duplicated td.after { background: var(--added); }
tr.changed td.text { background: var(--changed); } tr.moved td.text { background: var(--moved); } tr.group th { padding-top: 10px; }
[data-partner] { cursor: pointer; } tr.partner td { outline: 2px solid #0969da; } g.partner rect { stroke: #0969da; stroke-width: 4; }
.sides { display: flex; gap: 8px; } .side { flex: 1; overflow: auto; max-height: 70vh; border: 1px solid var(--line); background: #fff; }
.failed { background: var(--removed); padding: 4px 10px; } .same { background: var(--added); padding: 4px 10px; } small { opacity: .7; }
input { font: inherit; padding: 3px 8px; width: 24em; margin-top: 1em; }"""
_SCRIPT = """const find = document.getElementById("find");
find.addEventListener("input", () => {
  const word = find.value.toLowerCase();
  for (const row of document.querySelectorAll("table.changes tbody tr")) row.hidden = !row.textContent.toLowerCase().includes(word);
});
function choose(event) {
  const from = event.target.closest("[data-partner]");
  if (!from) return;
  for (const old of document.querySelectorAll(".partner")) old.classList.remove("partner");
  for (const one of from.closest("details").querySelectorAll(`[data-partner="${from.dataset.partner}"]`)) {
    one.classList.add("partner");
    if (one !== from) one.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}
document.addEventListener("click", choose);
document.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(event); });"""


Drawings = Mapping[Graph | None, tuple[str, str, Mapping[Node, str]]]
"""By the graph before: both sides as SVG, and for each changed node the number that its boxes share."""


def as_html(comparison: Comparison, before: Module, after: Module, names: tuple[str, str], failed: Sequence[str],
            drawings: Drawings) -> str:
    """The page; ``names`` are those of the two files, ``failed`` the messages of the gates that failed."""
    return "\n".join(_page(comparison, before, after, names, failed, drawings)) + "\n"


def _page(comparison: Comparison, before: Module, after: Module, names: tuple[str, str], failed: Sequence[str],
          drawings: Drawings) -> Iterator[str]:
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
            yield from _graph(pair, before, after, drawings.get(pair.before))
    yield f"<script>{_SCRIPT}</script></body></html>"


def _figures(comparison: Comparison) -> Iterator[str]:
    yield '<table class="figures"><thead><tr><th></th><th>before</th><th>after</th><th>change</th><th></th></tr></thead><tbody>'
    operators = sorted(comparison.op_changes(), key=lambda name: (-abs(comparison.ops_after[name] - comparison.ops_before[name]), name))
    for row in figure_rows(comparison, [*METRICS, *(f"ops.{operator}" for operator in operators)]):
        yield f"<tr>{''.join(f'<td>{markup(cell)}</td>' for cell in row)}</tr>"
    yield "</tbody></table>"


def _graph(pair: GraphPair, before: Module, after: Module, drawing: tuple[str, str, Mapping[Node, str]] | None) -> Iterator[str]:
    n = len(pair.changes)
    heading = f"{markup(title(pair.before, pair.after))} <small>{counted(n, 'change')}</small>"
    yield f"<details{' open' if n <= OPEN else ''}><summary>{heading}</summary>"
    partners: Mapping[Node, str] = {}
    if drawing is not None:
        partners = drawing[2]
        inline = [text.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1) for text in drawing[:2]]
        yield f'<div class="sides"><div class="side">{inline[0]}</div><div class="side">{inline[1]}</div></div>'
    yield '<table class="changes"><thead><tr><th>before</th><th>after</th><th>what</th></tr></thead><tbody>'
    shown = 0
    for group in groups(pair.changes):
        if len(group.changes) > 1 and shown < SHOWN:
            yield f'<tr class="group"><th colspan="3">{markup(_heading(group))}</th></tr>'
        for change in group.changes[:SHOWN - shown]:
            shown += 1
            known = [partners[node] for node in (change.before, change.after) if node is not None and node in partners]
            partner = f' data-partner="{markup(known[0])}" tabindex="0"' if known else ""
            yield (f'<tr class="{change.kind}"{partner}><td class="text before">{_text(change.before, before)}</td>'
                   f'<td class="text after">{_text(change.after, after)}</td><td>{markup(change.why or change.kind)}</td></tr>')
    yield "</tbody></table>"
    if n > SHOWN:
        yield f"<p>... and {n - SHOWN} more</p>"
    yield "</details>"


def _heading(group: ChangeGroup) -> str:
    """``multiply ×12 moved: into a fusion``."""
    names = " -> ".join(dict.fromkeys(op for op in group.ops if op))
    return f"{names} ×{len(group.changes)} {group.kind}" + (f": {group.what}" if group.what else "")


def _text(node: Node | None, module: Module) -> str:
    """The statement as the file has it, with the number of its line; for a node that is not in the text, its type and operator."""
    if node is None:
        return ""
    if node.loc < 0:
        return markup(f"%{node.name} = {node.type} {node.op.name}")
    source = module.source
    end = source.text.find("\n", node.loc)
    begin = max(source.text.rfind("\n", 0, node.loc) + 1, node.loc - WIDEST)
    line = source.text[begin:min(end if end >= 0 else len(source.text), node.loc + WIDEST)].strip()
    return f"<small>{source.place(node.loc).line}</small> {markup(line)}"
