"""Reductions along axes, which are attributes up to version 17 (of ``ReduceSum`` 12) and operands from then on."""
from __future__ import annotations

from collections.abc import Callable

from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.torchscript.operators.reduction import log_sum_exp
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED, S64
from irscope.ops.faults import TypeFault

Reduce = Callable[[Onnx, Node, list[int], bool], Node]


def _squares(t: Onnx, x: Node) -> Node:
    return t.mul(x, x)


def _magnitude(t: Onnx, x: Node) -> Node:
    return x if t.dtype(x).kind == "uint" else t.unary("abs", x)


def _floating(t: Onnx, x: Node, function: Callable[[Node], Node]) -> Node:
    """A function of floats; integers are converted, and the result back."""
    return function(x) if t.dtype(x).is_float else t.convert(function(t.convert(x, F32)), t.dtype(x))


def _extreme(t: Onnx, x: Node, axes: list[int], keep: bool, largest: bool) -> Node:
    """Of booleans, any or all."""
    if t.dtype(x) is PRED:
        return t.any(x, axes, keep) if largest else t.all(x, axes, keep)
    return t.max(x, axes, keep) if largest else t.min(x, axes, keep)


REDUCTIONS: dict[str, Reduce] = {
    "ReduceSum": lambda t, x, axes, keep: t.sum(x, axes, keep),
    "ReduceMean": lambda t, x, axes, keep: t.mean(x, axes, keep),
    "ReduceProd": lambda t, x, axes, keep: t.product(x, axes, keep),
    "ReduceMax": lambda t, x, axes, keep: _extreme(t, x, axes, keep, True),
    "ReduceMin": lambda t, x, axes, keep: _extreme(t, x, axes, keep, False),
    "ReduceL1": lambda t, x, axes, keep: t.sum(_magnitude(t, x), axes, keep),
    "ReduceL2": lambda t, x, axes, keep: _floating(t, t.sum(_squares(t, x), axes, keep), lambda v: t.unary("sqrt", v)),
    "ReduceLogSum": lambda t, x, axes, keep: _floating(t, t.sum(x, axes, keep), lambda v: t.unary("log", v)),
    "ReduceLogSumExp": lambda t, x, axes, keep: _floating(t, x, lambda v: log_sum_exp(t, v, axes, keep)),
    "ReduceSumSquare": lambda t, x, axes, keep: t.sum(_squares(t, x), axes, keep),
}
WIDE = frozenset(("ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"))
"""Reductions of half precision that are computed in float32."""


def _reduction(name: str, reduce: Reduce) -> None:
    @operator(f"{name}(data, axes?: int[0-1]; axes: ints=None, keepdims=1, noop_with_empty_axes=0)")
    def reduction(t: Onnx, a: Attributes, x: Node, given: Node | None) -> Node:
        axes = t.ints(given, "the axes") if given is not None else a.axes or []
        if not axes and a.noop_with_empty_axes:
            return _pointwise(t, name, x)
        found = t.given_axes(x, axes) if axes else list(range(t.rank(x)))
        wide = t.widened(x) if name in WIDE else x
        return t.convert(reduce(t, wide, found, bool(a.keepdims)), t.dtype(x))


def _pointwise(t: Onnx, name: str, x: Node) -> Node:
    """A reduction over no axis: the function of each element alone."""
    if name in ("ReduceL1", "ReduceL2"):
        return _magnitude(t, x)
    if name == "ReduceSumSquare":
        return _squares(t, x)
    if name == "ReduceLogSum":
        return _floating(t, x, lambda v: t.unary("log", v))
    return x


for _name, _reduce in REDUCTIONS.items():
    _reduction(_name, _reduce)


def _place(name: str, largest: bool) -> None:
    @operator(f"{name}(data; axis=0, keepdims=1, select_last_index=0)")
    def place(t: Onnx, a: Attributes, x: Node) -> Node:
        axis = t.axis(x, a.axis)
        n = t.shape(x)[axis]
        if not n:
            raise TypeFault(f"axis {axis} has no elements")
        if t.dtype(x) is PRED:
            x = t.convert(x, F32)
        seen = t.reverse(x, [axis]) if a.select_last_index else x
        _, found = t.arg_extreme(seen, axis, largest, S64)
        if a.select_last_index:
            found = t.sub(t.like(found, n - 1), found)
        return t.reshape(found, (*t.shape(x)[:axis], 1, *t.shape(x)[axis + 1:])) if a.keepdims else found


_place("ArgMax", True)
_place("ArgMin", False)


def _cumulative(name: str, primitive: str, start: int) -> None:
    @operator(f"{name}(x, axis: int[0-1]; exclusive=0, reverse=0)")
    def running(t: Onnx, a: Attributes, x: Node, axis: Node) -> Node:
        d = t.axis(x, t.single(axis, "the axis"))
        if a.exclusive:
            n, rank = t.shape(x)[d], t.rank(x)
            low, high = [0] * rank, [0] * rank
            low[d], high[d] = (-1, 1) if a.reverse else (1, -1)
            x = t.pad(x, t.array(start, t.dtype(x)), low, high) if n else x
        return t.cumulative(primitive, x, d, start, bool(a.reverse))


_cumulative("CumSum", "add", 0)
_cumulative("CumProd", "multiply", 1)
