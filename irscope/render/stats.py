"""``stats`` records as a table, as json, or as json lines; each is written as soon as it is known."""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TextIO

from irscope.render.paint import Paint
from irscope.render.units import bytes_, count, flops, short
from irscope.source.data_text import strict_json
from irscope.source.visible import json_text

Record = Mapping[str, Any]
_FIGURES: dict[str, Callable[[float], str]] = {
    "graphs": count, "nodes": count, "parameters": count, "parameter_bytes": bytes_, "flops": flops, "bytes": bytes_}
"""The keys of the columns of numbers, and the function that formats each."""
WIDTHS = (6, 9, 6, 13, 11, 9)
"""Characters of the columns of numbers."""


class Writer(ABC):
    """Writes records one by one: ``n`` of them so far, of which ``failed`` are not ok."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.failed, self.n = stream, 0, 0

    def add(self, record: Record) -> None:
        """Write a record."""
        self.failed += not record["ok"]
        self.write(record)
        self.n += 1

    @abstractmethod
    def write(self, record: Record) -> None:
        """Write one record in the format; ``n`` others were written before it."""

    def end(self) -> None:  # noqa: B027 (not abstract: most formats need none)
        """Write what comes after the last record; by default nothing."""


def _object(record: Record) -> str:
    """The promised keys as JSON. ``help`` is left out: it is for people."""
    return json_text(strict_json({key: value for key, value in record.items() if key != "help"}, ensure_ascii=False))


class JsonLines(Writer):
    """One object per line."""

    def write(self, record: Record) -> None:
        self.stream.write(_object(record) + "\n")
        self.stream.flush()


class JsonList(Writer):
    """A list of the objects, one per line, so that it can be read as it grows and compared by line."""

    def write(self, record: Record) -> None:
        self.stream.write((",\n " if self.n else "[\n ") + _object(record))

    def end(self) -> None:
        self.stream.write("\n]\n" if self.n else "[]\n")


class StatisticsTable(Writer):
    """One row per file, and a last row of sums if there are several. The columns are fixed, because the first row is printed before the
    last file is read."""

    def __init__(self, stream: TextIO, paint: Paint) -> None:
        super().__init__(stream)
        self.paint = paint
        self._sums: dict[str, int | None] = dict.fromkeys(_FIGURES, 0)
        self._name = max(20, paint.width - 62)
        self._helped: set[str] = set()

    def write(self, record: Record) -> None:
        if self.n == 0:
            header = self._cells(("file", "graphs", "nodes", "inputs", "bytes of them", "work", "traffic"))
            self.stream.write(self.paint(header, "bold") + "\n")
        name = short(str(record["file"]), self._name)
        if not record["ok"] and not record["nodes"]:
            self.stream.write(f"{name:<{self._name}}  {self.paint(self._error(record), 'red')}\n")
            self._help(record)
            return
        for key in self._sums:
            known = self._sums[key]
            self._sums[key] = None if known is None or record[key] is None else known + record[key]
        self.stream.write(self._row(name, record) + "\n")
        if not record["ok"]:
            self.stream.write("  " + self.paint(self._error(record), "red") + "\n")
            self._help(record)

    def end(self) -> None:
        if self.n > 1:
            self.stream.write(self.paint(self._row(f"{count(self.n)} files", self._sums), "bold") + "\n")

    def _help(self, record: Record) -> None:
        """Write what to do about an error; where it is the same for many files, only below the first."""
        help = str(record.get("help", ""))
        if help and help not in self._helped:
            self._helped.add(help)
            self.stream.write(self.paint("    help: " + help.replace("\n", "\n          "), "dim") + "\n")

    def _error(self, record: Record) -> str:
        return short(str(record["error"]), max(30, self.paint.width - 4)) if self.paint.colour else str(record["error"])

    def _row(self, name: str, record: Record) -> str:
        return self._cells((name, *("?" if record[key] is None else write(record[key]) for key, write in _FIGURES.items())))

    def _cells(self, cells: Sequence[str]) -> str:
        name, *numbers = cells
        return f"{name:<{self._name}} " + " ".join(f"{cell:>{width}}" for cell, width in zip(numbers, WIDTHS, strict=True))


def writer(format: str, stream: TextIO, paint: Paint) -> Writer:
    """The writer of a format: ``table``, ``json`` or ``jsonl``."""
    if format == "table":
        return StatisticsTable(stream, paint)
    return JsonList(stream) if format == "json" else JsonLines(stream)
