"""Stretches that stand several times in a row."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.repeats import is_layered, repeats


@given(st.lists(st.integers(0, 3), max_size=80))
def test_what_is_called_a_repeat_is_one(sequence: list[int]) -> None:
    end = 0
    for found in repeats(sequence):
        assert found.begin >= end
        end = found.end
        assert end <= len(sequence)
        unit = sequence[found.begin:found.begin + found.period]
        assert sequence[found.begin:found.end] == unit * found.times


@given(st.lists(st.integers(0, 50), min_size=5, max_size=12, unique=True), st.integers(3, 9), st.integers(0, 3))
def test_planted_layers_are_found(unit: list[int], times: int, noise: int) -> None:
    before = list(range(100, 100 + noise))
    found = repeats(before + unit * times + before)
    assert [(f.begin, f.period, f.times) for f in found] == [(noise, len(unit), times)]


@pytest.mark.parametrize(("sequence", "wanted"), [
    ([1, 2, 3, 4] * 9 + [50, 51] + [5, 6, 7, 8, 9] * 3, [(0, 4, 9), (38, 5, 3)]),
    ([5, 6, 7, 8, 9] * 3 + [50, 51] + [1, 2, 3, 4] * 9, [(0, 5, 3), (17, 4, 9)]),
    ([5, 6, 7, 8, 9] * 3 + [1, 2, 3, 4] * 9 + [50] + [11, 12, 13, 14, 15, 16] * 3, [(0, 5, 3), (15, 4, 9), (52, 6, 3)]),
    ([1, 2, 3, 4] * 4 + [50] + [5, 6, 7, 8, 9] * 3 + [51] + [1, 2, 3, 4] * 5, [(0, 4, 4), (17, 5, 3), (33, 4, 5)]),
], ids=["a shorter one after", "before", "on both sides", "between two of the same"])
def test_several_stretches_with_different_periods(sequence: list[int], wanted: list[tuple[int, int, int]]) -> None:
    assert [(f.begin, f.period, f.times) for f in repeats(sequence)] == wanted


@pytest.mark.parametrize(("period", "times", "counts"), [
    (1, 7, False), (1, 8, True), (3, 7, False), (3, 8, True), (4, 2, False), (4, 3, True), (15, 2, False), (16, 2, True),
])
def test_short_stretches_repeat_by_chance(period: int, times: int, counts: bool) -> None:
    found = repeats([90, *list(range(period)) * times, 91])
    assert [(f.begin, f.period, f.times) for f in found] == [(1, period, times)] * counts


def test_a_long_sequence_takes_no_time() -> None:
    layer = list(range(60))
    found = repeats([7] + layer * 2000)
    assert [(f.period, f.times) for f in found] == [(60, 2000)]


@pytest.mark.parametrize(("period", "times", "layered"), [
    (2, 3, True), (2, 2, False), (1, 3, False), (1, 7, False), (1, 8, True), (7, 2, False), (8, 2, True), (3, 2, False), (8, 1, True),
])
def test_layers_of_contractions(period: int, times: int, layered: bool) -> None:
    assert is_layered(0, period, times) is layered
