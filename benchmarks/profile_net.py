"""Where the time of a compiled net goes, kernel by kernel, with caches as the net leaves them.

    python benchmarks/profile_net.py FOLDER        (a folder that run_nets.py --keep made: model.hlo.txt, weights.npz, inputs.npz)

Every launch becomes a program of its own over the same memory; all are run in turn, many times, and the smallest CPU time of each counts.
The first table to read when a net is slow: a kernel far below the others' GFLOP/s is the weak spot, and its schedule stands beside it.
"""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import irscope
from irscope.backends.executable import Executable
from irscope.lower.program import Launch, Program

Row = tuple[str, int, float, float, dict[str, Any]]


def profile(folder: Path, rounds: int, precision: str) -> tuple[float, list[Row]]:
    """Seconds of a whole run, and for each kernel: name, launches, seconds of all of them, operations of all of them, schedule."""
    with np.load(folder / "weights.npz") as file:
        weights = dict(file)
    with np.load(folder / "inputs.npz") as file:
        arrays = list(file.values())
    model = irscope.compile(folder / "model.hlo.txt", weights=weights, threads=1, precision=precision)
    whole, program = model.bind(arrays), model.program
    parts = []
    for step in program.steps:
        alone = Program(program.name, program.inputs, program.outputs, program.temps, program.constants, [step], program.arena_bytes)
        part = Executable.of(alone, model.executable.inputs, model.executable.outputs)
        part._fixed = model.executable._fixed  # the same arena and the same weights, so that each finds what the one before left
        parts.append((step, part, part.bind(arrays, whole.outputs)))
    best, total = [float("inf")] * len(parts), float("inf")
    for _ in range(rounds):
        for i, (_, _, call) in enumerate(parts):
            began = time.thread_time()
            call()
            best[i] = min(best[i], time.thread_time() - began)
        began = time.thread_time()
        whole()
        total = min(total, time.thread_time() - began)
    rows: dict[str, Row] = {}
    for (step, _, _), seconds in zip(parts, best):
        kernel = step.kernel if isinstance(step, Launch) else None
        name = kernel.name if kernel else type(step).__name__.lower()
        _, count, before, flops, _ = rows.get(name, (name, 0, 0.0, 0.0, {}))
        rows[name] = (name, count + 1, before + seconds, flops + (kernel.flops if kernel else 0.0), kernel.schedule if kernel else {})
    return total, sorted(rows.values(), key=lambda row: -row[2])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--precision", default="default")
    args = parser.parse_args()
    total, rows = profile(args.folder, args.rounds, args.precision)
    print(f"one run {total * 1e3:.2f} ms, kernel by kernel {sum(row[2] for row in rows) * 1e3:.2f} ms")
    for name, count, seconds, flops, schedule in rows:
        chosen = " ".join(f"{key}={value}" for key, value in schedule.items() if value)
        print(f"{name:36} x{count:<3} {seconds / count * 1e6:9.1f} us {flops / seconds / 1e9:7.1f} GFLOP/s  {chosen}")


if __name__ == "__main__":
    main()
