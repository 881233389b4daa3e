"""HLO's arithmetic in numpy, for the references of scalar operators.

As XLA's CPU backend does it: floats narrower than 32 bits are widened to f32 and rounded once at the end, 4-bit and narrower
integers are computed in 8 bits and wrapped. Where :func:`denormals` is set so, all arithmetic flushes denormal f32 and f64 to zeros of
their sign (negate, abs, select and operators that only move bits keep them). No function warns.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import erf as _erf

from irscope.graph import DType, Node, TensorType, dtype_of
from irscope.graph.dtypes import F64
from irscope.graph.node import Run
from irscope.lazy import Array, np

Function = Callable[..., Array]


_flushing: ContextVar[bool] = ContextVar("flushing", default=True)


@contextmanager
def denormals(flush: bool) -> Iterator[None]:
    """A context in which references flush denormals to zero (as XLA's CPU backend does), or keep them."""
    before = _flushing.set(flush)
    try:
        yield
    finally:
        _flushing.reset(before)


def numeric(function: Function) -> Callable[..., Array]:
    """A reference that widens its operands, applies ``function`` and rounds to the element type of the node.

    A result of higher precision than the operands is computed in its precision.
    """
    def reference(run: Run, node: Node, *operands: Array) -> Array:
        dtype = dtype_of_result(node)
        with np.errstate(all="ignore"):
            wide = [flushed(widen(o)) for o in operands]
            if dtype is F64:
                wide = [o.astype(np.float64) if o.dtype == np.float32 else o for o in wide]
            return flushed(convert(flushed(function(*wide)), dtype))
    return reference


def bitwise(function: Function) -> Callable[..., Array]:
    """A reference like :func:`numeric` for operators that only manipulate bits: denormals are kept."""
    def reference(run: Run, node: Node, *operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return rounded(function(*map(widen, operands)), dtype_of_result(node))
    return reference


def sized(function: Function) -> Callable[..., Array]:
    """A reference for integers that depends on the width of the type: ``function(bits, *operands)``."""
    def reference(run: Run, node: Node, *operands: Array) -> Array:
        dtype = dtype_of_result(node)
        return convert(function(dtype.bits, *map(widen, operands)), dtype)
    return reference


def flushed(x: Array) -> Array:
    """f32 and f64 with denormals flushed to zero, unless they are kept."""
    if not _flushing.get() or x.dtype not in (np.float32, np.float64):
        return x
    denormal = (np.abs(x) < np.finfo(x.dtype).tiny) & (x != 0)
    return np.where(denormal, np.copysign(np.zeros((), x.dtype), x), x) if denormal.any() else x


def dtype_of_result(node: Node) -> DType:
    """The element type of a node's result, which is an array."""
    assert isinstance(node.type, TensorType)
    return node.type.dtype


def widen(x: Array) -> Array:
    """The same values in a type that numpy computes in: f32 for narrow floats, 8 bits for narrow integers; c64 as c128,
    because numpy's complex functions cancel in f32."""
    x = np.asarray(x)
    name = x.dtype.name
    if name in ("float16", "bfloat16") or name.startswith(("float8_", "float6_", "float4_")):
        return x.astype(np.float32)
    if name in _NARROW_INTEGERS:
        return x.astype(_NARROW_INTEGERS[name])
    return x.astype(np.complex128) if name == "complex64" else x


_NARROW_INTEGERS = {"int1": "int8", "int2": "int8", "int4": "int8", "uint1": "uint8", "uint2": "uint8", "uint4": "uint8"}


def convert(x: Array, dtype: DType) -> Array:
    """``convert``: floats to integers truncate and saturate, NaN to 0; integers wrap; anything to pred is ``!= 0``."""
    x = np.asarray(x)
    target = dtype.numpy()
    if x.dtype == target:
        return x
    with np.errstate(all="ignore"):
        x = flushed(widen(x))
        if dtype.kind == "pred":
            return np.asarray(x != 0)
        if is_complex(x) and not dtype.is_complex:
            x = x.real
        if dtype.is_integer:
            return _truncated(x, dtype) if x.dtype.kind == "f" else x.astype(target)
        if is_integer(x) and x.dtype.itemsize == 8 and dtype.bits < 32:
            # ml_dtypes converts through f32, which would round twice; no relevant 64-bit integer needs more precision than f64 has.
            x = x.astype(np.float64)
        return x.astype(target)


def rounded(x: Array, dtype: DType) -> Array:
    """:func:`convert`, but between f32 and narrower floats by their bits: denormals are kept, as in XLA's and irscope's code."""
    if np.asarray(x).dtype == dtype.numpy():
        return np.asarray(x)
    wide = widen(x)
    if wide.dtype != np.float32 or not dtype.is_float or dtype.bits > 32:
        return convert(x, dtype)
    with np.errstate(all="ignore"):
        return wide.astype(dtype.numpy())


def _truncated(x: Array, dtype: DType) -> Array:
    low = -(1 << dtype.bits - 1) if dtype.kind == "int" else 0
    high = (1 << dtype.bits - (dtype.kind == "int")) - 1
    whole = np.trunc(np.where(np.isnan(x), 0, x))
    # float(high) may round up to high + 1: everything from there on saturates, everything below is exact.
    inside = np.where((whole > low) & (whole < float(high)), whole, 0).astype(np.int64 if dtype.kind == "int" else np.uint64)
    full = np.where(whole >= float(high), high, np.where(whole <= low, low, inside))
    return full.astype(np.int64 if dtype.kind == "int" else np.uint64).astype(dtype.numpy())


def common_shape(*arrays: Array) -> tuple[int, ...]:
    """The shape to which arrays broadcast, of any rank: numpy's own function has 32 dimensions at most."""
    shapes = [np.shape(a) for a in arrays]
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))


