"""The call graph: which graphs call which, how often, and how a body runs."""
from __future__ import annotations

from enum import Enum

from irscope.analysis.trips import trip_count
from irscope.graph import Graph, Module, Node, callees_first
from irscope.ops import hlo, sets

MOST_RUNS = 2.0 ** 100
"""The cap on how often a graph runs: trips in untrusted text may multiply, with costs of up to 2**900, to more than the largest float."""


class BodyUse(Enum):
    """How an operator runs its bodies."""

    ONCE = "once"          # call, fusion: as if its text were inlined
    LOOP = "loop"          # while: condition and body, trip by trip
    BRANCH = "branch"      # conditional: one of them
    ELEMENT = "element"    # reduce, sort, map: scalar code, part of the operator itself


_LOOPS = sets.hlo("while scan") | sets.torchscript("prim::Loop")
_BRANCHES = sets.hlo("conditional") | sets.relay("if match") | sets.torchscript("prim::If")
_ELEMENT = hlo.named(
    "reduce reduce-window map sort scatter select-and-scatter all-reduce all-reduce-start reduce-scatter reduce-precision custom-call topk")


def body_use(node: Node) -> BodyUse:
    """How ``node`` runs its bodies; ``ONCE`` for an unknown operator."""
    op = node.op
    if op in _ELEMENT:
        return BodyUse.ELEMENT
    if op in _LOOPS:
        return BodyUse.LOOP
    return BodyUse.BRANCH if op in _BRANCHES else BodyUse.ONCE


def body_role(node: Node, number: int) -> str:
    """The role of a body in the node that runs it: ``condition``, ``body``, ``branch 0``."""
    use = body_use(node)
    if use is BodyUse.BRANCH:
        return f"branch {number}"
    return "condition" if use is BodyUse.LOOP and number < len(node.bodies) - 1 else "body"


def is_fusion(node: Node) -> bool:
    """Whether the node is one kernel that computes the nodes of its body."""
    return node.op is hlo.fusion


class Calls:
    """The call structure of a module: which graphs run, how often, and in which way.

    ``order`` lists the graphs that the entry reaches, callees first. ``times[graph]`` is how often it runs in one run of the entry;
    a loop whose trip count the text does not state counts as one trip, and ``open_loops`` lists those nodes. Branches count fully.
    """

    def __init__(self, module: Module) -> None:
        entry = module.graphs.get(module.entry)
        self.order: list[Graph] = callees_first(module, entry)
        self.times: dict[Graph, float] = dict.fromkeys(self.order, 0.0)
        self.scalar: set[Graph] = set()
        self.fused: set[Graph] = set()
        self.callers: dict[Graph, list[tuple[Graph, Node]]] = {graph: [] for graph in self.order}
        self.trips: dict[Node, int] = {}
        self.open_loops: list[Node] = []
        if entry is not None:
            self.times[entry] = 1.0
        for graph in reversed(self.order):
            times = self.times[graph]
            inside_fusion, inside_scalar = graph in self.fused, graph in self.scalar
            for node in graph.nodes:
                if not node.bodies:
                    continue
                use = body_use(node)
                trips = 1
                if use is BodyUse.LOOP and (known := trip_count(module, node)) is not None:
                    trips = self.trips[node] = known
                elif use is BodyUse.LOOP:
                    self.open_loops.append(node)
                for body in node.bodies:
                    self.times[body] = min(self.times[body] + times * trips, MOST_RUNS)
                    self.callers[body].append((graph, node))
                    if inside_scalar or use is BodyUse.ELEMENT:
                        self.scalar.add(body)
                    if inside_fusion or is_fusion(node):
                        self.fused.add(body)

    def runs_alone(self, graph: Graph) -> bool:
        """Whether the nodes of ``graph`` are separate steps, and not part of a fusion or of a reducer."""
        return graph not in self.fused and graph not in self.scalar
