"""A compiled program as bytes: ports, buffer assignment, plan of calls, schedules, object code and constants, for the compilation cache.

    length of the header, 8 bytes, little-endian | header: JSON | sections, each at a multiple of 64: objects, then constants

The header is data alone: reading it executes nothing. Kernels are read back without their statements, as the object code replaces them.
"""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from irscope.backends.cache import Content
from irscope.backends.executable import Executable, Port
from irscope.backends.object_code import ObjectCode
from irscope.graph import DTYPES
from irscope.lazy import Array, np
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Step, Switch
from irscope.lower.tile import Kernel
from irscope.source.data_text import json_value

FORMAT = 1
"""Part of the key of every stored program: it changes with the layout of the header."""
ALIGNMENT = 64
MOST_NESTED = 100
"""Loops and branches of a stored program nest at most this deep; a deeper one is compiled at each start."""

F = TypeVar("F")
Pairs = tuple[tuple[int, int], ...]


class BadProgramFile(ValueError):
    """Bytes that are not a program as :func:`to_pieces` writes it."""


@dataclass(slots=True)
class CompiledProgram:
    """A program, its ports and its machine code. ``varying``: where sizes vary at run time, the places of the sizes among inputs and
    outputs (:class:`irscope.expand.dynamic.Varying`). ``facts`` are data for JSON that the caller adds."""

    program: Program
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    code: ObjectCode
    varying: tuple[Pairs, Pairs] | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    def loaded(self, threads: int) -> Executable:
        """The program in the memory of this process."""
        return Executable(self.program, self.inputs, self.outputs, self.code, threads)

    @property
    def constant_bytes(self) -> int:
        """The bytes of its constants, packed weights among them."""
        return sum(slot.bytes for slot in self.program.constants)


def to_pieces(compiled: CompiledProgram) -> list[Content] | None:
    """The bytes, in pieces; None for a program that nests too deep."""
    program = compiled.program
    slots = [*program.inputs, *program.outputs, *program.temps, *program.constants]
    kernels = program.kernels()
    writer = _Writer({id(slot): n for n, slot in enumerate(slots)}, {id(kernel): n for n, kernel in enumerate(kernels)})
    steps = writer.rows(program.steps, 0)
    if writer.deep:
        return None
    sections: list[Content] = [*compiled.code.objects]
    sections += [np.ascontiguousarray(np.asarray(slot.data)).reshape(-1).view(np.uint8).data for slot in program.constants]
    header = json.dumps({
        "name": program.name, "arena_bytes": program.arena_bytes, "flush_denormals": program.flush_denormals,
        "ports": [[port_row(port) for port in ports] for ports in (compiled.inputs, compiled.outputs)],
        "slots": [[_slot_row(slot) for slot in group] for group in (program.inputs, program.outputs, program.temps, program.constants)],
        "kernels": [_kernel_row(kernel) for kernel in kernels], "steps": steps,
        "scratch": compiled.code.scratch, "stops": compiled.code.stops, "objects": len(compiled.code.objects),
        "sizes": [memoryview(section).nbytes for section in sections], "varying": compiled.varying, "facts": compiled.facts,
    }).encode()
    pieces: list[Content] = [len(header).to_bytes(8, "little"), header]
    end = 8 + len(header)
    for section in sections:
        pieces += [bytes(-end % ALIGNMENT), section]
        end += -end % ALIGNMENT + memoryview(section).nbytes
    return pieces


def of_content(content: Array, facts_of: Callable[[dict[str, Any]], F]) -> tuple[CompiledProgram, F]:
    """The program in an entry's bytes, and the result of ``facts_of`` for its facts. The program's constants are views of ``content``.
    Raises BadProgramFile."""
    try:
        compiled = _read(content)
        return compiled, facts_of(compiled.facts)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise BadProgramFile(f"has an unknown structure: {type(error).__name__} {error}") from None


