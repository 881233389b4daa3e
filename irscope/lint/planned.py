"""The kernels that a fusion policy plans for a module, and their total cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from irscope.analysis.calls import BodyUse, body_use
from irscope.analysis.cost import is_free, is_unsized
from irscope.analysis.survey import Survey
from irscope.analysis.values import written as origin
from irscope.fusion import EdgeVerdict
from irscope.fusion.plan import Call, Group, Plan
from irscope.graph import Graph, Module, Node, bytes_of
from irscope.lint.edits import with_graphs
from irscope.lint.estimate import Works, scattered
from irscope.lint.flows import Flows, has_body
from irscope.lint.fusion import plans
from irscope.lint.machine import Machine
from irscope.ops import hlo
from irscope.source import UserError


def runs_bodies(node: Node) -> bool:
    """Whether a node does nothing itself but run its bodies: a loop, a branch, a call."""
    return bool(node.bodies) and body_use(node) is not BodyUse.ELEMENT and node.op is not hlo.fusion


@dataclass(frozen=True, slots=True)
class KernelCalls:
    """The calls of one run, of a compiler whose kernels run several loop nests: of ``generated`` kernels, with their ``loop_nests`` in all,
    and of ``extern`` ones, those of libraries."""

    generated: float
    extern: float
    loop_nests: float

    def describe(self) -> str:
        """``5 kernel calls: 3 of generated kernels, which run 9 loop nests, and 2 of extern kernels``."""
        return (f"{self.generated + self.extern:,.0f} kernel calls: {self.generated:,.0f} of generated kernels, which run "
                f"{self.loop_nests:,.0f} loop nests, and {self.extern:,.0f} of extern kernels")


class Planned:
    """The plans of a module under a policy, callees first: the last is the entry's.

    Raises UserError if the policy does not support the module, or if there are no plans.
    """

    def __init__(
        self, module: Module, policy: str, device: str | None = None, expanded: bool = False, made: list[Plan] | None = None
    ) -> None:
        """``made`` are existing plans of the module; by default the policy plans it."""
        self.module, self.policy, self.device = module, policy, device
        self.plans = plans(module, policy, device, expanded) if made is None else made
        if not self.plans:
            raise UserError(f"{policy} finds nothing in {module.name} that would be a kernel")
        # Caches: whether a kernel starts nothing, what it moves, its time on the last machine, and the time of one run on the last machine.
        self._idle: dict[Group, bool] = {}
        self._flow_of: dict[Group, tuple[float, float]] = {}
        self._us_of: dict[Group, tuple[Machine, float]] = {}
        self._timed: tuple[Machine, float] | None = None

    @cached_property
    def survey(self) -> Survey:
        """Facts about the graphs that the policy looked at: the text's own or their primitives."""
        return Survey(with_graphs(self.module, [plan.graph for plan in self.plans]))

    @cached_property
    def fusion_of(self) -> dict[int, Node]:
        """By the id of each node in the body of a fusion, that fusion; for the fusions of the graphs that the policy looked at."""
        return {
            id(inner): node
            for plan in self.plans
            for node in plan.graph.nodes
            if has_body(node)
            for inner in node.bodies[0].nodes
        }

    @cached_property
    def unsized(self) -> tuple[Graph, Node] | None:
        """A value of unknown size: fusion and traffic depend on it, so that no figure of the plan is known."""
        return next(((plan.graph, node) for plan in self.plans for node in plan.graph.nodes if is_unsized(node.type)), None)

    @cached_property
    def open_loop(self) -> tuple[Graph, Node] | None:
        """A loop that runs an unknown number of times, and counts as one trip: traffic and time are too low."""
        return next(((plan.graph, node) for plan in self.plans for node in self.survey.calls.open_loops
                     if node.index < len(plan.graph.nodes) and plan.graph.nodes[node.index] is node), None)

    @property
    def kernels(self) -> int:
        """Kernels of the entry."""
        return self.plans[-1].kernels()

    def starts_nothing(self, group: Group) -> bool:
        """Whether a group starts no kernel: it only renames values, or runs bodies with kernels that count separately."""
        known = self._idle.get(group)
        if known is None:
            known = self._idle[group] = all(is_free(n) or origin(n).op is hlo.bitcast or self._runs(n) for n in group.nodes)
        return known

    def _runs(self, node: Node) -> bool:
        """Whether a node only runs bodies that have plans of their own."""
        return runs_bodies(node) and not self._bodies.isdisjoint(node.bodies)

    @cached_property
    def _bodies(self) -> set[Graph]:
        """The graphs that have a plan."""
        return {plan.graph for plan in self.plans}

    @cached_property
    def launches(self) -> float:
        """Kernels that one run starts: bodies of loops by their trips."""
        return self._in_one_run(self._launched)

    def _launched(self, plan: Plan) -> float:
        if plan.calls is not None:
            return float(sum(self._is_called(call) for call in plan.calls))
        return float(sum(not self.starts_nothing(group) for group in plan.groups))

    @cached_property
    def calls(self) -> KernelCalls | None:
        """The kernels of :attr:`launches` by kind; None if the policy makes a kernel of each group."""
        if self.plans[-1].calls is None:
            return None

        def sum_of(figure: Callable[[Call], float]) -> float:
            return self._in_one_run(lambda plan: sum((figure(call) for call in plan.calls or () if self._is_called(call)), 0.0))

        return KernelCalls(sum_of(lambda call: not call.extern), sum_of(lambda call: call.extern), sum_of(lambda call: call.nests))

    def _is_called(self, call: Call) -> bool:
        """Whether a call starts a kernel. One that only runs bodies does not: their kernels count separately."""
        return not call.groups or not all(self._runs(node) for group in call.groups for node in group.nodes)

    @cached_property
    def call_of(self) -> dict[Group, Call]:
        """The call that computes each group, if the policy states calls."""
        return {group: call for plan in self.plans for call in plan.calls or () for group in call.groups}

    @cached_property
    def _calls_of(self) -> dict[Node, set[Call]]:
        """The calls that compute each node of the text."""
        found: dict[Node, set[Call]] = {}
        for group, call in self.call_of.items():
            for node in group.nodes:
                found.setdefault(origin(node), set()).add(call)
        return found

    def in_one_call(self, first: Node, second: Node) -> bool:
        """Whether one kernel runs the loops of both nodes, one after the other."""
        return not self._calls_of.get(origin(first), set()).isdisjoint(self._calls_of.get(origin(second), ()))

    @cached_property
    def traffic(self) -> float:
        """Bytes that the kernels read and write in one run: bodies of loops by their trips, of branches the one that moves most."""
        return self._in_one_run(lambda plan: sum(self.moved(plan.graph, group) for group in plan.groups))

    def moved(self, graph: Graph, group: Group) -> float:
        """Bytes that one kernel reads and writes; a group that only runs bodies moves nothing itself."""
        return sum(self.flow(graph, group))

    def flow(self, graph: Graph, group: Group) -> tuple[float, float]:
        """Bytes that one kernel reads, and that it writes. Kernels that write one value piece by piece share its bytes."""
        known = self._flow_of.get(group)
        if known is None:
            read, written = (0.0, 0.0) if self.starts_nothing(group) else self._flow(graph, group)
            pieces = max((self._writers.get(node, 1) for node in group.outputs), default=1) if self._writers and not group.aside else 1
            known = self._flow_of[group] = (read / pieces, written / pieces)
        return known

    @cached_property
    def _writers(self) -> Counter[Node]:
        """How many kernels write each value, where several do."""
        found = Counter(node for plan in self.plans for group in plan.groups for node in group.outputs if node not in group.aside)
        return Counter({node: n for node, n in found.items() if n > 1})

    def _flow(self, graph: Graph, group: Group) -> tuple[float, float]:
        fusions = {self.fusion_of.get(id(node)) for node in group.nodes} if self.fusion_of else {None}
        if len(group.nodes) == 1 or (len(fusions) == 1 and None not in fusions):
            # A kernel that the text has already: what a policy makes of it are the nodes of the fusion's body.
            node = fusions.pop() or group.nodes[0]
            if not (node.index < len(graph.nodes) and graph.nodes[node.index] is node):
                # It was inlined from another graph, whose costs are not those of this one.
                return float(sum(bytes_of(operand.type) for operand in node.operands)), float(bytes_of(node.type))
            return self.survey.traffic.of(node) if graph in self.survey.calls.times else (0.0, 0.0)
        return self._flows.read(group), self._flows.written(group)

    @cached_property
    def _flows(self) -> Flows:
        return Flows(dict.fromkeys(self.fusion_of.values()))

    def us(self, machine: Machine) -> float:
        """The estimated time of one run on a machine: all kernels one after the other, loops by their trips, of branches the longest."""
        if self._timed is None or self._timed[0] is not machine:
            works = Works(machine, self.policy)
            self._timed = (machine, self._in_one_run(lambda plan: self._plan_us(plan, works)))
        return self._timed[1]

    def _plan_us(self, plan: Plan, works: Works) -> float:
        """The kernels of one graph, one after the other; those that compute no node of it only start."""
        copies = sum(not call.groups for call in plan.calls or ())
        return sum(self.kernel_us(plan.graph, group, works) for group in plan.groups) + copies * works.machine.launch(self.policy)

    def _in_one_run(self, of: Callable[[Plan], float]) -> float:
        """The sum over all graphs: bodies of loops count by their trips, of the ways of a branch the one with the largest sum."""
        sums: dict[Graph, float] = {}
        trips = self.survey.calls.trips
        for plan in self.plans:
            total = of(plan)
            for node in plan.graph.nodes:
                if node.bodies and runs_bodies(node):
                    ways = [sums.get(body, 0.0) for body in node.bodies]
                    branch = body_use(node) is BodyUse.BRANCH
                    total += max(ways) if branch else sum(ways) * trips.get(node, 1)
            sums[plan.graph] = total
        return sums[self.plans[-1].graph]

    def kernel_us(self, graph: Graph, group: Group, works: Works) -> float:
        """The estimated time of one group: its kernel starts, and then moves bytes or computes, whichever takes longer.

        Of the groups of one kernel the first one bears the start.
        """
        known = self._us_of.get(group)
        if known is None or known[0] is not works.machine:
            known = self._us_of[group] = (works.machine, self._one_kernel_us(graph, group, works))
        return known[1]

    def _one_kernel_us(self, graph: Graph, group: Group, works: Works) -> float:
        if self.starts_nothing(group):
            return 0.0
        read, written = self.flow(graph, group)
        read += sum(scattered(node) for node in group.nodes)
        computing = sum(works.us(node) * share for node, share in self._flows.wanted(group).items() if node not in group.aside)
        call = self.call_of.get(group)
        starts = call is None or call.groups[0] is group
        return (works.machine.launch(self.policy) if starts else 0.0) + max(works.machine.move_us(read, written), computing)

    def costliest(self, n: int = 3) -> list[tuple[Group, float]]:
        """The kernels of the entry that move most."""
        plan = self.plans[-1]
        moved = [(group, self.moved(plan.graph, group)) for group in plan.groups]
        return sorted(moved, key=lambda pair: -pair[1])[:n]

    def apart(self) -> Counter[str]:
        """How many edges between two kinds of operators go through memory: ``dot -> add``."""
        found: Counter[str] = Counter()
        for plan in self.plans:
            found.update(map(_operators, plan.unfused()))
        return found

    def reasons(self, pair: str) -> str:
        """Why the edges of such a pair go through memory: the first reason that is given."""
        for plan in self.plans:
            for verdict in plan.unfused():
                if _operators(verdict) == pair:
                    return verdict.cause or verdict.reason or verdict.rule
        return ""


def _operators(verdict: EdgeVerdict) -> str:
    """The operators at both ends: ``dot -> add``."""
    return f"{verdict.producer.op.name} -> {verdict.consumer.op.name}"
