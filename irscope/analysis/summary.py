"""The summary of a module: figures that fit on one screen."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import estimate
from irscope.analysis.levels import critical_path, works
from irscope.analysis.outline import Section
from irscope.analysis.survey import Survey
from irscope.graph import Dialect, Graph, Module, Node, TensorType, TupleType, Type, bytes_of
from irscope.ops import hlo
from irscope.ops.module_attributes import HloModule, Interface

# Looking up the source lines of a million nodes is slow; a summary reads this many.
MAX_ASKED = 20_000
ASKED_OF_SECTION = 256


NO_PATHS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EntryValue:
    """An input or a result of the entry; ``path`` is the place of an input in the user's call, if the dump states it."""

    name: str
    type: Type
    bytes: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class Costly:
    """One of the costliest operations. The figures are sums over all runs of it and of equal nodes; ``times`` is the number of these runs.

    ``node`` is the first of the equal nodes; ``share`` is the share of the estimated time of the whole module.
    """

    node: Node
    graph: Graph
    flops: float
    bytes: float
    times: float
    share: float
    source: str


@dataclass(slots=True)
class Summary:
    """The result of :func:`summarise`. Sums are over one run of the entry; ``no_work`` is the reason where FLOPs are unknown."""

    name: str
    dialect: Dialect
    entry: str
    n_nodes: int
    n_graphs: int
    entry_nodes: int
    depth: int
    width: int
    critical_nodes: int
    critical_share: float
    inputs: list[EntryValue]
    outputs: list[EntryValue]
    parameter_bytes: int
    flops: float
    read: float
    written: float
    kernels: float
    fusions: float
    peak_bytes: int
    peak_at: str
    scheduled: bool
    ops: Counter[str]
    classes: Counter[str]
    dtypes: Counter[str]
    loops: list[tuple[str, int | None]]
    unknown_ops: Counter[str]
    costly: list[Costly] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    source_files: int = 0
    no_work: str = ""
    n_open: int = 0
    """The nodes whose work or traffic is not known; the sums are then too low."""

    @property
    def bytes(self) -> float:
        return self.read + self.written


def summarise(survey: Survey, n_costly: int = 5) -> Summary:
    """The figures of a module. Linear in its nodes."""
    module, calls, entry = survey.module, survey.calls, survey.entry
    totals = survey.totals
    depth = width = peak = critical = 0
    share = 0.0
    peak_at = ""
    if entry is not None:
        chain = survey.levels(entry)
        depth, width = chain.depth, chain.width
        critical, share = _critical(survey, entry)
        life = survey.memory.graphs[entry]
        peak = life.peak
        peak_at = entry.nodes[life.peak_at].name if life.peak_at >= 0 else ""
    scheduled = str(HloModule.of(module).is_scheduled).lower() == "true"
    loops: list[tuple[str, int | None]] = [(node.name, trips) for node, trips in calls.trips.items()]
    loops += [(node.name, None) for node in calls.open_loops]
    all_nodes = [node for graph in module.graphs.values() for node in graph.nodes if not node.synthetic]
    unknown = Counter(node.op.name for node in all_nodes if not node.op.known)
    sources, files = _sources(survey, all_nodes)
    n_open = sum(sum(survey.costs.graphs[graph].is_open) for graph in calls.order if calls.runs_alone(graph))
    return Summary(
        name=module.name, dialect=module.dialect, entry=module.entry, n_nodes=len(all_nodes), n_graphs=len(module.graphs),
        entry_nodes=len(entry.nodes) if entry is not None else 0, depth=depth, width=width,
        critical_nodes=critical, critical_share=share, inputs=inputs(entry, Interface.of(module).input_paths), outputs=outputs(entry),
        parameter_bytes=survey.parameter_bytes(), flops=totals.flops, read=totals.read, written=totals.written, kernels=totals.kernels,
        fusions=totals.fusions, peak_bytes=peak, peak_at=peak_at, scheduled=scheduled, ops=survey.ops,
        classes=Counter(node.op.work for node in all_nodes), dtypes=survey.dtypes, loops=loops, unknown_ops=unknown,
        costly=costliest(survey, n_costly), sources=sources, source_files=files,
        no_work=survey.costs.known.reason if survey.costs.known is not None else "", n_open=n_open)


