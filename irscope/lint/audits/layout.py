"""The layouts of tensors, and the data movement that changes them."""

from __future__ import annotations

from collections import Counter

from irscope.analysis.survey import Survey
from irscope.graph import Graph, Module, Node, TensorType
from irscope.lint.audits.table import Table
from irscope.lint.savings import human_bytes
from irscope.ops import hlo, sets

MOVES = (
    sets.hlo("transpose copy")
    | sets.relay("transpose copy layout_transform")
    | sets.torchscript("permute transpose t contiguous to_dense copy")
)
MAX_ROWS = 40


def audit(module: Module) -> Table:
    """One row per layout of tensors with two or more axes; then one row per transpose or copy, largest first."""
    survey = Survey(module)
    layouts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    moves: list[tuple[float, Graph, Node]] = []
    fused = 0
    for graph in survey.calls.order:
        if graph in survey.calls.scalar:
            continue
        alone = survey.calls.runs_alone(graph)
        for node in graph.nodes:
            if not isinstance(node.type, TensorType):
                continue
            if node.type.rank > 1 and alone:
                order = _order(node.type)
                layouts[order] += 1
                sizes[order] += node.type.bytes
            if node.op in MOVES:
                if alone:
                    moves.append((survey.costs.traffic(node, graph) * survey.calls.times[graph], graph, node))
                else:
                    fused += 1
    moves.sort(key=lambda move: -move[0])
    total = sum(moved for moved, _, _ in moves)
    title = f"{len(moves)} transpositions and copies move {human_bytes(total)} in a run; {fused} more lie inside fusions"
    table = Table("layout", title, ("layout or move", "at", "what", "bytes"))
    for order, n in layouts.most_common():
        table.rows.append((order, None, f"{n} values", human_bytes(sizes[order])))
    for moved, graph, node in moves[:MAX_ROWS]:
        operand = node.operands[0] if node.operands else None
        why = "of a parameter, on every run" if operand is not None and operand.op is hlo.parameter else _shapes(operand, node)
        users = ", ".join(dict.fromkeys(user.op.name for user in survey.users(graph)[node.index])) or "the result"
        table.rows.append((node.op.name, f"%{node.name}", f"{why}, for {users}", human_bytes(moved)))
    if len(moves) > MAX_ROWS:
        table.notes.append(f"{len(moves) - MAX_ROWS} smaller moves are not shown")
    if not module.dialect.primitive:
        table.notes.append(f"{module.format} does not write layouts: all values are taken to lie in the order of their axes")
    return table


def _order(type: TensorType) -> str:
    """``row-major``, or the axes from minor to major, as in HLO."""
    layout = getattr(type, "layout", None)
    order = getattr(layout, "minor_to_major", None)
    if not order or tuple(order) == tuple(range(type.rank))[::-1]:
        return f"row-major, {type.rank} axes"
    return "{" + ",".join(map(str, order)) + f"}}, {type.rank} axes"


def _shapes(operand: Node | None, node: Node) -> str:
    return f"{operand.type} to {node.type}" if operand is not None else str(node.type)
