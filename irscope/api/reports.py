"""XLA's reports of memory, shown without the module that they are about."""
from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from irscope.api.folders import SORTS, text_lines
from irscope.api.loading import Source
from irscope.fleet.buffers import kind_of_report, parse_buffer_assignment, parse_memory_usage
from irscope.formats.neighbours import text_beside
from irscope.graph import Reading
from irscope.render.paint import Paint
from irscope.source import SourceText
from irscope.source.files import STDIN, read_bytes

HEAD = 4096
LARGEST = 100
"""So many values are in json; people see the first five."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """A report by its kind: ``buffer-assignment`` or ``memory-usage-report``."""

    source: SourceText
    kind: str

    def lines(self, paint: Paint) -> list[str]:
        """The bytes by sort of allocation, the largest values, and where the module is."""
        beside = text_beside(self.source.name)
        found = text_lines({self.kind: self.source.text}, paint) or ["the report names no bytes: is it whole?"]
        return [paint(self.source.name, "bold"), *found, *([paint(f"its module: irscope show {beside}", "dim")] if beside else [])]

    def as_json(self) -> dict[str, Any]:
        """``{"kind", "total", "sorts": {sort or memory space: bytes}, "largest": [{"node", "bytes", "sort"}]}``."""
        if self.kind == "memory-usage-report":
            spaces = parse_memory_usage(self.source.text)
            return {"kind": self.kind, "total": sum(spaces.values()), "sorts": spaces, "largest": []}
        buffers = parse_buffer_assignment(self.source.text)
        values = [{"node": name, "bytes": size, "sort": sort} for name, size, sort in buffers.largest(LARGEST)]
        return {"kind": self.kind, "total": buffers.total, "sorts": {sort: buffers.bytes_of(sort) for sort in SORTS}, "largest": values}


def report_of(what: Source) -> MemoryReport | None:
    """The report that a path or a text is; None where it is anything else, which is then read as a dump."""
    if isinstance(what, Reading | bytes):
        return None
    name = os.fspath(what)
    if "\n" in name:
        text, name = name, "<text>"
    elif name == STDIN or not os.path.isfile(name):
        return None
    else:
        with open(name, "rb") as file:
            if kind_of_report(file.read(HEAD).decode("utf-8", "replace")) is None:
                return None
        text = read_bytes(name).decode("utf-8", "replace")
    kind = kind_of_report(text)
    return MemoryReport(SourceText(name, text), kind) if kind is not None else None
