"""Operators between values of generated code: which scalar operation each stands for, and in which order."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import pytest

from irscope.graph import DType
from irscope.graph.dtypes import F32, PRED
from irscope.graph.node import Emitter, Value
from irscope.ops.formula import FormulaTerm


@dataclass
class Text:
    """A value that is the text of how it was computed."""

    text: str
    dtype: DType


class TextEmitter:
    """Writes operations as calls."""

    def const(self, value: float, dtype: DType) -> Text:
        return Text(str(value), dtype)

    def unary(self, word: str, x: Text) -> Text:
        return Text(f"{word}({x.text})", x.dtype)

    def binary(self, word: str, x: Text, y: Text) -> Text:
        assert x.dtype is y.dtype
        return Text(f"{word}({x.text}, {y.text})", x.dtype)

    def compare(self, direction: str, x: Text, y: Text) -> Text:
        assert x.dtype is y.dtype
        return Text(f"{direction}({x.text}, {y.text})", PRED)

    def select(self, test: Text, yes: Text, no: Text) -> Text:
        assert test.dtype is PRED and yes.dtype is no.dtype
        return Text(f"select({test.text}, {yes.text}, {no.text})", yes.dtype)


MADE: list[tuple[Callable[[FormulaTerm, FormulaTerm], FormulaTerm], str]] = [
    (lambda x, y: x + y, "add(x, y)"), (lambda x, y: x - y, "sub(x, y)"),
    (lambda x, y: x * y, "mul(x, y)"), (lambda x, y: x / y, "div(x, y)"),
    (lambda x, y: 3 + y, "add(3, y)"), (lambda x, y: 3 - y, "sub(3, y)"),
    (lambda x, y: 3 * y, "mul(3, y)"), (lambda x, y: 3 / y, "div(3, y)"),
    (lambda x, y: x - 3, "sub(x, 3)"),
    (lambda x, y: x < y, "LT(x, y)"), (lambda x, y: x <= y, "LE(x, y)"),
    (lambda x, y: x > y, "GT(x, y)"), (lambda x, y: x >= 3, "GE(x, 3)"),
    (lambda x, y: x.equals(y), "EQ(x, y)"),
    (lambda x, y: x & y, "and(x, y)"), (lambda x, y: x | y, "or(x, y)"),
    (lambda x, y: x ^ y, "xor(x, y)"), (lambda x, y: x << 3, "shl(x, 3)"),
    (lambda x, y: x >> 3, "shr_logical(x, 3)"),
    (lambda x, y: -x, "neg(x)"), (lambda x, y: (x < 0).where(-x, 0), "select(LT(x, 0), neg(x), 0)"), (lambda x, y: (x + 1) * y, "mul(add(x, 1), y)"),
]


@pytest.mark.parametrize(("made", "text"), MADE, ids=[text for _, text in MADE])
def test_an_operator_is_a_scalar_operation(made: Callable[[FormulaTerm, FormulaTerm], FormulaTerm], text: str) -> None:
    k = cast(Emitter, TextEmitter())
    found = cast(Text, made(*(FormulaTerm(k, cast(Value, Text(name, F32))) for name in "xy")).value)
    assert found == Text(text, PRED if text[:2].isupper() else F32)
