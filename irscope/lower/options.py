"""What a caller may choose about code."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Options:
    """``lanes`` f32 a vector (0: as the machine has them), ``threads`` that may work.

    ``precision`` (exact, default, fast) says how near results are to the definition. ``apart`` is for tests that look for stray stores:
    no two temporaries share memory, and so many bytes around each belong to none (0: temporaries share what they can).
    """

    lanes: int = 0
    threads: int = 1
    precision: str = "default"
    apart: int = 0

    def data(self) -> dict[str, Any]:
        """What kernels may depend on beside their problem."""
        return {"precision": self.precision}
