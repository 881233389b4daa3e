"""Triangles, diagonals and the basics of linear algebra."""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.complex_numbers import conjugate, real_type
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node, TensorType
from irscope.graph.dtypes import S64


def _band(t: Torch, x: Node, diagonal: int, upper: bool) -> Node:
    shape = t.shape(x)[-2:]
    row, column = t.plus(t.iota(shape, 0, S64), diagonal), t.iota(shape, 1, S64)
    return t.select(t.compare("LE" if upper else "GE", row, column), x, t.array(0, t.dtype(x)))


@operator("tril(Tensor self, int diagonal=0)")
def tril(t: Torch, x: Node, diagonal: int) -> Node:
    return _band(t, x, diagonal, False)


@operator("triu(Tensor self, int diagonal=0)")
def triu(t: Torch, x: Node, diagonal: int) -> Node:
    return _band(t, x, diagonal, True)


@operator("diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1)",
          "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1)")
def diagonal(t: Torch, x: Node, offset: int, dim1: int, dim2: int) -> Node:
    a, b = t.dim(x, dim1), t.dim(x, dim2)
    x = t.transpose(x, [*(d for d in range(t.rank(x)) if d not in (a, b)), a, b])
    *lead, rows, columns = t.shape(x)
    first, second = max(0, -offset), max(0, offset)
    n = max(0, min(rows - first, columns - second))
    flat = t.reshape(x, (*lead, rows * columns))
    at = [(first + i) * columns + second + i for i in range(n)]
    return t.take(flat, t.array(at, S64), len(lead))


@operator("diag(Tensor self, int diagonal=0)")
def diag(t: Torch, x: Node, offset: int) -> Node:
    return diag_embed(t, x, offset, -2, -1) if t.rank(x) == 1 else diagonal(t, x, offset, 0, 1)


@operator("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)")
def diag_embed(t: Torch, x: Node, offset: int, dim1: int, dim2: int) -> Node:
    *lead, n = t.shape(x)
    size = n + abs(offset)
    rank = len(lead) + 2
    low = [0] * len(lead) + [max(0, offset)]
    padded = t.pad(x, t.array(0, t.dtype(x)), low, [0] * len(lead) + [max(0, -offset)])
    row, column = t.iota((size, size), 0, S64), t.iota((size, size), 1, S64)
    on = t.compare("EQ", t.plus(row, offset), column)
    y = t.select(on, t.unsqueeze(padded, -2), t.array(0, t.dtype(x)))
    a, b = t.dim(rank, dim1), t.dim(rank, dim2)
    order = list(range(rank - 2))
    for place, source in sorted(((a, rank - 2), (b, rank - 1))):
        order.insert(place, source)
    return t.transpose(y, order)


@operator("linalg_cholesky(Tensor self, *, bool upper=False)", "cholesky(Tensor self, bool upper=False)")
def cholesky(t: Torch, x: Node, upper: bool) -> Node:
    if 0 in t.shape(x):
        return x
    y = tril(t, t.emit("cholesky", (x,), {"lower": True}), 0)
    return conjugate(t, t.swap(y, -2, -1)) if upper else y


@operator("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False)")
def solve_triangular(t: Torch, a: Node, b: Node, upper: bool, left: bool, unit: bool) -> Node:
    attrs = {"left_side": left, "lower": not upper, "unit_diagonal": unit, "transpose_a": "NO_TRANSPOSE"}
    return t.emit("triangular-solve", (a, b), attrs)


@operator("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False)")
def triangular_solve(t: Torch, b: Node, a: Node, upper: bool, back: bool, unit: bool) -> tuple[Node, Node]:
    attrs = {"left_side": True, "lower": not upper, "unit_diagonal": unit, "transpose_a": "TRANSPOSE" if back else "NO_TRANSPOSE"}
    return t.emit("triangular-solve", (a, b), attrs), a


@operator("cholesky_solve(Tensor self, Tensor input2, bool upper=False)")
def cholesky_solve(t: Torch, b: Node, factor: Node, upper: bool) -> Node:
    first = {"left_side": True, "lower": not upper, "unit_diagonal": False, "transpose_a": "ADJOINT" if upper else "NO_TRANSPOSE"}
    second = {**first, "transpose_a": "NO_TRANSPOSE" if upper else "ADJOINT"}
    return t.emit("triangular-solve", (factor, t.emit("triangular-solve", (factor, b), first)), second)


