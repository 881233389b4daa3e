"""The result of comparing the results of two graphs."""
from __future__ import annotations

from dataclasses import dataclass

RTOL = 1e-4


@dataclass(frozen=True, slots=True)
class Verification:
    """How far the results of a graph are from those of the graph before.

    ``squared`` is the mean squared error over all results; ``largest`` is the largest error of the result that exhausts its tolerance most,
    relative to the largest value of that result. ``fault`` says why they cannot be compared, or which integers differ. They count as the
    same within ``rtol``; integers have to be equal unless a ``rtol`` larger than :data:`RTOL` was given. ``note`` states limits of the
    comparison.
    """

    squared: float = 0.0
    largest: float = 0.0
    fault: str = ""
    rtol: float = RTOL
    note: str = ""

    @property
    def same(self) -> bool:
        """Whether the results agree within ``rtol``."""
        return not self.fault and self.largest <= self.rtol

    def __str__(self) -> str:
        verdict = "the same" if self.same else "NOT the same"
        note = f"\nnote: {self.note}" if self.note else ""
        if self.fault:
            return f"verify: {self.fault}: {verdict}{note}"
        return f"verify: mean squared error {self.squared:.3g}, largest {self.largest:.3g} of the largest value: {verdict}{note}"
