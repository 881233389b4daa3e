"""Sums, products and extremes of all elements up to each; differences of neighbours."""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.reduction import accumulating
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.ops.checked import at_least


@operator("cumsum(Tensor self, int dim, *, ScalarType? dtype=None)")
def cumsum(t: Torch, x: Node, dim: int, dtype: int | None) -> Node:
    d, x = t.dim(x, dim), accumulating(t, x, dtype)
    return t.cumulative("add", x, d, 0) if t.rank(x) else x


@operator("cumprod(Tensor self, int dim, *, ScalarType? dtype=None)")
def cumprod(t: Torch, x: Node, dim: int, dtype: int | None) -> Node:
    d, x = t.dim(x, dim), accumulating(t, x, dtype)
    return t.cumulative("multiply", x, d, 1) if t.rank(x) else x


def _cumulative_extreme(name: str, hlo: str, largest: bool) -> None:
    @operator(f"{name}(Tensor self, int dim)")
    def cumulative(t: Torch, x: Node, dim: int) -> tuple[Node, Node]:
        """Values, and the last index that attains each."""
        d = t.dim(x, dim)
        if t.rank(x) == 0:
            return x, t.array(0, S64)
        values = t.cumulative(hlo, x, d, t.dtype(x).lowest if largest else t.dtype(x).highest)
        reached = t.binary("or", t.compare("EQ", x, values), t.compare("NE", x, x))  # NaN is the extreme from there on
        at = t.select(reached, t.iota(t.shape(x), d, S64), t.full(t.shape(x), 0, S64))
        return values, t.cumulative("maximum", at, d, 0)


_cumulative_extreme("cummax", "maximum", True)
_cumulative_extreme("cummin", "minimum", False)


@operator("logcumsumexp(Tensor self, int dim)")
def logcumsumexp(t: Torch, x: Node, dim: int) -> Node:
    d = t.dim(x, dim)
    if t.rank(x) == 0:
        return x
    n, step = t.shape(x)[d], 1
    # Doubles the summed range in each round. One maximum for all would make exponentials far below it vanish.
    while step < n:
        low = [step if i == d else 0 for i in range(t.rank(x))]
        high = [-step if i == d else 0 for i in range(t.rank(x))]
        x = _log_sum(t, x, t.pad(x, t.array(float("-inf"), t.dtype(x)), low, high))
        step *= 2
    return x


def _log_sum(t: Torch, x: Node, y: Node) -> Node:
    """``log(exp(x) + exp(y))``."""
    large, small = t.maximum(x, y), t.minimum(x, y)
    same = t.binary("and", t.compare("EQ", x, y), t.unary("not", t.unary("is-finite", x)))  # inf - inf would be NaN
    return t.select(same, x, t.add(large, t.unary("log-plus-one", t.unary("exponential", t.sub(small, large)))))


@operator("diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)")
def diff(t: Torch, x: Node, n: int, dim: int, prepend: Node | None, append: Node | None) -> Node:
    d = t.dim(x, dim)
    at_least(0, "the order of a difference", n)
    if n == 0:
        return x
    parts = [p for p in (prepend, x, append) if p is not None]
    x = t.concat(t.promote(*parts), d)
    for _ in range(n):
        size = t.shape(x)[d]
        if size == 0:
            return x
        later, earlier = t.slice_dim(x, d, 1, size), t.slice_dim(x, d, 0, size - 1)
        x = t.binary("xor", later, earlier) if t.dtype(x) is PRED else t.sub(later, earlier)
    return x
