"""The peak of this machine, for rooflines: floating-point operations and bytes a second, measured or from a table of families."""
from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from irscope.backends import llvm_compile
from irscope.backends.targets import Machine
from irscope.lazy import np
from irscope.source.budget import require

GHZ = 3.0
"""The clock that the table assumes: a common one under vector load of the servers of its families."""
MEMORY_GBS = 25.0
"""What one core reads from memory, in 1e9 bytes a second, as the table assumes: cores of current servers reach 10 to 45."""
L2_BYTES_PER_CYCLE = 32.0
"""What one core reads from its second cache, as the table assumes: half of the 64 bytes that the manuals of Intel and AMD state as peak."""
CHAINS = 24
"""Independent chains of fused multiply-adds: more than latency times units (4 x 2) of any supported processor; they fit 32 registers.
Machines of 16 registers take half of them."""
STEPS = 300_000
"""Steps of each chain in a timed run: a millisecond."""
LEVELS = (16 << 10, 256 << 10, 4 << 20, 64 << 20)
"""Bytes that one thread reads again and again, to measure caches and memory; the last is more than one core's share of any cache."""
READ = 64 << 20
"""Bytes that are read in a timed run."""
ROUNDS = 5
"""Timed runs; the fastest counts."""


@dataclass(frozen=True, slots=True)
class CacheLevel:
    """Data of at most ``bytes`` in all threads are read at ``gbs`` GB/s in all; None: any amount (memory)."""

    bytes: int | None
    gbs: float


@dataclass(frozen=True, slots=True)
class Peak:
    """``gflops`` (f32, in 1e9 operations a second; a fused multiply-add counts as two) of all threads together, and the ``levels`` of
    caches, the smallest first, memory last. ``is_measured`` is False where they are those of the table; ``source`` says what they come
    from.
    """

    gflops: float
    levels: tuple[CacheLevel, ...]
    threads: int
    is_measured: bool
    source: str

    def gbs(self, bytes: float) -> float:
        """The highest rate at which this many bytes are read: that of the smallest level that holds them."""
        return next(level.gbs for level in self.levels if level.bytes is None or bytes <= level.bytes)


def table_peak(machine: Machine, threads: int) -> Peak:
    """The peak of the machine's family: vector width, units and caches, at an assumed clock."""
    vectors, fused = machine.vectors, 2.0 if _has_fma(machine) else 1.0
    levels = (CacheLevel(vectors.l1 * threads, vectors.loads * vectors.vector_bytes * GHZ * threads),
              CacheLevel(vectors.l2 * threads, L2_BYTES_PER_CYCLE * GHZ * threads), CacheLevel(None, MEMORY_GBS * threads))
    what = f"{vectors.vector_bytes * 8}-bit vectors, {vectors.fmas:g} {'fused multiply-adds' if fused == 2 else 'operations'} a cycle"
    return Peak(vectors.words * vectors.fmas * fused * GHZ * threads, levels, threads, False,
                f"table of families: {what} at an assumed {GHZ:g} GHz, {MEMORY_GBS:g} GB/s of memory a core")


