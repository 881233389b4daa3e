"""Places in memory by hand: strides, spans, rooms of zeros, requested layouts; and expressions as text."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from irscope.graph.dtypes import BF16, F32, F64, PRED, S32, S64
from irscope.lower.build import KernelBuilder
from irscope.lower.printer import print_kernel
from irscope.lower.program import Slot
from irscope.lower.storage import LayoutConstraint, Storage
from irscope.lower.tile import Expr

SLOT = Slot("x", F32, 1000, "temp", 0)


def at(shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0, room: tuple[tuple[int, int], ...] = ()) -> Storage:
    return Storage(SLOT, F32, shape, strides, offset, room)


@pytest.mark.parametrize(("storage", "base", "span", "plain"), [
    (at((2, 3), (3, 1)), 0, 6, True), (at((2, 3), (1, 2)), 0, 6, False), (at((2, 3), (10, 1), 5), 5, 13, False), (at((2, 3), (3, -1), 2), 0, 6, False),
    (at((2, 3), (-3, -1), 9), 4, 6, False), (at((1, 3), (77, 1)), 0, 3, True), (at((3, 1), (1, 55), 4), 4, 3, True), (at((0, 3), (3, 1), 7), 7, 0, True),
    (at((), (), 3), 3, 1, True), (at((4,), (0,), 3), 3, 1, False),
])
def test_what_a_value_covers(storage: Storage, base: int, span: int, plain: bool) -> None:
    assert (storage.base, storage.span, storage.is_plain) == (base, span, plain)
    assert storage.lead == 0 and storage.span_with_room == span


def test_row_major_memory() -> None:
    found = Storage.plain(SLOT, F32, (2, 3, 4), 5)
    assert (found.strides, found.offset, found.elements, found.is_plain) == ((12, 4, 1), 5, 24, True)
    assert found.under(found.walk()) == found


def test_rooms_of_zeros() -> None:
    padded = at((4, 5), (8, 1), 18, ((2, 1), (2, 1)))
    assert padded.lead == 2 * 8 + 2 and padded.span == 3 * 8 + 5 and padded.span_with_room == (2 + 3 + 1) * 8 + (2 + 4 + 1) + 1
    assert at((0, 5), (8, 1), 18, ((2, 1), (2, 1))).span_with_room == 0 == at((0, 5), (8, 1), 18, ((2, 1), (2, 1))).lead


def test_the_same_place() -> None:
    one = at((1, 3), (7, 1), 2)
    assert one.is_same_place(at((1, 3), (9, 1), 2)) and not one.is_same_place(at((1, 3), (7, 2), 2))
    assert not one.is_same_place(at((1, 3), (7, 1), 3)) and not one.is_same_place(at((3,), (1,), 2))
    assert not one.is_same_place(Storage(Slot("y", F32, 1000, "temp", 0), F32, (1, 3), (7, 1), 2))


@pytest.mark.parametrize(("constraint", "shape", "want"), [
    (LayoutConstraint.dense((0, 1)), (2, 3), ((3, 1), 0, 6)), (LayoutConstraint.dense((1, 0)), (2, 3), ((1, 2), 0, 6)),
    (LayoutConstraint((0, 1), (1, 2), (0, 1)), (2, 3), ((6, 1), 8, 18)), (LayoutConstraint((1, 0), (1, 2), (0, 1)), (2, 3), ((1, 3), 7, 18)),
    (LayoutConstraint((0, 1), (0, 0), (0, 0), 16), (2, 3), ((16, 1), 0, 32)), (LayoutConstraint((0, 1), (0, 0), (0, 0), 16), (2, 16), ((16, 1), 0, 32)),
    (LayoutConstraint((0, 1, 2), (0, 0, 1), (0, 0, 0), 8), (2, 3, 8), ((48, 16, 1), 1, 96)), (LayoutConstraint((0, 1), (1, 1), (1, 1)), (0, 3), ((0, 0), 0, 0)),
])
def test_requested_layouts(constraint: LayoutConstraint, shape: tuple[int, ...], want: tuple[tuple[int, ...], int, int]) -> None:
    assert constraint.layout(shape) == want


def test_layouts_are_joined() -> None:
    a, b = LayoutConstraint((0, 1), (1, 0), (0, 3), 4), LayoutConstraint((0, 1), (0, 2), (1, 1), 8)
    assert a.join(b) == LayoutConstraint((0, 1), (1, 2), (1, 3), 8) == b.join(a) and a.join(LayoutConstraint.dense((1, 0))) is None
    assert a.has_halo and LayoutConstraint((0,), (1,), (0,)).has_halo and LayoutConstraint((0,), (0,), (1,)).has_halo
    assert not LayoutConstraint.dense((1, 0)).has_halo


@pytest.mark.parametrize(("build", "want"), [
    (lambda k, i, x: k.const(0.1, F32), "0.1"), (lambda k, i, x: k.const(3.0, F32), "3"), (lambda k, i, x: k.const(0.1, F64), "0.1"),
    (lambda k, i, x: k.const(1 / 3, F64), "0.3333333333333333"), (lambda k, i, x: k.const(1 / 3, F32), "0.33333334"), (lambda k, i, x: k.const(1e300, F32), "inf"),
    (lambda k, i, x: k.const(3.4028234663852886e38, F32), "3.4028235e+38"),
    (lambda k, i, x: k.const(-1e300, F64), "-1e+300"), (lambda k, i, x: k.const(-7, S32), "-7"), (lambda k, i, x: k.pred(True), "true"),
    (lambda k, i, x: k.vector([True, False], PRED), "<true, false>"), (lambda k, i, x: k.vector([1.5, 2], F32), "<1.5, 2>"), (lambda k, i, x: k.lane(4), "lane"),
    (lambda k, i, x: i * 4 + 1, "i*4 + 1"), (lambda k, i, x: (i + 1) * i, "i*(i + 1)"), (lambda k, i, x: i // 3 % 5, "i // 3 % 5"),
    (lambda k, i, x: k.binary("sub", x, k.binary("sub", x, 1.0)), "x - (x - 1)"), (lambda k, i, x: k.binary("sub", k.binary("sub", x, 1.0), x), "x - 1 - x"),
    (lambda k, i, x: k.binary("mul", k.binary("add", x, 1.0), x), "(x + 1) * x"), (lambda k, i, x: k.binary("add", k.binary("mul", x, x), 1.0), "x * x + 1"),
    (lambda k, i, x: k.binary("div", x, 2.0), "div(x, 2)"), (lambda k, i, x: k.compare("LT", x, 2.0), "x < 2"), (lambda k, i, x: k.splat(x, 4), "x"),
    (lambda k, i, x: k.binary("or", k.compare("EQ", i, 1), k.binary("and", k.compare("GT", i, 2), k.compare("NE", i, 5))), "i == 1 | i > 2 & i != 5"),
    (lambda k, i, x: k.binary("and", k.compare("EQ", i, 1), k.binary("or", k.compare("GE", i, 2), k.compare("LE", i, 5))), "i == 1 & (i >= 2 | i <= 5)"),
    (lambda k, i, x: k.binary("xor", k.variable("n", S32), k.variable("m", S32)), "n ^ m"),
    (lambda k, i, x: k.convert(x, S32), "s32(x)"), (lambda k, i, x: k.bitcast(x, S32), "bits.s32(x)"), (lambda k, i, x: k.convert(x, BF16), "bf16(x)"),
    (lambda k, i, x: k.unary("exp", k.unary("neg", x)), "exp(neg(x))"), (lambda k, i, x: k.fma(x, x, x), "fma(x, x, x)"),
    (lambda k, i, x: k.shuffle(k.variable("v", F32, 2), k.variable("w", F32, 2), [0, 3]), "shuffle(v, w, [0 3])"),
])
def test_expressions_as_text(build: Callable[[KernelBuilder, Expr, Expr], Expr], want: str) -> None:
    k = KernelBuilder("k", 4)
    k.let(build(k, k.variable("i", S64), k.variable("x", F32)))
    *before, line = print_kernel(k.kernel).splitlines()
    assert line.split(" = ", 1)[1] == want and len(before) == 1
