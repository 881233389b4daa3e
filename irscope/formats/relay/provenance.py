"""Where a Relay expression comes from: the ``span=`` in the comment after it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from irscope.graph import SourceLine

SPAN = re.compile(r"span=((?:(?!\*/|span=).)*?):(\d{1,9}):(\d{1,9})\s*\*/")


class RelayProvenance:
    """The provenance in the line at a node's place. ``begin`` and ``end``: the part of the text that was read as definitions."""

    def __init__(self, text: str, begin: int, end: int) -> None:
        self._text, self.begin, self.end = text, begin, end

    def _span(self, loc: int) -> re.Match[str] | None:
        end = self._text.find("\n", loc)
        return SPAN.search(self._text, loc, end if end >= 0 else len(self._text))

    def scope(self, loc: int) -> str:
        """The framework's name of the operator, where the text has it."""
        found = self._span(loc)
        return found[1].strip("/").replace(".", "/") if found and not found[1].endswith(".py") else ""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The line in the framework's source."""
        found = self._span(loc)
        return (SourceLine(found[1], int(found[2]), int(found[3])),) if found and int(found[2]) else ()

    def raw(self, loc: int) -> Mapping[str, str]:
        """Relay keeps no attributes as raw text."""
        return {}
