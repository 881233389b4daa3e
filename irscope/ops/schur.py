"""Schur forms of general matrices, by shifted QR steps. Everything is computed in f64 (c128).

A complex matrix becomes triangular by single shifts, a real one block triangular (pairs of conjugate eigenvalues in blocks of two)
by double shifts. Both start from Hessenberg form and chase the bulge of each step down the diagonal.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irscope.graph import Node, TupleType, Type
from irscope.graph.dtypes import C128, F64, S32, S64
from irscope.graph.node import ArrayView, Emitter, Index, Run, Value
from irscope.lazy import Array, np
from irscope.ops.matrices import StackedMatrix, bound, conjugate, library, square_size, stack_of, taxicab, times
from irscope.ops.nests import below, independent, loops

EPSILON = 2.0 ** -52
STEPS = 60
"""QR steps for each eigenvalue before the algorithm gives up: three are usual."""


# ---------------------------------------------------------------- rotations

def _rotation(k: Emitter, x: Value, y: Value) -> tuple[Value, Value]:
    """c and s with ``conj(c) x + conj(s) y = r >= 0`` and ``c y = s x``."""
    size = k.unary("sqrt", k.binary("add", square_size(k, x), square_size(k, y)))
    nothing = k.compare("EQ", size, k.const(0.0, F64))
    scale = k.select(nothing, k.const(0.0, F64), k.binary("div", k.const(1.0, F64), k.select(nothing, k.const(1.0, F64), size)))
    c = k.select(nothing, k.const(1.0, x.dtype), times(k, x, scale))
    return c, times(k, y, scale)

Span = tuple[Index, Index]
"""The first index, and the one after the last."""
Rotation = tuple[Value, Value]
"""c and s of :func:`_rotation`; both are complex in a complex matrix."""


def _turn_rows(k: Emitter, m: StackedMatrix, p: Value, span: Span, rotation: Rotation) -> None:
    """Rotate rows p and p + 1 in the columns of ``span``: pairs (a, b) become (c' a + s' b, c b - s a), where c' is the conjugate of c."""
    c, s = rotation
    cc, cs = conjugate(k, c), conjugate(k, s)
    with k.loop(*span) as j:
        a, b = m.load(p, j), m.load(p + 1, j)
        first = k.binary("add", k.binary("mul", cc, a), k.binary("mul", cs, b))
        second = k.binary("sub", k.binary("mul", c, b), k.binary("mul", s, a))
        m.store(p, j, first)
        m.store(p + 1, j, second)


def _turn_columns(k: Emitter, m: StackedMatrix, p: Value, span: Span, rotation: Rotation) -> None:
    """Rotate columns p and p + 1 in the rows of ``span`` by the adjoint rotation."""
    c, s = rotation
    _turn_rows(k, m.transpose(), p, span, (conjugate(k, c), conjugate(k, s)))


def _to_hessenberg(k: Emitter, h: StackedMatrix, z: StackedMatrix, n: int) -> None:
    """Eliminate everything below the first subdiagonal by rotations, from the bottom of each column upwards."""
    with loops(k, [max(n - 2, 0)]) as [j], k.loop(0, (n - 2) - j) as back:
        p = (n - 2) - back
        rotation = _rotation(k, h.load(p, j), h.load(p + 1, j))
        _turn_rows(k, h, p, (j, n), rotation)
        h.store(p + 1, j, k.const(0, h.view.dtype))
        _turn_columns(k, h, p, (0, n), rotation)
        _turn_columns(k, z, p, (0, n), rotation)


def begin(k: Emitter, source: StackedMatrix, h: StackedMatrix, z: StackedMatrix, n: int) -> None:
    """Set ``h`` to the matrix, ``z`` to the identity."""
    dtype = h.view.dtype
    with loops(k, [n, n]) as [i, j]:
        x = source.load(i, j)
        x = k.complex(k.convert(x, F64), k.const(0.0, F64)) if dtype is C128 and not x.dtype.is_complex else k.convert(x, dtype)
        h.store(i, j, x)
        z.store(i, j, k.select(k.compare("EQ", i, j), k.const(1, dtype), k.const(0, dtype)))


