"""Attribution: maps the plans of a rewritten module to plans of the text from which it was made."""
from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from irscope.fusion.canonicalise.canonical import Canonical
from irscope.fusion.plan import UNREPORTED, EdgeVerdict, Group, Plan
from irscope.graph import Graph, Kind, Node
from irscope.graph.trace import to_text
from irscope.ops import hlo

SIMPLIFIED = "simplified"
"""The rule of an edge that XLA's simplification removes before fusion."""
MOVED = frozenset((Kind.ELEMENTWISE, Kind.BROADCAST, Kind.INJECTIVE))
"""Kinds of instructions that do not compute the product or convolution beside which they are put."""
MAX_STEPS = 64
"""Nodes that the search for a path between two nodes visits, where XLA made an edge a path."""


def attribute_plans(canonical: Canonical, plans: Sequence[Plan], graphs: Iterable[Graph]) -> list[Plan]:
    """Plans of the graphs of the text, from the plans of the rewritten graphs.

    An edge of the text whose ends XLA merges or removes counts as fused; one that became a path is fused if the whole path is. Edges that
    exist only in the rewritten module follow, in its names. A kernel is reported with the computation that launches it.
    """
    edges: dict[tuple[Node, Node], EdgeVerdict] = {}
    graphs = list(graphs)
    made_of = _made_of((plan.graph for plan in plans), graphs)
    for plan in plans:
        edges |= {(v.producer, v.consumer): _with_origins(v, made_of) for v in plan.verdicts if v.graph is plan.graph}
    attributed: list[Plan] = []
    used: set[tuple[Node, Node]] = set()
    for graph in graphs:
        made = Plan(graph)
        for consumer in graph.nodes:
            if consumer.op not in UNREPORTED:
                for producer in dict.fromkeys(consumer.operands):
                    if producer.op not in UNREPORTED:
                        made.verdicts.append(_verdict(graph, producer, consumer, canonical, edges, used))
        attributed.append(made)
    by_graph = {plan.graph.name: plan for plan in attributed}
    for plan in plans:
        owner = by_graph.get(plan.graph.name, attributed[-1])
        owner.decisions += plan.decisions
        owner.verdicts += [edges[ends] for v in plan.verdicts if v.graph is plan.graph and (ends := (v.producer, v.consumer)) not in used]
    _attribute_groups(plans, attributed)
    return attributed


_NAME = re.compile(r"%([\w.\-]*[\w\-])")


def _made_of(rewritten: Iterable[Graph], text: Iterable[Graph]) -> dict[str, str]:
    """For the instructions that the text does not have, the one of the text that each stands for, by name."""
    known = {node.name for graph in text for node in graph.nodes}
    return {node.name: node.origin[0].name for graph in rewritten for node in graph.nodes if node.name not in known and node.origin}


def _with_origins(verdict: EdgeVerdict, made_of: Mapping[str, str]) -> EdgeVerdict:
    """A verdict whose cause says of each instruction that the text does not have what it was made of."""
    if not made_of or "%" not in verdict.cause:
        return verdict
    said: set[str] = set()

    def named(match: re.Match[str]) -> str:
        name = match[1]
        if name not in made_of or name in said:
            return match[0]
        said.add(name)
        return f"{match[0]} (made of %{made_of[name]})"

    return replace(verdict, cause=_NAME.sub(named, verdict.cause))


def _called(node: Node) -> str:
    """A node by name, and what it was made of where the text has another name for that."""
    origin = node.origin[0].name if node.origin else node.name
    return f"%{node.name}" if origin == node.name else f"%{node.name} (made of %{origin})"


