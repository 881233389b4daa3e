"""The gain from fusion: a program run operator by operator, as one graph, fused, and fused with the blockers removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.analysis.calls import Calls
from irscope.analysis.cost import is_free
from irscope.analysis.values import PLUMBING, written
from irscope.expand.expand import inline
from irscope.formats.torchscript.names import is_library_call
from irscope.fusion import Group, Plan
from irscope.graph import Graph, Kind, Module, Node, TensorType, Typing, callees_first
from irscope.graph.collector import collector_paused
from irscope.lint.claims import CANNOT
from irscope.lint.context import Context
from irscope.lint.edits import Edit, edited, together
from irscope.lint.findings import RuleFinding
from irscope.lint.planned import KernelCalls, Planned
from irscope.lint.rule import Fix, Rule, all_rules
from irscope.lint.view import ModuleView

SAID = 3
"""Operators that are named where a policy computes them in several kernels."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One column: calls from Python, kernels, bytes read and written, and the estimated time in microseconds of one run."""

    name: str
    dispatches: float
    launches: float
    traffic: float
    us: float


@dataclass(slots=True)
class Stages:
    """The columns for one module. ``sources`` say where the constants come from, ``lifted`` how often which rule's fix was made.
    ``calls``: the kernels of the third column by kind, of a policy that tells generated kernels from extern ones."""

    machine: str
    policy: str
    stages: list[Stage] = field(default_factory=list)
    lifted: dict[str, int] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    calls: KernelCalls | None = None


def stages(context: Context) -> Stages | None:
    """The four columns; None if the module cannot be planned (dynamic shapes, unknown operators)."""
    with collector_paused():
        return _stages(context)


def _stages(context: Context) -> Stages | None:
    planned, primitive = context.costs.sized, context.view.primitive
    if planned is None or primitive is None:
        return None
    inner = context.inner
    machine = context.costs.machine
    apart = _apart(primitive)
    calls = _calls(context.module, apart)
    dispatch, each = machine.dispatch_us, machine.launch_us
    work = apart.us(machine) - apart.launches * machine.launch(apart.policy)
    # A call from Python starts the first kernel; those that follow cost a launch each.
    behind = max(0.0, apart.launches - 1) * each + work
    table = Stages(machine.title, context.settings.policy)
    # Where the host runs ahead of the device, the calls behind the first overlap with the kernels.
    eager = min(1, calls) * dispatch + max(max(0.0, calls - 1) * dispatch, behind) if machine.overlaps else calls * dispatch + work
    table.stages.append(Stage("eager", calls, apart.launches, apart.traffic, eager))
    once = 1 if apart.launches else 0
    table.stages.append(Stage("captured", once, apart.launches, apart.traffic, once * dispatch + behind))
    table.stages.append(_fused("fused", planned, context))
    table.calls = planned.calls
    lifted = _lifted(inner)
    if lifted is not None:
        after, table.lifted = lifted
        table.stages.append(_fused("blockers lifted", after, context))
    table.sources = [*_split(apart, planned), *_sources(inner)]
    return table


def _fused(name: str, planned: Planned, context: Context) -> Stage:
    """The column of a plan: its kernels behind one call."""
    once = 1 if planned.launches else 0
    machine = context.costs.machine
    us = planned.us(machine) + once * (machine.dispatch_us - machine.launch(context.settings.policy))
    return Stage(name, once, planned.launches, planned.traffic, us)


def _split(apart: Planned, planned: Planned) -> list[str]:
    """A note if the policy starts more kernels, or moves more bytes, than the operators one by one: which of them take several kernels."""
    if planned.launches <= apart.launches and planned.traffic <= apart.traffic:
        return []
    kernels = Counter(one for plan in planned.plans for group in plan.groups if not planned.starts_nothing(group)
                      for one in dict.fromkeys(written(node) for node in group.nodes if not is_free(node)))
    several = [f"%{node.name} ({node.op.name}) in {n}" for node, n in kernels.most_common(SAID) if n > 1]
    more = f": it computes {', '.join(several)}" if several else ""
    what = "starts more kernels" if planned.launches > apart.launches else "moves more bytes"
    return [f"{planned.policy} {what} than the operators one by one, each of which a framework runs in one kernel{more}"]


def _apart(module: Module) -> Planned:
    """The module with a kernel for each operator of the text, as a framework runs it; kernels that a text of HLO holds are taken apart."""
    apart = inline(module, keep=("copy",)) if module.dialect.primitive else module
    plans = []
    scalar = ModuleView(apart).scalar_bodies
    for graph in callees_first(apart, apart.main()):
        if graph not in scalar:
            plans.append(Plan(graph, list(_operators(graph, apart.dialect.primitive))))
    return Planned(apart, "", made=plans)


