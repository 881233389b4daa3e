"""Recognises MLIR bytecode, and finds it in a serialised ``jax.export.Exported``; jaxlib is not needed for that.

An MLIR bytecode file begins with a mark, the version of the encoding (one byte up to version 63) and the name of its producer, which ends
with a NUL: https://mlir.llvm.org/docs/BytecodeFormat. ``Exported.serialize()`` gives a FlatBuffers table (https://flatbuffers.dev/internals)
of jax's ``serialization.fbs``, whose module is a vector of bytes.
"""
from __future__ import annotations

import re
from dataclasses import dataclass

MARK = b"ML\xefR"
PRODUCER = re.compile(rb"ML\xefR.([ -~]{1,80})\0", re.DOTALL)
PORTABLE = re.compile(r"StableHLO_v(\d+\.\d+\.\d+)")
VERSION_SLOT, NAME_SLOT, MODULE_SLOT = 4, 6, 30
"""The places in a table's index of ``serialization_version``, ``function_name`` and ``mlir_module_serialized`` (jax 0.4.30 to 0.12)."""
MAX_VERSION = 255
"""jax 0.12 writes version 11."""


@dataclass(frozen=True, slots=True)
class Bytecode:
    """The bytecode of a file. ``version`` is that of StableHLO in a portable artefact, empty for bytecode of the plain dialects."""

    data: bytes
    producer: str
    version: str
    is_exported: bool

    @property
    def kind(self) -> str:
        """What the file is, with its article."""
        plain = f"MLIR bytecode of {self.producer or 'an unnamed producer'}"
        what = f"StableHLO {self.version} as MLIR bytecode" if self.version else plain
        return f"a serialised jax.export.Exported, which holds {what}" if self.is_exported else what


def sniff_bytes(data: bytes) -> float:
    """The confidence that bytes are MLIR bytecode or hold it, from 0 to 1."""
    if data.startswith(MARK):
        return 1.0
    begin, _ = _module_of_exported(data)
    return 0.95 if begin else 0.0


def unpacked(data: bytes) -> Bytecode | None:
    """The bytecode of a file; None where it has none, or not all of it."""
    begin, end = (0, len(data)) if data.startswith(MARK) else _module_of_exported(data)
    if not data.startswith(MARK, begin) or end > len(data):
        return None
    m = PRODUCER.match(data, begin, min(end, begin + 200))
    producer = m[1].decode("ascii") if m else ""
    version = PORTABLE.match(producer)
    return Bytecode(data[begin:end], producer, version[1] if version else "", begin > 0)


def _module_of_exported(data: bytes) -> tuple[int, int]:
    """Begin and end of the bytecode in a serialised Exported, (0, 0) where the bytes are none. The end may be behind that of the data."""
    root = _number(data, 0, 4)
    index = root - _number(data, root, 4, signed=True)
    version, module = (_field(data, root, index, slot) for slot in (VERSION_SLOT, MODULE_SLOT))
    if not version or not module or not 1 <= _number(data, version, 2) <= MAX_VERSION or not _field(data, root, index, NAME_SLOT):
        return 0, 0
    vector = module + _number(data, module, 4)
    size = _number(data, vector, 4)
    begin = vector + 4
    return (begin, begin + size) if size >= len(MARK) and data.startswith(MARK, begin) else (0, 0)


def _field(data: bytes, table: int, index: int, slot: int) -> int:
    """The offset of a field of a table; 0 where the table does not have it."""
    if index < 4 or slot + 2 > _number(data, index, 2):
        return 0
    offset = _number(data, index + slot, 2)
    return table + offset if offset else 0


def _number(data: bytes, at: int, size: int, signed: bool = False) -> int:
    """A little-endian integer; 0 outside of the data."""
    return int.from_bytes(data[at:at + size], "little", signed=signed) if 0 <= at <= len(data) - size else 0
