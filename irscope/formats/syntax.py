"""The exception by which a reader says that a text does not go on as its grammar asks."""
from __future__ import annotations


class SyntaxFault(Exception):
    """The text does not go on as it should: where, what, and what to do."""

    def __init__(self, offset: int, message: str, help: str = "", length: int = 1) -> None:
        super().__init__(message)
        self.offset, self.message, self.help, self.length = offset, message, help, length
