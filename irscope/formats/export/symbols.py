"""Symbolic sizes in one spelling: ``s17 + 1``, from sympy's ``srepr`` in archives and from Python expressions in texts.

    Add(Symbol('s17', positive=True, integer=True), Integer(1))     s17 + 1
    (s17 // 2)                                                      (s17//2)

Both are parsed by Python's grammar and never evaluated.
"""
from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import lru_cache

DEEPEST = 40
"""The maximal nesting of an expression; sympy flattens sums and products."""
BRACKETS = re.compile(r"[()\[\]{}]|[-+~][-+~ ]+")
LONGEST = 4000
"""The maximal length of an expression's text."""


class Unreadable(ValueError):
    """A text is no symbolic expression."""


@lru_cache(maxsize=20_000)
def spelled(text: str) -> str:
    """The expression as torch prints it. Raises Unreadable where the text is none."""
    if text.isidentifier() or text.isdecimal():
        return text
    if len(text) > LONGEST or nesting(text) > DEEPEST:
        raise Unreadable(f"the expression {text[:40]}... is too long or nested too deeply")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _spell(tree.body, 0)[0]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Unreadable(f"{text[:60]!r} is no symbolic expression") from None


def nesting(text: str) -> int:
    """The maximal nesting of brackets in a text, or the length of its longest row of signs where that is more."""
    depth = deepest = 0
    for found in BRACKETS.finditer(text):
        if found[0] in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in ")]}":
            depth -= 1
        else:
            deepest = max(deepest, len(found[0]))
    return deepest


ATOM, POWER, PRODUCT, SUM, RELATION = range(5)
"""How tightly the parts of an expression hold together."""
Spelling = tuple[str, int]


def _spell(node: ast.expr, depth: int) -> Spelling:
    if depth > DEEPEST:
        raise Unreadable("the expression is nested too deeply")
    if isinstance(node, ast.Name):
        return node.id, ATOM
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return str(node.value), SUM if isinstance(node.value, int | float) and node.value < 0 else ATOM
    if isinstance(node, ast.Call):
        return _call(node, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _spell(node.operand, depth + 1)
        return (f"-{_held(inner, PRODUCT)}", SUM)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        return f"~{_held(_spell(node.operand, depth + 1), ATOM)}", ATOM
    if isinstance(node, ast.BinOp):
        return _operation(node, depth)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        sides = [_held(_spell(part, depth + 1), SUM) for part in (node.left, node.comparators[0])]
        sign = RELATIONS.get(type(node.ops[0]))
        if sign is not None:
            return _relation(sign, sides)
    raise Unreadable("it is no symbolic expression")


def _operation(node: ast.BinOp, depth: int) -> Spelling:
    if isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        kind = ast.Mult if isinstance(node.op, ast.Mult) else (ast.Add, ast.Sub)
        parts: list[Spelling] = []
        rest: ast.expr = node
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, kind):
            part = _spell(rest.right, depth + 1)
            parts.append(_negated(part) if isinstance(rest.op, ast.Sub) else part)
            rest = rest.left
        parts.append(_spell(rest, depth + 1))
        return _product(parts[::-1]) if isinstance(node.op, ast.Mult) else _sum(parts[::-1])
    left, right = _spell(node.left, depth + 1), _spell(node.right, depth + 1)
    if isinstance(node.op, ast.FloorDiv):
        return _floor_div([left, right])
    if isinstance(node.op, ast.Pow):
        return _power([left, right])
    if isinstance(node.op, ast.Mod):
        return f"Mod({left[0]}, {right[0]})", ATOM
    if isinstance(node.op, ast.Div):
        return f"{_held(left, PRODUCT)}/{_held(right, POWER)}", PRODUCT
    if isinstance(node.op, ast.BitAnd | ast.BitOr):
        return f"{_held(left, ATOM)} {'&' if isinstance(node.op, ast.BitAnd) else '|'} {_held(right, ATOM)}", RELATION
    raise Unreadable("it is no symbolic expression")


