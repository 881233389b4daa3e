"""Options of code generation."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.graph import Module
from irscope.lower.schedule import VectorMachine


@dataclass(frozen=True, slots=True)
class Options:
    """``machine``: the processor that runs the program (None: the one that compiles it); ``threads``: at most this many work.

    ``precision`` (exact, default, fast) is how close results are to the definition. ``apart`` is for tests that detect stray stores:
    no two temporaries share memory, and this many bytes around each are unused (0: temporaries share memory where they can).
    """

    machine: VectorMachine | None = None
    threads: int = 1
    precision: str = "default"
    apart: int = 0

    def flushes_denormals(self, module: Module) -> bool:
        """Whether denormal floats count as zeros in arithmetic, as in the format's own compiler. Under ``exact`` precision they do not:
        results are those of IEEE 754."""
        return module.flushes_denormals and self.precision != "exact"
