"""What the first view of optimised HLO texts has to name, from their lines alone.

``python -m benchmarks.first_view.truth FILE... > truth.json``. It reads the texts by a few expressions, and shares no code with irscope.
"""
from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{\s*$")
LINE = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\w+\[[^\]]*\](?:\{[^}]*\})?) ([a-z][\w\-]*)\((.*)$")
ARRAY = re.compile(r"([a-z]\w*)\[([\d,]*)\]")
CALLED = re.compile(r"(?:calls|body|condition|to_apply|true_computation|false_computation)=%?([\w.\-]+)|branch_computations=\{([^}]*)\}")
TRIPS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
SIZES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "f16": 2, "bf16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8, "u64": 8, "f64": 8,
         "c64": 8, "c128": 16}
FREE = frozenset("parameter constant tuple get-tuple-element bitcast after-all opt-barrier while call conditional partition-id "
                 "replica-id add-dependency".split())
RENAMES = ("bitcast", "get-tuple-element", "opt-barrier")
MOVES = ("broadcast", "copy", "transpose", "reshape", "iota", "slice", "concatenate", "pad")
PARTS = ("dynamic-slice", "slice", "gather", "dynamic-update-slice")
FLOATS = ("f16", "bf16", "f32", "f64")
FLOPS_PER_BYTE = 16
NEAR = 0.99
"""Of what is nearly as large as the largest, each may be named."""


@dataclass
class Line:
    """An instruction."""

    name: str
    arrays: list[tuple[str, list[int]]]
    op: str
    operands: list[str]
    rest: str

    @property
    def bytes(self) -> int:
        return sum(SIZES.get(dtype, 1) * prod(dims) for dtype, dims in self.arrays)


@dataclass
class Computation:
    """Instructions by name, and how often they run."""

    lines: dict[str, Line] = field(default_factory=dict)
    times: float = 0
    is_fused: bool = False
    is_scalar: bool = False


def arrays(text: str) -> list[tuple[str, list[int]]]:
    return [(dtype, [int(n) for n in dims.split(",") if n]) for dtype, dims in ARRAY.findall(text)]


def read(text: str) -> tuple[dict[str, Computation], str]:
    """The computations of a text, and the name of its entry."""
    found: dict[str, Computation] = {}
    entry, current = "", Computation()
    for row in text.splitlines():
        if (header := HEADER.match(row)) is not None:
            current = found[header[2]] = Computation()
            entry = header[2] if header[1] else entry
        elif (matched := LINE.match(row)) is not None:
            name, type, op, rest = matched.groups()
            current.lines[name] = Line(name, arrays(type), op, re.findall(r"%([\w.\-]+)", rest.split(")", 1)[0]), rest)
    found[entry].times = 1
    order, stack = [], [(entry, False)]
    seen: set[str] = set()
    while stack:
        name, done = stack.pop()
        if done:
            order.append(name)
        elif name not in seen:
            seen.add(name)
            stack.append((name, True))
            stack += [(inner, False) for line in found[name].lines.values() for inner in called(line)]
    for name in reversed(order):
        mine = found[name]
        for line in mine.lines.values():
            trips = int(known[1]) if line.op == "while" and (known := TRIPS.search(line.rest)) else 1
            for inner in called(line):
                found[inner].times += mine.times * trips
                found[inner].is_fused |= mine.is_fused or line.op == "fusion"
                found[inner].is_scalar |= mine.is_scalar or line.op not in ("fusion", "while", "call", "conditional")
    return {name: found[name] for name in order}, entry


def called(line: Line) -> list[str]:
    return [name.strip().lstrip("%") for one, many in CALLED.findall(line.rest) for name in ([one] if one else many.split(","))]


def flops_of(line: Line, inside: Computation, found: dict[str, Computation]) -> float:
    """Of a kernel; a product counts two for each pair that it multiplies, any other operator one for each element."""
    if line.op == "fusion":
        return sum(flops_of(inner, found[name], found) for name in called(line) for inner in found[name].lines.values())
    elements = sum(prod(dims) for _, dims in line.arrays)
    sources = [inside.lines[name].arrays[0][1] for name in line.operands if name in inside.lines and inside.lines[name].arrays]
    if line.op == "dot" and sources:
        dims = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", line.rest)
        return 2 * elements * prod(sources[0][int(i)] for i in dims[1].split(",") if i) if dims else 2 * elements
    if line.op == "convolution" and len(sources) > 1:
        labels = re.search(r"dim_labels=\w+_(\w+)->", line.rest)
        out = sources[1][labels[1].index("o")] if labels else 1
        dilated = re.search(r"lhs_dilate=([\dx]+)", line.rest)  # the positions between are zeros
        return 2 * elements * prod(sources[1]) / max(out, 1) / (prod(map(int, dilated[1].split("x"))) if dilated else 1)
    if line.op == "reduce" and sources:
        return prod(sources[0])
    return 0 if line.op in FREE or line.op in MOVES else elements


