"""Fixes for refused fusions that are proven: the program is changed, brought through the compiler's rewriting, and planned again."""

from irscope.lint.proven.engine import Engine
from irscope.lint.proven.fix import Answer, Attempt, Outcome, ProvenFix, Saving

__all__ = ["Answer", "Attempt", "Engine", "Outcome", "ProvenFix", "Saving"]
