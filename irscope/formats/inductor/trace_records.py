"""``TORCH_TRACE``: the records of a structured trace.

    V1122 13:53:02.383000 8077 torch/_inductor/graph.py:2745] {"inductor_output_code": {...}, "frame_id": 0, ..., "has_payload": MD5}
    <TAB>first line of the payload
    <TAB>...

The payload of a record is the lines after it that begin with a tab; ``has_payload`` is the MD5 of them, without the tabs. Records that are
damaged are findings, and the others are read.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from irscope.formats.inductor.findings import BAD_PAYLOAD, BAD_RECORD
from irscope.formats.inductor.glog import LogLine, log_line
from irscope.source import Finding, Severity, SourceText
from irscope.source.budget import tick
from irscope.source.data_text import json_value

ENVELOPE = frozenset(("frame_id", "frame_compile_id", "attempt", "has_payload", "compiled_autograd_id", "rank", "stack", "timestamp",
                      "thread", "pathname", "lineno", "process"))
"""Keys of a record that say where it comes from, and not what it is."""
LARGEST = 1 << 1000
"""Numbers beyond this are no times or lines; floats end at 2**1024."""
MOST = 100
"""Damaged records beyond this number are counted, not listed."""


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One record: its kind (``artifact`` records are named by their ``name``), its data, its payload, and where its line begins."""

    kind: str
    data: Mapping[str, object]
    payload: str
    compile_id: str
    rank: str
    offset: int

    def text(self, key: str) -> str:
        """A field that is a string; empty where it is none."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """A field that is a number; None where it is none."""
        value = self.data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
            return None
        return float(value)


@dataclass(slots=True)
class Trace:
    """The records in the order of the text."""

    records: list[TraceRecord] = field(default_factory=list)


def read_trace(source: SourceText, findings: list[Finding]) -> Trace:
    """The records of a trace; damaged ones are added to ``findings`` as warnings."""
    return _Reader(source, findings).run()


class _Reader:
    def __init__(self, source: SourceText, findings: list[Finding]) -> None:
        self.source = source
        self.findings = findings
        self.trace = Trace()
        self.damaged = 0

    def run(self) -> Trace:
        for line, payload in self._pieces():
            self._record(line, payload)
        if self.damaged > MOST:
            words = f"{self.damaged - MOST:,} further records are damaged"
            self.findings.append(Finding(*BAD_RECORD, Severity.WARNING, words, self.source))
        return self.trace

    def _pieces(self) -> Iterator[tuple[LogLine, list[str]]]:
        """Each line with torch's prefix, and the payload under it."""
        current: LogLine | None = None
        payload: list[str] = []
        at = 0
        for text in self.source.text.split("\n"):
            tick()
            if text.startswith("\t"):
                payload.append(text[1:])
            elif (line := log_line(text, at)) is not None:
                if current is not None:
                    yield current, payload
                current, payload = line, []
            elif text.strip():
                self._damage(at, f"a line that is no record: {text.strip()[:60]!r}", max(1, len(text)))
            at += len(text) + 1
        if current is not None:
            yield current, payload

    def _record(self, line: LogLine, payload: list[str]) -> None:
        try:
            data = json_value(line.text)
        except ValueError as error:
            self._damage(line.begin, f"a record is not JSON: {error}", max(1, len(line.text)))
            return
        if not isinstance(data, dict):
            self._damage(line.begin, "a record is not JSON object", max(1, len(line.text)))
            return
        if "str" in data:
            self._name(data["str"], line)
            return
        text = "\n".join(payload)
        stated = data.get("has_payload")
        if isinstance(stated, str):
            # MD5 is what torch writes: it finds damage, and protects nothing.
            actual = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
            if actual != stated:
                words = f"the payload of a record is damaged: its MD5 is {actual}, not {stated[:40]}"
                self._damage(line.begin, words, max(1, len(line.text)), BAD_PAYLOAD)
        self._add(data, text, line)

    def _add(self, data: Mapping[str, object], payload: str, line: LogLine) -> None:
        kind = next((key for key in data if key not in ENVELOPE), "")
        inner = data.get(kind)
        fields: Mapping[str, object] = inner if isinstance(inner, dict) else {}
        name = fields.get("name")
        if kind == "artifact" and isinstance(name, str):
            kind = name
        frame, again, attempt = (data.get(key) for key in ("frame_id", "frame_compile_id", "attempt"))
        compile_id = "" if frame is None or again is None else f"{frame}/{again}" + (f"_{attempt}" if attempt else "")
        rank = data.get("rank")
        said = line.rank or ("" if rank is None else f"rank{rank}")
        self.trace.records.append(TraceRecord(kind, fields, payload, compile_id, said, line.begin))

    def _name(self, pair: object, line: LogLine) -> None:
        """Check a record ``{"str": [text, number]}``: the name of a file that stacks refer to by number."""
        if not (isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and isinstance(pair[1], int)):
            self._damage(line.begin, "a record of a name is not a string with a number", max(1, len(line.text)))

    def _damage(self, offset: int, words: str, length: int, kind: tuple[str, str] = BAD_RECORD) -> None:
        self.damaged += 1
        if self.damaged <= MOST:
            self.findings.append(Finding(*kind, Severity.WARNING, words, self.source, offset, min(length, 200),
                                         help="the program was stopped, or the file was cut: the other records are used"))
