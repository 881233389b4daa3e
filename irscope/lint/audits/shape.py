"""Dynamic dimensions, and dimensions that do not fill vectors, with the operators that they affect."""

from __future__ import annotations

from irscope.analysis.survey import Survey
from irscope.graph import Graph, Module, Node, TensorType
from irscope.lint.audits.table import Table

VECTOR_BYTES = 32
"""An AVX2 register, and the sector of a GPU's memory: rows that are no multiple of it end in a part."""
MAX_ROWS = 40


def audit(module: Module) -> Table:
    """One row per dynamic dimension, with its origin and the operators that it affects; then one per shape with an unaligned last axis."""
    survey = Survey(module)
    sources: list[tuple[Graph, Node]] = []
    open_values = 0
    odd: dict[tuple[str, int], list[Node]] = {}
    for graph in survey.calls.order:
        if graph in survey.calls.scalar:
            continue
        for node in graph.nodes:
            type = node.type
            if not isinstance(type, TensorType):
                continue
            if not type.is_static:
                open_values += 1
                if not any(_is_open(o) for o in node.operands):
                    sources.append((graph, node))
            elif type.rank and node.op.work in ("contraction", "reduction", "elementwise", "fusion"):
                last = type.dims()[-1]
                if last > 1 and last * type.dtype.storage % VECTOR_BYTES:
                    odd.setdefault((type.dtype.name, last), []).append(node)
    table = Table("shape", "", ("dimension", "at", "what", "reaches", "of these"))
    table.rows += [(str(node.type), f"%{node.name}", "enters here", *_reach(graph, node)) for graph, node in sources[:MAX_ROWS]]
    n_odd = sum(len(nodes) for nodes in odd.values())
    for (dtype, last), nodes in sorted(odd.items(), key=lambda item: -sum(_bytes(n) for n in item[1]))[:MAX_ROWS]:
        size = max(1, VECTOR_BYTES // _storage(nodes[0]))
        fits = -(-last // size) * size
        table.rows.append((f"{dtype}[..., {last}]", f"%{nodes[0].name}", f"the next size that fits is {fits}", len(nodes), _ops(nodes)))
    opened = f"{open_values} values of open shape from {len(sources)} places"
    table.title = f"{opened}; {n_odd} results whose last axis is no multiple of {VECTOR_BYTES} bytes"
    if len(sources) > MAX_ROWS or len(odd) > MAX_ROWS:
        table.notes.append(f"the first {MAX_ROWS} of each are shown")
    return table


def _is_open(node: Node) -> bool:
    return isinstance(node.type, TensorType) and not node.type.is_static


def _reach(graph: Graph, node: Node) -> tuple[int, str]:
    """The number of values of dynamic shape that depend on a node in its graph, and their operators."""
    reached = {id(node)}
    found = []
    for later in graph.nodes[node.index + 1 :]:
        if any(id(o) in reached for o in later.operands) and _is_open(later):
            reached.add(id(later))
            found.append(later)
    return len(found), _ops(found)


def _ops(nodes: list[Node]) -> str:
    names: dict[str, int] = {}
    for node in nodes:
        names[node.op.name] = names.get(node.op.name, 0) + 1
    most = sorted(names.items(), key=lambda item: -item[1])
    return ", ".join(f"{n} {name}" for name, n in most[:4]) + (", ..." if len(most) > 4 else "")


def _bytes(node: Node) -> int:
    return node.type.bytes if isinstance(node.type, TensorType) else 0


def _storage(node: Node) -> int:
    return node.type.dtype.storage if isinstance(node.type, TensorType) else 1
