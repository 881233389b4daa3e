"""Scalar arithmetic by element type: constant folding, and the lowering of narrow, sub-byte, pred and complex types.

* Floats narrower than f32 are computed in f32 and rounded once per call; integers narrower than a byte are computed in bytes.
* pred has and, or, xor, not and comparisons; its other operations are lowered to these.
* Complex values are pairs from the start: ``complex(re, im)``, see :mod:`irscope.lower.complex`.
"""
from __future__ import annotations

import math
import struct
from typing import Any

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import F32, F64, PRED, S64, U8
from irscope.lazy import np
from irscope.lower import complex as complex_rules
from irscope.lower import integers
from irscope.lower.expressions import ExpressionTable, wrap
from irscope.lower.integers import byte_of, is_sub_byte
from irscope.lower.tile import Expr
from irscope.ops.vocabulary import BINARY, COMPARE, REDUCE, UNARY

_PRED_BINARY = {"add": "or", "max": "or", "or": "or", "mul": "and", "min": "and", "and": "and", "xor": "xor", "sub": "xor"}
_FLOAT_BINARY = frozenset("add sub mul div rem max min pow atan2".split())
_FLOAT_UNARY = UNARY - {"not", "popcnt", "clz"}


def is_narrow(dtype: DType) -> bool:
    """Whether a float is computed in f32."""
    return dtype.kind == "float" and dtype.bits < 32


def part_of(dtype: DType) -> DType:
    """The element type of the parts of a complex type."""
    return F32 if dtype.bits == 64 else F64