def is_integer(x: Array) -> bool:
    """Whether an array holds integers."""
    return bool(x.dtype.kind in "iu")


def is_complex(x: Array) -> bool:
    """Whether an array holds complex numbers."""
    return bool(x.dtype.kind == "c")


def divide(x: Array, y: Array) -> Array:
    """Integers truncate; x/0 is all ones, INT_MIN/-1 is INT_MIN."""
    if not is_integer(x):
        return np.divide(x, y)
    zero = y == 0
    quotient = _truncated_quotient(x, _harmless(y))
    return np.where(zero, np.asarray(-1).astype(x.dtype), quotient)


def remainder(x: Array, y: Array) -> Array:
    """The remainder, with the sign of the dividend; integers: x rem 0 is x."""
    if not is_integer(x):
        return np.fmod(x, y)
    safe = _harmless(y)
    return np.where(y == 0, x, x - _truncated_quotient(x, safe) * safe)


def _harmless(y: Array) -> Array:
    """The divisor, with 0 replaced by 1 (callers handle it)."""
    return np.where(y == 0, np.asarray(1, y.dtype), y)


def _truncated_quotient(x: Array, y: Array) -> Array:
    floored = x // y
    if x.dtype.kind == "u":
        return floored
    return np.asarray(floored + ((floored * y != x) & ((x < 0) != (y < 0))).astype(x.dtype))


def maximum(x: Array, y: Array) -> Array:
    """NaN when either is NaN; 0 is above -0."""
    result = np.maximum(x, y)
    if x.dtype.kind != "f":
        return result
    with np.errstate(over="ignore", invalid="ignore"):  # the sum is taken of zeros alone
        return np.where((x == 0) & (y == 0), x + y, result)


def minimum(x: Array, y: Array) -> Array:
    """NaN when either is NaN; -0 is below 0."""
    result = np.minimum(x, y)
    if x.dtype.kind != "f":
        return result
    with np.errstate(over="ignore", invalid="ignore"):  # the sum is taken of zeros alone
        return np.where((x == 0) & (y == 0), -(-x - y), result)


def power(x: Array, y: Array) -> Array:
    """Floats as in C; integers wrap, and a negative exponent yields 0 unless the base is 1."""
    if not is_integer(x):
        # XLA returns 1 for exponent 0 and 0 for base 0 with a positive exponent, where numpy's complex power returns NaN.
        result = np.power(x, y)
        return np.where(y == 0, np.asarray(1, result.dtype), result) if is_complex(result) else result
    result = np.ones(common_shape(x, y), x.dtype)
    base, exponent = x + np.zeros_like(result), y.astype(np.uint64)
    for _ in range(x.dtype.itemsize * 8):
        result = np.where(exponent & np.uint64(1) != 0, result * base, result)
        base = base * base
        exponent = exponent >> np.uint64(1)
    return np.where((y < 0), (x == 1).astype(x.dtype), result)


