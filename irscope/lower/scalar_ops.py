"""The scalar operations in numpy, one obvious line each: what the interpreter of the tile IR computes with."""
from __future__ import annotations

import math
from collections.abc import Callable

from irscope.graph import DType
from irscope.lazy import Array, np
from irscope.lower.expressions import limits


def unary(name: str, x: Array, dtype: DType) -> Array:
    """An operation on one operand, on an array of the type's values."""
    with np.errstate(all="ignore"):
        if dtype.kind == "pred":
            return np.asarray(~x)
        if dtype.is_integer:
            return _integer_unary(name, x, dtype)
        return np.asarray(_float_unary(name, x)).astype(x.dtype)


def binary(name: str, x: Array, y: Array, dtype: DType) -> Array:
    """An operation on two operands."""
    with np.errstate(all="ignore"):
        if dtype.kind == "pred":
            return np.asarray({"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[name](x, y))
        if dtype.is_integer:
            return _integer_binary(name, x, y, dtype)
        return np.asarray(_float_binary(name, x, y)).astype(x.dtype)


def compare(direction: str, x: Array, y: Array) -> Array:
    """A comparison; NaN is unequal to everything."""
    function: Callable[[Array, Array], Array] = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater,
                                    "GE": np.greater_equal}[direction]
    return np.asarray(function(x, y))


def convert(x: Array, source: DType, to: DType) -> Array:
    """Integers wrap; floats saturate to integers, NaN to 0; floats round to nearest even."""
    with np.errstate(all="ignore"):
        if to.is_integer:
            if source.is_float:
                low, high = limits(to)
                wide = x.astype(np.float64)
                whole = np.trunc(np.where(np.isnan(wide), 0.0, wide))
                clipped = [low if v <= low else high if v >= high else int(v) for v in whole.tolist()]
                return wrapped(clipped, to)
            return wrapped([int(v) for v in x.tolist()], to)
        return np.asarray(x.astype(to.numpy()))


def wrapped(values: list[int], dtype: DType) -> Array:
    """Integers wrapped to a type; sub-byte ones are stored in bytes."""
    modulus = 1 << dtype.bits
    low, high = limits(dtype)
    found = [(v - low) % modulus + low for v in values]
    assert all(low <= v <= high for v in found)
    return np.array(found, dtype=register_type(dtype))


def register_type(dtype: DType) -> np.dtype[np.generic]:
    """The numpy type of a value: bytes for sub-byte integers."""
    if dtype.is_integer and dtype.bits < 8:
        return np.dtype(np.int8 if dtype.kind == "int" else np.uint8)
    return dtype.numpy()


def _integer_unary(name: str, x: Array, dtype: DType) -> Array:
    def one(v: int) -> int:
        plain = v & ((1 << dtype.bits) - 1)
        return {"neg": -v, "abs": abs(v), "sign": (v > 0) - (v < 0), "not": ~v, "popcnt": plain.bit_count(),
                "clz": dtype.bits - plain.bit_length()}[name]
    return wrapped([one(int(v)) for v in x], dtype)


def _integer_binary(name: str, x: Array, y: Array, dtype: DType) -> Array:
    return wrapped([_INTEGER[name](int(a), int(b), dtype.bits) for a, b in zip(x, y)], dtype)


def _divide(a: int, b: int, bits: int) -> int:
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int, bits: int) -> int:
    return a if b == 0 else a - b * _divide(a, b, bits)


def _left(a: int, b: int, bits: int) -> int:
    return 0 if b < 0 or b >= bits else a << b


def _right(a: int, b: int, bits: int) -> int:
    return 0 if b < 0 or b >= bits else (a & ((1 << bits) - 1)) >> b


def _right_signed(a: int, b: int, bits: int) -> int:
    # The sign of an unsigned type's shifted value is its uppermost bit, too.
    signed = a - (1 << bits) if a >> (bits - 1) > 0 else a
    return signed >> (bits - 1 if b < 0 or b >= bits else b)


def _power(a: int, b: int, bits: int) -> int:
    return (1 if a == 1 else 0) if b < 0 else pow(a, b, 1 << bits)


_INTEGER: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, n: a + b, "sub": lambda a, b, n: a - b, "mul": lambda a, b, n: a * b, "div": _divide, "rem": _remainder,
    "max": lambda a, b, n: max(a, b), "min": lambda a, b, n: min(a, b), "and": lambda a, b, n: a & b, "or": lambda a, b, n: a | b,
    "xor": lambda a, b, n: a ^ b, "shl": _left, "shr_logical": _right, "shr_arithmetic": _right_signed, "pow": _power,
    "mulhi": lambda a, b, n: (a * b) >> n, "floordiv": lambda a, b, n: a // b, "floormod": lambda a, b, n: a % b,
}


def _float_unary(name: str, x: Array) -> Array:
    wide = x.astype(np.float64) if x.dtype == np.float32 else x
    simple: dict[str, Callable[[Array], Array]] = {
        "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "round_even": np.rint, "exp": np.exp,
        "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "tan": np.tan,
        "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
        "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt,
        "sign": lambda v: np.where((v == 0) | np.isnan(v), v, np.sign(v)),
        "rsqrt": lambda v: 1 / np.sqrt(v),
        "logistic": lambda v: 1 / (1 + np.exp(-v)),
        "round_away": lambda v: np.copysign(np.where(np.abs(v) < 2.0 ** 52, np.trunc(np.abs(v)) + (np.abs(v) % 1 >= 0.5), np.abs(v)), v),
        "erf": _erf,
    }
    return simple[name](wide)


def _erf(x: Array) -> Array:
    return np.array([math.erf(v) for v in x.tolist()])


def _float_binary(name: str, x: Array, y: Array) -> Array:
    words: dict[str, Callable[[Array, Array], Array]] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rem": np.fmod, "atan2": np.arctan2, "pow": np.power,
        "max": lambda a, b: _extreme(a, b, True), "min": lambda a, b: _extreme(a, b, False),
    }
    return words[name](x, y)


def _extreme(a: Array, b: Array, largest: bool) -> Array:
    """NaN where either is NaN; of two zeros, max returns the positive and min the negative one."""
    out = np.maximum(a, b) if largest else np.minimum(a, b)
    zeros = (a == 0) & (b == 0)
    negative = (np.signbit(a) & np.signbit(b)) if largest else (np.signbit(a) | np.signbit(b))
    return np.where(zeros, np.where(negative, -0.0, 0.0).astype(out.dtype), out)
