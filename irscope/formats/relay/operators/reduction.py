"""Reductions, cumulative sums and products, and einsum."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.formats.relay.algebra import Relay, steps_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Kind, Node
from irscope.graph.dtypes import PRED, S32
from irscope.ops.faults import TypeFault

R = Kind.REDUCTION


def _reduction(name: str, reduce: Callable[[Relay, Node, list[int], bool], Node]) -> None:
    def build(t: Relay, a: Attributes, x: Node) -> Node:
        return reduce(t, x, t.axes(x, a.axis, bool(a.exclude)), bool(a.keepdims))

    build.__doc__ = f"The {name} over some axes, or all."
    operator(f"{name}(data; axis=None, keepdims=False, exclude=False)", kind=R)(build)


def _all(t: Relay, x: Node, axes: list[int], keep: bool) -> Node:
    return t.all(x if t.dtype(x) is PRED else t.compare("NE", x, t.like(x, 0)), axes, keep)


def _any(t: Relay, x: Node, axes: list[int], keep: bool) -> Node:
    return t.any(x if t.dtype(x) is PRED else t.compare("NE", x, t.like(x, 0)), axes, keep)


_reduction("sum", lambda t, x, axes, keep: t.sum(x, axes, keep))
_reduction("mean", lambda t, x, axes, keep: t.mean(x, axes, keep))
_reduction("max", lambda t, x, axes, keep: t.max(x, axes, keep))
_reduction("min", lambda t, x, axes, keep: t.min(x, axes, keep))
_reduction("prod", lambda t, x, axes, keep: t.product(x, axes, keep))
_reduction("all", _all)
_reduction("any", _any)


def _arg(name: str, largest: bool) -> None:
    def build(t: Relay, a: Attributes, x: Node) -> Node:
        axes = t.axes(x, a.axis, bool(a.exclude))
        rank, shape = t.rank(x), t.shape(x)
        rest = [d for d in range(rank) if d not in axes]
        n = prod(shape[d] for d in axes)
        flat = t.reshape(t.transpose(x, rest + axes), (*(shape[d] for d in rest), n))
        last = len(rest)
        if a.select_last_index:
            found = t.arg_extreme(t.reverse(flat, [last]), last, largest, S32)[1]
            found = t.sub(t.like(found, n - 1), found)
        else:
            found = t.arg_extreme(flat, last, largest, S32)[1]
        return t.reshape(found, tuple(1 if d in axes else s for d, s in enumerate(shape))) if a.keepdims else found

    build.__doc__ = f"Where the {'largest' if largest else 'smallest'} element is, as an index over the reduced axes."
    operator(f"{name}(data; axis=None, keepdims=False, select_last_index=False, exclude=False)", kind=R)(build)


_arg("argmax", True)
_arg("argmin", False)


@operator("variance(data, mean; axis=None, keepdims=False, exclude=False, unbiased=False)", kind=R)
def variance(t: Relay, a: Attributes, x: Node, mean: Node) -> Node:
    """The mean square of the distance to a given mean."""
    axes = t.axes(x, a.axis, bool(a.exclude))
    away = t.sub(x, mean)
    n = prod(t.shape(x)[d] for d in axes) - bool(a.unbiased)
    total = t.sum(t.mul(away, away), axes, bool(a.keepdims))
    return t.div(total, t.like(total, n))


def _scan(name: str, combine: str, neutral: int) -> None:
    def build(t: Relay, a: Attributes, x: Node) -> Node:
        x, axis = t.flat_or_axis(x, a.axis)
        x = t.convert(x, t.dtype_word(a.dtype, t.dtype(x)))
        n = t.shape(x)[axis]
        if a.exclusive and n:
            low = [int(d == axis) for d in range(t.rank(x))]
            x = t.pad(t.slice_dim(x, axis, 0, n - 1), t.array(neutral, t.dtype(x)), low, [0] * t.rank(x))
        return t.cumulative(combine, x, axis, neutral)

    build.__doc__ = f"The cumulative {'sum' if combine == 'add' else 'product'} along an axis."
    operator(f"{name}(data; axis: int=None, dtype=None, exclusive=False)")(build)


_scan("cumsum", "add", 0)
_scan("cumprod", "multiply", 1)


@operator("einsum(data: filled; equation!)", kind=Kind.INJECTIVE, work="contraction")
def einsum(t: Relay, a: Attributes, xs: list[Node]) -> Node:
    """Products and sums by the letters of an equation."""
    left, _, right = str(a.equation).replace(" ", "").partition("->")
    terms = left.split(",")
    if "->" not in a.equation:
        right = "".join(sorted(c for c in set(left) - {","} if left.count(c) == 1))
    if len(terms) != len(xs):
        raise TypeFault(f"the equation {a.equation} has {len(terms)} terms, the operator {len(xs)} tensors")
    sizes: dict[str, int] = {}
    for term, x in zip(terms, xs, strict=True):
        if len(term) != t.rank(x):
            raise TypeFault(f"{term} names {len(term)} axes of a tensor with {t.rank(x)}")
        for c, n in zip(term, t.shape(x), strict=True):
            if sizes.setdefault(c, n) != n:
                raise TypeFault(f"axis {c} is {sizes[c]} and {n}")
    if any(c not in sizes for c in right):
        raise TypeFault(f"the result {right} names axes that no term of {left} has")
    steps_of(len(xs) + len(sizes))
    last = {c: i for i, term in enumerate(terms) for c in term} | dict.fromkeys(right, len(terms))
    whole, letters = _diagonal(t, xs[0], terms[0])
    for i in range(1, len(xs)):
        y, theirs = _diagonal(t, xs[i], terms[i])
        wanted = {c for c in (*letters, *theirs) if last[c] > i}
        whole, letters = _product(t, whole, letters, y, theirs, wanted)
    gone = [i for i, c in enumerate(letters) if c not in right]
    whole = t.sum(whole, gone)
    letters = [c for c in letters if c in right]
    return t.transpose(whole, [letters.index(c) for c in right])


def _diagonal(t: Relay, x: Node, term: str) -> tuple[Node, list[str]]:
    """A repeated letter takes the diagonal."""
    letters = list(term)
    for c in sorted(set(letters)):
        while letters.count(c) > 1:
            i = letters.index(c)
            j = letters.index(c, i + 1)
            shape = t.shape(x)
            same = t.compare("EQ", t.iota(shape, i, S32), t.iota(shape, j, S32))
            x = t.sum(t.select(same, x, t.like(x, 0)), [j])
            del letters[j]
    return x, letters


def _product(t: Relay, x: Node, mine: list[str], y: Node, theirs: list[str], wanted: set[str]) -> tuple[Node, list[str]]:
    """One contraction: common letters are summed over, or kept as batch dimensions where they are still needed."""
    common = [c for c in mine if c in theirs]
    batch, summed = [c for c in common if c in wanted], [c for c in common if c not in wanted]
    made = t.dot(x, y, ([mine.index(c) for c in summed], [theirs.index(c) for c in summed]),
                 ([mine.index(c) for c in batch], [theirs.index(c) for c in batch]))
    return made, batch + [c for c in mine if c not in common] + [c for c in theirs if c not in common]


