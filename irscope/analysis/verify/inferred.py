"""Type errors in modules of dialects with inferred types: each dialect has its own check, in the module of its name."""
from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Protocol, cast

from irscope.analysis.verify.faults import GraphFault
from irscope.graph import Graph, Module


class Checker(Protocol):
    """The interface of such a module."""

    def faults(self, module: Module) -> Iterator[tuple[Graph, GraphFault]]:
        """All faults, with their graphs."""


def inferred_faults(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """All faults, with their graphs."""
    return cast(Checker, import_module(f"irscope.analysis.verify.{module.dialect.name}")).faults(module)
