"""Values of constants: checked in place, without building the array, and parsed on demand."""
from __future__ import annotations

import math
import re
from math import prod

from irscope.formats.hlo.arrays import array_of
from irscope.formats.hlo.faults import LIMIT, LITERAL, Refused
from irscope.formats.hlo.lexer import Cursor
from irscope.formats.hlo.plain import int_range, is_plain, real_fits
from irscope.formats.hlo.types import TypeTable
from irscope.graph import DTYPES, DType, TensorType, TupleType, Type
from irscope.ops.attrs import Literal

# Longer texts are not copied out of the dump: a constant table of 100 MB would be in memory twice.
MAX_COPIED = 256

REAL_END = re.compile(r"[^()\"'/]*+(?=\))")


class TextLiteral(Literal):
    """A literal whose text stays in the dump, and is extracted on demand."""

    __slots__ = ("_begin", "_end", "_source")

    def __init__(self, type: Type, source: str, begin: int, end: int) -> None:
        self.type = type
        self.elided = False
        self.parse = parse_literal
        self._value = None
        self._source, self._begin, self._end = source, begin, end

    @property
    def text(self) -> str | None:  # type: ignore[override]
        return self._source[self._begin:self._end]


def parse_literal(literal: Literal) -> object:
    """The array (or tuple of arrays) of a literal's text."""
    return array_of(literal.text or "", literal.type)


def make_literal(type: Type, source: str, begin: int, end: int) -> Literal:
    """A literal of the text between two offsets, which has been checked."""
    if end - begin > MAX_COPIED:
        return TextLiteral(type, source, begin, end)
    text = source[begin:end]
    return Literal(type, text, "..." in text, parse_literal)


def read_literal(cursor: Cursor, type: Type) -> Literal:
    """Step over the value of a constant whose type is known."""
    begin = cursor.at
    if isinstance(type, TensorType) and type.dtype.kind in ("pred", "int", "uint", "float"):
        m = REAL_END.match(cursor.text, begin, cursor.end)
        if m and is_plain(cursor.text[begin:m.end()], type):
            cursor.goto(m.end())
            return make_literal(type, cursor.text, begin, len(cursor.text[begin:m.end()].rstrip()) + begin)
    end = _value(cursor, type)
    return make_literal(type, cursor.text, begin, end)


def read_typed_literal(cursor: Cursor, types: TypeTable) -> Literal:
    """Step over a literal with an explicit type: ``f32[2]{0} {1, 2}``, or a tuple ``(f32[] 1, s32[] 2)``."""
    begin = cursor.at
    if cursor.sees("("):
        cursor.nest(1)
        cursor.next()
        elements: list[Type] = []
        while not cursor.sees(")"):
            elements.append(read_typed_literal(cursor, types).type)
            if not cursor.eat(","):
                break
        end = cursor.after
        cursor.expect(")", "at the end of the tuple", LITERAL)
        cursor.depth -= 1
        return Literal(types.keep(TupleType(tuple(elements))), cursor.text[begin:end])
    type = types.read(cursor)
    return read_literal(cursor, type)


def _value(cursor: Cursor, type: Type) -> int:
    """Step over a value token by token and return the offset after it; finds every fault."""
    if isinstance(type, TupleType):
        cursor.nest(1)
        cursor.expect("(", "before the elements of the tuple", LITERAL)
        for i, element in enumerate(type.elements):
            if i:
                cursor.expect(",", f"before element {i} of the tuple", LITERAL)
            _value(cursor, element)
        end = cursor.after
        cursor.expect(")", f"after the {len(type.elements)} elements of the tuple", LITERAL)
        cursor.depth -= 1
        return end
    if not isinstance(type, TensorType):
        cursor.refuse(f"a constant cannot be of type {type}", LITERAL, sees=False)
    return _dense(cursor, type)


def _sizes(cursor: Cursor, type: TensorType) -> list[int]:
    """The sizes of a constant, which must be known and fit into memory."""
    sizes = [d if isinstance(d, int) else d.bound for d in type.shape]
    if None in sizes:
        cursor.refuse(f"a constant cannot have the open type {type}", LITERAL, sees=False)
    dims = [d for d in sizes if d is not None]
    if prod(dims) >= 1 << 62:
        cursor.refuse(f"a constant of type {type} does not fit into any memory", LIMIT, sees=False)
    return dims


