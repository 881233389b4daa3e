"""The stages of a compilation: the figures of a module at each of them, and what changed since the one before."""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from irscope.analysis.survey import Survey


@dataclass(slots=True)
class Figures:
    """The figures of one stage of a module: ``flops`` and ``bytes`` of traffic are of one run. ``error`` says why there are none."""

    nodes: int = 0
    kernels: float = 0.0
    fusions: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    ops: Counter[str] = field(default_factory=Counter)
    error: str = ""

    @staticmethod
    def of(survey: Survey) -> Figures:
        """The figures of a module."""
        totals = survey.totals
        return Figures(survey.n_nodes, totals.kernels, totals.fusions, totals.flops, totals.bytes, survey.ops)

    def key(self) -> tuple[object, ...]:
        """Equal for copies of one module, as the ranks of a job write them."""
        return self.nodes, self.kernels, self.flops, self.bytes, tuple(sorted(self.ops.items()))


@dataclass(frozen=True, slots=True)
class StageChange:
    """One stage of a compilation, named by ``words``, and the operators that came and went since the stage before."""

    words: str
    figures: Figures
    came: Counter[str] = field(default_factory=Counter)
    went: Counter[str] = field(default_factory=Counter)