class _Deflation:
    """The active block low..high of a matrix that is deflated from the bottom; ``left`` counts the remaining steps."""

    def __init__(self, k: Emitter, h: StackedMatrix, n: int) -> None:
        self.k, self.h, self.n = k, h, n
        self.high, self.low = k.reg(S64, k.index(n - 1)), k.reg(S64, k.index(0))
        self.step, self.left = k.reg(S64, k.index(0)), k.reg(S64, k.index(STEPS * n))

    def running(self) -> Any:
        """Whether a block and steps are left."""
        k = self.k
        return k.binary("and", k.compare("GT", self.high.get(), k.index(0)), k.compare("GT", self.left.get(), k.index(0)))

    def find(self) -> tuple[Any, Any]:
        """Search upwards from the end for a negligible subdiagonal element, set it to zero, and return the block."""
        k, h = self.k, self.h
        self.left.set(self.left.get() - 1)
        self.low.set(self.high.get())

        def coupled() -> object:
            place = self.low.get()
            above = k.binary("max", place - 1, k.index(0))
            size = k.binary("add", taxicab(k, h.load(above, above)), taxicab(k, h.load(place, place)))
            small = k.binary("mul", k.const(EPSILON, F64), size)
            strong = k.compare("GT", taxicab(k, h.load(place, above)), small)
            # NaN is not negligible: it exhausts the steps.
            strong = k.binary("or", strong, k.compare("NE", size, size))
            return k.binary("and", k.compare("GT", place, k.index(0)), strong)
        with k.while_(coupled):
            self.low.set(self.low.get() - 1)
        low = self.low.get()
        with k.when(k.compare("GT", low, k.index(0))):
            h.store(low, low - 1, k.const(0, h.view.dtype))
        return low, self.high.get()

    def done(self, count: int) -> None:
        """Deflate: this many eigenvalues at the end are found."""
        self.high.set(self.high.get() - count)
        self.step.set(self.k.index(0))


# ---------------------------------------------------------------- complex

def complex_schur(k: Emitter, h: StackedMatrix, z: StackedMatrix, n: int) -> None:
    """Make ``h`` triangular and ``z`` unitary; ``z h z^H`` is the original h."""
    _to_hessenberg(k, h, z, n)
    block = _Deflation(k, h, n)
    with k.while_(block.running):
        low, high = block.find()
        alone = k.compare("EQ", low, high)
        with k.when(alone):
            block.done(1)
        with k.when(k.unary("not", alone)):
            block.step.set(block.step.get() + 1)
            shift = _wilkinson(k, h, high, block.step.get())
            with k.loop(low, high) as p:
                first = k.compare("EQ", p, low)
                before = k.binary("max", p - 1, low)
                x = k.select(first, k.binary("sub", h.load(p, p), shift), h.load(p, before))
                y = k.select(first, h.load(p + 1, p), h.load(p + 1, before))
                rotation = _rotation(k, x, y)
                _turn_rows(k, h, p, (k.binary("max", p - 1, k.index(0)), n), rotation)
                with k.when(k.unary("not", first)):
                    h.store(p + 1, before, k.const(0, C128))
                _turn_columns(k, h, p, (0, k.binary("min", p + 3, high + 1)), rotation)
                _turn_columns(k, z, p, (0, n), rotation)


