"""Random programs of three formats through the reference, one thread and two threads.

    python -m tests.programs.campaign [--seeds 0:100000] [--state out/random] [--jobs 2] [--format hlo|torchscript|relay]
    python -m tests.programs.campaign --print SEED
    python -m tests.programs.campaign --minimise SEED
    python -m tests.programs.campaign --oracle ...         HLO through XLA, TorchScript through torch, which must be installed

Every integer is a program: of four, two are HLO, one is TorchScript and one Relay. What was done lies in the state folder, under the hash
of the compiler's sources, so that a campaign goes on where it ended and a change begins a new one. The status is 1 when a program failed.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.programs.judge import judge
from tests.programs.minimise import minimise
from tests.programs.program import Program
from tests.programs.verdict import PASSED, Verdict
from tests.programs.workers import LIMIT, Worker

FORMATS = ("hlo", "torchscript", "hlo", "relay")
ROOT = Path(__file__).resolve().parents[2]
CHUNK = 100
"""So many seeds are written down together."""


def program_of(seed: int) -> Program:
    """The program of a seed; its format follows from the seed."""
    module = import_module(f"tests.programs.{FORMATS[seed % len(FORMATS)]}")
    made: Program = module.program(seed)
    return made


def judge_task(task: int | Program, seed: int = 0) -> Verdict:
    """What workers do: a seed, or a program with arrays of a seed, judged."""
    if isinstance(task, Program):
        return judge(task, seed)
    try:
        program = program_of(task)
    except Exception as error:
        return Verdict("generator", f"{type(error).__name__}: {error}")
    return judge(program, task)


def oracle_task(task: int | Program, seed: int = 0) -> Verdict:
    """What workers of the oracle do: the same, by XLA and torch."""
    from tests.programs.oracle import judge_by_peer

    return judge_by_peer(task, seed) if isinstance(task, Program) else judge_by_peer(program_of(task), task)


def tree_hash(folder: Path) -> str:
    """A hash of all sources in a folder, by path and content."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(f"{path.relative_to(folder)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


class State:
    """What is done, as lines of JSON: one a chunk, and one a program that failed or was refused."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder / f"{name}-{tree_hash(ROOT / 'irscope')}"
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "programs.txt").write_text(tree_hash(Path(__file__).parent) + "\n")
        self.chunks = {(r["low"], r["high"]): r for r in self._read("chunks.jsonl")}

    def _read(self, name: str) -> Iterator[dict[str, Any]]:
        path = self.folder / name
        for line in path.read_text().splitlines() if path.is_file() else ():
            yield json.loads(line)

    def add(self, name: str, record: dict[str, Any]) -> None:
        with open(self.folder / name, "a") as file:
            file.write(json.dumps(record) + "\n")

    def finish(self, low: int, high: int, counts: Counter[str], seconds: float) -> None:
        record = {"low": low, "high": high, "counts": dict(counts), "seconds": round(seconds, 2)}
        self.chunks[low, high] = record
        self.add("chunks.jsonl", record)


def run(seeds: list[int], state: State, jobs: int, limit: float, oracle: bool = False) -> Counter[str]:
    """Judge the seeds that are not done yet; how many ended how, by format, those of earlier runs among them."""
    parts = [seeds[i:i + CHUNK] for i in range(0, len(seeds), CHUNK)]
    todo = [part for part in parts if (part[0], part[-1]) not in state.chunks]
    total: Counter[str] = Counter()
    for part in parts:
        total.update(state.chunks.get((part[0], part[-1]), {}).get("counts", {}))
    task = oracle_task if oracle else judge_task
    workers = [Worker(task, limit) for _ in range(jobs)]
    began, spent = time.monotonic(), 0.0
    try:
        for number, part in enumerate(todo):
            counts: Counter[str] = Counter()
            used = 0.0
            for seed, verdict in judged(workers, part):
                if oracle and verdict.kind in ("died", "slow"):
                    verdict = alone(seed, limit)
                name = FORMATS[seed % len(FORMATS)]
                counts[f"{name} {verdict.kind}"] += 1
                used += verdict.seconds
                if verdict.kind != "same":
                    state.add("refused.jsonl" if verdict.kind in PASSED else "failures.jsonl",
                              {"seed": seed, "format": name, "kind": verdict.kind, "detail": verdict.detail})
                if verdict.kind not in PASSED:
                    print(f"seed {seed}, {name}: {verdict.kind}: {verdict.detail}", flush=True)
            state.finish(part[0], part[-1], counts, used)
            total.update(counts)
            spent += used
            if sys.stderr.isatty() or number % 20 == 19:
                print(f"{(number + 1) * CHUNK} of {len(todo) * CHUNK}, {spent:.0f} s of CPU time, {time.monotonic() - began:.0f} s", file=sys.stderr)
    finally:
        for worker in workers:
            worker.close()
    return total


def alone(seed: int, limit: float) -> Verdict:
    """A program that brought a worker of the oracle down, judged without the peer: whose fault it was."""
    worker = Worker(judge_task, limit)
    try:
        verdict = worker.ask(seed)
    finally:
        worker.close()
    return verdict if verdict.failed else Verdict("invalid", "the peer died of it")


def judged(workers: list[Worker], seeds: list[int]) -> Iterator[tuple[int, Verdict]]:
    """The verdicts of seeds, as they come."""
    waiting = list(reversed(seeds))
    busy: dict[Worker, int] = {}
    while waiting or busy:
        for worker in workers:
            if worker not in busy and waiting:
                busy[worker] = waiting.pop()
                worker.give(busy[worker])
        for worker in list(busy):
            verdict = worker.answer(0.2 / len(busy) if len(busy) > 1 else 0.2)
            if verdict is not None:
                yield busy.pop(worker), verdict


def smaller(seed: int, limit: float, oracle: bool = False) -> tuple[Verdict, Program]:
    """The failure of a seed, and the smallest program found that fails alike."""
    worker = Worker(oracle_task if oracle else judge_task, limit)
    try:
        program = program_of(seed).live()
        verdict = worker.ask(program, seed)
        if not verdict.failed:
            return verdict, program
        return verdict, minimise(program, lambda p: worker.ask(p, seed).like(verdict))
    finally:
        worker.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:100000", metavar="LOW:HIGH", help="the last is left out")
    parser.add_argument("--format", choices=sorted(set(FORMATS)), help="the seeds of one format alone")
    parser.add_argument("--state", type=Path, default=Path("out/random"), metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=LIMIT, metavar="SECONDS", help="of CPU time, for one program")
    parser.add_argument("--print", type=int, metavar="SEED", help="print the program of a seed")
    parser.add_argument("--minimise", type=int, metavar="SEED", help="make the failing program of a seed smaller, and print it")
    parser.add_argument("--oracle", action="store_true", help="compare with XLA and torch instead of the reference")
    args = parser.parse_args()
    if args.print is not None:
        print(program_of(args.print).text(), end="")
        return 0
    if args.minimise is not None:
        verdict, program = smaller(args.minimise, args.limit, args.oracle)
        print(f"// seed {args.minimise}: {verdict.kind}: {verdict.detail}\n{program.text()}", end="")
        return int(verdict.failed)
    low, _, high = args.seeds.partition(":")
    seeds = [s for s in range(int(low), int(high)) if args.format in (None, FORMATS[s % len(FORMATS)])]
    state = State(args.state, ("oracle-" if args.oracle else "") + (args.format or "all"))
    total = run(seeds, state, args.jobs, args.limit, args.oracle)
    print(f"{total.total()} programs under {state.folder}:")
    for name, count in sorted(total.items()):
        print(f"  {name}: {count}")
    return int(any(name.rpartition(" ")[2] not in PASSED for name in total))


if __name__ == "__main__":
    raise SystemExit(main())
