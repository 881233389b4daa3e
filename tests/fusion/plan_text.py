"""A plan as text: its kernels, and for each edge the verdict with its reason."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.fusion import EdgeVerdict, Plan
from irscope.fusion.plan import Group
from irscope.lint.planned import Planned


def plan_text(planned: Planned) -> str:
    """All plans of a module, callees first."""
    return "\n".join(line for plan in planned.plans for line in _lines(plan))


def _lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.graph.name}: " + " | ".join(map(_group, plan.groups))
    if plan.decisions:
        yield "  fused in order: " + ", ".join(f"{one}+{other}" for one, other in plan.decisions)
    if plan.calls is not None:
        yield "  calls: " + ", ".join("extern" if call.extern else f"{call.nests} nests" for call in plan.calls)
    together = [f"{v.producer.name}>{v.consumer.name}{'' if v.fused == 'all' else ' (' + v.fused + ')'}" for v in plan.verdicts if v.fused != "none"]
    if together:
        yield "  fused: " + ", ".join(together)
    for verdict in plan.verdicts:
        if verdict.fused == "none":
            yield "  " + _verdict(verdict)


def _group(group: Group) -> str:
    words = [group.kind, "+".join(node.name for node in group.nodes)]
    if group.outputs != group.nodes[-1:]:
        words.append("-> " + ",".join(node.name for node in group.outputs))
    if group.space:
        words.append("over " + "x".join(map(str, group.space)) + (f" rows {group.rows}" if group.rows else ""))
    return " ".join(words)


def _verdict(verdict: EdgeVerdict) -> str:
    words = [f"{verdict.producer.name}>{verdict.consumer.name} {verdict.rule}", verdict.reason or "", verdict.cause]
    return "; ".join(word for word in words if word)
