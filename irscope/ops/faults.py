"""The error of type inference."""
from __future__ import annotations


class TypeFault(ValueError):
    """Operands or attributes that do not fit the operator: one sentence with both types, and a help."""

    def __init__(self, message: str, help: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.help = help
