"""XLA's reports of memory and its out-of-memory errors, shown without the module that they are about."""
from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from irscope.api.folders import SORTS, text_lines
from irscope.api.loading import Source
from irscope.fleet.buffers import kind_of_report, parse_buffer_assignment, parse_memory_usage
from irscope.fleet.out_of_memory import OutOfMemory, parse_out_of_memory
from irscope.formats.detect import detect
from irscope.formats.neighbours import text_beside
from irscope.graph import Reading
from irscope.render.paint import Paint
from irscope.render.units import bytes_, short
from irscope.source import SourceText, UserError
from irscope.source.files import STDIN, read_bytes

HEAD = 4096
OUT_OF_MEMORY = "out-of-memory"
SHOWN = 15
"""The most buffers of an error in text: XLA prints as many."""
LARGEST = 100
"""The most values in json; text has the first five."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """A report by its kind: ``buffer-assignment``, ``memory-usage-report`` or ``out-of-memory`` (an error in a log)."""

    source: SourceText
    kind: str

    def lines(self, paint: Paint) -> list[str]:
        """The bytes by sort of allocation, the largest values, and where the module is."""
        if self.kind == OUT_OF_MEMORY:
            return [paint(self.source.name, "bold"), *_error_lines(parse_out_of_memory(self.source.text) or OutOfMemory(), paint)]
        beside = text_beside(self.source.name)
        found = text_lines({self.kind: self.source.text}, paint) or ["the report names no bytes: is it whole?"]
        return [paint(self.source.name, "bold"), *found, *([paint(f"its module: irscope show {beside}", "dim")] if beside else [])]

    def as_json(self) -> dict[str, Any]:
        """``{"kind", "total", "sorts": {sort or memory space: bytes}, "largest": [{"node", "bytes", "sort"}]}``.

        An error has ``requested`` too, in bytes, and its buffers have ``type``, ``op_name`` and ``source``. Bytes that it does not state
        are None.
        """
        if self.kind == OUT_OF_MEMORY:
            error = parse_out_of_memory(self.source.text) or OutOfMemory()
            peak = [{"node": b.name, "bytes": b.bytes, "sort": b.sort, "type": b.type, "op_name": b.op_name, "source": b.source}
                    for b in error.buffers[:LARGEST]]
            total = sum(error.sorts.values()) if error.sorts else None
            return {"kind": self.kind, "total": total, "sorts": error.sorts, "largest": peak, "requested": error.requested}
        if self.kind == "memory-usage-report":
            spaces = parse_memory_usage(self.source.text)
            return {"kind": self.kind, "total": sum(spaces.values()), "sorts": spaces, "largest": []}
        buffers = parse_buffer_assignment(self.source.text)
        values = [{"node": name, "bytes": size, "sort": sort} for name, size, sort in buffers.largest(LARGEST)]
        return {"kind": self.kind, "total": buffers.total, "sorts": {sort: buffers.bytes_of(sort) for sort in SORTS}, "largest": values}


def out_of_memory_of(path: str) -> OutOfMemory:
    """The out-of-memory error of a log. Raises UserError where it has none."""
    error = parse_out_of_memory(read_bytes(path).decode("utf-8", "replace"))
    if error is None or not error.buffers:
        raise UserError(f"{path} has no out-of-memory error of XLA that lists buffers",
                        "it lists them after 'Peak buffers:' or 'Largest program allocations'")
    return error


def report_of(what: Source) -> MemoryReport | None:
    """The report that a path or a text holds; None for anything else, which the caller reads as a dump."""
    if isinstance(what, Reading | bytes):
        return None
    name = os.fspath(what)
    if "\n" in name:
        text, name = name, "<text>"
    elif name == STDIN or not os.path.isfile(name):
        return None
    else:
        try:
            with open(name, "rb") as file:
                head = file.read(HEAD)
        except OSError:
            return None  # reading it as a dump reports this
        begins = head.decode("utf-8", "replace")
        if kind_of_report(begins) is None and (b"\0" in head or detect(begins) is not None):
            return None
        text = read_bytes(name).decode("utf-8", "replace")
    kind = kind_of_report(text)
    if kind in (None, "buffer-assignment") and "\nallocation 0:" not in text:
        error = parse_out_of_memory(text)
        kind = OUT_OF_MEMORY if error is not None and (error.requested is not None or error.buffers) else kind
    return MemoryReport(SourceText(name, text), kind) if kind is not None else None


def _error_lines(error: OutOfMemory, paint: Paint) -> Iterator[str]:
    """What was requested, the bytes by sort of allocation, and the largest buffers with the user's names for them."""
    requested = f"  when {bytes_(error.requested)} more were requested" if error.requested is not None else ""
    yield paint("out of memory", "bold") + paint(requested, "dim")
    if error.sorts:
        yield "  " + f" {paint.dot} ".join(f"{sort} {bytes_(size)}" for sort, size in error.sorts.items() if size)
    for buffer in error.buffers[:SHOWN]:
        where = " ".join(part for part in (buffer.name or buffer.opcode, buffer.op_name, buffer.source) if part)
        padded = f", {bytes_(buffer.padding)} of it padding" if buffer.padding else ""
        size = "?" if buffer.bytes is None else bytes_(buffer.bytes)
        yield f"  {size:>9}  {buffer.type}{padded}  " + paint(short(where, paint.width - 14 - len(buffer.type)), "dim")
    if len(error.buffers) > SHOWN:
        yield paint(f"  {len(error.buffers) - SHOWN} more in --format json", "dim")
    yield paint("the values of a dump that these buffers are: irscope lint DUMP --audit memory --oom LOG", "dim")
