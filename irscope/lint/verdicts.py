"""Verdicts of a fusion policy on the edges of a module, or on the edges between two nodes: fused or not, and by which rule."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise

from irscope.analysis.values import written
from irscope.fusion import EdgeVerdict, Plan, across_releases, policy_for
from irscope.fusion.logs.events import FusionLog
from irscope.fusion.logs.verdicts import verdicts_by_log
from irscope.fusion.policy import OfReleasesByPrimitives
from irscope.graph import Graph, Module, Node
from irscope.lint.context import Context
from irscope.lint.fusion import plans, reads_text
from irscope.lint.kernels import Kernel, kernels_of
from irscope.lint.settings import Settings
from irscope.source import UserError

NEAREST = 5
"""Names that are offered for one that is not there."""
APART = ("all", "some", "none")
"""How far apart an edge keeps two operators."""
_NAME = re.compile(r"%([\w.\-]+)")


def verdicts_of(module: Module, policy: str, device: str | None = None, pair: tuple[str, str] | None = None) -> list[EdgeVerdict]:
    """A verdict on every edge of the graphs that the entry runs, or on the edges between the two nodes of ``pair``.

    Raises UserError for an unknown policy or node, and if no edge joins the pair.
    """
    return answer(module, policy, device, pair)[0]


def answer(
    module: Module, policy: str, device: str | None = None, pair: tuple[str, str] | None = None, context: Context | None = None
) -> tuple[list[EdgeVerdict], dict[EdgeVerdict, Kernel]]:
    """The verdicts, and for a requested pair that is fused, the kernel that computes both. ``context`` may have the plans already."""
    usable = context is not None and (context.view.primitive is module or not reads_text(policy, module))
    planned = context.costs.planned if context is not None and usable else None
    made = planned.plans if planned is not None else plans(module, policy, device)
    verdicts = _between(module, [verdict for plan in made for verdict in _in_the_text(module, plan)], policy, pair)
    chosen = policy_for(policy, module)
    judged = module if reads_text(policy, module) else None
    if judged is None and context is not None and isinstance(chosen, OfReleasesByPrimitives):
        judged = context.view.primitive
    if judged is not None and not any(verdict.recorded for verdict in verdicts):
        verdicts = across_releases(chosen, judged, verdicts)
    if pair is None:
        return verdicts, {}
    kernels = kernels_of(module, made, verdicts)
    if module.dialect.primitive:
        # Called computations get verdicts in place, and become part of kernels in their callers.
        context = Context(module, Settings(policy, device))
        if context.view.primitive is not module and context.costs.planned is not None:
            kernels |= kernels_of(module, context.costs.planned.plans, verdicts)
    return verdicts, kernels


def judge_by_log(module: Module, log: FusionLog, device: str | None = None,
                 pair: tuple[str, str] | None = None) -> tuple[list[EdgeVerdict], list[str]]:
    """The same by a compiler's own log, and remarks on how far it fits this text."""
    verdicts, notes = verdicts_by_log(module, log, device)
    return _between(module, verdicts, log.name, pair), notes


def _in_the_text(module: Module, plan: Plan) -> Iterable[EdgeVerdict]:
    """The verdicts of a plan between the operators that the text has: of TorchScript and Relay, not between the primitives of one.

    Where several edges join two operators, the one that keeps them furthest apart is kept.
    """
    if module.dialect.primitive or any(plan.graph is graph for graph in module.graphs.values()):
        return plan.verdicts
    text = {node.name: written(node).name for node in plan.graph.nodes}
    found: dict[tuple[Node, Node], EdgeVerdict] = {}
    for verdict in plan.verdicts:
        ends = written(verdict.producer), written(verdict.consumer)
        if ends[0] is ends[1]:
            continue
        before = found.get(ends)
        if before is None or APART.index(verdict.fused) > APART.index(before.fused):
            cause, way_out = (_NAME.sub(lambda m: "%" + text.get(m[1], m[1]), words) for words in (verdict.cause, verdict.counterfactual))
            found[ends] = replace(verdict, producer=ends[0], consumer=ends[1], cause=cause, counterfactual=way_out)
    return found.values()


