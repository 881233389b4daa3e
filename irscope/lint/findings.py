"""The findings of a rule before their savings are estimated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irscope.fusion import EdgeVerdict
from irscope.graph import Graph, Node
from irscope.lint.edits import Edit
from irscope.source import Finding, Level, Severity
from irscope.source.finding import level_of


@dataclass(slots=True, repr=False)
class RuleFinding(Finding):
    """A finding with the data to estimate its savings.

    ``at`` is the node with its graph; ``edit`` the change that fixes it, if one is known; ``timed`` whether it is about time: then its
    severity applies only if the fix saves enough. ``about`` are the nodes of the text that it names, where they were looked up already:
    graphs of one text may use a name twice. ``verdicts`` are those of the policy that it states.
    """

    at: tuple[Graph, Node] | None = None
    edit: Edit | None = None
    timed: bool = True
    about: tuple[Node, ...] = ()
    verdicts: tuple[EdgeVerdict, ...] = ()

    @property
    def level(self) -> Level:
        """Wrong, costly, or a fact."""
        return level_of(self.severity, self.timed)

    def with_severity(self, severity: Severity | None) -> RuleFinding:
        """The finding with another severity than its rule's; None leaves that."""
        if severity is not None:
            self.severity = severity
        return self

    def stating(self, verdicts: Iterable[EdgeVerdict]) -> RuleFinding:
        """The finding, which states these verdicts of the policy."""
        self.verdicts = tuple(verdicts)
        return self
