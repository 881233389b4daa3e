"""Chooses schedules by measurement: compiles each way to compute a group separately, runs it on its own memory, and keeps the fastest.

Results are cached beside object code, by the texts of all candidates: a second run measures nothing.
"""
from __future__ import annotations

import time

import numpy as np

from irscope.backends import cache, llvm_compile
from irscope.backends.executable import Executable
from irscope.backends.llvm_kernel import kernel_text
from irscope.graph import DType
from irscope.lower.program import Launch, Program, Slot
from irscope.lower.templates import Arg, Built, Packed, Problem

RUNS = 9
"""Timed runs of a candidate; the minimum counts."""
LONGEST = 0.1
"""Seconds after which a candidate is not run again."""
HOPELESS = 2.0
"""A candidate whose first run takes this many times the best is dropped."""
EVICTED = 4 << 20
"""Bytes that are read between runs, so that weights are not in the first caches, as in a whole program."""
GAIN = 0.95
"""A candidate must take at most this fraction of the time of the rule's choice; a smaller gain is noise."""


class Tuning:
    """A tuner for :func:`irscope.lower.lowering.lower`. ``tried`` counts measured groups, ``changed`` those with another choice."""

    def __init__(self, threads: int = 1, cpu: str = "", use_cache: bool = True) -> None:
        self.threads = threads
        self.cpu = cpu
        self.use_cache = use_cache
        self.machine = llvm_compile.host(cpu)
        self.tried = 0
        self.changed = 0
        self._swept = np.zeros(EVICTED, np.uint8)

    def __call__(self, problem: Problem, ways: list[Built]) -> int:
        """The number of the fastest way."""
        self.tried += 1
        texts = (kernel_text(stage.kernel, self.machine.target).text for way in ways for stage in way.stages)
        name = cache.key("schedule", self.machine.triple, self.machine.cpu, self.machine.features, str(self.threads), *texts)
        kept = cache.read(name) if self.use_cache else None
        if kept is not None and kept.isdigit() and int(kept) < len(ways):
            best = int(kept)
        else:
            best = self._measured(problem, ways)
            if self.use_cache:
                cache.write(name, str(best).encode())
        self.changed += best != 0
        return best

    def _measured(self, problem: Problem, ways: list[Built]) -> int:
        times: list[float] = []
        for way in ways:
            times.append(self._time(problem, way, min(times, default=float("inf"))))
        best = int(np.argmin(times))
        return best if times[best] < times[0] * GAIN else 0

    def _time(self, problem: Problem, way: Built, best: float) -> float:
        """Seconds of one run."""
        call = Executable.of(alone(problem, way), [], [], self.threads, self.cpu, use_cache=False).bind([])
        call()  # pages are touched, threads are awake
        found = float("inf")
        began = time.perf_counter()
        for _ in range(RUNS):
            self._swept.sum()
            start = time.perf_counter()
            call()
            found = min(found, time.perf_counter() - start)
            if found > HOPELESS * best or time.perf_counter() - began > LONGEST:
                break
        return found


def alone(problem: Problem, way: Built) -> Program:
    """A program of one group only; its inputs and outputs are zeros in the arena, its packed weights are the real ones."""
    program = Program("alone")
    slots: dict[object, Slot] = {}

    def temp(like: Slot) -> Slot:
        if like not in slots:
            slots[like] = Slot(like.name, like.dtype, like.elements, "temp", offset=program.arena_bytes, zeroed=True)
            program.arena_bytes += -(-slots[like].bytes // 64) * 64
            program.temps.append(slots[like])
        return slots[like]

    def constant(key: object, name: str, array: object, dtype: DType) -> Slot:
        if key not in slots:
            data = np.ascontiguousarray(array).reshape(-1)
            slots[key] = Slot(name, dtype, data.size, "constant", data=data)
            program.constants.append(slots[key])
        return slots[key]

    def place(arg: Arg) -> tuple[Slot, int]:
        if isinstance(arg, Packed):
            return constant((arg.node, arg.key), "packed", arg.make(problem.constants[arg.node]), arg.dtype), 0
        slot = arg.storage.slot
        return (constant(slot, slot.name, slot.data, slot.dtype) if slot.scope == "constant" else temp(slot)), arg.begin

    program.steps = [Launch(stage.kernel, [place(arg) for arg in stage.args]) for stage in way.stages]
    return program
