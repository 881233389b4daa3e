"""A program as one function: ``irscope_main(inputs, outputs, arena, context)``.

``inputs`` and ``outputs`` are arrays of pointers, ``arena`` the memory of the temporaries. ``context`` is an array of 64-bit words, on
32-bit machines too: the pool of threads (0: none), this thread's scratch memory, the array of pointers to constants, the number of
threads, and where the program is profiled the records of its launches (:data:`RECORD`).
"""
from __future__ import annotations

import time
from dataclasses import dataclass, field

from irscope.backends.llvm_denormals import Denormals, denormals
from irscope.backends.llvm_kernel import KernelText
from irscope.backends.stopping import DECLARED, LONG, look, work_of
from irscope.graph import DType
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Kernel
from irscope.lower.traversal import Visitor, visits

POOL, SCRATCH, CONSTANTS, THREADS, RECORDS = range(5)
RECORD = 4
"""64-bit words of the record of a launch or a copy: nanoseconds from its beginning to its end, how often it ran, nanoseconds of all threads
in its chunks, and the number of chunks (0: it ran on the calling thread alone)."""
Records = list[Kernel | int]
"""What the records time, in order: a kernel, or a copy of that many bytes."""
SMALLEST_CHUNK_US = 6.0
"""Less work than this is not worth a chunk; a kernel of less than two chunks runs inline."""


