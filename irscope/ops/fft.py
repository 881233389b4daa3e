"""Fourier transforms of any length: mixed radix where the length has small factors, Bluestein's chirps otherwise.

Complex numbers are pairs of values here, so that the butterflies stay plain sums and products. All tables are computed in double
precision during code generation.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import cos, floor, log2, pi, sin
from typing import Any

from irscope.graph import DType, Node, Op, TensorType, Type
from irscope.graph.dtypes import C64, C128, F32, F64
from irscope.graph.node import ArrayView, Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Fft
from irscope.ops.faults import TypeFault
from irscope.ops.nests import below, independent, loops
from irscope.ops.registry import declare
from irscope.ops.shapes import resized, size

Pair = tuple[Value, Value]
Load = Callable[[Value], Pair]


@dataclass(frozen=True, slots=True)
class ComplexArray:
    """Complex numbers in two arrays, of real and imaginary parts."""

    re: ArrayView
    im: ArrayView

    def load(self, at: Sequence[Value]) -> Pair:
        """The number at an index."""
        return self.re.load(at), self.im.load(at)

    def store(self, at: Sequence[Value], value: Pair) -> None:
        """Write the number at an index."""
        self.re.store(at, value[0])
        self.im.store(at, value[1])


RADICES = (4, 2, 3, 5, 7, 11, 13)


def _fft_type(node: Node) -> Type:
    infer.arity(node, 1)
    operand = infer.array(node, 0)
    kind, lengths = infer.attr(node, Fft.fft_type), infer.attr(node, Fft.fft_length)
    if not 1 <= len(lengths) <= 3:
        raise TypeFault(f"fft transforms 1 to 3 dimensions, but fft_length has {len(lengths)}")
    if operand.rank < len(lengths):
        raise TypeFault(f"fft of {len(lengths)} dimensions needs an operand of at least that rank, but got {infer.plain(operand)}")
    if kind == "RFFT":
        if operand.dtype not in (F32, F64):
            raise TypeFault(f"RFFT needs an operand of f32 or f64, but got {infer.plain(operand)}", "convert it first")
    elif not operand.dtype.is_complex:
        raise TypeFault(f"{kind} needs a complex operand, but got {infer.plain(operand)}", "make one with complex(re, im)")
    first = operand.rank - len(lengths)
    for i, length in enumerate(lengths):
        innermost = i == len(lengths) - 1
        expected = length // 2 + 1 if kind == "IRFFT" and innermost else length
        found = size(operand.shape[first + i])
        # XLA checks real transforms alone, and reads complex ones as if the lengths were right: within another row, or beyond the array.
        wanted = bool(found or length) if kind in ("RFFT", "IRFFT") else bool(found) and 0 not in lengths
        if found is not None and found != expected and wanted:
            raise TypeFault(f"dimension {first + i} of the operand {infer.plain(operand)} of {kind} must be {expected} "
                            f"for fft_length={{{','.join(map(str, lengths))}}}")
    last, shape = lengths[-1], list(operand.shape)
    if kind == "RFFT":
        shape[-1] = resized(shape[-1], last // 2 + 1) if last else shape[-1]
        return TensorType(C64 if operand.dtype is F32 else C128, tuple(shape))
    if kind == "IRFFT":
        shape[-1] = resized(shape[-1], last)
        return TensorType(_part(operand.dtype), tuple(shape))
    return infer.plain(operand)


def _part(dtype: DType) -> DType:
    """The element type of the parts of a complex type; of a real one, itself."""
    return F32 if dtype in (C64, F32) else F64


def _fft_reference(run: Run, node: Node, operand: Array) -> Array:
    lengths = Fft.of(node).fft_length
    t = infer.declared_array(node)
    if not operand.size or not t.elements or 0 in lengths:
        return np.zeros(t.dims(), t.dtype.numpy())
    axes = tuple(range(operand.ndim - len(lengths), operand.ndim))
    name: str = Fft.of(node).fft_type.lower() + "n"
    function: Callable[..., Array] = getattr(np.fft, name)
    wide = operand.astype(np.complex128 if operand.dtype.kind == "c" else np.float64)
    with np.errstate(all="ignore"):
        return function(wide, s=lengths, axes=axes).astype(t.dtype.numpy())


# ---------------------------------------------------------------- butterflies

def _add(k: Emitter, x: Pair, y: Pair) -> Pair:
    return k.binary("add", x[0], y[0]), k.binary("add", x[1], y[1])


def _sub(k: Emitter, x: Pair, y: Pair) -> Pair:
    return k.binary("sub", x[0], y[0]), k.binary("sub", x[1], y[1])


def _mul(k: Emitter, x: Pair, y: Pair) -> Pair:
    re = k.binary("sub", k.binary("mul", x[0], y[0]), k.binary("mul", x[1], y[1]))
    return re, k.binary("add", k.binary("mul", x[0], y[1]), k.binary("mul", x[1], y[0]))


def _turned(k: Emitter, x: Pair) -> Pair:
    """``-i * x``."""
    return x[1], k.unary("neg", x[0])


def _butterfly(k: Emitter, x: Sequence[Pair], dtype: DType) -> list[Pair]:
    """The transform of a few numbers."""
    if len(x) == 2:
        return [_add(k, x[0], x[1]), _sub(k, x[0], x[1])]
    if len(x) == 4:
        even, odd = _butterfly(k, x[0::2], dtype), _butterfly(k, x[1::2], dtype)
        odd[1] = _turned(k, odd[1])
        return [_add(k, even[0], odd[0]), _add(k, even[1], odd[1]), _sub(k, even[0], odd[0]), _sub(k, even[1], odd[1])]
    return _odd_butterfly(k, x, dtype)


def _odd_butterfly(k: Emitter, x: Sequence[Pair], dtype: DType) -> list[Pair]:
    """Any odd radix: elements j and r - j have the same cosines and opposite sines, so their sums and differences are enough."""
    r, half = len(x), len(x) // 2
    sums = [_add(k, x[j], x[r - j]) for j in range(1, half + 1)]
    differences = [_sub(k, x[j], x[r - j]) for j in range(1, half + 1)]
    out: list[Pair] = [x[0]] * r
    for total in sums:
        out[0] = _add(k, out[0], total)
    for f in range(1, half + 1):
        even, odd = x[0], (k.const(0.0, dtype), k.const(0.0, dtype))
        for j, (total, difference) in enumerate(zip(sums, differences, strict=True), 1):
            angle = 2 * pi * (f * j % r) / r
            c, s = k.const(cos(angle), dtype), k.const(sin(angle), dtype)
            even = k.fma(total[0], c, even[0]), k.fma(total[1], c, even[1])
            odd = k.fma(difference[0], s, odd[0]), k.fma(difference[1], s, odd[1])
        odd = _turned(k, odd)
        out[f], out[r - f] = _add(k, even, odd), _sub(k, even, odd)
    return out


def factors(n: int) -> list[int] | None:
    """The radices of a mixed-radix transform of length n, or None where a factor is too large."""
    found = []
    for r in RADICES:
        while n % r == 0:
            found.append(r)
            n //= r
    return found if n == 1 else None


# ---------------------------------------------------------------- one line

class LineTransform:
    """The transform of one line of ``n`` numbers: tables and scratch are created once, :meth:`run` is called in the loops over lines."""

    def __init__(self, k: Emitter, n: int, dtype: DType) -> None:
        self.k, self.n, self.dtype = k, n, dtype
        self.radices = factors(n) or []
        self.halves = [ComplexArray(k.scratch(dtype, (n,)), k.scratch(dtype, (n,))) for _ in "ab"]
        angles = -2 * pi * np.arange(n) / n
        self.twiddles = ComplexArray(k.table(np.cos(angles), dtype), k.table(np.sin(angles), dtype))

    def run(self, load: Load) -> Load:
        """Read a line by ``load`` and return the function that loads its transform."""
        done, source = 1, load
        for i, r in enumerate(self.radices):
            target = self.halves[i % 2]
            self._stage(source, target, r, done)
            source = partial(_element, target)
            done *= r
        return source

    def _stage(self, load: Load, target: ComplexArray, r: int, done: int) -> None:
        """One step of Stockham's algorithm: data interleaved by ``done`` becomes interleaved by ``done * r``."""
        k, m = self.k, self.n // (r * done)
        with loops(k, [m]) as [p], loops(k, [done]) as [q]:
            x = [load(q + (p + m * j) * done) for j in range(r)]
            for f, value in enumerate(_butterfly(k, x, self.dtype)):
                if f and m > 1:
                    value = _mul(k, value, self.twiddles.load([p * (f * done)]))
                target.store([q + (p * r + f) * done], value)


