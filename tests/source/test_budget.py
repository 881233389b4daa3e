"""Budgets: what they count, what they say, and that none outlives its block."""
from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import repeat
from mmap import mmap

import pytest

import irscope
from irscope.source import UserError
from irscope.source.budget import Budget, BudgetExceeded, Limits, budget, concerning, current, fresh_budget, limits, require, tick


def spin(seconds: float = 30.0) -> None:
    """Work that asks, and would take far longer than any limit of these tests."""
    import time

    end = time.thread_time() + seconds
    while time.thread_time() < end:
        tick()


def test_without_a_budget_nothing_is_limited() -> None:
    assert current() is None
    tick(1 << 40)
    require(1 << 60, "an array")


def test_time_that_is_spent_is_told_with_the_file_and_the_limit() -> None:
    with pytest.raises(BudgetExceeded, match=r"^model\.hlo takes more than 0\.01 s of processor time$") as told, limits(seconds=0.01):
        concerning("model.hlo")
        spin()
    assert "--limit-time" in told.value.help and isinstance(told.value, UserError)
    assert current() is None


def test_an_allocation_that_is_too_large_is_refused_before_it_is_made() -> None:
    with limits(memory="64MiB"):
        require(1 << 20, "small")
        with pytest.raises(BudgetExceeded, match=r"this takes more than 64 MiB of memory: %x has 1 TiB"):
            require(1 << 40, "%x")
        tick(1 << 20)  # asking spends nothing


def test_memory_that_the_process_holds_counts() -> None:
    held = []
    with pytest.raises(BudgetExceeded, match="more than 8 MiB of memory"), limits(memory="8MiB"):
        for _ in range(64):
            held.append(mmap(-1, 1 << 20))  # memory of its own: the process may hold enough that is free
            held[-1].write(b"x" * (1 << 20))
            tick(2048)


def test_a_spent_budget_stays_spent() -> None:
    def caught(work: Callable[[], None]) -> int:
        count = 0
        for _ in repeat(None, 3):
            try:
                work()
            except UserError:
                count += 1
        return count
    with pytest.raises(BudgetExceeded), limits(seconds=0.01):
        assert caught(spin) == 3
        assert caught(tick) == 3


def test_code_that_catches_everything_does_not_hide_it() -> None:
    with pytest.raises(BudgetExceeded), limits(seconds=0.01):
        try:
            spin()
        except Exception:
            pass


def test_the_innermost_budget_counts() -> None:
    with limits(seconds=3600) as outer:
        with pytest.raises(BudgetExceeded), limits(seconds=0.01):
            spin()
        assert current() is outer
        tick(1 << 20)


def test_the_next_file_begins_anew() -> None:
    with budget(Limits(0.01, None)):
        with pytest.raises(BudgetExceeded, match=r"^a takes"), fresh_budget("a"):
            spin()
        with fresh_budget("b"):
            tick()
        with pytest.raises(BudgetExceeded, match=r"^b takes"), fresh_budget("b"):
            spin()


def test_another_thread_has_no_part_in_it() -> None:
    seen: list[Budget | None] = []
    with limits(seconds=1):
        thread = threading.Thread(target=lambda: seen.append(current()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_a_size_that_is_none_is_told() -> None:
    with pytest.raises(UserError, match="is not a size"), limits(memory="much"):
        pass


def test_the_api_has_limits() -> None:
    text = "HloModule m\nENTRY e {\n  x0 = f32[2] parameter(0)\n" + "".join(
        f"  x{n} = f32[2] negate(x{n - 1})\n" for n in range(1, 20_000)) + "  ROOT y = f32[2] negate(x19999)\n}\n"
    with pytest.raises(irscope.BudgetExceeded, match=r"long\.hlo takes more than 0\.001 s"), irscope.limits(seconds=0.001):
        irscope.load(text, name="long.hlo")
    with irscope.limits(seconds=60):
        assert len(irscope.load(text).module().main().nodes) == 20_001
