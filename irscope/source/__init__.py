"""Texts, places in them, and findings about those places; errors, limits and files."""
from irscope.source.errors import UserError
from irscope.source.finding import Finding, Level, Note, Severity, Step
from irscope.source.reads import files_read
from irscope.source.suggest import did_you_mean
from irscope.source.text import Place, SourceText

__all__ = ["Finding", "Level", "Note", "Place", "Severity", "SourceText", "Step", "UserError", "did_you_mean", "files_read"]
