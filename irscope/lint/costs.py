"""The cost of a module under a policy on a machine, and what changes would save."""

from __future__ import annotations

from functools import cached_property

from irscope.fusion import Plan
from irscope.graph import Graph, Module, Node
from irscope.lint.claims import Claim, Claims
from irscope.lint.edits import Edit
from irscope.lint.fusion import plans, reads_text
from irscope.lint.machine import Machine
from irscope.lint.planned import Planned
from irscope.lint.settings import Settings
from irscope.lint.view import ModuleView
from irscope.source import UserError


class Costs:
    """The kernels, bytes and microseconds of one module; each answer is computed once. ``text`` are those of the text it was made from."""

    def __init__(self, view: ModuleView, settings: Settings, text: Costs | None = None) -> None:
        self.text = text
        self.view, self.settings = view, settings.of(view.module)

    @cached_property
    def inner(self) -> Costs:
        """The costs of the primitives, if the module is not made of primitives itself."""
        primitive = self.view.primitive
        return self if primitive is None or primitive is self.view.module else Costs(ModuleView(primitive), self.settings, self)

    @cached_property
    def machine(self) -> Machine:
        """The machine table for time estimates. Raises UserError if there is no such table."""
        return self.settings.table()

    @cached_property
    def planned(self) -> Planned | None:
        """The policy's plan for the primitives of the module; None if it cannot plan them."""
        if self.view.primitive is None:
            return None
        if self.inner is not self:
            return self.inner.planned
        module = self.view.module
        try:
            # HLO has its calls written out only; other formats are expanded all the way.
            expanded = module.is_primitive and not module.dialect.primitive
            return Planned(self.view.primitive, self.settings.policy, self.settings.device, expanded)
        except (UserError, ValueError):
            return None

    @cached_property
    def decided(self) -> tuple[Module, list[Plan]] | None:
        """The module that the policy plans, and its plans, from which all verdicts on edges come; None if it cannot plan it.

        It is the text where the policy is about the operators of its format (``tvm`` for Relay), else its primitives.
        """
        if self.text is not None:
            return self.text.decided
        module, settings = self.view.module, self.settings
        if module.dialect.primitive or not reads_text(settings.policy, module):
            return (self.planned.module, self.planned.plans) if self.planned is not None else None
        try:
            return module, plans(module, settings.policy, settings.device)
        except UserError:
            return None

    @cached_property
    def total_us(self) -> float | None:
        """The estimated time of one run; None if it is unknown."""
        if self.inner is not self:
            return self.inner.total_us
        return self.sized.us(self.machine) if self.sized is not None else None

    @property
    def sized(self) -> Planned | None:
        """The plan, if all sizes are known and a table says what the device takes: time and traffic are known for no other."""
        return self.planned if self.planned is not None and self.planned.unsized is None and self.settings.has_table else None

    @cached_property
    def stored(self) -> set[Node]:
        """The nodes of the module whose values the policy's kernels write to memory."""
        if self.planned is None:
            return set()
        written = ((node, plan.graph) for plan in self.planned.plans for group in plan.groups for node in group.outputs)
        return {own for node, graph in written if (own := self.view.original(node, graph)) is not None}

    @cached_property
    def claims(self) -> Claims | None:
        """Computes what changes save; None if the module cannot be planned."""
        return Claims(self.sized, self.machine) if self.sized is not None else None

    def claim(self, graph: Graph, edit: Edit) -> Claim | None:
        """What an edit of a graph saves in one run of the module; None if that is unknown.

        Inside a fusion of the text the kernels are fixed: removing a node there saves neither a launch nor traffic.
        """
        module, graph_of = self.view.module, self.inner.view.graph_of if self.inner is not self else {}
        if not module.dialect.primitive and self.inner is not self:
            inner = next((graph_of[node] for node in edit.nodes if node in graph_of), None)
            return self.inner.claim(inner, edit) if inner is not None else None
        written = self.view.primitive is module or module.dialect.primitive  # HLO is its own primitives, but for calls
        if not written or self.claims is None or graph in self.view.inlined:
            return None
        found = self.claims.of(graph, self.view.survey.users(graph), edit)
        return found.times(self.runs(graph)) if found is not None else None

    def runs(self, graph: Graph) -> float:
        """How often a graph runs in one run of the module; 1 if that is unknown."""
        planned = self._planned_runs.get(graph.name)
        return planned if planned is not None else self.view.survey.calls.times.get(graph, 1.0)

    @cached_property
    def _planned_runs(self) -> dict[str, float]:
        """How often the graphs that were planned run, by name: plans are made of copies too. The first of a name counts."""
        times = self.planned.survey.calls.times if self.planned is not None else {}
        return {graph.name: n for graph, n in reversed(times.items())}

    def saves(self, graph: Graph, change: Edit | dict[str, float] | None, tidied: bool) -> dict[str, float] | None:
        """Microseconds, bytes and kernels that a change saves: an edit is planned on a copy; counts get a time estimate.

        ``tidied``: compilers make such changes themselves in text from before optimisation, where they save nothing.
        """
        if change is None:
            return None
        if tidied and self.claims is not None and self.claims.tidies:
            return {"us": 0.0, "bytes": 0.0, "kernels": 0.0}
        if not self.settings.has_table:
            return None
        if isinstance(change, Edit):
            claim = self.claim(graph, change)
            return claim.saves if claim is not None else None
        us = self.machine.move_us(change["bytes"], 0.0) + change["kernels"] * self.machine.launch(self.settings.policy)
        range_ = {"us_least": round(us / self.machine.fast, 3), "us_most": round(us * self.machine.slow, 3)} if us > 0 else {}
        return {**change, "us": round(us, 3), **range_}
