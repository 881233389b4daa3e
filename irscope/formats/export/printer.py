"""Modules as FX text."""
from __future__ import annotations

from irscope.graph import Module, dump


def print_module(module: Module) -> str:
    """Every graph of the module."""
    return dump(module)
