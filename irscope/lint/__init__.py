"""Lint rules, their findings, and the reports of them. Rules import everything that they need from here."""

from irscope.lint.context import Context
from irscope.lint.edits import Edit, Make, Site
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Findings, Fix, Fixture, Rule, Section, all_rules, find_rule, select
from irscope.lint.run import lint_module, lint_reading
from irscope.lint.savings import counted, human_bytes, human_us, saving
from irscope.source import Note, Severity

__all__ = [
    "Context", "Edit", "Findings", "Fix", "Fixture", "Make", "Note", "Rule", "RuleFinding", "Section", "Severity", "Site", "all_rules",
    "counted", "find_rule", "human_bytes", "human_us", "lint_module", "lint_reading", "saving", "select",
]
