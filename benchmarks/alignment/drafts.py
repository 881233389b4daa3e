"""Modules as drafts that edits change, and modules without names: what an alignment sees of either is structure alone."""
from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from irscope.graph import Graph, Module, Node, Op, Type, callees_first, live
from irscope.graph.provenance import NoProvenance
from irscope.source import SourceText


@dataclass(eq=False)
class Step:
    """A node of a draft. ``origins`` are the nodes of the original that it may be paired with; none for a node that an edit adds."""

    op: Op
    type: Type
    operands: list[Step]
    attrs: Mapping[str, Any]
    bodies: tuple[Graph, ...] = ()
    origins: tuple[Node, ...] = ()
    number: int = -1
    """The number of a parameter; -1 for other nodes."""


@dataclass(eq=False)
class Draft:
    """A graph that can be changed: steps in topological order, and the one whose value is the result."""

    graph: Graph
    steps: list[Step] = field(default_factory=list)
    root: Step | None = None
    bodies: list[Draft] = field(default_factory=list)
    """Graphs that an edit made, which steps of this one call."""

    def users(self) -> dict[Step, list[Step]]:
        """The steps that read each step."""
        found: dict[Step, list[Step]] = {step: [] for step in self.steps}
        for step in self.steps:
            for operand in dict.fromkeys(step.operands):
                found[operand].append(step)
        return found

    def replace(self, old: Step, new: Step, keep: frozenset[Step] = frozenset()) -> None:
        """Let the users of a step, but for those in ``keep``, read another one."""
        for step in self.steps:
            if step is not new and step not in keep and old in step.operands:
                step.operands = [new if operand is old else operand for operand in step.operands]
        if self.root is old:
            self.root = new


def draft_of(graph: Graph) -> Draft:
    """A draft of a graph, without its dead nodes."""
    made = Draft(graph)
    alive, steps, params = live(graph), dict[Node, Step](), {param: i for i, param in enumerate(graph.params)}
    for node in graph.nodes:
        if alive[node.index]:
            step = Step(node.op, node.type, [steps[o] for o in node.operands], node.attrs, node.bodies, (node,), params.get(node, -1))
            steps[node] = step
            made.steps.append(step)
    made.root = steps[graph.result()]
    return made


@dataclass(eq=False)
class Anonymous:
    """A module whose nodes and graphs have random names and whose lines are in random order; ``became`` are its nodes by those that they
    stand for, the likeliest first."""

    module: Module
    became: dict[Node, list[Node]]
    added: set[Node]


def anonymous(module: Module, seed: int, drafts: Mapping[Graph, Draft] | None = None) -> Anonymous:
    """A module without names, locations, metadata and order of lines; ``drafts`` replace some of its graphs."""
    draw = random.Random(seed)
    made = Module("m", module.dialect, attrs={key: value for key, value in module.attrs.items() if key == "primitive"},
                  source=SourceText("", ""), provenance=NoProvenance())
    result, graphs = Anonymous(made, {}, set()), dict[Graph, Graph]()
    numbers = iter(draw.sample(range(10 ** 7), sum(len(g.nodes) for g in callees_first(module)) * 4 + 1000))
    for graph in callees_first(module):
        draft = drafts.get(graph) if drafts else None
        graphs[graph] = _emit(draft or draft_of(graph), graphs, result, draw, numbers)
    for graph in callees_first(module):
        made.graphs[graphs[graph].name] = graphs[graph]
    made.entry = graphs[module.main()].name
    return result


def _emit(draft: Draft, graphs: dict[Graph, Graph], result: Anonymous, draw: random.Random, numbers: Any) -> Graph:
    for body in draft.bodies:
        graphs[body.graph] = _emit(body, graphs, result, draw, numbers)
        result.module.graphs[graphs[body.graph].name] = graphs[body.graph]
    notes = {key: value for key, value in draft.graph.notes.items() if key == "attrs"}
    made = Graph(f"g{next(numbers)}", notes=notes)
    nodes: dict[Step, Node] = {}
    for step in shuffled(draft, draw):
        if step.number < 0 and step.operands and any(o not in nodes for o in step.operands):
            raise ValueError("a draft with a cycle")
        bodies = tuple(graphs[body] for body in step.bodies)
        node = made.add(Node(step.op, f"v{next(numbers)}", step.type, tuple(nodes[o] for o in step.operands), step.attrs, bodies))
        nodes[step] = node
        for origin in step.origins:
            result.became.setdefault(origin, []).append(node)
        if not step.origins:
            result.added.add(node)
    numbered = sorted((step for step in nodes if step.number >= 0), key=lambda step: step.number)
    made.params = [nodes[step] for step in numbered]
    made.root = nodes[draft.root] if draft.root is not None else None
    return made


def shuffled(draft: Draft, draw: random.Random) -> list[Step]:
    """The steps in a random topological order, without dead ones. Steps with effects keep their order."""
    from irscope.graph.walk import LASTING

    needed: set[Step] = set()
    stack = [step for step in draft.steps if step.number >= 0 or step is draft.root or step.op.effect in LASTING]
    lasting = [step for step in draft.steps if step.op.effect in LASTING]
    while stack:
        step = stack.pop()
        if step not in needed:
            needed.add(step)
            stack += step.operands
    waiting = {step: len(set(step.operands)) for step in needed}
    users = draft.users()
    for before, after in pairwise(lasting):
        if before not in after.operands:
            users[before].append(after)
            waiting[after] += 1
    ready = sorted((step for step in draft.steps if step in needed and not waiting[step]), key=lambda step: draw.random())
    order: list[Step] = []
    while ready:
        place = draw.randrange(len(ready))
        ready[place], ready[-1] = ready[-1], ready[place]
        step = ready.pop()
        order.append(step)
        for user in users[step]:
            if user in needed:
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
    return order
