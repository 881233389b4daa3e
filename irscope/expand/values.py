"""Values while a graph is expanded: a node, or a list of values where a tuple is known element by element."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, Union

from irscope.graph import Builder, Node, TupleType, Type
from irscope.ops import hlo

Value = Union[Node, "list[Value]"]
V = TypeVar("V")
T = TypeVar("T")


def fold(value: V, parts: Callable[[V], Sequence[V] | None], leaf: Callable[[V], T], join: Callable[[V, list[T]], T]) -> T:
    """Fold a nested value bottom-up and in order, without recursion.

    A value for which ``parts`` returns None becomes ``leaf(value)``; any other becomes ``join(value, results of its parts)``.
    """
    top: list[T] = []
    stack: list[tuple[V, Iterator[V], list[T]]] = [(value, iter((value,)), top)]
    while True:
        whole, rest, done = stack[-1]
        for part in rest:
            inside = parts(part)
            if inside is not None:
                stack.append((part, iter(inside), []))
                break
            done.append(leaf(part))
        else:
            stack.pop()
            if not stack:
                return top[0]
            stack[-1][2].append(join(whole, done))


def as_node(builder: Builder, value: Value) -> Node:
    """One node with the value; a list becomes a ``tuple``, its inner lists first."""
    return value if isinstance(value, Node) else _tuple(builder, value)


def _tuple(builder: Builder, value: Value) -> Node:
    def parts(part: Value) -> list[Value] | None:
        return None if isinstance(part, Node) else part

    def node(leaf: Value) -> Node:
        assert isinstance(leaf, Node)
        return leaf
    return fold(value, parts, node, lambda _, made: builder.add(hlo.tuple, made, type=TupleType(tuple(m.type for m in made))))


def synthetic_part(builder: Builder, whole: Node, index: int, name: str | None = None, type: Type | None = None) -> Node:
    """An element of a tuple, as a ``get-tuple-element`` that is not in the text. Without ``type``, it has the type of the element."""
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
