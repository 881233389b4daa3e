"""The packages that run programs, each imported on demand: reading HLO does not import torch's operators."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from irscope.graph import Graph, Module, Type
from irscope.lazy import Array, LazyModule

if TYPE_CHECKING:
    from irscope.expand import torchscript
else:
    torchscript = LazyModule("irscope.expand.torchscript")

__all__ = ["Inferred", "inferred", "torchscript"]


class Inferred(Protocol):
    """The interface of a package that runs programs whose types are inferred."""

    def run_program(self, module: Module, inputs: Mapping[str, Type] | None = None, constants: Mapping[str, Array] | None = None,
                    partial: bool = False, measure: Callable[[Graph], int] | None = None) -> Module:
        """The primitive graph of what the entry computes. ``measure`` runs a graph whose result is one integer over the given inputs."""

    def rebound(self, module: Module, types: Mapping[str, Type]) -> Module:
        """The module whose entry takes these types, by name of parameter."""

    def parameter_names(self, module: Module) -> list[str]:
        """The inputs that are weights."""


def inferred(module: Module) -> Inferred:
    """The package that runs modules of a dialect with inferred types; it has the name of the dialect."""
    return cast(Inferred, import_module(f"irscope.expand.{module.dialect.name}"))
