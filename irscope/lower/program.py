"""A compiled graph before it is machine code: buffers with places in an arena, and steps that call kernels in order."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from irscope.graph import DType
from irscope.lower.tile import Kernel
from irscope.lower.traversal import walk


@dataclass(slots=True, eq=False)
class Slot:
    """Memory of the program. ``scope``: ``input`` (number ``number`` of the caller's pointers), ``output`` (likewise),
    ``constant`` (``data``, fixed at load), ``temp`` (at byte ``offset`` of the arena).
    ``zeroed``: the program needs it to be zero before its first run and never writes the zeros (halos).
    """

    name: str
    dtype: DType
    elements: int
    scope: str
    number: int = -1
    offset: int = -1
    data: Any = None
    zeroed: bool = False

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.storage


class Step:
    """One thing the main function does."""

    __slots__ = ()

    def blocks(self) -> Sequence[list[Step]]:
        """The steps inside of the step, in text order."""
        return ()

    def slots(self) -> list[Slot]:
        """The memory that the step itself reads or writes."""
        return []


@dataclass(slots=True, eq=False)
class Launch(Step):
    """Call a kernel; ``args[i]`` is the (slot, offset in elements) of its i-th parameter."""

    kernel: Kernel
    args: list[tuple[Slot, int]]

    def slots(self) -> list[Slot]:
        return [slot for slot, _ in self.args]


@dataclass(slots=True, eq=False)
class Copy(Step):
    """Copy ``bytes`` bytes from one slot to another."""

    source: Slot
    target: Slot
    bytes: int
    source_offset: int = 0
    target_offset: int = 0

    def slots(self) -> list[Slot]:
        return [self.source, self.target]


@dataclass(slots=True, eq=False)
class Loop(Step):
    """Run ``condition``; while the pred in slot ``flag`` is true, run ``body`` and ``condition`` again. ``trips``: how often, where the
    program itself tells."""

    condition: list[Step]
    flag: Slot
    body: list[Step]
    trips: int | None = None

    def blocks(self) -> Sequence[list[Step]]:
        return self.condition, self.body

    def slots(self) -> list[Slot]:
        return [self.flag]


@dataclass(slots=True, eq=False)
class Switch(Step):
    """Run one of ``branches``, by the s32 in ``selector``; out of range runs the last. A pred selector: true runs branch 0."""

    selector: Slot
    branches: list[list[Step]]

    def blocks(self) -> Sequence[list[Step]]:
        return self.branches

    def slots(self) -> list[Slot]:
        return [self.selector]


@dataclass(slots=True, eq=False)
class Program:
    """Everything the backend needs to make one ``main(inputs, outputs, arena)``. ``flush_denormals``: denormal floats count as zeros, as
    they do where XLA runs."""

    name: str
    inputs: list[Slot] = field(default_factory=list)
    outputs: list[Slot] = field(default_factory=list)
    temps: list[Slot] = field(default_factory=list)
    constants: list[Slot] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    arena_bytes: int = 0
    flush_denormals: bool = False

    def launches(self) -> list[Launch]:
        """All launches, in text order, whatever loop or branch they stand in."""
        return [step for step in walk(self.steps) if isinstance(step, Launch)]

    def touched(self) -> set[Slot]:
        """Every slot that a step reads or writes."""
        return {slot for step in walk(self.steps) for slot in step.slots()}

    def kernels(self) -> list[Kernel]:
        """The distinct kernels, in order of first launch."""
        return list({id(launch.kernel): launch.kernel for launch in self.launches()}.values())
