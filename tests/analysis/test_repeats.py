"""Stretches that stand several times in a row."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.repeats import repeats


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


def test_a_long_sequence_takes_no_time() -> None:
    layer = list(range(60))
    found = repeats([7] + layer * 2000)
    assert [(f.period, f.times) for f in found] == [(60, 2000)]
