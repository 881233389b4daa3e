"""Building blocks of expansions: constants, broadcasts, sums and the small bodies that sums need."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Builder, DType, Graph, Node, TensorType
from irscope.lazy import np
from irscope.ops.attrs import Literal
from irscope.ops.registry import get


def type_of(node: Node) -> TensorType:
    """The type of a node that is known to be an array, without its layout."""
    assert isinstance(node.type, TensorType), "inference has seen that it is an array"
    return TensorType(node.type.dtype, node.type.shape)


def constant(builder: Builder, value: object, dtype: DType) -> Node:
    """A scalar constant."""
    t = TensorType(dtype, ())
    return builder.add(get("constant"), (), {"literal": Literal.of(np.asarray(value, dtype.numpy()), t)}, t)


def full(builder: Builder, value: object, like: TensorType) -> Node:
    """An array of one value."""
    return broadcast(builder, constant(builder, value, like.dtype), like, ())


def broadcast(builder: Builder, x: Node, like: TensorType, dimensions: Sequence[int]) -> Node:
    """``x`` along some dimensions of an array of the shape of ``like``."""
    result = TensorType(type_of(x).dtype, like.shape)
    return builder.add(get("broadcast"), (x,), {"dimensions": tuple(dimensions)}, result)


def convert(builder: Builder, x: Node, dtype: DType) -> Node:
    """``x`` in another element type; ``x`` itself where it already has it."""
    t = type_of(x)
    return x if t.dtype is dtype else builder.add(get("convert"), (x,), {}, TensorType(dtype, t.shape))


def apply(builder: Builder, name: str, *operands: Node) -> Node:
    """Append an operator without attributes whose type follows from its operands."""
    return builder.add(get(name), operands)


def combiner_body(name: str, dtype: DType) -> Graph:
    """A computation of two scalars that is one operator, for ``to_apply`` of reductions."""
    graph = Graph(f"{name}_{dtype.name}")
    builder = Builder(graph)
    scalar = TensorType(dtype, ())
    x, y = (builder.param(get("parameter"), scalar, n) for n in "xy")
    graph.root = builder.add(get(name), (x, y))
    return graph


class Combiners(dict[tuple[str, DType], Graph]):
    """Such computations, by operator and element type, each built once: the thousand sums of a program share one."""

    def __missing__(self, key: tuple[str, DType]) -> Graph:
        body = self[key] = combiner_body(*key)
        return body


def sum_over(builder: Builder, x: Node, dimensions: Sequence[int]) -> Node:
    """The sum along some dimensions."""
    dtype = type_of(x).dtype
    return builder.add(get("reduce"), (x, constant(builder, 0, dtype)), {"dimensions": tuple(dimensions)},
                       bodies=(combiner_body("add", dtype),))
