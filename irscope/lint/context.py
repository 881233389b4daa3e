"""The argument of a rule: a view of the module, its costs, and the settings of the run."""

from __future__ import annotations

from functools import cached_property

from irscope.analysis.soundness import Degree, Soundness, held_together, soundness
from irscope.graph import Module
from irscope.lint.costs import Costs
from irscope.lint.settings import Settings
from irscope.lint.view import ModuleView
from irscope.source import Finding


class Context:
    """One module under the settings of a run. ``whole``: the parser of its format accepts the text.

    ``view`` answers queries about the module, ``costs`` about kernels and time; ``found`` caches the findings of rules.
    """

    def __init__(self, module: Module, settings: Settings | None = None, whole: bool = True, costs: Costs | None = None) -> None:
        self.module, self.whole = module, whole
        self.costs = costs or Costs(ModuleView(module), settings or Settings())
        self.view, self.settings = self.costs.view, self.costs.settings
        self.found: dict[type, list[Finding]] = {}

    @cached_property
    def soundness(self) -> Soundness:
        """How far the text is understood, and the faults in its types."""
        return soundness(self.module, self.whole)

    @cached_property
    def sound(self) -> Context:
        """The same for the module in which what does not hold together is opaque; this one where all types hold."""
        if self.soundness.degree is not Degree.WHOLE:
            return self
        return Context(held_together(self.module, self.soundness.faults), self.settings)

    @cached_property
    def inner(self) -> Context:
        """What rules on structure look at: the primitives, where there are any; else the module itself."""
        if self.costs.inner is self.costs:
            return self
        return Context(self.costs.inner.view.module, costs=self.costs.inner)
