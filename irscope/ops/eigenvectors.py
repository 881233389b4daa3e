"""Eigenvalues and eigenvectors of any square matrix: Schur form, then substitution. Computed in c128, real matrices too."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Node, TupleType, Type
from irscope.graph.dtypes import C64, C128, F64, S32
from irscope.graph.node import ArrayView, Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops.attributes import Decomposition
from irscope.ops.matrices import StackedMatrix, bound, conjugate, library, square_size, stack_of, sum_of, taxicab, times
from irscope.ops.nests import independent, loops
from irscope.ops.schur import EPSILON, begin, complex_schur


def _eig_reference(run: Run, node: Node, a: Array) -> object:
    values, right = np.linalg.eig(a.astype(np.complex128))
    left = np.swapaxes(np.linalg.inv(right), -1, -2).conj()
    vectors = []
    for v in (left, right):
        v = v / np.linalg.norm(v, axis=-2, keepdims=True)
        largest = np.take_along_axis(v, np.abs(v).argmax(-2)[..., None, :], -2)
        vectors.append(v * largest.conj() / np.abs(largest))
    narrow = np.complex64 if a.dtype in (np.float32, np.complex64) else np.complex128
    part = a.real.dtype
    parts = [values.astype(narrow)] if a.dtype.kind == "c" else [values.real.astype(part), values.imag.astype(part)]
    return *parts, *(v.astype(narrow) for v in vectors), np.zeros(a.shape[:-2], np.int32)


def _eig_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    n = ins[0].shape[-1]
    t, z = (StackedMatrix(k.scratch(C128, (n, n)), ()) for _ in "tz")
    x = k.scratch(C128, (n,))
    out = k.scratch(C128, (n,))
    split = not ins[0].dtype.is_complex
    with independent(k, ins[0].shape[:-2]) as batch:
        begin(k, bound(ins[0], batch), t, z, n)
        complex_schur(k, t, z, n)
        with loops(k, [n]) as [i]:
            value = t.load(i, i)
            if split:
                outs[0].store([*batch, i], k.convert(k.unary("real", value), outs[0].dtype))
                outs[1].store([*batch, i], k.convert(k.unary("imag", value), outs[1].dtype))
            else:
                outs[0].store([*batch, i], k.convert(value, outs[0].dtype))
        tiny = k.binary("mul", k.const(EPSILON, F64), _largest(k, t, n))
        for left, wanted, view in ((True, Decomposition.of(node).left, outs[-3]), (False, Decomposition.of(node).right, outs[-2])):
            if wanted:
                with loops(k, [n]) as [j]:
                    _eigenvector(k, t, x, j, tiny, left)
                    _store_vector(k, z, x, out, bound(view, batch), j)
            else:
                with loops(k, [n, n]) as [i, j]:
                    view.store([*batch, i, j], k.const(0, view.dtype))
        outs[-1].store(batch, k.const(0, S32))


def _largest(k: Emitter, t: StackedMatrix, n: int) -> Value:
    """The largest element of a matrix, and never zero."""
    found = k.reg(F64, k.const(2.0 ** -1000, F64))
    with loops(k, [n, n]) as [i, j]:
        found.set(k.binary("max", found.get(), taxicab(k, t.load(i, j))))
    return found.get()


def _eigenvector(k: Emitter, t: StackedMatrix, x: ArrayView, j: Value, tiny: Value, left: bool) -> None:
    """Set ``x`` to the eigenvector of a triangular matrix (or its adjoint) for its j-th diagonal element, by substitution."""
    n = x.shape[0]
    one, nothing = k.const(1, C128), k.const(0, C128)
    own = t.load(j, j)
    with loops(k, [n]) as [i]:
        x.store([i], k.select(k.compare("EQ", i, j), one, nothing))
    with k.loop(0, (n - 1) - j) if left else k.loop(0, j) as step:
        i = j + 1 + step if left else j - 1 - step
        low, high = (j, i) if left else (i + 1, j + 1)

        def term(c: Value, i: Value = i) -> Value:
            return k.binary("mul", conjugate(k, t.load(c, i)) if left else t.load(i, c), x.load([c]))
        total = sum_of(k, C128, low, high, term)
        gap = k.binary("sub", t.load(i, i), own)
        gap = conjugate(k, gap) if left else gap
        # Equal eigenvalues have no separate vectors: a tiny gap yields nearly the same vector, as in LAPACK.
        gap = k.select(k.compare("LT", taxicab(k, gap), tiny), k.complex(tiny, k.const(0.0, F64)), gap)
        x.store([i], k.unary("neg", k.binary("div", total, gap)))


def _store_vector(k: Emitter, z: StackedMatrix, x: ArrayView, work: ArrayView, out: StackedMatrix, j: Value) -> None:
    """Set column j of ``out`` to ``z x``, of length one and with its largest component real."""
    n = x.shape[0]
    best, phase = k.reg(F64, k.const(-1.0, F64)), k.reg(C128, k.const(1, C128))
    total = k.reg(F64, k.const(0.0, F64))
    with loops(k, [n]) as [i]:
        value = sum_of(k, C128, 0, n, lambda c, i=i: k.binary("mul", z.load(i, c), x.load([c])))  # type: ignore[misc]
        work.store([i], value)
        size = square_size(k, value)
        total.set(k.binary("add", total.get(), size))
        larger = k.compare("GT", size, best.get())
        phase.set(k.select(larger, conjugate(k, value), phase.get()))
        best.set(k.select(larger, size, best.get()))
    scale = k.binary("mul", k.unary("sqrt", total.get()), k.unary("sqrt", best.get()))
    turn = times(k, phase.get(), k.binary("div", k.const(1.0, F64), scale))
    with loops(k, [n]) as [i]:
        out.store(i, j, k.convert(k.binary("mul", work.load([i]), turn), out.view.dtype))


def _eig_type(node: Node) -> Type:
    """The eigenvalues of real matrices are two arrays, of real and of imaginary parts; their vectors are complex."""
    a = stack_of(node, square=True)
    dtype = a.whole.dtype
    values = [a.like(a.rows)] * (1 if dtype.is_complex else 2)
    vectors = a.each(dtype if dtype.is_complex else C128 if dtype is F64 else C64, a.rows, a.rows)
    return TupleType((*values, vectors, vectors, a.each(S32)))


eig = library(
    "eig", 30.0, _eig_type, _eig_reference, _eig_nest,
    "Eigenvalues of any square matrix (real and imaginary parts of a real one), left and right eigenvectors of length one, status.")
