"""The scheduler nodes of ``ir_pre_fusion.txt`` and ``ir_post_fusion.txt``: from text to records.

    op0_op1: FusedSchedulerNode(SchedulerNode,SchedulerNode)
    op0_op1.writes = [MemoryDep('buf0', c0, {c0: 64}), MemoryDep('buf1', c0, {c0: 64})]
    op0_op1.outputs = [
        buf0: ComputedBuffer
        buf0.layout = FixedLayout('cpu', torch.float32, size=[64], stride=[1])
        buf0.users = [NodeUser(node=SchedulerNode(name='op1'), can_inplace=True, is_weak=False)]
        ...
    ]
    op0_op1.snodes[0] =
    op0: SchedulerNode(ComputedBuffer)
    ...
    class op0_loop_body:
        var_ranges = {p0: 64}
        ...

A fused node is followed by its parts, each after a line ``NAME.snodes[I] =``. On GPUs the text of a node's Triton kernel follows it.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from irscope.formats.inductor.dependencies import Dependency, parse_dependencies
from irscope.formats.inductor.layouts import BufferLayout, parse_layout
from irscope.formats.inductor.loop_body import LoopBody, read_body
from irscope.formats.syntax import SyntaxFault
from irscope.source.budget import tick

HEADER = re.compile(r"(\w+): (?=\w*(?:SchedulerNode\(|Fused\w))(\w+)\(([\w,]*)\)\s*$")
_PART = re.compile(r"(\w+)\.snodes\[(\d+)\] =\s*$")
_FIELD = re.compile(r"(\w+)\.([\w.]+) =(.*)$")
_LAYOUT = re.compile(r"(\w+)_layout = (.*)$")
_BODY = re.compile(r"class (\w+)_loop_body:\s*$")
_DEVICE_CODE = re.compile(r"(\w+) (?:Triton code:|Unfinalized multi template buffer)\s*$")
_OUTPUT = re.compile(r"(\w+): (\w+)\s*$")
_OUTPUT_FIELD = re.compile(r"(\w+)\.(layout|aliases|mutations|users) = ?(.*)$")
_USER = re.compile(r"NodeUser\(node=(?:\w+\(name[s]?='?(\w+)'?|(OUTPUT))")
_NAMES = re.compile(r"'([^'\n]*)'")
NEEDED = ("writes", "unmet_dependencies", "met_dependencies", "outputs")
"""Fields that every scheduler node has."""


@dataclass(slots=True)
class Output:
    """A buffer that a scheduler node writes: its class, layout, the nodes that read it, and whether the graph returns it."""

    name: str
    kind: str
    layout: BufferLayout | None = None
    users: tuple[str, ...] = ()
    is_result: bool = False
    aliases: tuple[str, ...] = ()
    mutations: tuple[str, ...] = ()


@dataclass(slots=True)
class SchedulerNode:
    """One entry: the class, that of its IR node (of a fused one, the classes of its parts), what it reads and writes, its loops."""

    name: str
    kind: str
    of: tuple[str, ...]
    offset: int
    fields: dict[str, str] = field(default_factory=dict)
    writes: tuple[Dependency, ...] = ()
    unmet: tuple[Dependency, ...] = ()
    met: tuple[Dependency, ...] = ()
    outputs: list[Output] = field(default_factory=list)
    layouts: dict[str, BufferLayout] = field(default_factory=dict)
    body: LoopBody | None = None
    device_code: str = ""
    parts: list[SchedulerNode] = field(default_factory=list)

    @property
    def is_fused(self) -> bool:
        """Whether it consists of several scheduler nodes."""
        return "Fused" in self.kind or self.kind.startswith(("Foreach", "Grouped"))

    @property
    def is_extern(self) -> bool:
        """Whether it calls a kernel that Inductor did not generate."""
        return self.kind.startswith("ExternKernel")

    @property
    def is_nop(self) -> bool:
        """Whether it needs no kernel: a concatenation whose parts are written in place."""
        return self.kind.startswith("Nop")

    @property
    def is_item(self) -> bool:
        """Whether it only names a result of a kernel with several."""
        return self.of == ("MultiOutput",)

    @property
    def kernel(self) -> str:
        """The extern kernel that it calls; empty where the text names none."""
        word = self.fields.get("node.kernel", "")
        return "" if word == "None" else word

    @property
    def device(self) -> str:
        """The device of its loops or of its first buffer."""
        first = self.outputs[0].layout if self.outputs else None
        return self.fields.get("group.device", "") or (self.parts[0].device if self.parts else first.device if first else "")

    def leaves(self) -> Iterator[SchedulerNode]:
        """The nodes that were not fused from others, in order."""
        stack = [self]
        while stack:
            top = stack.pop()
            if top.parts:
                stack.extend(reversed(top.parts))
            else:
                yield top

    def ops(self) -> tuple[str, ...]:
        """The names of the unfused nodes; of a fused node whose parts the text lacks, as its own name lists them."""
        if self.is_fused and not self.parts:
            return tuple(re.findall(r"op\d+", self.name)) or (self.name,)
        return tuple(leaf.name for leaf in self.leaves())

    def flops(self) -> float:
        """The scalar operations of its loops, as far as their sizes are numbers."""
        return sum(leaf.body.flops() for leaf in self.leaves() if leaf.body is not None)

    def __str__(self) -> str:
        return f"{self.kind}({','.join(self.of)})"


def read_nodes(text: str, faults: list[SyntaxFault]) -> list[SchedulerNode]:
    """The top-level scheduler nodes of a text, with their parts. What cannot be read is added to ``faults``."""
    reader = _Reader(text, faults)
    reader.run()
    return reader.top


class _Reader:
    """Reads lines one by one; an indented line belongs to the last line that is not indented."""

    def __init__(self, text: str, faults: list[SyntaxFault]) -> None:
        self.text = text
        self.faults = faults
        self.last = text.rstrip().rpartition("\n")[2].rstrip()
        self.top: list[SchedulerNode] = []
        self.by_name: dict[str, SchedulerNode] = {}
        self.node: SchedulerNode | None = None
        self.parent: SchedulerNode | None = None
        self.lines: list[tuple[int, str]] = []

    def run(self) -> None:
        at = 0
        for line in self.text.split("\n"):
            tick()
            closes = line.startswith("]")
            if line.strip() and not line[0].isspace() and not closes:
                self._entry()
                self.lines = [(at, line.rstrip())]
            elif self.lines:
                self.lines.append((at, line.rstrip()))
            at += len(line) + 1
        self._entry()
        self._finish()

    def _entry(self) -> None:
        """Take what begins with the first of the kept lines."""
        if not self.lines:
            return
        (offset, first), rest = self.lines[0], self.lines[1:]
        self.lines = []
        if (header := HEADER.match(first)) is not None:
            self._header(header, offset)
        elif (part := _PART.match(first)) is not None:
            self.parent = self.by_name.get(part[1])
            if self.parent is None:
                self.faults.append(SyntaxFault(offset, f"{part[1]} has parts, but the text does not define it", length=len(part[1])))
        elif self.node is not None:
            self._belongs(self.node, offset, first, rest)

    def _header(self, header: re.Match[str], offset: int) -> None:
        self._finish()
        node = SchedulerNode(header[1], header[2], tuple(header[3].split(",")), offset)
        if self.parent is None:
            self.top.append(node)
        else:
            self.parent.parts.append(node)
        self.parent = None
        if node.name in self.by_name:
            self.faults.append(SyntaxFault(offset, f"{node.name} is defined twice", length=len(node.name)))
        self.by_name[node.name] = node
        self.node = node

    def _belongs(self, node: SchedulerNode, offset: int, first: str, rest: list[tuple[int, str]]) -> None:
        """A field, a layout, the loop body or the device code of a node."""
        if _BODY.match(first) is not None:
            node.body = read_body(rest, len(self.text), self.faults, node.name)
        elif _DEVICE_CODE.match(first) is not None:
            node.device_code = "\n".join(line for _, line in rest)
        elif (found := _FIELD.match(first)) is not None and found[1] == node.name:
            value = "\n".join((found[3].strip(), *(line for _, line in rest))).strip()
            node.fields[found[2]] = value
            if found[2] == "outputs":
                node.outputs = _outputs(rest)
                if not value.endswith("]"):
                    self.faults.append(SyntaxFault(len(self.text), f"the text ends inside the outputs of {node.name}"))
        elif (found := _LAYOUT.match(first)) is not None:
            layout = parse_layout(found[2])
            if layout is None:
                self.faults.append(self._broken(offset, first, f"the layout of {found[1]} is not complete"))
            else:
                node.layouts[found[1]] = layout
        elif self._is_last(first):
            self.faults.append(self._broken(offset, first, f"a line of {node.name} is not complete"))

    def _finish(self) -> None:
        """Check the fields of a node that is complete, and read its dependencies."""
        node, self.node = self.node, None
        if node is None:
            return
        missing = [name for name in NEEDED if name not in node.fields]
        if missing:
            where = "the text ends" if node.name == next(reversed(self.by_name)) else "it is cut off"
            words = f"{node.name} has no {missing[0]}: {where} inside its entry"
            self.faults.append(SyntaxFault(node.offset, words, length=len(node.name)))
        node.writes, node.unmet, node.met = (parse_dependencies(node.fields.get(name, "")) for name in NEEDED[:3])
        if node.body is None and node.kind == "SchedulerNode" and "sizes" not in node.fields and not missing:
            self.faults.append(SyntaxFault(node.offset, f"{node.name} has no sizes: its entry is cut off", length=len(node.name)))

    def _is_last(self, line: str) -> bool:
        return bool(line) and line == self.last

    def _broken(self, offset: int, line: str, words: str) -> SyntaxFault:
        ends = ": the text ends there" if self._is_last(line) else ""
        return SyntaxFault(offset, words + ends, length=max(1, len(line)))


def _outputs(lines: list[tuple[int, str]]) -> list[Output]:
    """The buffers between ``outputs = [`` and ``]``."""
    found: list[Output] = []
    spread: list[str] | None = None  # the users of a buffer that has many: a line each
    for _, raw in lines:
        line = raw.strip()
        if spread is not None:
            if line != "]":
                spread.append(line)
                continue
            _users(found[-1], " ".join(spread))
            spread = None
        elif (begun := _OUTPUT.match(line)) is not None:
            found.append(Output(begun[1], begun[2]))
        elif (given := _OUTPUT_FIELD.match(line)) is not None and found:
            output, what, value = found[-1], given[2], given[3]
            if what == "layout":
                output.layout = parse_layout(value)
            elif what == "users":
                spread = [] if value == "[" else None
                _users(output, value)
            elif what == "aliases":
                output.aliases = tuple(_NAMES.findall(value))
            else:
                output.mutations = tuple(_NAMES.findall(value))
    return found


def _users(output: Output, text: str) -> None:
    users = _USER.findall(text)
    output.users = tuple(name for name, _ in users if name)
    output.is_result = any(result for _, result in users)
