"""Patterns: what they match, in which order, and what is no pattern."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from irscope.formats import hlo as hlo_format
from irscope.graph import Node
from irscope.graph.pattern import Pattern, build, parse_term
from irscope.ops import hlo
from irscope.source import SourceText


def root(instructions: str) -> Node:
    reading = hlo_format.read(SourceText("t.hlo", f"HloModule t\nENTRY e {{\n x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n{instructions}\n}}\n"))
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module().main().result()


def is_all(node: Any, value: float) -> bool:
    return node.op.name == "constant" and bool((node.attrs["literal"].value() == value).all())


@pytest.mark.parametrize(("pattern", "text", "names"), [
    ("add(a, b)", "ROOT r = f32[2] add(x, y)", {"a": "x", "b": "y"}),
    ("add(a, a)", "ROOT r = f32[2] add(x, y)", None),
    ("add(a, a)", "ROOT r = f32[2] add(x, x)", {"a": "x"}),
    ("add(a, negate(b))", "n = f32[2] negate(x)\n ROOT r = f32[2] add(n, y)", {"a": "y", "b": "x"}),
    ("subtract(a, negate(b))", "n = f32[2] negate(x)\n ROOT r = f32[2] subtract(n, y)", None),
    ("add(a, 0)", "z = f32[2] constant({0, 0})\n ROOT r = f32[2] add(z, y)", {"a": "y"}),
    ("add(a, zero:0)", "z = f32[2] constant({0, 0})\n ROOT r = f32[2] add(y, z)", {"a": "y", "zero": "z"}),
    ("add(a, n:negate(a))", "n = f32[2] negate(x)\n ROOT r = f32[2] add(n, x)", {"a": "x", "n": "n"}),
    ("sqrt|rsqrt(a)", "ROOT r = f32[2] rsqrt(x)", {"a": "x"}),
    ("add(negate'(a), b)", "n = f32[2] negate(x)\n ROOT r = f32[2] multiply(n, n)", None),
    ("compare[direction=GT](a, b)", "ROOT r = pred[2] compare(x, y), direction=GT", {"a": "x", "b": "y"}),
    ("compare[direction=GT](a, b)", "ROOT r = pred[2] compare(x, y), direction=LT", None),
])
def test_patterns_match(pattern: str, text: str, names: dict[str, str] | None) -> None:
    found = Pattern(pattern).match(root(text), is_all)
    assert (None if found is None else {name: node.name for name, node in found.items() if name != "root"}) == names


THROUGH = hlo.named("convert reshape")
NEGATED = "c = f32[2] reshape(x)\n n = f32[2] negate(c)\n d = f32[2] reshape(n)\n ROOT r = f32[2] add(d, y)"


@pytest.mark.parametrize(("pattern", "text", "names"), [
    ("add(n:negate(a), b)", NEGATED, {"n": "n", "a": "c", "b": "y"}),
    ("add(negate(b), b)", NEGATED, None),
    ("multiply(a, a)", "c = f32[2] reshape(x)\n ROOT r = f32[2] multiply(c, x)", {"a": "c"}),
    ("reshape(a)", "c = f32[2] negate(x)\n ROOT r = f32[2] reshape(c)", {"a": "c"}),
])
def test_patterns_look_through_operators(pattern: str, text: str, names: dict[str, str] | None) -> None:
    found = Pattern(pattern, THROUGH).match(root(text), is_all)
    assert (None if found is None else {name: node.name for name, node in found.items() if name != "root"}) == names


def test_names_may_be_known_before() -> None:
    sum_ = root("ROOT r = f32[2] add(x, y)")
    x, y = sum_.operands
    found = Pattern("add(a, b)").match(sum_, is_all, bound={"a": y})
    assert found is not None and (found["a"], found["b"]) == (y, x)
    assert Pattern("add(a, b)").match(sum_, is_all, bound={"a": sum_}) is None



def test_the_first_match_that_meets_the_condition_counts() -> None:
    add = root("n = f32[2] negate(x)\n m = f32[2] negate(y)\n ROOT r = f32[2] add(n, m)")
    found = Pattern("add(negate(a), negate(b))").match(add, is_all, lambda bound: bound["a"].name == "y")
    assert found is not None and found["b"].name == "x"


@pytest.mark.parametrize("text", ["add(x", "add(x,)", "add()", "add(x) y", "add{x}", "", "compare[direction](x, y)"])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected|unexpected"):
        parse_term(text)


def test_a_pattern_of_one_user_refuses_others() -> None:
    term = parse_term("add(multiply'(x, -2.5), min:minimum|maximum(x, y))")
    assert term.ops == ("add",) and term.operands[0].one_user and not term.operands[1].one_user and not term.one_user
    assert term.operands[0].operands[1].number == -2.5 and term.operands[1].ops == ("minimum", "maximum") and term.operands[1].name == "min"
    compared = parse_term("compare[direction=GT](x, y)")
    assert compared.attrs == (("direction", "GT"),) and compared.operands[0].name == "x" and compared.operands[0].ops == ()


@pytest.mark.parametrize(("pattern", "operands", "may"), [
    ("add(negate(a), b)", "negate sine", True), ("add(negate(a), b)", "sine negate", True), ("add(negate(a), b)", "sine sine", False),
    ("subtract(negate(a), b)", "sine negate", False), ("subtract(negate(a), b)", "negate sine", True),
    ("multiply(a, 0)", "sine broadcast", True), ("multiply(a, 0)", "constant sine", True), ("multiply(a, 0)", "reshape reshape", True),
    ("multiply(a, 0)", "sine negate", False), ("subtract(a, 0)", "constant sine", False), ("add(negate(a), negate(b))", "negate sine", False),
    ("and(negate(a), b)", "sine negate", True), ("or(negate(a), b)", "sine negate", True), ("xor(negate(a), b)", "sine negate", True),
    ("minimum(negate(a), b)", "sine negate", True), ("maximum(negate(a), b)", "sine negate", True), ("divide(negate(a), b)", "sine negate", False),
    ("select(a, negate(b), c)", "sine negate sine", True), ("select(a, negate(b), c)", "negate sine sine", False),
])
def test_most_instructions_are_refused_by_the_operators_of_their_operands(pattern: str, operands: str, may: bool) -> None:
    ops = [next(iter(hlo.named(word))) for word in operands.split()]
    assert Pattern(pattern).may_match(ops) is may


def test_a_condition_chooses_among_the_orders() -> None:
    sum_ = root("ROOT r = f32[2] add(x, y)")
    x, y = sum_.operands
    pattern = Pattern("s:add(a, b)")
    first = pattern.match(sum_, is_all)
    assert first == {"root": sum_, "s": sum_, "a": x, "b": y}
    assert pattern.match(sum_, is_all, lambda bound: bound["a"] is y) == {"root": sum_, "s": sum_, "a": y, "b": x}
    assert pattern.match(sum_, is_all, lambda bound: False) is None and pattern.ops == ("add",)


class Terms:
    """Writes what is built."""

    def build(self, op: str, operands: Sequence[Any]) -> str:
        return f"{op}({','.join(operands)})"

    def full(self, value: float) -> str:
        return f"#{value}"


def test_replacements_are_built_from_what_names_matched() -> None:
    assert build(parse_term("add(a, negate(multiply(b, 2)))"), {"a": "A", "b": "B"}, Terms()) == "add(A,negate(multiply(B,#2.0)))"
    assert build(parse_term("a"), {"a": "A"}, Terms()) == "A"
