"""Elementary functions."""
from __future__ import annotations

from irscope.backends.llvm_lanes import Lanes


def scale(v: Lanes, x: str, n: str) -> str:
    """``x * 2**n``."""
    raise ValueError


def word(v: Lanes, op: str, names: list[str], precision: str) -> str:
    raise ValueError(op)
