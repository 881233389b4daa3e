"""Parses attribute values: numbers, strings, lists, and tensors as far as the text shows them."""
from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from irscope.formats.torchscript.types import parse_type, split_commas
from irscope.lazy import Array, np
from irscope.ops.faults import TypeFault

INT = re.compile(r"[+-]?\d+$", re.ASCII)
MAX_DIGITS = 300
"""A longer number is beyond every type, and Python converts no text of thousands of digits."""
MOST_DIGITS_OF_INT64 = 20
"""With its sign."""
FLOAT = re.compile(r"[+-]?(?:\d++\.?\d*+(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?|inf|nan)$", re.IGNORECASE | re.ASCII)
REAL = r"(?:\d++\.?\d*+|\.\d+)(?:e[+-]?\d+)?|inf|nan"
COMPLEX = re.compile(rf"([+-]?(?:{REAL}))([+-](?:{REAL}))j$")
TENSOR_TAIL = re.compile(
    r"\[ ?(\w{0,40}?)(CPU|CUDA|Mkldnn\w{0,40}?|Quantized\w{0,40}?|XPU|HIP|MPS)?(\w{1,40})Type\{([\d,]*)\}([^\]]*)\]\s*$")
"""Its words are bounded: of a long one, each of two parts would else be tried in every length."""
TYPE_HEAD = re.compile(r"(?:Tensor|Float|Double|Long|Int|Bool|Half|Byte|Char|Short|BFloat16|Complex\w+|int|float|bool|str)\b")


