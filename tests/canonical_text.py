"""The canonical form of a module on one line: what XLA and irscope make of a text, without names, order and layouts of no consequence."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.graph import Graph, Layout, Module, Node, TensorType, TupleType, Type
from irscope.graph.walk import callees_first, post_order
from irscope.ops import hlo
from irscope.ops.attributes import Constant

SHORT = 120
"""Characters of an attribute that are kept."""
LEFT_OUT = frozenset(("literal", "meta", "control_predecessors", "number", "name", "raw", "operand_precision"))


def canonical(module: Module) -> str:
    """Each computation that runs, callees first, in post-order: ``tanh(0)`` is the tanh of the first instruction; parameters are ``p0``,
    ``p1``; ``c0`` calls the first computation. Equal computations are listed once."""
    texts: dict[str, int] = {}
    numbers: dict[Graph, int] = {}
    for graph in callees_first(module, module.main()):
        text = _computation(graph, numbers)
        numbers[graph] = texts.setdefault(text, len(texts))
    return " / ".join(texts)


def _computation(graph: Graph, numbers: Mapping[Graph, int]) -> str:
    order = [node for node in post_order([graph.result()], lambda node: node.operands) if node.op is not hlo.parameter]
    names: dict[Node, str] = {param: f"p{number}" for number, param in enumerate(graph.params)}
    words = []
    for node in order:
        operands = ",".join(names[o] for o in node.operands)
        calls = "".join(f" c{numbers[body]}" for body in node.bodies)
        words.append(f"{node.op.name}({operands}){_attrs(node)}{calls} {_type(node.type)}")
        names[node] = str(len(words) - 1)
    return "; ".join(words) or names[graph.result()]


def _type(type: Type) -> str:
    if isinstance(type, TupleType):
        return "()"
    if not isinstance(type, TensorType):
        return str(type)
    usual = type.layout is None or type.layout == Layout(tuple(range(type.rank))[::-1])
    return f"{type.dtype.name}[{','.join(map(str, type.shape))}]{'' if usual else type.layout}"


def _attrs(node: Node) -> str:
    if node.op is hlo.constant:
        literal: Any = Constant.of(node).known
        return "=?" if literal is None or (literal.text is None and not hasattr(literal, "value")) else f"={_value(literal.value())}"
    found = [f"{key}={_text(value)}" for key, value in sorted(node.attrs.items()) if key not in LEFT_OUT and value not in (None, ())]
    return "".join(f" {word}" for word in found)


def _value(array: Any) -> str:
    text = str(array.tolist()).replace(" ", "") if hasattr(array, "tolist") else "?"
    return text if len(text) <= SHORT else text[:SHORT] + "..."


def _text(value: object) -> str:
    text = str(value).replace(" ", "").replace("\n", "")
    return text if len(text) <= SHORT else text[:SHORT] + "..."
