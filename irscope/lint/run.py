"""Running rules over a module, and putting what they find in order."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.graph import Module, Reading
from irscope.lint.context import Context
from irscope.lint.primitives import lint_primitives
from irscope.lint.rule import Rule, default_rules
from irscope.source import Finding


def lint_module(module: Module, rules: Iterable[type[Rule]] | None = None) -> list[Finding]:
    """The findings of ``rules`` (default: those that are on) in a module, the worst and costliest first."""
    context = Context(module)
    chosen = list(default_rules() if rules is None else rules)
    findings = [finding for rule in chosen for finding in rule().check(context)]
    structural = [rule for rule in chosen if rule.structural]
    if structural and module.format != "hlo":
        findings += lint_primitives(module, structural)
    return sorted(findings, key=_rank)


def lint_reading(reading: Reading, rules: Iterable[type[Rule]] | None = None) -> list[Finding]:
    """What the reader found, then what the rules find in each module."""
    chosen = list(default_rules() if rules is None else rules)
    return reading.findings + [finding for module in reading.modules if module.entry for finding in lint_module(module, chosen)]


def _rank(finding: Finding) -> tuple[int, float, str, int]:
    saved = finding.saves["us"] if finding.saves else 0.0
    return -finding.severity, -saved, finding.code, finding.offset
