"""Ranges of integers by hand: steps, sums, conditions; and every operation's range against the values that it really takes."""
from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from irscope.graph.dtypes import PRED, S8, S32, S64, U8
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import interpret_kernel
from irscope.lower.ranges import FULL, KnownBounds, LinearSum, Range, Ranges, facts
from irscope.lower.register import Reg
from irscope.lower.tile import Expr, Load
from tests.effort import calls_in

Make = Callable[[KernelBuilder, Expr, Expr], Expr]


def values(r: Range) -> set[int]:
    return set(range(r.low, r.high + 1, r.step))


SOME = [Range(0, 0), Range(3, 3), Range(0, 12, 4), Range(2, 14, 4), Range(-6, 9, 3), Range(1, 7), Range(-5, -5)]


@pytest.mark.parametrize(("a", "b"), list(product(SOME, SOME)))
def test_ranges_hold_what_they_should(a: Range, b: Range) -> None:
    sums = {x + y for x in values(a) for y in values(b)}
    assert values(a.plus(b)) >= sums and (a.plus(b).low, a.plus(b).high) == (min(sums), max(sums))
    assert values(a.join(b)) >= values(a) | values(b) and (a.join(b).low, a.join(b).high) == (min(a.low, b.low), max(a.high, b.high))
    both = values(a) & values(b)
    assert values(a.meet(b)) >= both
    assert a.meet(b).low >= max(a.low, b.low) and a.meet(b).high <= min(a.high, b.high)
    for factor in (-3, -1, 0, 1, 2):
        assert values(a.times(factor)) == {x * factor for x in values(a)}


def test_steps() -> None:
    assert Range(0, 12, 4).plus(Range(1, 9, 8)) == Range(1, 21, 4) and Range(0, 12, 4).plus(Range(5, 5)) == Range(5, 17, 4)
    assert Range(1, 1).plus(Range(2, 2)) == Range(3, 3, 1)
    assert Range(0, 12, 4).join(Range(2, 10, 8)) == Range(0, 12, 2) and Range(4, 4).join(Range(4, 4)) == Range(4, 4, 1)
    assert Range(0, 100, 16).meet(Range(3, 50)) == Range(16, 48, 16) and Range(3, 50).meet(Range(0, 100, 16)) == Range(16, 48, 16)
    assert Range(0, 12, 4).meet(Range(1, 3)).low > Range(0, 12, 4).meet(Range(1, 3)).high, "no value is in both"
    assert Range(0, 12, 4).times(-2) == Range(-24, 0, 8) and Range(1, 9, 4).times(0) == Range(0, 0, 1)


def ranges_of(k: KernelBuilder) -> tuple[Ranges, Expr, Expr]:
    """i in 0, 4 ... 12 and j in -3 ... 5."""
    ranges = Ranges({})
    i, j = k.variable("i", S64), k.variable("j", S64)
    ranges.define(i, Range(0, 12, 4))
    ranges.define(j, Range(-3, 5))
    return ranges, i, j


