"""The outline of a module by its computations: the call structure, and the repeating stretches of each computation."""
from __future__ import annotations

import re
from collections import Counter

from irscope.analysis.calls import MOST_RUNS, BodyUse, body_role, body_use, is_fusion
from irscope.analysis.classes import is_leaflike
from irscope.analysis.cost import ModuleCosts, is_kernel
from irscope.analysis.outline import Section, add_up, fold, run_title
from irscope.analysis.repeats import repeats
from irscope.graph import Graph, Node
from irscope.graph.numbering import Numbering
from irscope.ops import hlo

_NUMBER = re.compile(r"\d+")

MOST = 0.6
MAX_SECTIONS = 20_000
"""The largest number of sections: more are not readable. Further bodies stay closed."""
MAX_NODES = 500_000
"""The nodes that these sections may list beside those of the module: a body that is called from many places is listed at each."""


def outline_by_graph(title: str, start: Graph, costs: ModuleCosts, structure: Numbering) -> Section:
    """The section of ``start``: its repeating stretches, and the bodies of its calls, loops and branches, each below its caller.

    Bodies of fusions stay closed; calls of equal bodies are folded. The body of a recursive call stays closed, too.
    """
    root = Section(title, "graph", start)
    shapes: dict[object, int] = {}
    made = 1
    left = MAX_NODES + sum(len(graph.nodes) for graph in costs.calls.order)
    todo = [(root, list(start.nodes), costs.calls.times.get(start, 1.0), True, frozenset((start,)))]
    finished: list[tuple[Section, list[int]]] = []
    while todo:
        section, nodes, times, split, around = todo.pop()
        graph = section.graph
        assert graph is not None, "every section of this outline has a graph"
        if split:
            parts, nodes = _stretches(graph, nodes, structure)
            for unit in parts:
                copies = [Section("block", "repeat", graph) for _ in unit]
                for copy, own in zip(copies, unit, strict=True):
                    todo.append((copy, own, times, False, around))
                section.children.extend(copies)
                made += len(copies)
        section.nodes = nodes
        cost = costs.graphs[graph]
        for node in nodes:
            i = node.index
            if not node.synthetic:
                section.n_nodes += 1
                section.ops[node.op.name] += 1
            section.is_open |= bool(cost.is_open[i])
            section.flops += times * cost.flops[i]
            section.bytes += times * (cost.read[i] + cost.written[i])
            if node.bodies and not is_fusion(node) and body_use(node) is not BodyUse.ELEMENT:
                for child, body, child_times in _bodies(node, times, costs):
                    opened = [] if body in around else list(body.nodes)  # a recursive function is listed once
                    if made < MAX_SECTIONS and left > len(opened):
                        made += 1
                        left -= len(opened)
                        section.children.append(child)
                        if body in around:
                            child.note = "calls itself"
                        todo.append((child, opened, child_times, True, around | {body}))
            section.kernels += times * is_kernel(node)
        # Leaf-like nodes may be hoisted out of one copy and not of the next; only the steps decide whether two stretches are the same.
        finished.append((section, [structure.nodes[graph][node.index] for node in nodes if not is_leaflike(node)]))
    for section, classes in reversed(finished):
        add_up(section, section.children)
        fold(section, classes, shapes)
        for child in section.children:
            if child.kind == "repeat":
                _name_block(child)
    return root


def _bodies(node: Node, times: float, costs: ModuleCosts) -> list[tuple[Section, Graph, float]]:
    """For each body of a node: its section, the body itself, and how often it runs."""
    kind = {BodyUse.LOOP: "loop", BodyUse.BRANCH: "branch"}.get(body_use(node), "call")
    note = ""
    if kind == "loop":
        trips = costs.calls.trips.get(node)
        note = f"{trips} trips" if trips is not None else "trips unknown"
        times = min(times * (trips or 1), MOST_RUNS)
    titles = [body.name if kind == "call" else f"%{node.name} {body_role(node, i)}" for i, body in enumerate(node.bodies)]
    return [(Section(title, kind, body, note=note), body, times) for title, body in zip(titles, node.bodies, strict=True)]


def _stretches(graph: Graph, nodes: list[Node], structure: Numbering) -> tuple[list[list[list[Node]]], list[Node]]:
    """The repeating stretches as lists of copies, and the nodes that are in none. A leaf belongs to the stretch of its first user."""
    classes = structure.nodes[graph]
    steps = [node for node in nodes if not is_leaflike(node)]
    found = repeats([classes[node.index] for node in steps])
    if not found:
        return [], nodes
    owner: list[int] = [-1] * len(graph.nodes)
    n_copies = 0
    shape: list[tuple[int, int]] = []
    for repeat in found:
        shape.append((n_copies, repeat.times))
        for step in range(repeat.period * repeat.times):
            owner[steps[repeat.begin + step].index] = n_copies + step // repeat.period
        n_copies += repeat.times
    for node in reversed(nodes):
        if owner[node.index] >= 0 or not is_leaflike(node):
            for operand in node.operands:
                if is_leaflike(operand):
                    owner[operand.index] = owner[node.index]
    copies: list[list[Node]] = [[] for _ in range(n_copies)]
    rest: list[Node] = []
    for node in nodes:
        at = owner[node.index]
        (copies[at] if at >= 0 else rest).append(node)
    return [copies[at:at + times] for at, times in shape], rest


def _name_block(block: Section) -> None:
    """Name a block by the common beginning of its parameters' names, which is often the layer; else by its first step."""
    titles = [_common_name(copy) for copy in block.copies or [block]]
    if all(titles) and (len(set(titles)) == len(titles) or len(titles) == 1):
        block.title = run_title(titles)
    elif block.nodes:
        steps = [node for node in block.nodes if not is_leaflike(node)]
        block.title = f"block at %{(steps or block.nodes)[0].name}"


def _common_name(block: Section) -> str:
    """The longest beginning, up to a number, that most parameters of a block share: ``h_0`` of ``h_0_qkv``, ``h_0_bias`` and ``x``."""
    names = [node.name for node in block.nodes if node.op is hlo.parameter]
    heads = Counter(name[:number.end()] for name in names for number in _NUMBER.finditer(name) if number.end() < len(name))
    shared = [head for head, n in heads.items() if n >= 2 and n >= MOST * len(names)]
    return max(shared, key=len, default="")
