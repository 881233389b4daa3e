"""The answer to "what would have this edge fused": a fix that was planned, or what was tried in vain."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class TrialOutcome(Enum):
    """What a change makes of an edge; the value says so in words."""

    FUSED = "the edge, or what took its place, is fused"
    SMALLER = "what took the place of the edge carries less than half of its bytes"
    UNDONE = "the compiler rewrites the changed program into the same kernels"
    REFUSED = "the edge is refused all the same"
    DEARER = "the kernels start more often or move more bytes"
    NOT_REFUSED = "rewritten from its source once more, the program has no such refusal"
    UNPLANNED = "the changed program cannot be planned"


@dataclass(frozen=True, slots=True)
class Saving:
    """What one run has less of: kernels, bytes through memory, estimated microseconds (negative: more)."""

    kernels: float
    bytes: float
    us: float


@dataclass(frozen=True, slots=True)
class ProvenFix:
    """A change of the program after which the policy fuses the edge, and starts fewer kernels or moves fewer bytes.

    ``key`` names the candidate. ``how`` says what to change in the terms of the framework, ``before`` and ``after`` are the operators that
    the change replaces and those in their place, as lines. ``places`` are the lines of the user's program that they come from.
    ``gained`` and ``lost`` are other edges, by the names of the text, that are fused now, or no longer. ``nodes`` is the number of
    operators that were planned: all of the program, or those around the edge (``is_whole`` tells which). ``flag`` is an option of the
    compiler, where the change is one. ``outcome``: whether the edge is fused, or a smaller one took its place.
    """

    key: str
    how: str
    saves: Saving
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    gained: tuple[tuple[str, str], ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    nodes: int = 0
    is_whole: bool = True
    flag: str = ""
    outcome: TrialOutcome = TrialOutcome.FUSED


@dataclass(frozen=True, slots=True)
class Attempt:
    """A candidate that was planned in vain: its key, its name in a sentence, and what became of it."""

    key: str
    name: str
    outcome: TrialOutcome


@dataclass(frozen=True, slots=True)
class FixAnswer:
    """What irscope found out about one refused edge: ``fix``, or the ``attempts`` that failed before.

    ``untried`` names the candidates that the budget left out. ``why_not`` says why nothing was tried at all; empty otherwise. ``behind``:
    without a fix, the library call or the option of the compiler that the refusal comes from.
    """

    fix: ProvenFix | None = None
    attempts: tuple[Attempt, ...] = ()
    untried: tuple[str, ...] = ()
    why_not: str = ""
    behind: str = ""
    compiler: str = field(default="the compiler")
