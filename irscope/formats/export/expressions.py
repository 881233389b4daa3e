"""From Python expressions, as FX writes the arguments of calls, to arguments. Nothing is evaluated."""
from __future__ import annotations

import ast

from irscope.formats.export.lines import unclosed
from irscope.formats.export.making import Argument, GraphMaker
from irscope.formats.export.symbols import nesting
from irscope.formats.export.values import NamedConstant, named
from irscope.formats.syntax import SyntaxFault

DEEPEST = 60
"""The maximal nesting of brackets in a statement."""
MOST_BITS = 256
"""Of a whole number; torch has 64."""
NUMBERS = {"inf": float("inf"), "nan": float("nan"), "NoneType": None, "Ellipsis": None}


def parse(text: str, offset: int) -> list[ast.stmt]:
    """The statements of a line. Raises SyntaxFault, with an offset in the whole text, for a line that is not Python."""
    if text.count("(") + text.count("[") + text.count("-") > DEEPEST and nesting(text) > DEEPEST:
        raise SyntaxFault(offset, f"brackets are nested more than {DEEPEST} deep")
    try:
        return ast.parse(text).body
    except SyntaxError as error:
        if (hole := unclosed(text)) >= 0:
            raise SyntaxFault(offset + hole, f"syntax: {text[hole]!r} is never closed") from None
        at = (error.offset or 1) - 1 if (error.lineno or 1) == 1 else 0
        raise SyntaxFault(offset + max(0, at), f"syntax: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SyntaxFault(offset, f"this statement cannot be parsed: {str(error)[:80] or type(error).__name__}") from None


def dotted(node: ast.expr) -> str:
    """``torch.ops.aten.add.Tensor`` of an attribute, also through ``getattr(self.layers, "0")``; empty for any other expression."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) == 2 \
                and isinstance(node.args[1], ast.Constant) and isinstance(node.args[1].value, str):
            parts.append(node.args[1].value)
            node = node.args[0]
        elif isinstance(node, ast.Name):
            parts.append(node.id)
            return ".".join(reversed(parts))
        else:
            return ""


class Expressions:
    """Reads expressions over the names of one graph. ``at`` is the offset of the statement in the text."""

    def __init__(self, maker: GraphMaker) -> None:
        self.maker = maker
        self.at = 0

    def fault(self, node: ast.AST, message: str, help: str = "", length: int = 1) -> SyntaxFault:
        """A fault at a place in the statement."""
        first_line = getattr(node, "lineno", 1) == 1
        return SyntaxFault(self.at + (getattr(node, "col_offset", 0) if first_line else 0), message, help, length)

    def argument(self, node: ast.expr, depth: int = 0) -> Argument:
        """The argument that an expression stands for. Raises SyntaxFault for an undefined name, and for a form that FX does not write."""
        if isinstance(node, ast.Constant):
            return self._constant(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.List | ast.Tuple):
            if depth > DEEPEST:
                raise self.fault(node, f"lists are nested more than {DEEPEST} deep")
            return [self.argument(item, depth + 1) for item in node.elts]
        if isinstance(node, ast.UnaryOp | ast.BinOp):
            return self._number(node, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Dict) and depth <= DEEPEST:
            return {self._key(key): self.argument(value, depth + 1) for key, value in zip(node.keys, node.values, strict=True)}
        if isinstance(node, ast.Call):
            return self._call(node, depth)
        raise self.fault(node, f"an argument is a value, a constant or a list, but here is {shown(node)}")

    def name(self, node: ast.Name) -> Argument:
        """The value of a name."""
        found = self.maker.names.get(node.id)
        if found is not None:
            return found
        if node.id in NUMBERS:
            return NUMBERS[node.id]
        raise self.fault(node, f"{node.id} is not defined here: no statement above assigns it", length=len(node.id))

    def _constant(self, node: ast.Constant) -> Argument:
        value = node.value
        if isinstance(value, bytes) or value is ...:
            return _opaque(node)
        if isinstance(value, int) and value.bit_length() > MOST_BITS:
            raise self.fault(node, f"the number has more than {MOST_BITS} bits")
        return value

    def _key(self, node: ast.expr | None) -> str:
        if isinstance(node, ast.Constant):
            return str(node.value)
        if isinstance(node, ast.Name):
            return node.id
        raise self.fault(node or ast.Constant(None), "the key of a dictionary is a name or a text")

    def _number(self, node: ast.UnaryOp | ast.BinOp, depth: int) -> Argument:
        """``-1``, ``1 + 2j``, ``-inf``; an expression of symbols is kept as its text."""
        if isinstance(node, ast.UnaryOp):
            if depth > DEEPEST:
                raise self.fault(node, f"signs are nested more than {DEEPEST} deep")
            inner = self.argument(node.operand, depth + 1)
            if isinstance(node.op, ast.USub) and isinstance(inner, int | float | complex):
                return -inner
            if isinstance(node.op, ast.UAdd) and isinstance(inner, int | float | complex):
                return inner
        elif isinstance(node.op, ast.Add | ast.Sub):
            left, right = node.left, node.right
            parts = [self.argument(side, depth + 1) if not isinstance(side, ast.BinOp) else None for side in (left, right)]
            if all(isinstance(part, int | float | complex) for part in parts):
                sign = 1 if isinstance(node.op, ast.Add) else -1
                return complex(parts[0]) + sign * complex(parts[1])  # type: ignore[arg-type]
        raise self.fault(node, f"an argument is a value or a constant, but here is the expression {shown(node)}")

    def _attribute(self, node: ast.Attribute) -> Argument:
        path = dotted(node)
        head, _, last = path.rpartition(".")
        if head == "torch":
            found = named(last)
            if found is not None:
                return found
        root = path.partition(".")[0]
        if not path or root == "self" or root in self.maker.names:
            raise self.fault(node, f"an argument is a value or a constant, but {shown(node)} is no value: a statement reads it before")
        return NamedConstant(path, "object")

    def _call(self, node: ast.Call, depth: int) -> Argument:
        """``device(type='cpu')``, ``slice(0, 4, None)``, ``torch.Size([2, 3])``: constants that Python writes as calls."""
        name = dotted(node.func)
        if name in ("device", "torch.device"):
            return self._device(node)
        if name in ("torch.Size", "list", "tuple", "immutable_list") and len(node.args) == 1 and depth <= DEEPEST:
            return self.argument(node.args[0], depth + 1)
        if not name:
            raise self.fault(node, f"an argument is a value or a constant, but here is the call {shown(node)}")
        for part in [*node.args, *(keyword.value for keyword in node.keywords)]:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Name) and inner.id in self.maker.names:
                    return self._made(node, name, depth)
        return _opaque(node)

    def _made(self, node: ast.Call, name: str, depth: int) -> Argument:
        """A constant-like call with values in it, such as ``slice(None, n, None)``: a list of its arguments under its name."""
        if depth > DEEPEST:
            raise self.fault(node, f"calls are nested more than {DEEPEST} deep")
        return {name: [self.argument(part, depth + 1) for part in node.args]}

    def _device(self, node: ast.Call) -> Argument:
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        values = [str(part.value) for part in parts if isinstance(part, ast.Constant)]
        return NamedConstant(":".join(values), "Device")


def _opaque(node: ast.expr) -> NamedConstant:
    return NamedConstant(shown(node), "object")


def shown(node: ast.AST) -> str:
    """An expression in a message, or kept as its text."""
    try:
        return ast.unparse(node)[:400]
    except (RecursionError, ValueError):
        return "a long expression"
