"""Relay's spelling of types."""

from __future__ import annotations

import re
from functools import lru_cache

from irscope.graph import DTYPES, DType, FunctionType, TensorType, TupleType, Type

NAMES = {
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "bool": "pred", "int1": "s1", "uint1": "pred", "int4": "s4",
    "uint4": "u4", "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
    "uint64": "u64", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "e4m3_float8": "f8e4m3fn", "e5m2_float8": "f8e5m2",
    "float8_e4m3": "f8e4m3",
}
"""Relay's words for element types."""

PRINTED = {hlo: relay for relay, hlo in reversed(NAMES.items())}
LANES = re.compile(r"(?:float|int|uint|bfloat)\d*x\d+$|custom\[|handle$|float(?:8|128)$|u?int(?:1|2|128)$")
"""Element types that TVM has and irscope only names."""


OWN = frozenset(name for name, dtype in DTYPES.items() if name not in PRINTED and dtype.kind not in ("token", "opaque"))
"""Element types that Relay has no word for: they keep HLO's."""


def dtype_named(word: str) -> DType | None:
    """The element type of a word, or None."""
    return DTYPES[NAMES[word]] if word in NAMES else DTYPES[word] if word in OWN else None


@lru_cache(maxsize=10_000)
def type_text(type: Type) -> str:
    """A type as Relay prints it."""
    if isinstance(type, TensorType):
        name = PRINTED.get(type.dtype.name, type.dtype.name)
        if not type.shape:
            return name
        dims = ", ".join(str(d) for d in type.shape)
        return f"Tensor[({dims}{',' if len(type.shape) == 1 else ''}), {name}]".replace(",), ", "), ")
    if isinstance(type, TupleType):
        inner = ", ".join(map(type_text, type.elements))
        return f"({inner}{',' if len(type.elements) == 1 else ''})"
    if isinstance(type, FunctionType):
        return f"fn ({', '.join(map(type_text, type.params))}) -> {type_text(type.result)}"
    return str(type)