@dataclass(frozen=True, slots=True)
class TensorText:
    """A tensor constant as printed.

    ``text`` is the whole constant: one element in braces (6 digits), up to ten elements followed by a type (5 digits),
    or ``<Tensor>``, without values (``elided``).
    """

    text: str
    elided: bool

    def array(self) -> Array:
        """The elements that the text shows, as int64, float64 or complex128, in the shape that it shows (a scalar for braces).

        Raises TypeFault where the values are elided or of unknown form.
        """
        if self.elided:
            raise TypeFault("the text elides the values of this tensor")
        try:
            return np.asarray(_element(self.text[1:-1])) if self.text.startswith("{") else _printed_array(self.text)
        except ValueError as fault:  # a text that is not a number, or a wrong number of elements
            raise TypeFault(str(fault)) from None


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that is not data: a hidden graph, an object by address, an enum."""

    text: str


MAX_NESTING = 60
"""Brackets of a value nested deeper are kept as text: each level takes several calls of Python, and reads the rest of the value again."""


@lru_cache(maxsize=50_000)
def parse_value(text: str, depth: int = 0) -> Any:
    """The Python value of an attribute's text; a list becomes a :class:`List`, which is a tuple.

    ``True`` and ``1`` both represent booleans: the type of the node decides. Any other text becomes an :class:`Opaque`.
    """
    bare = text.strip()
    if not bare:
        return Opaque(text)
    if INT.match(bare):
        return int(bare) if len(bare) <= MAX_DIGITS else Opaque(text)
    if FLOAT.match(bare):
        return float(bare)
    if bare[0] in "\"'" and bare[-1] == bare[0] and len(bare) > 1:
        return unescape(bare[1:-1])
    if bare in ("True", "False"):
        return bare == "True"
    if bare == "None":
        return None
    if bare in ("<Tensor>", "[<Tensors>]"):
        return TensorText(bare, True)
    if TENSOR_TAIL.search(bare):
        return TensorText(bare, False)
    return _structured(bare, depth + 1) if depth < MAX_NESTING else Opaque(bare)


def _structured(bare: str, depth: int) -> object:
    if bare.startswith("annotate(") and bare.endswith(")"):
        inner = split_commas(bare[len("annotate("):-1])
        return parse_value(inner[-1], depth) if len(inner) > 1 else Opaque(bare)
    if bare[0] == "[" and bare[-1] == "]":
        return List(parse_value(part, depth) for part in split_commas(bare[1:-1]))
    if bare[0] == "(" and bare[-1] == ")":
        return tuple(parse_value(part, depth) for part in split_commas(bare[1:-1]))
    if bare[0] == "{" and bare[-1] == "}":
        return _braces(bare, depth)
    if bare.startswith("torch.device(") and bare.endswith(")"):
        return parse_value(bare[len("torch.device("):-1], depth)
    found = COMPLEX.match(bare)
    if found:
        return complex(float(found[1]), float(found[2]))
    if TYPE_HEAD.match(bare):
        types = [parse_type(part) for part in split_commas(bare)]
        return types[0] if len(types) == 1 else tuple(types)
    return Opaque(bare)


class List(tuple[object, ...]):
    """A list in an attribute (a tuple, because attributes are shared and never change)."""

    __slots__ = ()


def _braces(bare: str, depth: int) -> object:
    parts = split_commas(bare[1:-1])
    pairs = [_colon(part) for part in parts]
    if parts and all(pair is not None for pair in pairs):
        keys = [parse_value(pair[0], depth) for pair in pairs if pair is not None]
        if not all(map(_is_key, keys)):
            return Opaque(bare)
        return {key: parse_value(pair[1], depth) for key, pair in zip(keys, pairs, strict=True) if pair is not None}
    if not parts:
        return {}
    return TensorText(bare, False)


def _is_key(value: object) -> bool:
    """Whether a dict can have the key: one with a dict in it changes."""
    return not isinstance(value, dict) and (not isinstance(value, tuple) or all(map(_is_key, value)))


def _colon(part: str) -> tuple[str, str] | None:
    """The key and the value of an entry of a dict; None without a colon outside quotes."""
    quote = ""
    for at, c in enumerate(part):
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        elif c == ":":
            return part[:at], part[at + 1:]
    return None


ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\\": "\\", '"': '"', "'": "'", "0": "\0"}


def unescape(text: str) -> str:
    r"""A string without its escapes.

    PyTorch prints a byte above 127 as a backslash and three characters computed from a *signed* byte, so they are not octal digits
    (``e-acute`` is ``\0)+\/.)``). The byte is ``(a-48)*64 + (b-48)*8 + (c-48)`` modulo 256 all the same.
    """
    if "\\" not in text:
        return text
    out = bytearray()
    at = 0
    while at < len(text):
        c = text[at]
        if c != "\\" or at + 1 >= len(text):
            out += c.encode()
            at += 1
            continue
        after = text[at + 1]
        if after in ESCAPES and not (after == "0" and len(text) >= at + 4 and text[at + 2:at + 4].strip("01234567()*+,-./") == ""):
            out += ESCAPES[after].encode()
            at += 2
        elif len(text) >= at + 4:
            a, b, d = (ord(x) - 48 for x in text[at + 1:at + 4])
            out.append((a * 64 + b * 8 + d) % 256)
            at += 4
        else:
            out += text[at:].encode()
            break
    return out.decode("utf-8", "replace")


def _element(text: str) -> object:
    text = text.strip()
    if text.startswith("("):
        re_, im = text[1:-1].split(",")
        return complex(float(re_), float(im))
    return _number(text)


def _number(text: str) -> float:
    """A number as it is printed. Integers are exact: a float has 53 bits, and torch prints the 63 of the end of a slice."""
    if INT.match(text) and len(text) <= MOST_DIGITS_OF_INT64:
        whole = int(text)
        if -1 << 63 <= whole < 1 << 63:
            return whole
    return float(text)


def _printed_array(text: str) -> Array:
    """A tensor printed with its elements: ``scale *`` prefixes and slice headers ``(1,.,.) =`` are understood."""
    found = TENSOR_TAIL.search(text)
    if found is None:
        raise ValueError(f"{text[:40]} is not a tensor")
    shape = tuple(int(d) for d in found[4].split(",") if d)
    body = text[:found.start()]
    values: list[float] = []
    for piece in re.split(r"\([\d.,]+\) = ?", body):
        scaled = re.match(r"\s*([\d.e+-]+) \*", piece)
        words = piece[scaled.end() if scaled else 0:].split()
        values += [float(scaled[1]) * float(word) for word in words] if scaled else map(_number, words)
    if int(np.prod(shape)) != len(values):
        raise ValueError(f"{len(values)} elements are printed for shape {shape}")
    return np.array(values).reshape(shape)
