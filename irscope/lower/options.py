"""What a caller may choose about code."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Options:
    """``lanes`` f32 a vector (0: as the machine has them), ``threads`` that may work.

    ``precision`` (exact, default, fast) says how near results are to the definition.
    """

    lanes: int = 0
    threads: int = 1
    precision: str = "default"

    def data(self) -> dict[str, Any]:
        """What kernels may depend on beside their problem."""
        return {"precision": self.precision}
