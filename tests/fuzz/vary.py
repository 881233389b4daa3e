"""Changes after which a program often still fits together: sizes and types everywhere alike, operators and operands for others of their kind."""
from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from irscope.formats.relay.operators import load as load_relay
from irscope.formats.torchscript.operators import load as load_torchscript
from irscope.ops import all_ops

SIZES = (0, 1, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 100, 1024, 65536, 2**31 - 1, 2**31, 2**63)
"""What a dimension becomes: edges of vectors and tiles, and where integers end."""
CHANGES = (0, 0, 1, 1, 1, 1, 2, 3)
"""How many changes a text gets; one is drawn."""
DTYPES = {
    "hlo": "pred s4 s8 s16 s32 s64 u4 u8 u16 u32 u64 f16 bf16 f32 f64 c64 c128 f8e5m2 f8e4m3fn f8e4m3b11fnuz f4e2m1fn token".split(),
    "torchscript": "Float Double Half BFloat16 Long Int Short Char Byte Bool ComplexFloat QInt8 Tensor".split(),
    "export": "f32 f16 f64 bf16 i8 i16 i32 i64 u8 b8 c64 float32 float16 float64 bfloat16 int64 int32 bool".split(),
    "relay": "float32 float16 float64 bfloat16 int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 bool".split(),
}
_DTYPE = {name: re.compile(rf"\b(?:{'|'.join(words)})\b") for name, words in DTYPES.items()}
_SIZE = re.compile(r"(?<=[\[(,x ])\d{1,6}(?=[\]),x{:])")
_OP = {"hlo": re.compile(r"(?<=[\]})] )([a-z][a-z0-9-]+)(?=\()"), "torchscript": re.compile(r"(?<== )(\w+::\w+)(?=[(\[])"),
       "export": re.compile(r"(?<=torch\.ops\.)(\w+\.\w+)(?=\.)"),
       "relay": re.compile(r"(?<![\w@%.])([a-z][a-z0-9_.]*)(?=\()")}
_RESULT = {"hlo": re.compile(r"^ *(?:ROOT )?(%?[\w.\-]+) = (\(?\w+\[[^\]]*\])", re.M), "torchscript": re.compile(r"^ *(%[\w.]+) : ([^=#]+) =", re.M),
           "export": re.compile(r"^ *(\w+)(?:: \"([^\"\n]*)\")? =", re.M),
           "relay": re.compile(r"(?:let |^ *)(%\w+)( )=", re.M)}
_ATTR = {"hlo": re.compile(r"\b([a-z_]+)=(\{[^{}]*\}|[\w.\-]+)"), "torchscript": re.compile(r"(\[value=)([^\]]*)(?=\])"),
         "export": re.compile(r"\b([a-z_]+) = (\[[^\[\]]*\]|[\w.\-]+)(?=[,)])"),
         "relay": re.compile(r"\b([a-z_]+)=(\[[^\[\]]*\]|\"[^\"]*\"|[\w.\-]+)")}
_LITERAL = re.compile(r"(?<=constant\()[^()]*(?=\))|(?<=value=)[\w.\-+]+|(?<=[ (,])-?\d+(?:\.\d+)?f?(?=[,)])")
LITERALS = "0 1 -1 2 3 0.5 -0.0 nan inf -inf 1e30 1e-30 255 -128 2147483647 -2147483648 9223372036854775807 true false {} {1,2} None".split()


@cache
def operators(format: str) -> tuple[str, ...]:
    """The names of all operators of a format that irscope knows."""
    load_torchscript()
    load_relay()
    if format == "export":
        return tuple(name.replace("::", ".") for name in operators("torchscript") if "::" in name)
    return tuple(sorted(op.name for op in all_ops() if op.dialect == format))


