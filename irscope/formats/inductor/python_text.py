"""Parses Python that a stranger wrote: as a syntax tree within limits, and never as code that runs."""
from __future__ import annotations

import ast
import re

from irscope.source.budget import require, tick

PER_BYTE = 120
"""Bytes that a syntax tree takes per byte of its text (measured with CPython 3.11 on output code: 60 to 110)."""
DEEP = 64
"""Statements within statements, and expressions within expressions, beyond this depth are not read."""


class PythonFault(Exception):
    """Text that is not Python: what is wrong, in which line (from 1), and whether the text ends too early."""

    def __init__(self, message: str, line: int, cut: bool) -> None:
        super().__init__(message)
        self.message, self.line, self.cut = message, line, cut


_CUT = ("was never closed", "unterminated", "unexpected EOF", "expected an indented block", "EOF while")
"""What Python says of a text that ends too early."""
_LONE_RETURN = re.compile("\r(?!\n)")
"""Python ends a line there, and the places of irscope do not: such a character is read as a blank."""


def parse_module(text: str) -> ast.Module:
    """The syntax tree of a text. Raises PythonFault where it is not Python, or is nested too deeply."""
    require(len(text) * PER_BYTE, "the syntax tree")
    tick(len(text) >> 6)
    try:
        return ast.parse(_LONE_RETURN.sub(" ", text))
    except SyntaxError as error:
        words = error.msg or "invalid syntax"
        line = error.lineno or 1
        at_end = line >= text.rstrip().count("\n") + 1
        raise PythonFault(words, line, at_end or any(sign in words for sign in _CUT)) from None
    except ValueError as error:
        raise PythonFault(str(error), 1, False) from None
    except (RecursionError, MemoryError):
        raise PythonFault("expressions are nested too deeply", 1, False) from None


def parse_expression(text: str) -> ast.expr | None:
    """The syntax tree of one expression; None where it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def text_of(node: ast.expr) -> str:
    """An expression as text; ``...`` where it is nested too deeply, or has a number that Python does not print."""
    try:
        return ast.unparse(node)
    except (RecursionError, ValueError):
        return "..."


def constant_text(node: ast.Constant) -> str:
    """A string without its quotes; another constant as written."""
    return node.value if isinstance(node.value, str) else text_of(node)


def dotted(node: ast.expr) -> str:
    """``torch.ops.aten.add`` of such an expression; the empty string for any other."""
    parts: list[str] = []
    for _ in range(DEEP):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        else:
            break
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def strings_in(node: ast.expr | None) -> tuple[str, ...]:
    """The strings of a list or tuple of strings."""
    if not isinstance(node, ast.List | ast.Tuple):
        return ()
    return tuple(item.value for item in node.elts if isinstance(item, ast.Constant) and isinstance(item.value, str))
