"""The candidates for a fix: for each reason of a refusal, the changes that may help, the smallest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from irscope.lint.edits import Edit
from irscope.lint.proven.changes import barriers, duplicates
from irscope.lint.proven.site import RefusedEdge

EVERY = "*"
"""Stands for all rules of a policy."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that may have an edge fused.

    ``name`` is a noun phrase for a sentence ("tried: ..."), ``how`` the instruction in the terms of each framework (``jax``, ``torch``,
    ``relay``; "" for all others), with ``{p}`` and ``{c}`` for the two ends. ``change`` returns the edit, or None where it does not apply.
    ``rules`` are the reasons of refusal that it may remove, by compiler or for all.
    """

    key: str
    name: str
    how: Mapping[str, str]
    change: Callable[[RefusedEdge], Edit | None]
    rules: Mapping[str, tuple[str, ...]]

    def answers(self, compiler: str, rule: str) -> bool:
        """Whether the candidate is for this reason of refusal."""
        wanted = (*self.rules.get(compiler, ()), *self.rules.get(EVERY, ()))
        return rule in wanted or EVERY in wanted


TABLE: tuple[Candidate, ...] = (
    Candidate(
        "remove-barrier", "no optimisation barrier between them",
        {"jax": "remove the jax.lax.optimization_barrier between {p} and {c}", "": "remove the barrier between {p} and {c}"},
        barriers.without_barrier, {EVERY: (EVERY,)}),
    Candidate(
        "duplicate", "a second computation of the producer",
        {"": "compute {p} a second time for {c}"},
        duplicates.duplicate,
        {"xla-cpu": ("can-not-duplicate", "expensive-twice", "root"), "xla-gpu": ("slower", "only-bitcast-users", "root"),
         "tvm": ("multi-consumer", "output", "path"), "inductor": (EVERY,), "irscope": (EVERY,)}),
    Candidate(
        "duplicate-behind-barrier", "a second computation of the producer behind an optimisation barrier",
        {"jax": "compute {p} a second time for {c}, from operands that jax.lax.optimization_barrier returns (or under jax.checkpoint)",
         "": "compute {p} a second time for {c}, from operands behind an optimization barrier"},
        duplicates.duplicate_behind_barrier,
        {"xla-cpu": ("can-not-duplicate", "expensive-twice", "root"), "xla-gpu": ("slower", "root")}),
)
"""In the order in which they are tried."""


def candidates_for(edge: RefusedEdge) -> Iterator[tuple[Candidate, Edit]]:
    """The candidates that apply to an edge, with their edits."""
    for candidate in TABLE:
        if candidate.answers(edge.compiler, edge.rule):
            edit = candidate.change(edge)
            if edit is not None:
                yield candidate, edit
