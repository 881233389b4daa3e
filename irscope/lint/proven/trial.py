"""One trial of a change: the changed program is brought through the policy's rewriting and planned again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from irscope.analysis.summary import describe_type
from irscope.analysis.values import size
from irscope.fusion import Plan, compiler_of, policy_for
from irscope.fusion.policy import FromSource
from irscope.graph import Graph, Module, Node
from irscope.lint.edits import Edit, built, edited, with_graphs
from irscope.lint.fusion import plans
from irscope.lint.machine import Machine
from irscope.lint.planned import Planned
from irscope.lint.proven.fix import Saving, TrialOutcome
from irscope.ops import hlo
from irscope.passes import pass_named

TIDIED: Mapping[str, tuple[str, ...]] = {
    "irscope": ("simplify-algebra", "share-equal", "simplify-algebra", "remove-dead"),
    "inductor": ("share-equal", "remove-dead"),
    "tvm": ("share-equal", "remove-dead"),
}
"""What compilers whose rewriting is no part of their policy do to a graph first, as passes of irscope: irscope's own compiler
(backends/model.py); AOTAutograd (``fx_graph_cse``); Relay's ``EliminateCommonSubexpr`` at the optimisation level 3 of ``relay.build``."""

Pair = tuple[Node, Node]


@dataclass(frozen=True, slots=True)
class TrialScope:
    """What is planned for a trial: nodes of one graph of a module and those whose values leave it. ``whole``: all of the module."""

    module: Module
    graph: Graph
    nodes: Sequence[Node]
    results: Sequence[Node]
    whole: bool

    @property
    def size(self) -> int:
        """How many operators one trial plans."""
        return sum(len(graph.nodes) for graph in self.module.graphs.values()) if self.whole else len(self.nodes)


@dataclass(frozen=True, slots=True)
class Standing:
    """The plan of a scope: for each edge, by the nodes of the module that its ends stand for, how it is fused, and
    the bytes that go through memory over it; the kernels, each by the operators that it computes; and the costs."""

    edges: Mapping[Pair, str]
    carried: Mapping[Pair, float]
    groups: Mapping[tuple[str, ...], int]
    kernels: float
    bytes: float
    us: float

    def less(self, after: Standing) -> Saving:
        """What a change saves, given the plan after it."""
        return Saving(self.kernels - after.kernels, self.bytes - after.bytes, round(self.us - after.us, 3))


def apply_edit(scope: TrialScope, edit: Edit | None) -> Module:
    """A copy of the module, or of the part of it in the scope, with an edit applied."""
    if scope.whole:
        return edited(scope.module, {scope.graph: edit})
    return with_graphs(scope.module, [built(scope.nodes, scope.results, edit, scope.graph.name)])


def plan_changed(module: Module, policy: str, device: str | None) -> list[Plan]:
    """The plans of a changed program, which the policy's compiler rewrites first, even where it would plan the text as it is."""
    chosen = policy_for(policy, module)
    if isinstance(chosen, FromSource):
        return chosen.plan_changed(module, device)
    for name in TIDIED.get(compiler_of(policy), ()):
        module = pass_named(name).run(module)
    return plans(module, policy, device)


def standing(planned: Planned, home: Mapping[Node, Graph], machine: Machine) -> Standing:
    """The edges and costs of a plan. ``home`` are the nodes of the module to which edges are traced."""
    edges: dict[Pair, str] = {}
    carried: dict[Pair, float] = {}
    for plan in planned.plans:
        for verdict in plan.verdicts:
            ends = origin_in(verdict.producer, home), origin_in(verdict.consumer, home)
            if ends[0] is None or ends[1] is None or hlo.opt_barrier in (verdict.producer.op, verdict.consumer.op):
                continue
            pair = ends[0], ends[1]
            edges[pair] = max(edges.get(pair, "all"), verdict.fused, key=("all", "some", "none").index)
            if verdict.fused != "all":
                carried[pair] = carried.get(pair, 0.0) + size(verdict.producer)
    groups = Counter(tuple(sorted(f"{node.op.name} {describe_type(node.type)}" for node in group.nodes))
                     for plan in planned.plans for group in plan.groups if not planned.starts_nothing(group))
    return Standing(edges, carried, groups, planned.launches, planned.traffic, planned.us(machine))


def origin_in(node: Node, home: Mapping[Node, Graph]) -> Node | None:
    """The node of the module that a node of a plan of it stands for, by its origins; None where there is none."""
    while node not in home:
        if not node.origin:
            return None
        node = node.origin[0]
    return node


def outcome_of(before: Standing, after: Standing, edge: Pair, changed: Collection[Node] = ()) -> TrialOutcome:
    """What a change makes of an edge, if the costs have fallen: it, or what took its place, is fused, or what goes through memory there is
    less than half; else why the change does not help. Kernels may start more often only if all that the edge carries is saved.

    What took its place are the edges between what stands for its ends; where nothing stands for the consumer any more, those to what
    replaced the other nodes that were ``changed``.
    """
    ends = set(edge)
    if changed and not any(edge[1] in pair for pair in after.edges):
        ends.update(changed)
    if before.groups == after.groups and (before.kernels, before.bytes) == (after.kernels, after.bytes):
        return TrialOutcome.UNDONE
    left = [pair for pair, fused in after.edges.items()
            if ends.issuperset(pair) and (fused == "none" or (fused == "some" and pair == edge))]
    carried = before.carried.get(edge, 0.0)
    shrinks = edge not in left and 2 * sum(after.carried[pair] for pair in left) <= carried
    if left and not shrinks:
        return TrialOutcome.REFUSED
    if after.bytes > before.bytes or after.us > before.us:
        return TrialOutcome.DEARER
    if after.kernels > before.kernels and before.bytes - after.bytes < max(carried, 1.0):
        return TrialOutcome.DEARER
    if after.kernels == before.kernels and after.bytes == before.bytes:
        return TrialOutcome.REFUSED
    return TrialOutcome.SMALLER if left else TrialOutcome.FUSED
