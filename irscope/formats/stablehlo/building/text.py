"""Attributes as text, as XLA keeps backend configurations and shardings."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.formats.stablehlo.attributes import Array, Attribute, Number, Record, Symbol, Text, Unit, Word
from irscope.formats.stablehlo.spelling import constant
from irscope.graph import TensorType, Type
from irscope.ops.attrs import Literal

DEEPEST = 32
"""Nested dictionaries and lists are written to this depth."""
SIGNLESS = {"pred": "i1", "s2": "i2", "s4": "i4", "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64", "u8": "ui8", "u16": "ui16",
            "u32": "ui32", "u64": "ui64"}


def dictionary_text(values: Mapping[str, Attribute], depth: int = 0) -> str:
    """``{a = 1 : i32, b}``."""
    return "{" + ", ".join(f"{name} = {text_of(value, depth + 1)}" if value is not Unit.UNIT else name
                           for name, value in values.items()) + "}"


def text_of(value: Attribute, depth: int = 0) -> str:
    """One attribute in MLIR's spelling."""
    if depth > DEEPEST:
        return "..."
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Number):
        return f"{value.value} : {_type(value.type)}"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', "\\22").replace("\n", "\\0A") + '"'
    if isinstance(value, Symbol):
        return f"@{value.name}"
    if isinstance(value, Array):
        items = ", ".join(str(v) for v in value.values)
        return f"array<{SIGNLESS.get(value.dtype.name, value.dtype.name)}" + (f": {items}>" if items else ">")
    if isinstance(value, Word):
        return f"#{value.dialect}<{value.kind} {value.word}>"
    if isinstance(value, Text):
        return value.text
    if isinstance(value, tuple):
        return "[" + ", ".join(text_of(part, depth + 1) for part in value) + "]"
    if isinstance(value, Mapping):
        return dictionary_text(value, depth)
    if isinstance(value, Record):
        return f"#{value.dialect}.{value.name}<" + ", ".join(f"{k} = {text_of(v, depth + 1)}" for k, v in value.fields.items()) + ">"
    if isinstance(value, Literal):
        return constant(value, value.type)
    return "unit" if value is Unit.UNIT else _type(value)


def _type(type: object) -> str:
    if isinstance(type, TensorType):
        return SIGNLESS.get(type.dtype.name, type.dtype.name) if not type.shape else str(type)
    return str(type) if isinstance(type, Type) else ""
