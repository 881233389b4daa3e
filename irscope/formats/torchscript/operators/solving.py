"""Linear systems: triangular ones, and those solved by Cholesky or LU factorization; determinants and inverses."""
from __future__ import annotations

from collections.abc import Mapping
from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.complex_numbers import conjugate, real_type
from irscope.formats.torchscript.operators.matrices import tril, triu
from irscope.formats.torchscript.torch import Torch
from irscope.graph import NO_ATTRS, Node, TupleType
from irscope.graph.dtypes import S32, S64
from irscope.ops.faults import TypeFault
from irscope.ops.loops import repeat
from irscope.ops.tensors import Tensors


def library(t: Torch, name: str, operands: list[Node], attrs: Mapping[str, bool] = NO_ATTRS) -> list[Node]:
    """The results of a library factorization (``lu``, ``qr``, ``svd``, ...)."""
    made = t.emit(name, operands, attrs, dialect="library")
    return [t.part(made, i) for i in range(len(made.type.elements))] if isinstance(made.type, TupleType) else [made]


def adjoint(t: Torch, x: Node) -> Node:
    return conjugate(t, t.swap(x, -2, -1))


def batched(t: Torch, a: Node, b: Node) -> tuple[Node, Node]:
    """Two stacks of matrices with the same leading sizes."""
    lead = t.broadcast_shape(t.shape(a)[:-2], t.shape(b)[:-2])
    return t.broadcast_to(a, (*lead, *t.shape(a)[-2:])), t.broadcast_to(b, (*lead, *t.shape(b)[-2:]))


def square(t: Torch, a: Node) -> int:
    """The size of square matrices. Raises TypeFault for others."""
    if t.rank(a) < 2 or t.shape(a)[-1] != t.shape(a)[-2]:
        raise TypeFault(f"expected square matrices, got {t.type(a)}")
    return t.shape(a)[-1]


def identity_like(t: Torch, a: Node) -> Node:
    """Ones on the diagonal of every matrix."""
    shape = t.shape(a)
    eye = t.convert(t.compare("EQ", t.iota(shape[-2:], 0, S64), t.iota(shape[-2:], 1, S64)), t.dtype(a))
    return t.broadcast_to(eye, shape)


# ---------------------------------------------------------------------- triangles


def triangular(t: Torch, a: Node, b: Node, lower: bool, *, unit: bool = False, transpose: str = "NO_TRANSPOSE") -> Node:
    """x with op(a) x = b."""
    return _triangular(t, a, b, {"left_side": True, "lower": lower, "unit_diagonal": unit, "transpose_a": transpose})


def _triangular(t: Torch, a: Node, b: Node, attrs: dict[str, object]) -> Node:
    a, b = batched(t, a, b)
    if 0 in t.shape(b):
        return b
    return t.emit("triangular-solve", (a, b), attrs)


@operator("linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False)")
def solve_triangular(t: Torch, a: Node, b: Node, upper: bool, left: bool, unit: bool) -> Node:
    return _triangular(t, a, b, {"left_side": left, "lower": not upper, "unit_diagonal": unit, "transpose_a": "NO_TRANSPOSE"})


@operator("triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False)")
def triangular_solve(t: Torch, b: Node, a: Node, upper: bool, back: bool, unit: bool) -> tuple[Node, Node]:
    a, b = batched(t, a, b)
    return triangular(t, a, b, not upper, unit=unit, transpose="TRANSPOSE" if back else "NO_TRANSPOSE"), a


# ---------------------------------------------------------------------- Cholesky


@operator("linalg_cholesky(Tensor self, *, bool upper=False)", "cholesky(Tensor self, bool upper=False)")
def cholesky(t: Torch, x: Node, upper: bool) -> Node:
    if 0 in t.shape(x):
        return x
    y = tril(t, t.emit("cholesky", (adjoint(t, x) if upper else x,), {"lower": True}), 0)
    return adjoint(t, y) if upper else y


@operator("linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False)")
def cholesky_ex(t: Torch, a: Node, upper: bool, check: bool) -> tuple[Node, Node]:
    """Cholesky with a status. For a matrix that is not positive definite, the whole factor is NaN and the status is 1."""
    factor = cholesky(t, a, upper)
    if 0 in t.shape(a):
        return factor, t.full(t.shape(a)[:-2], 0, S32)
    failed = t.any(t.compare("NE", factor, factor), [t.rank(a) - 2, t.rank(a) - 1])
    return factor, t.convert(failed, S32)


@operator("cholesky_solve(Tensor self, Tensor input2, bool upper=False)")
def cholesky_solve(t: Torch, b: Node, factor: Node, upper: bool) -> Node:
    first, second = ("ADJOINT", "NO_TRANSPOSE") if upper else ("NO_TRANSPOSE", "ADJOINT")
    return triangular(t, factor, triangular(t, factor, b, not upper, transpose=first), not upper, transpose=second)