def _wilkinson(k: Emitter, h: StackedMatrix, high: Value, step: Value) -> Value:
    """The eigenvalue of the last 2 x 2 block that is nearer to its last element; an exceptional shift every tenth time."""
    a, b, c, d = h.load(high - 1, high - 1), h.load(high - 1, high), h.load(high, high - 1), h.load(high, high)
    half = times(k, k.binary("sub", a, d), k.const(0.5, F64))
    root = k.unary("sqrt", k.binary("add", k.binary("mul", half, half), k.binary("mul", b, c)))
    plus, minus = k.binary("add", half, root), k.binary("sub", half, root)
    nearer = k.compare("LT", square_size(k, plus), square_size(k, minus))
    shift = k.binary("add", d, k.select(nearer, plus, minus))
    odd = k.binary("add", d, k.complex(taxicab(k, c), k.const(0.0, F64)))
    return k.select(k.compare("EQ", step % 10, k.index(0)), odd, shift)


# ---------------------------------------------------------------- real

def real_schur(k: Emitter, h: StackedMatrix, z: StackedMatrix, n: int) -> None:
    """Make ``h`` block triangular and ``z`` orthogonal; blocks of two have conjugate eigenvalues."""
    _to_hessenberg(k, h, z, n)
    block = _Deflation(k, h, n)
    with k.while_(block.running):
        low, high = block.find()
        size = high - low
        with k.when(k.compare("EQ", size, k.index(0))):
            block.done(1)
        with k.when(k.compare("EQ", size, k.index(1))):
            _split_pair(k, h, z, low, n)
            block.done(2)
        with k.when(k.compare("GT", size, k.index(1))):
            block.step.set(block.step.get() + 1)
            _double_step(k, h, z, (low, high), n, block.step.get())


def _split_pair(k: Emitter, h: StackedMatrix, z: StackedMatrix, p: Value, n: int) -> None:
    """Make a block of two with real eigenvalues triangular; its first column becomes an eigenvector."""
    a, b, c, d = h.load(p, p), h.load(p, p + 1), h.load(p + 1, p), h.load(p + 1, p + 1)
    half = k.binary("mul", k.binary("sub", a, d), k.const(0.5, F64))
    inside = k.binary("add", k.binary("mul", half, half), k.binary("mul", b, c))
    with k.when(k.compare("GE", inside, k.const(0.0, F64))):
        root = k.unary("sqrt", inside)
        # (half +- root, c) spans the kernel's complement; uses the sum without cancellation.
        far = k.select(k.compare("LT", half, k.const(0.0, F64)), k.binary("sub", half, root), k.binary("add", half, root))
        rotation = _rotation(k, far, c)
        _turn_rows(k, h, p, (0, n), rotation)
        _turn_columns(k, h, p, (0, p + 2), rotation)
        _turn_columns(k, z, p, (0, n), rotation)
        h.store(p + 1, p, k.const(0.0, F64))


def _double_step(k: Emitter, h: StackedMatrix, z: StackedMatrix, block: tuple[Value, Value], n: int, step: Value) -> None:
    """A step with two conjugate shifts, in real arithmetic: reflections of three rows that chase the bulge down."""
    low, high = block
    a, b, c, d = h.load(high - 1, high - 1), h.load(high - 1, high), h.load(high, high - 1), h.load(high, high)
    trace, det = k.binary("add", a, d), k.binary("sub", k.binary("mul", a, d), k.binary("mul", b, c))
    # Every tenth time exceptional shifts, in case these cycle.
    size = k.binary("add", k.unary("abs", c), k.unary("abs", h.load(high - 1, k.binary("max", high - 2, k.index(0)))))
    odd = k.compare("EQ", step % 10, k.index(0))
    trace = k.select(odd, k.binary("mul", k.const(1.5, F64), size), trace)
    det = k.select(odd, k.binary("mul", size, size), det)
    h00, h01, h10, h11 = h.load(low, low), h.load(low, low + 1), h.load(low + 1, low), h.load(low + 1, low + 1)
    square = k.binary("add", k.binary("mul", h00, h00), k.binary("mul", h01, h10))
    first = [k.binary("add", k.binary("sub", square, k.binary("mul", trace, h00)), det),
             k.binary("mul", h10, k.binary("sub", k.binary("add", h00, h11), trace)),
             k.binary("mul", h10, h.load(low + 2, low + 1))]
    with k.loop(low, high) as p:
        begins = k.compare("EQ", p, low)
        before = k.binary("max", p - 1, k.index(0))
        third = k.binary("min", p + 2, high)
        has_third = k.compare("LT", p + 1, high)
        x = [k.select(begins, first[0], h.load(p, before)), k.select(begins, first[1], h.load(p + 1, before)),
             k.select(has_third, k.select(begins, first[2], h.load(third, before)), k.const(0.0, F64))]
        reflector = _reflector(k, x)
        # Rows p, p + 1, p + 2, then the same columns; where there is no third, the reflector is zero there and leaves it unchanged.
        _mirror(k, reflector, (before, n), lambda j: [h.load(p, j), h.load(p + 1, j), h.load(third, j)],
                lambda j, y: _put(k, has_third, (p, p + 1, third), y, lambda i, value: h.store(i, j, value)))
        with k.when(k.unary("not", begins)):
            h.store(p + 1, before, k.const(0.0, F64))
            with k.when(has_third):
                h.store(third, before, k.const(0.0, F64))
        for m, rows in ((h, k.binary("min", p + 4, high + 1)), (z, k.index(n))):
            _mirror(k, reflector, (0, rows), lambda i, m=m: [m.load(i, p), m.load(i, p + 1), m.load(i, third)],  # type: ignore[misc]
                    lambda i, y, m=m: _put(k, has_third, (p, p + 1, third), y, lambda j, value: m.store(i, j, value)))  # type: ignore[misc]


