"""TorchScript's spelling of types: tensors with or without shape, and everything else by name."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from irscope.graph import DTYPES, Dim, DynamicDim, NamedType, TensorType, TupleType, Type
from irscope.source import UserError

SCALARS = {
    "Byte": "u8", "Char": "s8", "Short": "s16", "Int": "s32", "Long": "s64", "Half": "f16", "Float": "f32", "Double": "f64",
    "Bool": "pred", "BFloat16": "bf16", "ComplexHalf": "c64", "ComplexFloat": "c64", "ComplexDouble": "c128", "QInt8": "s8", "QUInt8": "u8",
    "QInt32": "s32", "UInt16": "u16", "UInt32": "u32", "UInt64": "u64", "Float8_e4m3fn": "f8e4m3fn", "Float8_e5m2": "f8e5m2",
    "Float8_e4m3fnuz": "f8e4m3fnuz", "Float8_e5m2fnuz": "f8e5m2fnuz", "Float8_e8m0fnu": "f8e8m0fnu", "QUInt4x2": "u4", "QUInt2x4": "u2",
}
"""The words for element types, and the type that represents each (a quantised type by its storage; complex32 is computed as complex64)."""

TENSOR = re.compile(r"(\w+)\((.*)\)(\[Undefined\])?$", re.DOTALL)
INTEGER = re.compile(r" *-?[0-9]{1,19} *")
"""A size; a number with more digits is invalid."""
TENSOR_WORD = NamedType("Tensor")


@dataclass(frozen=True, slots=True)
class TorchTensorType(TensorType):
    """A tensor type with what TorchScript has beyond HLO: ``strides`` (None: unknown), ``requires_grad``, ``device``, its ``text``."""

    strides: tuple[int, ...] | None = None
    requires_grad: bool = False
    device: str = ""
    text: str = ""

    def __str__(self) -> str:
        return self.text


WORDS = {name: word for word, name in reversed(SCALARS.items())}
"""The word that torch prints for an element type; of a quantised type that of its storage."""


def plain_type(type: TensorType) -> TorchTensorType:
    """The type as torch writes it where it knows only the shape: ``Float(2, 3)``.

    Raises UserError for an element type that torch does not have.
    """
    if type.dtype.name not in WORDS:
        raise UserError(f"torch has no element type {type.dtype.name}", f"its types are {', '.join(WORDS)}")
    text = f"{WORDS[type.dtype.name]}({', '.join(str(d) for d in type.shape)})"
    return TorchTensorType(type.dtype, type.shape, text=text)


MAX_NESTING = 100
"""A tuple type nested deeper is kept by name: each level takes several calls of Python, and reads the rest of the type again."""


@lru_cache(maxsize=20_000)
def parse_type(text: str, depth: int = 0) -> Type:
    """The type that a text names. Anything but a tuple or a tensor of known rank keeps its text."""
    text = text.strip()
    if depth < MAX_NESTING and text.startswith("(") and text.endswith(")") and _closes(text) == len(text) - 1:
        return TupleType(tuple(parse_type(part, depth + 1) for part in split_commas(text[1:-1])))
    found = TENSOR.match(text)
    if found is None or found[1] not in SCALARS:
        return NamedType(text)
    dims: list[Dim] = []
    strides: tuple[int, ...] | None = None
    grad, device = False, ""
    for item in split_commas(found[2]):
        item = item.strip()
        key, equals, value = item.partition("=")
        if equals:
            if key == "strides":
                strides = tuple(int(s) for s in value.strip("[]").split(",") if INTEGER.fullmatch(s))
            elif key == "requires_grad":
                grad = value == "1"
            elif key == "device":
                device = value
        else:
            dims.append(_dim(item))
            if INTEGER.fullmatch(item.partition(":")[2]):  # torch 1.5 to 1.7 wrote size:stride
                strides = (*(strides or ()), int(item.partition(":")[2]))
    return TorchTensorType(DTYPES[SCALARS[found[1]]], tuple(dims), None, strides, grad, device, text)


def _dim(item: str) -> Dim:
    """A size, or an open one: torch writes ``*`` for it in types, and -1 in calls."""
    size = item.partition(":")[0].rstrip("!")
    if INTEGER.fullmatch(size) and not size.startswith("-"):
        return int(size)
    return DynamicDim("" if size == "*" or size.startswith("-") else size)


def split_commas(text: str) -> list[str]:
    """The parts of a list, at commas outside every bracket and string."""
    parts: list[str] = []
    depth, begin, at, quote = 0, 0, 0, ""
    while at < len(text):
        c = text[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
        at += 1
    if text[begin:].strip():
        parts.append(text[begin:])
    return parts


def _closes(text: str) -> int:
    """The offset of the bracket that closes the first one."""
    depth = 0
    for at, c in enumerate(text):
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return at
    return -1
