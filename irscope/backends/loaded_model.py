"""A compiled module in memory, which Python can call. This file imports neither readers nor the compiler, as the cache needs none."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from irscope.backends.executable import BoundCall, Executable, Port
from irscope.graph import Module
from irscope.lazy import Array
from irscope.lower.program import Program
from irscope.source.notebook import Viewable

if TYPE_CHECKING:
    from irscope.backends.varying import VaryingBound, VaryingExecutable


@dataclass(slots=True)
class LoweredModel:
    """A program, the primitive module that it was lowered from, and its operations."""

    module: Module
    program: Program
    flops: float


@dataclass(slots=True)
class Model(Viewable):
    """A compiled module. ``kernels`` is the number of kernels that a run launches, each loop's body counted once; ``flops`` count one run,
    ``compile_s`` are seconds. ``from_cache``: its program came from the cache; it is then lowered again when its ``module`` or ``program``
    is looked at (``lower``).
    """

    name: str
    executable: Executable | VaryingExecutable
    kernels: int
    flops: float
    compile_s: float
    lower: Callable[[], LoweredModel]
    from_cache: bool = False
    interpreted_ops: list[str] = field(default_factory=list)
    _lowered: LoweredModel | None = None

    def __repr__(self) -> str:
        return f"<model {self.name}: inputs {len(self.inputs)}, outputs {len(self.outputs)}, kernels {self.kernels}>"

    def __call__(self, *arrays: Array) -> list[Array]:
        """Run once; the outputs are new arrays."""
        return self.executable(*arrays)

    def bind(self, arrays: Sequence[Array]) -> BoundCall | VaryingBound:
        """Check the arrays once, for calls that follow."""
        return self.executable.bind(arrays)

    @property
    def inputs(self) -> list[Port]:
        """Every tensor in the order of the entry, tuples taken apart."""
        return self.executable.inputs

    @property
    def outputs(self) -> list[Port]:
        """The same of the results."""
        return self.executable.outputs

    @property
    def module(self) -> Module:
        """The primitive graph that was lowered."""
        return self._made().module

    @property
    def program(self) -> Program:
        """The program that it was lowered to."""
        return self._made().program

    def _made(self) -> LoweredModel:
        if self._lowered is None:
            self._lowered = self.lower()
        return self._lowered
