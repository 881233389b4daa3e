"""Linear algebra that HLO has opcodes for: cholesky and triangular-solve, on stacks of matrices, real and complex."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from irscope.graph import Dim, Node, Op, TensorType, Type
from irscope.graph.dtypes import PRED
from irscope.graph.node import ArrayView, Emitter, Index, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Cholesky, TriangularSolve
from irscope.ops.faults import TypeFault
from irscope.ops.matrices import Matrix, conjugate, load_square, real, sub_product
from irscope.ops.nests import independent, loops, widened
from irscope.ops.numerics import convert
from irscope.ops.registry import declare
from irscope.ops.shapes import same_sizes, size


def _square(node: Node, number: int) -> TensorType:
    """The type of an operand that is a stack of square matrices."""
    t = infer.array(node, number)
    infer.kind_of(node, t, ("float", "complex"))
    if t.rank < 2:
        raise TypeFault(f"{node.op.name} needs matrices (rank 2 or more), but operand {number} is {infer.plain(t)}")
    rows, columns = t.shape[-2:]
    if size(rows) != size(columns):
        raise TypeFault(f"{node.op.name} needs square matrices, but operand {number} is {infer.plain(t)}")
    return t


# ---------------------------------------------------------------- cholesky

def _cholesky_type(node: Node) -> Type:
    infer.arity(node, 1)
    return infer.plain(_square(node, 0))


def _cholesky_reference(run: Run, node: Node, a: Array) -> Array:
    if not a.size:
        return a  # also where millions of matrices have no element
    wide, lower = widened(infer.array(node, 0).dtype), Cholesky.of(node).lower
    x = convert(a, wide)
    if not lower:
        x = np.swapaxes(x, -1, -2).conj()
    x = np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2).conj()
    flat = x.reshape(prod(x.shape[:-2]), *x.shape[-2:])
    factors = np.empty_like(flat)
    for i, matrix in enumerate(flat):
        try:
            factors[i] = np.linalg.cholesky(matrix)
            if np.isnan(factors[i]).any():
                factors[i] = np.nan
        except np.linalg.LinAlgError:
            factors[i] = np.nan
    found = factors.reshape(x.shape)
    return convert(found if lower else np.swapaxes(found, -1, -2).conj(), infer.array(node, 0).dtype)


def _cholesky_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    out, lower = outs[0], Cholesky.of(node).lower
    n, dtype = out.shape[-1], widened(out.dtype)
    work = k.scratch(dtype, (n, n))
    nothing = k.const(0, dtype)
    with independent(k, out.shape[:-2]) as batch:
        load = load_square(k, ins[0], batch, dtype, lower)
        failed = k.reg(PRED, k.const(False, PRED))
        with loops(k, [n]) as [row]:
            with k.loop(0, row) as column:
                value = sub_product(k, dtype, load(row, column), column, _row(work, row), _row(work, column, k))
                work.store([row, column], k.binary("div", value, work.load([column, column])))
            pivot = real(k, sub_product(k, dtype, load(row, row), row, _row(work, row), _row(work, row, k)))
            positive = k.compare("GT", pivot, k.const(0, pivot.dtype))
            failed.set(k.binary("or", failed.get(), k.unary("not", positive)))
            work.store([row, row], k.convert(k.unary("sqrt", pivot), dtype))
        nan = k.const(float("nan"), dtype)
        with loops(k, [n, n]) as [row, column]:
            i, j = (row, column) if lower else (column, row)
            element = k.select(k.compare("LT", i, j), nothing, work.load([i, k.binary("min", i, j)]))
            element = k.select(failed.get(), nan, element if lower else conjugate(k, element))
            out.store([*batch, row, column], k.convert(element, out.dtype))


def _row(work: ArrayView, row: Value, conjugating: Emitter | None = None) -> Callable[[Value], Value]:
    """The elements of a row, conjugated if an emitter is given."""
    return lambda j: conjugate(conjugating, work.load([row, j])) if conjugating is not None else work.load([row, j])


def _cholesky_cost(node: Node) -> float:
    t = infer.array(node, 0)
    return 2.0 * t.elements * (size(t.shape[-1]) or 1) / 3


cholesky = declare(Op(
    "cholesky", work="contraction", infer=_cholesky_type, reference=_cholesky_reference, nest=_cholesky_nest, cost=_cholesky_cost,
    doc="The triangular factor L with ``L L^H = a`` (or the upper one), zero elsewhere; NaN where a matrix is not positive definite."))


# ---------------------------------------------------------------- triangular-solve

def _triangular_solve_type(node: Node) -> Type:
    infer.arity(node, 2)
    a, b = _square(node, 0), infer.array(node, 1)
    if a.dtype is not b.dtype:
        raise TypeFault(f"operands of triangular-solve disagree on dtype: {infer.plain(a)} and {infer.plain(b)}", "convert one side")
    if a.rank != b.rank:
        raise TypeFault(f"operands of triangular-solve must have equal rank, but are {infer.plain(a)} and {infer.plain(b)}")
    left = TriangularSolve.of(node).left_side
    shared: Dim = b.shape[-2 if left else -1]
    side = "rows" if left else "columns"
    infer.equal_dims(node, a.shape[-1], shared, f"the size of the matrix {infer.plain(a)} and the {side} of {infer.plain(b)}")
    if not same_sizes(a.shape[:-2], b.shape[:-2]):
        raise TypeFault(f"the leading dimensions of {infer.plain(a)} and {infer.plain(b)} must be equal for triangular-solve")
    transpose = TriangularSolve.of(node).transpose_a
    if transpose not in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"):
        raise TypeFault(f"triangular-solve has an unknown transpose_a={transpose}", "NO_TRANSPOSE, TRANSPOSE or ADJOINT")
    return infer.plain(b)


def _options(node: Node) -> tuple[bool, bool, bool, str]:
    attrs = TriangularSolve.of(node)
    return attrs.left_side, attrs.lower, attrs.unit_diagonal, attrs.transpose_a


def _triangular_solve_reference(run: Run, node: Node, a: Array, b: Array) -> Array:
    if not b.size:
        return b  # also where no matrix has millions of rows
    left, lower, unit, transpose = _options(node)
    wide = widened(infer.array(node, 0).dtype)
    x, rhs = convert(a, wide), convert(b, wide)
    if transpose == "ADJOINT":
        x = x.conj()
    # A solve from the right is one from the left of everything transposed.
    if (transpose != "NO_TRANSPOSE") == left:
        x, lower = np.swapaxes(x, -1, -2), not lower
    if not left:
        rhs = np.swapaxes(rhs, -1, -2)
    n = x.shape[-1]
    solved = np.zeros_like(rhs)
    with np.errstate(all="ignore"):
        for i in range(n) if lower else reversed(range(n)):
            done = slice(0, i) if lower else slice(i + 1, n)
            rest = rhs[..., i, :] - np.matmul(x[..., i:i + 1, done], solved[..., done, :])[..., 0, :]
            solved[..., i, :] = rest if unit else rest / x[..., i, i][..., None]
    return convert(solved if left else np.swapaxes(solved, -1, -2), infer.array(node, 1).dtype)


def _triangular_solve_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    left, lower, unit, transpose = _options(node)
    a, b, out = ins[0], ins[1], outs[0]
    dtype, n = widened(out.dtype), a.shape[-1]
    swapped = (transpose != "NO_TRANSPOSE") == left
    forward = lower != swapped
    columns = out.shape[-1 if left else -2]
    solved = k.scratch(dtype, (n,))
    with independent(k, [*out.shape[:-2], columns]) as [*batch, column]:
        def entry(i: Index, j: Index, batch: Sequence[Value] = batch) -> Value:
            value = k.convert(a.load([*batch, j, i] if swapped else [*batch, i, j]), dtype)
            return conjugate(k, value) if transpose == "ADJOINT" else value

        def place(i: Value, batch: Sequence[Value] = batch, column: Value = column) -> list[Value]:
            return [*batch, i, column] if left else [*batch, column, i]
        with loops(k, [n]) as [step]:
            row = step if forward else (n - 1) - step
            value = sub_product(k, dtype, k.convert(b.load(place(row)), dtype), step,
                                *_terms(entry, solved, row, forward, n))
            if not unit:
                value = k.binary("div", value, entry(row, row))
            solved.store([row], value)
            out.store(place(row), k.convert(value, out.dtype))


def _terms(entry: Matrix, solved: ArrayView, row: Value, forward: bool,
           n: int) -> tuple[Callable[[Value], Value], Callable[[Value], Value]]:
    """The row of the matrix and the solved elements, counted from the start of the substitution."""
    def at(j: Value) -> Value:
        return j if forward else (n - 1) - j
    return lambda j: entry(row, at(j)), lambda j: solved.load([at(j)])


def _triangular_solve_cost(node: Node) -> float:
    a, b = infer.array(node, 0), infer.array(node, 1)
    return float(b.elements * (size(a.shape[-1]) or 1))


triangular_solve = declare(Op(
    "triangular-solve", work="contraction", infer=_triangular_solve_type, reference=_triangular_solve_reference,
    nest=_triangular_solve_nest, cost=_triangular_solve_cost,
    doc="x with ``op(a) x = b``, or ``x op(a) = b``, for triangular a. Only the named triangle is read; no diagonal when it is unit."))