def _operators(graph: Graph, alone: bool) -> Iterable[Group]:
    """The nodes of each operator of the text as one kernel (``alone``: each node); what moves nothing is none."""
    users = graph.users()
    members: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node.op not in PLUMBING and not is_free(node) and not is_free(written(node)):
            members.setdefault(node.index if alone else id(written(node)), []).append(node)
    for nodes in members.values():
        inside = set(nodes)
        inputs = list(dict.fromkeys(o for node in nodes for o in node.operands if o not in inside))
        outputs = [node for node in nodes if node is graph.root or any(user not in inside for user in users[node.index])]
        if any(node.op.kind not in (Kind.LEAF, Kind.TUPLE) for node in nodes):
            yield Group("whole", nodes, outputs or nodes[-1:], inputs)


def _calls(module: Module, apart: Planned) -> float:
    """Operators that Python calls: of TorchScript also views, which have no kernel."""
    if module.dialect.typing is not Typing.EXECUTED:
        return apart.launches
    calls = Calls(module)
    return sum(
        calls.times[graph] * sum(is_library_call(node.op) for node in graph.shown())
        for graph in calls.order
    )


Edits = dict[str, list[tuple[Graph, Edit]]]
"""The fixes that each rule can make, with the graphs that they change."""


def _lifted(context: Context) -> tuple[Planned, dict[str, int]] | None:
    """The module with every fix that saves time applied, planned again; None if that is impossible.

    Each fix saves time by itself. Combined they may cost time, if one removes what another relies on; then the fixes are applied rule by
    rule, without those of rules that make the whole slower.
    """
    edits: Edits = {}
    for rule in _rewriting(context.settings.compiler):
        for finding in rule.found_in(context):
            if isinstance(finding, RuleFinding) and finding.edit is not None and finding.at and (finding.saves or {}).get("us"):
                edits.setdefault(finding.code, []).append((finding.at[0], finding.edit))
    before, machine = context.costs.planned, context.costs.machine
    if before is None:
        return None
    found = _edited(context, edits) if edits else before
    if found is None:
        return None
    if found.us(machine) > before.us(machine):
        found, edits = _one_by_one(context, before, edits)
    return found, dict(Counter({code: len(made) for code, made in edits.items()}).most_common())


def _one_by_one(context: Context, best: Planned, edits: Edits) -> tuple[Planned, Edits]:
    """The plan with the fixes of the rules that make the module no slower, tried from the most frequent rule on; and these fixes."""
    kept: Edits = {}
    for code, made in sorted(edits.items(), key=lambda item: -len(item[1])):
        tried = _edited(context, {**kept, code: made})
        if tried is not None and tried.us(context.costs.machine) <= best.us(context.costs.machine):
            best, kept = tried, {**kept, code: made}
    return best, kept


def _edited(context: Context, edits: Edits) -> Planned | None:
    """The plan of the module with fixes applied; None if it cannot be made."""
    changed: dict[Graph, list[Edit]] = {}
    for made in edits.values():
        for graph, edit in made:
            changed.setdefault(graph, []).append(edit)
    try:
        copy = edited(context.module, {graph: together(made) for graph, made in changed.items()})
        return Planned(copy, context.settings.policy, context.settings.device)
    except CANNOT:
        return None


def _rewriting(compiler: str) -> list[type[Rule]]:
    """The rules that make their fix on a copy, whether they are on or not."""
    return [rule for rule in all_rules() if rule.fix is Fix.REWRITE and (not rule.policies or compiler in rule.policies)]


def _sources(context: Context) -> list[str]:
    """The constants that the estimate is made of, each with its source."""
    machine, policy = context.costs.machine, context.settings.policy
    table = [
        f"dispatch {machine.dispatch_us:g} us: {machine.sources.get('dispatch_us', '')}",
        f"launch {machine.launch_us:g} us: {machine.sources.get('launch_us', '')}",
    ]
    if machine.launch(policy) != machine.launch_us:
        table.append(f"launch under {policy} {machine.launch(policy):g} us: {machine.launch_source(policy)}")
    table.append(f"memory {machine.read_gbs:g} GB/s read, {machine.write_gbs:g} written: {machine.sources.get('read_gbs', '')}")
    for number, level in enumerate(machine.caches):
        table.append(f"kernels of up to {level.bytes / 2**20:.3g} MiB {level.gbs:g} GB/s: {machine.sources.get(f'caches.{number}', '')}")
    table.append(f"arithmetic {machine.vector_gflops:g} GFLOP/s: {machine.sources.get('vector_gflops', '')}")
    dtypes = sorted({_dtype(node) for graph in context.view.graphs for node in graph.nodes if node.op.kind is Kind.CONTRACTION} - {""})
    for dtype in dtypes:
        rate = machine.matrix_gflops.get(dtype, machine.matrix_gflops["f32"])
        source = machine.sources.get(f"matrix_gflops.{dtype}", f"as f32: {machine.sources.get('matrix_gflops.f32', '')}")
        table.append(f"products of {dtype} {rate:g} GFLOP/s: {source}")
    return table


def _dtype(node: Node) -> str:
    type = node.operands[0].type if node.operands else None
    return type.dtype.name if isinstance(type, TensorType) else ""

