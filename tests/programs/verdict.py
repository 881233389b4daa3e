"""What came of one random program."""
from __future__ import annotations

from dataclasses import dataclass

PASSED = ("same", "refused", "invalid", "left-out")
"""Verdicts that are no failure: the summary counts what is refused, by irscope or by the peer, or left out."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``kind``: ``same``; ``refused`` (irscope says that it does not run); from the oracle ``invalid`` (the peer refuses it) and ``left-out``
    (the peer departs from the definition there); or a failure.

    Failures: ``differs`` from the reference or the oracle, ``range`` (beyond what the generator knows of a result), ``threads`` (one and two threads differ), ``again`` (two runs differ), ``raised``,
    ``slow`` (more CPU time than the limit), ``died``. ``key`` tells failures apart while a program is made smaller.
    """

    kind: str
    detail: str = ""
    key: str = ""
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return self.kind not in PASSED

    def like(self, other: Verdict) -> bool:
        """Whether both are the same failure."""
        return (self.kind, self.key) == (other.kind, other.key)
