"""The policy ``xla-cpu``: what XLA's CPU compiler fuses, decision by decision, in the words in which it logs them.

The graph is looked at as it is written: XLA decides on the HLO that stands right before its ``fusion`` pass, with its layouts and the
order of its text. Every computation that runs is fused by itself, bodies of loops and branches included.
"""
from __future__ import annotations

from irscope.fusion.plan import Plan
from irscope.fusion.xla.cpu import run
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.stage import computations, remarks
from irscope.fusion.xla.told import from_text, opened, plan_of, taken_apart
from irscope.graph import Graph, Module
from irscope.graph.collector import collector_paused

VERSION = "jaxlib-0.10.2"
"""The release whose decisions these are; XLA changes them from month to month."""


class XlaCpuPolicy:
    """See the module."""

    name = "xla-cpu"
    version = f"xla-cpu@{VERSION}"

    def plan(self, graph: Graph) -> Plan:
        """The kernels of one graph."""
        plan = plan_of(graph, run(Computation.of(graph)))
        if any(opened(node) for node in graph.nodes):
            from_text(plan, run(taken_apart(graph)))
        return plan

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for every computation that runs; the bodies of fusions are told with the computation that has the fusion."""
        with collector_paused():
            return [self.plan(graph) for graph in computations(module)]

    def remarks(self, module: Module) -> list[str]:
        """See :mod:`irscope.fusion.xla.stage`."""
        return remarks(module, self.version, "before_fusion")


POLICY = XlaCpuPolicy()
