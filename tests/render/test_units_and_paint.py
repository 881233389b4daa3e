"""Numbers, cut texts and bars."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.render.paint import Paint
from irscope.render.units import bytes_, cell, count, flops, percent, plural, short


@pytest.mark.parametrize(("said", "text"), [
    (count(15740), "15,740"), (count(15_740_000), "15.7 M"), (cell(999_999), "999,999"), (cell(1_000_124), "1 M"), (bytes_(0), "0 B"),
    (bytes_(1536), "1.5 KiB"), (bytes_(1048575), "1 MiB"), (flops(4.1e9), "4.1 GFLOP"), (flops(3), "3 FLOP"), (percent(0.004), "0.4 %"),
    (percent(0.0), "0 %"), (percent(1.0), "100 %"), (plural(1, "kernel"), "1 kernel"), (plural(2, "branch", "branches"), "2 branches"),
])
def test_numbers_read_well(said: str, text: str) -> None:
    assert said == text


@given(st.text(max_size=60), st.integers(1, 50))
def test_cut_texts_fit_and_keep_their_ends(text: str, width: int) -> None:
    cut = short(text, width)
    assert len(cut) <= width
    assert cut == text or len(text) > width


@given(st.floats(0, 1), st.integers(1, 30), st.booleans())
def test_bars_have_their_width(share: float, width: int, unicode: bool) -> None:
    assert len(Paint(80, False, unicode).bar(share, width)) == width


@given(st.integers(0, 10**18))
def test_bytes_never_get_long(n: int) -> None:
    assert len(bytes_(n)) <= 8


def test_what_is_not_known_is_no_zero() -> None:
    assert [flops(0), flops(0, True), flops(4.1e9, True)] == ["0 FLOP", "?", "4.1 GFLOP+"]
    assert [bytes_(0), bytes_(0, True), bytes_(1.5 * 2**20, True)] == ["0 B", "?", "1.5 MiB+"]
