"""Prints a module as StableHLO text."""
from __future__ import annotations

from irscope.graph import Module
from irscope.source import UserError


def print_module(module: Module) -> str:
    """The module as MLIR text. Raises UserError for what it cannot write."""
    raise UserError("StableHLO cannot be printed yet", "--to hlo prints the module as HLO")
