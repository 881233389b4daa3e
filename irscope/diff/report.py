"""A comparison as text, Markdown and JSON."""
from __future__ import annotations

from irscope.diff.compare import METRICS, Change, Comparison, GraphPair
from irscope.graph import Graph, Node

SHOWN = 40
"""Changes that are listed of one pair of graphs; the rest is counted."""


def as_json(comparison: Comparison, failed: list[str]) -> dict[str, object]:
    """``{"same", "metrics", "ops", "graphs", "failed"}``."""
    before, after = comparison.cuts
    cut = {"cut": {"before": before and str(before), "after": after and str(after)}} if comparison.partial else {}
    return {
        "same": comparison.same, **cut,
        "metrics": {name: {"before": comparison.before[name], "after": comparison.after[name]} for name in comparison.before},
        "ops": {name: {"before": a, "after": b} for name, (a, b) in comparison.op_changes().items()},
        "graphs": [_graph_json(pair) for pair in comparison.pairs if not pair.same],
        "failed": failed,
    }


def _graph_json(pair: GraphPair) -> dict[str, object]:
    return {"before": pair.before.name if pair.before else None, "after": pair.after.name if pair.after else None,
            "changes": [{"before": _node_json(c.before), "after": _node_json(c.after), "why": c.why or None} for c in pair.changes]}


def _node_json(node: Node | None) -> dict[str, str] | None:
    return None if node is None else {"name": node.name, "op": node.op.name, "type": str(node.type)}


def as_text(comparison: Comparison, before: str, after: str, markdown: bool = False) -> str:
    """What changed, most telling first: the figures, the operators, then the nodes of each graph."""
    if comparison.same:
        return f"{before} and {after} are the same graph"
    bullet = "- " if markdown else "  "
    lines = [f"## {before} against {after}" if markdown else f"{before} -> {after}", ""]
    lines += _cut_text(comparison, before, after, bullet) if comparison.partial else _table(comparison, markdown)
    ops = comparison.op_changes()
    if ops:
        lines += ["", ("### Operators" if markdown else "operators")]
        ordered = sorted(ops.items(), key=lambda kv: -abs(kv[1][1] - kv[1][0]))
        lines += [f"{bullet}{name} {a} -> {b} ({b - a:+d})" for name, (a, b) in ordered]
    for pair in comparison.pairs:
        if not pair.same:
            lines += ["", *_graph_text(pair, bullet, markdown)]
    return "\n".join(lines)


def _cut_text(comparison: Comparison, before: str, after: str, bullet: str) -> list[str]:
    """What was compared of texts that are cut off."""
    lines = [f"{bullet}{name}: {cut}" for name, cut in zip((before, after), comparison.cuts, strict=True) if cut is not None]
    equal = sum(pair.same for pair in comparison.pairs)
    return [*lines, f"{bullet}computations that are complete in both: {equal} equal, {len(comparison.pairs) - equal} not; there are no "
            "figures of the programs, because parts of them are missing"]


def figure(value: float | None) -> str:
    """A figure; ``unknown`` for None."""
    return "unknown" if value is None else f"{value:,.0f}"


def change_of(before: float | None, after: float | None) -> tuple[str, str]:
    """The difference of two figures, and as a share of the first; both empty where there is none, or one is not known."""
    if before is None or after is None or before == after:
        return "", ""
    return f"{after - before:+,.0f}", f"{(after - before) / before * 100:+.1f} %" if before else ""


def _table(comparison: Comparison, markdown: bool) -> list[str]:
    rows = []
    for name in METRICS:
        a, b = comparison.metric(name)
        rows.append((name, figure(a), figure(b), *change_of(a, b)))
    if markdown:
        return ["| metric | before | after | change | |", "|---|---|---|---|---|", *("| " + " | ".join(row) + " |" for row in rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return ["  " + row[0].ljust(widths[0]) + "  " + "  ".join(row[i].rjust(widths[i]) for i in range(1, 5)).rstrip() for row in rows]


def _graph_text(pair: GraphPair, bullet: str, markdown: bool) -> list[str]:
    name = title(pair.before, pair.after)
    lines = [f"### {name}" if markdown else name]
    lines += [bullet + _change(change) for change in pair.changes[:SHOWN]]
    if len(pair.changes) > SHOWN:
        lines.append(f"{bullet}... and {len(pair.changes) - SHOWN} more")
    return lines


def title(before: Graph | None, after: Graph | None) -> str:
    """The name of a pair of graphs, and which side it is on, where it has one only."""
    if before is None or after is None:
        graph = before or after
        assert graph is not None
        return f"{graph.name}: only {'before' if before else 'after'}, {len(graph.nodes)} nodes"
    return before.name if before.name == after.name else f"{before.name} -> {after.name}"


def _change(change: Change) -> str:
    if change.before is None and change.after is not None:
        return f"+ %{change.after.name} = {change.after.type} {change.after.op.name}"
    assert change.before is not None
    if change.after is None:
        return f"- %{change.before.name} = {change.before.type} {change.before.op.name}"
    return f"~ %{change.before.name} -> %{change.after.name} {change.before.op.name}: {change.why}"
