"""The policy ``xla-cpu``: what XLA's CPU compiler fuses, decision by decision, in the words of its log.

XLA decides on the HLO right before its ``fusion`` pass, with its layouts and text order; such a text is judged as
it is written. A text from before XLA's own rewriting is rewritten first (:mod:`irscope.fusion.canonicalise`), and the kernels are
reported in its own operators. Each computation that runs is fused separately, including the bodies of loops and branches.
"""
from __future__ import annotations

from functools import partial

from irscope.fusion.canonicalise import Canonical, attribute_plans, canonicalise, early_signs, rewrite_early, run_cpu, unfollowed
from irscope.fusion.plan import Plan
from irscope.fusion.policy import FromSource
from irscope.fusion.xla.cpu import run
from irscope.fusion.xla.decisive import decisive, rewritten_alike
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.options import CPU_OPTIONS
from irscope.fusion.xla.printed import other_release, possible, shown_signs
from irscope.fusion.xla.releases import CPU_RELEASES, LATEST, CpuRelease
from irscope.fusion.xla.report import from_text, opened, plan_of, taken_apart
from irscope.fusion.xla.stage import HOW, computations, early_remarks, remarks
from irscope.graph import Graph, Module
from irscope.graph.collector import collector_paused
from irscope.source import SourceText

NEAR = "in 241 programs known from before and after, 95 % of the edges that XLA decided on were found, 99.9 % of these decided as by XLA"
"""The result of ``benchmarks/raw_coverage.py`` for the rewriting; docs/fusion/xla.md has the table."""


MAX_COMPARED = 20_000
"""Operators up to which the releases are compared on a text."""


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

    def compares(self, module: Module) -> bool:
        """Whether a module is small enough to compare the releases on it."""
        return sum(len(graph.nodes) for graph in computations(module)) <= MAX_COMPARED

    def plans_of_releases(self, module: Module) -> dict[str, list[Plan]]:
        """The plans of all releases, each as its own policy plans the module; what cannot differ is planned once."""
        graphs = computations(module)
        nodes = [node for graph in graphs for node in graph.nodes]
        made = {rewritten_alike(self.release.rewriting, nodes): self._rewritten(module)[1]}
        planned: dict[tuple[object, ...], list[Plan]] = {}
        found: dict[str, list[Plan]] = {}
        for name, policy in RELEASES.items():
            how = rewritten_alike(policy.release.rewriting, nodes)
            if how not in made:
                made[how] = _rewrite(module, policy.release)[1]
            canonical = made[how]
            judged = canonical.module if canonical is not None else module
            key = (how if canonical is not None else (),
                   *(decisive(Computation.of(graph), policy.release) for graph in computations(judged)))
            if key not in planned:
                plans = policy.plan_as_written(judged)
                planned[key] = attribute_plans(canonical, plans, graphs) if canonical is not None else plans
            found[name] = planned[key]
        return found

    def plan_as_written(self, module: Module, device: str | None = None) -> list[Plan]:
        """Plan without any rewriting, for texts from right before XLA's fusion pass."""
        with collector_paused():
            return [self.plan(graph) for graph in computations(module)]

    def plan_changed(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan of a program that XLA has not seen: rewritten first, and reported in its own nodes."""
        with collector_paused():
            canonical = canonicalise(module, partial(run_cpu, rewriting=self.release.rewriting))
        return attribute_plans(canonical, self.plan_as_written(canonical.module), computations(module))

    def rewrites(self, module: Module, device: str | None = None) -> bool:
        """Whether a text is from before XLA's own rewriting."""
        return self._rewritten(module)[1] is not None

    def options(self) -> list[tuple[str, str, FromSource]]:
        """See :mod:`irscope.fusion.xla.options`."""
        under = ((option, option.under(self.release)) for option in CPU_OPTIONS)
        return [(f"XLA_FLAGS={option.flag}", option.does, XlaCpuPolicy(release)) for option, release in under if release is not None]

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """See :mod:`irscope.fusion.xla.stage`."""
        signs, canonical = self._rewritten(module)
        found = other_release(module, self.version)
        if canonical is not None:
            return found + early_remarks(module, self.version, f"before_fusion {HOW}", signs, unfollowed(module), NEAR)
        return found + remarks(module, self.version, "before_fusion")

    def _rewritten(self, module: Module) -> tuple[list[str], Canonical | None]:
        """The module as XLA would rewrite it, and the signs that it was not rewritten yet; None if it was."""
        if self._last is None or self._last[0] is not module:
            self._last = (module, *_rewrite(module, self.release))
        return self._last[1:]


def _rewrite(module: Module, release: CpuRelease) -> tuple[list[str], Canonical | None]:
    """The module as a release would rewrite it, and the signs that it was not rewritten yet; None if it was."""
    signs = early_signs(module, rewriting=release.rewriting)
    return rewrite_early(module, signs, partial(run_cpu, rewriting=release.rewriting))


RELEASES = {name: XlaCpuPolicy(release) for name, release in CPU_RELEASES.items()}
"""The policy of each release, by its name; the newest first."""
NEWEST = RELEASES[LATEST.name]


class XlaCpuByText:
    """XLA's CPU fusion, of the newest release that may have printed a text."""

    name = NEWEST.name
    version = NEWEST.version
    elsewhere = NEWEST.elsewhere

    def __init__(self) -> None:
        self._last: tuple[SourceText, XlaCpuPolicy] | None = None

    def of(self, module: Module) -> XlaCpuPolicy:
        """The policy of the newest release whose dump a module may be; of the newest of all if no release prints what it has."""
        if self._last is None or self._last[0] is not module.source:
            self._last = module.source, RELEASES[next(iter(possible(shown_signs(module), RELEASES)), LATEST.name)]
        return self._last[1]

    def plan(self, graph: Graph) -> Plan:
        """The kernels of one graph, by the newest release."""
        return NEWEST.plan(graph)

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for each computation that runs; see :meth:`XlaCpuPolicy.plan_module`."""
        return self.of(module).plan_module(module, device)

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """See :mod:`irscope.fusion.xla.stage`."""
        return self.of(module).remarks(module, device)


POLICY = XlaCpuByText()
