"""Durations as XLA's cost models store them: in quarters of a nanosecond, divided in 32-bit floats (``absl::Duration``)."""
from __future__ import annotations

from ctypes import c_float
from functools import lru_cache

TICKS = 4e9
"""Quarters of a nanosecond in a second."""


LONGEST = 2.0 ** 63 * 1e9
"""Nanoseconds that ``absl::Duration`` holds; what takes longer is taken for this long."""


def single(value: float) -> float:
    """The nearest 32-bit float."""
    return c_float(value).value


def ticks(nanoseconds: float) -> float:
    """Nanoseconds as XLA stores them. XLA divides by the ticks of a second and multiplies again, which sometimes rounds differently."""
    return int(min(nanoseconds, LONGEST) * 4 / TICKS * TICKS + 0.5) / 4


@lru_cache(1 << 16)
def duration(bytes_: float, bandwidth: float) -> float:
    """Nanoseconds to move bytes at a bandwidth in bytes a second."""
    return int(min(single(single(bytes_) / single(bandwidth)), LONGEST / 1e9) * TICKS + 0.5) / 4 if bytes_ else 0.0
