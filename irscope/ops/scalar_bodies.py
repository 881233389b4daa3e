"""The computations that scatter, sort and argmax apply to pairs of scalars, as separate graphs."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Builder, DType, Graph, Node, TensorType, TupleType
from irscope.ops.building import apply
from irscope.ops.registry import get


def overwrite_body(dtype: DType) -> Graph:
    """The update alone: a scatter that overwrites."""
    body = _Body(f"overwrite_{dtype.name}", (dtype, dtype))
    body.graph.root = body.params[1]
    return body.graph


def sort_body(dtypes: Sequence[DType], descending: bool) -> Graph:
    """Whether the first of two elements comes before the second, by their first operand; NaN last when ascending, first when descending.

    ``dtypes`` are those of all operands of the sort.
    """
    body = _Body("descending" if descending else "ascending", [d for d in dtypes for _ in range(2)])
    a, b = body.params[:2]
    before = body.compare("GT" if descending else "LT", a, b)
    if dtypes[0].is_float:
        first, second = (a, b) if descending else (b, a)
        only_first = body.apply("and", body.compare("NE", first, first), body.apply("not", body.compare("NE", second, second)))
        before = body.apply("or", before, only_first)
    body.graph.root = before
    return body.graph


def arg_extreme_body(dtype: DType, index: DType, largest: bool) -> Graph:
    """The larger (or smaller) of two values with its index; of equal ones the one with the smaller index, and NaN before any number."""
    body = _Body("arg_max" if largest else "arg_min", (dtype, index, dtype, index))
    a, i, b, j = body.params
    better, tie = body.compare("GT" if largest else "LT", a, b), body.compare("EQ", a, b)
    if dtype.is_float:
        is_nan = body.compare("NE", a, a)
        better = body.apply("or", better, is_nan)
        tie = body.apply("or", tie, body.apply("and", is_nan, body.compare("NE", b, b)))
    value = body.apply("select", better, a, b)
    place = body.apply("select", tie, body.apply("select", body.compare("LT", i, j), i, j), body.apply("select", better, i, j))
    body.graph.root = body.builder.add(get("tuple"), (value, place), type=TupleType((value.type, place.type)))
    return body.graph


class _Body:
    """A graph over scalars that is being built."""

    def __init__(self, name: str, dtypes: Sequence[DType]) -> None:
        self.graph = Graph(name)
        self.builder = Builder(self.graph)
        self.params = [self.builder.param(get("parameter"), TensorType(d, ()), f"p{i}") for i, d in enumerate(dtypes)]

    def apply(self, name: str, *operands: Node) -> Node:
        return apply(self.builder, name, *operands)

    def compare(self, direction: str, x: Node, y: Node) -> Node:
        return self.builder.add(get("compare"), (x, y), {"direction": direction})
