"""Types as torch annotates them: ``f32[8, s77]``, with strides and device in logs: ``f32[8, 4][4, 1]cpu``."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from irscope.formats.export.symbols import Unreadable, spelled
from irscope.formats.torchscript.types import TorchTensorType
from irscope.graph import DTYPES, Dim, DynamicDim, NamedType, Type

ABBREVIATIONS = {
    "b8": "pred", "u8": "u8", "i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64", "u16": "u16", "u32": "u32", "u64": "u64",
    "f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64", "c64": "c64", "c32": "c64", "c128": "c128", "f8e5m2": "f8e5m2",
    "f8e4m3fn": "f8e4m3fn", "f8e5m2fnuz": "f8e5m2fnuz", "f8e4m3fnuz": "f8e4m3fnuz", "f8e8m0fnu": "f8e8m0fnu", "f4e2m1fnx2": "u8",
    "q8": "s8", "qu8": "u8", "qi8": "s8", "qi32": "s32", "qu4x2": "u8", "qu2x4": "u8", "b1": "pred", "i1": "s1", "i2": "s2", "i4": "s4",
    "u1": "u1", "u2": "u2", "u4": "u4", "i3": "s8", "i5": "s8", "i6": "s8", "i7": "s8", "u3": "u8", "u5": "u8", "u6": "u8", "u7": "u8",
}
"""torch.utils._dtype_abbrs, and the element type that represents each (complex32 is computed as complex64)."""
SHORT = {dtype: short for short, dtype in reversed(ABBREVIATIONS.items())}
"""torch's abbreviation of an element type."""

TENSOR = re.compile(r"(?:\w+\()?(?P<dtype>[a-z]+\d\w*)\[(?P<dims>[^\[\]]*)\](?:\[(?P<strides>[^\[\]]*)\])?(?P<device>[a-z]+(?::\d+)?)?")
SYMBOL = re.compile(r"Sym\((.*)\)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SymbolType(NamedType):
    """A number that torch computes from sizes: its kind (int, float or bool) and its expression."""

    expression: str = ""


class BadType(ValueError):
    """An annotation that names no type."""


@lru_cache(maxsize=20_000)
def parse_annotation(text: str) -> Type:
    """The type that an annotation names. Raises BadType where brackets or sizes in it are malformed."""
    text = text.strip()
    found = SYMBOL.match(text)
    if found is not None:
        return symbol_type(found[1])
    found = TENSOR.match(text)
    if found is None or found["dtype"] not in ABBREVIATIONS:
        if "[" in text and not re.match(r"[\w.]+\[[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]$", text):
            raise BadType(f"{text[:60]!r} is no type: an element type and sizes are expected, as in f32[8, s77]")
        return NamedType(text)
    dims = [size(part) for part in split_sizes(found["dims"])]
    return tensor_type(found["dtype"], dims, _strides(found["strides"]), found["device"] or "")


def tensor_type(short: str, dims: list[Dim], strides: tuple[int, ...] | None = None, device: str = "",
                requires_grad: bool = False) -> TorchTensorType:
    """The type of a tensor, spelled as torch annotates it."""
    text = f"{short}[{', '.join(map(str, dims))}]"
    if strides is not None and len(strides) != len(dims):
        strides = None
    return TorchTensorType(DTYPES[ABBREVIATIONS[short]], tuple(dims), None, strides, requires_grad, device, text)


def symbol_type(expression: str) -> SymbolType:
    """The type of a number with this expression: a comparison is a bool."""
    try:
        text = spelled(expression)
    except Unreadable:
        text = expression
    if re.search(r" [<>]=? |^(?:Eq|Ne|And|Or)\(|^~|[&|]|^(?:True|False)$", text):
        return SymbolType("bool", text)
    return SymbolType("float" if re.match(r"zuf?\d|ToFloat|FloatTrueDiv|-?\d+\.\d", text) else "int", text)


def size(text: str) -> Dim:
    """One size: a number or an expression. Raises BadType for anything else."""
    text = text.strip()
    if text.isdecimal() and len(text) < 20:
        return int(text)
    try:
        return DynamicDim(spelled(text))
    except Unreadable as error:
        raise BadType(f"{error}: a size is a number or an expression of symbols") from None


def split_sizes(text: str) -> list[str]:
    """The parts of a list of sizes, at commas outside of brackets."""
    parts, depth, begin = [], 0, 0
    for at, c in enumerate(text):
        if c == "(":
            depth += 1
        elif c == ")":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    if text[begin:].strip():
        parts.append(text[begin:])
    return parts


def _strides(text: str | None) -> tuple[int, ...] | None:
    """Strides, where all of them are numbers."""
    parts = [part.strip() for part in split_sizes(text or "")]
    return tuple(map(int, parts)) if text is not None and all(p.isdecimal() and len(p) < 20 for p in parts) else None