def main_text(program: Program, names: dict[Kernel, str], texts: dict[Kernel, KernelText], triple: str = "",
              stops: bool = False, records: Records | None = None) -> str:
    """The module of the main function; ``names`` are the kernels' symbols, without ``@``. ``stops``: it polls for a request to stop,
    in each iteration of a loop and after each kernel that is divided among threads. ``records``: it times every launch and copy, whose
    kernels are added to the list."""
    fp = denormals(triple) if program.flush_denormals else Denormals()
    main = _Main(names, texts, {slot: number for number, slot in enumerate(program.constants)}, fp, stops, records)
    main.block(program.steps)
    parts = [
        *sorted(set(main.declared.values())),
        *fp.declare,
        *([DECLARED] if stops else []),
        *([_CLOCK.format(clock=time.CLOCK_MONOTONIC)] if records is not None else []),
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare void @irscope_share(ptr, ptr, ptr, i64, ptr)",
        *main.chunks.values(),
        "define void @irscope_main(ptr %inputs, ptr %outputs, ptr %arena, ptr %context) nounwind {",
        "entry:",
        f"  %args = alloca [{main.widest} x ptr], align 8",
        "  %pool = load ptr, ptr %context",
        f"  %scratch.at = getelementptr i64, ptr %context, i64 {SCRATCH}",
        "  %scratch = load ptr, ptr %scratch.at",
        f"  %constants.at = getelementptr i64, ptr %context, i64 {CONSTANTS}",
        "  %constants = load ptr, ptr %constants.at",
        f"  %threads.at = getelementptr i64, ptr %context, i64 {THREADS}",
        "  %threads = load i64, ptr %threads.at",
        "  %many = icmp sgt i64 %threads, 1",
        *([f"  %records.at = getelementptr i64, ptr %context, i64 {RECORDS}", "  %records = load ptr, ptr %records.at"]
          if records is not None else []),
        *fp.off,
        *main.lines,
        *(["  br label %stopped", "stopped:"] if stops else []),
        *fp.back,
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(parts)


@dataclass(slots=True)
class _Main(Visitor):
    """Emits steps, which nest only a few deep, as the program's loops and branches do."""

    names: dict[Kernel, str]
    texts: dict[Kernel, KernelText]
    constants: dict[Slot, int]
    denormals: Denormals
    stops: bool
    records: Records | None = None
    lines: list[str] = field(default_factory=list)
    declared: dict[str, str] = field(default_factory=dict)
    chunks: dict[str, str] = field(default_factory=dict)
    count: int = 0
    widest: int = 1

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def say(self, text: str) -> None:
        self.lines.append("  " + text)

    def base(self, slot: Slot) -> str:
        """The address of a slot's first byte."""
        if slot.scope == "temp":
            return self.offset("%arena", slot.offset)
        table = {"input": "%inputs", "output": "%outputs", "constant": "%constants"}[slot.scope]
        name = self.name()
        at = table
        number = self.constants[slot] if slot.scope == "constant" else slot.number
        if number:
            at = self.name()
            self.say(f"{at} = getelementptr ptr, ptr {table}, i64 {number}")
        self.say(f"{name} = load ptr, ptr {at}")
        return name

    def offset(self, pointer: str, bytes: int) -> str:
        if bytes == 0:
            return pointer
        name = self.name()
        self.say(f"{name} = getelementptr i8, ptr {pointer}, i64 {bytes}")
        return name

    @visits(Launch)
    def launch(self, launch: Launch) -> None:
        kernel = launch.kernel
        text = self.texts[kernel]
        if len(launch.args) != text.parameters:
            raise ValueError(f"kernel {kernel.name} takes {text.parameters} buffers, not {len(launch.args)}")
        pointers = [self.offset(self.base(slot), place * slot.dtype.storage) for slot, place in launch.args]
        self.widest = max(self.widest, len(pointers))
        micros = max(kernel.flops / 50e3, kernel.bytes / 20e3) / max(1, len(text.phases))
        for phase in text.phases:
            symbol = "@" + self.names[kernel] + phase.symbol.removeprefix("@K")
            kinds = ", ".join(["ptr"] * len(pointers) + ["i64", "i64", "ptr"])
            self.declared[symbol] = f"declare void {symbol}({kinds})"
            values = ", ".join([*(f"ptr {p}" for p in pointers), "i64 0", f"i64 {phase.units}", "ptr %scratch"])
            call = f"call void {symbol}({values})"
            most = min(phase.units, int(micros / SMALLEST_CHUNK_US))
            begin = self.clock()
            if most < 2:
                self.say(call)
            else:
                self.shared(symbol, phase.units, most, pointers, call)
            self.account(begin, kernel, phase is text.phases[0])

    @visits(Copy)
    def copy(self, step: Copy) -> None:
        if step.bytes:
            source = self.offset(self.base(step.source), step.source_offset)
            target = self.offset(self.base(step.target), step.target_offset)
            begin = self.clock()
            self.say(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {step.bytes}, i1 false)")
            self.account(begin, step.bytes, True)

    def clock(self) -> str:
        """The time, where the program is profiled."""
        if self.records is None:
            return ""
        name = self.name()
        self.say(f"{name} = call i64 @irscope.now()")
        return name

    def account(self, begin: str, what: Kernel | int, counts: bool) -> None:
        """Add the time since ``begin`` to a new record. ``counts``: it is a launch, and not a later phase of one."""
        if self.records is None:
            return
        end, spent = self.clock(), self.name()
        self.say(f"{spent} = sub i64 {end}, {begin}")
        for word, more in enumerate((spent, str(int(counts)))):
            at, before, after = self.name(), self.name(), self.name()
            self.say(f"{at} = getelementptr i64, ptr %records, i64 {RECORD * len(self.records) + word}")
            self.say(f"{before} = load i64, ptr {at}")
            self.say(f"{after} = add i64 {before}, {more}")
            self.say(f"store i64 {after}, ptr {at}")
        self.records.append(what)

    def shared(self, symbol: str, units: int, most: int, pointers: list[str], call: str) -> None:
        """Run a kernel through the pool where there is one: at most ``most`` chunks, and no more than four per thread."""
        number = self.name()[1:]
        self.say(f"br i1 %many, label %{number}.share, label %{number}.alone")
        self.lines.append(f"{number}.share:")
        for i, pointer in enumerate(pointers):
            self.say(f"%{number}.a{i} = getelementptr ptr, ptr %args, i64 {i}")
            self.say(f"store ptr {pointer}, ptr %{number}.a{i}")
        if self.records is not None:
            self.widest = max(self.widest, len(pointers) + 1)
            self.say(f"%{number}.r = getelementptr i64, ptr %records, i64 {RECORD * len(self.records)}")
            self.say(f"%{number}.ar = getelementptr ptr, ptr %args, i64 {len(pointers)}")
            self.say(f"store ptr %{number}.r, ptr %{number}.ar")
        self.say(f"%{number}.four = shl i64 %threads, 2")
        self.say(f"%{number}.few = icmp slt i64 %{number}.four, {most}")
        self.say(f"%{number}.n = select i1 %{number}.few, i64 %{number}.four, i64 {most}")
        chunk = f"{symbol}.chunk{units}"
        self.say(f"call void @irscope_share(ptr %pool, ptr {chunk}, ptr %args, i64 %{number}.n, ptr %scratch)")
        self.say(f"br label %{number}.done")
        self.lines.append(f"{number}.alone:")
        self.say(call)
        self.say(f"br label %{number}.done")
        self.lines.append(f"{number}.done:")
        if self.stops:
            self.stop_if_asked(1)
        if chunk not in self.chunks:
            self.chunks[chunk] = _chunk(chunk, symbol, units, len(pointers), self.denormals, self.records is not None)

    def stop_if_asked(self, work: float) -> None:
        """Return if a stop is requested, before a step of this many statements."""
        lines, asked = look(self.name, int(min(work, LONG)))
        for line in lines:
            self.say(line)
        self.say(f"br i1 {asked}, label %stopped, label %{asked[1:]}.on")
        self.lines.append(f"{asked[1:]}.on:")

    def flag(self, slot: Slot) -> str:
        """Whether a pred in memory is true."""
        at, byte, flag = self.base(slot), self.name(), self.name()
        self.say(f"{byte} = load i8, ptr {at}")
        self.say(f"{flag} = icmp ne i8 {byte}, 0")
        return flag

    @visits(Loop)
    def loop(self, step: Loop) -> None:
        number = self.name()[1:]
        self.say(f"br label %{number}.test")
        self.lines.append(f"{number}.test:")
        self.block(step.condition)
        self.say(f"br i1 {self.flag(step.flag)}, label %{number}.body, label %{number}.done")
        self.lines.append(f"{number}.body:")
        if self.stops:
            self.stop_if_asked(work_of([*step.condition, *step.body], {}))
        self.block(step.body)
        self.say(f"br label %{number}.test")
        self.lines.append(f"{number}.done:")

    @visits(Switch)
    def switch(self, step: Switch) -> None:
        number = self.name()[1:]
        labels = [f"{number}.case{i}" for i in range(len(step.branches))]
        if step.selector.dtype.kind == "pred":
            self.say(f"br i1 {self.flag(step.selector)}, label %{labels[0]}, label %{labels[-1]}")
        else:
            kind = _integer(step.selector.dtype)
            at, value = self.base(step.selector), self.name()
            self.say(f"{value} = load {kind}, ptr {at}")
            cases = " ".join(f"{kind} {i}, label %{label}" for i, label in enumerate(labels[:-1]))
            self.say(f"switch {kind} {value}, label %{labels[-1]} [ {cases} ]")
        for label, branch in zip(labels, step.branches):
            self.lines.append(f"{label}:")
            self.block(branch)
            self.say(f"br label %{number}.done")
        self.lines.append(f"{number}.done:")


def _chunk(name: str, symbol: str, units: int, pointers: int, fp: Denormals, timed: bool) -> str:
    """Chunk ``i`` of ``n``: units from ``units*i//n`` to ``units*(i+1)//n``; on any thread, so it sets the floating-point mode itself.
    ``timed``: it adds its time to the record that follows the pointers."""
    lines = [f"define internal void {name}(ptr %args, i64 %i, i64 %n, ptr %scratch) nounwind {{", *fp.off,
             f"  %low = mul i64 %i, {units}", "  %first = udiv i64 %low, %n", f"  %high = add i64 %low, {units}",
             "  %last = udiv i64 %high, %n"]
    for i in range(pointers):
        lines += [f"  %at{i} = getelementptr ptr, ptr %args, i64 {i}", f"  %p{i} = load ptr, ptr %at{i}"]
    values = ", ".join([*(f"ptr %p{i}" for i in range(pointers)), "i64 %first", "i64 %last", "ptr %scratch"])
    call = [f"  call void {symbol}({values})"]
    if timed:
        call = [
            f"  %ar = getelementptr ptr, ptr %args, i64 {pointers}", "  %record = load ptr, ptr %ar",
            "  %began = call i64 @irscope.now()", *call, "  %ended = call i64 @irscope.now()", "  %spent = sub i64 %ended, %began",
            "  %busy = getelementptr i64, ptr %record, i64 2", "  %chunks = getelementptr i64, ptr %record, i64 3",
            "  %before = atomicrmw add ptr %busy, i64 %spent monotonic", "  %count = atomicrmw add ptr %chunks, i64 1 monotonic",
        ]
    return "\n".join([*lines, *call, *fp.back, "  ret void", "}"])


_CLOCK = """declare i32 @clock_gettime(i32, ptr)
define internal i64 @irscope.now() nounwind {{
  %at = alloca [2 x i64], align 8
  %failed = call i32 @clock_gettime(i32 {clock}, ptr %at)
  %seconds = load i64, ptr %at
  %second = getelementptr i64, ptr %at, i64 1
  %nanos = load i64, ptr %second
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanos
  ret i64 %now
}}"""


def _integer(dtype: DType) -> str:
    return f"i{8 * dtype.storage}"