def measured_peak(machine: Machine, threads: int) -> Peak:
    """The peak that loops of multiply-adds and of loads reach here, in all threads at once. Takes some tenths of a second."""
    require(LEVELS[-1] * threads, "the memory that is read to measure its bandwidth")
    code = llvm_compile.LoadedCode([llvm_compile.object_code(_text(machine), machine)], ["chains", "stream"])
    chains = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64, ctypes.c_float)(code.addresses["chains"])
    stream = ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.addresses["stream"])
    memories = [np.ones(LEVELS[-1] // 4, np.float32) for _ in range(threads)]
    gflops = _best([partial(chains, STEPS, 0.5)] * threads, STEPS * _chains(machine) * machine.vectors.words * 2.0)
    levels = []
    for size in LEVELS:
        gbs = _best([partial(stream, memory.ctypes.data, size // 4, READ // size) for memory in memories], float(READ))
        levels.append(CacheLevel(size * threads if size != LEVELS[-1] else None, gbs))
    return Peak(gflops, tuple(levels), threads, True, "measured: loops of multiply-adds, and loops that read caches and memory")


def _has_fma(machine: Machine) -> bool:
    return not machine.triple.startswith(("x86_64", "amd64", "i686")) or "fma" in machine.target.features


def _chains(machine: Machine) -> int:
    return CHAINS if machine.vectors.registers >= 32 else CHAINS // 2


def _best(works: list[Callable[[], object]], amount: float) -> float:
    """The highest rate, in 1e9 a second, at which these run at the same time, each through ``amount``. Each thread counts its own CPU
    time, in which other processes have no part."""
    best = 0.0
    for _ in range(ROUNDS):
        gate, rates = threading.Barrier(len(works)), list[float]()
        run = partial(_timed, gate, rates, amount)
        others = [threading.Thread(target=run, args=(work,)) for work in works[1:]]
        for other in others:
            other.start()
        run(works[0])
        for other in others:
            other.join()
        best = max(best, sum(rates))
    return best


def _timed(gate: threading.Barrier, rates: list[float], amount: float, work: Callable[[], object]) -> None:
    gate.wait()
    began = time.thread_time_ns()
    work()
    rates.append(amount / max(1, time.thread_time_ns() - began))


def _text(machine: Machine) -> str:
    """Two functions: chains of fused multiply-adds in registers, and a sum that reads memory."""
    lanes, count = machine.vectors.words, _chains(machine)
    vector = f"<{lanes} x float>"
    fused = _has_fma(machine)
    width = '"min-legal-vector-width"="512" "prefer-vector-width"="512"' if machine.target.avx512 else ""
    lines = ["define float @chains(i64 %n, float %x) #0 {", "entry:", f"  %one = insertelement {vector} poison, float %x, i32 0",
             f"  %s = shufflevector {vector} %one, {vector} poison, <{lanes} x i32> zeroinitializer", "  br label %loop", "loop:",
             "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]"]
    lines += [f"  %a{c} = phi {vector} [ %s, %entry ], [ %b{c}, %loop ]" for c in range(count)]
    for c in range(count):
        if fused:
            lines.append(f"  %b{c} = call {vector} @llvm.fma.v{lanes}f32({vector} %a{c}, {vector} %s, {vector} %s)")
        else:
            lines += [f"  %m{c} = fmul {vector} %a{c}, %s", f"  %b{c} = fadd {vector} %m{c}, %s"]
    lines += ["  %next = add i64 %i, 1", "  %more = icmp slt i64 %next, %n", "  br i1 %more, label %loop, label %done", "done:"]
    lines += _sum([f"%b{c}" for c in range(count)], vector) + ["}"]
    streams = 8
    lines += ["define float @stream(ptr %at, i64 %n, i64 %passes) #0 {", "entry:", "  br label %outer", "outer:",
              "  %pass = phi i64 [ 0, %entry ], [ %after, %passed ]"]
    lines += [f"  %o{c} = phi {vector} [ zeroinitializer, %entry ], [ %b{c}, %passed ]" for c in range(streams)]
    lines += ["  br label %loop", "loop:", "  %i = phi i64 [ 0, %outer ], [ %next, %loop ]"]
    lines += [f"  %a{c} = phi {vector} [ %o{c}, %outer ], [ %b{c}, %loop ]" for c in range(streams)]
    for c in range(streams):
        lines += [f"  %i{c} = add i64 %i, {c * lanes}", f"  %p{c} = getelementptr float, ptr %at, i64 %i{c}",
                  f"  %v{c} = load {vector}, ptr %p{c}, align 4", f"  %b{c} = fadd {vector} %a{c}, %v{c}"]
    lines += [f"  %next = add i64 %i, {streams * lanes}", "  %more = icmp slt i64 %next, %n", "  br i1 %more, label %loop, label %passed",
              "passed:", "  %after = add i64 %pass, 1", "  %again = icmp slt i64 %after, %passes",
              "  br i1 %again, label %outer, label %done", "done:", *_sum([f"%b{c}" for c in range(streams)], vector), "}",
              f"declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})", f"attributes #0 = {{ nounwind {width} }}", ""]
    return "\n".join(lines)


def _sum(names: list[str], vector: str) -> list[str]:
    """Returns the first lane of the sum, so that nothing is dead."""
    lines, total = [], names[0]
    for number, name in enumerate(names[1:]):
        lines.append(f"  %t{number} = fadd {vector} {total}, {name}")
        total = f"%t{number}"
    return [*lines, f"  %first = extractelement {vector} {total}, i32 0", "  ret float %first"]