def shift_left(x: Array, y: Array) -> Array:
    """0 where the amount is negative or as wide as the type."""
    inside = _shiftable(x, y)
    return np.where(inside, np.left_shift(x, np.where(inside, y, 0)), 0).astype(x.dtype)


def shift_right_logical(bits: int, x: Array, y: Array) -> Array:
    """Shifts in zeros; 0 where the amount is out of range."""
    inside = (y >= 0) & (y < bits)
    pattern = unsigned(x, bits)
    return np.where(inside, pattern >> np.where(inside, y, 0).astype(pattern.dtype), np.zeros((), pattern.dtype))


def shift_right_arithmetic(x: Array, y: Array) -> Array:
    """Shifts in the sign bit; all sign bits where the amount is out of range."""
    signed = np.dtype(f"i{x.dtype.itemsize}")
    amount = np.where(_shiftable(x, y), y, x.dtype.itemsize * 8 - 1)
    return np.asarray(np.right_shift(x.astype(signed), amount.astype(signed)).astype(x.dtype))


def _shiftable(x: Array, y: Array) -> Array:
    return np.asarray((y >= 0) & (y < x.dtype.itemsize * 8))


def sign(x: Array) -> Array:
    """The sign; signed zeros and NaN are kept; a complex number becomes z/abs(z)."""
    if is_complex(x):
        size = np.abs(x)
        return np.where(size == 0, np.asarray(0, x.dtype), x / np.where(size == 0, 1, size))
    if x.dtype.kind == "f":
        return np.where((x == 0) | np.isnan(x), x, np.copysign(np.asarray(1, x.dtype), x))
    return np.sign(x)


def round_away(x: Array) -> Array:
    """To the nearest whole number, halves away from zero."""
    whole = np.trunc(x)
    return np.asarray(np.copysign(whole + np.copysign((np.abs(x - whole) >= 0.5).astype(x.dtype), x), x))


def logistic(x: Array) -> Array:
    """``1 / (1 + exp(-x))``."""
    return 1 / (1 + np.exp(-x))


def rsqrt(x: Array) -> Array:
    """``1 / sqrt(x)``."""
    return (1 / np.sqrt(x)).astype(x.dtype)


def erf(x: Array) -> Array:
    """The error function, from the C library: numpy has none."""
    return np.asarray(np.frompyfunc(_erf, 1, 1)(x.astype(np.float64))).astype(np.float64).astype(x.dtype)


def bitwise_not(x: Array) -> Array:
    """All bits inverted; logical on pred."""
    return np.logical_not(x) if x.dtype.kind == "b" else np.invert(x)


def count_ones(bits: int, x: Array) -> Array:
    """The number of set bits."""
    return np.asarray(sum((unsigned(x, bits) >> bit) & 1 for bit in range(bits)))


def count_leading_zeros(bits: int, x: Array) -> Array:
    """The number of zeros above the highest set bit; the width for 0."""
    pattern = unsigned(x, bits)
    return np.asarray(bits - sum((pattern >> bit != 0).astype(np.int64) for bit in range(bits)))


def unsigned(x: Array, bits: int) -> Array:
    """The low ``bits`` bits of integers, as unsigned integers."""
    pattern = np.asarray(x).reshape(-1).view(np.dtype(f"u{x.dtype.itemsize}")).reshape(np.shape(x))
    return pattern if bits == x.dtype.itemsize * 8 else pattern & np.asarray((1 << bits) - 1, pattern.dtype)


def multiply_high(bits: int, x: Array, y: Array) -> Array:
    """The upper half of the product."""
    if bits < 64:
        # The bits that are kept are those of the product modulo 2**64, signed or not.
        return (x.astype(np.int64) * y.astype(np.int64) >> np.asarray(bits, np.int64)).astype(x.dtype)
    # Schoolbook on 32-bit halves; the upper halves carry the sign.
    half, mask = np.asarray(32, x.dtype), np.asarray(0xFFFFFFFF, x.dtype)
    x0, x1, y0, y1 = x & mask, x >> half, y & mask, y >> half
    low = x0.astype(np.uint64) * y0.astype(np.uint64)
    middle = x1 * y0 + (low >> np.uint64(32)).astype(x.dtype)
    other = x0 * y1 + (middle & mask)
    return np.asarray(x1 * y1 + (middle >> half) + (other >> half))


