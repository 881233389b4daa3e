"""Values while a graph is expanded: a node, or a list of values where a tuple is known element by element."""
from __future__ import annotations

from typing import Union

from irscope.graph import Builder, Node, TupleType, Type
from irscope.ops import hlo

Value = Union[Node, "list[Value]"]


def as_node(builder: Builder, value: Value) -> Node:
    """One node with the value; a list becomes a ``tuple``, its inner lists first."""
    if isinstance(value, Node):
        return value
    stack: list[tuple[list[Value], list[Node]]] = [(value, [])]
    while True:
        items, done = stack[-1]
        if len(done) == len(items):
            made = builder.add(hlo.tuple, done, type=TupleType(tuple(d.type for d in done)))
            stack.pop()
            if not stack:
                return made
            stack[-1][1].append(made)
            continue
        item = items[len(done)]
        if isinstance(item, Node):
            done.append(item)
        else:
            stack.append((item, []))


def synthetic_part(builder: Builder, whole: Node, index: int, name: str | None = None, type: Type | None = None) -> Node:
    """An element of a tuple, as a ``get-tuple-element`` that the text does not write; its type is that of the tuple's unless given."""
    if type is None:
        assert isinstance(whole.type, TupleType)
        type = whole.type.elements[index]
    part = builder.add(hlo.get_tuple_element, (whole,), {"index": index}, type, name=name)
    part.synthetic = True
    return part


def parts_of(builder: Builder, node: Node) -> Value:
    """The value of a node; one with several results is the list of its elements."""
    if not isinstance(node.type, TupleType):
        return node
    if node.op is hlo.tuple:
        return [parts_of(builder, operand) for operand in node.operands]
    return [parts_of(builder, synthetic_part(builder, node, i, f"{node.name}.{i}")) for i in range(len(node.type.elements))]