def _between(module: Module, verdicts: list[EdgeVerdict], policy: str, pair: tuple[str, str] | None) -> list[EdgeVerdict]:
    """All verdicts, or those between the two nodes of ``pair``."""
    if pair is None:
        return verdicts
    for name in pair:
        must_exist(module, name, (end for v in verdicts for end in v.names))
    found = [v for v in verdicts if set(v.names) == set(pair)]
    if not found:
        raise not_joined(module, pair, policy, verdicts)
    return found


def must_exist(module: Module, name: str, others: Iterable[str]) -> None:
    """Raises UserError for a name that no node has, with the nodes of that operator, or the nearest names."""
    nodes = [node for graph in module.graphs.values() for node in graph.nodes]
    names = dict.fromkeys([node.name for node in nodes] + list(others))
    if name in names:
        return
    same = [node.name for node in nodes if node.op.name in (name, f"aten::{name}", f"nn.{name}")]
    if same:
        raise UserError(f"there is no node {name}", f"that is an operator; {_listed(same)} {'is one' if len(same) == 1 else 'are such'}")
    near = get_close_matches(name, names, n=NEAREST, cutoff=0.6) or [one for one in names if name.lower() in one.lower()][:NEAREST]
    help = f"did you mean {_listed(near)}?" if near else f"irscope show {module.source.name} --format text names them all"
    raise UserError(f"there is no node {name}", help)


def _listed(names: list[str]) -> str:
    return ", ".join(f"%{name}" for name in names[:NEAREST]) + (f" and {len(names) - NEAREST} more" if len(names) > NEAREST else "")


def not_joined(module: Module, pair: tuple[str, str], policy: str, judged: Iterable[EdgeVerdict]) -> UserError:
    """The error for two nodes without an edge between them: the nodes on the path between them, or their neighbours."""
    way = _way(module, *pair) or _way(module, pair[1], pair[0])
    if way is not None and len(way) == 2:
        message = f"the text joins %{way[0]} and %{way[1]}, and {policy} passes no verdict on that edge"
        about = [edge for edge in judged if not set(way).isdisjoint(edge.names)]
        nearest = ", ".join(f"%{edge.producer.name} -> %{edge.consumer.name}" for edge in about[:NEAREST])
        why = "parameters, constants, calls and what only names a part of another value are computed by no kernel"
        return UserError(message, f"{why}; " + (f"judged is {nearest}" if nearest else "--why-not-fused without names tells every edge"))
    if way is not None:
        between = way[1:-1]
        message = f"no edge joins %{way[0]} and %{way[-1]}: {_listed(between)} {'lies' if len(between) == 1 else 'lie'} between them"
        known = {edge.names for edge in judged}
        steps = [step for step in pairwise(way) if step in known]
        return UserError(message, "ask for one step of it: " + " or ".join(f"{a} {b}" for a, b in steps[:3]) if steps else "")
    neighbours = []
    for name in pair:
        users = _neighbours(module, name)
        neighbours.append(f"%{name} goes to {_listed(users)}" if users else f"nothing takes the value of %{name}")
    return UserError(f"no edge joins %{pair[0]} and %{pair[1]}, and no path leads from one to the other", "; ".join(neighbours))


def _home(module: Module, name: str) -> tuple[Graph, Node] | None:
    entry = [module.graphs[module.entry]] if module.entry in module.graphs else []
    for graph in (*entry, *module.graphs.values()):
        for node in graph.nodes:
            if node.name == name:
                return graph, node
    return None


def _neighbours(module: Module, name: str) -> list[str]:
    found = _home(module, name)
    return [] if found is None else [user.name for user in found[0].users()[found[1].index]]


def _way(module: Module, start: str, end: str) -> list[str] | None:
    """The shortest path along operands from one node to another of the same graph; None if there is none."""
    found = _home(module, start)
    if found is None:
        return None
    graph, first = found
    users = graph.users()
    came: dict[int, Node | None] = {first.index: None}
    waiting = deque([first])
    while waiting:
        node = waiting.popleft()
        if node.name == end:
            way = [node.name]
            before = came[node.index]
            while before is not None:
                way.append(before.name)
                before = came[before.index]
            return way[::-1]
        for user in users[node.index]:
            if user.index not in came:
                came[user.index] = node
                waiting.append(user)
    return None
