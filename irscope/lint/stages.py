"""What fusion is worth: a program run operator by operator, as one graph, fused, and fused with the blockers lifted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.analysis.calls import Calls
from irscope.analysis.cost import is_free
from irscope.expand.expand import inline
from irscope.fusion import Group, Plan
from irscope.graph import Graph, Kind, Module, Node, TensorType, callees_first
from irscope.lint.claims import CANNOT
from irscope.lint.context import Context
from irscope.lint.edits import Edit, built, together
from irscope.lint.findings import RuleFinding
from irscope.lint.planned import Planned
from irscope.lint.rule import Fix, Rule, all_rules
from irscope.lint.values import written

MOVES_NOTHING = frozenset(("tuple", "get-tuple-element", "parameter", "constant"))


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
    """The columns for one module. ``sources`` say where the constants come from, ``lifted`` how often which rule's fix was made."""

    machine: str
    policy: str
    stages: list[Stage] = field(default_factory=list)
    lifted: dict[str, int] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)


def stages(context: Context) -> Stages | None:
    """The four columns; None where the module cannot be planned (open shapes, operators that are not known)."""
    planned, primitive = context.planned, context.primitive
    if planned is None or primitive is None:
        return None
    inner = context.inner
    machine = context.machine
    apart = _apart(primitive)
    calls = _calls(context.module, apart)
    dispatch, each = machine.dispatch_us, machine.launch_us
    work = apart.us(machine) - apart.launches * machine.launch(apart.policy)
    told = Stages(machine.title, context.settings.policy)
    # Where the host runs ahead of the device, calls and kernels overlap; a kernel of a framework costs what any launch does.
    eager = max(calls * dispatch, apart.launches * each + work) if machine.overlaps else calls * dispatch + work
    told.stages.append(Stage("eager", calls, apart.launches, apart.traffic, eager))
    # The call from Python starts the first kernel; those that follow cost a launch each.
    told.stages.append(Stage("captured", 1, apart.launches, apart.traffic, dispatch + max(0.0, apart.launches - 1) * each + work))
    told.stages.append(Stage("fused", 1, planned.launches, planned.traffic, _fused_us(planned, context)))
    lifted = _lifted(inner)
    if lifted is not None:
        after, told.lifted = lifted
        told.stages.append(Stage("blockers lifted", 1, after.launches, after.traffic, _fused_us(after, context)))
    told.sources = _sources(inner)
    return told


def _fused_us(planned: Planned, context: Context) -> float:
    """The time of a plan's kernels behind one call."""
    first = context.machine.launch(context.settings.policy) if planned.launches else 0.0
    return context.machine.dispatch_us + planned.us(context.machine) - first


def _apart(module: Module) -> Planned:
    """The module with a kernel for each operator of the text, as a framework runs it; kernels that a text of HLO holds are taken apart."""
    apart = inline(module) if module.format == "hlo" else module
    plans = []
    scalar = Context(apart).scalar_bodies
    for graph in callees_first(apart, apart.main()):
        if graph not in scalar:
            plans.append(Plan(graph, list(_operators(graph, apart.format == "hlo"))))
    return Planned.of(apart, plans, "")


def _operators(graph: Graph, alone: bool) -> Iterable[Group]:
    """The nodes of each operator of the text as one kernel (``alone``: each node); what moves nothing is none."""
    users = graph.users()
    members: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node.op.name not in MOVES_NOTHING and not is_free(node):
            members.setdefault(node.index if alone else id(written(node)), []).append(node)
    for nodes in members.values():
        inside = set(nodes)
        inputs = list(dict.fromkeys(o for node in nodes for o in node.operands if o not in inside))
        outputs = [node for node in nodes if node is graph.root or any(user not in inside for user in users[node.index])]
        if any(node.op.kind not in (Kind.LEAF, Kind.TUPLE) for node in nodes):
            yield Group("whole", nodes, outputs or nodes[-1:], inputs)


def _calls(module: Module, apart: Planned) -> float:
    """Operators that Python calls: of TorchScript also views, which have no kernel."""
    if module.format != "torchscript":
        return apart.launches
    calls = Calls(module)
    return sum(
        calls.times[graph] * sum(1 for node in graph.nodes if node.op.name.startswith(("aten::", "quantized::")) and not node.synthetic)
        for graph in calls.order
    )


def _lifted(context: Context) -> tuple[Planned, dict[str, int]] | None:
    """The module with each fix made that brings something, planned again; None where that cannot be done."""
    edits: dict[Graph, list[Edit]] = {}
    count: Counter[str] = Counter()
    for rule in _rewriting(context.settings.compiler):
        for finding in rule().check(context):
            if isinstance(finding, RuleFinding) and finding.edit is not None and finding.at and (finding.saves or {}).get("us"):
                edits.setdefault(finding.at[0], []).append(finding.edit)
                count[rule.code] += 1
    module = context.module
    made = module.derived()
    became: dict[Graph, Graph] = {}
    try:
        for graph in callees_first(module, module.main()):
            root = graph.result()
            if graph in edits or any(body in became for node in graph.nodes for body in node.bodies):
                became[graph] = built(graph.nodes, [root], together(edits.get(graph, [])), graph.name, became)
        main = became.get(module.main(), module.main())
        made.graphs = {graph.name: became.get(graph, graph) for graph in callees_first(module, module.main())}
        made.entry = main.name
        return Planned(made, context.settings.policy, context.settings.device), dict(count.most_common())
    except CANNOT:
        return None


def _rewriting(compiler: str) -> list[type[Rule]]:
    """The rules that make their fix on a copy, whether they are on or not."""
    return [rule for rule in all_rules() if rule.fix is Fix.REWRITE and (not rule.policies or compiler in rule.policies)]


def _sources(context: Context) -> list[str]:
    """The constants that the estimate is made of, each with its source."""
    machine, policy = context.machine, context.settings.policy
    told = [
        f"dispatch {machine.dispatch_us:g} us: {machine.sources.get('dispatch_us', '')}",
        f"launch {machine.launch_us:g} us: {machine.sources.get('launch_us', '')}",
    ]
    if machine.launch(policy) != machine.launch_us:
        told.append(f"launch under {policy} {machine.launch(policy):g} us: {machine.launch_source(policy)}")
    told.append(f"memory {machine.read_gbs:g} GB/s read, {machine.write_gbs:g} written: {machine.sources.get('read_gbs', '')}")
    for number, level in enumerate(machine.caches):
        told.append(f"kernels of up to {level.bytes / 2**20:.3g} MiB {level.gbs:g} GB/s: {machine.sources.get(f'caches.{number}', '')}")
    told.append(f"arithmetic {machine.vector_gflops:g} GFLOP/s: {machine.sources.get('vector_gflops', '')}")
    dtypes = sorted({_dtype(node) for graph in context.graphs for node in graph.nodes if node.op.kind is Kind.CONTRACTION} - {""})
    for dtype in dtypes:
        rate = machine.matrix_gflops.get(dtype, machine.matrix_gflops["f32"])
        source = machine.sources.get(f"matrix_gflops.{dtype}", f"as f32: {machine.sources.get('matrix_gflops.f32', '')}")
        told.append(f"products of {dtype} {rate:g} GFLOP/s: {source}")
    return told


def _dtype(node: Node) -> str:
    type = node.operands[0].type if node.operands else None
    return type.dtype.name if isinstance(type, TensorType) else ""