def gauss_jordan(t: Torch, a: Node, b: Node) -> Node:
    """The solution of a x = b by elimination with pivots, unrolled: for the small matrices that models hold."""
    n = t.shape(a)[-1]
    if n == 0 or 0 in t.shape(b) or 0 in t.shape(a):
        return b
    if n > 64:
        raise ValueError(f"solving with a {n} x {n} matrix is not supported (up to 64)")
    wide = t.concat([a, b], t.rank(a) - 1)
    lead = t.shape(wide)[:-2]
    rows = t.iota((n,), 0, S64)
    d = len(lead)
    for k in range(n):
        column = t.reshape(t.slice_dim(wide, d + 1, k, k + 1), (*lead, n))
        size = t.select(t.compare("GE", rows, t.like(rows, k)), t.unary("abs", column), t.array(-1, real_type(t, a)))
        _, pivot = t.arg_extreme(size, d, True, S64)
        pick = t.convert(t.compare("EQ", t.unsqueeze(pivot, -1), rows), t.dtype(a))
        pivot_row = t.sum(t.mul(t.unsqueeze(pick, -1), wide), [d], True)
        old_row = t.slice_dim(wide, d, k, k + 1)
        here = t.reshape(t.compare("EQ", rows, t.like(rows, k)), (n, 1))
        there = t.compare("NE", t.unsqueeze(pick, -1), t.array(0, t.dtype(a)))
        wide = t.select(there, old_row, wide)
        scaled = t.div(pivot_row, t.slice_dim(pivot_row, d + 1, k, k + 1))
        factors = t.slice_dim(wide, d + 1, k, k + 1)
        wide = t.select(here, scaled, t.sub(wide, t.mul(factors, scaled)))
    return t.slice_dim(wide, d + 1, n, t.shape(wide)[-1])


@operator("linalg_inv(Tensor A)", "inverse(Tensor self)")
def inverse(t: Torch, a: Node) -> Node:
    return gauss_jordan(t, a, identity_like(t, a))


def identity_like(t: Torch, a: Node) -> Node:
    """Ones on the diagonal of every matrix."""
    n = t.shape(a)[-1]
    eye = t.convert(t.compare("EQ", t.iota((n, n), 0, S64), t.iota((n, n), 1, S64)), t.dtype(a))
    return t.broadcast_to(eye, t.shape(a))


@operator("linalg_solve(Tensor A, Tensor B, *, bool left=True)")
def solve(t: Torch, a: Node, b: Node, left: bool) -> Node:
    if not left:
        return t.swap(solve(t, t.swap(a, -2, -1), t.swap(b, -2, -1), True), -2, -1)
    vector = t.rank(b) == 1 or t.shape(b) == t.shape(a)[:-1]
    y = gauss_jordan(t, a, t.unsqueeze(b, -1) if vector else b)
    return t.reshape(y, t.shape(b)) if vector else y


@operator("linalg_det(Tensor A)", "det(Tensor self)")
def determinant(t: Torch, a: Node) -> Node:
    """The product of the pivots of an elimination, with the sign of the row exchanges."""
    n = t.shape(a)[-1]
    if n > 64:
        raise ValueError(f"the determinant of a {n} x {n} matrix is not supported (up to 64)")
    lead, d = t.shape(a)[:-2], t.rank(a) - 2
    rows = t.iota((n,), 0, S64)
    total = t.full(lead, 1, t.dtype(a))
    for k in range(n if 0 not in lead else 0):
        column = t.reshape(t.slice_dim(a, d + 1, k, k + 1), (*lead, n))
        size = t.select(t.compare("GE", rows, t.like(rows, k)), t.unary("abs", column), t.array(-1, real_type(t, a)))
        _, pivot = t.arg_extreme(size, d, True, S64)
        pick = t.convert(t.compare("EQ", t.unsqueeze(pivot, -1), rows), t.dtype(a))
        pivot_row = t.sum(t.mul(t.unsqueeze(pick, -1), a), [d], True)
        old_row = t.slice_dim(a, d, k, k + 1)
        a = t.select(t.compare("NE", t.unsqueeze(pick, -1), t.array(0, t.dtype(a))), old_row, a)
        value = t.reshape(t.slice_dim(pivot_row, d + 1, k, k + 1), lead)
        sign = t.select(t.compare("EQ", pivot, t.like(pivot, k)), t.like(value, 1), t.like(value, -1))
        total = t.mul(total, t.mul(value, sign))
        safe = t.select(t.compare("EQ", value, t.like(value, 0)), t.like(value, 1), value)
        scaled = t.div(pivot_row, t.reshape(safe, (*lead, 1, 1)))
        below = t.reshape(t.compare("GT", rows, t.like(rows, k)), (n, 1))
        here = t.reshape(t.compare("EQ", rows, t.like(rows, k)), (n, 1))
        a = t.select(here, pivot_row, t.select(below, t.sub(a, t.mul(t.slice_dim(a, d + 1, k, k + 1), scaled)), a))
    return total


