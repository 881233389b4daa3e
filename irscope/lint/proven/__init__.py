"""Fixes for refused fusions that are proven: the program is changed, brought through the compiler's rewriting, and planned again."""

from irscope.lint.proven.engine import Engine
from irscope.lint.proven.fix import Attempt, FixAnswer, ProvenFix, Saving, TrialOutcome

__all__ = ["Attempt", "Engine", "FixAnswer", "ProvenFix", "Saving", "TrialOutcome"]
