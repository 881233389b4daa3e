"""The grid: every kernel template at every size and element type, in all circumstances that meet in pairs.

    python -m tests.grid [--state out/grid] [--jobs 2] [--seed 1] [--rounds 1] [--hours 4] [TEMPLATE...]
    python -m tests.grid --sample 3000       a fixed part of it, which remembers nothing
    python -m tests.grid --case KEY          one case, with its text

A round has all combinations of template, size and element type; each further one draws other circumstances by the next seed. What has run is kept
in ``--state`` under the hash of irscope/, and not run again. Exit status 1: some case is wrong.
"""
from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from tests.grid.case import Case
from tests.grid.plan import cases, sample
from tests.grid.report import FINE, report
from tests.grid.run import run_case
from tests.grid.state import Result, State, tree_hash
from tests.grid.workers import run_all, serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.grid", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("templates", nargs="*", metavar="TEMPLATE", help="these alone (default: all)")
    parser.add_argument("--state", default="out/grid", metavar="DIR", help="where progress is kept")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--rounds", type=int, default=1, help="rounds, by seeds that follow each other")
    parser.add_argument("--hours", type=float, default=4.0, help="of CPU time, those of earlier calls included; then it stops")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="about N cases of a fixed round instead")
    parser.add_argument("--case", metavar="KEY", help="one case: prints its text and what becomes of it")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        serve()
        return 0
    if args.case:
        return one(Case.of(args.case))
    if args.sample:
        with tempfile.TemporaryDirectory() as folder:
            keys = [case.key for case in sample(args.sample, args.templates)]
            return campaign(State(Path(folder), tree_hash()), keys, [], args.jobs, args.hours)
    seeds = range(args.seed, args.seed + args.rounds)
    keys = list(dict.fromkeys(case.key for seed in seeds for case in _mixed(cases(seed, args.templates), seed)))
    return campaign(State(Path(args.state), tree_hash()), keys, seeds, args.jobs, args.hours)


def one(case: Case) -> int:
    """Run one case here and now; a fault of memory ends this process."""
    print(case.program()[0], flush=True)
    outcome = run_case(case)
    print(f"{case.key}: {outcome.said} {outcome.why} (kernels of {', '.join(outcome.families) or 'no family'})")
    return 0 if outcome.said in FINE else 1


def campaign(state: State, keys: Sequence[str], seeds: Sequence[int], jobs: int, hours: float) -> int:
    """Run what has not run yet, and tell about all of it."""
    todo = [key for key in keys if key not in state.results]
    print(f"{len(keys)} cases, {len(keys) - len(todo)} of them done before; irscope/ is {state.tree[:12]}", flush=True)
    told = time.monotonic()

    def keep(results: list[Result], seconds: float) -> bool:
        nonlocal told
        state.add(results, seconds)
        for r in results:
            if r.said not in FINE:
                print(f"{r.said}: {r.key}: {r.why}", flush=True)
        if time.monotonic() - told > 30:
            told = time.monotonic()
            print(f"{len(state.results)} of {len(keys)} cases, {state.seconds:.0f} s of CPU time", file=sys.stderr, flush=True)
        return state.seconds < hours * 3600

    run_all(todo, jobs, keep)
    text = report(state, list(seeds), len(keys))
    (state.folder / "report.md").write_text(text)
    count = state.count()
    print(text.splitlines()[2])
    return 1 if any(said not in FINE for said in count) else 0


def _mixed(found: list[Case], seed: int) -> list[Case]:
    """In an order that spreads every template over the round, so that what was stopped has seen something of each."""
    return Random(seed).sample(found, len(found))


if __name__ == "__main__":
    raise SystemExit(main())
