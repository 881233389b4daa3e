"""Measures the work of a function for tests of how it grows: by its calls, or by a limit on its CPU time."""
from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import ParamSpec

P = ParamSpec("P")


def calls_in(work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> int:
    """The number of Python and C functions that a call of ``work`` calls: the same on every machine, whatever else runs on it."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work(*args, **kwargs)
    finally:
        sys.setprofile(before)
    return calls


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Assert that the block takes less CPU time, for work inside one C call, such as backtracking.

    The limit is many times what the block needs and a small part of what the fault took. The garbage collector is off: a full collection of
    all objects of a test run takes a second.
    """
    was_on = gc.isenabled()
    gc.disable()
    began = time.process_time()
    try:
        yield
        assert time.process_time() - began < seconds
    finally:
        if was_on:
            gc.enable()
