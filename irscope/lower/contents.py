"""The contents of each element of a program's memory, tracked from step to step: every read must find a live value.

An element is uninitialised, holds a value of some slot, or the zero that a slot had before the first run. A kernel's buffers declare which
elements they read and write (``Buffer.layout``, ``Buffer.room``), so the check detects a kernel that reads a value at another's offset (it
finds the zeros around it, or nothing), reads zeros around an image that were never cleared or were overwritten, reads a slot whose memory
another one has reused, or leaves a part of an output unwritten. It costs an integer for every byte of memory: for tests.
"""
from __future__ import annotations

from irscope.fusion.views import Strides
from irscope.lazy import Array, np
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Buffer
from irscope.lower.traversal import Visitor, visits

Cells = Array
NOTHING = 0


def verify_contents(program: Program) -> list[str]:
    """Reads of unwritten memory and writes outside of the layout, one sentence each."""
    return _Contents(program).run()


class _Contents(Visitor):
    """``arena`` and ``own`` hold, for each byte, the number of the slot whose value it holds; it is negative for initial zeros."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.problems: list[str] = []
        self.numbers: dict[Slot, int] = {}
        self.arena: Cells = np.zeros(program.arena_bytes, np.int32)
        self.own: dict[Slot, Cells] = {}
        for slot in (*program.inputs, *program.constants, *program.outputs, *program.temps):
            number = self.numbers[slot] = len(self.numbers) + 1
            if slot.scope == "output":
                self.own[slot] = np.full(slot.bytes, NOTHING, np.int32)
            elif slot.zeroed:
                self.arena[slot.offset:slot.offset + slot.bytes] = -number

    def run(self) -> list[str]:
        self.block(self.program.steps)
        for slot in self.program.outputs:
            if (self.cells(slot) != self.numbers[slot]).any():
                self.say(f"output {slot.name} is not written everywhere")
        return self.problems

    def say(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def cells(self, slot: Slot) -> Cells:
        """The numbers of a slot's bytes. Every byte of an input or a constant holds a value."""
        if slot.scope in ("input", "constant"):
            return np.broadcast_to(np.int32(self.numbers[slot]), (slot.bytes,))
        return self.arena[slot.offset:slot.offset + slot.bytes] if slot.scope == "temp" else self.own[slot]

    @visits(Copy)
    def copy(self, step: Copy) -> None:
        source = self.cells(step.source)[step.source_offset:step.source_offset + step.bytes]
        if (source != self.numbers[step.source]).any():
            self.say(f"{step.source.name} is copied where nothing was written")
        self.cells(step.target)[step.target_offset:step.target_offset + step.bytes] = self.numbers[step.target]

    @visits(Loop)
    def loop(self, step: Loop) -> None:
        self.block(step.condition)
        self.whole(step.flag, "a loop's condition")
        self.block(step.body)
        self.block(step.condition)

    def whole(self, slot: Slot, who: str) -> None:
        if (self.cells(slot)[:slot.dtype.storage] != self.numbers[slot]).any():
            self.say(f"{who} reads {slot.name} where nothing was written")

    @visits(Switch)
    def switch(self, step: Switch) -> None:
        """Run all branches; afterwards an element holds what they agree on."""
        self.whole(step.selector, "a switch")
        before = self.arena.copy(), {slot: cells.copy() for slot, cells in self.own.items()}
        joined: tuple[Cells, dict[Slot, Cells]] | None = None
        for branch in step.branches:
            self.arena, self.own = before[0].copy(), {slot: cells.copy() for slot, cells in before[1].items()}
            self.block(branch)
            if joined is None:
                joined = self.arena, self.own
            else:
                joined = (np.where(joined[0] == self.arena, self.arena, NOTHING),
                          {s: np.where(joined[1][s] == c, c, NOTHING) for s, c in self.own.items()})
        if joined is not None:
            self.arena, self.own = joined

    @visits(Launch)
    def launch(self, step: Launch) -> None:
        pairs = list(zip(step.kernel.params(), step.args))
        for buffer, (slot, place) in pairs:
            if buffer.scope in ("in", "inout"):
                self.read(step, buffer, slot, place)
        for buffer, (slot, place) in pairs:
            if buffer.scope in ("out", "inout"):
                found = self.window(step, buffer, slot, place, value_layout(buffer))
                if found is not None:
                    found[...] = self.numbers[slot]

    def read(self, step: Launch, buffer: Buffer, slot: Slot, place: int) -> None:
        layout, number = value_layout(buffer), self.numbers[slot]
        if buffer.room:
            low = sum(before * s for (before, _), s in zip(buffer.room, layout.strides))
            shape = tuple(before + n + after for n, (before, after) in zip(layout.shape, buffer.room))
            found = self.window(step, buffer, slot, place, Strides(shape, layout.strides, layout.offset - low))
            if found is not None:
                inside = tuple(slice(before, before + n) for n, (before, _) in zip(layout.shape, buffer.room))
                zeros = np.ones(found.shape, bool)
                zeros[inside] = False
                if (abs(found[inside]) != number).any() or (found[zeros] != -number).any():
                    self.say(f"{step.kernel.name}: {buffer.name} is read with zeros around it, but they are not there in {slot.name}")
            return
        found = self.window(step, buffer, slot, place, layout)
        if found is not None and (found != number).any():
            what = "zeros around a value" if (found == -number).any() else "unwritten or overwritten memory"
            self.say(f"{step.kernel.name}: {buffer.name} reads {what} in {slot.name}")

    def window(self, step: Launch, buffer: Buffer, slot: Slot, place: int, layout: Strides) -> Cells | None:
        """The numbers of the bytes that a layout covers; None where it is empty, or where it leaves the buffer, which is a fault."""
        if 0 in layout.shape or not buffer.elements:
            return None
        low = layout.offset + sum((n - 1) * s for n, s in zip(layout.shape, layout.strides) if s < 0)
        high = layout.offset + sum((n - 1) * s for n, s in zip(layout.shape, layout.strides) if s > 0)
        if low < 0 or high >= buffer.elements or place < 0 or place + buffer.elements > slot.elements:
            self.say(f"{step.kernel.name}: the layout of {buffer.name} leaves its {buffer.elements} elements of {slot.name}")
            return None
        cells, width = self.cells(slot), slot.dtype.storage
        if not cells.strides[0]:
            return cells[:1]
        shape = [n if s else 1 for n, s in zip(layout.shape, layout.strides)]
        strides = [s * width * cells.itemsize for s in layout.strides]
        return np.lib.stride_tricks.as_strided(cells[(place + layout.offset) * width:], (*shape, width), (*strides, cells.itemsize))


def value_layout(buffer: Buffer) -> Strides:
    """The elements of a buffer that hold its value: all of them by default."""
    return buffer.layout if buffer.layout is not None else Strides((buffer.elements,), (1,))
