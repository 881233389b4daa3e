"""Functions of whole matrices: exponential, condition number."""
from __future__ import annotations

from math import factorial, log, log2

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.decompositions import svdvals
from irscope.formats.torchscript.operators.norms import matrix_norm
from irscope.formats.torchscript.operators.solving import identity_like, inverse, lu, square
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import C128, F64, S64
from irscope.ops.loops import repeat
from irscope.ops.tensors import Tensors

DEGREE, CHUNK = 18, 6
THETA = 1.09
"""Up to this 1-norm Taylor's polynomial of degree 18 is exact in float64 (Bader, Blanes and Casas, 2019, table 2)."""
MOST_SQUARINGS = 1100
"""More than the range of float64 needs: the result is 0 or infinite long before."""


def exponential(t: Torch, a: Node) -> Node:
    """Taylor's polynomial of a / 2^s, squared s times, with a separate s for every matrix."""
    n = t.rank(a)
    norm = t.max(t.sum(t.unary("abs", a), [n - 2]), [n - 2])
    steps = t.unary("ceil", t.plus(t.scale(t.unary("log", norm), 1 / log(2)), -log2(THETA)))
    steps = t.minimum(t.maximum(steps, t.like(steps, 0)), t.like(steps, MOST_SQUARINGS))
    steps = t.select(t.compare("EQ", steps, steps), steps, t.like(steps, 0))
    factor = t.binary("power", t.like(steps, 2), t.unary("negate", steps))
    small = t.mul(a, t.convert(t.reshape(factor, (*t.shape(factor), 1, 1)), t.dtype(a)))
    powers = [identity_like(t, a), small]
    while len(powers) <= CHUNK:
        powers.append(t.matmul(powers[-1], small))
    total: Node | None = None
    for low in range(DEGREE, -1, -CHUNK):
        part = t.scale(powers[0], 1 / factorial(low))
        for i in range(1, CHUNK if low < DEGREE else 1):
            part = t.add(part, t.scale(powers[i], 1 / factorial(low + i)))
        total = part if total is None else t.add(t.matmul(total, powers[CHUNK]), part)
    assert total is not None
    counts = t.convert(steps, S64)

    def squared(inner: Tensors, i: Node, state: list[Node]) -> list[Node]:
        x, left = state
        more = inner.compare("LT", i, left)
        return [inner.select(inner.reshape(more, (*inner.shape(left), 1, 1)), inner.matmul(x, x), x), left]
    most = t.max(counts, list(range(t.rank(counts))))
    return repeat(t, most, [total, counts], squared)[0]


@operator("linalg_matrix_exp(Tensor self)", "matrix_exp(Tensor self)")
def matrix_exp(t: Torch, a: Node) -> Node:
    square(t, a)
    a = t.floating(a)
    if 0 in t.shape(a):
        return a
    return t.convert(exponential(t, t.convert(a, C128 if t.dtype(a).is_complex else F64)), t.dtype(a))


@operator("linalg_cond(Tensor self, Scalar? p=None)", "linalg_cond.p_str(Tensor self, str p)")
def cond(t: Torch, a: Node, p: object) -> Node:
    """The norm of a matrix times that of its inverse; infinite where there is none."""
    if p is None or p in (2, -2):
        values = svdvals(t, a)
        d, k = t.rank(values) - 1, t.shape(values)[-1]
        if k == 0:
            return t.full(t.shape(values)[:-1], 0, t.dtype(values))
        first, last = (t.reshape(t.slice_dim(values, d, i, i + 1), t.shape(values)[:-1]) for i in (0, k - 1))
        return t.div(last, first) if p == -2 else t.div(first, last)
    square(t, a)
    info = lu(t, a)[2]
    broken = t.compare("NE", info, t.like(info, 0))
    value = t.mul(matrix_norm(t, a, p, [-2, -1], False, None), matrix_norm(t, inverse(t, a), p, [-2, -1], False, None))
    return t.select(broken, t.like(value, float("inf")), value)