@operator("cholesky_inverse(Tensor self, bool upper=False)")
def cholesky_inverse(t: Torch, factor: Node, upper: bool) -> Node:
    return cholesky_solve(t, identity_like(t, factor), factor, upper)


# ---------------------------------------------------------------------- LU


def lu(t: Torch, a: Node) -> tuple[Node, Node, Node]:
    """L and U in one matrix, LAPACK's pivots (from 1), and the first step without a pivot (0: none)."""
    lead, steps = t.shape_of(a, 2)[:-2], min(t.shape(a)[-2:])
    if 0 in t.shape(a):
        return a, t.full((*lead, steps), 0, S32), t.full(lead, 0, S32)
    factors, pivots, info = library(t, "lu", [a])
    return factors, pivots, info


def permutation(t: Torch, pivots: Node, rows: int) -> Node:
    """s64[..., rows]: which row of the matrix each row of the factors is, from the exchanges in their order."""
    *lead, steps = t.shape_of(pivots, 1)
    start = t.iota((*lead, rows), len(lead), S64)
    if prod(t.shape(start)) == 0 or steps == 0:
        return start
    d = len(lead)

    def exchange(inner: Tensors, i: Node, state: list[Node]) -> list[Node]:
        order, left = state
        zero, at = inner.array(0, S64), inner.iota((*lead, rows), d, S64)
        place = inner.plus(inner.dynamic_slice(left, [*[zero] * d, i], (*lead, 1)), -1)
        mine = inner.dynamic_slice(order, [*[zero] * d, i], (*lead, 1))
        there = inner.compare("EQ", at, place)
        theirs = inner.sum(inner.select(there, order, inner.like(order, 0)), [d], True)
        order = inner.select(inner.compare("EQ", at, i), theirs, inner.select(there, mine, order))
        return [order, left]
    return repeat(t, t.array(steps, S64), [start, t.convert(pivots, S64)], exchange)[0]


def _rows(t: Torch, x: Node, order: Node) -> Node:
    """Rows of matrices in another order."""
    if 0 in t.shape(x):
        return x
    return t.gather_elements(x, t.broadcast_to(t.unsqueeze(order, -1), t.shape(x)), t.rank(x) - 2)


def solved_by_lu(t: Torch, factors: Node, pivots: Node, b: Node, back: bool = False) -> Node:
    """x with a x = b for a given by its factors; ``back``: with a^H x = b."""
    factors, b = batched(t, factors, b)
    rows = t.shape(factors)[-1]
    order = t.broadcast_to(permutation(t, pivots, rows), (*t.shape(b)[:-2], rows))
    if not back:
        return triangular(t, factors, triangular(t, factors, _rows(t, b, order), True, unit=True), False)
    y = triangular(t, factors, triangular(t, factors, b, False, transpose="ADJOINT"), True, unit=True, transpose="ADJOINT")
    if 0 in t.shape(y):
        return y
    inverse = t.sort([order, t.iota(t.shape(order), t.rank(order) - 1, S64)], t.rank(order) - 1)[1]
    return _rows(t, y, inverse)


@operator("linalg_lu_factor(Tensor A, *, bool pivot=True)")
def lu_factor(t: Torch, a: Node, pivot: bool) -> tuple[Node, Node]:
    return lu_factor_ex(t, a, pivot, False)[:2]


@operator("linalg_lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False)",
          "_lu_with_info(Tensor self, bool pivot=True, bool check_errors=True)")
def lu_factor_ex(t: Torch, a: Node, pivot: bool, check: bool) -> tuple[Node, Node, Node]:
    if not pivot:
        raise TypeFault("LU without pivots is not supported; nor is it by torch on a CPU")
    return lu(t, a)


def _unpacked(t: Torch, factors: Node, pivots: Node) -> tuple[Node, Node, Node]:
    """P, L and U with a = P L U."""
    *lead, rows, columns = t.shape_of(factors, 2)
    steps = min(rows, columns)
    order = permutation(t, pivots, rows)
    shape = (*lead, rows, rows)
    p = t.convert(t.compare("EQ", t.broadcast_to(t.unsqueeze(order, -2), shape), t.iota(shape, len(lead), S64)), t.dtype(factors))
    low, high = t.slice_dim(factors, len(lead) + 1, 0, steps), t.slice_dim(factors, len(lead), 0, steps)
    return p, t.add(tril(t, low, -1), identity_like(t, low)), triu(t, high, 0)


@operator("linalg_lu(Tensor A, *, bool pivot=True)")
def linalg_lu(t: Torch, a: Node, pivot: bool) -> tuple[Node, Node, Node]:
    return _unpacked(t, *lu_factor(t, a, pivot))


