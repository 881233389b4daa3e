"""Operators that change the element type or round to fewer bits."""
from __future__ import annotations

from irscope.graph import DTYPES, Kind, Node, Op, TensorType, Type, dtype_of
from irscope.graph.dtypes import F32, F64
from irscope.graph.node import Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops import numerics
from irscope.ops.attributes import ReducePrecision
from irscope.ops.faults import TypeFault
from irscope.ops.formula import FormulaTerm
from irscope.ops.infer import arity, array, attr, declared_array, kind_of, plain
from irscope.ops.numerics import dtype_of_result
from irscope.ops.registry import declare
from irscope.ops.shapes import same_sizes

# ---- convert


def _infer_convert(node: Node) -> Type:
    arity(node, 1)
    return TensorType(declared_array(node).dtype, array(node, 0).shape)


convert = declare(Op(
    "convert", doc="The value in another type: floats to integers truncate and saturate, NaN becomes 0; integers wrap; to pred is != 0.",
    kind=Kind.ELEMENTWISE, infer=_infer_convert, reference=lambda run, node, x: numerics.rounded(x, dtype_of_result(node)),
    scalar=lambda k, node, x: k.convert(x, dtype_of_result(node))))


# ---- reduce-precision

def _infer_reduce_precision(node: Node) -> Type:
    arity(node, 1)
    t = array(node, 0)
    kind_of(node, t, ("float",))
    if (bits := attr(node, ReducePrecision.exponent_bits)) < 1:
        raise TypeFault(f"reduce-precision needs at least 1 exponent bit, but has exponent_bits={bits}", "1 bit separates 0 from infinity")
    if (bits := attr(node, ReducePrecision.mantissa_bits)) < 0:
        raise TypeFault(f"reduce-precision has mantissa_bits={bits}, which is negative")
    return plain(t)


def _reduce_precision(run: Run, node: Node, x: Array) -> Array:
    wide = x if dtype_of(np.asarray(x).dtype).has_infinity else numerics.widen(x)
    kept = ReducePrecision.of(node)
    reduced = numerics.reduce_precision(np.asarray(wide), kept.exponent_bits, kept.mantissa_bits)
    return numerics.convert(reduced, dtype_of_result(node))


def _reduce_precision_scalar(k: Emitter, node: Node, x: Value) -> Value:
    dtype = x.dtype
    if not dtype.has_infinity:
        return k.convert(_reduced(k, k.convert(x, F32), node), dtype)
    return _reduced(k, x, node)


def _reduced(k: Emitter, x: Value, node: Node) -> Value:
    """The bit arithmetic of :func:`irscope.ops.numerics.reduce_precision`."""
    kept = ReducePrecision.of(node)
    dtype, exponent_bits, mantissa_bits = x.dtype, kept.exponent_bits, kept.mantissa_bits
    mantissa, exponent = dtype.fraction, dtype.exponent
    infinity = (1 << exponent) - 1 << mantissa
    pattern = FormulaTerm(k, k.bitcast(x, DTYPES[f"u{dtype.bits}"]))
    sign, magnitude = pattern & 1 << dtype.bits - 1, pattern & (1 << dtype.bits - 1) - 1
    result = magnitude
    if mantissa_bits < mantissa:
        dropped = mantissa - mantissa_bits
        result = magnitude + (magnitude >> dropped & 1) + ((1 << dropped - 1) - 1) & ~((1 << dropped) - 1) & (1 << dtype.bits) - 1
    if exponent_bits < exponent:
        bias, reduced = (1 << exponent - 1) - 1, (1 << exponent_bits - 1) - 1
        shifted = result >> mantissa
        result = (shifted > bias + reduced).where(result.lift(infinity), (shifted <= bias - reduced).where(result.lift(0), result))
    nan = magnitude > infinity
    result = nan.where(pattern if mantissa_bits > 0 else sign | infinity, result | sign)
    return k.bitcast(result.value, dtype)


reduce_precision = declare(Op(
    "reduce-precision", doc="Rounded to a float of fewer bits (nearest even), too large to infinity, too small to zero, and back.",
    kind=Kind.ELEMENTWISE, work="reduction", weight=4, infer=_infer_reduce_precision, reference=_reduce_precision,
    scalar=_reduce_precision_scalar))


# ---- stochastic-convert

def _infer_stochastic_convert(node: Node) -> Type:
    arity(node, 2)
    x, noise = array(node, 0), array(node, 1)
    kind_of(node, x, ("float",))
    kind_of(node, noise, ("uint",), "random operand")
    if x.dtype.bits != noise.dtype.bits:
        raise TypeFault(f"both operands of stochastic-convert have the same bits, but they are {plain(x)} and {plain(noise)}")
    if not same_sizes(x.shape, noise.shape):
        raise TypeFault(f"operands of stochastic-convert disagree on shape: {plain(x)} and {plain(noise)}")
    return TensorType(declared_array(node).dtype, x.shape)


def _stochastic_convert(run: Run, node: Node, x: Array, noise: Array) -> Array:
    """To an integer: round up with the probability of the fraction. To a narrower float: add noise below the bits that are kept."""
    dtype = dtype_of_result(node)
    with np.errstate(all="ignore"):
        if dtype.is_integer:
            wide = numerics.widen(x).astype(np.float64)
            whole = np.trunc(wide)
            up = np.abs(wide - whole) > noise.astype(np.float64) / 2.0 ** (8 * noise.dtype.itemsize)
            return numerics.convert(whole + np.where(up, np.copysign(1.0, wide), 0), dtype)
        source, target = dtype_of(np.asarray(x).dtype).fraction, dtype.fraction
        if target >= source:
            return numerics.convert(x, dtype)
        bits = np.asarray(x).reshape(-1).view(noise.dtype)
        mask = np.asarray((1 << source - target) - 1, noise.dtype)
        noisy = bits + (noise.reshape(-1) & mask) & ~mask
        rounded = np.where(np.isfinite(numerics.widen(x)).reshape(-1), noisy, bits).astype(noise.dtype)
        return numerics.convert(rounded.view(np.asarray(x).dtype).reshape(np.shape(x)), dtype)


def _stochastic_convert_scalar(k: Emitter, node: Node, x: Value, noise: Value) -> Value:
    dtype, source_dtype = dtype_of_result(node), x.dtype
    if dtype.is_integer:
        wide = FormulaTerm(k, k.convert(x, F64))
        whole = (wide < 0).where(wide.unary("ceil"), wide.unary("floor"))
        chance = FormulaTerm(k, k.convert(noise, F64)) * 2.0 ** -source_dtype.bits
        up = (wide - whole).unary("abs") > chance
        step = up.where((wide < 0).where(wide.lift(-1), wide.lift(1)), 0)
        return k.convert((whole + step).value, dtype)
    source, target = source_dtype.fraction, dtype.fraction
    if target >= source:
        return k.convert(x, dtype)
    mask = (1 << source - target) - 1
    bits = FormulaTerm(k, k.bitcast(x, DTYPES[f"u{source_dtype.bits}"]))
    noisy = bits + (FormulaTerm(k, noise) & mask) & ~mask
    finite = FormulaTerm(k, k.unary("is_finite", x))
    return k.convert(k.bitcast(finite.where(noisy, bits).value, source_dtype), dtype)


stochastic_convert = declare(Op(
    "stochastic-convert", doc="Stochastic rounding, with the random bits of the second operand.", kind=Kind.ELEMENTWISE,
    infer=_infer_stochastic_convert, reference=_stochastic_convert, scalar=_stochastic_convert_scalar))