def _attribute_groups(plans: Sequence[Plan], attributed: Sequence[Plan]) -> None:
    """Attribute every kernel to the graph of the text that its result comes from; copies of what several calls share are one there."""
    home_of = {node: plan for plan in attributed for node in plan.graph.nodes}
    seen: set[tuple[Node, ...]] = set()
    for plan in plans:
        calls = (node for node in plan.graph.nodes if node.op is hlo.fusion and node.bodies)
        given = {param: operand for node in calls for param, operand in zip(node.bodies[0].params, node.operands)}
        for group in plan.groups:
            nodes = to_text(group.nodes)
            home = next((home_of[node] for node in reversed(to_text(group.outputs) or nodes) if node in home_of), None)
            if home is None:
                continue
            nodes = [node for node in nodes if home_of.get(node) is home]
            if plan.graph.name != home.graph.name:
                if tuple(nodes) in seen:
                    continue
                seen.add(tuple(nodes))
            home.groups.append(_group(group, nodes, given))


def _group(group: Group, nodes: list[Node], given: Mapping[Node, Node]) -> Group:
    """A kernel in terms of these nodes of the text. ``given``: the operands for the parameters of kernels that XLA's rewriting makes."""
    here = set(nodes)
    outputs = [node for node in to_text(group.outputs) if node in here]
    anchor = next((node for node in (group.anchor.origin if group.anchor is not None else ()) if node in here), None)
    worked = {node.origin[0] for node in group.nodes if node.origin and node.op.kind not in MOVED}
    aside = frozenset(node for node in nodes if node.op.kind is Kind.CONTRACTION and node not in worked)
    read = [*(given.get(node, node) for node in group.inputs), *(given[node] for node in group.nodes if node in given)]
    return replace(group, nodes=nodes, outputs=outputs or nodes[-1:], inputs=[n for n in to_text(read) if n not in here],
                   anchor=anchor, chains={}, aside=aside)


def _verdict(graph: Graph, producer: Node, consumer: Node, canonical: Canonical, edges: dict[tuple[Node, Node], EdgeVerdict],
             used: set[tuple[Node, Node]]) -> EdgeVerdict:
    """The verdict on one edge of the text."""
    source, target = canonical.trace.result(producer), canonical.trace.result(consumer)

    def gone(cause: str) -> EdgeVerdict:
        return EdgeVerdict(graph, producer, consumer, "all", None, SIMPLIFIED, cause)

    if source is None or target is None:
        return gone(f"XLA simplifies %{(producer if source is None else consumer).name} away before it fuses")
    if source is target:
        return gone(f"XLA merges both into one instruction, %{target.name}, before it fuses")
    if source.op is hlo.constant:
        return gone(f"XLA folds %{producer.name} to a constant before it fuses")
    path = _path(source, target, edges)
    if not path:
        return gone(f"after XLA's simplification %{consumer.name} no longer reads %{producer.name}")
    used.update(path)
    verdicts = [edges[edge] for edge in path]
    worst = next((v for v in verdicts if v.fused == "none"), None) or next((v for v in verdicts if v.fused == "some"), verdicts[0])
    cause = worst.cause
    if (source.name, target.name) != (producer.name, consumer.name) or len(path) > 1:
        names = " -> ".join(_called(node) for node in (source, *(edge[1] for edge in path)))
        cause = f"{cause}; XLA has rewritten this edge to {names}" if cause else f"XLA has rewritten this edge to {names}"
    return EdgeVerdict(graph, producer, consumer, worst.fused, worst.reason, worst.rule, cause)


def _path(source: Node, target: Node, edges: dict[tuple[Node, Node], EdgeVerdict]) -> list[tuple[Node, Node]]:
    """The shortest path from one node to another over edges that have a verdict; empty if there is none nearby."""
    if (source, target) in edges:
        return [(source, target)]
    came: dict[Node, Node] = {target: target}
    queue = [target]
    for node in queue:
        if len(came) > MAX_STEPS:
            break
        for operand in node.operands:
            if operand in came or (operand, node) not in edges:
                continue
            came[operand] = node
            if operand is source:
                found = []
                while operand is not target:
                    found.append((operand, came[operand]))
                    operand = came[operand]
                return found
            queue.append(operand)
    return []
