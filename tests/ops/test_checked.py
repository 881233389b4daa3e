"""Sizes and lists of numbers as operators read them: what is there, and the message for what is not."""
from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from irscope.ops import TypeFault
from irscope.ops.attributes import Constant, Dot
from irscope.ops.checked import MOST, Items, Sizes, at_least, in_step, nonzero, real, table
from tests.ops.running import read


def test_what_is_there() -> None:
    sizes, items = Sizes((2, 3, 2)), Items(["a", "b"])
    assert (sizes[0], sizes[-2], sizes[1:], sizes.index(2), sizes.index(2, 1), sizes.index(3)) == (2, 3, (3, 2), 0, 2, 1)
    assert (items[1], items[-2], items[:1]) == ("b", "a", ["a"])
    assert list(in_step("sizes", [1, 2], (3, 4), iter([5, 6]))) == [(1, 3, 5), (2, 4, 6)] and list(in_step("sizes")) == []
    assert (nonzero("a divisor", -1), at_least(2, "a count", 2), at_least(0, "a rate", 0.5)) == (-1, 2, 0.5)
    real("limits", 1, -2.5, True, 0)
    assert table("the window", 3, 4) == (3, 4) and table("a number") == () and table("none", 0, 1 << 70) == (0, 1 << 70)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: Sizes((2, 3))[2], "it takes a tensor with a dimension 2, not one of the sizes [2, 3]"),
    (lambda: Sizes((2, 3))[-3], "it takes a tensor with a dimension -3, not one of the sizes [2, 3]"),
    (lambda: Sizes((2, 3)).index(4), "it takes a tensor with a dimension of size 4, not one of the sizes [2, 3]"),
    (lambda: Items(["a"])[1], "it takes a list with an element 1, not one of 1"),
    (lambda: in_step("strides and sizes", [1], [1, 2]), "strides and sizes must have equal lengths, not 1, 2"),
    (lambda: in_step("they", [], [1]), "they must have equal lengths, not 0, 1"),
    (lambda: nonzero("the step", 0), "the step must not be 0"), (lambda: nonzero("the step", 0.0), "the step must not be 0"),
    (lambda: at_least(1, "the groups", 0), "the groups must be at least 1, not 0"),
    (lambda: table("the window", MOST, 2), f"the window would have more than {MOST:,} elements"),
    (lambda: table("the window", MOST + 1), f"the window would have more than {MOST:,} elements"),
    (lambda: table("the window", 1 << 14, (1 << 14) + 1), "the window would have more than 268,435,456 elements"),
    (lambda: real("the limits", 1, math.inf), "the limits must be finite real numbers, not inf"),
    (lambda: real("the limits", 2j), "the limits must be finite real numbers, not 2j"),
    (lambda: real("the limits", 1, "a"), "the limits must be finite real numbers, not one that depends on data"),
])
def test_what_is_not(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeFault) as raised:
        call()
    assert raised.value.message == message


def test_attributes_in_pairs() -> None:
    node = read("ENTRY e {\n x = f32[2,3,4,5] parameter(0)\n y = f32[5,3,2,6] parameter(1)\n ROOT d = f32[2,3,4,6] dot(x, y), lhs_batch_dims={0,1}, "
                "rhs_batch_dims={2,1}, lhs_contracting_dims={3}, rhs_contracting_dims={0}\n}\n").main().result()
    assert Dot.of(node).batch_dims == ((0, 1), (2, 1)) and Dot.of(node).contracting_dims == ((3,), (0,))


@pytest.mark.parametrize(("text", "known"), [("constant(3)", True), ("constant({...})", False)])
def test_a_constant_is_known_where_the_text_writes_it(text: str, known: bool) -> None:
    shape = "" if known else "4"
    node = read(f"ENTRY e {{\n ROOT c = f32[{shape}] {text}\n}}\n").main().result()
    assert (Constant.of(node).known is not None) is known
