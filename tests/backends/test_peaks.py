"""Peaks of a machine: structure and units; no test depends on how fast this machine is."""
from __future__ import annotations

import pytest

from irscope.backends import llvm_compile
from irscope.backends.peaks import GHZ, LEVELS, MEMORY_GBS, measured_peak, table_peak
from irscope.source.budget import BudgetExceeded, limits

TRIPLE = "x86_64-unknown-linux-gnu"


@pytest.mark.parametrize(("cpu", "operations"), [("x86-64-v4", 64), ("x86-64-v3", 32), ("x86-64-v2", 8)])
def test_the_table_counts_operations_a_cycle(cpu: str, operations: int) -> None:
    """16, 8 and 4 lanes on two units; a fused multiply-add counts as two, and SSE has none."""
    one, four = (table_peak(llvm_compile.cross(TRIPLE, cpu), threads) for threads in (1, 4))
    assert one.gflops == operations * GHZ and four.gflops == 4 * one.gflops
    assert not one.is_measured and one.source.startswith("table of families") and f"{GHZ:g} GHz" in one.source


def test_levels_are_in_order_and_memory_is_last() -> None:
    for threads in (1, 3):
        peak = table_peak(llvm_compile.cross(TRIPLE, "x86-64-v4"), threads)
        sizes = [level.bytes for level in peak.levels]
        caches = [size for size in sizes[:-1] if size is not None]
        assert sizes[-1] is None and len(caches) == len(sizes) - 1 and caches == sorted(set(caches))
        assert [level.gbs for level in peak.levels] == sorted((level.gbs for level in peak.levels), reverse=True)
        assert peak.gbs(0) == peak.gbs(sizes[0] or 0) == peak.levels[0].gbs and peak.gbs((sizes[0] or 0) + 1) == peak.levels[1].gbs
        assert peak.gbs(1e12) == MEMORY_GBS * threads


def test_arm_has_fused_multiply_adds() -> None:
    assert table_peak(llvm_compile.cross("aarch64-linux-gnu"), 1).gflops == 4 * 2 * 2 * GHZ


def test_a_measured_peak_has_a_rate_for_each_level() -> None:
    peak = measured_peak(llvm_compile.host(), 2)
    assert peak.is_measured and peak.threads == 2 and peak.source.startswith("measured") and peak.gflops > 0
    assert [level.bytes for level in peak.levels] == [*(2 * size for size in LEVELS[:-1]), None] and all(level.gbs > 0 for level in peak.levels)


def test_measuring_stays_within_the_memory_limit() -> None:
    with pytest.raises(BudgetExceeded, match="bandwidth"), limits(memory="32MiB"):
        measured_peak(llvm_compile.host(), 1)