def _dense(cursor: Cursor, type: TensorType) -> int:
    """Step over the braces and numbers of an array."""
    dims = _sizes(cursor, type)
    rank = len(dims)
    seen = [0] * rank
    level = 0
    end = cursor.after
    while True:
        end = cursor.after
        if cursor.eat("{"):
            level += 1
            if level > rank:
                raise Refused(LITERAL, f"the value is nested deeper than the {rank} dimensions of {type}", end - 1)
            if level > 1:
                _count(cursor, seen, dims, level - 2, end)
        elif cursor.eat("}"):
            level -= 1
            if level < 0:
                raise Refused(LITERAL, "a '}' too many in the value", end - 1)
            if seen[level] != dims[level]:
                raise Refused(LITERAL, f"{type} needs {dims[level]} elements in dimension {level}, but here are {seen[level]}", end - 1)
            seen[level] = 0
        elif cursor.eat(","):
            pass
        elif cursor.sees("..."):
            if level != 1:
                cursor.refuse("'...' elides all values and must be written {...}", LITERAL, sees=False)
            seen[0] = dims[0]
            cursor.next()
            end = cursor.at
        else:
            if rank and level:
                if level != rank:
                    cursor.refuse(f"the value is nested {level} deep, but {type} has {rank} dimensions", LITERAL, sees=False)
                _count(cursor, seen, dims, rank - 1, cursor.at)
            end = _element(cursor, type.dtype)
        if level <= 0:  # a bare number is read for any type: XLA sets the first element to it, and the others to zero
            return end


def _count(cursor: Cursor, seen: list[int], dims: list[int], dimension: int, at: int) -> None:
    seen[dimension] += 1
    if seen[dimension] > dims[dimension]:
        raise Refused(LITERAL, f"more than the {dims[dimension]} elements that the type has in dimension {dimension}", max(0, at))


def _element(cursor: Cursor, dtype: DType) -> int:
    """Step over one scalar."""
    if dtype.is_complex:
        cursor.expect("(", f"before a complex number of {dtype.name}", LITERAL)
        part = "f32" if dtype.name == "c64" else "f64"
        _real(cursor, part, dtype.name)
        cursor.expect(",", "between the parts of a complex number", LITERAL)
        _real(cursor, part, dtype.name)
        end = cursor.after
        cursor.expect(")", "after a complex number", LITERAL)
        return end
    end = cursor.after
    if dtype.kind == "float":
        _real(cursor, dtype.name, dtype.name)
        return end
    if dtype.kind == "pred" and cursor.kind == "word" and cursor.value in ("true", "false"):
        cursor.next()
        return end
    if dtype.kind not in ("pred", "int", "uint"):
        cursor.refuse(f"a constant cannot be of element type {dtype.name}", LITERAL, sees=False)
    at, length = cursor.at, cursor.after - cursor.at
    value = cursor.integer(f"an integer for {dtype.name}", LITERAL)
    low, high = int_range(dtype)
    if dtype.kind != "pred" and not low <= value <= high and not (dtype.bits == 64 and -(1 << 63) <= value < 1 << 64):
        raise Refused(LITERAL, f"{value} is out of the range of {dtype.name}, {low} to {high}", at, length)
    return end


def _real(cursor: Cursor, name: str, shown: str) -> None:
    at, length = cursor.at, cursor.after - cursor.at
    largest = DTYPES[name].largest
    payload_bits = DTYPES[name].fraction if DTYPES[name].has_infinity else 0  # the other types have one NaN, or none
    if cursor.kind == "decimal" and "nan" in cursor.value:
        if "(" in cursor.value:
            payload = int(cursor.value[cursor.value.index("(") + 1:-1][:40], 16)
            if not 0 < payload < 1 << payload_bits:
                raise Refused(LITERAL, f"{shown} cannot represent the NaN payload {payload:#x}", at, length,
                              f"it keeps {payload_bits} bits of payload" if payload_bits else "it has one NaN; write nan")
    elif cursor.kind in ("int", "decimal"):
        value = float(cursor.value)
        if cursor.kind == "int" and not -(1 << 63) <= value < 1 << 64:
            raise Refused(LITERAL, f"{cursor.value[:40]} does not fit into 64 bits", at, length,
                          "write it with a point, or with an exponent")
        if math.isinf(value):
            raise Refused(LITERAL, f"{cursor.value[:40]} is out of the range of f64", at, length)
        fits = abs(value) <= largest if shown in ("c64", "c128") else real_fits(value, name)
        if not fits:
            raise Refused(LITERAL, f"{cursor.value[:40]} is out of the range of {shown}, {-largest:g} to {largest:g}", at, length,
                          "write inf for infinity")
    elif not (cursor.kind == "inf" or cursor.sees_word("inf")):
        cursor.refuse(f"expected a number for {shown}", LITERAL)
    cursor.next()
