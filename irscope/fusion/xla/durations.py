"""Durations as XLA's cost models keep them: in quarters of a nanosecond, divided in numbers of 32 bits (``absl::Duration``)."""
from __future__ import annotations

from ctypes import c_float

TICKS = 4e9
"""Quarters of a nanosecond in a second."""


def single(value: float) -> float:
    """The nearest number of 32 bits."""
    return c_float(value).value


def ticks(nanoseconds: float) -> float:
    """Nanoseconds as XLA keeps them. It divides by the ticks of a second and multiplies again, and at times rounds otherwise for it."""
    return int(nanoseconds * 4 / TICKS * TICKS + 0.5) / 4


def duration(bytes_: float, bandwidth: float) -> float:
    """Nanoseconds that bytes take at so many bytes a second."""
    return int(single(single(bytes_) / single(bandwidth)) * TICKS + 0.5) / 4 if bytes_ else 0.0
