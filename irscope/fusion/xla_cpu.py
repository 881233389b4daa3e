"""The policy ``xla-cpu``: what XLA's CPU compiler fuses, decision by decision, in the words in which it logs them.

XLA decides on the HLO that stands right before its ``fusion`` pass, with its layouts and the order of its text; such a text is looked at as
it is written. A text from before XLA's own rewriting is rewritten first (:mod:`irscope.fusion.canonicalise`), and the kernels are told in
its own operators. Every computation that runs is fused by itself, bodies of loops and branches included.
"""
from __future__ import annotations

from irscope.fusion.canonicalise import Canonical, canonicalise, early_signs, is_rewritten, may_be_early, told_in_text, unfollowed
from irscope.fusion.plan import Plan
from irscope.fusion.xla.cpu import run
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.stage import computations, early_remarks, remarks
from irscope.fusion.xla.told import from_text, opened, plan_of, taken_apart
from irscope.graph import Graph, Module
from irscope.graph.collector import collector_paused

VERSION = "jaxlib-0.10.2"
"""The release whose decisions these are; XLA changes them from month to month."""


class XlaCpuPolicy:
    """See the module."""

    name = "xla-cpu"
    version = f"xla-cpu@{VERSION}"

    def __init__(self) -> None:
        self._last: tuple[Module, list[str], Canonical | None] | None = None

    def plan(self, graph: Graph) -> Plan:
        """The kernels of one graph."""
        plan = plan_of(graph, run(Computation.of(graph)))
        if any(opened(node) for node in graph.nodes):
            from_text(plan, run(taken_apart(graph)))
        return plan

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for every computation that runs; the bodies of fusions are told with the computation that has the fusion.

        A text from before XLA's rewriting is planned as XLA would rewrite it, and told in its own nodes.
        """
        _, canonical = self._rewritten(module)
        if canonical is None:
            return self.plan_as_written(module)
        return told_in_text(canonical, self.plan_as_written(canonical.module), computations(module))

    def plan_as_written(self, module: Module, device: str | None = None) -> list[Plan]:
        """The same without any rewriting: for texts that stand where XLA's pass finds them."""
        with collector_paused():
            return [self.plan(graph) for graph in computations(module)]

    def remarks(self, module: Module) -> list[str]:
        """See :mod:`irscope.fusion.xla.stage`."""
        signs, canonical = self._rewritten(module)
        if canonical is not None:
            return early_remarks(module, self.version, "before_fusion", signs, unfollowed(module))
        return remarks(module, self.version, "before_fusion")

    def _rewritten(self, module: Module) -> tuple[list[str], Canonical | None]:
        """The module as XLA would rewrite it, and what shows that it has not done so yet; None where it has."""
        if self._last is None or self._last[0] is not module:
            self._last = (module, *_rewritten(module))
        return self._last[1:]


def _rewritten(module: Module) -> tuple[list[str], Canonical | None]:
    """See :meth:`XlaCpuPolicy._rewritten`."""
    signs = early_signs(module)
    if not signs and not may_be_early(module):
        return [], None
    with collector_paused():
        canonical = canonicalise(module)
    if not signs and is_rewritten(module, canonical.module):
        signs = ["what XLA would still rewrite"]
    return signs, canonical if signs else None


POLICY = XlaCpuPolicy()
