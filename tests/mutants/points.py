"""Where a source can be mutated: one small change each, as a mistake of whoever wrote it would be.

Comparisons, arithmetic and logic get another operator, numbers become the next one, truth values and conditions the opposite, names of
operators in comparisons and tables others; statements whose effect counts are left out, and functions return nothing, or the opposite
truth value. What people read (docstrings, messages) and what types say (annotations) stays.
"""
from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

OPERATORS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"), ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}
"""How an operator is spelled, and what stands in its place."""
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
WORD = re.compile(r"[a-z][a-z0-9_\-.:]*")
"""Strings that name something: operators, attributes, element types."""
NO_BEHAVIOUR = {"dataclass": ("frozen", "slots"), "zip": ("strict",)}
"""By function: flags that a correct program does not depend on."""


@dataclass(frozen=True)
class Point:
    """A change of one place: ``old`` at ``start`` (an offset into the text) becomes ``new``.

    ``idle``: the change makes no difference, or another point is the same change. Such a point is never applied, but it is listed, so that
    a seed draws the same of the others.
    """

    path: str
    line: int
    start: int
    old: str
    new: str
    where: str
    idle: bool = False

    @property
    def key(self) -> str:
        """A name that stays when other lines of the file change."""
        return f"{self.path} | {self.where} | {self.old} -> {self.new}"

    def apply(self, text: str) -> str:
        """The text with the change."""
        assert text[self.start:self.start + len(self.old)] == self.old
        return text[:self.start] + self.new + text[self.start + len(self.old):]


def points(path: str, text: str) -> list[Point]:
    """All changes of a file, in the order of the text."""
    found = {(p.start, p.old, p.new): p for p in _Source(path, text).points()}
    return [p for _, p in sorted(found.items())]


def is_valid(point: Point, text: str) -> bool:
    """Whether Python takes the text with the change."""
    try:
        compile(point.apply(text), point.path, "exec")
    except SyntaxError:
        return False
    return True


class _Source:
    """A file's text, its tree, and where its lines begin."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.tree = ast.parse(text)
        self.lines = text.split("\n")
        self.begins = [0]
        for line in self.lines:
            self.begins.append(self.begins[-1] + len(line) + 1)
        self.idle = {constant for node in ast.walk(self.tree) for constant in _idle(node)}

    def points(self) -> Iterator[Point]:
        stack: list[tuple[ast.AST, bool]] = [(self.tree, False)]
        while stack:
            node, listed = stack.pop()
            if _is_for_readers(node):
                continue
            yield from self._of(node, listed)
            for field, value in ast.iter_fields(node):
                if field in ("annotation", "returns", "type_params") or (field == "test" and _is_type_checking(node)):
                    continue
                inside = isinstance(node, ast.Compare | ast.Set | ast.Tuple | ast.List) or (isinstance(node, ast.Dict) and field == "keys")
                stack.extend((child, inside) for child in (value if isinstance(value, list) else [value]) if isinstance(child, ast.AST))

    def _of(self, node: ast.AST, listed: bool) -> Iterator[Point]:
        """The changes of one node; ``listed``: it stands in a comparison or a table."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from self._between(node.left, node.comparators[0], node.ops[0])
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:]):
                yield from self._between(left, right, node.op)
        elif isinstance(node, ast.BinOp):
            yield from self._between(node.left, node.right, node.op)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield self._at(self._start(node), "not ", "")
        elif isinstance(node, ast.Constant):
            yield from self._constant(node, listed)
        elif isinstance(node, ast.If | ast.While | ast.IfExp) and not _is_type_checking(node):
            test = self._span(node.test)
            yield self._at(self._start(node.test), test, f"(not ({test}))")
        elif isinstance(node, ast.Return) and node.value is not None and not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield self._at(self._start(node), self._span(node), f"return {not node.value.value if _is_truth_value(node.value) else None}")
        elif isinstance(node, ast.Continue | ast.Break):
            old = self._span(node)
            yield self._at(self._start(node), old, "break" if old == "continue" else "continue")
        elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)) or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)):
            yield self._at(self._start(node), self._span(node), "pass")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield self._at(self._start(node.func), node.func.id, CALLS[node.func.id])

    def _constant(self, node: ast.Constant, listed: bool) -> Iterator[Point]:
        old, idle = self._span(node), node in self.idle
        if isinstance(node.value, bool):
            yield self._at(self._start(node), old, str(not node.value), idle)
        elif isinstance(node.value, int | float):
            yield self._at(self._start(node), old, f"({old} + 1)", idle)
        elif isinstance(node.value, str) and listed and WORD.fullmatch(node.value):
            yield self._at(self._start(node), old, '"mutated"', idle)

    def _between(self, left: ast.expr, right: ast.expr, op: ast.AST) -> Iterator[Point]:
        """The operator that stands between two operands."""
        if type(op) not in OPERATORS:
            return
        old, new = OPERATORS[type(op)]
        start, end = self._end(left), self._start(right)
        at = self.text.find(old, start, end)
        if at >= 0:
            yield self._at(at, old, new)

    def _at(self, start: int, old: str, new: str, idle: bool = False) -> Point:
        line = bisect_right(self.begins, start) - 1
        return Point(self.path, line + 1, start, old, new, self.lines[line].strip(), idle)

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._offset(node.lineno, node.col_offset)

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        """``ast`` counts columns in bytes of UTF-8."""
        return self.begins[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.expr | ast.stmt) -> str:
        return self.text[self._start(node):self._end(node)]


def _is_for_readers(node: ast.AST) -> bool:
    """Docstrings and other bare strings, messages of faults, and imports."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    return isinstance(node, ast.Raise | ast.Import | ast.ImportFrom | ast.AnnAssign | ast.JoinedStr | ast.Assert) and not (
        isinstance(node, ast.AnnAssign) and node.value is not None)


def _idle(node: ast.AST) -> list[ast.expr]:
    """Constants below a node that no program depends on, and a truth value that is returned: the statement is mutated."""
    if isinstance(node, ast.Return) and _is_truth_value(node.value):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NO_BEHAVIOUR:
        return [keyword.value for keyword in node.keywords if keyword.arg in NO_BEHAVIOUR[node.func.id]]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
        return node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else []
    return []


def _is_truth_value(node: ast.expr | None) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
