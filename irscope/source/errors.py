"""The exception for errors in the user's input: it carries a clear message instead of a traceback."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.source.finding import Finding
from irscope.source.visible import visible


class UserError(Exception):
    """The input or the request is invalid; ``message`` says why in the user's terms.

    ``help`` says what to do about it; ``findings`` are the places in the text that caused it, if any.
    The command line prints all three and exits with status 2; a caller of the API catches it as an exception.
    """

    def __init__(self, message: str, help: str = "", findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.help = help
        self.findings = tuple(findings)

    def render(self) -> str:
        """The findings in full, the message, and the help. Plain text, no final newline."""
        lines = [finding.render() for finding in self.findings]
        lines.append(f"error: {self.message}")
        if self.help:
            lines.append("\n".join(f"   help: {line}" if i == 0 else f"         {line}" for i, line in enumerate(self.help.splitlines())))
        return visible("\n".join(lines))
