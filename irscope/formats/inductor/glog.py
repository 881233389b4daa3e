"""The prefix of torch's log lines, in texts (``TORCH_LOGS``) and in traces (``TORCH_TRACE``).

    [rank0]:V1122 13:54:20.592000 8083 torch/_inductor/scheduler.py:2059] [0/0_1] [__fusion] cannot fuse op0 with op2: no shared data
    V1122 13:53:02.383000 8077 torch/_dynamo/utils.py:2350] {"chromium_event": {}, "has_payload": "80ebb7393591c1e17962e3bd281cd1f2"}
"""
from __future__ import annotations

import re
from dataclasses import dataclass

_PREFIX = re.compile(r"(?:\[(?P<rank>rank\d+)\]:)?[A-Z]\d{4} [\d:]{8}\.\d+ \d+ (?P<place>[^\]\s]+:\d+)\] ?")
_COMPILE = re.compile(r"\[(?P<id>!?\d+/\d+(?:_\d+)?|-/-|!\d+)\] ?")
_TAG = re.compile(r"\[__(?P<tag>\w+)\] ?")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line without its prefix. ``compile_id`` is ``0/0`` or, for a later attempt, ``0/0_1``; ``tag`` the artefact."""

    rank: str
    place: str
    compile_id: str
    tag: str
    text: str
    begin: int
    """Where the text of the line begins in the whole text."""


def log_line(line: str, offset: int) -> LogLine | None:
    """A line of a log; None where it has no prefix of torch."""
    found = _PREFIX.match(line)
    if found is None:
        return None
    at = found.end()
    compiled = _COMPILE.match(line, at)
    at = compiled.end() if compiled is not None else at
    tag = _TAG.match(line, at)
    at = tag.end() if tag is not None else at
    compile_id, artefact = compiled["id"] if compiled is not None else "", tag["tag"] if tag is not None else ""
    return LogLine(found["rank"] or "", found["place"], compile_id, artefact, line[at:], offset + at)
