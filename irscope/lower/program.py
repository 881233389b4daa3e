"""A lowered graph, before machine code: buffers with offsets in an arena, and steps that call kernels in order."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from irscope.graph import DType
from irscope.lazy import Array
from irscope.lower.tile import Kernel
from irscope.lower.traversal import walk


@dataclass(slots=True, eq=False)
class Slot:
    """Memory of the program. ``scope``: ``input`` (number ``number`` of the caller's pointers), ``output`` (likewise),
    ``constant`` (``data``, fixed at load), ``temp`` (at byte ``offset`` of the arena).
    ``zeroed``: it must be zero before the first run, and the program never writes the zeros (halos).
    """

    name: str
    dtype: DType
    elements: int
    scope: str
    number: int = -1
    offset: int = -1
    data: Array | None = None
    zeroed: bool = False

    @property
    def bytes(self) -> int:
        return self.elements * self.dtype.storage


class Step:
    """One step of the main function."""

    __slots__ = ()

    def blocks(self) -> Sequence[list[Step]]:
        """The steps inside this step, in text order."""
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
    program determines it."""

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
    """Everything the backend needs to compile one ``main(inputs, outputs, arena)``. ``flush_denormals``: denormal floats count as zeros, as
    in XLA's CPU runtime."""

    name: str
    inputs: list[Slot] = field(default_factory=list)
    outputs: list[Slot] = field(default_factory=list)
    temps: list[Slot] = field(default_factory=list)
    constants: list[Slot] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    arena_bytes: int = 0
    flush_denormals: bool = False

    def launches(self) -> list[Launch]:
        """All launches, in text order, including those in loops and branches."""
        return [step for step in walk(self.steps) if isinstance(step, Launch)]

    def touched(self) -> set[Slot]:
        """Every slot that a step reads or writes."""
        return {slot for step in walk(self.steps) for slot in step.slots()}

    def kernels(self) -> list[Kernel]:
        """The distinct kernels, in order of first launch."""
        return list({id(launch.kernel): launch.kernel for launch in self.launches()}.values())