def _element(line: ComplexArray, j: Value) -> Pair:
    return line.load([j])


class Chirped:
    """A line of any length as a convolution with chirps, by lines whose length is a power of two. Summed in f64."""

    def __init__(self, k: Emitter, n: int, dtype: DType) -> None:
        self.k, self.n, self.dtype = k, n, dtype
        self.wide = 1
        while self.wide < 2 * n - 1:
            self.wide *= 2
        self.line = LineTransform(k, self.wide, F64)
        # t * t exceeds the resolution of the angle, but only its remainder counts.
        angles = pi * (np.arange(n, dtype=np.int64) ** 2 % (2 * n)) / n
        chirp = np.exp(1j * angles)
        wrapped = np.zeros(self.wide, np.complex128)
        wrapped[:n] = chirp
        wrapped[self.wide - n + 1:] = chirp[1:][::-1]
        spectrum = np.fft.fft(wrapped) / self.wide
        self.chirp = ComplexArray(k.table(chirp.real, F64), k.table(-chirp.imag, F64))
        self.spectrum = ComplexArray(k.table(spectrum.real, F64), k.table(spectrum.imag, F64))
        self.product = ComplexArray(k.scratch(F64, (self.wide,)), k.scratch(F64, (self.wide,)))

    def run(self, load: Load) -> Load:
        """Read a line by ``load`` and return the function that loads its transform."""
        k, product = self.k, self.product
        zero = k.const(0.0, F64)
        with loops(k, [self.n]) as [j]:
            x = load(j)
            product.store([j], _mul(k, (k.convert(x[0], F64), k.convert(x[1], F64)), self.chirp.load([j])))
        with k.loop(self.n, self.wide) as j:
            product.store([j], (zero, zero))
        forward = self.line.run(partial(_element, product))
        with loops(k, [self.wide]) as [j]:
            product.store([j], _mul(k, forward(j), self.spectrum.load([j])))
        # The inverse is a forward transform with real and imaginary parts swapped on both sides.
        back = self.line.run(partial(_element, ComplexArray(product.im, product.re)))

        def result(j: Any) -> Pair:
            turned = back(j)
            value = _mul(k, (turned[1], turned[0]), self.chirp.load([j]))
            return k.convert(value[0], self.dtype), k.convert(value[1], self.dtype)
        return result


