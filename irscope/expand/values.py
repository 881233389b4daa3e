"""Values while a graph is expanded: a node, or a list of values where a tuple is known element by element."""
from __future__ import annotations

from typing import Union

from irscope.graph import Builder, Node, TupleType
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


def parts_of(builder: Builder, node: Node) -> Value:
    """The value of a node; one with several results is the list of its parts, each a synthetic ``get-tuple-element``."""
    if not isinstance(node.type, TupleType):
        return node
    if node.op is hlo.tuple:
        return [parts_of(builder, operand) for operand in node.operands]
    return [
        parts_of(builder, builder.add(hlo.get_tuple_element, (node,), {"index": i}, element, name=f"{node.name}.{i}", synthetic=True))
        for i, element in enumerate(node.type.elements)
    ]
