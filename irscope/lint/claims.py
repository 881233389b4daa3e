"""What a change of the graph would bring: it is made on a copy, the copy is planned again, and the difference is counted."""

from __future__ import annotations

from dataclasses import dataclass

from irscope.fusion import Plan, policy_named
from irscope.graph import bytes_of, rewrite
from irscope.graph.rewrite import Rule as Change
from irscope.lint.savings import saving


@dataclass(frozen=True, slots=True)
class Claim:
    """Kernels and bytes of traffic that fall away (negative: that are added) when a change is made."""

    kernels: int
    bytes: int

    @property
    def holds(self) -> bool:
        """Whether the change brings something and costs nothing."""
        return self.kernels >= 0 and self.bytes >= 0 and (self.kernels > 0 or self.bytes > 0)

    @property
    def saves(self) -> dict[str, float]:
        """The claim as a finding's ``saves``."""
        return saving(bytes=float(self.bytes), kernels=float(self.kernels))


def claim(before: Plan, change: Change, policy: str = "irscope") -> Claim:
    """What ``change`` brings under a policy for primitive graphs.

    The change is a rule of :func:`irscope.graph.rewrite`; an operand or a result is counted once for each kernel that reads or writes it.
    """
    after = policy_named(policy).plan(rewrite(before.graph, change))
    return Claim(before.kernels() - after.kernels(), traffic(before) - traffic(after))


def traffic(plan: Plan) -> int:
    """Bytes that the kernels of a plan read and write."""
    return sum(bytes_of(n.type) for group in plan.groups for n in (*dict.fromkeys(group.inputs), *group.outputs))
