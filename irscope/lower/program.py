"""A compiled graph before it is machine code: buffers with places in an arena, and steps that call kernels in order."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from irscope.graph import DType
from irscope.lower.tile import Kernel


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


@dataclass(slots=True, eq=False)
class Launch(Step):
    """Call a kernel; ``args[i]`` is the (slot, offset in elements) of its i-th parameter."""

    kernel: Kernel
    args: list[tuple[Slot, int]]


@dataclass(slots=True, eq=False)
class Copy(Step):
    """Copy ``bytes`` bytes from one slot to another."""

    source: Slot
    target: Slot
    bytes: int
    source_offset: int = 0
    target_offset: int = 0


@dataclass(slots=True, eq=False)
class Loop(Step):
    """Run ``condition``; while the pred in slot ``flag`` is true, run ``body`` and ``condition`` again. ``trips``: how often, where the
    program itself tells."""

    condition: list[Step]
    flag: Slot
    body: list[Step]
    trips: int | None = None


@dataclass(slots=True, eq=False)
class Switch(Step):
    """Run one of ``branches``, by the s32 in ``selector``; out of range runs the last. A pred selector: true runs branch 0."""

    selector: Slot
    branches: list[list[Step]]


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
        found: list[Launch] = []
        stack: list[Step] = list(reversed(self.steps))
        while stack:
            step = stack.pop()
            if isinstance(step, Launch):
                found.append(step)
            elif isinstance(step, Loop):
                stack.extend(reversed([*step.condition, *step.body]))
            elif isinstance(step, Switch):
                stack.extend(reversed([s for branch in step.branches for s in branch]))
        return found

    def touched(self) -> set[Slot]:
        """Every slot that a step reads or writes."""
        found: set[Slot] = set()
        stack: list[Step] = list(self.steps)
        while stack:
            step = stack.pop()
            if isinstance(step, Launch):
                found.update(slot for slot, _ in step.args)
            elif isinstance(step, Copy):
                found.update((step.source, step.target))
            elif isinstance(step, Loop):
                found.add(step.flag)
                stack.extend([*step.condition, *step.body])
            elif isinstance(step, Switch):
                found.add(step.selector)
                stack.extend(s for branch in step.branches for s in branch)
        return found

    def kernels(self) -> list[Kernel]:
        """The distinct kernels, in order of first launch."""
        return list({id(launch.kernel): launch.kernel for launch in self.launches()}.values())
