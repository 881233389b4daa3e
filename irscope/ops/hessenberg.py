"""More of LAPACK: qr with column pivoting, reductions to Hessenberg and tridiagonal form, tridiagonal systems.

Reflections are those of :mod:`irscope.ops.factorizations`: vectors in the matrix, factors tau separately.
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Node, Op, TupleType, Type
from irscope.graph.dtypes import S32, S64
from irscope.graph.node import ArrayView, Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops.factorizations import householder, reflect, reflection
from irscope.ops.matrices import StackedMatrix, bound, conjugate, has_type, library, part_of, real, square_size, stack_of, sum_of, times
from irscope.ops.nests import independent, loops
from irscope.ops.registry import declare

# ---------------------------------------------------------------- pivoted-qr

def _pivoted_qr_reference(run: Run, node: Node, a: Array, fixed: Array) -> object:
    work, steps, columns = np.array(a), min(a.shape[-2:]), a.shape[-1]
    taus, order = np.zeros((*a.shape[:-2], steps), a.dtype), np.zeros((*a.shape[:-2], columns), np.int32)
    with np.errstate(all="ignore"):
        for batch in np.ndindex(*a.shape[:-2]):
            m, places = work[batch], np.arange(1, columns + 1)
            for j in range(steps):
                sizes = (np.abs(m[j:, j:]) ** 2).sum(0)
                p = j + int(np.argmax(sizes))
                m[:, [j, p]], places[[j, p]] = m[:, [p, j]], places[[p, j]]
                tau, v = householder(m, j, j)
                taus[(*batch, j)] = tau
                m[j:, j + 1:] -= np.conj(tau) * np.outer(v, v.conj() @ m[j:, j + 1:])
            order[batch] = places
    return work, order, taus


def _pivoted_qr_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    rows, columns = ins[0].shape[-2:]
    part = part_of(ins[0].dtype)
    with independent(k, ins[0].shape[:-2]) as batch:
        m = bound(outs[0], batch)
        m.copy(k, bound(ins[0], batch))
        with loops(k, [columns]) as [c]:
            outs[1].store([*batch, c], k.convert(c + 1, S32))
        with loops(k, [min(rows, columns)]) as [j]:
            best, place = k.reg(part, k.const(-1, part)), k.reg(S64, j)
            with k.loop(j, columns) as c:
                size = sum_of(k, part, j, rows, lambda i, c=c: square_size(k, m.load(i, c)))  # type: ignore[misc]
                larger = k.compare("GT", size, best.get())
                place.set(k.select(larger, c, place.get()))
                best.set(k.select(larger, size, best.get()))
            p = place.get()
            with k.when(k.compare("NE", p, j)):
                with loops(k, [rows]) as [i]:
                    x, y = m.load(i, j), m.load(i, p)
                    m.store(i, j, y)
                    m.store(i, p, x)
                x, y = outs[1].load([*batch, j]), outs[1].load([*batch, p])
                outs[1].store([*batch, j], y)
                outs[1].store([*batch, p], x)
            tau = reflection(k, m, j, j, rows)
            outs[2].store([*batch, j], tau)
            with k.loop(j + 1, columns) as c:
                reflect(k, (m, j, conjugate(k, tau)), (m, c), (j, rows))


def _pivoted_qr_type(node: Node) -> Type:
    a = stack_of(node)
    return TupleType((a.whole, a.each(S32, a.columns), a.like(a.least)))


pivoted_qr = library(
    "pivoted-qr", 2.0, _pivoted_qr_type, _pivoted_qr_reference, _pivoted_qr_nest,
    "qr of a matrix with columns permuted so that the largest comes first; with the permutation, from 1. No column is fixed.")


# ---------------------------------------------------------------- hessenberg

def _hessenberg_reference(run: Run, node: Node, a: Array) -> object:
    work, n = np.array(a), a.shape[-1]
    taus = np.zeros((*a.shape[:-2], max(n - 1, 0)), a.dtype)
    for batch in np.ndindex(*a.shape[:-2]):
        m = work[batch]
        for j in range(n - 1):
            tau, v = householder(m, j, j + 1)
            taus[(*batch, j)] = tau
            m[:, j + 1:] -= tau * np.outer(m[:, j + 1:] @ v, v.conj())
            m[j + 1:, j + 1:] -= np.conj(tau) * np.outer(v, v.conj() @ m[j + 1:, j + 1:])
    return work, taus, np.zeros(a.shape[:-2], np.int32)


def _hessenberg_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    n = ins[0].shape[-1]
    with independent(k, ins[0].shape[:-2]) as batch:
        m = bound(outs[0], batch)
        m.copy(k, bound(ins[0], batch))
        with loops(k, [max(n - 1, 0)]) as [j]:
            tau = reflection(k, m, j, j + 1, n)
            outs[1].store([*batch, j], tau)
            with loops(k, [n]) as [row]:
                _reflect_row(k, m, j, row, n, tau)
            with k.loop(j + 1, n) as c:
                reflect(k, (m, j, conjugate(k, tau)), (m, c), (j + 1, n))
        outs[2].store(batch, k.const(0, S32))


def _reflect_row(k: Emitter, m: StackedMatrix, j: Value, row: Value, n: int, tau: Value) -> None:
    """Subtract from a row, from column j + 1 on, ``tau * (row v) * v^H``; v is 1 and then column j below row j + 1."""
    rest = sum_of(k, tau.dtype, j + 2, n, lambda i: k.binary("mul", m.load(row, i), m.load(i, j)))
    w = k.binary("mul", tau, k.binary("add", m.load(row, j + 1), rest))
    m.store(row, j + 1, k.binary("sub", m.load(row, j + 1), w))
    with k.loop(j + 2, n) as i:
        m.store(row, i, k.binary("sub", m.load(row, i), k.binary("mul", w, conjugate(k, m.load(i, j)))))


def _hessenberg_type(node: Node) -> Type:
    a = stack_of(node, square=True)
    return TupleType((a.whole, a.like(max(a.rows - 1, 0)), a.each(S32)))


hessenberg = library("hessenberg", 10 / 3, _hessenberg_type, _hessenberg_reference, _hessenberg_nest,
                     "A similar matrix with one diagonal below the main one, the Householder vectors below that, and their factors tau.")


# ---------------------------------------------------------------- tridiagonal

def _tridiagonal_reference(run: Run, node: Node, a: Array) -> object:
    work, n = np.array(a), a.shape[-1]
    lead, part = a.shape[:-2], a.real.dtype
    diagonal, below, taus = np.zeros((*lead, n), part), np.zeros((*lead, max(n - 1, 0)), part), np.zeros((*lead, max(n - 1, 0)), a.dtype)
    for batch in np.ndindex(*lead):
        m = work[batch]
        for j in range(n - 1):
            tau, v = householder(m, j, j + 1)
            taus[(*batch, j)], below[(*batch, j)] = tau, m[j + 1, j].real
            s = m[j + 1:, j + 1:]
            whole = np.tril(s, -1) + np.tril(s, -1).conj().T + np.diag(np.diag(s).real)
            x = tau * (whole @ v)
            w = x - tau / 2 * (x.conj() @ v) * v
            s -= np.tril(np.outer(v, w.conj()) + np.outer(w, v.conj()))
        diagonal[batch] = np.diag(m).real
    return work, diagonal, below, taus, np.zeros(lead, np.int32)


def _tridiagonal_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    n, dtype = ins[0].shape[-1], ins[0].dtype
    x = k.scratch(dtype, (n,))
    half = k.const(0.5, dtype)
    with independent(k, ins[0].shape[:-2]) as batch:
        m = bound(outs[0], batch)
        m.copy(k, bound(ins[0], batch))
        with loops(k, [max(n - 1, 0)]) as [j]:
            tau = reflection(k, m, j, j + 1, n)
            outs[3].store([*batch, j], tau)
            outs[2].store([*batch, j], k.convert(real(k, m.load(j + 1, j)), outs[2].dtype))

            def v(i: Value, j: Value = j) -> Value:
                return k.select(k.compare("EQ", i, j + 1), k.const(1, dtype), m.load(i, j))
            with k.loop(j + 1, n) as i:
                left = sum_of(k, dtype, j + 1, i, lambda c, i=i: k.binary("mul", m.load(i, c), v(c)))  # type: ignore[misc]
                right = sum_of(k, dtype, i + 1, n, lambda c, i=i: k.binary("mul", conjugate(k, m.load(c, i)), v(c)))  # type: ignore[misc]
                total = k.binary("add", k.binary("add", left, right), times(k, v(i), real(k, m.load(i, i))))
                x.store([i], k.binary("mul", tau, total))
            inner = sum_of(k, dtype, j + 1, n, lambda i: k.binary("mul", conjugate(k, x.load([i])), v(i)))
            share = k.binary("mul", k.binary("mul", half, tau), inner)
            with k.loop(j + 1, n) as i:
                x.store([i], k.binary("sub", x.load([i]), k.binary("mul", share, v(i))))
            with k.loop(j + 1, n) as i, k.loop(j + 1, i + 1) as c:
                first = k.binary("mul", v(i), conjugate(k, x.load([c])))
                second = k.binary("mul", x.load([i]), conjugate(k, v(c)))
                m.store(i, c, k.binary("sub", m.load(i, c), k.binary("add", first, second)))
        with loops(k, [n]) as [i]:
            outs[1].store([*batch, i], k.convert(real(k, m.load(i, i)), outs[1].dtype))
        outs[4].store(batch, k.const(0, S32))


def _tridiagonal_type(node: Node) -> Type:
    a = stack_of(node, square=True)
    part, beside = part_of(a.whole.dtype), max(a.rows - 1, 0)
    return TupleType((a.whole, a.each(part, a.rows), a.each(part, beside), a.like(beside), a.each(S32)))


tridiagonal = library(
    "tridiagonal", 4 / 3, _tridiagonal_type, _tridiagonal_reference, _tridiagonal_nest,
    "A tridiagonal matrix similar to a Hermitian one (its lower triangle is read): reflections, diagonal, the one below, tau.")


# ---------------------------------------------------------------- tridiagonal-solve

def _tridiagonal_solve_reference(run: Run, node: Node, lower: Array, diagonal: Array, upper: Array, b: Array) -> object:
    n = diagonal.shape[-1]
    matrix = np.zeros((*diagonal.shape, n), b.dtype)
    i = np.arange(n)
    matrix[..., i, i] = diagonal
    matrix[..., i[1:], i[:-1]] = lower[..., 1:]
    matrix[..., i[:-1], i[1:]] = upper[..., :-1]
    found, info = np.empty_like(b), np.zeros(diagonal.shape[:-1], np.int32)
    for batch in np.ndindex(*diagonal.shape[:-1]):
        try:
            found[batch] = np.linalg.solve(matrix[batch], b[batch])
        except np.linalg.LinAlgError:
            found[batch], info[batch] = np.nan, 1
    return found, info


def _tridiagonal_solve_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    """Elimination with pivoting of neighbouring rows; ``band[d]`` is the diagonal d places to the right of the main one."""
    lower, diagonal, upper, b = ins
    x, dtype = outs[0], b.dtype
    n, columns = b.shape[-2:]
    band = [k.scratch(dtype, (n,)) for _ in range(3)]
    zero = k.const(0, dtype)
    with independent(k, b.shape[:-2]) as batch:
        info = k.reg(S32, k.const(0, S32))
        with loops(k, [n]) as [i]:
            band[0].store([i], diagonal.load([*batch, i]))
            band[1].store([i], upper.load([*batch, i]))
            band[2].store([i], zero)
            with loops(k, [columns]) as [c]:
                x.store([*batch, i, c], b.load([*batch, i, c]))
        with k.loop(0, n - 1) as i:
            mine = [band[0].load([i]), band[1].load([i]), band[2].load([i])]
            below = [lower.load([*batch, i + 1]), band[0].load([i + 1]), band[1].load([i + 1])]
            below[2] = k.select(k.compare("LT", i, k.index(n - 2)), below[2], zero)
            exchange = k.compare("GT", _size(k, below[0]), _size(k, mine[0]))
            pivot = [k.select(exchange, y, z) for y, z in zip(below, mine, strict=True)]
            other = [k.select(exchange, z, y) for y, z in zip(below, mine, strict=True)]
            factor = k.binary("div", other[0], pivot[0])
            for d, value in enumerate(pivot):
                band[d].store([i], value)
            band[0].store([i + 1], k.binary("sub", other[1], k.binary("mul", factor, pivot[1])))
            band[1].store([i + 1], k.binary("sub", other[2], k.binary("mul", factor, pivot[2])))
            with loops(k, [columns]) as [c]:
                above, under = x.load([*batch, i, c]), x.load([*batch, i + 1, c])
                top = k.select(exchange, under, above)
                x.store([*batch, i, c], top)
                x.store([*batch, i + 1, c], k.binary("sub", k.select(exchange, above, under), k.binary("mul", factor, top)))
        with loops(k, [n]) as [i]:
            without_pivot = k.compare("EQ", band[0].load([i]), zero)
            info.set(k.select(without_pivot, k.convert(i + 1, S32), info.get()))
        outs[1].store(batch, info.get())
        with loops(k, [n]) as [back], loops(k, [columns]) as [c]:
            i = (n - 1) - back
            value = x.load([*batch, i, c])
            for d in (1, 2):
                inside = k.compare("GE", back, k.index(d))
                known = x.load([*batch, k.binary("min", i + d, k.index(n - 1)), c])
                term = k.binary("mul", band[d].load([i]), known)
                value = k.binary("sub", value, k.select(inside, term, zero))
            x.store([*batch, i, c], k.binary("div", value, band[0].load([i])))


def _size(k: Emitter, x: Value) -> Value:
    return square_size(k, x) if x.dtype.is_complex else k.unary("abs", x)


def _tridiagonal_solve_type(node: Node) -> Type:
    b = stack_of(node, 3)
    for operand in range(3):
        has_type(node, operand, b.like(b.rows))
    return TupleType((b.whole, b.each(S32)))


tridiagonal_solve = declare(Op(
    "tridiagonal-solve", dialect="library", infer=_tridiagonal_solve_type, reference=_tridiagonal_solve_reference,
    nest=_tridiagonal_solve_nest, cost=lambda node: 8.0 * sum(t.elements for t in node.type.leaves() if hasattr(t, "elements")),
    doc="x with ``A x = b``, where A has three diagonals: below the main one (its first element is not read), the main one, above it."))
