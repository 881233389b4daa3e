"""The properties of nodes that queries test: name, meaning, and how to compute them."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.analysis.summary import source_line
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, TensorType, Type

Answer = str | float | bool
Ask = Callable[[Survey, Graph, Node], Answer]


@dataclass(frozen=True, slots=True)
class Column:
    """A property of nodes; ``kind`` is ``text``, ``number`` or ``flag``."""

    name: str
    kind: str
    doc: str
    ask: Ask


def _first_tensor(type: Type) -> TensorType | None:
    return next((leaf for leaf in type.leaves() if isinstance(leaf, TensorType)), None)


def _dtype(survey: Survey, graph: Graph, node: Node) -> str:
    tensor = _first_tensor(node.type)
    return tensor.dtype.name if tensor is not None else str(node.type)


def _shape(survey: Survey, graph: Graph, node: Node) -> str:
    tensor = _first_tensor(node.type)
    return ",".join(map(str, tensor.shape)) if tensor is not None else ""


def _rank(survey: Survey, graph: Graph, node: Node) -> float:
    tensor = _first_tensor(node.type)
    return float(len(tensor.shape)) if tensor is not None else 0.0


def _flops(survey: Survey, graph: Graph, node: Node) -> float:
    return survey.costs.flops(node, graph) if graph in survey.costs.graphs else 0.0


def _traffic(survey: Survey, graph: Graph, node: Node) -> float:
    return survey.costs.traffic(node, graph) if graph in survey.costs.graphs else 0.0


def _intensity(survey: Survey, graph: Graph, node: Node) -> float:
    traffic = _traffic(survey, graph, node)
    return _flops(survey, graph, node) / traffic if traffic else 0.0


def _line(survey: Survey, graph: Graph, node: Node) -> float:
    return float(survey.module.source.place(node.loc).line) if node.loc >= 0 else 0.0


def _text(survey: Survey, graph: Graph, node: Node) -> str:
    source = survey.module.source
    return source.line(source.place(node.loc).line).strip() if node.loc >= 0 else ""


COLUMNS: dict[str, Column] = {c.name: c for c in (
    Column("op", "text", "the operator: dot, add, fusion", lambda s, g, n: n.op.name),
    Column("name", "text", "the node's name, without %", lambda s, g, n: n.name),
    Column("graph", "text", "the computation, function or block it stands in", lambda s, g, n: g.name),
    Column("scope", "text", "the user's name for the place: HLO op_name, module path", lambda s, g, n: s.module.scope(n)),
    Column("source", "text", "file:line of the user's program", lambda s, g, n: source_line(s.module, n)),
    Column("class", "text", "class of work: contraction, reduction, elementwise, movement, fusion...", lambda s, g, n: n.op.work),
    Column("dtype", "text", "element type of the (first) result", _dtype),
    Column("shape", "text", "shape of the (first) result: 8,128 or 8x128; a star stands for anything", _shape),
    Column("type", "text", "the whole type as the text has it", lambda s, g, n: str(n.type)),
    Column("text", "text", "the line of the text that defines it, with its attributes", _text),
    Column("calls", "text", "names of the bodies it calls", lambda s, g, n: ",".join(b.name for b in n.bodies)),
    Column("rank", "number", "number of dimensions of the (first) result", _rank),
    Column("elements", "number", "elements of the result",
           lambda s, g, n: float(sum(leaf.elements for leaf in n.type.leaves() if isinstance(leaf, TensorType)))),
    Column("bytes", "number", "bytes of the result", lambda s, g, n: float(s.costs.size(n.type))),
    Column("flops", "number", "FLOPs of one run, bodies included", _flops),
    Column("traffic", "number", "bytes read and written by one run", _traffic),
    Column("intensity", "number", "FLOPs per byte of traffic", _intensity),
    Column("users", "number", "nodes that take its value", lambda s, g, n: float(len(s.users(g)[n.index]))),
    Column("operands", "number", "values that it takes", lambda s, g, n: float(len(n.operands))),
    Column("times", "number", "how often it runs in one run of the module", lambda s, g, n: s.calls.times.get(g, 0.0)),
    Column("level", "number", "length of the longest chain that ends here", lambda s, g, n: float(s.levels(g).level[n.index])),
    Column("line", "number", "line of the text", _line),
    Column("fused", "flag", "it stands inside a fusion", lambda s, g, n: g in s.calls.fused),
    Column("entry", "flag", "it stands in the entry computation", lambda s, g, n: g is s.entry),
    Column("root", "flag", "it is the result of its graph", lambda s, g, n: g.root is n),
    Column("scalar", "flag", "its result is a single number", lambda s, g, n: isinstance(n.type, TensorType) and not n.type.shape),
    Column("known", "flag", "irscope has a declaration of its operator", lambda s, g, n: n.op.known),
)}