def inputs(entry: Graph | None, paths: Mapping[str, str] = NO_PATHS) -> list[EntryValue]:
    """The parameters of the entry, in order."""
    return [EntryValue(p.name, p.type, bytes_of(p.type), paths.get(p.name, "")) for p in entry.params] if entry is not None else []


def outputs(entry: Graph | None) -> list[EntryValue]:
    """The results of the entry; a tuple element by element."""
    if entry is None or entry.root is None:
        return []
    root = entry.root
    if isinstance(root.type, TupleType):
        operands = root.operands if root.op is hlo.tuple and len(root.operands) == len(root.type.elements) else ()
        names = [o.name for o in operands] or [f"{root.name}#{i}" for i in range(len(root.type.elements))]
        return [EntryValue(name, type, bytes_of(type)) for name, type in zip(names, root.type.elements, strict=True)]
    return [EntryValue(root.name, root.type, bytes_of(root.type))]


def costliest(survey: Survey, n: int) -> list[Costly]:
    """The ``n`` costliest operations over all runs; nodes that do the same on the same shapes count together, and the first is named.

    Includes kernels and other nodes that do work; loops and calls are represented by their contents. Nodes of unknown cost have no rank.
    """
    whole = sum(work.time for work in survey.equal_work) or 1.0
    most = sorted(survey.equal_work, key=lambda work: -work.time)[:n]
    return [Costly(work.node, work.graph, work.flops, work.bytes, work.times, work.time / whole, source_line(survey.module, work.node))
            for work in most]


def source_line(module: Module, node: Node) -> str:
    """``file:line`` of the user's program for a node; for a fusion without one, that of its result."""
    stack = module.call_stack(node)
    if not stack and is_fusion(node) and node.bodies and node.bodies[0].root is not None:
        stack = module.call_stack(node.bodies[0].root)
    return f"{stack[0].file}:{stack[0].line}" if stack else ""


def section_source(module: Module, section: Section) -> str:
    """``file:line`` of the user's program that most nodes of a section come from, of the first ``ASKED_OF_SECTION`` that have one."""
    lines: Counter[str] = Counter()
    for node in islice(section.all_nodes(), ASKED_OF_SECTION):
        if node.op is not hlo.parameter and (line := source_line(module, node)):
            lines[line] += 1
    return lines.most_common(1)[0][0] if lines else ""


def describe_type(type: Type) -> str:
    """A type without layouts, for a first overview."""
    if isinstance(type, TensorType):
        return f"{type.dtype.name}[{','.join(map(str, type.shape))}]"
    if isinstance(type, TupleType):
        return "(" + ", ".join(describe_type(t) for t in type.elements) + ")"
    return str(type)


def _critical(survey: Survey, entry: Graph) -> tuple[int, float]:
    """How many working nodes the costliest chain of the entry has, and its share of the whole time."""
    costs = survey.costs
    times = [estimate(costs.flops(node, entry), costs.traffic(node, entry)) for node in entry.nodes]
    chain = critical_path(entry, times)
    whole = sum(times)
    return sum(works(node) for node in chain), sum(times[node.index] for node in chain) / whole if whole else 0.0


def _sources(survey: Survey, nodes: list[Node]) -> tuple[Counter[str], int]:
    step = max(1, -(-len(nodes) // MAX_ASKED))
    lines: Counter[str] = Counter()
    for node in nodes[::step]:
        stack = survey.module.call_stack(node)
        if stack:
            lines[f"{stack[0].file}:{stack[0].line}"] += 1
    return lines, len({line.rpartition(":")[0] for line in lines})
