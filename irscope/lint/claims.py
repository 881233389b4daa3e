"""What a change of the graph would save: applies it to a copy, plans the copy again, and takes the difference.

The copy contains only the region around the change (:mod:`irscope.lint.regions`), so that a graph of 100,000 operations is not planned
again for each finding; equal regions with equal changes, as in the layers of a model, are planned once.
"""

from __future__ import annotations

from dataclasses import dataclass

from irscope.fusion import Plan, compiler_of
from irscope.graph import Graph, Module, Node, bodies_of
from irscope.graph.numbering import Numbering
from irscope.graph.walk import callees_first_of
from irscope.lint.edits import Edit, built, with_graphs
from irscope.lint.machine import Machine
from irscope.lint.planned import Planned
from irscope.lint.regions import ALIKE, Region, Surroundings, places
from irscope.ops.faults import TypeFault
from irscope.ops.module_attributes import HloModule
from irscope.passes import pass_named
from irscope.source import UserError

MAX_REGIONS = 1000
"""Different surroundings that are planned in one module; what is found beyond them claims nothing."""

LARGE = 500
"""Nodes of a region that is large: four times what regions grow to, so that single kernels must be."""
MAX_LARGE = 20_000
"""Nodes in large regions that are planned in one module; 1,500 nodes take inductor's rules a third of a second."""
MAX_APART = 50_000
"""Nodes, with those that they call, of the graphs of one module that are planned separately: a nested call plans all that it calls."""

TIDY = ("irscope", "xla-cpu", "xla-gpu")
"""Policies of compilers that simplify a graph before they fuse: they merge equal nodes and remove unused ones."""
TIDIED = ("simplify-algebra", "share-equal", "simplify-algebra", "remove-dead")
"""How irscope's compiler does it (backends/model.py); XLA's algebraic simplifier, CSE and DCE do as much. In text from before optimisation
no saving is claimed for what they do themselves: 1,074 us had been, for a product that the text had twice (docs/lint/evidence.md)."""

CANNOT = (UserError, TypeFault)
"""The errors that the expansion and the policy raise if they do not support a part of a text."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Kernels, bytes of traffic and microseconds that a change saves (negative: adds). ``least`` and ``most`` are the range of the time."""

    kernels: float
    bytes: float
    us: float
    least: float = 0.0
    most: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the change saves anything."""
        return self.us > 0

    def times(self, n: float) -> Claim:
        """The claim if its graph runs ``n`` times."""
        return Claim(self.kernels * n, self.bytes * n, self.us * n, self.least * n, self.most * n)

    @property
    def saves(self) -> dict[str, float]:
        """The claim as a finding's ``saves``; a change that costs something saves nothing of it."""
        saves = {"us": round(max(0.0, self.us), 3), "bytes": max(0.0, self.bytes), "kernels": max(0.0, self.kernels)}
        return saves | ({"us_least": round(self.least, 3), "us_most": round(self.most, 3)} if self.us > 0 and self.most > 0 else {})


@dataclass(frozen=True, slots=True)
class Cost:
    """Kernels and bytes of a plan; its microseconds with slower memory, with slower arithmetic, and on the machine as it is."""

    kernels: float
    bytes: float
    us: tuple[float, ...]

    def less(self, after: Cost, machine: Machine) -> Claim:
        """What a change saves; no time where one of the machines loses by it."""
        gains = [mine - its for mine, its in zip(self.us, after.us, strict=True)]
        central = gains[-1]
        fewer, less = self.kernels - after.kernels, self.bytes - after.bytes
        if central <= 0 or min(gains) < 0:
            return Claim(fewer, less, min(0.0, central))
        return Claim(fewer, less, central, min(central / machine.fast, *gains), max(central * machine.slow, *gains))


