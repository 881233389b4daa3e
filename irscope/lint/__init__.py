"""Rules, what they find, and how it is reported."""

from irscope.lint.context import Context
from irscope.lint.rule import Fixture, Rule, Section, all_rules, find_rule, select
from irscope.lint.run import lint_module, lint_reading

__all__ = ["Context", "Fixture", "Rule", "Section", "all_rules", "find_rule", "lint_module", "lint_reading", "select"]
