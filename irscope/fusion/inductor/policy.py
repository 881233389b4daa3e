"""The policy ``inductor``: what torch.compile fuses on a CPU, decision by decision, in the words of its scheduler's log.

Any graph is judged through its primitives; operators of TorchScript are reported by their own names. The policy follows the C++ backend of
one release of torch, with default settings and static shapes.
"""
from __future__ import annotations

from typing import NamedTuple

from irscope.expand import expand
from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.fusion.inductor import releases
from irscope.fusion.inductor.differing import differ
from irscope.fusion.inductor.limits import CPU, Limits
from irscope.fusion.inductor.lowering import lowered
from irscope.fusion.inductor.program import Program
from irscope.fusion.inductor.reasons import verdicts
from irscope.fusion.inductor.releases import LATEST, Release, shown_release
from irscope.fusion.inductor.report import Report
from irscope.fusion.inductor.scheduler import Scheduler
from irscope.fusion.inductor.state import State
from irscope.fusion.inductor.units import program_of
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.plan import Plan, applied_bodies
from irscope.graph import Graph, Module, callees_first

MAX_COMPARED = 5_000
"""Primitives up to which the releases are compared on a text."""


class PreparedProgram(NamedTuple):
    """A program, its lowered form, and its scheduler."""

    program: Program
    state: State
    scheduler: Scheduler

    def plan(self) -> Plan:
        """The plan of the scheduler's current state."""
        report = Report(self.program, self.state, self.scheduler)
        groups = report.groups()
        edges = list(verdicts(report))
        return Plan(self.program.graph, list(groups.values()), edges, self.scheduler.joined, report.calls(groups))


class InductorPolicy:
    """Inductor's CPU fusion of one release as a policy."""

    name = "inductor"
    dialect = TORCHSCRIPT
    compares_primitives = True
    elsewhere = "it decides as torch.compile does on a CPU; for a GPU run the program with TORCH_LOGS=fusion, and pass that log to " \
        "--fusion-log (docs/fusion/logs.md), or use --policy xla-gpu"
    """The help for devices that are not simulated."""

    def __init__(self, release: Release = LATEST) -> None:
        self.release = release
        self.version = f"inductor@{release.name}"

    def plan(self, graph: Graph) -> Plan:
        """The kernels of one primitive graph."""
        prepared = self.prepared(graph)
        prepared.scheduler.run()
        return prepared.plan()

    def prepared(self, graph: Graph, limits: Limits = CPU) -> PreparedProgram:
        """Lower a primitive graph, before any joins."""
        program = program_of(graph, self.release)
        state = lowered(program, limits)
        inputs: dict[str, Buffer] = {}
        for buffer in state.buffers:
            for read in (*buffer.reads, *(load for load, _ in buffer.expression.loads)):
                if read.kind == "input":
                    inputs[read.name] = read
        return PreparedProgram(program, state, Scheduler(state.buffers, inputs.values(), state.results, limits))

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for the primitives of each computation that runs."""
        # An expanded module of another format has primitives only; HLO may still have calls to inline.
        primitive = module if module.is_primitive and not module.dialect.primitive else expand(module, outline=True)
        applied = applied_bodies(primitive)
        return [self.plan(graph) for graph in callees_first(primitive, primitive.main()) if graph not in applied]

    def compares(self, module: Module) -> bool:
        """Whether a module is small enough to compare the releases on it."""
        return sum(len(graph.nodes) for graph in module.graphs.values()) <= MAX_COMPARED

    def plans_of_releases(self, module: Module) -> dict[str, list[Plan]]:
        """The plans of all releases of a module in primitives; none where releases cannot differ on it."""
        if not any(differ(graph) for graph in module.graphs.values()):
            return {}
        return {name: policy.plan_module(module) for name, policy in RELEASES.items()}

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """Where torch.compile would see a different program."""
        if module.dialect is not self.dialect:
            return [f"{module.format} operators stand in for those of PyTorch"]
        return []


RELEASES = {name: InductorPolicy(release) for name, release in releases.RELEASES.items()}
"""The policy of each release, by its name; the newest first."""


class InductorByText(InductorPolicy):
    """Inductor's CPU fusion, of the release that a text shows, else of the newest."""

    def of(self, module: Module) -> InductorPolicy:
        """The policy of that release."""
        return RELEASES[shown_release(module).name]


POLICY = InductorByText()
