"""What type inference says when the types do not fit."""
from __future__ import annotations


class TypeFault(ValueError):
    """Operands or attributes that do not fit the operator: one sentence with both types in it, and what to do."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help
