"""Whether the argument of an exponential can be large, and above which it is infinite."""
from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from irscope import api
from irscope.analysis.exponentials import NEAR, is_bounded, limit_of
from irscope.graph import Node, TupleType, tensor
from irscope.graph.dtypes import DTYPES
from irscope.ops import hlo

COMPUTATIONS = """HloModule m
add { p = f32[] parameter(0)
 q = f32[] parameter(1)
 ROOT s = f32[] add(p, q) }
max { p = f32[] parameter(0)
 q = f32[] parameter(1)
 ROOT s = f32[] maximum(p, q) }
same { p = f32[4] parameter(0)
 ROOT n = f32[4] negate(p) }
ENTRY e {
 x = f32[4] parameter(0)
 y = f32[4] parameter(1)
 choice = pred[4] parameter(2)
 pair = (f32[4], f32[4]) parameter(3)
 least = f32[] constant(-inf)
 k = f32[] constant(-0.5)
 negative = f32[4] broadcast(k), dimensions={}
 l = f32[] constant(2)
 positive = f32[4] broadcast(l), dimensions={}
 nothing = f32[] constant(0)
 zero = f32[4] broadcast(nothing), dimensions={}
 highest = f32[] reduce(x, least), dimensions={0}, to_apply=max
 top = f32[4] broadcast(highest), dimensions={}
 all = f32[] reduce(x, nothing), dimensions={0}, to_apply=add
 total = f32[4] broadcast(all), dimensions={}
 square = f32[4] multiply(x, x)
 size = f32[4] abs(x)
 bounded = f32[4] tanh(x)
 clipped = f32[4] maximum(x, zero)
 called = f32[4] call(x), to_apply=same
"""


def argument(*lines: str) -> Node:
    """The result of the last line, as the argument of an exponential."""
    text = COMPUTATIONS + "".join(f" {line}\n" for line in lines) + f" ROOT r = f32[4] exponential({lines[-1].partition(' =')[0]})\n}}\n"
    (found,) = api.load(text, format="hlo").module().main().result().operands
    return found


@pytest.mark.parametrize(("line", "bounded"), [
    ("subtract(x, top)", True), ("subtract(x, called)", True), ("subtract(x, total)", False), ("subtract(top, x)", False), ("subtract(x, y)", False),
    ("tanh(x)", True), ("logistic(x)", True), ("clamp(zero, x, positive)", True), ("minimum(x, positive)", True), ("sine(x)", True),
    ("cosine(x)", True), ("erf(x)", True), ("log(x)", True), ("sign(x)", True), ("call(x), to_apply=same", True),
    ("get-tuple-element(pair), index=1", True),
    ("negate(x)", False), ("abs(x)", False), ("floor(x)", False), ("maximum(x, zero)", False), ("exponential(x)", False),
    ("add(bounded, positive)", True), ("divide(bounded, positive)", True), ("add(x, positive)", False), ("divide(x, positive)", False),
    ("select(choice, bounded, x)", True), ("select(choice, x, bounded)", False), ("copy(bounded)", True), ("copy(x)", False),
])
def test_arguments_that_cannot_be_large(line: str, bounded: bool) -> None:
    assert is_bounded(argument(f"a = f32[4] {line}")) is bounded


@pytest.mark.parametrize(("line", "bounded"), [
    ("negate(size)", True), ("negate(square)", True), ("negate(clipped)", True), ("multiply(negative, square)", True),
    ("multiply(square, negative)", True), ("multiply(size, negative)", True), ("multiply(negative, clipped)", True),
    ("multiply(positive, square)", False), ("multiply(square, positive)", False), ("multiply(negative, x)", False), ("multiply(x, negative)", False),
    ("multiply(x, x)", False), ("multiply(x, y)", False), ("multiply(x, size)", False), ("multiply(square, y)", False),
])
def test_values_of_at_most_zero(line: str, bounded: bool) -> None:
    assert is_bounded(argument(f"a = f32[4] {line}")) is bounded


@pytest.mark.parametrize(("line", "bounded"), [
    ("maximum(x, zero)", True), ("maximum(zero, x)", True), ("maximum(x, positive)", True), ("maximum(x, negative)", False),
    ("maximum(x, y)", False), ("multiply(y, y)", True), ("multiply(x, y)", False), ("exponential(x)", True), ("add(square, square)", False),
])
def test_minus_a_value_of_at_least_zero(line: str, bounded: bool) -> None:
    assert is_bounded(argument(f"v = f32[4] {line}", "a = f32[4] negate(v)")) is bounded
    assert is_bounded(argument(f"v = f32[4] {line}", "w = f32[4] copy(v)", "a = f32[4] multiply(w, negative)")) is bounded


def test_a_scaled_difference_from_the_maximum() -> None:
    assert is_bounded(argument("d = f32[4] subtract(x, top)", "a = f32[4] multiply(d, positive)"))
    assert not is_bounded(argument("d = f32[4] subtract(x, total)", "a = f32[4] multiply(d, positive)"))
    assert is_bounded(argument("s = f32[4] add(top, positive)", "a = f32[4] subtract(x, s)"))


def chain(count: int, op: str, first: str) -> list[str]:
    """``count`` operations, each of which reads the one before; the last is ``v``."""
    names = [first, *(f"v{i}" for i in range(1, count)), "v"][:count] + ["v"]
    return [f"{name} = f32[4] {op.replace('_', before)}" for before, name in pairwise(names)]


def test_how_far_the_reason_is_searched() -> None:
    """What stands farther away is unknown, and nothing is reported."""
    assert NEAR == 24
    assert not is_bounded(argument(*chain(NEAR - 1, "add(_, y)", "x"))) and is_bounded(argument(*chain(NEAR, "add(_, y)", "x")))
    near, far = (argument(*chain(count, "negate(_)", "top"), "a = f32[4] subtract(x, v)") for count in (NEAR - 2, NEAR - 1))
    assert is_bounded(near) and not is_bounded(far)


@pytest.mark.parametrize("name", ["f16", "f32", "f64"])
def test_arguments_above_which_an_exponential_is_infinite(name: str) -> None:
    limit = limit_of(Node(hlo.exponential, "e", tensor(name, 4)))
    with np.errstate(over="ignore"):
        below, above = np.exp(np.asarray([int(limit), int(limit) + 1], DTYPES[name].numpy()))
    assert np.isfinite(below) and np.isinf(above)


def test_other_float_types_have_the_range_of_f32() -> None:
    assert [limit_of(Node(hlo.exponential, "e", type)) for type in (tensor("bf16", 4), tensor("f32"), TupleType(()))] == ["88", "88", "88"]
