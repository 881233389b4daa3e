"""The collector is paused while something is built, and no garbage stays for ever."""
from __future__ import annotations

import gc
from typing import Any

import pytest

from irscope.graph import collector
from irscope.graph.collector import collector_paused


def build(n: int) -> list[Any]:
    """Objects of which each holds itself: only the collector frees them."""
    made: list[Any] = []
    for _ in range(n):
        one: list[Any] = []
        one.append(one)
        made.append(one)
    return made


def test_the_collector_is_off_inside_and_as_it_was_outside() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_of_many_pauses_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "PENDING", 20_000)
    monkeypatch.setattr(collector, "SHARE", 0.0)
    collector._count.start()
    most = 0
    for _ in range(12):
        with collector_paused():
            build(5_000)
        most = max(most, len(gc.get_objects()) - collector._count.kept)
    assert most < 40_000


def test_a_graph_that_is_kept_is_not_looked_through_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "PENDING", 1_000)
    collector._count.start()
    monkeypatch.setattr(collector, "SHARE", 40_000 / collector._count.kept)  # whatever else this process holds
    with collector_paused():
        kept = build(50_000)
    before = gc.get_stats()[2]["collections"]
    for _ in range(20):
        with collector_paused():
            build(100)
    assert gc.get_stats()[2]["collections"] - before == 1 and len(kept) == 50_000
