"""Verdicts of a fusion policy on the edges of a module, or on the edges between two nodes: fused or not, and by which rule."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from itertools import pairwise

from irscope.analysis.values import written
from irscope.fusion import AUTO, EdgeVerdict, Plan, across_releases, policy_for
from irscope.fusion.logs.events import FusionLog
from irscope.fusion.logs.verdicts import verdicts_by_log
from irscope.fusion.policy import OfReleasesByPrimitives
from irscope.graph import Graph, Module, Node
from irscope.lint.context import Context
from irscope.lint.fusion import furthest_apart, plans, reads_text
from irscope.lint.kernels import Kernel, kernels_of
from irscope.lint.settings import Settings
from irscope.source import UserError

NEAREST = 5
"""Names that are offered for one that is not there."""
_NAME = re.compile(r"%([\w.\-]+)")


def verdicts_of(module: Module, policy: str = AUTO, device: str | None = None, pair: tuple[str, str] | None = None) -> list[EdgeVerdict]:
    """A verdict on every edge of the graphs that the entry runs, or on the edges between the two nodes of ``pair``.

    Raises UserError for an unknown policy or node, and if no edge joins the pair.
    """
    return answer(Context(module, Settings(policy, device)), pair)[0]


def answer(context: Context, pair: tuple[str, str] | None = None) -> tuple[list[EdgeVerdict], dict[EdgeVerdict, Kernel]]:
    """The verdicts, and for a requested pair that is fused, the kernel that computes both."""
    module, settings = context.module, context.settings
    judged, made = context.costs.decided or (module, plans(module, settings.policy, settings.device))
    try:
        verdicts = _between(module, _verdicts(context, judged, made), settings.policy, pair)
    except UserError:
        if judged is module or not module.dialect.primitive:
            raise
        # A call may have been asked for: the text is judged with its calls, which then are operators.
        made = plans(module, settings.policy, settings.device)
        verdicts = _between(module, _verdicts(context, module, made), settings.policy, pair)
    return verdicts, kernels_of(module, made, verdicts) if pair is not None else {}


def _verdicts(context: Context, judged: Module, made: Sequence[Plan]) -> list[EdgeVerdict]:
    """The verdicts of plans in the names of the text, and what the releases of the compiler make of each edge."""
    verdicts = [verdict for plan in made for verdict in plan.verdicts]
    policy = policy_for(context.settings.policy, context.module)
    compared = reads_text(context.settings.policy, context.module) or isinstance(policy, OfReleasesByPrimitives)
    if compared and not any(verdict.recorded for verdict in verdicts):
        verdicts = across_releases(policy, judged, verdicts)
    return list(_in_the_text(context.module, judged, verdicts))


def judge_by_log(module: Module, log: FusionLog, device: str | None = None,
                 pair: tuple[str, str] | None = None) -> tuple[list[EdgeVerdict], list[str]]:
    """The same by a compiler's own log, and remarks on how far it fits this text."""
    verdicts, notes = verdicts_by_log(module, log, device)
    return _between(module, verdicts, log.name, pair), notes


def _in_the_text(module: Module, judged: Module, verdicts: Iterable[EdgeVerdict]) -> Iterator[EdgeVerdict]:
    """The verdicts on a module that was made from the text, between the operators that the text has: not between the primitives of one.

    Where several edges join two operators, the one that keeps them furthest apart is kept.
    """
    if judged is module:
        yield from verdicts
        return
    names: dict[Graph, dict[str, str]] = {}
    for (producer, consumer), verdict in furthest_apart(verdicts).items():
        if verdict.graph not in names:
            names[verdict.graph] = {node.name: written(node).name for node in verdict.graph.nodes}
        text = names[verdict.graph]
        yield replace(verdict, producer=producer, consumer=consumer, cause=_renamed(verdict.cause, text))


def _renamed(words: str, names: Mapping[str, str]) -> str:
    """Words about nodes, by other names."""
    return _NAME.sub(lambda match: "%" + names.get(match[1], match[1]), words)


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