def _line(k: Emitter, n: int, dtype: DType) -> LineTransform | Chirped:
    return Chirped(k, n, dtype) if factors(n) is None else LineTransform(k, n, dtype)


# ---------------------------------------------------------------- all lines, all dimensions

def _along(line: LineTransform | Chirped, shape: Sequence[int], d: int, inverse: bool, load: Callable[[list[Value]], Pair],
           store: Callable[[list[Value], Pair], None]) -> None:
    """Transform dimension ``d`` for all lines of ``shape``; keep as many results as it has."""
    k, n, dtype = line.k, line.n, line.dtype
    scale = k.const(1.0 / n, dtype)
    with independent(k, [1 if i == d else length for i, length in enumerate(shape)]) as at:
        def place(j: Value) -> list[Value]:
            return [*at[:d], j, *at[d + 1:]]

        def element(j: Value) -> Pair:
            re, im = load(place(j))
            return (im, re) if inverse else (re, im)
        result = line.run(element)
        with loops(k, [shape[d]]) as [j]:
            re, im = result(j)
            if inverse:
                re, im = k.binary("mul", im, scale), k.binary("mul", re, scale)
            store(place(j), (re, im))


def _reader(k: Emitter, view: ArrayView) -> Callable[[list[Value]], Pair]:
    def load(at: list[Value]) -> Pair:
        x = view.load(at)
        return (k.unary("real", x), k.unary("imag", x)) if view.dtype.is_complex else (x, k.const(0.0, view.dtype))
    return load


def _writer(k: Emitter, view: ArrayView) -> Callable[[list[Value], Pair], None]:
    return lambda at, value: view.store(at, k.complex(*value) if view.dtype.is_complex else value[0])


def _fft_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    kind, lengths = Fft.of(node).fft_type, Fft.of(node).fft_length
    source, out = ins[0], outs[0]
    if 0 in lengths or 0 in source.shape:
        with independent(k, out.shape) as at:
            out.store(at, k.const(0, out.dtype))
        return
    dtype, inverse = _part(out.dtype), kind in ("IFFT", "IRFFT")
    first = len(source.shape) - len(lengths)
    load, store = _reader(k, source), _writer(k, out)
    if kind == "IRFFT":
        _inverse_real(k, source, out, lengths, dtype)
        return
    # The last dimension goes first: a real operand is halved there.
    for i in reversed(range(len(lengths))):
        d = first + i
        _along(_line(k, lengths[i], dtype), out.shape, d, inverse, load, store)
        load = _reader(k, out)


def _inverse_real(k: Emitter, source: ArrayView, out: ArrayView, lengths: Sequence[int], dtype: DType) -> None:
    """Transform all dimensions but the last, then the last from its half of a symmetric spectrum."""
    first, last = len(source.shape) - len(lengths), len(source.shape) - 1
    load = _reader(k, source)
    if len(lengths) > 1:
        between = ComplexArray(k.scratch(dtype, source.shape), k.scratch(dtype, source.shape))
        for i in range(len(lengths) - 1):
            _along(_line(k, lengths[i], dtype), source.shape, first + i, True, load, between.store)
            load = between.load
    n = lengths[-1]

    def symmetric(at: list[Value]) -> Pair:
        j = at[last]
        near = below(k, j, n // 2 + 1)
        re, im = load([*at[:last], k.select(near, j, (k.index(n) - j) % n)])
        return re, k.select(near, im, k.unary("neg", im))
    _along(_line(k, n, dtype), out.shape, last, True, symmetric, _writer(k, out))


def _fft_cost(node: Node) -> float:
    result = infer.declared_array(node)
    whole = max(result.elements, infer.array(node, 0).elements)
    return 8.0 * whole * sum(floor(log2(n)) for n in Fft.of(node).fft_length if n > 1)


fft = declare(Op(
    "fft", work="contraction", infer=_fft_type, reference=_fft_reference, nest=_fft_nest, cost=_fft_cost,
    doc="Discrete Fourier transforms of the last dimensions. RFFT keeps the half of a real signal's spectrum, IRFFT starts from it."))