def _call(node: ast.Call, depth: int) -> Spelling:
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""
    first = node.args[0] if node.args else None
    if name in ("Symbol", "Dummy") and isinstance(first, ast.Constant) and isinstance(first.value, str):
        return first.value, ATOM
    parts = [_spell(part, depth + 1) for part in node.args]
    rule = RULES.get(name)
    if rule is not None and parts:
        return rule(parts)
    if name in SIGNS and len(parts) == 2:
        return _relation(SIGNS[name], [_held(part, SUM) for part in parts])
    if not name:
        raise Unreadable("it is no symbolic expression")
    return f"{name}({', '.join(text for text, _ in parts)})", ATOM


def _relation(sign: str, sides: Sequence[str]) -> Spelling:
    if sign in ("==", "!="):
        return f"{'Eq' if sign == '==' else 'Ne'}({sides[0]}, {sides[1]})", ATOM
    return f"{sides[0]} {sign} {sides[1]}", RELATION


def _held(part: Spelling, loosest: int) -> str:
    """A part, in brackets where it holds together less tightly than ``loosest``."""
    text, tightness = part
    return text if tightness <= loosest else f"({text})"


def _negated(part: Spelling) -> Spelling:
    text, tightness = part
    if text.startswith("-") and tightness <= SUM and " " not in text:
        return text[1:], PRODUCT
    return f"-{_held(part, PRODUCT)}", SUM


def _sum(parts: Sequence[Spelling]) -> Spelling:
    """Terms with symbols first, in sympy's order: of higher degree first, then by name; a number last."""
    terms = sorted((_held(part, SUM) for part in parts), key=_term_order)
    text = terms[0]
    for term in terms[1:]:
        text += f" - {term[1:]}" if term.startswith("-") else f" + {term}"
    return text, SUM


def _term_order(term: str) -> tuple[bool, int, str]:
    bare = term.lstrip("-")
    head, star, rest = bare.partition("*")
    symbols = rest if star and head.isdecimal() else bare
    return bare.isdecimal(), -symbols.count("*"), symbols


def _product(parts: Sequence[Spelling]) -> Spelling:
    """The number first, then symbols by name."""
    factors = sorted((_held(part, POWER) if not _is_number(part[0]) else part[0] for part in parts), key=lambda f: (not _is_number(f), f))
    if factors[0] == "-1" and len(factors) > 1:
        return "-" + "*".join(factors[1:]), SUM
    if factors[0] == "1" and len(factors) > 1:
        factors = factors[1:]
    return "*".join(factors), SUM if factors[0].startswith("-") else PRODUCT


def _is_number(text: str) -> bool:
    return text.lstrip("-").isdecimal()


def _power(parts: Sequence[Spelling]) -> Spelling:
    if len(parts) == 2 and parts[1][0] == "-1":
        return f"1/{_held(parts[0], ATOM)}", PRODUCT
    return "**".join(_held(part, ATOM) for part in parts), POWER


def _floor_div(parts: Sequence[Spelling]) -> Spelling:
    return f"({'//'.join(_held(part, ATOM) for part in parts)})", ATOM


RULES: dict[str, Callable[[Sequence[Spelling]], Spelling]] = {
    "Add": _sum, "Mul": _product, "Pow": _power, "FloorDiv": _floor_div, "CleanDiv": _floor_div,
    "Integer": lambda parts: parts[0], "Float": lambda parts: parts[0],
    "Rational": lambda parts: (f"{parts[0][0]}/{parts[1][0]}" if len(parts) == 2 else parts[0][0], PRODUCT),
    "Not": lambda parts: (f"~{_held(parts[0], ATOM)}", ATOM),
    "PythonMod": lambda parts: (f"Mod({', '.join(text for text, _ in parts)})", ATOM),
}
"""How the functions of sympy and of torch's own are written, by name; all others as a call."""
SIGNS = {"GreaterThan": ">=", "StrictGreaterThan": ">", "LessThan": "<=", "StrictLessThan": "<", "Equality": "==", "Unequality": "!=",
         "Ge": ">=", "Gt": ">", "Le": "<=", "Lt": "<", "Eq": "==", "Ne": "!="}
RELATIONS: dict[type[ast.cmpop], str] = {ast.GtE: ">=", ast.Gt: ">", ast.LtE: "<=", ast.Lt: "<", ast.Eq: "==", ast.NotEq: "!="}
