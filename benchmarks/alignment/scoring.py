"""Precision and recall of node alignments, up to nodes that nothing but their names distinguishes."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from irscope.graph import Graph, Module, Node, callees_first
from irscope.graph.numbering import Equality, Numbering, by_value, plain
from irscope.ops import hlo

Pairs = list[tuple[Node, Node]]
Align = Callable[[Module, Module], Pairs]
ROUNDS = 12
"""How many steps away two nodes must have equal neighbours, at least, to count as alike."""


@dataclass(slots=True)
class Score:
    """Counts of pairs: ``right`` ones, all that were ``given`` for nodes of the truth, and all of the ``truth``."""

    right: int = 0
    given: int = 0
    found: int = 0
    truth: int = 0

    @property
    def precision(self) -> float:
        return self.right / self.given if self.given else 1.0

    @property
    def recall(self) -> float:
        return self.found / self.truth if self.truth else 1.0

    def add(self, other: Score) -> None:
        self.right += other.right
        self.given += other.given
        self.found += other.found
        self.truth += other.truth

    def __str__(self) -> str:
        return f"precision {self.precision:.4f} ({self.right}/{self.given})  recall {self.recall:.4f} ({self.found}/{self.truth})"


def score(pairs: Pairs, truth: Mapping[Node, Iterable[Node]], like_before: Mapping[Node, int], like_after: Mapping[Node, int]) -> Score:
    """``truth``: for nodes before, all nodes after that are right. Pairs count where one of their nodes is in the truth."""
    back: dict[Node, set[Node]] = {}
    for a, rights in truth.items():
        for b in rights:
            back.setdefault(b, set()).add(a)
    result = Score(truth=len(truth))
    found: set[Node] = set()
    for a, b in pairs:
        if a not in truth and b not in back:
            continue
        result.given += 1
        alike = (any(b is right or like_after.get(b, -1) == like_after.get(right, -2) for right in truth.get(a, ()))
                 or any(like_before.get(a, -1) == like_before.get(left, -2) for left in back.get(b, ())))
        result.right += alike
        if alike and a in truth:
            found.add(a)
    result.found = len(found)
    return result


def alike(module: Module) -> dict[Node, int]:
    """Equal numbers for nodes of a module that no structure within ROUNDS steps, calls included, distinguishes, and for equal constants."""
    equality = Equality(frozenset(("control_predecessors",)), plain, None, by_value, elided=True, across=True)
    number = Numbering(equality, callees_first(module))
    colours: dict[Node, int] = {}
    callers: dict[Graph, list[tuple[Node, int]]] = {}
    table: dict[object, int] = {}
    graphs = callees_first(module)
    for graph in graphs:
        places = {param: i for i, param in enumerate(graph.params)}
        for node, value in zip(graph.nodes, number.nodes[graph], strict=True):
            colours[node] = table.setdefault((value, places.get(node, -1), node is graph.root), len(table))
            for i, body in enumerate(node.bodies):
                callers.setdefault(body, []).append((node, i))
    users = {graph: graph.users() for graph in graphs}
    for _ in range(ROUNDS):
        table = {}
        fresh: dict[Node, int] = {}
        for graph in graphs:
            outside = tuple(sorted((colours[node], i) for node, i in callers.get(graph, ())))
            for node in graph.nodes:
                above = tuple(colours[o] for o in node.operands)
                below = tuple(sorted(colours[user] for user in users[graph][node.index]))
                key = colours[node] if node.op is hlo.constant else (colours[node], above, below, outside)
                fresh[node] = table.setdefault(key, len(table))
        if len(set(fresh.values())) == len(set(colours.values())):
            return fresh
        colours = fresh
    return colours
