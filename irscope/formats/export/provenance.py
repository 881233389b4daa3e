"""Where a node comes from in the user's program: the comment above its statement.

    # File: /src/model.py:11 in forward, code: return self.l(x)
    linear: "f32[3, 2]" = torch.ops.aten.linear.default(x, p_l_weight, p_l_bias)
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from irscope.graph import SourceLine

FILE = re.compile(r"File: (?P<file>.+?):(?P<line>\d{1,9})(?: in (?P<function>[^,\n]+))?(?:, code: |$)")
FARTHEST = 200_000
"""In characters: how far above a statement its comment is searched for."""
LONGEST = 4096
"""Characters of a comment in which the place is searched for."""


@lru_cache(maxsize=4096)
def _place_in(comment: str) -> SourceLine | None:
    """The place that a comment names: ``# File: net.py:12 in forward, code: y = x + 1``."""
    found = FILE.search(comment)
    return SourceLine(found["file"], int(found["line"]), 0, found["function"] or "") if found is not None else None


class TextProvenance:
    """Looks for the comment above the line of a node, on demand."""

    def __init__(self, text: str) -> None:
        self._text = text

    def scope(self, loc: int) -> str:
        """Texts do not say the module of a node."""
        return ""

    def call_stack(self, loc: int) -> tuple[SourceLine, ...]:
        """The line of the user's program that the comment names."""
        text, end = self._text, self._text.rfind("\n", 0, loc)
        first = max(0, end - FARTHEST)
        while end > first:
            begin = text.rfind("\n", 0, end) + 1
            line = text[begin:end]
            bare = line.lstrip()
            if "# " in line and ("# File: " in line or "# No stacktrace" in line or bare.startswith("#")):
                found = _place_in(line[:LONGEST])
                return (found,) if found is not None else ()
            if bare.startswith(("def ", "class ", "graph(")):
                return ()
            end = begin - 1
        return ()

    def raw(self, loc: int) -> Mapping[str, str]:
        """FX keeps no attributes as raw text."""
        return {}
