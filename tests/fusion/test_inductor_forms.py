"""Index forms: arithmetic on them is arithmetic on the numbers that they stand for."""
from __future__ import annotations

from itertools import product
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from irscope.fusion.inductor.forms import (
    Digit,
    Form,
    at,
    coordinates,
    digit_of,
    divided,
    replaced,
    span,
    steps,
    unflattened,
    variable,
    variables_of,
    weighted,
)
from irscope.fusion.inductor.loops import access, nest_of, picked_order
from irscope.fusion.views import row_major


def flat(shape: tuple[int, ...]) -> Form:
    return weighted(coordinates(shape), row_major(shape))


def test_a_reshape_there_and_back_is_nothing() -> None:
    where = coordinates((4, 6))
    there = unflattened(flat((4, 6)), (2, 12))
    back = unflattened(weighted(there, row_major((2, 12))), (4, 6))
    assert back == where


def test_digits_that_stand_together_are_one() -> None:
    low, high = Form(0, ((Digit(0, 1, 4), 1),)), Form(0, ((Digit(0, 4, 3), 1),))
    assert weighted((low, high), (1, 4)) == variable(0, 12)


@given(st.lists(st.integers(1, 6), min_size=1, max_size=3), st.integers(1, 7), st.integers(0, 5))
def test_quotient_and_remainder_are_those_of_the_numbers(shape: list[int], divisor: int, offset: int) -> None:
    sizes = tuple(shape)
    form = weighted((flat(sizes),), (1,), offset)
    quotient, rest = divided(form, divisor)
    for point in product(*(range(s) for s in sizes)):
        assert (at(quotient, point), at(rest, point)) == divmod(at(form, point), divisor)
        assert span(form)[0] <= at(form, point) <= span(form)[1]


@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 4))
def test_any_reshape_keeps_the_place_in_memory(left: list[int], right: list[int], low: int) -> None:
    count = prod(left) * prod(right)
    old, new = (*left, prod(right)), (prod(left), *right)
    forms = unflattened(flat(new), old)
    for number, point in enumerate(product(*(range(s) for s in new))):
        assert at(weighted(forms, row_major(old)), point) == number
        assert at(digit_of(flat(new), low, 3), point) == number // low % 3
    assert count == prod(new)


def test_variables_are_replaced_by_what_they_stand_for() -> None:
    swapped = replaced(flat((3, 5)), (variable(1, 3), variable(0, 5)))
    assert at(swapped, (4, 2)) == 2 * 5 + 4
    assert variables_of(swapped) == {0, 1}
    assert steps(swapped, (0, 1), 2) == [1, 5]


def test_loops_join_where_every_access_lets_them() -> None:
    rows = flat((4, 6))
    assert nest_of((4, 6), (), (rows, rows)).iterated == (24,)
    turned = weighted(coordinates((4, 6)), (1, 4))
    assert nest_of((4, 6), (), (rows, turned)).iterated == (4, 6)
    assert nest_of((4, 6), (), (rows,), also=(turned,)).iterated == (4, 6)


def test_loops_run_in_the_order_of_the_memory() -> None:
    turned = weighted(coordinates((4, 6)), (1, 4))
    assert nest_of((4, 6), (), (turned, turned)).iterated == (24,)
    assert picked_order([[1, 4]], [4, 6]) == [0, 1] and picked_order([[6, 1]], [4, 6]) == [1, 0]


def test_reduced_loops_stay_innermost() -> None:
    whole, part = flat((4, 6, 5)), weighted(coordinates((4, 6, 5)), (6, 1, 0))
    nest = nest_of((4, 6), (5,), (part, whole))
    assert (nest.iterated, nest.reduced) == ((24,), (5,))


def test_an_access_forgets_loops_that_it_does_not_need() -> None:
    row = weighted(coordinates((4, 6)), (1, 0))
    assert access("b", row, (4, 6), {}) == access("b", variable(0, 4), (4,), {})
    assert access("b", flat((4, 6)), (4, 6), {}).sizes == (24,)
    assert access("b", flat((4, 6)), (4, 6), {}, merge=False).sizes == (4, 6)
    assert access("b", row, (4, 6), {}).elements == 4
