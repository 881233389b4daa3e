"""What a fusion policy makes of a module, told for ``lint``: verdicts on edges."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from irscope.analysis.types import check_types
from irscope.expand import expand
from irscope.fusion import AsWritten, EdgeVerdict, Plan, policy_named
from irscope.fusion.logs.events import FusionLog
from irscope.graph import Module, callees_first
from irscope.lint.context import Context
from irscope.lint.values import written
from irscope.ops import TypeFault
from irscope.source import Severity, UserError, did_you_mean

APART = ("all", "some", "none")
"""How far apart an edge keeps two operators."""
_NAME = re.compile(r"%([\w.\-]+)")


def plans(module: Module, policy: str, device: str | None = None) -> list[Plan]:
    """What a policy makes of the entry and of what it calls. HLO is judged as written where the policy wants that, else its primitives.

    Raises UserError for a text whose types do not hold together.
    """
    try:
        return _plans(module, policy, device)
    except (TypeFault, ValueError, LookupError, AssertionError) as fault:
        faults = [finding for finding in check_types(module) if finding.severity is Severity.ERROR]
        if not faults:
            raise
        raise UserError("what this text says does not hold together, so nothing can be fused in it", findings=faults) from fault


def _plans(module: Module, policy: str, device: str | None) -> list[Plan]:
    chosen = policy_named(policy)
    if device is not None and policy != "xla-gpu":
        raise UserError(f"--device {device} means nothing to the policy {policy}", "it belongs to xla-gpu")
    if isinstance(chosen, AsWritten):
        return chosen.plan_module(module if module.format in getattr(chosen, "reads", ("hlo",)) else expand(module), device)
    primitive = expand(module)
    scalar = Context(primitive).scalar_bodies
    return [chosen.plan(graph) for graph in callees_first(primitive, primitive.main()) if graph not in scalar]


def version_of(policy: str) -> str:
    """The policy by name, and the release of the compiler that it follows where it follows one."""
    chosen = policy_named(policy)
    return chosen.version if isinstance(chosen, AsWritten) else chosen.name


def remarks(module: Module, policy: str) -> list[str]:
    """How far a policy that works on the text as written can be trusted on this text."""
    chosen = policy_named(policy)
    return chosen.remarks(module) if isinstance(chosen, AsWritten) else []


def judge(module: Module, policy: str, device: str | None = None, pair: tuple[str, str] | None = None) -> list[EdgeVerdict]:
    """A verdict on every edge of the graphs that the entry runs, or on the edges between the two nodes of ``pair``.

    Raises UserError for an unknown policy or node, and when no path of one edge joins the pair.
    """
    told = [verdict for plan in plans(module, policy, device) for verdict in _in_the_text(module, plan)]
    return _asked(module, told, policy, pair)


def judge_by_log(module: Module, log: FusionLog, device: str | None = None,
                 pair: tuple[str, str] | None = None) -> tuple[list[EdgeVerdict], list[str]]:
    """The same by a compiler's own log, and remarks on how far it fits this text."""
    from irscope.fusion.logs.told import verdicts_by_log

    verdicts, notes = verdicts_by_log(module, log, device)
    return _asked(module, verdicts, log.name, pair), notes


def _in_the_text(module: Module, plan: Plan) -> Iterable[EdgeVerdict]:
    """The verdicts of a plan between the operators that the text has: of TorchScript and Relay, not between the primitives of one.

    Where several edges join two operators, the one that keeps them furthest apart is told.
    """
    if module.format == "hlo" or any(plan.graph is graph for graph in module.graphs.values()):
        return plan.verdicts
    text = {node.name: written(node).name for node in plan.graph.nodes}
    found: dict[tuple[str, str], EdgeVerdict] = {}
    for verdict in plan.verdicts:
        ends = text.get(verdict.producer, verdict.producer), text.get(verdict.consumer, verdict.consumer)
        if ends[0] == ends[1]:
            continue
        before = found.get(ends)
        if before is None or APART.index(verdict.fused) > APART.index(before.fused):
            cause, way_out = (_NAME.sub(lambda m: "%" + text.get(m[1], m[1]), told) for told in (verdict.cause, verdict.counterfactual))
            found[ends] = replace(verdict, producer=ends[0], consumer=ends[1], cause=cause, counterfactual=way_out)
    return found.values()


def _asked(module: Module, verdicts: list[EdgeVerdict], policy: str, pair: tuple[str, str] | None) -> list[EdgeVerdict]:
    """All verdicts, or those between the two nodes of ``pair``."""
    if pair is None:
        return verdicts
    names = {node.name for graph in module.graphs.values() for node in graph.nodes} | {
        n for v in verdicts for n in (v.producer, v.consumer)
    }
    for name in pair:
        if name not in names:
            raise UserError(f"there is no node {name}", did_you_mean(name, names))
    found = [v for v in verdicts if {v.producer, v.consumer} == set(pair)]
    if not found:
        raise UserError(
            f"no edge joins %{pair[0]} and %{pair[1]} in the graph that {policy} looks at",
            "give a producer and its direct consumer; irscope show --around NODE --radius 1 names them",
        )
    return found
