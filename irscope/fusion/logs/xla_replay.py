"""Replays XLA's steps on the graph of its text: which instructions ended up in which kernels."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.fusion.closure import closure
from irscope.fusion.logs.events import LoggedStep
from irscope.graph import Graph, Node
from irscope.graph.walk import LASTING


@dataclass(slots=True, eq=False)
class Cluster:
    """Instructions that one kernel computes; ``root`` is the one whose value it returns."""

    root: Node
    members: set[Node]


class Replay:
    """The steps of one run on the graphs of a module.

    ``known`` are the instructions of the text that the log mentions, ``unknown`` the names in it that neither the text has nor the log
    created. ``pairs`` (by producer and consumer) and ``producers`` hold the last step that refused a fusion, ``priorities`` (by producer)
    the last times that XLA compared.
    """

    def __init__(self, graphs: Sequence[Graph], steps: Sequence[LoggedStep]) -> None:
        self.graphs = graphs
        self.home = {node: Cluster(node, {node}) for graph in graphs for node in graph.nodes}
        self.named = {node.name: cluster for node, cluster in self.home.items()}
        self.pairs: dict[tuple[Node, Node], LoggedStep] = {}
        self.producers: dict[Node, LoggedStep] = {}
        self.priorities: dict[Node, LoggedStep] = {}
        self.known: set[Node] = set()
        self.unknown: set[str] = set()
        for step in steps:
            self._take(step)
        self.kernels = self._alive()

    def _take(self, step: LoggedStep) -> None:
        first = self._cluster(step.producer)
        second = self._cluster(step.consumer) if step.consumer else None
        if first is None or (step.consumer and second is None):
            return
        if step.made is not None and second is not None:
            second.members |= first.members
            self.named[step.made] = second
        elif second is None:
            self.producers[first.root] = step
        elif step.times is not None:
            self.priorities[first.root] = step
        else:
            for member in second.members:
                if first.root in member.operands:
                    self.pairs[first.root, member] = step

    def _cluster(self, name: str) -> Cluster | None:
        found = self.named.get(name)
        if found is not None:
            self.known.add(found.root)
        elif name:
            self.unknown.add(name)
        return found

    def _alive(self) -> dict[Node, list[Cluster]]:
        """For each live instruction the kernels that compute it."""
        inside: dict[Node, list[Cluster]] = {}
        results = (n for graph in self.graphs for n in graph.nodes if n is graph.root or n.op.effect in LASTING)
        for node in closure(results, self._inputs):
            for member in self.home[node].members:
                inside.setdefault(member, []).append(self.home[node])
        return inside

    def _inputs(self, node: Node) -> list[Node]:
        """What the kernel of an instruction reads."""
        members = self.home[node].members
        return [operand for member in members for operand in member.operands if operand not in members]

    def fused(self, producer: Node, consumer: Node) -> str:
        """``all`` if every kernel with the consumer computes the producer, ``none`` if none does, else ``some``."""
        found = {producer in kernel.members for kernel in self.kernels.get(consumer, ())}
        return "none" if not found or found == {False} else "all" if found == {True} else "some"

    def knows(self, node: Node) -> bool:
        """Whether the pass saw the instruction."""
        return node in self.kernels
