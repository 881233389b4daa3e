"""The exception for a syntax error."""
from __future__ import annotations


class SyntaxFault(Exception):
    """A syntax error: its place, message and help."""

    def __init__(self, offset: int, message: str, help: str = "", length: int = 1) -> None:
        super().__init__(message)
        self.offset, self.message, self.help, self.length = offset, message, help, length
