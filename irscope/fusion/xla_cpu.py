"""The policy ``xla-cpu``: what XLA's CPU compiler fuses, decision by decision, in the words of its log.

XLA decides on the HLO right before its ``fusion`` pass, with its layouts and text order; such a text is judged as
it is written. A text from before XLA's own rewriting is rewritten first (:mod:`irscope.fusion.canonicalise`), and the kernels are
reported in its own operators. Each computation that runs is fused separately, including the bodies of loops and branches.
"""
from __future__ import annotations

from irscope.fusion.canonicalise import Canonical, attribute_plans, early_signs, rewrite_early, unfollowed
from irscope.fusion.plan import Plan
from irscope.fusion.xla.cpu import run
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.releases import CPU_RELEASES, LATEST, CpuRelease
from irscope.fusion.xla.report import from_text, opened, plan_of, taken_apart
from irscope.fusion.xla.stage import HOW, computations, early_remarks, other_release, remarks
from irscope.graph import Graph, Module
from irscope.graph.collector import collector_paused

NEAR = "in 241 programs known from before and after, 95 % of the edges that XLA decided on were found, 99.9 % of these decided as by XLA"
"""The result of ``benchmarks/raw_coverage.py`` for the rewriting; docs/fusion/xla.md has the table."""


class XlaCpuPolicy:
    """XLA's CPU fusion as a policy. XLA's rules change from month to month; ``release`` is the release that it follows."""

    name = "xla-cpu"
    elsewhere = "--policy xla-gpu judges as XLA does on h100, a100, b200 or the device of a target text"
    """What to do for other devices."""

    def __init__(self, release: CpuRelease = LATEST) -> None:
        self.release = release
        self.version = f"xla-cpu@{release.name}"
        self._last: tuple[Module, list[str], Canonical | None] | None = None

    def plan(self, graph: Graph) -> Plan:
        """The kernels of one graph."""
        plan = plan_of(graph, run(Computation.of(graph), self.release))
        if any(opened(node) for node in graph.nodes):
            from_text(plan, run(taken_apart(graph), self.release))
        return plan

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for each computation that runs; fusion bodies are reported with the computation that holds the fusion.

        A text from before XLA's rewriting is planned as XLA would rewrite it, and reported in its own nodes.
        """
        _, canonical = self._rewritten(module)
        if canonical is None:
            return self.plan_as_written(module)
        return attribute_plans(canonical, self.plan_as_written(canonical.module), computations(module))

    def plan_as_written(self, module: Module, device: str | None = None) -> list[Plan]:
        """Plan without any rewriting, for texts from right before XLA's fusion pass."""
        with collector_paused():
            return [self.plan(graph) for graph in computations(module)]

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """See :mod:`irscope.fusion.xla.stage`."""
        signs, canonical = self._rewritten(module)
        found = other_release(module, self.version)
        if canonical is not None:
            exact = f"before_fusion {HOW}{self._rewriting}"
            return found + early_remarks(module, self.version, exact, signs, unfollowed(module), NEAR)
        return found + remarks(module, self.version, "before_fusion")

    @property
    def _rewriting(self) -> str:
        """A note on the rewriting of early texts, which follows the latest release only."""
        return "" if self.release is LATEST else f"; the rewriting is that of {LATEST.name}, not of {self.release.name}"

    def _rewritten(self, module: Module) -> tuple[list[str], Canonical | None]:
        """The module as XLA would rewrite it, and the signs that it was not rewritten yet; None if it was."""
        if self._last is None or self._last[0] is not module:
            self._last = (module, *rewrite_early(module, early_signs(module)))
        return self._last[1:]


POLICY = XlaCpuPolicy()
RELEASES = {name: POLICY if release is LATEST else XlaCpuPolicy(release) for name, release in CPU_RELEASES.items()}
"""The policy of each release, by its name; the latest first."""
