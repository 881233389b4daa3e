"""What a reader of a program looks for first: the costliest kernel, the largest copy, leaks of precision, the costliest unfused edge."""
from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import estimate, is_kernel
from irscope.analysis.levels import IDLE
from irscope.analysis.survey import Survey
from irscope.graph import Graph, Node, TensorType, bytes_of
from irscope.ops import hlo, sets
from irscope.ops.attributes import GetTupleElement

DOUBLE = frozenset(("f64", "c128"))
_CASTS = sets.hlo("convert") | sets.relay("cast")
_REORDERS = hlo.named("copy transpose reverse")
_LOOKED_THROUGH = hlo.named("bitcast get-tuple-element opt-barrier")


@dataclass(frozen=True, slots=True)
class Highlight:
    """A node, or the two ends of an edge, that stand out. The figures are of one run; ``times`` is how often it runs."""

    label: str
    graph: Graph
    nodes: tuple[Node, ...]
    bytes: float
    flops: float = 0.0
    times: float = 1.0
    share: float = 0.0
    """Of the estimated time of the whole program."""


@dataclass(frozen=True, slots=True)
class Leak:
    """Values that leave the precision of the program: ``f64`` where no input is, or conversions from one float to another.

    ``members`` are in the order of the text; ``bytes`` are the sum of their sizes.
    """

    label: str
    members: tuple[tuple[Graph, Node], ...]
    bytes: int

    @property
    def largest(self) -> tuple[Graph, Node]:
        """The largest member; of equal ones the first."""
        return max(self.members, key=lambda member: bytes_of(member[1].type))


@dataclass(frozen=True, slots=True)
class Highlights:
    """The result of :func:`highlights`. Each list begins with its most important entry; it is empty if the program has none."""

    kernels: list[Highlight] = field(default_factory=list)
    copies: list[Highlight] = field(default_factory=list)
    leaks: list[Leak] = field(default_factory=list)
    edges: list[Highlight] = field(default_factory=list)

    @property
    def singles(self) -> list[Highlight]:
        """The highlights that name one kernel, copy or edge."""
        return [*self.kernels, *self.copies, *self.edges]


def highlights(survey: Survey) -> Highlights:
    """The kernels, copies, leaks and edges of a program that a first view names. Linear in its nodes.

    A kernel is ranked by its estimated time, its FLOPs and its traffic over all runs. A copy counts wherever it is, a data movement
    that is a kernel of its own too. An edge is a value that one kernel writes and another reads, of a compiled program.
    """
    kernels = _Most(survey)
    for graph in survey.calls.order:
        if survey.calls.runs_alone(graph):
            kernels.visit(graph)
    edges = list(_edges(survey)) if survey.totals.fusions else []
    named = [*kernels.named("costliest kernel", "most FLOPs", "most traffic"), *kernels.together()]
    return Highlights(named, _copies(survey, kernels), _leaks(survey), edges)


def drawn_node(survey: Survey, graph: Graph, node: Node, drawn: Graph) -> Node | None:
    """The node of the graph ``drawn`` that computes a node of ``graph``: itself, or what calls it; None where none does."""
    while graph is not drawn:
        callers = survey.calls.callers.get(graph)
        if not callers:
            return None
        graph, node = callers[0]
    return node


class _Most:
    """For each measure, the kernel with the largest figure; of equal ones the first."""

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.whole = estimate(survey.totals.flops, survey.totals.bytes) or 1.0
        self.most: dict[str, tuple[float, Graph, Node]] = {}

    def visit(self, graph: Graph) -> None:
        """Measure the kernels of a graph."""
        cost, times = self.survey.costs.graphs[graph], self.survey.calls.times[graph]
        most = dict.fromkeys(("costliest kernel", "most FLOPs", "most traffic", "largest data movement"), (0.0, -1))
        for node in graph.nodes:
            i = node.index
            flops, moved = cost.flops[i], cost.read[i] + cost.written[i]
            if cost.is_open[i] or not (flops or moved):
                continue
            time = estimate(flops, moved)
            if time > most["costliest kernel"][0]:
                most["costliest kernel"] = time, i
            if flops > most["most FLOPs"][0]:
                most["most FLOPs"] = flops, i
            if moved > most["most traffic"][0]:
                most["most traffic"] = moved, i
            if moved > most["largest data movement"][0] and _only_moves(node):
                most["largest data movement"] = moved, i
        for label, (figure, i) in most.items():
            if i >= 0 and figure * times > self.most.get(label, (0.0,))[0]:
                self.most[label] = figure * times, graph, graph.nodes[i]

    def together(self) -> list[Highlight]:
        """The equal kernels that take the most time in total, named by the first; nothing if there is only one of them."""
        most = max(self.survey.equal_work, key=lambda work: work.time, default=None)
        if most is None or most.places < 2:
            return []
        one = self._highlight("costliest together", most.graph, most.node)
        return [replace(one, times=most.times, share=min(1.0, most.time / self.whole))]

    def named(self, *labels: str) -> list[Highlight]:
        """The kernels of some measures, each once."""
        return list(_distinct(self._highlight(label, *self.most[label][1:]) for label in labels if label in self.most))

    def _highlight(self, label: str, graph: Graph, node: Node) -> Highlight:
        cost, times = self.survey.costs.graphs[graph], self.survey.calls.times[graph]
        flops, moved = cost.flops[node.index], cost.read[node.index] + cost.written[node.index]
        return Highlight(label, graph, (node,), moved, flops, times, min(1.0, estimate(flops, moved) * times / self.whole))