@operator("lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True)")
def lu_unpack(t: Torch, factors: Node, pivots: Node, data: bool, order: bool) -> tuple[Node, Node, Node]:
    p, low, high = _unpacked(t, factors, pivots)
    nothing = t.full((0,), 0, t.dtype(factors))
    return p if order else nothing, low if data else nothing, high if data else nothing


@operator("linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False)")
def lu_solve(t: Torch, factors: Node, pivots: Node, b: Node, left: bool, back: bool) -> Node:
    if left:
        return solved_by_lu(t, factors, pivots, b, back)
    return adjoint(t, solved_by_lu(t, factors, pivots, adjoint(t, b), not back))


@operator("lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots)")
def lu_solve_old(t: Torch, b: Node, factors: Node, pivots: Node) -> Node:
    return solved_by_lu(t, factors, pivots, b)


# ---------------------------------------------------------------------- any matrix


@operator("linalg_solve(Tensor A, Tensor B, *, bool left=True)")
def solve(t: Torch, a: Node, b: Node, left: bool) -> Node:
    square(t, a)
    vector = t.rank(b) == 1 or (t.rank(b) == t.rank(a) - 1 and t.shape(b) == t.shape(a)[:-1])
    if vector and not left:
        raise TypeFault("x a = b is solved for matrices b, not for vectors")
    if not left:
        return t.swap(solve(t, t.swap(a, -2, -1), t.swap(b, -2, -1), True), -2, -1)
    factors, pivots, _ = lu(t, a)
    y = solved_by_lu(t, factors, pivots, t.unsqueeze(b, -1) if vector else b)
    return t.reshape(y, t.shape(y)[:-1]) if vector else y


@operator("linalg_inv(Tensor A)", "inverse(Tensor self)")
def inverse(t: Torch, a: Node) -> Node:
    return solve(t, a, identity_like(t, a), True)


@operator("linalg_inv_ex(Tensor A, *, bool check_errors=False)")
def inverse_ex(t: Torch, a: Node, check: bool) -> tuple[Node, Node]:
    return inverse(t, a), lu(t, a)[2]


@operator("linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)")
def solve_ex(t: Torch, a: Node, b: Node, left: bool, check: bool) -> tuple[Node, Node]:
    return solve(t, a, b, left), lu(t, a)[2]


def _pivots_of(t: Torch, a: Node) -> tuple[Node, Node]:
    """The diagonal of U, and the sign of the row exchanges (real, without the last dimension)."""
    n = square(t, a)
    factors, pivots, _ = lu(t, a)
    d = t.rank(a) - 2
    on = t.compare("EQ", t.iota((n, n), 0, S64), t.iota((n, n), 1, S64))
    diagonal = t.sum(t.select(on, factors, t.array(0, t.dtype(a))), [d + 1])
    exchanged = t.compare("NE", pivots, t.plus(t.iota(t.shape(pivots), d, S32), 1))
    odd = t.binary("remainder", t.sum(t.convert(exchanged, S32), [d]), t.full(t.shape(a)[:-2], 2, S32))
    return diagonal, t.plus(t.scale(t.convert(odd, real_type(t, a)), -2), 1)


@operator("linalg_det(Tensor A)", "det(Tensor self)")
def determinant(t: Torch, a: Node) -> Node:
    diagonal, sign = _pivots_of(t, a)
    return t.mul(t.product(diagonal, [t.rank(a) - 2]), t.convert(sign, t.dtype(a)))


@operator("linalg_slogdet(Tensor A)", "slogdet(Tensor self)")
def slogdet(t: Torch, a: Node) -> tuple[Node, Node]:
    """The sign of the determinant (a complex number of size 1) and the logarithm of its size."""
    diagonal, sign = _pivots_of(t, a)
    d = [t.rank(a) - 2]
    whole = t.mul(t.product(t.unary("sign", diagonal), d), t.convert(sign, t.dtype(a)))
    return whole, t.sum(t.unary("log", t.unary("abs", diagonal)), d)


@operator("logdet(Tensor self)")
def logdet(t: Torch, a: Node) -> Node:
    sign, size = slogdet(t, a)
    return t.add(t.unary("log", sign), t.convert(size, t.dtype(a)))


@operator("linalg_tensorinv(Tensor self, int ind=2)")
def tensorinv(t: Torch, x: Node, ind: int) -> Node:
    shape = t.shape(x)
    n = prod(shape[:ind])
    return t.reshape(inverse(t, t.reshape(x, (n, n))), (*shape[ind:], *shape[:ind]))


@operator("linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None)")
def tensorsolve(t: Torch, a: Node, b: Node, dims: list[int] | None) -> Node:
    moved = [t.dim(a, d) for d in dims or ()]
    a = t.transpose(a, [*(d for d in range(t.rank(a)) if d not in moved), *moved])
    rest = t.shape(a)[t.rank(b):]
    n = prod(rest)
    return t.reshape(solve(t, t.reshape(a, (n, n)), t.reshape(b, (n,)), True), rest)