@dataclass(frozen=True, slots=True)
class Variation:
    """Varies texts of one format."""

    format: str

    def vary(self, text: str, other: str, rng: random.Random) -> str:
        """The text with up to three changes; ``other`` lends attributes and operators."""
        for _ in range(rng.choice(CHANGES)):
            text = rng.choice(VARIATIONS)(self, text, other, rng)
        return text

    def resize(self, text: str, other: str, rng: random.Random) -> str:
        """``f32[16,3]`` and all that is 16 elsewhere: 17."""
        size = _drawn(_SIZE, text, rng)
        if size is None:
            return text
        new = str(rng.choice(SIZES[:rng.choice((15, 15, 15, len(SIZES)))]))
        return re.sub(rf"(?<![\w.]){size[0]}(?![\w.])", new, text)

    def resize_once(self, text: str, other: str, rng: random.Random) -> str:
        return _replaced(text, _drawn(_SIZE, text, rng), str(rng.choice(SIZES)))

    def retype(self, text: str, other: str, rng: random.Random) -> str:
        """All of one element type to another."""
        dtype = _drawn(_DTYPE[self.format], text, rng)
        return text if dtype is None else re.sub(rf"\b{dtype[0]}\b", rng.choice(DTYPES[self.format]), text)

    def retype_once(self, text: str, other: str, rng: random.Random) -> str:
        return _replaced(text, _drawn(_DTYPE[self.format], text, rng), rng.choice(DTYPES[self.format]))

    def exchange(self, text: str, other: str, rng: random.Random) -> str:
        """An operator for another one: of the text, of the other text, or any."""
        found = _drawn(_OP[self.format], text, rng)
        lent = _drawn(_OP[self.format], rng.choice((text, other)), rng)
        return _replaced(text, found, lent[0] if lent and rng.random() < 0.5 else rng.choice(operators(self.format)))

    def rewire(self, text: str, other: str, rng: random.Random) -> str:
        """A use of a value for one of another, of the same written type where there is one."""
        results = list(_RESULT[self.format].finditer(text))
        if len(results) < 2:
            return text
        one = rng.choice(results)
        alike = [m for m in results if m[2] == one[2] and m[1] != one[1]]
        new = rng.choice(alike if alike and rng.random() < 0.8 else results)[1]
        uses = list(re.finditer(rf"(?<![\w.%]){re.escape(one[1])}(?![\w.\-])", text))
        return _replaced(text, rng.choice(uses[1:] or uses), new) if uses else text

    def drop(self, text: str, other: str, rng: random.Random) -> str:
        lines = text.split("\n")
        del lines[rng.randrange(len(lines))]
        return "\n".join(lines)

    def again(self, text: str, other: str, rng: random.Random) -> str:
        """A statement a second time, under another name; whoever used it may use either."""
        found = _drawn(_RESULT[self.format], text, rng)
        if found is None:
            return text
        begin, end = text.rfind("\n", 0, found.start(1)) + 1, text.find("\n", found.end())
        line = text[begin:end].replace("ROOT ", "").replace(found[1], found[1] + "_again", 1)
        return text[:begin] + line + "\n" + text[begin:]

    def attribute(self, text: str, other: str, rng: random.Random) -> str:
        """An attribute gets the value that another one of its name has, or loses it."""
        found = _drawn(_ATTR[self.format], text, rng)
        if found is None:
            return text
        values = [m[2] for m in _ATTR[self.format].finditer(text + other) if m[1] == found[1]]
        new = rng.choice((*values, "{}", "0", re.sub(r"\d+", str(rng.choice(SIZES)), found[2], count=1)))
        return text[:found.start(2)] + new + text[found.end(2):]

    def literal(self, text: str, other: str, rng: random.Random) -> str:
        return _replaced(text, _drawn(_LITERAL, text, rng), rng.choice(LITERALS))


def _drawn(pattern: re.Pattern[str], text: str, rng: random.Random) -> re.Match[str] | None:
    """One of the places where a pattern is found."""
    found: Sequence[re.Match[str]] = list(pattern.finditer(text))
    return rng.choice(found) if found else None


def _replaced(text: str, found: re.Match[str] | None, new: str) -> str:
    return text if found is None else text[:found.start()] + new + text[found.end():]


VARIATIONS: list[Callable[[Variation, str, str, random.Random], str]] = [
    Variation.resize, Variation.resize, Variation.resize_once, Variation.retype, Variation.retype_once, Variation.exchange,
    Variation.rewire, Variation.rewire, Variation.drop, Variation.again, Variation.attribute, Variation.attribute,
    Variation.literal]
