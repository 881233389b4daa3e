"""Symbolic sizes: sympy's ``srepr`` and Python's expressions are spelled alike, as torch prints them."""
from __future__ import annotations

import pytest

from irscope.formats.export.symbols import Unreadable, spelled
from irscope.formats.export.types import BadType, parse_annotation


@pytest.mark.parametrize(("text", "wanted"), [
    ("Add(Symbol('s17', positive=True, integer=True), Integer(1))", "s17 + 1"),
    ("Add(Integer(-1), Symbol('s17', integer=True))", "s17 - 1"),
    ("Mul(Integer(2), Symbol('s0', integer=True), Symbol('s1', integer=True))", "2*s0*s1"),
    ("Mul(Integer(-1), Symbol('s0', integer=True))", "-s0"),
    ("FloorDiv(Symbol('s0', integer=True), Integer(2))", "(s0//2)"),
    ("Mul(Integer(3), Add(Symbol('s0', integer=True), Integer(1)))", "3*(s0 + 1)"),
    ("Pow(Symbol('s0', integer=True), Integer(2))", "s0**2"),
    ("Max(Integer(1), Symbol('u0', integer=True))", "Max(1, u0)"),
    ("GreaterThan(Symbol('u0', integer=True), Integer(0))", "u0 >= 0"),
    ("Equality(Symbol('u0', integer=True), Integer(0))", "Eq(u0, 0)"),
    ("s17 + 1", "s17 + 1"), ("1 + s17", "s17 + 1"), ("2*s0*s1", "2*s0*s1"), ("(s0//2)", "(s0//2)"), ("s1 - s0", "-s0 + s1"),
])
def test_expressions_are_spelled_as_torch_prints_them(text: str, wanted: str) -> None:
    assert spelled(text) == wanted
    assert spelled(wanted) == wanted


@pytest.mark.parametrize("text", ["", "a b", "lambda: 1", "(" * 100 + "a" + ")" * 100, "-" * 10_000 + "a", "a.b[0]", "+".join("a" * 5000)])
def test_what_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        spelled(text)


@pytest.mark.parametrize(("text", "wanted"), [
    ("f32[8, s77]", "f32[8, s77]"), ("bf16[4][1]cpu", "bf16[4]"), ("b8[]", "b8[]"), ("c64[2]", "c64[2]"), ("i64[2*s0, Max(1, u0)]", "i64[2*s0, Max(1, u0)]"),
    ("Sym(u0 >= 0)", "bool"), ("Sym(2*s77)", "int"), ("Sym(zuf0)", "float"), ("HopInstance", "HopInstance"),
])
def test_annotations(text: str, wanted: str) -> None:
    assert str(parse_annotation(text)) == wanted


@pytest.mark.parametrize("text", ["f32[[4]", "f32[a b]", "f32[4"])
def test_malformed_annotations(text: str) -> None:
    with pytest.raises(BadType):
        parse_annotation(text)
