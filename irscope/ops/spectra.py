"""Eigenvalues and singular values by Jacobi rotations: slow for large matrices, but short and highly accurate.

Everything is computed in f64 (c128). Sweeps rotate all pairs of columns until no rotation is needed.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.graph import DType, Node, TupleType, Type
from irscope.graph.dtypes import C128, F64, PRED, S32, S64
from irscope.graph.node import ArrayView, Emitter, RegisterHandle, Run, Value
from irscope.lazy import Array, np
from irscope.ops.attributes import Decomposition
from irscope.ops.matrices import StackedMatrix, bound, conjugate, library, part_of, real, square_size, stack_of, sum_of, times
from irscope.ops.nests import below, independent, loops

EPSILON = 2.0 ** -52
SWEEPS = 40
"""Jacobi converges quadratically; ten sweeps are many. The limit stops endless sweeps over NaN."""
AS_LARGE = 1 - 2.0 ** -20
"""Squares of components that differ by less than this factor count as equal, so that rounding does not decide which is the largest."""


def _wide(dtype: DType) -> DType:
    return C128 if dtype.is_complex else F64


def _rotation(k: Emitter, difference: Value, product: Value) -> tuple[Value, Value, Value]:
    """Cosine, sine and phase that eliminate ``product``, where ``difference`` is that of the diagonal elements (second minus first)."""
    dtype = product.dtype
    size = k.unary("sqrt", square_size(k, product))
    one = k.const(1.0, F64)
    tau = k.binary("div", difference, k.binary("mul", k.const(2.0, F64), size))
    root = k.unary("sqrt", k.fma(tau, tau, one))
    magnitude = k.binary("div", one, k.binary("add", k.unary("abs", tau), root))
    tangent = k.select(k.compare("LT", tau, k.const(0.0, F64)), k.unary("neg", magnitude), magnitude)
    cosine = k.binary("div", one, k.unary("sqrt", k.fma(tangent, tangent, one)))
    phase = times(k, product, k.binary("div", one, size)) if dtype.is_complex else k.binary("div", product, size)
    return cosine, k.binary("mul", tangent, cosine), phase


def _rotate(k: Emitter, turn: tuple[Value, Value, Value], columns: StackedMatrix, p: Value, q: Value) -> None:
    """Rotate two columns."""
    cosine, sine, phase = turn
    forth, back = times(k, phase, sine), times(k, conjugate(k, phase), sine)
    with loops(k, [columns.view.shape[0]]) as [i]:
        x, y = columns.load(i, p), columns.load(i, q)
        columns.store(i, p, k.binary("sub", times(k, x, cosine), k.binary("mul", back, y)))
        columns.store(i, q, k.binary("add", k.binary("mul", forth, x), times(k, y, cosine)))


def _sweeps(k: Emitter, n: int, visit: Callable[[Value, Value, RegisterHandle], None]) -> None:
    """Call ``visit(p, q, turned)`` for all pairs, repeatedly, until none sets ``turned``."""
    turned, sweep = k.reg(PRED, k.const(True, PRED)), k.reg(S64, k.index(0))
    with k.while_(lambda: k.binary("and", turned.get(), below(k, sweep.get(), SWEEPS))):
        turned.set(k.const(False, PRED))
        sweep.set(sweep.get() + 1)
        with loops(k, [max(n - 1, 0)]) as [p], k.loop(p + 1, n) as q:
            visit(p, q, turned)


def _ranks(k: Emitter, n: int, value: Callable[[Value], Value], place_of: ArrayView, ascending: bool) -> None:
    """Set ``place_of[r]`` to the position of the r-th element in order; stable for equal ones."""
    with loops(k, [n]) as [j]:
        rank = k.reg(S64, k.index(0))
        mine = value(j)
        with loops(k, [n]) as [other]:
            theirs = value(other)
            first = k.compare("LT" if ascending else "GT", theirs, mine)
            same = k.binary("and", k.unary("not", k.compare("GT" if ascending else "LT", theirs, mine)), below(k, other, j))
            rank.set(rank.get() + k.convert(k.binary("or", first, same), S64))
        place_of.store([k.binary("min", rank.get(), k.index(n - 1))], j)


def _phase(k: Emitter, columns: StackedMatrix, j: Value) -> Value:
    """The factor of absolute value 1 that makes the largest component of a column positive; of several equally large ones, the first.

    Vectors of a decomposition are unique only up to such a factor. This choice makes all engines agree.
    """
    rows, dtype = columns.view.shape[0], columns.view.dtype
    top = k.reg(F64, k.const(0.0, F64))
    with loops(k, [rows]) as [i]:
        size = square_size(k, columns.load(i, j))
        top.set(k.select(k.compare("GT", size, top.get()), size, top.get()))
    least = k.binary("mul", top.get(), k.const(AS_LARGE, F64))
    largest, open_ = k.reg(dtype, k.const(1, dtype)), k.reg(PRED, k.compare("GT", least, k.const(0.0, F64)))
    with loops(k, [rows]) as [i]:
        x = columns.load(i, j)
        found = k.binary("and", open_.get(), k.compare("GE", square_size(k, x), least))
        largest.set(k.select(found, x, largest.get()))
        open_.set(k.binary("and", open_.get(), k.unary("not", found)))
    x = largest.get()
    if dtype.is_complex:
        return times(k, conjugate(k, x), k.binary("div", k.const(1.0, F64), k.unary("sqrt", square_size(k, x))))
    return k.select(k.compare("LT", x, k.const(0.0, F64)), k.const(-1.0, F64), k.const(1.0, F64))


def _phases(vectors: Array) -> Array:
    """The same for the columns of stacked arrays: ``(..., 1, columns)``."""
    if not vectors.shape[-2]:
        return np.ones((*vectors.shape[:-2], 1, vectors.shape[-1]), vectors.dtype)
    sizes = np.abs(vectors) ** 2
    first = np.argmax(sizes >= sizes.max(-2, keepdims=True) * AS_LARGE, axis=-2, keepdims=True)
    largest = np.take_along_axis(vectors, first, -2)
    length = np.abs(largest)
    return np.where(length > 0, np.conj(largest) / np.where(length > 0, length, 1), 1)


# ---------------------------------------------------------------- eigh

def _eigh_reference(run: Run, node: Node, a: Array) -> object:
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    values, vectors = np.linalg.eigh(wide, "L" if Decomposition.of(node).lower else "U")
    return (vectors * _phases(vectors)).astype(a.dtype), values.astype(a.real.dtype), np.zeros(a.shape[:-2], np.int32)


def _eigh_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    n, lower, dtype = ins[0].shape[-1], Decomposition.of(node).lower, _wide(ins[0].dtype)
    work, vectors = (StackedMatrix(k.scratch(dtype, (n, n)), ()) for _ in "av")
    order = k.scratch(S64, (n,))
    one, nothing = k.const(1, dtype), k.const(0, dtype)
    with independent(k, ins[0].shape[:-2]) as batch:
        a = bound(ins[0], batch)
        total = k.reg(F64, k.const(0.0, F64))
        with loops(k, [n, n]) as [i, j]:
            near = below(k, j, i) if lower else below(k, i, j)
            x = k.convert(a.load(k.select(near, i, j), k.select(near, j, i)), dtype)
            # The given triangle as it is, the other one its conjugate, and a real diagonal.
            x = k.select(near, x, conjugate(k, x))
            x = k.select(k.compare("EQ", i, j), k.convert(real(k, x), dtype), x)
            work.store(i, j, x)
            vectors.store(i, j, k.select(k.compare("EQ", i, j), one, nothing))
            total.set(k.binary("add", total.get(), square_size(k, x)))
        tiny = k.binary("mul", total.get(), k.const((EPSILON / 8) ** 2 / max(n * n, 1), F64))

        def visit(p: Value, q: Value, turned: RegisterHandle, tiny: Value = tiny) -> None:
            product = work.load(p, q)
            with k.when(k.compare("GT", square_size(k, product), tiny)):
                turned.set(k.const(True, PRED))
                turn = _rotation(k, k.binary("sub", real(k, work.load(q, q)), real(k, work.load(p, p))), product)
                conjugated = (turn[0], turn[1], conjugate(k, turn[2]))
                _rotate(k, turn, work, p, q)
                _rotate(k, conjugated, work.transpose(), p, q)
                _rotate(k, turn, vectors, p, q)
        _sweeps(k, n, visit)
        _ranks(k, n, lambda j: real(k, work.load(j, j)), order, ascending=True)
        with loops(k, [n]) as [j]:
            place = order.load([j])
            outs[1].store([*batch, j], k.convert(real(k, work.load(place, place)), outs[1].dtype))
            phase = _phase(k, vectors, place)
            with loops(k, [n]) as [i]:
                outs[0].store([*batch, i, j], k.convert(times(k, vectors.load(i, place), phase), outs[0].dtype))
        outs[2].store(batch, k.const(0, S32))


def _eigh_type(node: Node) -> Type:
    a = stack_of(node, square=True)
    return TupleType((a.whole, a.each(part_of(a.whole.dtype), a.rows), a.each(S32)))


eigh = library("eigh", 9.0, _eigh_type, _eigh_reference, _eigh_nest,
               "Eigenvectors (in columns) and ascending eigenvalues of a symmetric or Hermitian matrix, of which one triangle is read.")


# ---------------------------------------------------------------- svd

def _svd_reference(run: Run, node: Node, a: Array) -> object:
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    u, s, vt = np.linalg.svd(wide, full_matrices=Decomposition.of(node).full)
    v = np.conj(np.swapaxes(vt, -2, -1))
    n = s.shape[-1]
    long, short = (u, v) if a.shape[-2] >= a.shape[-1] else (v, u)
    phases = np.ones((*s.shape[:-1], 1, long.shape[-1]), wide.dtype)
    phases[..., :n] = _phases(short[..., :n])
    short = short * phases[..., :n]
    long = long * phases
    known = np.count_nonzero(~(s <= s.max(-1, keepdims=True, initial=0) * (EPSILON * long.shape[-2])), axis=-1)
    for at in np.ndindex(*known.shape):
        _complete_basis(long[at], known[at])
    u, v = (long, short) if a.shape[-2] >= a.shape[-1] else (short, long)
    return u.astype(a.dtype), s.astype(a.real.dtype), np.conj(np.swapaxes(v, -2, -1)).astype(a.dtype), np.zeros(a.shape[:-2], np.int32)


def _complete_basis(basis: Array, known: int) -> None:
    """:func:`_complete` for the columns of a matrix from ``known`` on, in place: vectors without a singular value are not unique."""
    for j in range(known, basis.shape[1]):
        before = basis[:, :j]
        rest = 1.0 - np.square(np.abs(before)).sum(1)
        column = np.zeros(len(basis), basis.dtype)
        column[np.argmax(rest >= rest.max() * AS_LARGE)] = 1
        for _ in range(2):
            column -= before @ (np.conj(before).T @ column)
        column /= np.linalg.norm(column)
        basis[:, j] = column * _phases(column[:, None])[0, 0]


def _svd_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    rows, columns = ins[0].shape[-2:]
    wide_matrix, dtype = rows < columns, _wide(ins[0].dtype)
    m, n = max(rows, columns), min(rows, columns)
    # A wide matrix is decomposed as its adjoint. All of ``left`` is needed where the result is to be square.
    width = m if Decomposition.of(node).full else n
    left, right = StackedMatrix(k.scratch(dtype, (m, width)), ()), StackedMatrix(k.scratch(dtype, (n, n)), ())
    sizes, order = k.scratch(F64, (n,)), k.scratch(S64, (n,))
    one, nothing = k.const(1, dtype), k.const(0, dtype)
    with independent(k, ins[0].shape[:-2]) as batch:
        a = bound(ins[0], batch)
        with loops(k, [m, n]) as [i, j]:
            left.store(i, j, conjugate(k, k.convert(a.load(j, i), dtype)) if wide_matrix else k.convert(a.load(i, j), dtype))
        with loops(k, [n, n]) as [i, j]:
            right.store(i, j, k.select(k.compare("EQ", i, j), one, nothing))

        def square(j: Value) -> Value:
            return sum_of(k, F64, 0, m, lambda i: square_size(k, left.load(i, j)))

        def visit(p: Value, q: Value, turned: RegisterHandle) -> None:
            product = sum_of(k, dtype, 0, m, lambda i: k.binary("mul", conjugate(k, left.load(i, p)), left.load(i, q)))
            first, second = square(p), square(q)
            limit = k.binary("mul", k.binary("mul", first, second), k.const((4 * EPSILON) ** 2, F64))
            with k.when(k.compare("GT", square_size(k, product), limit)):
                turned.set(k.const(True, PRED))
                turn = _rotation(k, k.binary("sub", second, first), product)
                _rotate(k, turn, left, p, q)
                _rotate(k, turn, right, p, q)
        _sweeps(k, n, visit)
        with loops(k, [n]) as [j]:
            sizes.store([j], k.unary("sqrt", square(j)))
        _ranks(k, n, lambda j: sizes.load([j]), order, ascending=False)
        largest = sizes.load([order.load([k.index(0)])]) if n else k.const(0.0, F64)
        _store_svd(k, batch, outs, (left, right, sizes, order), largest, width)
        outs[3].store(batch, k.const(0, S32))


def _store_svd(k: Emitter, batch: Sequence[Value], outs: Sequence[ArrayView],
               parts: tuple[StackedMatrix, StackedMatrix, ArrayView, ArrayView], largest: Value, width: int) -> None:
    """Store the columns sorted, normalised and with their phases; zero columns are completed to an orthonormal basis."""
    left, right, sizes, order = parts
    (m, _), n, dtype = left.view.shape, right.view.shape[0], left.view.dtype
    wide_matrix = outs[0].shape[-2] != m
    basis = StackedMatrix(k.scratch(dtype, (m, width)), ())
    tiny = k.binary("mul", largest, k.const(EPSILON * m, F64))
    with loops(k, [n]) as [j]:
        size = sizes.load([order.load([j])])
        outs[1].store([*batch, j], k.convert(size, outs[1].dtype))
    if not n:
        with loops(k, [width]) as [j]:  # no column has a direction
            _complete_column(k, basis, j, m)
    with loops(k, [width if n else 0]) as [j]:
        place = order.load([k.binary("min", j, k.index(n - 1))])
        size = sizes.load([place])
        has_direction = k.binary("and", below(k, j, n), k.compare("GT", size, tiny))
        # NaN has no order: it stays in place, and makes everything NaN, as it should.
        has_direction = k.binary("or", has_direction, k.binary("and", below(k, j, n), k.compare("NE", size, size)))
        with k.when(has_direction):
            scale = times(k, _phase(k, right, place), k.binary("div", k.const(1.0, F64), size))
            with loops(k, [m]) as [i]:
                basis.store(i, j, times(k, left.load(i, place), scale))
        with k.when(k.unary("not", has_direction)):
            _complete_column(k, basis, j, m)
    u, v = (outs[2], outs[0]) if wide_matrix else (outs[0], outs[2])
    with loops(k, [m, width]) as [i, j]:
        _store(k, bound(u, batch), i, j, basis.load(i, j), wide_matrix)
    with loops(k, [n]) as [j]:
        place = order.load([j])
        phase = _phase(k, right, place)
        with loops(k, [n]) as [i]:
            _store(k, bound(v, batch), i, j, times(k, right.load(i, place), phase), not wide_matrix)


def _complete_column(k: Emitter, basis: StackedMatrix, j: Value, m: int) -> None:
    """:func:`_complete`, with the phase that all vectors get."""
    _complete(k, basis, j, m)
    phase = _phase(k, basis, j)
    with loops(k, [m]) as [i]:
        basis.store(i, j, times(k, basis.load(i, j), phase))


def _store(k: Emitter, target: StackedMatrix, i: Value, j: Value, x: Value, adjoint: bool) -> None:
    """Write element (i, j) of ``target`` or, with ``adjoint``, of its adjoint."""
    row, column, x = (j, i, conjugate(k, x)) if adjoint else (i, j, x)
    target.store(row, column, k.convert(x, target.view.dtype))


def _complete(k: Emitter, basis: StackedMatrix, j: Value, m: int) -> None:
    """Set column j to a unit vector orthogonal to all columns before it: a unit vector of an axis, made orthogonal to them.

    The axis is the first of those that lose least, up to ``AS_LARGE``, so that rounding does not decide which.
    """
    dtype = basis.view.dtype
    rests = k.scratch(F64, (m,))
    best, place, open_ = k.reg(F64, k.const(-1.0, F64)), k.reg(S64, k.index(0)), k.reg(PRED, k.const(True, PRED))
    with loops(k, [m]) as [i]:
        rest = k.binary("sub", k.const(1.0, F64), sum_of(k, F64, 0, j, lambda c, i=i: square_size(k, basis.load(i, c))))  # type: ignore[misc]
        rests.store([i], rest)
        best.set(k.select(k.compare("GT", rest, best.get()), rest, best.get()))
    least = k.binary("mul", best.get(), k.const(AS_LARGE, F64))
    with loops(k, [m]) as [i]:
        found = k.binary("and", open_.get(), k.compare("GE", rests.load([i]), least))
        place.set(k.select(found, i, place.get()))
        open_.set(k.binary("and", open_.get(), k.unary("not", found)))
    start = place.get()
    with loops(k, [m]) as [i]:
        basis.store(i, j, k.select(k.compare("EQ", i, start), k.const(1, dtype), k.const(0, dtype)))
    for _ in range(2):  # twice, to remove the rounding error of the first time
        with k.loop(0, j) as c:
            share = sum_of(k, dtype, 0, m, lambda i, c=c: k.binary("mul", conjugate(k, basis.load(i, c)), basis.load(i, j)))  # type: ignore[misc]
            with loops(k, [m]) as [i]:
                basis.store(i, j, k.binary("sub", basis.load(i, j), k.binary("mul", share, basis.load(i, c))))
    length = k.unary("sqrt", sum_of(k, F64, 0, m, lambda i: square_size(k, basis.load(i, j))))
    scale = k.binary("div", k.const(1.0, F64), length)
    with loops(k, [m]) as [i]:
        basis.store(i, j, times(k, basis.load(i, j), scale))


def _svd_type(node: Node) -> Type:
    a, full = stack_of(node), Decomposition.of(node).full
    left, right = a.like(a.rows, a.rows if full else a.least), a.like(a.columns if full else a.least, a.columns)
    return TupleType((left, a.each(part_of(a.whole.dtype), a.least), right, a.each(S32)))


svd = library("svd", 20.0, _svd_type, _svd_reference, _svd_nest,
              "Left vectors, descending singular values and adjoint right vectors; square matrices of vectors where ``full`` is set.")
