"""Object code of a program: what :mod:`irscope.backends.compile` makes, and :mod:`irscope.backends.executable` loads."""
from __future__ import annotations

from dataclasses import dataclass, field

from irscope.lower.tile import Kernel

MAIN = "irscope_main"
"""The symbol of a program's main function."""


@dataclass(slots=True)
class CompilationUnit:
    """One module: a kernel, or the main function. ``name`` is the symbol it defines; ``others`` are kernels with the same text."""

    name: str
    text: str
    kernel: Kernel | None = None
    others: list[Kernel] = field(default_factory=list)

    @property
    def speed(self) -> int:
        """The optimisation level of LLVM's code generator. The main function only calls; the kernels matter."""
        return 0 if self.kernel is None else 2


@dataclass(slots=True)
class ObjectCode:
    """Object code of everything but the pool; each thread needs ``scratch`` bytes. ``stops``: it polls for a request to stop.

    ``units`` are the modules that it was compiled from; none where the whole program comes from the cache. ``from_cache`` counts objects.
    ``records`` are what it times where it is profiled: kernels, and the bytes of copies.
    """

    objects: list[bytes]
    scratch: int
    units: list[CompilationUnit] = field(default_factory=list)
    from_cache: int = 0
    stops: bool = False
    records: list[Kernel | int] = field(default_factory=list)
