"""Prints a module of Inductor's as text: the lines that its scheduler nodes or calls have in the text that was read."""
from __future__ import annotations

from irscope.formats.inductor.dialect import INDUCTOR
from irscope.graph import Module
from irscope.source import UserError


def print_module(module: Module) -> str:
    """The text that was read. Raises UserError for a module of another format, or one that a pass has changed."""
    if module.dialect is not INDUCTOR or not module.source.text:
        raise UserError(f"{module.name} cannot be printed as {INDUCTOR.name} text", "Inductor writes it, and nothing reads it; --to relay")
    return module.source.text
