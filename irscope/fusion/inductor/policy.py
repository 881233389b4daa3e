"""The policy ``inductor``: what torch.compile fuses on a CPU, decision by decision, in the words in which its scheduler logs them.

Any graph is judged through its primitives; operators of TorchScript are told by their own names. torch 2.13's C++ backend is followed,
with default settings and static shapes.
"""
from __future__ import annotations

from typing import NamedTuple

from irscope.expand import expand
from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.fusion.inductor.cpp import Cpp
from irscope.fusion.inductor.limits import CPU, Limits
from irscope.fusion.inductor.lowering import lowered
from irscope.fusion.inductor.program import Program
from irscope.fusion.inductor.reasons import verdicts
from irscope.fusion.inductor.report import Report
from irscope.fusion.inductor.scheduler import Scheduler
from irscope.fusion.inductor.state import State
from irscope.fusion.inductor.units import program_of
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.plan import Plan, applied_bodies
from irscope.graph import Graph, Module, callees_first

VERSION = "torch-2.13"
"""The release whose decisions these are."""


class Prepared(NamedTuple):
    """A program, what lowering made of it, and the scheduler that has it."""

    program: Program
    state: State
    scheduler: Scheduler

    def plan(self) -> Plan:
        """What the scheduler has made so far."""
        report = Report(self.program, self.state, self.scheduler)
        return Plan(self.program.graph, report.groups(), list(verdicts(report)), self.scheduler.joined)


class InductorPolicy:
    """See the module."""

    name = "inductor"
    version = f"inductor@{VERSION}"
    dialect = TORCHSCRIPT
    elsewhere = "it decides as torch.compile does on a CPU; for a GPU run the program with TORCH_LOGS=fusion, and give that log by " \
        "--fusion-log (docs/fusion/logs.md), or ask --policy xla-gpu"
    """What to do for devices that are not simulated."""
    def plan(self, graph: Graph) -> Plan:
        """The kernels of one primitive graph."""
        prepared = self.prepared(graph)
        prepared.scheduler.run()
        return prepared.plan()

    def prepared(self, graph: Graph, limits: Limits = CPU) -> Prepared:
        """A primitive graph, lowered, before anything is joined."""
        program = program_of(graph)
        state = lowered(program, limits)
        inputs: dict[str, Buffer] = {}
        for buffer in state.buffers:
            for read in (*buffer.reads, *(load for load, _ in buffer.expression.loads)):
                if read.kind == "input":
                    inputs[read.name] = read
        return Prepared(program, state, Scheduler(state.buffers, inputs.values(), state.results, limits, Cpp(limits)))

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for the primitives of each computation that runs."""
        # HLO may be inlined further; what is made of other formats is expanded all the way.
        primitive = module if module.is_primitive and not module.dialect.primitive else expand(module, outline=True)
        applied = applied_bodies(primitive)
        return [self.plan(graph) for graph in callees_first(primitive, primitive.main()) if graph not in applied]

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """What about this text torch.compile would see otherwise."""
        if module.dialect is not self.dialect:
            return [f"{module.format} operators stand in for those of PyTorch"]
        return []


POLICY = InductorPolicy()
