"""Factorizations that libraries provide by custom calls: lu with partial pivoting, qr by Householder reflections, and their product.

They follow LAPACK's conventions (pivots count from 1, reflections are stored below the diagonal, tau separately), on which the programs
that call LAPACK rely. Matrices are the last two dimensions, stacks of them the ones before.
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Node, TupleType, Type
from irscope.graph.dtypes import S32, S64
from irscope.graph.node import ArrayView, Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.faults import TypeFault
from irscope.ops.matrices import StackedMatrix, bound, conjugate, has_type, library, part_of, real, square_size, stack_of, sum_of, taxicab
from irscope.ops.nests import independent, loops

# ---------------------------------------------------------------- lu


def _lu_reference(run: Run, node: Node, a: Array) -> object:
    work, rows, columns = np.array(a), a.shape[-2], a.shape[-1]
    steps = min(rows, columns)
    pivots, info = np.zeros((*a.shape[:-2], steps), np.int32), np.zeros(a.shape[:-2], np.int32)
    with np.errstate(all="ignore"):
        for batch in np.ndindex(*a.shape[:-2]):
            m = work[batch]
            for j in range(steps):
                size = np.abs(m[j:, j].real) + np.abs(m[j:, j].imag)
                p = j + int(np.argmax(np.where(np.isnan(size), -1, size)))
                pivots[(*batch, j)] = p + 1
                m[[j, p]] = m[[p, j]]
                if m[j, j] == 0:
                    info[batch] = info[batch] or j + 1
                    continue
                m[j + 1:, j] /= m[j, j]
                m[j + 1:, j + 1:] -= np.outer(m[j + 1:, j], m[j, j + 1:])
    return work, pivots, info


def _lu_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    rows, columns = ins[0].shape[-2:]
    dtype = ins[0].dtype
    with independent(k, ins[0].shape[:-2]) as batch:
        m = bound(outs[0], batch)
        info = k.reg(S32, k.const(0, S32))
        m.copy(k, bound(ins[0], batch))
        with loops(k, [min(rows, columns)]) as [j]:
            best, place = k.reg(part_of(dtype), taxicab(k, m.load(j, j))), k.reg(S64, j)
            with k.loop(j + 1, rows) as i:
                size = taxicab(k, m.load(i, j))
                larger = k.compare("GT", size, best.get())
                place.set(k.select(larger, i, place.get()))
                best.set(k.select(larger, size, best.get()))
            p = place.get()
            outs[1].store([*batch, j], k.convert(p + 1, S32))
            with k.when(k.compare("NE", p, j)), loops(k, [columns]) as [c]:
                upper, lower = m.load(j, c), m.load(p, c)
                m.store(j, c, lower)
                m.store(p, c, upper)
            pivot = m.load(j, j)
            singular = k.compare("EQ", pivot, k.const(0, dtype))
            fresh = k.binary("and", singular, k.compare("EQ", info.get(), k.const(0, S32)))
            info.set(k.select(fresh, k.convert(j + 1, S32), info.get()))
            with k.when(k.unary("not", singular)), k.loop(j + 1, rows) as i:
                factor = k.binary("div", m.load(i, j), pivot)
                m.store(i, j, factor)
                with k.loop(j + 1, columns) as c:
                    m.store(i, c, k.binary("sub", m.load(i, c), k.binary("mul", factor, m.load(j, c))))
        outs[2].store(batch, info.get())


def _lu_type(node: Node) -> Type:
    a = stack_of(node)
    return TupleType((a.whole, a.each(S32, a.least), a.each(S32)))


lu = library("lu", 2 / 3, _lu_type, _lu_reference, _lu_nest,
             "L and U in one matrix, the row that each step swapped with (from 1), and the first step without a pivot (0: none).")


# ---------------------------------------------------------------- qr

def householder(m: Array, j: int, top: int) -> tuple[Array, Array]:
    """LAPACK's larfg: reduce column j from row ``top`` on, in place; returns tau and the Householder vector with its leading 1."""
    alpha, rest = m[top, j], m[top + 1:, j]
    square, tau = float((rest.real ** 2 + rest.imag ** 2).sum()), m.dtype.type(0)
    if not (square == 0 and alpha.imag == 0):
        beta = m.real.dtype.type(-np.copysign(np.sqrt(alpha.real ** 2 + alpha.imag ** 2 + square), alpha.real))
        m[top, j], tau, m[top + 1:, j] = beta, (beta - alpha) / beta, rest / (alpha - beta)
    return tau, np.concatenate([np.ones(1, m.dtype), m[top + 1:, j]])


def _qr_reference(run: Run, node: Node, a: Array) -> object:
    work, steps = np.array(a), min(a.shape[-2:])
    taus = np.zeros((*a.shape[:-2], steps), a.dtype)
    with np.errstate(all="ignore"):
        for batch in np.ndindex(*a.shape[:-2]):
            m = work[batch]
            for j in range(steps):
                tau, v = householder(m, j, j)
                taus[(*batch, j)] = tau
                m[j:, j + 1:] -= np.conj(tau) * np.outer(v, v.conj() @ m[j:, j + 1:])
    return work, taus


