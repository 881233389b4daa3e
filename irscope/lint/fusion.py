"""What a fusion policy makes of a module, told for ``lint``: verdicts on edges."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from irscope.analysis.values import written
from irscope.expand import expand
from irscope.expand.torchscript.constants import elided_constants
from irscope.fusion import AsWritten, EdgeVerdict, Plan, compiler_of, policy_named
from irscope.fusion.logs.events import FusionLog
from irscope.graph import Module, Node, Typing, callees_first
from irscope.lint.asked import Kernel, kernels_of, must_exist, not_joined
from irscope.lint.context import Context
from irscope.lint.settings import Settings
from irscope.source import UserError
from irscope.version import __version__

APART = ("all", "some", "none")
"""How far apart an edge keeps two operators."""
_NAME = re.compile(r"%([\w.\-]+)")


def plans(module: Module, policy: str, device: str | None = None, expanded: bool = False) -> list[Plan]:
    """What a policy makes of the entry and of what it calls. HLO is judged as written where the policy wants that, else its primitives.

    ``expanded``: the module was made by :func:`expand`, which need not be done again.
    The module is sound enough for policies (:mod:`irscope.analysis.soundness`). Raises UserError for operators that do not expand.
    """
    chosen = policy_named(policy)
    if device is not None and compiler_of(policy) != "xla-gpu":
        hint = getattr(chosen, "elsewhere", "it belongs to xla-gpu")
        raise UserError(f"--device {device} means nothing to the policy {policy}", hint)
    if isinstance(chosen, AsWritten):
        return chosen.plan_module(module if _reads(policy, module) else expand(module, outline=True), device)
    primitive = module if expanded else expand(module, outline=True)
    scalar = Context(primitive).scalar_bodies
    return [chosen.plan(graph) for graph in callees_first(primitive, primitive.main()) if graph not in scalar]


def _reads(policy: str, module: Module) -> bool:
    """Whether a policy judges the operators of the text, rather than its primitives. HLO is its own primitives, but for what it calls."""
    chosen = policy_named(policy)
    return module.format in getattr(chosen, "reads", ("hlo",)) if isinstance(chosen, AsWritten) else module.dialect.primitive


def version_of(policy: str) -> str:
    """The policy by name, and the release of the compiler that it follows: of irscope's own, irscope's."""
    chosen = policy_named(policy)
    return chosen.version if isinstance(chosen, AsWritten) else f"{chosen.name}@{__version__}"


def remarks(module: Module, policy: str, device: str | None = None) -> list[str]:
    """How far a policy that works on the text as written can be trusted on this text, and for this device."""
    chosen = policy_named(policy)
    return elided(module) + (chosen.remarks(module, device) if isinstance(chosen, AsWritten) else [])


def elided(module: Module) -> list[str]:
    """That some tensors are known by their types alone; empty where all values are in the text."""
    if module.dialect.typing is not Typing.EXECUTED:
        return []
    hidden = [f"%{node.name}" for node in elided_constants(module)]
    names = ", ".join(hidden[:3])
    return [f"the text elides the values of {len(hidden)} constants ({names}): they are taken for inputs of their types, which is all that "
            "fusion asks of them"] if hidden else []


def judge(module: Module, policy: str, device: str | None = None, pair: tuple[str, str] | None = None) -> list[EdgeVerdict]:
    """A verdict on every edge of the graphs that the entry runs, or on the edges between the two nodes of ``pair``.

    Raises UserError for an unknown policy or node, and when no path of one edge joins the pair.
    """
    return answer(module, policy, device, pair)[0]


def answer(
    module: Module, policy: str, device: str | None = None, pair: tuple[str, str] | None = None, context: Context | None = None
) -> tuple[list[EdgeVerdict], dict[EdgeVerdict, Kernel]]:
    """The verdicts, and where a pair was asked for and is fused, the kernel that computes both. ``context`` may have the plans already."""
    planned = context.planned if context is not None and (context.primitive is module or not _reads(policy, module)) else None
    made = planned.plans if planned is not None else plans(module, policy, device)
    told = _asked(module, [verdict for plan in made for verdict in _in_the_text(module, plan)], policy, pair)
    if pair is None:
        return told, {}
    kernels = kernels_of(module, made, told)
    if module.dialect.primitive:
        # What is called is judged where it stands, and becomes part of kernels where it is called.
        context = Context(module, Settings(policy, device))
        if context.primitive is not module and context.planned is not None:
            kernels |= kernels_of(module, context.planned.plans, told)
    return told, kernels


def judge_by_log(module: Module, log: FusionLog, device: str | None = None,
                 pair: tuple[str, str] | None = None) -> tuple[list[EdgeVerdict], list[str]]:
    """The same by a compiler's own log, and remarks on how far it fits this text."""
    from irscope.fusion.logs.verdicts import verdicts_by_log

    verdicts, notes = verdicts_by_log(module, log, device)
    return _asked(module, verdicts, log.name, pair), notes


def _in_the_text(module: Module, plan: Plan) -> Iterable[EdgeVerdict]:
    """The verdicts of a plan between the operators that the text has: of TorchScript and Relay, not between the primitives of one.

    Where several edges join two operators, the one that keeps them furthest apart is told.
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
            cause, way_out = (_NAME.sub(lambda m: "%" + text.get(m[1], m[1]), told) for told in (verdict.cause, verdict.counterfactual))
            found[ends] = replace(verdict, producer=ends[0], consumer=ends[1], cause=cause, counterfactual=way_out)
    return found.values()


def _asked(module: Module, verdicts: list[EdgeVerdict], policy: str, pair: tuple[str, str] | None) -> list[EdgeVerdict]:
    """All verdicts, or those between the two nodes of ``pair``."""
    if pair is None:
        return verdicts
    for name in pair:
        must_exist(module, name, (end for v in verdicts for end in v.names))
    found = [v for v in verdicts if set(v.names) == set(pair)]
    if not found:
        raise not_joined(module, pair, policy, verdicts)
    return found