def total_order(x: Array) -> Array:
    """Integers that order floats as IEEE's total order does: -NaN, -inf ... -0, 0 ... inf, NaN."""
    bits = x.reshape(-1).view(np.dtype(f"i{x.dtype.itemsize}")).reshape(x.shape)
    return np.where(bits < 0, np.iinfo(bits.dtype).max ^ bits, bits)


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round to fewer mantissa bits (nearest even), then overflow to infinity and flush below the smallest normal to zero.

    ``x`` is f16, bf16, f32 or f64; NaN stays NaN while a mantissa bit is left.
    """
    dtype, word = dtype_of(x.dtype), np.dtype(f"u{x.dtype.itemsize}")
    mantissa, exponent = dtype.fraction, dtype.exponent
    pattern = np.asarray(x).reshape(-1).view(word)

    def const(value: int) -> Array:
        return np.asarray(value, word)
    infinity = const((1 << exponent) - 1 << mantissa)
    magnitude, sign_bit = pattern & const((1 << dtype.bits - 1) - 1), pattern & const(1 << dtype.bits - 1)
    result = magnitude
    if mantissa_bits < mantissa:
        dropped = mantissa - mantissa_bits
        odd = (magnitude >> const(dropped)) & const(1)
        rounded = magnitude + odd + const((1 << dropped - 1) - 1)
        result = rounded & const(~((1 << dropped) - 1) & (1 << dtype.bits) - 1)
    if exponent_bits < exponent:
        bias, small_bias = (1 << exponent - 1) - 1, (1 << exponent_bits - 1) - 1
        stored = result >> const(mantissa)
        result = np.where(stored > bias + small_bias, infinity, np.where(stored <= bias - small_bias, const(0), result))
    result = np.where(magnitude > infinity, pattern if mantissa_bits > 0 else sign_bit | infinity, result | sign_bit)
    return result.astype(word).view(x.dtype).reshape(np.shape(x))


def atan2(y: Array, x: Array) -> Array:
    """The angle of a point; for complex numbers by its definition with the logarithm."""
    if not is_complex(x):
        return np.arctan2(y, x)
    return np.asarray(-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)))


def cbrt(x: Array) -> Array:
    """The cube root, the principal one of complex numbers."""
    return np.where(x == 0, x, np.power(x, 1 / 3)) if is_complex(x) else np.cbrt(x)


def complex_of(re: Array, im: Array) -> Array:
    """Complex numbers from parts, without arithmetic that would lose signed zeros and infinities."""
    shape = common_shape(re, im)
    parts = np.stack([np.broadcast_to(re, shape), np.broadcast_to(im, shape)], -1)
    return parts.view(np.complex64 if parts.dtype == np.float32 else np.complex128)[..., 0]


def bits_of(x: Array) -> Array:
    """The stored bits as unsigned integers."""
    x = np.ascontiguousarray(x)
    return x.reshape(-1).view(np.dtype(f"u{x.dtype.itemsize}")).reshape(x.shape)


def from_bits(pattern: Array, dtype: DType) -> Array:
    """Values of ``dtype`` from their bits; types below a byte take the low bits, sign extended where they are signed."""
    target = dtype.numpy()
    stored = pattern.astype(np.dtype(f"u{target.itemsize}"))
    if dtype.is_integer and dtype.bits < 8:
        unsigned_value = stored & ((1 << dtype.bits) - 1)
        top = 1 << dtype.bits - 1 if dtype.kind == "int" else 0
        return ((unsigned_value ^ top).astype(np.int16) - top).astype(target)
    return stored.reshape(-1).view(target).reshape(stored.shape)


def reinterpreted(flat: Array, source: DType, target: DType) -> Array:
    """The bits of a row of elements as elements of another type, low bits first."""
    if source.bits >= 8 and target.bits >= 8:
        return np.ascontiguousarray(flat).view(target.numpy())
    # Types below a byte take one each in memory, so views do not do: shift.
    pattern = bits_of(flat).astype(np.uint64) & np.uint64((1 << source.bits) - 1)
    if source.bits > target.bits:
        shifts = np.arange(source.bits // target.bits, dtype=np.uint64) * np.uint64(target.bits)
        pattern = (pattern[:, None] >> shifts & np.uint64((1 << target.bits) - 1)).reshape(-1)
    elif source.bits < target.bits:
        ratio = target.bits // source.bits
        shifts = np.arange(ratio, dtype=np.uint64) * np.uint64(source.bits)
        pattern = np.bitwise_or.reduce(pattern.reshape(-1, ratio) << shifts, axis=-1)
    return from_bits(pattern, target)