def moved_by(line: Line, inside: Computation, found: dict[str, Computation]) -> float:
    """The bytes that a kernel reads and writes: of what it slices the slices, of what it updates in place the update."""
    sizes = {name: inside.lines[name].bytes for name in line.operands if name in inside.lines}
    if line.op in ("dynamic-slice", "gather", "slice"):
        return 2 * line.bytes + sum(size for name, size in sizes.items() if name != line.operands[0])
    body = list(found[called(line)[0]].lines.values()) if line.op == "fusion" else []
    read = float(sum(sizes.values()))
    for number, name in enumerate(line.operands):
        mine = next((p.name for p in body if p.op == "parameter" and p.rest.startswith(f"{number})")), "")
        uses = [user for user in body if mine in user.operands]
        if uses and all(user.op in PARTS and user.operands[0] == mine for user in uses):
            part = sum(user.bytes for user in uses if user.op != "dynamic-update-slice")
            read -= max(0, sizes.get(name, 0) - part)
    by_name = {inner.name: inner for inner in body}
    updates = [by_name[u.operands[1]].bytes for u in body if u.op == "dynamic-update-slice" and u.arrays == line.arrays]
    return read + (updates[0] if updates else line.bytes)


def source(name: str, inside: Computation) -> tuple[str, int]:
    """The instruction that computes a value, and the bytes of the value."""
    size = inside.lines[name].bytes
    while inside.lines[name].op in RENAMES and inside.lines[name].operands:
        line = inside.lines[name]
        name = line.operands[0]
        if inside.lines[name].op == "tuple" and line.op == "get-tuple-element":
            index = re.search(r"index=(\d+)", line.rest)
            name = inside.lines[name].operands[int(index[1])] if index else name
    return name, size


def edges(inside: Computation) -> Iterator[tuple[float, list[str]]]:
    """The bytes that each kernel hands to another, over all runs."""
    for line in inside.lines.values():
        if line.op in FREE:
            continue
        for operand in line.operands:
            if operand in inside.lines:
                name, size = source(operand, inside)
                if inside.lines[name].op not in FREE:
                    yield size * inside.times, [name, line.name]


def largest(found: list[tuple[float, Any]]) -> list[Any]:
    """The largest and those that are nearly as large."""
    most = max((figure for figure, _ in found), default=0.0)
    return [each for figure, each in found if most and figure >= most * NEAR]


def leaks(found: dict[str, Computation], entry: str) -> dict[str, list[str]]:
    """Values in double precision where no input is, and conversions between floats, by kind."""
    given = {dtype for line in found[entry].lines.values() if line.op == "parameter" for dtype, _ in line.arrays}
    kinds: dict[str, list[str]] = {}
    for name, inside in found.items():
        for line in inside.lines.values() if not inside.is_scalar else ():
            if len(line.arrays) != 1 or line.op == "tuple":
                continue
            dtype = line.arrays[0][0]
            before = inside.lines[line.operands[0]].arrays[0][0] if line.op == "convert" and line.operands[0] in inside.lines else ""
            if dtype in ("f64", "c128") and not given & {"f64", "c128"}:
                kinds.setdefault(dtype, []).append(f"{name}/{line.name}")
            elif before in FLOATS and dtype in FLOATS and before != "f64":
                kinds.setdefault(f"{before} -> {dtype}", []).append(f"{name}/{line.name}")
    return kinds


def truth(text: str) -> dict[str, Any]:
    """The names that a first view owes its reader."""
    found, entry = read(text)
    alone = [inside for inside in found.values() if not inside.is_fused and not inside.is_scalar]
    kernels: list[tuple[float, str]] = []
    work: list[tuple[float, str]] = []
    for inside in alone:
        for line in inside.lines.values():
            if line.op not in FREE:
                flops = flops_of(line, inside, found)
                moved = moved_by(line, inside, found)
                kernels.append((max(flops / FLOPS_PER_BYTE, moved) * inside.times, line.name))
                work.append((flops * inside.times, line.name))
    copies = [(float(line.bytes), line.name) for inside in found.values() if not inside.is_scalar
              for line in inside.lines.values() if line.op == "copy"]
    return {"nodes": sum(len(inside.lines) for inside in found.values()), "kernels": largest(kernels), "work": largest(work),
            "copies": largest(copies), "edges": largest([edge for inside in alone for edge in edges(inside)]), "leaks": leaks(found, entry)}


if __name__ == "__main__":
    json.dump({path: truth(Path(path).read_text()) for path in sys.argv[1:]}, sys.stdout, indent=1)
