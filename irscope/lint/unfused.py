"""The edges that a fusion policy does not fuse, for rules that report its refusals."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from irscope.analysis.values import is_annotation, size, written
from irscope.fusion import EdgeVerdict
from irscope.graph import Graph, Node
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.fusion import furthest_apart
from irscope.lint.proven.words import sentence
from irscope.lint.rule import Rule
from irscope.lint.savings import human_bytes, saving
from irscope.ops import hlo
from irscope.source import Note

LISTED = 3
"""Readers of one value that are named."""


@dataclass(frozen=True, slots=True)
class UnfusedEdge:
    """An edge of the module that goes through memory, with the verdict on it; ``graph`` is that of the consumer.

    ``in_one_kernel``: one kernel runs the loops of both, one after the other.
    """

    producer: Node
    consumer: Node
    graph: Graph
    verdict: EdgeVerdict
    in_one_kernel: bool = False

    @property
    def why(self) -> str:
        """The compiler's message, or the root cause if it has none."""
        return self.verdict.reason or self.verdict.cause

    @property
    def numbers(self) -> str:
        """The numbers that the policy compared, as ``emitted 16 > 15``; empty if it compared none."""
        before, bracket, rest = self.verdict.cause.rpartition(" (")
        return rest.rstrip(")") if bracket and before else ""

    @property
    def saves(self) -> dict[str, float]:
        """What fusing would save: one write and one read of the value, and one kernel unless it is the same one."""
        return saving(bytes=2.0 * size(self.producer), kernels=0.0 if self.in_one_kernel else 1.0)


def unfused_edges(context: Context, rules: Collection[str] = ()) -> Iterator[UnfusedEdge]:
    """The edges that are not fused, in the order of the text; only those that one of ``rules`` decided (empty: all)."""
    if context.costs.decided is None:
        return
    (judged, plans), kernels = context.costs.decided, context.costs.planned
    text = context.costs.text.view if context.costs.text is not None else None
    apart = [verdict for plan in plans for verdict in plan.unfused()]
    if text is not None and judged is not text.module:
        apart = list(furthest_apart(apart).values())
    planned = {graph for plan in plans for graph in (plan.graph, *(b for n in plan.graph.nodes if n.op is hlo.fusion for b in n.bodies))}
    for verdict in apart:
        if rules and verdict.rule not in rules:
            continue
        # The compiler may have rewritten the graph first: what the text does not have is no place for a finding.
        find = context.view.original if verdict.graph in planned else context.view.in_text
        ends = find(verdict.producer, verdict.graph), find(verdict.consumer, verdict.graph)
        if text is not None and verdict.producer in text.graph_of and verdict.consumer in text.graph_of:
            ends = context.view.between(verdict.producer, verdict.consumer) or ends
        producer, consumer = ends
        if producer is None or consumer is None or written(producer) is written(consumer):
            continue  # the user cannot change edges between the primitives of one operator of the text
        if not (is_annotation(producer) or is_annotation(consumer)):
            together = kernels is not None and kernels.in_one_call(verdict.producer, verdict.consumer)
            yield UnfusedEdge(producer, consumer, context.view.graph_of[consumer], verdict, together)


def proven_help(context: Context, edge: UnfusedEdge) -> str:
    """The change of the program that has an edge fused, as ``--why-not-fused`` gives it; empty where none was proven.

    Findings leave half of the budget of all trials to the edges that are requested.
    """
    engine = context.costs.engine
    answer = engine.answer(edge.verdict, reserve=0.5) if engine is not None else None
    return sentence(answer) if answer is not None and answer.fix is not None else ""


def findings_by_producer(context: Context, rule: Rule, rules: Collection[str], say: str) -> Iterator[RuleFinding]:
    """A finding for each value that certain rules of the policy do not fuse into its users.

    ``say`` is the message after the value's name; ``{consumer}`` and ``{op}`` are replaced by its first user.
    """
    found: dict[Node, list[UnfusedEdge]] = {}
    for edge in unfused_edges(context, rules):
        found.setdefault(edge.producer, []).append(edge)
    for producer, edges in found.items():
        first = edges[0]
        said = say.format(consumer="%" + first.consumer.name, op=first.consumer.op.name)
        why = first.why[:1].lower() + first.why[1:].rstrip(".")
        numbers = f" ({first.numbers})" if first.numbers and first.numbers not in why else ""
        yield rule.finding(
            context, producer,
            f"%{producer.name} ({producer.op.name}, {human_bytes(size(producer))}) {said}: {why}{numbers}",
            notes=tuple(Note(f"%{edge.consumer.name} ({edge.consumer.op.name}) reads it", edge.consumer.loc) for edge in edges[:LISTED]),
            help=proven_help(context, first),
            saves=first.saves,
        ).stating(edge.verdict for edge in edges)
