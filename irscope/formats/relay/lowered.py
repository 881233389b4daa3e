"""Extracts loops, buffers and allocations from the text of a function that TVM has lowered; the text itself is kept.

    allocate(conv: Pointer(global float32), float32, [1, 16, 32, 32]), storage_scope = global {
      for (i: int32, 0, 16) "parallel" {
"""

from __future__ import annotations

import re
from math import prod

from irscope.formats.relay.types import dtype_named

LOOP = re.compile(r'\bfor \((\w+)(?:: \w+)?, (-?\d+), (\w+)\)(?: "(\w+)")?')
ALLOCATION = re.compile(r"\ballocate\((\w+): Pointer\((?:(\w+) )?\w+\), (\w+), \[([\d, ]*)\]\)(?:, storage_scope = (\w+))?")
BUFFER = re.compile(r"(\w+): Buffer\(\w+: Pointer\([\w ]+\), (\w+), \[([^\]]*)\]")
SCRIPT_LOOP = re.compile(r"\bfor ([\w, ]+) in T\.(\w+)\(([\d, ]+)\)")
SCRIPT_ALLOCATION = re.compile(r'(\w+) = T\.(?:allocate|alloc_buffer)\([\[(]([\d, ]*)[\])], (?:dtype=)?"(\w+)"(?:, (?:scope=)?"([\w.]+)")?')
SCRIPT_BUFFER = re.compile(r'(\w+)(?:: T\.Buffer| = T\.match_buffer)\([^()]*\(([\d, ]*)\), "(\w+)"')


def facts_of(text: str) -> dict[str, object]:
    """Loops as (variable, extent, kind), allocations as (name, dtype, shape, scope, bytes), buffers as (name, dtype, shape)."""
    loops = [(m[1], m[3], m[4] or "serial") for m in LOOP.finditer(text)]
    for m in SCRIPT_LOOP.finditer(text):
        kind = {"grid": "serial", "serial": "serial"}.get(m[2], m[2])
        names, extents = m[1].split(","), m[3].split(",")
        loops += [(name.strip(), extent.strip(), kind) for name, extent in zip(names, extents[-len(names) :], strict=False)]
    allocations = [_allocation(m[1], m[3], m[4], m[5] or m[2] or "global") for m in ALLOCATION.finditer(text)]
    allocations += [_allocation(m[1], m[3], m[2], m[4] or "global") for m in SCRIPT_ALLOCATION.finditer(text)]
    buffers = [(m[1], m[2], _shape(m[3])) for m in BUFFER.finditer(text)]
    buffers += [(m[1], m[3], _shape(m[2])) for m in SCRIPT_BUFFER.finditer(text)]
    found = {"loops": tuple(loops), "allocations": tuple(allocations), "buffers": tuple(buffers)}
    return {key: value for key, value in found.items() if value}


def _allocation(name: str, dtype: str, shape: str, scope: str) -> tuple[str, str, tuple[int, ...], str, int]:
    sizes = _shape(shape)
    known = dtype_named(dtype)
    return name, dtype, sizes, scope, prod(sizes) * (known.storage if known is not None else 1)


def _shape(text: str) -> tuple[int, ...]:
    """The sizes that are numbers."""
    return tuple(int(n) for n in re.findall(r"\d+", text))
