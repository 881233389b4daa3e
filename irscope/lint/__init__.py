"""Lint rules, their findings and reports. Rules import the names of the rule API from here."""

from irscope.lint.context import Context
from irscope.lint.edits import Edit, Make, Site
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Findings, Fix, Fixture, Rule, Section, all_rules, find_rule, if_it_saves, select
from irscope.lint.run import lint_module, lint_reading
from irscope.lint.savings import human_bytes, human_us, saving
from irscope.source import Note, Severity
from irscope.source.plural import plural

__all__ = [
    "Context", "Edit", "Findings", "Fix", "Fixture", "Make", "Note", "Rule", "RuleFinding", "Section", "Severity", "Site", "all_rules",
    "find_rule", "human_bytes", "human_us", "if_it_saves", "lint_module", "lint_reading", "plural", "saving", "select",
]
