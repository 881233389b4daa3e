"""Reading one program in two forms, such as a proto and its HLO text: ``python benchmarks/read_forms.py A B [A B]...``.

Prints the CPU time of a node of each text, in microseconds, the ratio of A to B, and the same for memory (of the allocations of Python that
the reading holds). Rounds of the two alternate in one process, and the best of each counts. The first round is not timed. ``first`` is the
ratio where each text is the first one that a process reads, but for a small one of its format; the best of as many processes counts.
"""
from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

from irscope.api.loading import read_data  # noqa: E402
from irscope.graph import Reading  # noqa: E402


def read(path: Path) -> Reading:
    """What the reader of its format makes of a file."""
    return read_data(path.read_bytes(), str(path))


def nodes(reading: Reading) -> int:
    """The operations that the text writes."""
    return sum(1 for module in reading.modules for graph in module.graphs.values() for _ in graph.shown())


def times(paths: tuple[Path, Path], rounds: int) -> list[float]:
    """The least CPU time of each file, in seconds."""
    best = [float("inf"), float("inf")]
    for number in range(rounds + 1):
        for i, path in enumerate(paths):
            gc.collect()
            begin = time.process_time()
            result = read(path)
            taken = time.process_time() - begin
            del result
            if number:
                best[i] = min(best[i], taken)
    return best


SMALL = {".mlir": "module {\n  func.func @main(%a: tensor<f32>) -> tensor<f32> {\n    return %a : tensor<f32>\n  }\n}\n",
         ".hlo": "HloModule m\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n"}
"""Texts whose reading imports what a format needs."""


def first(path: Path, rounds: int) -> float:
    """The least CPU time, in seconds, of a file that is the first one that its process reads."""
    command = [sys.executable, str(HERE), "--once", str(path)]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(rounds))


def once(path: Path) -> None:
    """Print the CPU time of reading a file, in seconds."""
    if path.suffix in SMALL:
        read_data(SMALL[path.suffix].encode(), f"small{path.suffix}")
    begin = time.process_time()
    result = read(path)
    print(time.process_time() - begin)
    del result


def held(path: Path) -> int:
    """Bytes that a reading holds."""
    gc.collect()
    tracemalloc.start()
    result = read(path)
    gc.collect()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del result
    return size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--once", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.once:
        once(args.once)
        return
    print(f"{'A':36} {'nodes A':>8} {'nodes B':>8} {'us A':>6} {'us B':>6} {'A/B':>5} {'first':>5} "
          f"{'bytes A':>8} {'bytes B':>8} {'A/B':>5}")
    for a, b in zip(args.files[::2], args.files[1::2], strict=True):
        counts = [nodes(read(path)) for path in (a, b)]
        us = [1e6 * s / n for s, n in zip(times((a, b), args.rounds), counts, strict=True)]
        begun = [first(path, args.rounds) / n for path, n in zip((a, b), counts, strict=True)]
        size = [held(path) / n for path, n in zip((a, b), counts, strict=True)]
        print(f"{a.name[-36:]:36} {counts[0]:8} {counts[1]:8} {us[0]:6.1f} {us[1]:6.1f} {us[0] / us[1]:5.2f} {begun[0] / begun[1]:5.2f} "
              f"{size[0]:8.0f} {size[1]:8.0f} {size[0] / size[1]:5.2f}", flush=True)


if __name__ == "__main__":
    main()
