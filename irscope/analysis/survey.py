"""All facts about one module in one place; each is computed once, on first use."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial

from irscope.analysis.by_graph import outline_by_graph
from irscope.analysis.by_scope import outline_by_scope
from irscope.analysis.calls import Calls
from irscope.analysis.cost import Known, ModuleCosts, Totals, Traffic, estimate
from irscope.analysis.levels import Levels, levels
from irscope.analysis.memory import MemoryUse
from irscope.analysis.naming import Naming
from irscope.analysis.outline import Section
from irscope.analysis.parts import part
from irscope.analysis.regions import outline_by_region
from irscope.analysis.scopes import Scope, scopes
from irscope.graph import Graph, Kind, Module, Node, TensorType, Type, Typing, bytes_of
from irscope.graph.numbering import STEPS, Numbering

# Below this share of named operations the scopes are less informative than the computations.
ENOUGH_SCOPES = 0.4


@dataclass(slots=True)
class EqualWork:
    """Nodes that do the same on the same shapes: the first of them, their number (``places``), and sums over all their runs (``times``)."""

    graph: Graph
    node: Node
    time: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    times: float = 0.0
    places: int = 0


class Survey:
    """The facts about a module. ``survey.costs``, ``survey.memory``, ``survey.outline`` and so on."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.naming = Naming()
        self._kinds: dict[Graph, list[int]] = {}
        self._outlines: dict[Graph, Section] = {}
        # These caches hold no reference to the survey, so that it is freed as soon as nothing uses it, without the cycle collector.
        self._part = cache(lambda graph: Survey(part(module, graph)))
        self.scopes: Callable[[Graph], list[Scope]] = cache(partial(scopes, module))
        """The scope of each node of a graph, by index."""
        self.users: Callable[[Graph], list[list[Node]]] = cache(Graph.users)
        """The users of each node of a graph, by index."""
        self.levels: Callable[[Graph], Levels] = cache(levels)

    @cached_property
    def entry(self) -> Graph | None:
        """The graph that runs; None when the text has none."""
        return self.module.graphs.get(self.module.entry)

    @cached_property
    def calls(self) -> Calls:
        return Calls(self.module)

    @cached_property
    def costs(self) -> ModuleCosts:
        return ModuleCosts(self.calls, self._known)

    @cached_property
    def traffic(self) -> Traffic:
        """The traffic of single nodes, for queries about a few of them."""
        return Traffic(self._known)

    @cached_property
    def _known(self) -> Known | None:
        if self.module.dialect.typing is not Typing.EXECUTED or self.module.is_primitive:
            return None
        from irscope.analysis.program_run import known_of

        return known_of(self.module)

    @cached_property
    def memory(self) -> MemoryUse:
        return MemoryUse(self.calls, self.costs)

    @cached_property
    def structure(self) -> Numbering:
        """Which nodes do the same work, and which graphs differ only in names."""
        return Numbering(STEPS, self.calls.order)

    @cached_property
    def totals(self) -> Totals:
        """Sums over one run of the entry."""
        return self.costs.totals[self.entry] if self.entry is not None else Totals()

    @cached_property
    def equal_work(self) -> list[EqualWork]:
        """The kernels and other nodes that do work, grouped by what they do. Nodes of unknown cost are left out."""
        found: dict[int, EqualWork] = {}
        for graph in filter(self.calls.runs_alone, self.calls.order):
            cost, times = self.costs.graphs[graph], self.calls.times[graph]
            for i, kind in enumerate(self.structure.nodes[graph]):
                flops, moved = cost.flops[i], cost.read[i] + cost.written[i]
                if cost.is_open[i] or not (flops or moved):
                    continue
                work = found.get(kind)
                if work is None:
                    work = found[kind] = EqualWork(graph, graph.nodes[i])
                work.time += estimate(flops, moved) * times
                work.flops += flops * times
                work.bytes += moved * times
                work.times += times
                work.places += 1
        return list(found.values())

    @cached_property
    def n_nodes(self) -> int:
        """The statements of the text, over all graphs, reachable from the entry or not."""
        return sum(not node.synthetic for graph in self.module.graphs.values() for node in graph.nodes)

    @cached_property
    def ops(self) -> Counter[str]:
        """The statements of the text by operator."""
        return Counter(node.op.name for graph in self.module.graphs.values() for node in graph.nodes if not node.synthetic)

    @cached_property
    def dtypes(self) -> Counter[str]:
        """Bytes of all values that the entry reaches, by element type (without reducers)."""
        counted: dict[int, tuple[Type, int]] = {}
        for graph in self.calls.order:
            if graph in self.calls.scalar:
                continue
            for node in graph.nodes:
                key = id(node.type)
                counted[key] = node.type, counted[key][1] + 1 if key in counted else 1
        found: Counter[str] = Counter()
        for type, n in counted.values():
            for leaf in type.leaves():
                if isinstance(leaf, TensorType):
                    found[leaf.dtype.name] += n * leaf.bytes
        return found

    @cached_property
    def outline(self) -> Section:
        """The most informative outline: by the user's scopes where the text names enough of them, otherwise by computation."""
        return self.scope_outline if self.has_scopes else self.graph_outline

    @cached_property
    def has_scopes(self) -> bool:
        """Whether enough operations have a scope of at least two components, or several different scopes."""
        if self.entry is None:
            return False
        steps = named = 0
        different: set[Scope] = set()
        for graph in self.calls.order:
            if graph in self.calls.scalar:
                continue
            for node, scope in zip(graph.nodes, self.scopes(graph), strict=True):
                if node.op.kind is not Kind.LEAF:
                    steps += 1
                    named += bool(scope)
                    different.add(scope)
        return named >= ENOUGH_SCOPES * steps and len(different) > 2

    @cached_property
    def scope_outline(self) -> Section:
        title = self.module.entry or self.module.name
        return outline_by_scope(title, self.calls.order[::-1], self.costs, self.structure, self.scopes)

    @cached_property
    def graph_outline(self) -> Section:
        if self.entry is None:
            return Section(self.module.name, "module")
        return outline_by_graph(self.entry.name, self.entry, self.costs, self.structure)

    def outline_from(self, graph: Graph) -> Section:
        """The outline of one graph and all that it calls."""
        about = self.reaching(graph)
        return outline_by_graph(graph.name, graph, about.costs, about.structure)

    def reaching(self, graph: Graph) -> Survey:
        """The survey that covers a graph: this one, or, if the entry does not reach the graph, one of the part of the module below it."""
        if graph in self.calls.times or graph not in self.module.graphs.values():
            return self
        return self._part(graph)

    def outline_of(self, graph: Graph) -> Section:
        """The outline of the nodes of one graph with its bodies closed, for drawing it."""
        if graph not in self._outlines:
            self._outlines[graph] = outline_by_region(graph, self.reaching(graph).costs, self.kinds(graph), self.scopes(graph), self.naming)
        return self._outlines[graph]

    def kinds(self, graph: Graph) -> list[int]:
        """For each node of a graph, by index, a number that similar nodes share."""
        if graph not in self._kinds:
            self._kinds[graph] = self.naming.kinds(graph, self.reaching(graph).structure.nodes[graph])
        return self._kinds[graph]

    def parameter_bytes(self) -> int:
        """Bytes of the parameters of the entry."""
        return sum(bytes_of(p.type) for p in self.entry.params) if self.entry is not None else 0
