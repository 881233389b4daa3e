"""Texts of attributes, names and constants as MLIR writes them."""
from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from irscope.formats.stablehlo.literals import dtype_of_literal, shape_of
from irscope.formats.stablehlo.types import spelled
from irscope.graph import DType, SourceLine, Type
from irscope.lazy import Array, np
from irscope.ops.attrs import Literal

BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
MAX_LISTED = 4096
"""Larger constants are written as hexadecimal bytes, in a third of the characters."""


def quoted(text: str) -> str:
    """A string."""
    return '"' + re.sub(r'[\x00-\x1f"\\\x7f]', lambda m: f"\\{ord(m[0]):02X}", text) + '"'


def symbol(name: str) -> str:
    """``@name``, quoted where it must be."""
    return "@" + (name if BARE.fullmatch(name) else quoted(name))


def integer(value: int, type: str = "i64") -> str:
    """``3 : i64``."""
    return f"{value} : {type}"


def flag(value: bool) -> str:
    """``true`` or ``false``."""
    return "true" if value else "false"


def ints(values: Iterable[int]) -> str:
    """``array<i64: 1, 2>``."""
    listed = ", ".join(map(str, values))
    return f"array<i64: {listed}>" if listed else "array<i64>"


def flags(values: Iterable[bool]) -> str:
    """``array<i1: true, false>``."""
    listed = ", ".join(map(flag, values))
    return f"array<i1: {listed}>" if listed else "array<i1>"


def bracketed(values: Iterable[object]) -> str:
    """``[1, 2]``."""
    return "[" + ", ".join(map(str, values)) + "]"


def table(rows: Sequence[Sequence[int]], width: int = 2) -> str:
    """``dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>``; short rows are filled with -1."""
    width = max((len(row) for row in rows), default=width)
    filled = [[*row, *[-1] * (width - len(row))] for row in rows]
    body = bracketed(map(bracketed, filled)) if rows and width else ""
    return f"dense<{body}> : tensor<{len(rows)}x{width}xi64>"


def word(kind: str, value: str, dialect: str = "stablehlo") -> str:
    """``#stablehlo<comparison_direction LT>``."""
    return f"#{dialect}<{kind} {value}>"


def record(name: str, fields: Iterable[tuple[str, object]]) -> str:
    """``#stablehlo.dot<lhs_contracting_dimensions = [1], ...>``; empty lists are left out."""
    shown = [f"{key} = {bracketed(value) if isinstance(value, tuple) else value}" for key, value in fields if value != ()]
    return f"#stablehlo.{name}<{', '.join(shown)}>"


def location(name: str, stack: Sequence[SourceLine]) -> str:
    """A name around the lines of a program, innermost first; empty where there is nothing to say."""
    places = [f"{quoted(line.file)}:{line.line}:{line.column}" for line in stack]
    named = [f"{quoted(line.function)}({place})" if line.function and (name or len(stack) > 1) else place
             for line, place in zip(stack, places, strict=True)]
    inner = "callsite(" + " at callsite(".join(named[:-1]) + f" at {named[-1]}" + ")" * (len(named) - 1) if len(named) > 1 else \
        named[0] if named else ""
    return (quoted(name) + (f"({inner})" if inner else "")) if name else inner


def constant(literal: Literal, type: Type) -> str:
    """``dense<...> : type``. Raises ValueError where the type has no constants."""
    if literal.elided:
        return f"dense_resource<__elided__> : {spelled(type)}"
    if shape_of(type) is None:
        raise ValueError(f"a constant of type {type} has no text in StableHLO")
    array = np.ascontiguousarray(literal.value())
    return f"dense<{_elements(array, dtype_of_literal(type))}> : {spelled(type)}"


def _elements(array: Array, dtype: DType) -> str:
    if not array.size:
        return ""
    flat = array.reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    if (raw == raw[0]).all():
        return _element(flat[0], dtype)
    if flat.size > MAX_LISTED:
        return f'"0x{flat.tobytes().hex().upper()}"'
    return _nested([_element(value, dtype) for value in flat], array.shape)


def _nested(words: list[str], shape: tuple[int, ...]) -> str:
    """The words in brackets, the last dimension innermost."""
    for size in reversed(shape):
        words = [bracketed(words[i:i + size]) for i in range(0, len(words), size)]
    return words[0]


def _element(value: Array, dtype: DType) -> str:
    if dtype.kind == "pred":
        return flag(bool(value))
    if dtype.is_complex:
        return f"({_real(value.real, 64 if dtype.bits == 128 else 32)},{_real(value.imag, 64 if dtype.bits == 128 else 32)})"
    return _real(value, dtype.bits) if dtype.is_float else str(int(value))


def _real(value: Array, bits: int) -> str:
    """A float with as many digits as distinguish it; infinities and NaN as bits."""
    number = float(value)
    if not math.isfinite(number):
        data = np.asarray(value).tobytes()
        return f"0x{int.from_bytes(data, 'little'):0{2 * len(data)}X}"
    return f"{number:.16e}" if bits == 64 else f"{number:.8e}"

