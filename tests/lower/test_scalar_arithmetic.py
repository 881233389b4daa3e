"""Every scalar operation of every element type: on one lane, on vectors and on constants, against Python's integers and numpy's doubles."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import BF16, C64, C128, F16, F32, F64, PRED, S32, S64, U8, U64
from irscope.lower.build import KernelBuilder
from irscope.lower.expressions import limits
from irscope.lower.interpret import interpret_kernel
from irscope.lower.tile import Expr
from irscope.ops.vocabulary import COMPARE

Array = Any
INTEGERS = [DTYPES[n] for n in ("s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")]
FLOATS = [F16, BF16, F32, F64]
S4, U4 = DTYPES["s4"], DTYPES["u4"]


def run(dtype: DType, result: DType, operands: Sequence[Array], build: Callable[..., Expr], lanes: int) -> Array:
    """An operation on each element of some arrays, by the interpreter of the tile IR; ``lanes`` 0: on constants."""
    n = len(operands[0])
    k = KernelBuilder("k")
    ins = [k.buffer(f"x{i}", dtype, (n,), "in") for i in range(len(operands))]
    out = k.buffer("out", result, (n,), "out")
    if not lanes:
        for j in range(n):
            k.store(out, j, build(k, *(k.const(x[j].item() if dtype.numpy().kind in "biufc" else float(x[j]), dtype) for x in operands)))
    else:
        assert n % lanes == 0
        with k.loop(0, n, lanes) as i:
            value = build(k, *(k.load(x, i, lanes) for x in ins))
            k.store(out, i, k.splat(value, lanes))
    found = np.zeros(n, result.numpy())
    interpret_kernel(k.finish(), [*(np.asarray(x).astype(dtype.numpy()) for x in operands), found])
    return found


def agrees(got: Array, want: Sequence[Any], dtype: DType, what: str) -> None:
    """Integers and truth values exactly; floats to the last digit of their type, zeros with their sign."""
    for number, (g, w) in enumerate(zip(got.tolist(), want, strict=True)):
        if dtype.is_complex:
            fine = cmath_close(g, w, 2e-6 if dtype is C64 else 1e-12)
        elif dtype.is_float:
            g, w = float(g), float(w)
            tolerance = {16: 1.01 * 2.0 ** -dtype.fraction, 32: 3e-7, 64: 1e-14}[dtype.bits]
            fine = (math.isnan(g) and math.isnan(w)) or (g == w and math.copysign(1, g) == math.copysign(1, w)) or (
                math.isfinite(g) and math.isfinite(w) and abs(g - w) <= tolerance * abs(w))
        else:
            fine = int(g) == int(w)
        assert fine, f"{what}, place {number}: {g}, not {w}"


def cmath_close(g: complex, w: complex, tolerance: float) -> bool:
    if math.isnan(w.real) or math.isnan(w.imag):
        return math.isnan(g.real) == math.isnan(w.real) and math.isnan(g.imag) == math.isnan(w.imag)
    return g == w or abs(g - w) <= tolerance * max(1.0, abs(w))


# ---- integers

@cache
def integers(dtype: DType) -> list[int]:
    """Values at which arithmetic goes wrong, as many as fill vectors of 4."""
    low, high = limits(dtype)
    found = sorted({low, low + 1, high, high - 1, 0, 1, 2, 3, 5, *(v for v in (-1, -2, -5) if v >= low), min(high, 6), min(high, dtype.bits)})
    return (found + [0] * 3)[:len(found) + -len(found) % 4]


def wrapped(value: int, dtype: DType) -> int:
    low, _high = limits(dtype)
    return (value - low) % (1 << dtype.bits) + low


def truncated(a: int, b: int) -> int:
    return -1 if not b else int(math.copysign(1, a * b)) * (abs(a) // abs(b)) if a * b else 0


def shifted(a: int, b: int, t: DType, name: str) -> int:
    # The sign of an unsigned value is its uppermost bit; narrow ones are computed in bytes, whose uppermost bit is 0.
    plain, signed = a & ((1 << t.bits) - 1), a - ((1 << t.bits) if t.kind == "uint" and t.bits >= 8 and a >> (t.bits - 1) else 0)
    inside = 0 <= b < t.bits
    if name == "shr_arithmetic":
        return signed >> b if inside else -1 if signed < 0 else 0
    return 0 if not inside else plain << b if name == "shl" else plain >> b


BINARY_OF_INTEGERS: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda a, b, t: a + b, "sub": lambda a, b, t: a - b, "mul": lambda a, b, t: a * b, "div": lambda a, b, t: truncated(a, b),
    "rem": lambda a, b, t: a if not b else a - b * truncated(a, b), "max": lambda a, b, t: max(a, b), "min": lambda a, b, t: min(a, b),
    "and": lambda a, b, t: a & b, "or": lambda a, b, t: a | b, "xor": lambda a, b, t: a ^ b,
    **{name: lambda a, b, t, name=name: shifted(a, b, t, name) for name in ("shl", "shr_logical", "shr_arithmetic")},  # type: ignore[misc]
    "pow": lambda a, b, t: (1 if a == 1 else 0) if b < 0 else pow(a, b, 1 << t.bits), "mulhi": lambda a, b, t: (a * b) >> t.bits,
}
UNARY_OF_INTEGERS: dict[str, Callable[[int, DType], int]] = {
    "neg": lambda a, t: -a, "abs": lambda a, t: abs(a), "sign": lambda a, t: (a > 0) - (a < 0), "not": lambda a, t: ~a,
    "popcnt": lambda a, t: bin(a % (1 << t.bits)).count("1"), "clz": lambda a, t: t.bits - (a % (1 << t.bits)).bit_length(),
    "real": lambda a, t: a, "imag": lambda a, t: 0,
}
ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "EQ": lambda a, b: a == b, "NE": lambda a, b: a != b, "LT": lambda a, b: a < b, "LE": lambda a, b: a <= b, "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b}
LANES = pytest.mark.parametrize("lanes", [0, 1, 4])


@LANES
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers(dtype: DType, lanes: int) -> None:
    values = integers(dtype)
    array = np.array(values, object).astype(dtype.numpy() if dtype.bits >= 8 else np.int64)
    for name, one in UNARY_OF_INTEGERS.items():
        got = run(dtype, dtype, [array], lambda k, x, name=name: k.unary(name, x), lanes)
        agrees(got, [wrapped(one(a, dtype), dtype) for a in values], dtype, f"{name} of {dtype}")
    pairs = [(a, b) for a in values for b in values]
    x, y = (np.array([p[i] for p in pairs], object).astype(array.dtype) for i in range(2))
    for name, two in BINARY_OF_INTEGERS.items():
        got = run(dtype, dtype, [x, y], lambda k, a, b, name=name: k.binary(name, a, b), lanes)
        agrees(got, [wrapped(two(a, b, dtype), dtype) for a, b in pairs], dtype, f"{name} of {dtype}")
    for name in COMPARE:
        got = run(dtype, PRED, [x, y], lambda k, a, b, name=name: k.compare(name, a, b), lanes)
        agrees(got, [ORDER[name](a, b) for a, b in pairs], PRED, f"{name} of {dtype}")
    got = run(dtype, dtype, [x, y], lambda k, a, b: k.select(k.compare("LT", a, b), a, k.const(1, dtype)), lanes)
    agrees(got, [a if a < b else 1 for a, b in pairs], dtype, f"select of {dtype}")
    got = run(dtype, dtype, [x, y], lambda k, a, b: k.fma(a, b, 3), lanes)
    agrees(got, [wrapped(a * b + 3, dtype) for a, b in pairs], dtype, f"fma of {dtype}")
    got = run(dtype, PRED, [x], lambda k, a: k.unary("is_finite", a), lanes)
    assert got.all()
    for divisor in (1, 2, 3, 7):
        for number, name in enumerate(("floordiv", "floormod")):
            if lanes != 1 or dtype is S64:
                got = run(dtype, dtype, [array], lambda k, a, name=name, d=divisor: k.binary(name, a, k.const(d, dtype)), lanes)
                agrees(got, [divmod(a, divisor)[number] for a in values], dtype, f"{name} {divisor} of {dtype}")


@LANES
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_conversions_of_integers(dtype: DType, lanes: int) -> None:
    values = integers(dtype)
    array = np.array(values, object).astype(dtype.numpy() if dtype.bits >= 8 else np.int64)
    for to in (*INTEGERS, PRED, F32, F64, BF16, C64):
        got = run(dtype, to, [array], lambda k, x, to=to: k.convert(x, to), lanes)
        if to is PRED:
            want: list[Any] = [bool(v) for v in values]
        elif to.is_integer:
            want = [wrapped(v, to) for v in values]
        else:
            want = [np.float32(v).astype(to.numpy()) if to is not F64 else float(v) for v in values]
            want = [complex(v) if to is C64 else float(v) for v in want]
        agrees(got, want, to, f"{dtype} to {to}")
    for to in INTEGERS:
        if to.bits == dtype.bits:
            got = run(dtype, to, [array], lambda k, x, to=to: k.bitcast(x, to), lanes)
            agrees(got, [wrapped(v, to) for v in values], to, f"the bits of {dtype} as {to}")


# ---- floats

POINTS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -2.5, 3.0, 0.25, -7.0, 100.0, math.inf, -math.inf, math.nan, 0.75]


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """Without warnings, and NaN where Python raises."""
    def made(*values: float) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(np.float64, values))
    return made


def extreme(a: float, b: float, sign: int) -> float:
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return sign * max((sign * a, math.copysign(1, sign * a)), (sign * b, math.copysign(1, sign * b)))[0] if a or b else (
        sign * max(math.copysign(0, sign * a), math.copysign(0, sign * b), key=lambda v: math.copysign(1, v)))


def power(a: float, b: float) -> Any:
    """numpy takes an exponent of 0.5 for a square root."""
    return math.inf if a == -math.inf and b == 0.5 else np.power(a, b)


UNARY_OF_FLOATS: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": lambda x: x if not x or math.isnan(x) else math.copysign(1, x), "exp": np.exp, "expm1": np.expm1,
    "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "logistic": lambda x: 1 / (1 + np.exp(-x)), "erf": math.erf, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "floor": np.floor, "ceil": np.ceil, "round_even": np.rint, "real": lambda x: x, "imag": lambda x: 0.0,
    "round_away": lambda x: math.copysign(math.floor(abs(x) + 0.5), x) if math.isfinite(x) else x,
}
BINARY_OF_FLOATS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod, "pow": power, "atan2": np.arctan2,
    "max": lambda a, b: extreme(a, b, 1), "min": lambda a, b: extreme(a, b, -1),
}


@LANES
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats(dtype: DType, lanes: int) -> None:
    array = np.array(POINTS).astype(dtype.numpy())
    narrow = dtype.numpy().type
    for name, one in UNARY_OF_FLOATS.items():
        got = run(dtype, dtype, [array], lambda k, x, name=name: k.unary(name, x), lanes)
        with np.errstate(all="ignore"):
            agrees(got, [narrow(np.float32(quiet(one)(v)) if dtype.bits < 64 else quiet(one)(v)) for v in POINTS], dtype, f"{name} of {dtype}")
    pairs = [(a, b) for a in POINTS for b in POINTS]
    x, y = (np.array([p[i] for p in pairs]).astype(dtype.numpy()) for i in range(2))
    for name, two in BINARY_OF_FLOATS.items():
        got = run(dtype, dtype, [x, y], lambda k, a, b, name=name: k.binary(name, a, b), lanes)
        with np.errstate(all="ignore"):
            agrees(got, [narrow(quiet(two)(a, b)) for a, b in pairs], dtype, f"{name} of {dtype}")
    for name in COMPARE:
        got = run(dtype, PRED, [x, y], lambda k, a, b, name=name: k.compare(name, a, b), lanes)
        agrees(got, [ORDER[name](a, b) for a, b in pairs], PRED, f"{name} of {dtype}")
    got = run(dtype, dtype, [x, y], lambda k, a, b: k.select(k.compare("LT", a, b), a, k.const(1, dtype)), lanes)
    agrees(got, [a if a < b else 1 for a, b in pairs], dtype, f"select of {dtype}")
    got = run(dtype, dtype, [x, y], lambda k, a, b: k.fma(a, b, k.const(0.5, dtype)), lanes)
    with np.errstate(all="ignore"):
        agrees(got, [narrow(quiet(lambda a, b: a * b + 0.5)(a, b)) for a, b in pairs], dtype, f"fma of {dtype}")
    agrees(run(dtype, PRED, [array], lambda k, a: k.unary("is_finite", a), lanes), [math.isfinite(v) for v in POINTS], PRED, "is_finite")


@LANES
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_conversions_of_floats(dtype: DType, lanes: int) -> None:
    points = [*POINTS, 300.7, -300.7, 3e4, -129.0, 127.9, -0.9, 255.4, 255.6]
    array = np.array(points).astype(dtype.numpy())
    exact = [float(v) for v in array]
    for to in INTEGERS:
        low, high = limits(to)
        got = run(dtype, to, [array], lambda k, x, to=to: k.convert(x, to), lanes)
        want = [0 if math.isnan(v) else low if v <= low else high if v >= high else int(v) for v in exact]
        agrees(got, want, to, f"{dtype} to {to}")
    agrees(run(dtype, PRED, [array], lambda k, x: k.convert(x, PRED), lanes), [v != 0 for v in exact], PRED, f"{dtype} to pred")
    for to in (*FLOATS, C64, C128):
        got = run(dtype, to, [array], lambda k, x, to=to: k.convert(x, to), lanes)
        with np.errstate(all="ignore"):
            real = [complex(v) if to.is_complex else float(np.float64(v).astype(to.numpy())) for v in exact]
        agrees(got, real, to, f"{dtype} to {to}")
    for to in INTEGERS:
        if to.bits == dtype.bits:
            got = run(dtype, to, [array], lambda k, x, to=to: k.bitcast(x, to), lanes)
            assert got.tobytes() == array.tobytes()
            back = run(to, dtype, [got], lambda k, x: k.bitcast(x, dtype), lanes)
            assert back.tobytes() == array.tobytes()


# ---- truth values

@LANES
def test_truth_values(lanes: int) -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    tables = {"add": x | y, "max": x | y, "or": x | y, "mul": x & y, "min": x & y, "and": x & y, "xor": x ^ y, "sub": x ^ y}
    for name, want in tables.items():
        assert run(PRED, PRED, [x, y], lambda k, a, b, name=name: k.binary(name, a, b), lanes).tolist() == want.tolist(), name
    for name, of in (("not", ~x), ("abs", x), ("sign", x), ("real", x), ("is_finite", x | True), ("imag", x & False)):
        assert run(PRED, PRED, [x], lambda k, a, name=name: k.unary(name, a), lanes).tolist() == of.tolist(), name
    for name in COMPARE:
        assert run(PRED, PRED, [x, y], lambda k, a, b, name=name: k.compare(name, a, b), lanes).tolist() == [
            ORDER[name](a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)], name
    got = run(PRED, PRED, [x, y], lambda k, a, b: k.select(a, b, k.unary("not", b)), lanes)
    assert got.tolist() == np.where(x, y, ~y).tolist()
    for to in (S32, U8, F32, BF16, C64, S4):
        assert run(PRED, to, [x], lambda k, a, to=to: k.convert(a, to), lanes).astype(complex).real.tolist() == [0, 0, 1, 1]
    assert run(PRED, U8, [x], lambda k, a: k.bitcast(a, U8), lanes).tolist() == [0, 0, 1, 1]
    assert run(U8, PRED, [np.array([0, 1, 0, 1], np.uint8)], lambda k, a: k.bitcast(a, PRED), lanes).tolist() == [False, True] * 2


# ---- complex numbers

PLANE = [complex(a, b) for a in (0.5, -1.5, 2.0, -0.25) for b in (0.75, -2.0, 1.0, -0.5)]
UNARY_OF_COMPLEX: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "sign": lambda z: z / abs(z), "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z), "cbrt": lambda z: z ** (1 / 3), "logistic": lambda z: 1 / (1 + np.exp(-z)), "tanh": np.tanh,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
}
INVERSE_OF_COMPLEX: dict[str, Callable[[Any], Any]] = {
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}


@LANES
@pytest.mark.parametrize("dtype", [C64, C128], ids=str)
def test_complex_numbers(dtype: DType, lanes: int) -> None:
    array, part = np.array(PLANE, dtype.numpy()), F32 if dtype is C64 else F64
    for name, one in {**UNARY_OF_COMPLEX, **INVERSE_OF_COMPLEX}.items():
        got = run(dtype, dtype, [array], lambda k, x, name=name: k.unary(name, x), lanes)
        agrees(got, [complex(one(np.complex128(v))) for v in PLANE], dtype, f"{name} of {dtype}")
    for name, to_part in (("abs", abs), ("real", lambda z: z.real), ("imag", lambda z: z.imag)):
        agrees(run(dtype, part, [array], lambda k, x, name=name: k.unary(name, x), lanes), [to_part(v) for v in PLANE], part, name)
    pairs = [(a, b) for a in PLANE for b in PLANE]
    x, y = (np.array([p[i] for p in pairs], dtype.numpy()) for i in range(2))
    for name, two in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
        got = run(dtype, dtype, [x, y], lambda k, a, b, name=name: k.binary(name, a, b), lanes)
        agrees(got, [complex(two(np.complex128(a), np.complex128(b))) for a, b in pairs], dtype, f"{name} of {dtype}")
    mirror = y.copy()
    mirror[::3] = x[::3]
    mirror[1::3] = x[1::3].conj()
    for name in ("EQ", "NE"):
        got = run(dtype, PRED, [x, mirror], lambda k, a, b, name=name: k.compare(name, a, b), lanes)
        assert got.tolist() == [ORDER[name](a, b) for a, b in zip(x.tolist(), mirror.tolist(), strict=True)]
    got = run(dtype, dtype, [x, mirror], lambda k, a, b: k.select(k.compare("EQ", a, b), a, k.const(2j, dtype)), lanes)
    assert got.tolist() == [a if a == b else 2j for a, b in zip(x.tolist(), mirror.tolist(), strict=True)]
    for to in (C64, C128, F32, S32):
        got = run(dtype, to, [array], lambda k, a, to=to: k.convert(a, to), lanes)
        agrees(got, [v if to.is_complex else int(v.real) if to is S32 else v.real for v in PLANE], to, f"{dtype} to {to}")
    zeros = np.array([0, 1, 1j, -0.0], dtype.numpy())
    assert run(dtype, PRED, [zeros], lambda k, a: k.convert(a, PRED), lanes).tolist() == [False, True, True, False]
    edge = np.array([1, complex(math.inf, 0), complex(0, math.nan), complex(1, 2)], dtype.numpy())
    assert run(dtype, PRED, [edge], lambda k, a: k.unary("is_finite", a), lanes).tolist() == [True, False, False, True]
    if dtype is C64 and lanes:
        bits = run(C64, U64, [array], lambda k, a: k.bitcast(a, U64), lanes)
        assert bits.tobytes() == array.tobytes()
        assert run(U64, C64, [bits], lambda k, a: k.bitcast(a, C64), lanes).tobytes() == array.tobytes()