def _put(k: Emitter, has_third: Value, places: Sequence[Value], values: Sequence[Value], store: Callable[[Value, Value], None]) -> None:
    store(places[0], values[0])
    store(places[1], values[1])
    with k.when(has_third):
        store(places[2], values[2])


def _reflector(k: Emitter, x: Sequence[Value]) -> tuple[list[Value], Value]:
    """v and 2 / v^T v of the reflection that makes x a multiple of the first unit vector; factor 0 where x is zero."""
    square = k.fma(x[0], x[0], k.fma(x[1], x[1], k.binary("mul", x[2], x[2])))
    length = k.unary("sqrt", square)
    v0 = k.select(k.compare("LT", x[0], k.const(0.0, F64)), k.binary("sub", x[0], length), k.binary("add", x[0], length))
    v = [v0, x[1], x[2]]
    norm = k.fma(v[0], v[0], k.fma(v[1], v[1], k.binary("mul", v[2], v[2])))
    nothing = k.compare("EQ", norm, k.const(0.0, F64))
    safe = k.select(nothing, k.const(1.0, F64), norm)
    return v, k.select(nothing, k.const(0.0, F64), k.binary("div", k.const(2.0, F64), safe))


def _mirror(k: Emitter, reflector: tuple[list[Value], Value], span: Span, load: Callable[[Value], Sequence[Value]],
            store: Callable[[Value, Sequence[Value]], None]) -> None:
    v, factor = reflector
    with k.loop(*span) as j:
        y = load(j)
        share = k.binary("mul", factor, k.fma(v[0], y[0], k.fma(v[1], y[1], k.binary("mul", v[2], y[2]))))
        store(j, [k.binary("sub", value, k.binary("mul", share, part)) for value, part in zip(y, v, strict=True)])


# ---------------------------------------------------------------- schur