def _distinct(found: Iterable[Highlight]) -> Iterator[Highlight]:
    """Those that have any figure, each place once."""
    seen: set[tuple[Node, ...]] = set()
    for each in found:
        if each.nodes not in seen and (each.bytes or each.flops):
            seen.add(each.nodes)
            yield each


def _copies(survey: Survey, kernels: _Most) -> list[Highlight]:
    """The largest copy, the one that moves most over all runs, and the largest kernel that only moves data."""
    found = [(bytes_of(node.type), survey.calls.times[graph], graph, node)
             for graph in survey.calls.order if graph not in survey.calls.scalar for node in graph.nodes if node.op is hlo.copy]
    chosen = []
    if found:
        most = {"largest copy": max(found, key=lambda copy: copy[0]), "most copied": max(found, key=lambda copy: copy[0] * copy[1])}
        chosen = [Highlight(label, graph, (node,), size, times=times) for label, (size, times, graph, node) in most.items()]
    return list(_distinct([*chosen, *kernels.named("largest data movement")]))


def _only_moves(node: Node) -> bool:
    """Whether a kernel transposes or copies, and computes nothing."""
    inside = _inside(node)
    return any(n.op in _REORDERS for n in inside) and all(n.op in _REORDERS or n.op.work in IDLE for n in inside)


def _inside(node: Node) -> Sequence[Node]:
    """The nodes that a kernel computes."""
    return node.bodies[0].nodes if is_fusion(node) and node.bodies else (node,)


def _leaks(survey: Survey) -> list[Leak]:
    entry = survey.entry
    if entry is None:
        return []
    given = {leaf.dtype.name for param in entry.params for leaf in param.type.leaves() if isinstance(leaf, TensorType)}
    unwanted = frozenset() if given & DOUBLE else DOUBLE
    found: dict[str, list[tuple[Graph, Node]]] = {}
    for graph in survey.calls.order[::-1]:
        if graph in survey.calls.scalar:
            continue
        for node in graph.nodes:
            if isinstance(node.type, TensorType) and (node.type.dtype.name in unwanted or node.op in _CASTS):
                label = _leak(node, node.type, unwanted)
                if label:
                    found.setdefault(label, []).append((graph, node))
    leaks = [Leak(label, tuple(members), sum(bytes_of(node.type) for _, node in members)) for label, members in found.items()]
    return sorted(leaks, key=lambda leak: (leak.label not in DOUBLE, -leak.bytes))


def _leak(node: Node, type: TensorType, unwanted: Container[str]) -> str:
    """The kind of leak that a value is: of an ``unwanted`` dtype, or a conversion between floats; empty for none."""
    if type.dtype.name in unwanted:
        return type.dtype.name
    source = node.operands[0].type if node.operands else None
    if not isinstance(source, TensorType) or source.dtype is type.dtype or source.dtype.name in unwanted:
        return ""
    return f"{source.dtype.name} -> {type.dtype.name}" if source.dtype.is_float and type.dtype.is_float else ""


def _edges(survey: Survey) -> Iterator[Highlight]:
    """The value of most bytes that goes from a kernel to another, and the same among kernels without a product."""
    most: dict[str, tuple[float, Highlight]] = {}
    products: dict[Node, bool] = {}
    for graph in survey.calls.order:
        if not survey.calls.runs_alone(graph):
            continue
        times = survey.calls.times[graph]
        for node in graph.nodes:
            if not is_kernel(node):
                continue
            for operand in node.operands:
                source, size = _written_by(operand)
                if source is None or not is_kernel(source):
                    continue
                labels = ["costliest unfused edge"]
                for end in (source, node):
                    if end not in products:
                        products[end] = _has_product(end)
                if not (products[source] or products[node]):
                    labels.append("costliest unfused edge without products")
                for label in labels:
                    if label not in most or size * times > most[label][0]:
                        most[label] = size * times, Highlight(label, graph, (source, node), size, times=times)
    yield from _distinct(most[label][1] for label in sorted(most))


def _written_by(value: Node) -> tuple[Node | None, int]:
    """The node that computes a value, looking through what renames it, and the bytes of the value."""
    size = bytes_of(value.type)
    taken: list[int] = []  # indices of the tuple elements that are still to be taken, that of the innermost tuple first
    while value.operands and (value.op in _LOOKED_THROUGH or (value.op is hlo.tuple and taken)):
        if value.op is hlo.tuple:
            number = taken.pop()
            if not 0 <= number < len(value.operands):
                return None, size
            value = value.operands[number]
            continue
        if value.op is hlo.get_tuple_element:
            taken.append(GetTupleElement.of(value).index)
        value = value.operands[0]
    return value, size


def _has_product(node: Node) -> bool:
    """Whether a kernel has work that compilers fuse only in part: a contraction, a call of a library, a collective."""
    return any(n.op.work in ("contraction", "custom", "collective", "control") for n in _inside(node))
