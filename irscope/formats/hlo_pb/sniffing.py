"""Which message a file holds, from its first bytes or words: a module begins with its name, the others begin with what holds it."""
from __future__ import annotations

import re

from irscope.formats.hlo_pb.record import Malformed
from irscope.formats.hlo_pb.wire import varint

MESSAGES = ("HloModuleProto", "HloProto", "HloSnapshot")
"""By how many messages are around the module."""
ENTRY_NAME, COMPUTATIONS = 0x12, 0x1A
"""The bytes that may follow the name of a module: its fields 2 and 3, with a length."""
_NAME = re.compile(rb"[\x20-\x7e\x80-\xff]*")
_TEXT = re.compile(r"(?:\s|#[^\n]*)*+(?:(?P<hlo>hlo\s*[:{<]\s*[{<]?\s*(?=hlo_module\b))|(?P<module>hlo_module\s*[:{<])"
                   r"|(?P<name>name:\s*(?:\"[^\"\n]*\"|'[^'\n]*')\s*(?=entry_computation_name\b|computations\b|host_program_shape\b)))")


def kind_of_bytes(data: bytes) -> str | None:
    """The message of a binary file; None where it is none that holds a module."""
    at = 0
    for depth in range(len(MESSAGES)):
        if not data.startswith(b"\n", at):
            return None
        try:
            size, at = varint(data, at + 1, min(len(data), at + 11))
        except Malformed:
            return None
        name = _NAME.match(data, at, at + size)
        if name is not None and name.end() == at + size and size and data[name.end():name.end() + 1] in (b"\x12", b"\x1a"):
            return "HloUnoptimizedSnapshot" if depth == 1 and _has_partitions(data) else MESSAGES[depth]
    return None


def _has_partitions(data: bytes) -> bool:
    """Whether the module is followed by the arguments of partitions, which HloProto has no field for."""
    size, at = varint(data, 1, min(len(data), 11))
    return data[at + size:at + size + 1] == b"\x12"


def kind_of_text(text: str) -> str | None:
    """The message of a text; None where it is none that holds a module."""
    m = _TEXT.match(text)
    if m is None:
        return None
    if m["hlo"]:
        return "HloSnapshot"
    if m["module"]:
        return "HloUnoptimizedSnapshot" if re.search(r"^partitions\s*[:{<]", text, re.MULTILINE) else "HloProto"
    return "HloModuleProto"
