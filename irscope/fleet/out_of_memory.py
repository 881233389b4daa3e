"""The out-of-memory error of XLA: what was requested, and the largest buffers at the peak.

XLA prints the buffers in two forms: numbered blocks after ``Peak buffers:`` (CPU, GPU) and a numbered list after
``Largest program allocations in hbm:`` (TPU). A log may put its own prefix before every line.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field

BEGINS = re.compile(r"Out of memory while trying to allocate|Out of memory allocating|Ran out of memory in memory space|"
                    r"BufferAssignment OOM Debugging|Peak buffers:|Largest program allocations in ")
"""What such an error contains."""
_REQUESTED = re.compile(r"(?:trying to allocate|[Oo]ut of memory allocating) ([\d.]+) ?(bytes|[KMGT]i?B?)\b")
_BLOCK = re.compile(r"(?:Buffer \d+:|(?<![\w.])\d+\. Size: (?P<size>[\d.]+[KMGT]?i?B?))\s*$")
_FIELD = re.compile(r"(?P<key>Size|Operator|XLA [Ll]abel|Shape|Entry Parameter Subshape|Allocation type|Unpadded size|"
                    r"Extra memory due to padding): ?(?P<value>.*)$")
_STATISTIC = re.compile(r"(?P<name>parameter|constant|maybe_live_out|preallocated temp|total) allocation: +(?P<size>[\d.]+[KMGT]?i?B)")
_END = re.compile(r"(?<!=)={10,}\s*$")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SORTS = {"parameter": "parameter", "constant": "constant", "maybe_live_out": "output", "preallocated temp": "temporary"}
"""XLA's names for sorts of allocations, and ours."""


@dataclass(frozen=True, slots=True)
class PeakBuffer:
    """One of the largest buffers: ``bytes`` are rounded as printed (None: not stated), ``type`` has no layout, ``label`` is an operator or
    an instruction.

    ``op_name`` and ``source`` (``file:line``) are those of the user's program, where the error has them. ``padding`` counts bytes that the
    layout adds.
    """

    bytes: int | None
    type: str = ""
    label: str = ""
    op_name: str = ""
    source: str = ""
    sort: str = "temporary"
    padding: int = 0

    @property
    def name(self) -> str:
        """The name of the instruction, where the label is one: ``%fusion.3 = f32[...] fusion(...)``."""
        named = re.match(r"%?([\w.\-]+) = ", self.label)
        return named[1] if named else ""

    @property
    def opcode(self) -> str:
        """The operator of the label, or ``parameter``."""
        found = re.search(r"(?<![\w\-])([a-z][\w\-]*)\(", self.label) if "=" in self.label else re.fullmatch(r"([a-z][\w\-]*)", self.label)
        return found[1] if found else "parameter" if self.sort == "parameter" else ""


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """An error. In bytes: ``requested`` by the allocation that failed (None: not stated), ``sorts`` by sort of allocation."""

    requested: int | None = None
    sorts: dict[str, int] = field(default_factory=dict)
    buffers: tuple[PeakBuffer, ...] = ()


def parse_out_of_memory(text: str) -> OutOfMemory | None:
    """Read the first such error of a log; None where there is none.

    >>> error = parse_out_of_memory('''RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4096 bytes.
    ... Peak buffers:
    ...     Buffer 1:
    ...         Size: 4.0KiB
    ...         Operator: op_name="jit(f)/add" source_file="f.py" source_line=3
    ...         XLA Label: fusion
    ...         Shape: f32[1024]
    ...         ==========================
    ... ''')
    >>> error.requested, error.buffers[0].type, error.buffers[0].source
    (4096, 'f32[1024]', 'f.py:3')
    """
    begins = BEGINS.search(text)
    if begins is None:
        return None
    requested: int | None = None
    sorts: dict[str, int] = {}
    blocks: list[dict[str, str]] = []
    inside = False
    for line in text[text.rfind("\n", 0, begins.start()) + 1:].splitlines():
        if requested is None and (found := _REQUESTED.search(line)):
            requested = _size(found[1] + ("" if found[2] == "bytes" else found[2]))
        if (found := _STATISTIC.search(line)) and found["name"] in SORTS and (size := _size(found["size"])) is not None:
            sorts.setdefault(SORTS[found["name"]], size)
        elif found := _BLOCK.search(line):
            blocks.append({"Size": found["size"] or ""})
            inside = True
        elif inside and (found := _FIELD.search(line)):
            blocks[-1][found["key"].lower()] = found["value"].strip()
        elif _END.search(line):
            inside = False
    return OutOfMemory(requested, sorts, tuple(_buffer(block) for block in blocks))


def _buffer(block: dict[str, str]) -> PeakBuffer:
    operator = block.get("operator", "")
    source = re.search(r'source_file="([^"]*)"', operator), re.search(r"source_line=(\d+)", operator)
    op_name = re.search(r'op_name="([^"]*)"', operator)
    parameter = "entry parameter subshape" in block or "parameter" in block.get("allocation type", "").lower()
    return PeakBuffer(
        bytes=_size(block.get("size") or block["Size"]),
        type=re.sub(r"\{[^{}]*\}", "", block.get("shape") or block.get("entry parameter subshape", "")),  # without its layout
        label=block.get("xla label", ""),
        op_name=op_name[1] if op_name else "",
        source=f"{source[0][1]}:{source[1][1]}" if source[0] and source[1] else source[0][1] if source[0] else "",
        sort="parameter" if parameter else "temporary",
        padding=_size(block.get("extra memory due to padding", "0").partition(" ")[0]) or 0,
    )


def _size(text: str) -> int | None:
    """``1.34G``, ``6.00MiB`` or ``384.0KiB`` in bytes; None for anything else."""
    found = re.fullmatch(r"(\d{1,20}(?:\.\d{0,20})?)([KMGT]?)(?:iB|B)?", text, re.ASCII)
    return round(float(found[1]) * _UNITS[found[2]]) if found else None
