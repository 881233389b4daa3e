"""The binary form of a proto: tags, lengths, varints. Every length is checked against the bytes that are there before anything is made."""
from __future__ import annotations

from irscope.formats.hlo_pb.record import DEEPEST, Malformed, Record, fixed
from irscope.formats.hlo_pb.schema import Field, Message, message
from irscope.source.budget import tick

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
INTEGERS = frozenset(("int", "bool", "enum", "uint"))
_SIZES = {FIXED64: 8, FIXED32: 4}


SHORT = 256
"""In bytes: equal messages up to this size are decoded once. Shapes and metadata repeat in most instructions."""


def decode(data: bytes, kind: Message) -> Record:
    """A message of a kind. Fields that the schema does not have, or has with another wire type, are stepped over. Raises Malformed."""
    return _Decoder(data).record(0, len(data), kind, 0)


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """The unsigned number at an offset, and the offset after it. Raises Malformed."""
    value = shift = 0
    begin = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & ((1 << 64) - 1), at
        shift += 7
        if shift > 63:
            raise Malformed("a number is longer than ten bytes", begin)
    raise Malformed("the data ends within a number", at)


class _Decoder:
    """Decodes the messages in some bytes. Equal short ones at one depth are one record."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.known: dict[tuple[str, int, bytes], Record] = {}

    def record(self, at: int, end: int, kind: Message, depth: int) -> Record:
        """The message between two offsets."""
        if depth > DEEPEST:
            raise Malformed(f"messages are nested more than {DEEPEST} deep", at)
        data, record = self.data, Record(kind)
        values, numbers = record.values, kind.numbers
        tick()
        while at < end:
            begin = at
            tag, at = (data[at], at + 1) if data[at] < 128 else varint(data, at, end)
            field = numbers.get(tag >> 3)
            wire = tag & 7
            if wire == VARINT:
                value, at = (data[at], at + 1) if at < end and data[at] < 128 else varint(data, at, end)
                if field is not None and field.kind in INTEGERS:
                    values.setdefault(field.name, []).append(signed(value, field))
            elif wire == LENGTH:
                size, at = (data[at], at + 1) if at < end and data[at] < 128 else varint(data, at, end)
                stop = at + size
                if stop > end:
                    name = "a field" if field is None else field.name
                    raise Malformed(f"the data ends early: {name} of {kind.name} should have {size:,} bytes, but {end - at:,} are left",
                                    begin)
                if field is not None:
                    if field.kind == "message":
                        values.setdefault(field.name, []).append(self._part(at, stop, field.type, depth + 1))
                    elif field.repeated or field.kind in ("string", "bytes"):
                        values.setdefault(field.name, []).append(data[at:stop])
                at = stop
            elif wire in _SIZES:
                stop = at + _SIZES[wire]
                if stop > end:
                    raise Malformed("the data ends within a number", at)
                if field is not None and field.kind == ("double" if wire == FIXED64 else "float"):
                    values.setdefault(field.name, []).append(fixed(field.kind, data[at:stop]))
                at = stop
            else:
                raise Malformed(f"no field of {kind.name} begins with the byte {data[begin]:#04x}", begin)
            if tag < 8:
                raise Malformed(f"no field of {kind.name} has the number 0", begin)
        return record

    def _part(self, at: int, end: int, type: str, depth: int) -> Record:
        """A message within another one."""
        if end - at > SHORT:
            return self.record(at, end, message(type), depth)
        key = type, depth, self.data[at:end]
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.record(at, end, message(type), depth)
        return found


def signed(value: int, field: Field) -> int:
    """A 64-bit number with the sign of its field's type."""
    return value - (1 << 64) if value >> 63 and field.kind != "uint" else value
