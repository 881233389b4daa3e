"""The line of the user's own program that a finding is about, as reports of a repository want it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from irscope.source import Finding

_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?$")


@dataclass(frozen=True, slots=True)
class UserLine:
    """A file, relative where it lies below the current folder, a line and a column (0: not known)."""

    file: str
    line: int
    column: int

    @property
    def inside(self) -> bool:
        """Whether the file may belong to the repository: libraries lie elsewhere."""
        return not os.path.isabs(self.file)


def user_line(finding: Finding) -> UserLine | None:
    """The user's line; None where the dump does not name it."""
    found = _LINE.match(finding.source_line)
    if found is None:
        return None
    file = found["file"]
    if os.path.isabs(file) and not os.path.relpath(file).startswith(".."):
        file = os.path.relpath(file)
    return UserLine(file, max(1, int(found["line"])), int(found["column"] or 0))
