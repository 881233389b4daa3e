"""Where a TorchScript statement comes from: the module scope and the source line after it."""
from __future__ import annotations

import re
from collections.abc import Mapping

from irscope.formats.torchscript.pasted import Cleaned
from irscope.graph import SourceLine

SCOPE = re.compile(r", scope: ((?:(?! # ).)*)")
PLACE = re.compile(r"(.*):(\d{1,9}):(\d{1,9})$")


class TorchProvenance:
    """Reads the provenance of a node from the line at its place on every call; nothing is cached."""

    def __init__(self, text: str, cleaned: Cleaned) -> None:
        self._text = text
        self._html = cleaned.changed and "-&gt;" in text
        self._newline = "\\n" if cleaned.quoted else "\n"

    def _line(self, loc: int) -> str:
        end = self._text.find(self._newline, loc)
        line = self._text[loc:end if end >= 0 else len(self._text)].rstrip("\r")
        return line.replace("&gt;", ">").replace("&lt;", "<").replace("&quot;", '"').replace("&amp;", "&") if self._html else line

    def scope(self, loc: int) -> str:
        """The module path: ``encoder.layer.0`` for ``__module.model/__module.model.encoder/__module.model.encoder.layer.0``."""
        found = SCOPE.search(self._line(loc))
        if found is None:
            return ""
        text = found[1].strip()
        last = text.rpartition("/")[2]
        if last.startswith("__module."):
            return last[len("__module."):].replace(".", "/")
        return text.replace("::", "").strip("/")

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The line of the Python program, from ``# file:line:col``."""
        line = self._line(loc)
        at = line.rfind(" # ")
        if at < 0:
            return ()
        found = PLACE.match(line[at + 3:].strip())
        if found is None:
            return ()
        return (SourceLine(found[1], int(found[2]), int(found[3])),)

    def raw(self, loc: int) -> Mapping[str, str]:
        """TorchScript keeps no attributes as raw text."""
        return {}