@operator("logdet(Tensor self)")
def logdet(t: Torch, a: Node) -> Node:
    return t.unary("log", determinant(t, a))


@operator("linalg_slogdet(Tensor A)", "slogdet(Tensor self)")
def slogdet(t: Torch, a: Node) -> tuple[Node, Node]:
    """The sign of the determinant and the logarithm of its size."""
    d = determinant(t, a)
    return t.unary("sign", d), t.unary("log", t.unary("abs", d))


@operator("linalg_inv_ex(Tensor A, *, bool check_errors=False)")
def inverse_ex(t: Torch, a: Node, check: bool) -> tuple[Node, Node]:
    return inverse(t, a), _no_error(t, a)


@operator("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)")
def solve_ex(t: Torch, a: Node, b: Node, left: bool, check: bool) -> tuple[Node, Node]:
    return solve(t, a, b, left), _no_error(t, a)


@operator("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False)")
def cholesky_ex(t: Torch, a: Node, upper: bool, check: bool) -> tuple[Node, Node]:
    return cholesky(t, a, upper), _no_error(t, a)


def _no_error(t: Torch, a: Node) -> Node:
    """What LAPACK says when all went well: 0 for every matrix."""
    from irscope.graph.dtypes import S32
    return t.full(t.shape(a)[:-2], 0, S32)


@operator("cholesky_inverse(Tensor self, bool upper=False)")
def cholesky_inverse(t: Torch, factor: Node, upper: bool) -> Node:
    if 0 in t.shape(factor):
        return factor
    return cholesky_solve(t, identity_like(t, factor), factor, upper)


@operator("kron(Tensor self, Tensor other)")
def kron(t: Torch, x: Node, y: Node) -> Node:
    x, y = t.promote(x, y)
    n = max(t.rank(x), t.rank(y))
    xs, ys = ((1,) * (n - t.rank(v)) + t.shape(v) for v in (x, y))
    a = t.reshape(x, tuple(s for v in xs for s in (v, 1)))
    b = t.reshape(y, tuple(s for v in ys for s in (1, v)))
    return t.reshape(t.mul(a, b), tuple(i * j for i, j in zip(xs, ys, strict=True)))


@operator("block_diag(Tensor[] tensors)")
def block_diag(t: Torch, tensors: list[Node]) -> Node:
    xs = [t.reshape(x, (1, *t.shape(x)) if t.rank(x) == 1 else (1, 1)) if t.rank(x) < 2 else x for x in t.promote(*tensors)]
    width = sum(t.shape(x)[1] for x in xs)
    rows, at = [], 0
    for x in xs:
        n = t.shape(x)[1]
        rows.append(t.pad(x, t.array(0, t.dtype(x)), [0, at], [0, width - at - n]))
        at += n
    return t.concat(rows, 0)


@operator("vander(Tensor x, int? N=None, bool increasing=False)", "linalg_vander(Tensor x, *, int? N=None)")
def vander(t: Torch, x: Node, n: int | None, increasing: bool = True) -> Node:
    x = x if t.rank(x) else t.reshape(x, (1,))
    count = t.shape(x)[-1] if n is None else n
    powers = list(range(count)) if increasing else list(reversed(range(count)))
    type_: TensorType = t.type(x)
    base = t.unsqueeze(x, -1)
    if not type_.dtype.is_float and not type_.dtype.is_complex:
        return t.binary("power", t.convert(base, S64), t.array(powers, S64))
    return t.binary("power", base, t.array(powers, type_.dtype))
