"""Runs rules over a module, estimates the savings of their findings, and sorts them."""

from __future__ import annotations

from collections.abc import Iterable

from irscope.analysis.soundness import Use
from irscope.graph import Module, Reading
from irscope.graph.collector import collector_paused
from irscope.lint.collect import found_by
from irscope.lint.context import Context
from irscope.lint.evidence import Evidence
from irscope.lint.primitives import lint_primitives
from irscope.lint.rule import Rule, default_rules
from irscope.lint.settings import Settings
from irscope.source import Finding


def lint_module(module: Module, rules: Iterable[type[Rule]] | None = None, settings: Settings | None = None,
                whole: bool = True) -> list[Finding]:
    """The findings of ``rules`` (default: those that are on) in a module, the worst and costliest first.

    ``whole`` as in :class:`Context`.
    """
    return lint_context(Context(module, settings, whole), rules)


def lint_context(context: Context, rules: Iterable[type[Rule]] | None = None) -> list[Finding]:
    """The same for a module whose facts are kept for more questions. Nothing, where the text was read in part only."""
    with collector_paused():
        return _found(context, default_rules() if rules is None else rules)


def _found(context: Context, rules: Iterable[type[Rule]]) -> list[Finding]:
    findings: list[Finding] = []
    if not context.soundness.allows(Use.RULES):
        return findings
    structural = []
    sound = context.sound
    for rule in rules:
        if rule.judges_types:
            findings += found_by(context, rule)
        elif not rule.structural or sound.view.primitive is None or sound.view.primitive is sound.module:
            findings += found_by(sound, rule)
        else:
            structural.append(rule)
    if structural:
        findings += lint_primitives(sound, structural)
    Evidence(sound).complete(findings)
    return sorted(findings, key=_rank)


def lint_reading(reading: Reading, rules: Iterable[type[Rule]] | None = None, settings: Settings | None = None) -> list[Finding]:
    """What the reader found, then what the rules find in each module."""
    chosen = list(default_rules() if rules is None else rules)
    return reading.findings + [f for module in reading.modules if module.entry for f in lint_module(module, chosen, settings, reading.ok)]


def _rank(finding: Finding) -> tuple[int, float, str, int]:
    saved = finding.saves["us"] if finding.saves else 0.0
    return -finding.severity, -saved, finding.code, finding.offset
