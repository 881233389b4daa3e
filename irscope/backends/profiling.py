"""Profiles of compiled programs: every launch and copy is timed inside one call, by the program itself, on the threads that it runs on."""
from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from irscope.backends import compile as compiler
from irscope.backends import llvm_compile
from irscope.backends.code_facts import CodeFacts, code_facts
from irscope.backends.executable import Executable, Port
from irscope.backends.llvm_main import RECORD
from irscope.backends.object_code import CompilationUnit
from irscope.backends.targets import Machine
from irscope.graph.dtypes import C128, F64
from irscope.lazy import Array, np
from irscope.lower.contents import value_layout
from irscope.lower.program import Program
from irscope.lower.tile import Kernel
from irscope.source import UserError


@dataclass(slots=True)
class KernelTime:
    """A kernel in one call: ``runs`` launches that took ``us`` together; ``busy_us`` is the time of all threads in it. ``flops`` and
    ``bytes`` count all launches, each byte of a buffer once a launch. ``kernel`` is None for copies of memory. ``code``: None where irscope
    does not read the assembly of this machine, and for copies."""

    kernel: Kernel | None
    runs: int = 0
    us: float = 0.0
    busy_us: float = 0.0
    bytes: float = 0.0
    code: CodeFacts | None = None

    @property
    def flops(self) -> float | None:
        """None where they are not known: several kernels share the work of a group, or it depends on data."""
        if self.kernel is None:
            return 0.0
        return self.kernel.flops * self.runs if self.kernel.counts_flops else None

    @property
    def is_double(self) -> bool:
        """Whether it works on elements of f64, of which a vector holds half as many."""
        return self.kernel is not None and any(buffer.dtype in (F64, C128) for buffer in self.kernel.params())

    @property
    def name(self) -> str:
        return self.kernel.name if self.kernel is not None else "copies"


@dataclass(slots=True)
class CallProfile:
    """One call, the fastest of ``calls``, in microseconds: ``checks_us`` for checking arguments and allocating outputs, ``launch_us`` for
    the way into the program and between its kernels, ``kernels_us`` inside kernels and copies, together ``total_us``. While kernels ran,
    threads waited ``idle_us`` in all (of ``threads`` times ``kernels_us``)."""

    threads: int
    calls: int
    total_us: float
    checks_us: float
    launch_us: float
    kernels_us: float
    idle_us: float
    kernels: list[KernelTime] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ports:
    """The inputs and outputs of a program."""

    inputs: Sequence[Port]
    outputs: Sequence[Port]


def profiled(program: Program, ports: Ports, arrays: Sequence[Array], threads: int, cpu: str, seconds: float) -> CallProfile:
    """Call a program for a while and profile its fastest call. Raises UserError where the system has no clock for compiled code."""
    if sys.platform == "win32" or sys.maxsize < 1 << 32:
        raise UserError("--profile is not supported on this system", "--bench times whole calls")
    machine = llvm_compile.host(cpu)
    code = compiler.compile_program(program, machine, profiled=True)
    executable = Executable(program, ports.inputs, ports.outputs, code, threads)
    best: tuple[int, int] | None = None
    records = executable.records.copy()
    calls, end = 0, time.perf_counter() + seconds
    while calls < 2 or time.perf_counter() < end:
        spent = _call(executable, arrays)
        calls += 1
        if best is None or sum(spent) < sum(best):
            best = spent
            records = executable.records.copy()
    assert best is not None
    kernels = _by_kernel(code.records, records)
    facts = _facts(code.units, machine)
    for row in kernels:
        row.code = facts.get(id(row.kernel))
    inside = sum(row.us for row in kernels)
    checks, run = best[0] / 1e3, best[1] / 1e3
    idle = threads * inside - sum(row.busy_us for row in kernels)
    return CallProfile(threads, calls, checks + run, checks, run - inside, inside, idle, kernels)


def _call(executable: Executable, arrays: Sequence[Array]) -> tuple[int, int]:
    """One call as ``executable(*arrays)`` makes it: nanoseconds before the program and in it."""
    clock = time.perf_counter_ns
    executable.records[...] = 0
    began = clock()
    _ready, inputs, _placed, outputs = executable.prepare(arrays)  # the arrays live as long as these names
    checked = clock()
    executable.run(ctypes.addressof(inputs), ctypes.addressof(outputs))
    return checked - began, clock() - checked


def _by_kernel(timed: Sequence[Kernel | int], records: Array) -> list[KernelTime]:
    """The records of each kernel together, the costliest first; all copies are one row."""
    rows: dict[Kernel | None, KernelTime] = {}
    for what, (nanos, runs, busy, chunks) in zip(timed, np.asarray(records).reshape(-1, RECORD).tolist()):
        kernel = None if isinstance(what, int) else what
        row = rows.setdefault(kernel, KernelTime(kernel))
        row.us += nanos / 1e3
        row.busy_us += (busy if chunks else nanos) / 1e3
        row.runs += runs
        row.bytes += runs * (2.0 * what if isinstance(what, int) else bytes_of(what))
    return sorted(rows.values(), key=lambda row: -row.us)


def bytes_of(kernel: Kernel) -> float:
    """The bytes of the values that a launch reads and writes, each once."""
    total = 0.0
    for buffer in kernel.params():
        layout = value_layout(buffer)
        elements = prod(n for n, stride in zip(layout.shape, layout.strides) if stride or not n)
        total += elements * buffer.dtype.storage * (2 if buffer.scope == "inout" else 1)
    return total


def _facts(units: Sequence[CompilationUnit], machine: Machine) -> dict[int, CodeFacts]:
    """What the code of each kernel shows."""
    found: dict[int, CodeFacts] = {}
    for unit in units:
        if unit.kernel is None:
            continue
        facts = code_facts(llvm_compile.annotated_assembly(unit.text, machine, unit.speed), machine.triple)
        if facts is not None:
            found.update({id(kernel): facts for kernel in (unit.kernel, *unit.others)})
    return found
