"""Timing of calls."""
from __future__ import annotations

import time
from collections.abc import Callable

from irscope.api.options import RunOptions


def timed(options: RunOptions, call: Callable[[], object]) -> list[float]:
    """Microseconds of each sample; runs that are too short for the clock are timed several at once."""
    clock = time.perf_counter
    for _ in range(options.warmup):
        call()
    began = clock()
    call()
    once = max(clock() - began, 1e-7)
    inner = max(1, min(1000, int(2e-5 / once))) if options.runs is None else 1
    samples: list[float] = []
    end = clock() + options.bench_seconds
    while len(samples) < options.runs if options.runs is not None else (clock() < end or not samples):
        began = clock()
        for _ in range(inner):
            call()
        samples.append((clock() - began) / inner * 1e6)
    return samples