EXACT: list[tuple[Make, Range]] = [
    (lambda k, i, j: i + j, Range(-3, 17)), (lambda k, i, j: i * 3 + 1, Range(1, 37, 12)), (lambda k, i, j: j - i, Range(-15, 5)),
    (lambda k, i, j: i - i, Range(0, 0)), (lambda k, i, j: 0 - j, Range(-5, 3)), (lambda k, i, j: i * 2 - i - i, Range(0, 0)),
    (lambda k, i, j: i // 4, Range(0, 3)), (lambda k, i, j: j // 4, Range(-1, 1)), (lambda k, i, j: i % 8, Range(0, 7)),
    (lambda k, i, j: (j + 8) % 16, Range(5, 13)), (lambda k, i, j: (j + 100) % 64, Range(33, 41)),
    (lambda k, i, j: k.binary("min", i, j), Range(-3, 5)), (lambda k, i, j: k.binary("max", i, j), Range(0, 12)),
    (lambda k, i, j: k.binary("max", i, 6), Range(6, 12)), (lambda k, i, j: k.binary("min", i, 6), Range(0, 6)),
    (lambda k, i, j: k.make("mul", (i, j), S64), Range(-36, 60)), (lambda k, i, j: k.make("div", (i, k.index(5)), S64), Range(0, 2)),
    (lambda k, i, j: k.make("rem", (i, k.index(5)), S64), Range(0, 4)), (lambda k, i, j: k.make("rem", (i, k.index(99)), S64), Range(0, 12)),
    (lambda k, i, j: k.make("div", (i, j), S64), Range(*FULL)), (lambda k, i, j: k.make("rem", (j, k.index(5)), S64), Range(*FULL)),
    (lambda k, i, j: k.binary("and", j, 7), Range(0, 7)), (lambda k, i, j: k.binary("and", i, 99), Range(0, 12)),
    (lambda k, i, j: k.binary("and", i, 5), Range(0, 5)), (lambda k, i, j: k.binary("and", j, -8), Range(*FULL)),
    (lambda k, i, j: k.binary("shl", i, 2), Range(0, 48)), (lambda k, i, j: k.binary("shr_logical", i, 2), Range(0, 3)),
    (lambda k, i, j: k.binary("shr_arithmetic", i, 1), Range(0, 6)), (lambda k, i, j: k.binary("shr_arithmetic", j, 1), Range(*FULL)),
    (lambda k, i, j: k.binary("shl", i, 64), Range(*FULL)), (lambda k, i, j: k.binary("shl", i, 63), Range(*FULL)),
    (lambda k, i, j: k.unary("popcnt", i), Range(0, 64)), (lambda k, i, j: k.unary("clz", i), Range(0, 64)),
    (lambda k, i, j: k.unary("abs", j), Range(0, 5)), (lambda k, i, j: k.unary("abs", j - 20), Range(0, 23)),
    (lambda k, i, j: k.select(k.compare("LT", j, 2), j, 9), Range(-3, 9)), (lambda k, i, j: k.select(k.compare("LT", j, 2), j, 0), Range(-3, 1)),
    (lambda k, i, j: k.select(k.compare("GE", j, 2), 0, j), Range(-3, 1)), (lambda k, i, j: k.select(k.compare("EQ", j, 2), j, 2), Range(2, 2)),
    (lambda k, i, j: k.convert(k.convert(i, S8), S64), Range(0, 12, 4)), (lambda k, i, j: k.convert(k.convert(i * 100, S8), S64), Range(-128, 127)),
    (lambda k, i, j: k.convert(k.convert(j, U8), S64), Range(0, 255)), (lambda k, i, j: k.convert(k.compare("LT", i, j), S64), Range(0, 1)),
    (lambda k, i, j: k.convert(k.variable("f", S32), S64), Range(-(1 << 31), (1 << 31) - 1)),
    (lambda k, i, j: k.splat(i, 4), Range(0, 12, 4)), (lambda k, i, j: k.lane(8), Range(0, 7)),
    (lambda k, i, j: k.binary("add", k.splat(i, 4), k.lane(4)), Range(0, 15)), (lambda k, i, j: k.vector([5, -2, 7]), Range(-2, 7)),
    (lambda k, i, j: k.make("neg", (j,), S64), Range(-5, 3)), (lambda k, i, j: k.variable("n", S64), Range(*FULL)),
    (lambda k, i, j: i * 4 + i // 4, Range(0, 51)), (lambda k, i, j: i - i // 4 * 4, Range(0, 0)),
]


@pytest.mark.parametrize(("make", "want"), EXACT)
def test_the_range_of_an_operation(make: Make, want: Range) -> None:
    k = KernelBuilder("k")
    ranges, i, j = ranges_of(k)
    x = make(k, i, j)
    found = ranges.range(x)
    assert (found.low, found.high) == (want.low, want.high) and (want.step == 1 or found.step == want.step), found
    # The range holds the values that the interpreter computes.
    if x.lanes == 1 and not any(part.op == "var" and part not in (i, j) for part in [x, *x.args, *(a for p in x.args for a in p.args)]):
        at, out = k.buffer("at", S64, (2,), "in"), k.buffer("out", S64, (1,), "out")
        for number, var in enumerate((i, j)):
            k.emit(Load(var, at, k.index(number)))
        k.store(out, 0, k.as_index(x))
        kernel = k.finish()
        for a, b in product(values(Range(0, 12, 4)), values(Range(-3, 5))):
            result = np.zeros(1, np.int64)
            interpret_kernel(kernel, [np.array([a, b]), result])
            assert found.low <= int(result[0]) <= found.high and (int(result[0]) - found.low) % found.step == 0


def test_sums_have_sorted_terms_without_zeros() -> None:
    k = KernelBuilder("k")
    ranges, i, j = ranges_of(k)
    assert ranges.sum(j * 2 + i * 3 - 7) == LinearSum(((i, 3), (j, 2)), -7) and ranges.sum(k.index(5)) == LinearSum((), 5)
    a, b = LinearSum(((i, 3), (j, 2)), -7), LinearSum(((i, 1),), 2)
    assert a.plus(b, -3) == LinearSum(((j, 2),), -13) and b.plus(a) == LinearSum(((i, 4), (j, 2)), -5)
    narrow = k.make("add", (k.convert(i, S8), k.const(100, S8)), S8)
    assert ranges.sum(narrow) == LinearSum(((i, 1),), 100), "nothing wraps: 112 is an s8"
    wide = k.make("add", (k.convert(i, S8), k.const(120, S8)), S8)
    assert ranges.sum(wide).terms == ((wide, 1),) and ranges.range(wide) == Range(-128, 127)
    named = k.variable("named", S64)
    ranges.name(named, i * 4 + 1, ())
    assert ranges.sum(named + j) == LinearSum(((i, 4), (j, 1)), 1) and ranges.range(named) == Range(1, 49, 16)
    assert ranges.definition(named) is i * 4 + 1 and ranges.definition(i) is i


def test_known_bounds_are_normal() -> None:
    k = KernelBuilder("k")
    _, i, j = ranges_of(k)
    s = LinearSum(((i, 4), (j, -8)), 3)
    assert KnownBounds.of(s, 0, 10) == KnownBounds(LinearSum(((i, 1), (j, -2)), 0), 0, 1), "-3 <= 4i - 8j <= 7"
    assert KnownBounds.of(LinearSum(((i, -4), (j, 8)), -3), -10, 0) == KnownBounds(LinearSum(((i, 1), (j, -2)), 0), 0, 1)
    assert KnownBounds.of(LinearSum((), 5), 0, 10) == KnownBounds(LinearSum((), 0), -5, 5)
    assert KnownBounds.of(LinearSum(((i, 3),), 0), -4, 4) == KnownBounds(LinearSum(((i, 1),), 0), -1, 1)


def bounded(condition: Callable[[KernelBuilder, Expr, Expr], Expr], of: Callable[[KernelBuilder, Expr, Expr], Expr], holds: bool = True) -> Range:
    """The range of an expression where a condition holds (or does not)."""
    k = KernelBuilder("k")
    ranges, i, j = ranges_of(k)
    found = facts(ranges, condition(k, i, j), (), holds)
    return ranges.range(of(k, i, j), found)


def compare(direction: str) -> Make:
    """j against 2."""
    return lambda k, i, j: k.compare(direction, j, 2)


def own(k: KernelBuilder, i: Expr, j: Expr) -> Expr:
    return j


def inside(k: KernelBuilder, i: Expr, j: Expr) -> Expr:
    return k.binary("and", k.compare("GE", j, 0), k.compare("LT", j, 4))


def outside(k: KernelBuilder, i: Expr, j: Expr) -> Expr:
    return k.binary("or", k.compare("LT", j, 0), k.compare("GE", j, 4))


def fixed(k: KernelBuilder, i: Expr, j: Expr) -> Expr:
    return k.binary("and", k.compare("EQ", i, 8), k.compare("LT", i + j, 10))


@pytest.mark.parametrize(("direction", "want", "otherwise"), [
    ("LT", (-3, 1), (2, 5)), ("LE", (-3, 2), (3, 5)), ("GT", (3, 5), (-3, 2)), ("GE", (2, 5), (-3, 1)), ("EQ", (2, 2), (-3, 5)),
    ("NE", (-3, 5), (2, 2))])
def test_what_a_comparison_implies(direction: str, want: tuple[int, int], otherwise: tuple[int, int]) -> None:
    holds = compare(direction)
    assert bounded(holds, own)[:2] == want and bounded(holds, own, False)[:2] == otherwise
    assert bounded(lambda k, i, j: k.unary("not", holds(k, i, j)), own)[:2] == otherwise
    assert bounded(lambda k, i, j: k.splat(holds(k, i, j), 4), own)[:2] == want


def test_what_conditions_imply() -> None:
    assert bounded(inside, own)[:2] == (0, 3) and bounded(inside, own, False)[:2] == (-3, 5)
    assert bounded(outside, own, False)[:2] == (0, 3) and bounded(outside, own)[:2] == (-3, 5)
    assert bounded(lambda k, i, j: k.compare("LT", i + j, 6), lambda k, i, j: i + j)[:2] == (-3, 5)
    assert bounded(lambda k, i, j: k.compare("LT", i + j, 6), lambda k, i, j: i * 2 + j * 2 + 1)[:2] == (-5, 11)
    assert bounded(fixed, own)[:2] == (-3, 1), "i is 8, so j is below 2"


def test_conditions_that_cannot_hold() -> None:
    k = KernelBuilder("k")
    ranges, _, j = ranges_of(k)
    below, above = facts(ranges, k.make("cmp.LT", (j, k.index(-2)), PRED), ()), facts(ranges, k.make("cmp.GT", (j, k.index(-3)), PRED), ())
    assert ranges.can_hold(below) and ranges.can_hold(above) and not ranges.can_hold([*below, *above])
    assert not ranges.can_hold(facts(ranges, k.make("cmp.LT", (j, k.index(-3)), PRED), ())) and ranges.can_hold(())
    register = k.reg(S64, 0)
    assert isinstance(register, Reg)
    assert facts(ranges, k.compare("LT", register.now + j, 2), ()) == [], "a register may change between the condition and its use"
    wraps = k.make("add", (k.variable("w", S32), k.const(1, S32)), S32)
    assert facts(ranges, k.make("cmp.LT", (wraps, k.const(5, S32)), PRED), ()) != []
    assert facts(ranges, k.variable("c", PRED), ()) == []


def test_a_quotient_and_its_remainder_are_a_whole() -> None:
    """i = 4 * (i // 4) + i % 4, whatever is known of the parts."""
    k = KernelBuilder("k")
    ranges = Ranges({})
    n = k.variable("n", S64)
    ranges.define(n, Range(0, 99))
    quotient = k.make("floordiv", (n, k.index(8)), S64)
    rest = k.make("floormod", (n, k.index(8)), S64)
    assert ranges.range(quotient) == Range(0, 12) and ranges.range(rest) == Range(0, 7)
    joined = LinearSum(((n, 1), (quotient, -8)), 0)
    assert ranges.of(joined, ())[:2] == (0, 7)
    known = facts(ranges, k.make("cmp.EQ", (rest, k.index(0)), PRED), ())
    assert ranges.of(joined, known)[:2] == (0, 0), "n is a multiple of 8"
    far = facts(ranges, k.make("cmp.LT", (n, k.index(20)), PRED), ())
    assert ranges.of(LinearSum(((quotient, 1),), 0), far)[:2] == (0, 2)
    assert ranges.of(LinearSum(((quotient, 8),), 5), far)[:2] == (5, 21)


def test_registers_have_the_ranges_that_are_given() -> None:
    k = KernelBuilder("k")
    register = k.reg(S64, 0)
    assert isinstance(register, Reg)
    value = register.now
    assert Ranges({register.register: Range(2, 8, 2)}).range(value + 1) == Range(3, 9, 2)
    assert Ranges({}).range(value) == Range(*FULL)


def test_shared_operands_are_examined_once() -> None:
    def found(steps: int, select: bool) -> None:
        k = KernelBuilder("k")
        ranges, i, j = ranges_of(k)
        x = i
        for n in range(steps):
            x = k.select(k.compare("LT", x, j), x, k.binary("min", x + 1, j * 3)) if select else k.binary("max", x * 2 - x + n, x + 1)
        ranges.range(x)

    for select in (False, True):
        assert calls_in(found, 40, select) < 6 * calls_in(found, 10, select)
