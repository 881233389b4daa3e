"""Lints the complete computations of a text that was cut off."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.analysis.parts import parts
from irscope.graph import Module
from irscope.lint.context import Context
from irscope.lint.rule import Rule
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.source import Finding, Severity

OF_PROGRAMS = ("FUS", "KRN", "MEM", "VEC", "PRJ")
"""Families of rules that look at a whole program: whether a computation is a kernel, a loop or a branch depends on its caller."""


def lint_parts(module: Module, rules: Iterable[type[Rule]], settings: Settings, read: Sequence[Finding]) -> list[Finding]:
    """The findings about nodes and their operands in the computations of a cut module that are complete and without errors in ``read``.

    They save nothing that can be estimated, because it is not known how often a computation runs.
    """
    wrong = {finding.graph for finding in read if finding.severity is Severity.ERROR}
    chosen = [rule for rule in rules if not rule.code.startswith(OF_PROGRAMS)]
    found: list[Finding] = []
    seen: set[tuple[str, int, str]] = set()
    for part in parts(module, wrong):
        for finding in lint_context(Context(part, settings), chosen):
            key = finding.code, finding.offset, finding.message
            if key not in seen:
                seen.add(key)
                finding.saves, finding.costs = None, None
                found.append(finding)
    return found