def _read(content: Array) -> CompiledProgram:
    length = int.from_bytes(content[:8].tobytes(), "little")
    end = 8 + length
    if content.size < end:
        raise ValueError("the header is cut off")
    header = json_value(content[8:end].tobytes())
    sections = []
    for size in header["sizes"]:
        begin = end + -end % ALIGNMENT
        end = begin + size
        if size < 0 or end > content.size:
            raise ValueError("a section is cut off")
        sections.append(content[begin:end])
    inputs, outputs, temps, constants = ([_slot(row) for row in rows] for rows in header["slots"])
    objects = sections[:header["objects"]]
    for slot, data in zip(constants, sections[len(objects):], strict=True):
        slot.data = data.view(slot.dtype.numpy())
        if slot.data.size != slot.elements:
            raise ValueError(f"constant {slot.name} has {slot.data.size} elements, not {slot.elements}")
    reader = _Reader([*inputs, *outputs, *temps, *constants], [_kernel(row) for row in header["kernels"]])
    program = Program(header["name"], inputs, outputs, temps, constants, reader.steps(header["steps"]), int(header["arena_bytes"]),
                      bool(header["flush_denormals"]))
    ports = [[port_of(row) for row in rows] for rows in header["ports"]]
    code = ObjectCode([o.tobytes() for o in objects], int(header["scratch"]), from_cache=len(objects), stops=bool(header["stops"]))
    varying = header["varying"]
    pairs = None if varying is None else (_pairs(varying[0]), _pairs(varying[1]))
    return CompiledProgram(program, ports[0], ports[1], code, pairs, dict(header["facts"]))


def _pairs(rows: list[list[int]]) -> Pairs:
    return tuple((int(a), int(b)) for a, b in rows)


def port_row(port: Port) -> list[Any]:
    """A port as data for JSON."""
    return [port.name, port.dtype.name, port.shape, port.varying]


def port_of(row: list[Any]) -> Port:
    """The port of a row. Raises ValueError or KeyError for other data."""
    name, dtype, shape, varying = row
    return Port(name, DTYPES[dtype], tuple(map(int, shape)), tuple(map(int, varying)))


def _slot_row(slot: Slot) -> list[Any]:
    return [slot.name, slot.dtype.name, slot.elements, slot.scope, slot.number, slot.offset, slot.zeroed]


def _slot(row: list[Any]) -> Slot:
    name, dtype, elements, scope, number, offset, zeroed = row
    return Slot(name, DTYPES[dtype], int(elements), scope, int(number), int(offset), zeroed=bool(zeroed))


def _kernel_row(kernel: Kernel) -> list[Any]:
    return [kernel.name, kernel.flops, kernel.bytes, kernel.origin, kernel.schedule, kernel.precision, kernel.counts_flops]


def _kernel(row: list[Any]) -> Kernel:
    name, flops, moved, origin, schedule, precision, counts_flops = row
    return Kernel(name, flops=float(flops), bytes=float(moved), origin=tuple(origin), schedule=dict(schedule), precision=precision,
                  counts_flops=bool(counts_flops))


@dataclass(slots=True)
class _Writer:
    """Writes steps as rows. ``slots`` and ``kernels`` map an ``id`` to a number. Recurses as deep as the loops and branches nest, up to
    ``MOST_NESTED``."""

    slots: dict[int, int]
    kernels: dict[int, int]
    deep: bool = False

    def rows(self, steps: Sequence[Step], depth: int) -> list[list[Any]]:
        if depth > MOST_NESTED:
            self.deep = True
            return []
        return [self.row(step, depth + 1) for step in steps]

    def row(self, step: Step, depth: int) -> list[Any]:
        at = self.slots
        if isinstance(step, Launch):
            return ["launch", self.kernels[id(step.kernel)], [[at[id(slot)], place] for slot, place in step.args]]
        if isinstance(step, Copy):
            return ["copy", at[id(step.source)], at[id(step.target)], step.bytes, step.source_offset, step.target_offset]
        if isinstance(step, Loop):
            return ["loop", self.rows(step.condition, depth), at[id(step.flag)], self.rows(step.body, depth), step.trips]
        if isinstance(step, Switch):
            return ["switch", at[id(step.selector)], [self.rows(branch, depth) for branch in step.branches]]
        raise TypeError(f"a step of an unknown kind: {type(step).__name__}")


@dataclass(slots=True)
class _Reader:
    """Rows as steps."""

    slots: list[Slot]
    kernels: list[Kernel]

    def steps(self, rows: list[list[Any]]) -> list[Step]:
        return [self.step(row) for row in rows]

    def step(self, row: list[Any]) -> Step:
        kind, *parts = row
        if kind == "launch":
            return Launch(self.kernels[parts[0]], [(self.slots[slot], int(place)) for slot, place in parts[1]])
        if kind == "copy":
            return Copy(self.slots[parts[0]], self.slots[parts[1]], *map(int, parts[2:5]))
        if kind == "loop":
            condition, flag, body, trips = parts
            return Loop(self.steps(condition), self.slots[flag], self.steps(body), trips)
        if kind == "switch":
            return Switch(self.slots[parts[0]], [self.steps(branch) for branch in parts[1]])
        raise ValueError(f"a step of the kind {kind!r}")
