"""What Inductor did, as a plan: kernels, and a verdict on each edge between two operators as the user wrote them.

Views are no operators here: they cost nothing, and an edge goes through them. Primitives of one written operator count as that
operator; an edge of which some primitives are fused and others are not is fused ``some``.
"""
from __future__ import annotations

from collections.abc import Iterator

from irscope.fusion.inductor.kernels import Kernel
from irscope.fusion.inductor.program import VIEWS, Program
from irscope.fusion.inductor.reasons import Reason, reason, written
from irscope.fusion.inductor.scheduler import Scheduler
from irscope.fusion.inductor.state import State
from irscope.fusion.inductor.units import STRUCTURE
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.plan import EdgeVerdict, Group, Plan, inputs_of
from irscope.graph import Node
from irscope.ops import hlo


class Report:
    """The kernels of one graph, and which nodes each computes. ``homes``: for each node its kernels."""

    def __init__(self, program: Program, state: State, scheduler: Scheduler) -> None:
        self.program = program
        self.state = state
        self.scheduler = scheduler
        self.members: dict[Kernel, list[Node]] = {}
        self.homes: dict[Node, list[Kernel]] = {}
        for kernel in scheduler.kernels:
            nodes = self._nodes(kernel)
            self.members[kernel] = nodes
            for node in nodes:
                self.homes.setdefault(node, []).append(kernel)
        self.stored = {buffer.node: buffer for buffer in state.buffers if buffer.name in scheduler.home}
        self.readers = scheduler.read_by()
        self.results = set(state.results)

    def _nodes(self, kernel: Kernel) -> list[Node]:
        """What a kernel computes, and the views through which it reads, in definition order."""
        found: dict[Node, None] = {}
        for buffer in kernel.buffers:
            found.update(buffer.members)
        stack = list(found)
        while stack:
            for operand in stack.pop().operands:
                if operand not in found and (self._is_view(operand) or operand in self.program.tuples):
                    found[operand] = None
                    stack.append(operand)
        return sorted(found, key=lambda n: n.index)

    def _is_view(self, node: Node) -> bool:
        return node.op in VIEWS and node not in self.program.copied

    def plan(self) -> Plan:
        """Groups in the order in which they run, verdicts in the order of the text."""
        graph = self.program.graph
        groups = [self._group(kernel, nodes) for kernel, nodes in self.members.items() if nodes and not _is_place(kernel)]
        return Plan(graph, groups, list(self._verdicts()), self.scheduler.joined)

    def _group(self, kernel: Kernel, nodes: list[Node]) -> Group:
        inside = set(nodes)
        outputs = [b.node for b in kernel.buffers if self._leaves(b, kernel)] or [kernel.buffers[-1].node]
        kept = [n for n in dict.fromkeys(outputs) if n in inside] or [nodes[-1]]
        kind = "whole" if kernel.extern else "reduction" if kernel.reduces else "map"
        dot = next((n for n in nodes if n.op in (hlo.dot, hlo.convolution)), None)
        if kernel.extern and dot is not None:
            kind = "contraction" if dot.op is hlo.dot else "convolution"
        return Group(kind, nodes, kept, inputs_of(nodes), dot)

    def _leaves(self, buffer: Buffer, kernel: Kernel) -> bool:
        """Whether a buffer is read by another kernel, or given back."""
        return buffer in self.results or any(home is not kernel for home in self.readers.get(buffer.name, ()))

    # ------------------------------------------------------------------ verdicts

    def _verdicts(self) -> Iterator[EdgeVerdict]:
        found: dict[tuple[Node, Node], list[tuple[str, Reason | None]]] = {}
        for producer, consumer in self._edges():
            ends = (written(producer), written(consumer))
            if ends[0] is not ends[1]:
                found.setdefault(ends, []).append(self._judged(producer, consumer))
        for (first, second), judged in found.items():
            yield self._verdict(first, second, judged)

    def _edges(self) -> Iterator[tuple[Node, Node]]:
        """Pairs of nodes that compute something, the second reading the first, perhaps through views."""
        for node in self.program.graph.nodes:
            if node not in self.homes or self._is_view(node):
                continue
            stack = list(reversed(node.operands))
            seen: set[Node] = set()
            while stack:
                operand = stack.pop()
                if operand in seen or (operand.op in STRUCTURE and operand.op not in (hlo.tuple, hlo.get_tuple_element)):
                    continue
                seen.add(operand)
                through = self._is_view(operand) or operand in self.program.tuples
                if through or operand.op in (hlo.tuple, hlo.get_tuple_element):
                    stack.extend(reversed(operand.operands))
                elif operand in self.homes:
                    yield operand, node

    def _judged(self, producer: Node, consumer: Node) -> tuple[str, Reason | None]:
        mine, theirs = self.homes[consumer], self.homes[producer]
        together = [kernel for kernel in mine if kernel in theirs and not _is_place(kernel)]
        if together:
            buffer = self.stored.get(producer)
            alone = len(theirs) == 1 and (buffer is None or not self._leaves(buffer, together[0]))
            return ("all" if alone else "some"), None
        return "none", reason(self, producer, consumer)

    def _verdict(self, first: Node, second: Node, judged: list[tuple[str, Reason | None]]) -> EdgeVerdict:
        states = {state for state, _ in judged}
        fused = states.pop() if len(states) == 1 else "some"
        graph = self.program.graph
        why = next((r for _, r in judged if r is not None), None)
        if why is None:
            return EdgeVerdict(graph, first, second, fused)
        return EdgeVerdict(graph, first, second, fused, why.words, why.rule, why.cause, why.counterfactual)


def _is_place(kernel: Kernel) -> bool:
    """A concatenation that does nothing itself, or one of several results of a call."""
    return (kernel.extern and kernel.buffers[0].kind == "nop") or kernel.buffers[0].part
