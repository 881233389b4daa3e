"""A decoded message, of the binary or the text form: its fields by name, with typed access and proto3's defaults."""
from __future__ import annotations

import struct
from functools import cache
from typing import TypeAlias

from irscope.formats.hlo_pb.schema import Field, Message, enum, message
from irscope.lazy import Array, np
from irscope.source.budget import require, tick

Value: TypeAlias = "int | float | bytes | Record"
DEEPEST = 100
"""Messages within messages; protobuf's own readers have the same limit."""
FEW = 4096
"""Up to so many bytes of integers are read one by one, without numpy."""
_FIXED = {"float": ("<f", "<f4"), "double": ("<d", "<f8")}


class Malformed(Exception):
    """The data is no message: ``offset`` is a byte, or a character of the text form."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class Record:
    """One message, which is not changed after decoding: equal ones may be one object.

    A packed list is kept as its bytes until it is asked for; missing fields have the value 0, "" or no elements. ``printed`` is the text
    of a message that is printed often, as soon as it was printed once.
    """

    __slots__ = ("message", "printed", "values")

    def __init__(self, kind: Message) -> None:
        self.message = kind
        self.values: dict[str, list[Value]] = {}
        self.printed: str | None = None

    def has(self, name: str) -> bool:
        """Whether a field is there."""
        return name in self.values

    def number(self, name: str) -> int:
        """An integer, a bool or the number of an enum's word."""
        value = self._last(name)
        return int(value) if isinstance(value, int | float) else 0

    def flag(self, name: str) -> bool:
        """A bool."""
        return self.number(name) != 0

    def real(self, name: str) -> float:
        """A float or double."""
        value = self._last(name)
        return float(value) if isinstance(value, int | float) else 0.0

    def data(self, name: str) -> bytes:
        """The bytes of a string or bytes field."""
        value = self._last(name)
        return value if isinstance(value, bytes) else b""

    def text(self, name: str) -> str:
        """A string. Bytes that are not UTF-8 become replacement characters."""
        return self.data(name).decode("utf-8", "replace")

    def texts(self, name: str) -> list[str]:
        """A repeated string."""
        return [value.decode("utf-8", "replace") for value in self.values.get(name, ()) if isinstance(value, bytes)]

    def word(self, name: str) -> str:
        """The word of an enum; its number in digits where irscope does not know it."""
        number = self.number(name)
        return enum(self.message.names[name].type).get(number, str(number))

    def words(self, name: str) -> list[str]:
        """The words of a repeated enum."""
        known = enum(self.message.names[name].type)
        return [known.get(number, str(number)) for number in self.numbers(name)]

    def record(self, name: str) -> Record:
        """A message; an empty one where it is missing."""
        value = self._last(name)
        if isinstance(value, Record):
            return value
        return _empty(self.message.names[name].type)

    def records(self, name: str) -> list[Record]:
        """A repeated message."""
        return [value for value in self.values.get(name, ()) if isinstance(value, Record)]

    def numbers(self, name: str) -> list[int]:
        """A repeated integer, bool or enum."""
        found: list[int] = []
        if name not in self.values:
            return found
        field = self.message.names[name]
        for value in self.values[name]:
            if isinstance(value, bytes):
                found += _few(value, field)
            elif isinstance(value, int):
                found.append(value)
        return found

    def array(self, name: str) -> Array:
        """A repeated number as a flat array: of int64, uint64, float32 or float64; of bytes for a bytes field. Raises Malformed."""
        field = self.message.names[name]
        if field.kind == "bytes":
            return np.frombuffer(self.data(name), np.uint8)
        dtype = np.dtype(_FIXED[field.kind][1] if field.kind in _FIXED else np.uint64 if field.kind == "uint" else np.int64)
        parts = []
        single: list[int | float] = []
        for value in self.values.get(name, ()):
            if isinstance(value, int | float):
                single.append(value)
            elif isinstance(value, bytes):
                require(len(value) * dtype.itemsize, name)
                if field.kind in _FIXED and len(value) % dtype.itemsize:
                    raise Malformed(f"{name} has {len(value):,} bytes, which are no numbers of {dtype.itemsize} bytes", -1)
                parts.append(np.frombuffer(value, dtype) if field.kind in _FIXED else varints(value, field))
        if single:
            parts.append(np.array(single, dtype))
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def _last(self, name: str) -> Value | None:
        values = self.values.get(name)
        return values[-1] if values else None


@cache
def _empty(type: str) -> Record:
    """What stands for all missing messages of a type."""
    return Record(message(type))


def _few(data: bytes, field: Field) -> list[int]:
    """The packed integers of a field: of most messages, dimensions and numbers of instructions."""
    if len(data) > FEW:
        return [int(number) for number in varints(data, field)]
    found = []
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            value &= (1 << 64) - 1
            found.append(value - (1 << 64) if value >> 63 and field.kind != "uint" else value)
            value = shift = 0
    return found


def varints(data: bytes, field: Field) -> Array:
    """The packed integers of a field, as int64, or uint64 where it is unsigned. Their number is bounded by the bytes that are there."""
    kind = np.uint64 if field.kind == "uint" else np.int64
    raw = np.frombuffer(data, np.uint8)
    require(16 * len(raw), "a packed list")
    tick(len(raw) >> 10)
    ends = np.flatnonzero(raw < 128)
    if not len(ends):
        return np.zeros(0, kind)
    raw = raw[:ends[-1] + 1]
    if len(ends) == len(raw):
        return raw.astype(kind)
    begins = np.concatenate(([0], ends[:-1] + 1))
    if int((ends - begins).max()) > 9:
        return np.zeros(0, kind)
    place = np.arange(len(raw)) - np.repeat(begins, ends - begins + 1)
    parts = (raw & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(parts, begins).astype(np.uint64).view(kind)


def fixed(kind: str, data: bytes) -> float:
    """A float or double of its little-endian bytes."""
    return float(struct.unpack(_FIXED[kind][0], data)[0])
