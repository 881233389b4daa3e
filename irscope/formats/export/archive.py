"""The entries of a .pt2 archive, a ZIP from a stranger: read by name, bounded, and never written to disk or unpickled.

    model/models/model.json                            the program
    model/data/weights/model_weights_config.json       which entry holds which weight
    model/data/weights/weight_0                        the bytes of a weight
    model/data/constants/...                           the same for buffers and constants
"""
from __future__ import annotations

import io
import re
import struct
from typing import IO, cast

from irscope.lazy import zipfile
from irscope.source import UserError
from irscope.source.budget import require, tick
from irscope.source.files import Bytes
from irscope.source.zips import damaged

MODEL = "models/model.json"
PROGRAM = re.compile(r"(?P<folder>(?:[^/]+/)*)models/(?P<name>[^/]+)\.json")
"""The path of a program; an archive may hold several by name."""
WEIGHTS, CONSTANTS = "data/weights/", "data/constants/"
MOST_ENTRIES = 200_000
"""An archive has an entry for each weight, and a dozen of others."""
LARGEST_JSON = 1 << 30
"""In bytes, unpacked."""
LARGEST_RATIO = 200
"""The maximal ratio of unpacked to packed bytes: JSON packs to a tenth to a thirtieth."""
ENCRYPTED = 1
LOCAL_HEADER = 30


class Archive:
    """The entries of an archive below its folder. Raises UserError where it is damaged or hostile.

    Nothing is unpacked before it is read.
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self.data, self.name = data, name
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data) if isinstance(data, bytes) else cast(IO[bytes], data))
            entries = self._zip.infolist()
        except damaged():
            raise self.fault("the zip archive is damaged: its central directory is missing or cut off", "copy the file again") from None
        if len(entries) > MOST_ENTRIES:
            raise self.fault(f"the zip archive has {len(entries):,} entries; a program has at most {MOST_ENTRIES:,}")
        self._check(entries)
        models = [found for e in entries if (found := PROGRAM.fullmatch(e.filename))]
        model = next((found for found in models if found["name"] == "model"), models[0] if models else None)
        if model is None:
            raise self.fault(f"the archive has no {MODEL} among its {len(entries):,} entries",
                             "torch.export.save(torch.export.export(model, args), 'model.pt2') writes one")
        self.folder, self.program = model["folder"], model["name"]
        self.model = f"models/{self.program}.json"
        self.entries = {e.filename.removeprefix(self.folder): e for e in entries if e.filename.startswith(self.folder)}

    def fault(self, message: str, help: str = "") -> UserError:
        """The error for this file."""
        return UserError(f"{'standard input' if self.name == '-' else self.name}: {message}", help)

    def text(self, name: str) -> bytes:
        """An entry of JSON, unpacked and checked by its checksum. Raises UserError where it is missing, too large or damaged."""
        entry = self.entries.get(name)
        if entry is None:
            raise self.fault(f"the archive has no {name}")
        if entry.file_size > LARGEST_JSON:
            raise self.fault(f"{name} has {entry.file_size:,} bytes; {LARGEST_JSON:,} are read")
        require(entry.file_size, f"{self.name}: {name}")
        try:
            with self._zip.open(entry) as file:
                found = file.read(entry.file_size + 1)
        except damaged() as error:
            raise self.fault(f"{name} is damaged: {error}", "copy the file again; unzip -t tests it") from None
        if len(found) != entry.file_size:
            raise self.fault(f"{name} is damaged: it has not the {entry.file_size:,} bytes that the zip's directory says")
        tick(len(found) >> 10)
        return found

    def stored(self, name: str) -> memoryview:
        """The bytes of an entry of weights, in place. Raises UserError where it is missing, packed or cut off."""
        entry = self.entries.get(name)
        if entry is None:
            raise self.fault(f"the archive has no {name}: the weight is missing")
        if entry.compress_type != zipfile.ZIP_STORED:
            return memoryview(self.text(name))
        begin = entry.header_offset
        header = self.data[begin:begin + LOCAL_HEADER]
        if len(header) < LOCAL_HEADER or header[:4] != b"PK\x03\x04":
            raise self.fault(f"{name} is damaged: its header is not where the zip's directory says")
        names, extra = struct.unpack("<HH", header[26:30])
        if bytes(self.data[begin + LOCAL_HEADER:begin + LOCAL_HEADER + names]) != entry.orig_filename.encode():
            raise self.fault(f"{name} is damaged: its header and the zip's directory name it differently")
        begin += LOCAL_HEADER + names + extra
        found = memoryview(self.data)[begin:begin + entry.file_size]
        if len(found) != entry.file_size:
            raise self.fault(f"{name} is cut off: {len(found):,} of {entry.file_size:,} bytes are there")
        return found

    def _check(self, entries: list[zipfile.ZipInfo]) -> None:
        """Refuse what no writer of torch makes: paths that climb or repeat, encryption, bombs, entries that lie over each other."""
        seen: set[str] = set()
        for entry in entries:
            path = entry.filename
            if path in seen:
                raise self.fault(f"the archive has two entries with the path {path[:80]!r}: it is refused")
            seen.add(path)
            if path.startswith(("/", "\\")) or ".." in path.replace("\\", "/").split("/") or ":" in path.partition("/")[0]:
                raise self.fault(f"the path of the entry {path[:80]!r} leads out of the archive: it is refused")
            if entry.flag_bits & ENCRYPTED:
                raise self.fault(f"the entry {path[:80]!r} is encrypted", "irscope reads no encrypted archives")
            if entry.file_size > LARGEST_RATIO * max(entry.compress_size, 64):
                raise self.fault(f"the entry {path[:80]!r} of {entry.compress_size:,} bytes unpacks to {entry.file_size:,}: it is refused")
            if entry.compress_type == zipfile.ZIP_STORED and entry.file_size != entry.compress_size:
                raise self.fault(f"the entry {path[:80]!r} is not packed, but the zip's directory says two sizes: it is refused")
        end = 0
        for entry in sorted(entries, key=lambda e: e.header_offset):
            if entry.header_offset < end:
                raise self.fault(f"the entry {entry.filename[:80]!r} lies over another one: the zip archive is refused")
            end = entry.header_offset + LOCAL_HEADER + len(entry.filename.encode()) + entry.compress_size
            tick()
        if end > len(self.data):
            raise self.fault("the zip archive is cut off: its last entry reaches beyond its end")


def is_archive(data: bytes) -> bool:
    """Whether bytes are a ZIP that holds a program of torch.export, or was one before it was cut off."""
    if data[:4] != b"PK\x03\x04":
        return False
    try:
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    except damaged():
        head = data[:1 << 20]
        return MODEL.encode() in head or WEIGHTS.encode() in head or CONSTANTS.encode() in head
    return any(name.endswith((MODEL, "archive_format", "model_weights_config.json")) for name in names)
