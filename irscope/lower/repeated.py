"""Finds kernels that recompute values: compares their operations with those of their nodes (:mod:`irscope.lower.work` counts both)."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Module
from irscope.lower.kernels import names_of
from irscope.lower.lowering import Lowering
from irscope.lower.options import Options
from irscope.lower.work import SMALL, has_open_loops, operations, operations_of, padding

MOST_REPEATED = 4.0
"""A kernel does at most this many times the operations of its nodes: masked lanes, tails, cheap values that are recomputed."""

EXCEPTIONS: dict[str, tuple[float, str]] = {
    "topk": (16.0, "each element is compared with those that are kept so far"),
    "bitcast-convert": (8.0, "an element that several narrower ones make up is shifted together of them"),
    "rng-bit-generator": (256.0, "a random number counts as one operation, and takes the rounds of its algorithm"),
}
"""Operators whose kernels may do more, by the name of the anchor: how many times, and why. :func:`irscope.lower.work.padding` is counted
apart, and kernels of fewer than :data:`irscope.lower.work.SMALL` operations may do what they like."""


@dataclass(frozen=True, slots=True)
class GroupWork:
    """The kernels (one, or several in sequence) of one group: the operations that they do, and those that the group's nodes take, including
    lanes that its vectors cannot fill.

    ``anchor`` is the operator that determines the loops (``map`` without one), ``template`` emitted them,
    ``nodes`` the user's nodes, ``open`` whether the end of a loop depends on data.
    """

    kernel: str
    anchor: str
    template: str
    nodes: tuple[str, ...]
    done: float
    needed: float
    open: bool

    @property
    def ratio(self) -> float:
        """How often each operation is executed, on average."""
        return self.done / max(1.0, self.needed)

    @property
    def is_repeated(self) -> bool:
        """Whether values are recomputed that could be computed once."""
        most, _ = EXCEPTIONS.get(self.anchor, (MOST_REPEATED, ""))
        return not self.open and self.done > SMALL and self.done > most * self.needed


def work_of(module: Module, options: Options | None = None) -> list[GroupWork]:
    """The work of every kernel of a primitive module, each once. Raises UserError for an operator that cannot run here."""
    lowering = Lowering(module, options or Options())
    lowering.run()
    found = []
    for problem, built in lowering.kernel_cache.built.values():
        kernels = [stage.kernel for stage in built.stages]
        anchor = problem.group.anchor.op.name if problem.group.anchor is not None else "map"
        template = next((k.schedule["template"] for k in kernels if "template" in k.schedule), "")
        found.append(GroupWork(problem.name, anchor, template, names_of(problem.group), sum(map(operations, kernels)),
                          operations_of(problem.group) * padding(problem), any(map(has_open_loops, kernels))))
    return found
