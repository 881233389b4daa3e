"""Conversions between element types, exactly as the vocabulary defines them: saturation, rounding to nearest even, small float formats.

The floats below 32 bits are described by their fields; two formulas cover them all. To f32: shift the magnitude's bits to f32's exponent
field and correct the bias; for a denormal, set a fixed exponent and then subtract its value. From f32: round the mantissa in integer
arithmetic, or, where the result is denormal, by adding the float whose last place is the target's. No step computes with denormals of f32,
so the result does not depend on whether the processor flushes them to zero.
"""
from __future__ import annotations

from dataclasses import dataclass

from irscope.backends.llvm_code import Code
from irscope.backends.llvm_integer import cut
from irscope.backends.llvm_lanes import Lanes
from irscope.backends.llvm_types import Target, register, splat_text, suffix, vector
from irscope.graph import DTYPES, DType
from irscope.lower.expressions import limits


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A small float. ``special``: ``ieee`` (infinities and NaN in the last exponent), ``nan`` (the last code is NaN, no infinity),
    ``zero`` (the code of -0 is NaN), ``none`` (finite only)."""

    mantissa: int
    bias: int
    special: str
    largest: int  # the code of the largest finite magnitude


FORMATS: dict[DType, FloatFormat] = {
    DTYPES["f16"]: FloatFormat(10, 15, "ieee", 0x7BFF),
    DTYPES["f8e5m2"]: FloatFormat(2, 15, "ieee", 0x7B),
    DTYPES["f8e4m3"]: FloatFormat(3, 7, "ieee", 0x77),
    DTYPES["f8e3m4"]: FloatFormat(4, 3, "ieee", 0x6F),
    DTYPES["f8e4m3fn"]: FloatFormat(3, 7, "nan", 0x7E),
    DTYPES["f8e5m2fnuz"]: FloatFormat(2, 16, "zero", 0x7F),
    DTYPES["f8e4m3fnuz"]: FloatFormat(3, 8, "zero", 0x7F),
    DTYPES["f8e4m3b11fnuz"]: FloatFormat(3, 11, "zero", 0x7F),
    DTYPES["f4e2m1fn"]: FloatFormat(1, 1, "none", 0x7),
    DTYPES["f6e3m2fn"]: FloatFormat(2, 3, "none", 0x1F),
    DTYPES["f6e2m3fn"]: FloatFormat(3, 1, "none", 0x1F),
}
_F32, _F64, _BF16, _E8M0 = DTYPES["f32"], DTYPES["f64"], DTYPES["bf16"], DTYPES["f8e8m0fnu"]


def convert(code: Code, target: Target, x: str, source: DType, to: DType, lanes: int) -> str:
    """``x`` of ``source`` as ``to``."""
    if source.is_float and to.is_float:
        if source in (_F32, _F64) and to in (_F32, _F64):
            word = "fpext" if to is _F64 else "fptrunc"
            return code.pure(f"{word} {register(source, lanes)} {x} to {register(to, lanes)}", x)
        if to is _F32:
            return _from_small(code, target, x, source, lanes)
        if source is _F64:
            x = _round_to_odd(Lanes(code, "double", lanes), Lanes(code, "float", lanes), x)
        return _to_small(code, target, x, to, lanes)
    before, after = register(source, lanes), register(to, lanes)
    if to.is_float:
        word = "sitofp" if source.kind == "int" else "uitofp"
        return code.pure(f"{word} {before} {x} to {after}", x)
    if source.is_float:
        return _saturate(code, x, source, to, lanes)
    if before == after:
        return cut(code, x, to, lanes)
    wider = to.storage > source.storage or source.kind == "pred"
    word = ("sext" if source.kind == "int" else "zext") if wider else "trunc"
    return cut(code, code.pure(f"{word} {before} {x} to {after}", x), to, lanes)


def _saturate(code: Code, x: str, source: DType, to: DType, lanes: int) -> str:
    """Truncate to an integer; saturate values out of range, convert NaN to 0."""
    element = vector(f"i{8 * to.storage}", lanes)
    word = "fptosi" if to.kind == "int" else "fptoui"
    kind = register(source, lanes)
    name = f"@llvm.{word}.sat.{suffix(f'i{8 * to.storage}', lanes)}.{suffix('float' if source is _F32 else 'double', lanes)}"
    out = code.call(element, name, (kind, x))
    if to.bits < 8:
        low, high = limits(to)
        sign = "s" if to.kind == "int" else "u"
        short = suffix("i8", lanes)
        out = code.call(element, f"@llvm.{sign}min.{short}", (element, out), (element, splat_text(str(high), "i8", lanes)))
        out = code.call(element, f"@llvm.{sign}max.{short}", (element, out), (element, splat_text(str(low), "i8", lanes)))
    return out


def _resize(code: Code, x: str, before: str, after: str, lanes: int) -> str:
    word = "zext" if int(after[1:]) > int(before[1:]) else "trunc"
    return code.pure(f"{word} {vector(before, lanes)} {x} to {vector(after, lanes)}", x)


def _from_small(code: Code, target: Target, x: str, source: DType, lanes: int) -> str:
    if source.name == "f16" and target.f16c:
        half = code.pure(f"bitcast {vector('i16', lanes)} {x} to {vector('half', lanes)}", x)
        return code.pure(f"fpext {vector('half', lanes)} {half} to {vector('float', lanes)}", half)
    v = Lanes(code, "float", lanes)
    bits = _resize(code, x, f"i{8 * source.storage}", "i32", lanes)
    if source is _BF16:
        return v.float_of(v.int("shl", bits, v.ic(16)))
    if source is _E8M0:
        power = v.int("shl", bits, v.ic(23))
        power = v.isel(v.icmp("eq", bits, v.ic(0)), v.ic(1 << 22), power)
        return v.float_of(v.isel(v.icmp("eq", bits, v.ic(255)), v.ic(0x7FC00000), power))
    form = FORMATS[source]
    sign_bit = source.bits - 1
    magnitude = v.int("and", bits, v.ic((1 << sign_bit) - 1))
    sign = v.int("shl", v.int("and", bits, v.ic(1 << sign_bit)), v.ic(31 - sign_bit))
    moved = v.int("shl", magnitude, v.ic(23 - form.mantissa))
    normal = v.int("add", moved, v.ic((127 - form.bias) << 23))
    unit = v.ic((128 - form.bias) << 23)
    denormal = v.sub(v.float_of(v.int("or", moved, unit)), v.float_of(unit))
    out = v.isel(v.icmp("ult", magnitude, v.ic(1 << form.mantissa)), v.bits_of(denormal), normal)
    if form.special == "ieee":
        # The last exponent: infinity, or NaN with its payload in the upper mantissa bits.
        out = v.isel(v.icmp("ugt", magnitude, v.ic(form.largest)), v.int("or", out, v.ic(0x7F800000)), out)
    elif form.special == "nan":
        out = v.isel(v.icmp("ugt", magnitude, v.ic(form.largest)), v.ic(0x7FC00000), out)
    out = v.int("or", out, sign)
    if form.special == "zero":
        out = v.isel(v.icmp("eq", bits, v.ic(1 << sign_bit)), v.ic(0xFFC00000), out)
    return v.float_of(out)


def _to_small(code: Code, target: Target, x: str, to: DType, lanes: int) -> str:
    """From f32."""
    v = Lanes(code, "float", lanes)
    if to.name == "f16" and target.f16c:
        half = code.pure(f"fptrunc {vector('float', lanes)} {x} to {vector('half', lanes)}", x)
        return code.pure(f"bitcast {vector('half', lanes)} {half} to {vector('i16', lanes)}", half)
    bits = v.bits_of(x)
    storage = f"i{8 * to.storage}"
    if to is _BF16:
        even = v.int("and", v.int("lshr", bits, v.ic(16)), v.ic(1))
        rounded = v.int("add", v.int("add", bits, v.ic(0x7FFF)), even)
        quiet = v.int("or", bits, v.ic(0x400000))
        return _resize(code, v.int("lshr", v.isel(v.isnan(x), quiet, rounded), v.ic(16)), "i32", storage, lanes)
    magnitude = v.int("and", bits, v.ic(0x7FFFFFFF))
    if to is _E8M0:
        return _resize(code, _to_power(v, bits, magnitude), "i32", storage, lanes)
    form = FORMATS[to]
    sign = v.int("lshr", v.int("and", bits, v.ic(0x80000000)), v.ic(32 - to.bits))
    code_of = _magnitude(v, magnitude, form)
    nan_code, sign_bit = (1 << (to.bits - 1)) - 1, 1 << (to.bits - 1)
    beyond = v.icmp("ugt", code_of, v.ic(form.largest))
    if form.special == "ieee":
        code_of = v.isel(beyond, v.ic(form.largest + 1), code_of)
        quiet = v.ic(form.largest + 1 + (1 << (form.mantissa - 1)))
        out = v.int("or", v.isel(v.isnan(x), quiet, code_of), sign)
    elif form.special == "nan":
        out = v.int("or", v.isel(v.either(beyond, v.isnan(x)), v.ic(nan_code), code_of), sign)
    elif form.special == "zero":
        signed = v.isel(v.icmp("eq", code_of, v.ic(0)), v.ic(0), v.int("or", code_of, sign))
        out = v.isel(v.either(beyond, v.isnan(x)), v.ic(sign_bit), signed)
    else:
        # Finite only: saturates, and NaN becomes a zero of the other sign, as in ml_dtypes.
        out = v.int("or", v.isel(beyond, v.ic(form.largest), code_of), sign)
        out = v.isel(v.isnan(x), v.int("xor", sign, v.ic(sign_bit)), out)
    return _resize(code, out, "i32", storage, lanes)


def _magnitude(v: Lanes, magnitude: str, form: FloatFormat) -> str:
    """The rounded code of |x|; too large ones yield codes beyond the largest."""
    drop = 23 - form.mantissa
    even = v.int("and", v.int("lshr", magnitude, v.ic(drop)), v.ic(1))
    rounded = v.int("add", v.int("add", magnitude, v.ic((1 << (drop - 1)) - 1)), even)
    normal = v.int("sub", v.int("lshr", rounded, v.ic(drop)), v.ic((127 - form.bias) << form.mantissa))
    anchor = 2.0 ** (1 - form.bias - form.mantissa + 23)
    denormal = v.int("sub", v.bits_of(v.add(v.float_of(magnitude), v.c(anchor))), v.bits_of(v.c(anchor)))
    return v.isel(v.icmp("ult", magnitude, v.ic((128 - form.bias) << 23)), denormal, normal)


def _to_power(v: Lanes, bits: str, magnitude: str) -> str:
    """f8e8m0fnu: the nearest power of two (ties round up), NaN for values that are not positive or too large."""
    rounded = v.int("lshr", v.int("add", magnitude, v.ic(0x400000)), v.ic(23))
    # Below 2**-126 the exponent field is 0: 2**-127 is code 0, and larger values round up, as in ml_dtypes.
    small = v.isel(v.icmp("ugt", magnitude, v.ic(0x400000)), v.ic(1), v.ic(0))
    out = v.isel(v.icmp("ult", magnitude, v.ic(0x800000)), small, rounded)
    beyond = v.either(v.icmp("sle", bits, v.ic(0)), v.icmp("ugt", out, v.ic(254)))
    return v.isel(beyond, v.ic(255), out)


def _round_to_odd(d: Lanes, f: Lanes, x: str) -> str:
    """f64 to f32, rounded to odd (inexact results get an odd last bit), so that rounding again to fewer bits equals rounding once."""
    code = d.code
    near = code.pure(f"fptrunc {d.kind} {x} to {f.kind}", x)
    back = code.pure(f"fpext {f.kind} {near} to {d.kind}", near)
    bits = f.bits_of(near)
    inexact = d.fcmp("one", back, x)
    even = f.icmp("eq", f.int("and", bits, f.ic(1)), f.ic(0))
    grew = d.gt(d.abs(back), d.abs(x))
    moved = f.isel(grew, f.int("sub", bits, f.ic(1)), f.int("add", bits, f.ic(1)))
    return f.float_of(f.isel(f.both(inexact, even), moved, bits))