def _schur_reference(run: Run, node: Node, a: Array) -> object:
    """By definition: an invariant subspace of one or two dimensions, an orthonormal basis that extends it, then the same for the rest."""
    lead, n, real = a.shape[:-2], a.shape[-1], a.dtype.kind != "c"
    wide = np.float64 if real else np.complex128
    form, basis = np.zeros(a.shape, wide), np.zeros(a.shape, wide)
    values = np.zeros((*lead, n), np.complex128)
    for batch in np.ndindex(*lead):
        t, q, j = a[batch].astype(wide), np.eye(n, dtype=wide), 0
        while j < n:
            found, vectors = np.linalg.eig(t[j:, j:])
            pair = real and bool(np.iscomplex(found[0]))
            span = np.stack([vectors[:, 0].real, vectors[:, 0].imag], 1) if pair else vectors[:, :1]
            span = span.real if real else span
            whole = np.eye(n, dtype=wide)
            whole[j:, j:] = np.linalg.qr(np.concatenate([span, np.eye(n - j, dtype=wide)], 1), "complete")[0]
            t, q = whole.conj().T @ t @ whole, q @ whole
            values[batch][j:j + 1 + pair] = [found[0], np.conj(found[0])][:1 + pair]
            t[j + 1 + pair:, j:j + 1 + pair] = 0
            j += 1 + pair
        form[batch], basis[batch] = t, q
    parts = [values.real.astype(a.dtype), values.imag.astype(a.dtype)] if real else [values.astype(a.dtype)]
    return form.astype(a.dtype), basis.astype(a.dtype), *parts, np.zeros(lead, np.int32)


def _schur_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    n, complex_ = ins[0].shape[-1], ins[0].dtype.is_complex
    dtype = C128 if complex_ else F64
    h, z = (StackedMatrix(k.scratch(dtype, (n, n)), ()) for _ in "hz")
    with independent(k, ins[0].shape[:-2]) as batch:
        begin(k, bound(ins[0], batch), h, z, n)
        (complex_schur if complex_ else real_schur)(k, h, z, n)
        with loops(k, [n, n]) as [i, j]:
            outs[0].store([*batch, i, j], k.convert(h.load(i, j), outs[0].dtype))
            outs[1].store([*batch, i, j], k.convert(z.load(i, j), outs[1].dtype))
        with loops(k, [n]) as [i]:
            if complex_:
                outs[2].store([*batch, i], k.convert(h.load(i, i), outs[2].dtype))
            else:
                re, im = _eigenvalue(k, h, i, n)
                outs[2].store([*batch, i], k.convert(re, outs[2].dtype))
                outs[3].store([*batch, i], k.convert(im, outs[3].dtype))
        outs[-1].store(batch, k.const(0, S32))


def _eigenvalue(k: Emitter, h: StackedMatrix, i: Value, n: int) -> tuple[Value, Value]:
    """Real and imaginary part of the eigenvalue at place i of a block triangular matrix; the positive one of a pair comes first."""
    zero = k.const(0.0, F64)
    before, after = k.binary("max", i - 1, k.index(0)), k.binary("min", i + 1, k.index(n - 1))
    first = k.binary("and", below(k, i, n - 1), k.compare("NE", h.load(after, i), zero))
    second = k.binary("and", k.compare("GT", i, k.index(0)), k.compare("NE", h.load(i, before), zero))
    p, q = k.select(second, before, i), k.select(second, i, after)
    a, b, c, d = h.load(p, p), h.load(p, q), h.load(q, p), h.load(q, q)
    half = k.const(0.5, F64)
    middle, apart = k.binary("mul", half, k.binary("add", a, d)), k.binary("mul", half, k.binary("sub", a, d))
    inside = k.unary("neg", k.binary("add", k.binary("mul", apart, apart), k.binary("mul", b, c)))
    size = k.unary("sqrt", k.binary("max", inside, zero))
    im = k.select(first, size, k.select(second, k.unary("neg", size), zero))
    return k.select(k.binary("or", first, second), middle, h.load(i, i)), im


def _schur_type(node: Node) -> Type:
    """The eigenvalues of real matrices are two arrays, of real and of imaginary parts."""
    a = stack_of(node, square=True)
    values = [a.like(a.rows)] * (1 if a.whole.dtype.is_complex else 2)
    return TupleType((a.whole, a.whole, *values, a.each(S32)))


schur = library("schur", 25.0, _schur_type, _schur_reference, _schur_nest,
                "``a = z t z^H`` with t triangular (of a real matrix: with blocks of two for conjugate pairs): t, z, eigenvalues, status.")