def _qr_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    rows, columns = ins[0].shape[-2:]
    with independent(k, ins[0].shape[:-2]) as batch:
        m = bound(outs[0], batch)
        m.copy(k, bound(ins[0], batch))
        with loops(k, [min(rows, columns)]) as [j]:
            tau = reflection(k, m, j, j, rows)
            outs[1].store([*batch, j], tau)
            with k.loop(j + 1, columns) as c:
                reflect(k, (m, j, conjugate(k, tau)), (m, c), (j, rows))


def reflection(k: Emitter, m: StackedMatrix, j: Value, top: Value, rows: int) -> Value:
    """Reduce column j from row ``top`` on: the Householder vector (below), and the reduced element (at the top). Returns tau."""
    dtype = m.view.dtype
    part = part_of(dtype)
    alpha = m.load(top, j)
    square = sum_of(k, part, top + 1, rows, lambda i: square_size(k, m.load(i, j)))
    flat = k.compare("EQ", square, k.const(0, part))
    if dtype.is_complex:
        flat = k.binary("and", flat, k.compare("EQ", k.unary("imag", alpha), k.const(0, part)))
    length = k.unary("sqrt", k.binary("add", square_size(k, alpha), square))
    upward = k.compare("LT", real(k, alpha), k.const(0, part))
    beta = k.select(flat, alpha, k.convert(k.select(upward, length, k.unary("neg", length)), dtype))
    with k.when(k.unary("not", flat)):
        scale = k.binary("div", k.const(1, dtype), k.binary("sub", alpha, beta))
        m.store(top, j, beta)
        with k.loop(top + 1, rows) as i:
            m.store(i, j, k.binary("mul", m.load(i, j), scale))
    return k.select(flat, k.const(0, dtype), k.binary("div", k.binary("sub", beta, alpha), beta))


def reflect(k: Emitter, reflector: tuple[StackedMatrix, Value, Value], target: tuple[StackedMatrix, Value],
            rows: tuple[Value, int]) -> None:
    """Subtract from a column of a matrix, from row ``top`` on, ``tau * x * (x^H column)``; x is 1 and then column j of v below ``top``.

    ``reflector`` is (v, j, tau), ``target`` the matrix and the number of its column, ``rows`` are ``top`` and their number.
    """
    (v, j, tau), (matrix, c), (top, end) = reflector, target, rows
    dtype = tau.dtype
    rest = sum_of(k, dtype, top + 1, end, lambda i: k.binary("mul", conjugate(k, v.load(i, j)), matrix.load(i, c)))
    w = k.binary("mul", tau, k.binary("add", matrix.load(top, c), rest))
    matrix.store(top, c, k.binary("sub", matrix.load(top, c), w))
    with k.loop(top + 1, end) as i:
        matrix.store(i, c, k.binary("sub", matrix.load(i, c), k.binary("mul", v.load(i, j), w)))


def _qr_type(node: Node) -> Type:
    a = stack_of(node)
    return TupleType((a.whole, a.like(a.least)))


qr = library("qr", 4 / 3, _qr_type, _qr_reference, _qr_nest,
             "R in the upper triangle, the Householder vectors below it, and their factors tau.")


# ---------------------------------------------------------------- householder-product

def _householder_product_reference(run: Run, node: Node, a: Array, taus: Array) -> Array:
    rows, columns = a.shape[-2:]
    made = np.zeros(a.shape, a.dtype)
    for batch in np.ndindex(*a.shape[:-2]):
        q = np.eye(rows, columns, dtype=a.dtype)
        for j in reversed(range(taus.shape[-1])):
            v = np.concatenate([np.ones(1, a.dtype), a[(*batch, slice(j + 1, None), j)]])
            q[j:] -= taus[(*batch, j)] * np.outer(v, v.conj() @ q[j:])
        made[batch] = q
    return made


def _householder_product_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    rows, columns = ins[0].shape[-2:]
    steps, dtype = ins[1].shape[-1], ins[0].dtype
    one, nothing = k.const(1, dtype), k.const(0, dtype)
    with independent(k, ins[0].shape[:-2]) as batch:
        a, q = bound(ins[0], batch), bound(outs[0], batch)
        with loops(k, [rows, columns]) as [i, j]:
            q.store(i, j, k.select(k.compare("EQ", i, j), one, nothing))
        with loops(k, [steps]) as [back]:
            j = (steps - 1) - back
            tau = ins[1].load([*batch, j])
            # Columns before j are still those of the identity, which are zero from row j on.
            with k.loop(j, columns) as c:
                reflect(k, (a, j, tau), (q, c), (j, rows))


def _householder_product_type(node: Node) -> Type:
    a, taus = stack_of(node), infer.array(node, 1)
    if taus.rank != a.whole.rank - 1 or not taus.is_static or taus.dims()[-1] > a.least:
        raise TypeFault(f"the factors of {node.op.name} must be {a.like(a.least)} or fewer, got {infer.plain(taus)}")
    has_type(node, 1, a.like(taus.dims()[-1]))
    return a.whole


householder_product = library(
    "householder-product", 4 / 3, _householder_product_type, _householder_product_reference, _householder_product_nest,
    "The orthogonal (unitary) product of Householder reflections: Q of a qr.")
