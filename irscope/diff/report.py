"""A comparison as text, Markdown and JSON."""
from __future__ import annotations

import re
from collections.abc import Iterable

from irscope.diff.changes import Change, ChangeGroup, groups
from irscope.diff.compare import METRICS, Comparison, GraphPair
from irscope.graph import Graph, Node
from irscope.source.plural import plural

SHOWN = 40
"""Groups of equal changes that are listed of one pair of graphs; the rest is counted."""
FEW_LONE = 8
"""Computations of one side alone that are listed."""
NAMED = 3
"""Nodes of a group that are named."""
SIGNS = {"changed": "~", "added": "+", "removed": "-", "moved": ">", "duplicated": "+", "merged": "-"}
WORDS = ("duplicated", "merged")
"""Kinds that are named beside their sign."""
MARKS = re.compile(r"[\\`*<&~]|(?<!\w)_|_(?!\w)|\](?=[(\[:])")
"""Characters that begin a mark or a tag in Markdown."""


def as_json(comparison: Comparison, failed: list[str], matches: bool = False) -> dict[str, object]:
    """The object of ``schemas/diff.json``; with ``matches`` all pairs of nodes, too."""
    before, after = comparison.cuts
    aligned = {"matches": _matches(comparison)} if matches else {}
    cut = {"cut": {"before": before and str(before), "after": after and str(after)}} if comparison.partial else {}
    return {
        "same": comparison.same, **cut,
        "metrics": {name: {"before": comparison.before[name], "after": comparison.after[name]} for name in comparison.before},
        "ops": {name: {"before": a, "after": b} for name, (a, b) in comparison.op_changes().items()},
        "graphs": [_graph_json(pair) for pair in comparison.pairs if not pair.same],
        "kinds": comparison.kinds(), "aligned": len(comparison.alignment.pairs), "renamed": comparison.alignment.renamed,
        "failed": failed, **aligned,
    }


def _matches(comparison: Comparison) -> list[list[str]]:
    """Computation and name of each pair of nodes, before and after."""
    pairs = comparison.alignment.pairs.items()
    first, second = ({node: graph.name for graph in graphs for node in graph.nodes} for graphs in comparison.graphs)
    return [[first[a], a.name, second[b], b.name] for a, b in pairs]


def _graph_json(pair: GraphPair) -> dict[str, object]:
    return {"before": pair.before.name if pair.before else None, "after": pair.after.name if pair.after else None,
            "changes": [_change_json(change) for change in pair.changes],
            "groups": [{"kind": g.kind, "before": g.ops[0], "after": g.ops[1], "what": g.what or None, "times": len(g.changes),
                        "changes": [numbers[id(change)] for change in g.changes]}
                       for numbers in [{id(change): number for number, change in enumerate(pair.changes)}] for g in groups(pair.changes)]}


def _change_json(change: Change) -> dict[str, object]:
    before, after = change.graphs
    return {"before": _node_json(change.before, before), "after": _node_json(change.after, after), "why": change.why or None,
            "kind": change.kind}


def _node_json(node: Node | None, graph: str | None) -> dict[str, str | None] | None:
    return None if node is None else {"name": node.name, "op": node.op.name, "type": str(node.type), "graph": graph}


class _Medium:
    """Plain text or Markdown: how names, headings and items of lists are written."""

    def __init__(self, markdown: bool) -> None:
        self.markdown, self.bullet = markdown, "- " if markdown else "  "

    def text(self, text: str) -> str:
        """Text of a dump, which Markdown needs escaped."""
        return escaped(text) if self.markdown else text

    def heading(self, title: str) -> str:
        """The heading of a part."""
        return f"### {title}" if self.markdown else title

    def part(self, name: str, items: Iterable[str]) -> list[str]:
        """A part of the report, with an empty line before it."""
        return ["", self.heading(name.capitalize() if self.markdown else name), *(self.bullet + item for item in items)]

    def sign(self, kind: str) -> str:
        """The sign of a kind; at the beginning of an item of a Markdown list, +, - and > would begin a list or a quotation."""
        sign = SIGNS[kind]
        return f"\\{sign}" if self.markdown and sign in "+->" else sign


def as_text(comparison: Comparison, before: str, after: str, markdown: bool = False) -> str:
    """What changed: the figures, the operators, then the nodes of each graph."""
    medium = _Medium(markdown)
    before, after = medium.text(before), medium.text(after)
    if comparison.same:
        return f"{before} and {after} are the same graph"
    lines = [f"## {before} against {after}" if markdown else f"{before} -> {after}", ""]
    lines += _cut_text(comparison, before, after, medium.bullet) if comparison.partial else _table(comparison, markdown)
    ops = comparison.op_changes()
    if ops:
        ordered = sorted(ops.items(), key=lambda kv: -abs(kv[1][1] - kv[1][0]))
        lines += medium.part("operators", [f"{medium.text(name)} {a} -> {b} ({b - a:+d})" for name, (a, b) in ordered])
    lines += _kinds_text(comparison, medium)
    lone: list[str] = []
    for pair in comparison.pairs:
        name = medium.text(title(pair.before, pair.after))
        if pair.before is None or pair.after is None:
            lone.append(name)
        elif not pair.same:
            lines += ["", medium.heading(name), *_groups_text(groups(pair.changes), medium)]
    if lone:
        lines += medium.part("computations", lone[:FEW_LONE])
        lines += [f"{medium.bullet}... and {len(lone) - FEW_LONE} more"] if len(lone) > FEW_LONE else []
    return "\n".join(lines)


