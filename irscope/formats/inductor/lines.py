"""Lines of the user's program for scheduler nodes, as the log of the fusion pass lists them."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.graph import SourceLine


class CandidateLines:
    """The provenance of scheduler nodes, by the place of their text."""

    def __init__(self, lines: Mapping[int, tuple[str, ...]]) -> None:
        self.lines = lines

    def scope(self, loc: int) -> str:
        return ""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The lines that a node comes from."""
        parts = [line.rpartition(":") for line in self.lines.get(loc, ())]
        return tuple(SourceLine(file, int(number)) for file, _, number in parts if number.isdecimal() and len(number) < 10)

    def raw(self, loc: int) -> Mapping[str, str]:
        return {}
