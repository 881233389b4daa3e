"""Changes within binary files that keep their framing whole: fields of protos, members of zip archives.

A byte changed at random mostly breaks a length or a checksum, and the reader stops there; what lies behind the framing is reached by files
whose framing is right.
"""
from __future__ import annotations

import io
import random
import zipfile
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field

from irscope.formats.detect import detect_bytes
from tests.fuzz.spice import SPICE
from tests.fuzz.spoil import NUMBERS, Mutator

PROTOS = ("hlo-pb", "onnx")
DEEPEST = 12
"""Messages within messages; bytes further inside are taken as they are."""
ONE_BYTE = [bytes((value,)) for value in range(128)]
CHANGES = (1, 1, 1, 1, 2, 4)
VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
WIDTHS = {FIXED64: 8, FIXED32: 4}
TEXT = Mutator(SPICE["export"])
WORD = Mutator(SPICE["arguments"])


def vary_bytes(data: bytes, other: bytes, rng: random.Random) -> bytes | None:
    """The file with a few changes; ``other`` lends fields and members. None where it is no proto or archive."""
    if data.startswith(b"PK"):
        return vary_zip(data, rng)
    if detect_bytes(data) not in PROTOS:
        return None
    message = parse(data)
    if message is None:
        return None

    def lent() -> list[Field]:
        return (parse(other) if detect_bytes(other) in PROTOS else None) or message
    return encode(vary_message(message, lent, rng))


@dataclass(slots=True)
class Field:
    """One field of a message: a number, its bytes, or the fields of a message."""

    number: int
    wire: int
    value: int | bytes | list[Field] = field(default=0)


def parse(data: bytes, depth: int = 0) -> list[Field] | None:
    """The fields of a message; None where the bytes are none."""
    found: list[Field] = []
    at = 0
    while at < len(data):
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not number or at < 0:
            return None
        if wire == VARINT:
            value, at = (data[at], at + 1) if at < len(data) and data[at] < 128 else _varint(data, at)
            if at < 0:
                return None
            found.append(Field(number, wire, value))
        elif wire in WIDTHS or wire == LENGTH:
            size = WIDTHS.get(wire, 0)
            if wire == LENGTH:
                size, at = (data[at], at + 1) if at < len(data) and data[at] < 128 else _varint(data, at)
            if at < 0 or at + size > len(data):
                return None
            inner = data[at:at + size]
            inside = parse(inner, depth + 1) if wire == LENGTH and size and depth < DEEPEST and not inner.isascii() | inner.isalnum() else None
            found.append(Field(number, wire, inner if inside is None else inside))
            at += size
        else:
            return None
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at an offset, and the offset behind it; -1 where there is none."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return 0, -1
        value |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return value, at
    return 0, -1


def encode(message: list[Field]) -> bytes:
    """The bytes of a message."""
    out = bytearray()
    for one in message:
        out += _bytes_of(one.number << 3 | one.wire)
        if isinstance(one.value, int):
            out += _bytes_of(one.value)
            continue
        inner = encode(one.value) if isinstance(one.value, list) else one.value
        out += (_bytes_of(len(inner)) if one.wire == LENGTH else b"") + inner
    return bytes(out)


def _bytes_of(number: int) -> bytes:
    if 0 <= number < 128:
        return ONE_BYTE[number]
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def messages(message: list[Field]) -> Iterator[list[Field]]:
    """A message and all within it."""
    yield message
    for one in message:
        if isinstance(one.value, list):
            yield from messages(one.value)


def vary_message(message: list[Field], other: Callable[[], list[Field]], rng: random.Random) -> list[Field]:
    """The message with a few fields changed, dropped, repeated or lent, in place. ``other`` reads the message that lends, which most
    changes do without."""
    for _ in range(rng.choice(CHANGES)):
        inside = rng.choice([found for found in messages(message) if found] or [message])
        if not inside:
            continue
        at = rng.randrange(len(inside))
        what = rng.random()
        if what < 0.1:
            del inside[at]
        elif what < 0.2:
            inside.insert(rng.randrange(len(inside) + 1), deepcopy(inside[at]))
        elif what < 0.35:
            alike = [one for found in messages(other()) for one in found if one.number == inside[at].number and one.wire == inside[at].wire]
            inside[at] = deepcopy(rng.choice(alike or [inside[at]]))
        else:
            inside[at] = _changed(inside[at], rng)
    return message


def _changed(one: Field, rng: random.Random) -> Field:
    if isinstance(one.value, int):
        return Field(one.number, one.wire, rng.choice((*NUMBERS, one.value + 1, one.value - 1, one.value * 2)))
    if isinstance(one.value, list):
        return Field(one.number, one.wire, rng.sample(one.value, len(one.value)))
    if one.wire in WIDTHS:
        return Field(one.number, one.wire, rng.randbytes(len(one.value)))
    text = WORD.mutate(one.value.decode("latin-1"), "x", rng)
    return Field(one.number, one.wire, text.encode("latin-1", "replace"))


def vary_zip(data: bytes, rng: random.Random) -> bytes | None:
    """An archive with one member changed, dropped or renamed; None where it cannot be read."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except (zipfile.BadZipFile, OSError, RuntimeError, ValueError, EOFError):
        return None
    if not members:
        return None
    texts = [i for i, (name, _) in enumerate(members) if name.endswith((".json", ".txt", "version"))]
    at = rng.choice(texts) if texts and rng.random() < 0.8 else rng.randrange(len(members))
    name, content = members[at]
    what = rng.random()
    if what < 0.05:
        del members[at]
    elif what < 0.1:
        members[at] = rng.choice((f"../{name}", name + "x", members[0][0], "/etc/x")), content
    else:
        members[at] = name, TEXT.mutate(content.decode("latin-1"), '"x": [1]', rng).encode("latin-1", "replace")
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for path, inner in members:
            made.writestr(zipfile.ZipInfo(path), inner)
    return out.getvalue()
