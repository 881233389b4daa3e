"""The parallelism of a graph: levels, their width, and where branches join."""

from __future__ import annotations

from collections import Counter

from irscope.analysis.levels import works
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Module, Node
from irscope.lint.audits.table import Table
from irscope.lint.savings import human_bytes
from irscope.source.plural import plural

MAX_ROWS = 30


def audit(module: Module) -> Table:
    """One row per level of the entry with more than one operation, in order; and the nodes where independent branches join."""
    survey = Survey(module)
    entry = survey.entry
    table = Table("parallel", "nothing runs", ("level", "operations", "bytes moved", "which", "joined by"))
    if entry is None:
        return table
    levels = survey.levels(entry)
    sets = levels.independent()
    working = sum(len(nodes) for nodes in sets)
    wide = sum(len(nodes) > 1 for nodes in sets)
    mean = working / levels.depth if levels.depth else 0.0
    table.title = (
        f"{plural(working, 'operation')} in {plural(levels.depth, 'level')}, {mean:.2f} a level and {levels.width} at most; "
        f"{wide} levels hold operations that are independent of each other"
    )
    joins = _joins(survey, entry)
    shown = [(number, nodes) for number, nodes in enumerate(sets, 1) if len(nodes) > 1]
    for number, nodes in shown[:MAX_ROWS]:
        ops = Counter(node.op.name for node in nodes)
        which = ", ".join(f"{n} {name}" for name, n in ops.most_common(5))
        moved = sum(survey.costs.traffic(node, entry) for node in nodes)
        after = [f"%{join.name}" for join in joins.get(number, [])]
        table.rows.append((number, len(nodes), human_bytes(moved), which, ", ".join(after[:4]) + (", ..." if len(after) > 4 else "")))
    if len(shown) > MAX_ROWS:
        table.notes.append(f"{len(shown) - MAX_ROWS} more levels are not shown")
    loops = [node for node in survey.calls.trips if survey.calls.trips[node] > 1] + survey.calls.open_loops
    if loops:
        table.notes.append("trips of loops run one after the other: " + ", ".join(f"%{node.name}" for node in loops[:6]))
    return table


def _joins(survey: Survey, entry: Graph) -> dict[int, list[Node]]:
    """By level, the nodes that read two or more nodes of the highest level below them: where branches join."""
    level = survey.levels(entry).level
    found: dict[int, list[Node]] = {}
    for node in entry.nodes:
        if not works(node):
            continue
        before = {id(o): level[o.index] for o in node.operands if level[o.index] > 0}
        if len(before) > 1:
            found.setdefault(max(before.values()), []).append(node)
    return found