class Arithmetic(ExpressionTable):
    """The half of the emitter that builds values; it accesses no memory."""

    # ---- constants

    def const(self, value: Any, dtype: DType) -> Expr:
        """A constant of a type, rounded or wrapped to it."""
        if dtype.is_complex:
            value = complex(value)
            part = part_of(dtype)
            return self.complex(self.const(value.real, part), self.const(value.imag, part))
        return self.make("const", (), dtype, 1, _fitted(value, dtype))

    def vector(self, values: list[Any] | tuple[Any, ...], dtype: DType = S64) -> Expr:
        """A constant vector, one value per lane."""
        return self.make("const", (), dtype, len(values), tuple(_fitted(v, dtype) for v in values))

    def first_lanes(self, count: int, lanes: int) -> Expr:
        """A mask of the first ``count`` lanes."""
        return self.vector([lane < count for lane in range(lanes)], PRED)

    def lane(self, lanes: int, dtype: DType = S64) -> Expr:
        """The vector 0, 1, 2, ..."""
        return self.make("lane", (), dtype, lanes) if lanes > 1 else self.const(0, dtype)

    def splat(self, x: Expr, lanes: int) -> Expr:
        """One value in every lane."""
        if x.lanes == lanes:
            return x
        if x.lanes != 1:
            raise ValueError(f"a vector of {x.lanes} lanes does not spread over {lanes}")
        if x.dtype.is_complex:
            return self.complex(self.splat(self.real(x), lanes), self.splat(self.imag(x), lanes))
        return self.make("splat", (x,), x.dtype, lanes)

    def shuffle(self, x: Expr, y: Expr, take: tuple[int, ...] | list[int]) -> Expr:
        """The lanes ``take`` of the concatenation of two vectors."""
        if x.lanes != y.lanes or x.dtype is not y.dtype or x.lanes == 1:
            raise TypeError(f"shuffle of {x.dtype}x{x.lanes} and {y.dtype}x{y.lanes}")
        if x.dtype.is_complex:
            return self.complex(self.shuffle(self.real(x), self.real(y), take), self.shuffle(self.imag(x), self.imag(y), take))
        return self.make("shuffle", (x, y), x.dtype, len(take), tuple(take))

    def reduce(self, name: str, x: Expr) -> Expr:
        """Combine all lanes into one, in any order."""
        if name not in REDUCE:
            raise ValueError(f"no reduction {name}")
        if x.lanes == 1:
            return x
        if x.dtype.is_complex:
            if name != "add":
                raise TypeError(f"reduce {name} of complex lanes")
            return self.complex(self.reduce("add", self.real(x)), self.reduce("add", self.imag(x)))
        if x.dtype.kind == "pred":
            return self.make(f"reduce.{_PRED_BINARY[name]}", (x,), PRED)
        wide = self._compute_type(x.dtype)
        return self.convert(self.make(f"reduce.{name}", (self.convert(x, wide),), wide), x.dtype)

    # ---- operations

    def unary(self, name: str, x: Expr) -> Expr:
        """An operation on one operand."""
        if name not in UNARY:
            raise ValueError(f"the vocabulary has no unary {name}")
        dtype = x.dtype
        if dtype.is_complex:
            return complex_rules.unary(self, name, x)
        if name == "real":
            return x
        if name == "imag":
            return self.splat(self.const(0, dtype), x.lanes)
        if name == "is_finite" and not dtype.is_float:
            return self.splat(self.pred(True), x.lanes)
        if dtype.kind == "pred":
            if name == "not":
                return self._not(x)
            if name in ("abs", "sign"):
                return x
            raise TypeError(f"{name} of pred")
        if dtype.is_integer:
            return integers.unary(self, name, x)
        if name not in _FLOAT_UNARY:
            raise TypeError(f"{name} of {dtype}")
        if name == "is_finite":
            wide = self.widen(x)
            return self.compare("LT", self.unary("abs", wide), self.const(math.inf, wide.dtype))
        if is_narrow(dtype):
            return self.convert(self.unary(name, self.widen(x)), dtype)
        return self.make(name, (x,), dtype, x.lanes)

    def binary(self, name: str, x: object, y: object) -> Expr:
        """An operation on two operands. One of them may be a Python number."""
        x, y = self._pair(x, y)
        dtype = x.dtype
        if dtype is S64 and x.lanes == 1 and y.lanes == 1:
            folded = self.index_binary(name, x, y)
            if folded is not None:
                return folded
        if name in ("floordiv", "floormod"):
            return integers.lane_floor(self, name, x, y)
        if name not in BINARY:
            raise ValueError(f"the vocabulary has no binary {name}")
        if dtype.is_complex:
            return complex_rules.binary(self, name, x, y)
        if dtype.kind == "pred":
            return self._pred_binary(name, x, y)
        if dtype.is_integer:
            return integers.binary(self, name, x, y)
        if name not in _FLOAT_BINARY:
            raise TypeError(f"{name} of {dtype}")
        if is_narrow(dtype):
            return self.convert(self.binary(name, self.widen(x), self.widen(y)), dtype)
        return self.lift(name, (x, y), dtype)

    def fma(self, x: Any, y: Any, z: Any) -> Expr:
        """``x * y + z``. Floats are rounded once; values of other types are multiplied, then added."""
        if not isinstance(z, Expr):
            z = self.const(z, (x if isinstance(x, Expr) else y).dtype)
        x, y = self._pair(x, y)
        dtype = z.dtype
        if x.dtype is not dtype:
            raise TypeError(f"fma of {x.dtype}, {y.dtype} and {dtype}")
        if not dtype.is_float:
            return self.binary("add", self.binary("mul", x, y), z)
        if is_narrow(dtype):
            return self.convert(self.fma(self.widen(x), self.widen(y), self.widen(z)), dtype)
        return self.lift("fma", (x, y, z), dtype)

    def compare(self, direction: str, x: object, y: object) -> Expr:
        """EQ NE LT LE GT GE; the result is pred."""
        if direction not in COMPARE:
            raise ValueError(f"no comparison {direction}")
        x, y = self._pair(x, y)
        if x.dtype.is_complex:
            return complex_rules.compare(self, direction, x, y)
        if x.dtype.is_integer and x.lanes == y.lanes == 1:
            known = integers.known_comparison(direction, x, y)
            if known is not None:
                return self.pred(known)
        return self.lift(f"cmp.{direction}", (self.widen(x), self.widen(y)), PRED)

    def select(self, condition: Expr, x: object, y: object) -> Expr:
        """``x`` where the condition holds, else ``y``."""
        x, y = self._pair(x, y)
        if condition.dtype is not PRED:
            raise TypeError(f"select by {condition.dtype}")
        lanes = max(condition.lanes, x.lanes, y.lanes)
        known = condition.uniform
        if known is not None:
            return self.splat(x if known else y, lanes)
        if x is y:
            return self.splat(x, lanes)
        if x.dtype.is_complex:
            return self.complex(self.select(condition, self.real(x), self.real(y)), self.select(condition, self.imag(x), self.imag(y)))
        if x.dtype.kind == "pred":
            return self._logical("or", self._logical("and", condition, x), self._logical("and", self._not(condition), y))
        return self.lift("select", (condition, x, y), x.dtype)

    def convert(self, x: Expr, dtype: DType) -> Expr:
        """The same number in another type, as the vocabulary says."""
        source = x.dtype
        if source is dtype:
            return x
        if source.is_complex:
            if dtype.is_complex:
                part = part_of(dtype)
                return self.complex(self.convert(self.real(x), part), self.convert(self.imag(x), part))
            if dtype.kind == "pred":
                return self.compare("NE", x, self.const(0, source))
            return self.convert(self.real(x), dtype)
        if dtype.is_complex:
            return self.complex(self.convert(x, part_of(dtype)), self.splat(self.const(0, part_of(dtype)), x.lanes))
        if dtype.kind == "pred":
            return self.compare("NE", x, self.const(0, source))
        if x.op == "const" and x.lanes == 1 and source.kind != "float" and dtype.kind != "float":
            return self.const(x.value, dtype)
        if x.op == "const" and x.lanes == 1 and dtype.bits >= 32 and dtype.kind == "float":
            return self.const(x.value, dtype)
        # Other conversions go through f32: from a narrow float to anything but f32, and from anything but a wide float to a narrow one.
        if is_narrow(source) and dtype is not F32:
            return self.convert(self.convert(x, F32), dtype)
        if is_narrow(dtype) and source not in (F32, F64):
            return self.convert(self.convert(x, F32), dtype)
        return self.make("convert", (x,), dtype, x.lanes)

    def bitcast(self, x: Expr, dtype: DType) -> Expr:
        """The same bits as another type of the same width."""
        if x.dtype is dtype:
            return x
        if x.dtype.bits != dtype.bits and x.dtype.storage != dtype.storage:
            raise TypeError(f"bitcast of {x.dtype} to {dtype}")
        if x.dtype.is_complex or dtype.is_complex:
            return complex_rules.bitcast(self, x, dtype)
        if x.dtype.kind == "pred" or dtype.kind == "pred":
            byte = self.convert(x, U8) if x.dtype.kind == "pred" else self.bitcast(x, U8)
            return self.convert(byte, PRED) if dtype.kind == "pred" else self.bitcast(byte, dtype)
        return self.make("bitcast", (x,), dtype, x.lanes)

    def scale2(self, x: Expr, n: Expr) -> Expr:
        """``x * 2**n`` for f32 and s32, or f64 and s64."""
        return self.lift("scale2", (x, n), x.dtype)

    def complex(self, re: object, im: object) -> Expr:
        """A complex value of two f32 or f64."""
        x, y = self._pair(re, im)
        if x.dtype not in (F32, F64):
            raise TypeError(f"complex of {x.dtype}")
        if x.op == "real" and y.op == "imag" and x.args == y.args:
            return x.args[0]
        return self.lift("complex", (x, y), DTYPES["c64" if x.dtype is F32 else "c128"])

    def real(self, x: Expr) -> Expr:
        """The real part; of a real value, itself."""
        if not x.dtype.is_complex:
            return x
        return x.args[0] if x.op == "complex" else self.make("real", (x,), part_of(x.dtype), x.lanes)

    def imag(self, x: Expr) -> Expr:
        """The imaginary part; of a real value, 0."""
        if not x.dtype.is_complex:
            return self.unary("imag", x)
        return x.args[1] if x.op == "complex" else self.make("imag", (x,), part_of(x.dtype), x.lanes)

    # ---- pairs

    def _pair(self, x: Any, y: Any) -> tuple[Expr, Expr]:
        if not isinstance(x, Expr):
            if not isinstance(y, Expr):
                return self.index(x), self.index(y)
            x = self.const(x, y.dtype)
        elif not isinstance(y, Expr):
            y = self.const(y, x.dtype)
        if x.dtype is not y.dtype:
            raise TypeError(f"operands of {x.dtype} and {y.dtype}")
        return x, y

    def lift(self, op: str, args: tuple[Expr, ...], dtype: DType) -> Expr:
        """Build an expression over operands with one lane or equally many."""
        lanes = max(a.lanes for a in args)
        if lanes > 1:
            args = tuple(a if op == "select" and i == 0 else self.splat(a, lanes) for i, a in enumerate(args))
        return self.make(op, args, dtype, lanes)

    def _compute_type(self, dtype: DType) -> DType:
        return F32 if is_narrow(dtype) else byte_of(dtype) if is_sub_byte(dtype) else dtype

    def widen(self, x: Expr) -> Expr:
        """The value in the type that arithmetic on it is done in."""
        return self.convert(x, self._compute_type(x.dtype))

    # ---- pred

    def _not(self, x: Expr) -> Expr:
        if x.op == "const" and x.lanes == 1:
            return self.pred(not x.value)
        return x.args[0] if x.op == "not" else self.make("not", (x,), PRED, x.lanes)

    def _logical(self, op: str, x: Expr, y: Expr) -> Expr:
        """``and`` or ``or``. With a constant operand, the result is that constant or the other operand."""
        for a, b in ((x, y), (y, x)):
            if a.op == "const" and a.lanes == 1:
                return self.splat(b if a.value == (op == "and") else a, max(x.lanes, y.lanes))
        return x if x is y else self.lift(op, (x, y), PRED)

    def _pred_binary(self, name: str, x: Expr, y: Expr) -> Expr:
        word = _PRED_BINARY.get(name)
        if word is None:
            raise TypeError(f"{name} of pred")
        return self.lift("xor", (x, y), PRED) if word == "xor" else self._logical(word, x, y)


def _fitted(value: Any, dtype: DType) -> float:
    """A Python number, rounded or wrapped to a type that is not complex."""
    if dtype.kind == "pred":
        return bool(value)
    return wrap(int(value), dtype) if dtype.is_integer else round_to(float(value), dtype)


def round_to(value: float, dtype: DType) -> float:
    """The nearest float of the type, as a Python float."""
    if dtype.bits == 64 or not math.isfinite(value):
        if dtype.bits == 64 or dtype.bits == 32 or math.isnan(value):
            return value
    if dtype.bits == 32:
        try:
            return float(struct.unpack("<f", struct.pack("<f", value))[0])
        except OverflowError:
            return math.copysign(math.inf, value)
    with np.errstate(all="ignore"):
        return float(np.float64(value).astype(dtype.numpy()))