class Claims:
    """The claims of one module under a policy for one machine. ``whole`` is the plan of all of it."""

    def __init__(self, whole: Planned, machine: Machine) -> None:
        self.whole, self.machine = whole, machine
        self._as_written = not HloModule.of(whole.module).is_scheduled and not whole.fusion_of
        self.tidies = self._as_written and compiler_of(whole.policy) in TIDY
        self._plans = {plan.graph.name: plan for plan in whole.plans}
        self._surroundings: dict[Graph, Surroundings | None] = {}
        self._numbering = Numbering(ALIKE)
        self._shapes: dict[object, int] = {}  # of regions, numbered
        self._last: tuple[Region, int] | None = None
        self._known: dict[object, Claim | None] = {}
        self._before: dict[object, Cost] = {}
        self._large = 0
        self._apart_left = MAX_APART
        self._sizes: dict[Graph, int] = {}

    def of(self, graph: Graph, users: list[list[Node]], edit: Edit) -> Claim | None:
        """What an edit saves in one run of a graph; None if that is unknown. ``users`` are those of the graph's nodes."""
        if graph not in self._surroundings:
            plan = self._plans.get(graph.name) or self._apart(graph)
            self._numbering.graph(graph)
            numbers = self._numbering.nodes[graph]
            self._surroundings[graph] = Surroundings(graph, users, plan, numbers) if plan is not None else None
        surroundings = self._surroundings[graph]
        if surroundings is None or (self._large > MAX_LARGE and surroundings.largest(edit.nodes) > LARGE):
            return None
        region = surroundings.around(edit.nodes)
        if self._last is None or self._last[0] is not region:
            self._last = region, self._shapes.setdefault(surroundings.shape(region), len(self._shapes))
        shape = self._last[1]
        key = shape, places(region, edit.nodes)
        if key not in self._known:
            self._known[key] = self._planned(region, edit, shape) if len(self._known) < MAX_REGIONS and self._fits(region) else None
        return self._known[key]

    def _fits(self, region: Region) -> bool:
        """Whether a region is small enough, or one of the few large ones allowed: kernels of thousands of nodes are not replanned often."""
        if len(region.nodes) <= LARGE:
            return True
        self._large += len(region.nodes)
        return self._large <= MAX_LARGE

    def _apart(self, graph: Graph) -> Plan | None:
        """The plan of a graph that was inlined into its caller, planned separately; None if that, with others before it, is too much."""
        self._apart_left -= self._size(graph)
        if self._apart_left < 0:
            return None
        try:
            return Planned(with_graphs(self.whole.module, [graph]), self.whole.policy, self.whole.device).plans[-1]
        except CANNOT:
            return None

    def _size(self, graph: Graph) -> int:
        """The nodes of a graph with its calls inlined."""
        for each in callees_first_of([graph], self._sizes):
            self._sizes[each] = len(each.nodes) + sum(self._sizes.get(body, 0) for body in bodies_of(each))
        return self._sizes[graph]

    def _planned(self, region: Region, edit: Edit, key: int) -> Claim | None:
        """The difference of two plans; ``key`` is the number of the region's shape."""
        tidy = self._as_written and not edit.apart
        try:
            if (key, tidy) not in self._before:
                self._before[key, tidy] = self._costs(self._plan(region, None, tidy))
            before, after = self._before[key, tidy], self._costs(self._plan(region, edit, tidy))
        except CANNOT:
            return None
        return before.less(after, self.machine)

    def _costs(self, planned: Planned) -> Cost:
        return Cost(planned.kernels, planned.traffic, tuple(planned.us(machine) for machine in (*self.machine.variants(), self.machine)))

    def _plan(self, region: Region, edit: Edit | None, tidy: bool) -> Planned:
        part = with_graphs(self.whole.module, [built(region.nodes, region.results, edit, region.graph.name)])
        return Planned(tidied(part, self.whole.policy) if tidy else part, self.whole.policy, self.whole.device)


def tidied(module: Module, policy: str) -> Module:
    """A module after the simplifications that the policy's compiler makes before fusion."""
    for name in TIDIED if compiler_of(policy) in TIDY else ():
        module = pass_named(name).run(module)
    return module