def _cut_text(comparison: Comparison, before: str, after: str, bullet: str) -> list[str]:
    """What was compared of texts that are cut off."""
    lines = [f"{bullet}{name}: {cut}" for name, cut in zip((before, after), comparison.cuts, strict=True) if cut is not None]
    equal = sum(pair.same for pair in comparison.pairs)
    return [*lines, f"{bullet}computations that are complete in both: {equal} equal, {len(comparison.pairs) - equal} not; there are no "
            "figures of the programs, because parts of them are missing"]


def counted(n: int, word: str) -> str:
    """``1 node``, ``2 nodes``."""
    return plural(n, word, figure=f"{n:,}")


def _figure(value: float | None) -> str:
    """A figure; ``unknown`` for None."""
    return "unknown" if value is None else f"{value:,.0f}"


def _change_of(before: float | None, after: float | None) -> tuple[str, str]:
    """The difference of two figures, and as a share of the first; both empty where there is none, or one is not known."""
    if before is None or after is None or before == after:
        return "", ""
    return f"{after - before:+,.0f}", f"{(after - before) / before * 100:+.1f} %" if before else ""


def figure_rows(comparison: Comparison, names: Iterable[str]) -> list[tuple[str, ...]]:
    """A row for each metric: its name, its values before and after, the difference, and the difference in percent."""
    figures = ((name, *comparison.metric(name)) for name in names)
    return [(name, _figure(a), _figure(b), *_change_of(a, b)) for name, a, b in figures]


def _table(comparison: Comparison, markdown: bool) -> list[str]:
    rows = figure_rows(comparison, METRICS)
    if markdown:
        return ["| metric | before | after | change | |", "|---|---|---|---|---|", *("| " + " | ".join(row) + " |" for row in rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return ["  " + row[0].ljust(widths[0]) + "  " + "  ".join(row[i].rjust(widths[i]) for i in range(1, 5)).rstrip() for row in rows]


def _kinds_text(comparison: Comparison, medium: _Medium) -> list[str]:
    """How many changes there are of each kind, and how many nodes are on both sides."""
    kinds = [f"{n:,} {kind}" for kind, n in comparison.kinds().items() if n]
    pairs, renamed = len(comparison.alignment.pairs), comparison.alignment.renamed
    if not kinds:
        return []
    names = f", {renamed:,} of them under another name, which does not count as a change" if renamed else ""
    nodes = "1 node is" if pairs == 1 else f"{pairs:,} nodes are"
    return medium.part("changes", [", ".join(kinds), f"{nodes} on both sides{names}"])


def _groups_text(found: list[ChangeGroup], medium: _Medium) -> list[str]:
    """The groups of equal changes of a pair of graphs."""
    lines = [medium.bullet + _group(group, medium) for group in found[:SHOWN]]
    rest = sum(len(group.changes) for group in found[SHOWN:])
    return [*lines, f"{medium.bullet}... and {rest} more"] if rest else lines


def title(before: Graph | None, after: Graph | None) -> str:
    """The name of a pair of graphs, and which side it is on, where it has one only."""
    if before is None or after is None:
        graph = before or after
        assert graph is not None
        return f"{graph.name}: only {'before' if before else 'after'}, {counted(len(graph.nodes), 'node')}"
    return before.name if before.name == after.name else f"{before.name} -> {after.name}"


def escaped(text: str) -> str:
    """Text of a dump in Markdown, where it is neither HTML nor a mark: CommonMark reads a backslash before punctuation as the character."""
    return MARKS.sub(r"\\\g<0>", text)


def _group(group: ChangeGroup, medium: _Medium) -> str:
    """A line for equal changes; a single change is shown in full."""
    sign = medium.sign(group.kind)
    if len(group.changes) == 1:
        return f"{sign} {medium.text(_change(group.changes[0]))}"
    a, b = group.ops
    op = b if a is None else a if b is None or a == b or group.what.startswith(f"{a} became") else f"{a} -> {b}"
    some = ", ".join(_names(change) for change in group.changes[:NAMED])
    more = len(group.changes) - NAMED
    times = f"**×{len(group.changes):,}**" if medium.markdown else f"×{len(group.changes):,}"
    what = f": {group.what}" if group.what and group.kind in ("changed", "moved") else ""
    word = f" {group.kind}" if group.kind in WORDS else ""
    return (f"{sign} {medium.text(op or '')} {times}{word}{medium.text(what)}: {medium.text(some)}"
            + (f", and {more:,} more" if more > 0 else ""))


def _names(change: Change) -> str:
    a, b = (node and f"%{node.name}" for node in (change.before, change.after))
    return f"{a} -> {b}" if a and b and a != b else a or b or ""


def _change(change: Change) -> str:
    node = change.after or change.before
    assert node is not None
    if change.before is None or change.after is None:
        return f"%{node.name} = {node.type} {node.op.name}" + (f": {change.kind}" if change.kind in WORDS else "")
    return f"{_names(change)} {change.before.op.name}: {change.why}"
