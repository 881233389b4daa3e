"""Mutation testing: whether the tests of a room notice a small mistake in it.

    python -m tests.mutants [--sample 300] [--seed 1] [--state out/mutants] [--jobs 2] [--quick] [ROOM...]
    python -m tests.mutants --show KEY      the change of one mutant

A sample of all mutants (``tests.mutants.points``) is drawn by the seed; each is put into a copy of the project, and the tests of its room run
until one fails; where Python has ``sys.monitoring`` (3.12), only those tests run that can reach the mutated line, in forks of a process that
has imported irscope. What has run is kept in ``--state`` under the hash of irscope/ and tests/, and not run again. On another tree, the test that noticed a mutant before is tried first.
Mutants that mean the same as the original are listed with the reason in ``tests/mutants/equivalent.txt``. Exit status 1: fewer than 90 % are noticed, or more than 5 % are listed.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.points import Point, is_valid, points
from tests.mutants.reach import Reach
from tests.mutants.trial import Outcome, Plan, Trial, room_of, suites_of

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("graph", "ops", "expand", "analysis", "passes", "fusion", "query", "lint", "lower")
EQUIVALENT = Path(__file__).parent / "equivalent.txt"
WANTED, LISTED = 0.90, 0.05
QUICK = 8.0
"""Seconds of tests that run for each mutant before others that take longer run for any."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", metavar="ROOM", help=f"these alone (default: {' '.join(ROOMS)})")
    parser.add_argument("--sample", type=int, default=300, metavar="N", help="how many mutants are drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", default="out/mutants", metavar="DIR", help="where progress is kept")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--quick", action="store_true", help=f"at most {QUICK:.0f} s of tests for each mutant: the share is a lower bound")
    parser.add_argument("--show", metavar="KEY", help="the change of one mutant")
    args = parser.parse_args()
    every = all_points(args.rooms or ROOMS)
    if args.show:
        print("\n".join(f"{p.path}:{p.line}: {p.old} -> {p.new}\n    {p.where}" for p in every if args.show in p.key))
        return 0
    drawn = sample(every, args.sample, args.seed)
    equivalent = reasons()
    print(f"{len(drawn)} of {len(every)} mutants, drawn by seed {args.seed}", flush=True)
    outcomes = dict.fromkeys((p.key for p in drawn), Outcome("alive", "", 0.0)) | dict(run(drawn, Path(args.state), args.jobs, args.quick))
    return report(drawn, outcomes, equivalent)


def all_points(rooms: Sequence[str]) -> list[Point]:
    """All mutants of some rooms, in the order of their files."""
    files = sorted(file for room in rooms for file in _files(ROOT / "irscope" / room))
    return [point for file in files for point in points(str(file.relative_to(ROOT)), file.read_text())]


def sample(every: Sequence[Point], count: int, seed: int) -> list[Point]:
    """So many of the mutants that Python takes, in the order of their files.

    Each mutant has a place in the draw of its own, so that a change of a file leaves the mutants of others in the sample.
    """
    order = sorted(every, key=lambda point: hashlib.sha256(f"{seed} {point.key}".encode()).digest())
    valid = (point for point in order if not point.idle and is_valid(point, (ROOT / point.path).read_text()))
    return sorted(islice(valid, count), key=lambda p: (p.path, p.start, p.new))


def _files(room: Path) -> list[Path]:
    return list(room.rglob("*.py")) if room.is_dir() else [room.with_suffix(".py")]


def reasons() -> dict[str, str]:
    """Why mutants that no test can notice mean the same: ``key | reason`` a line."""
    lines = EQUIVALENT.read_text().splitlines()
    parts = (line.rpartition(" | ") for line in lines if line and not line.startswith("#"))
    return {key.strip(): reason.strip() for key, _, reason in parts}


def run(drawn: Sequence[Point], folder: Path, jobs: int, quick: bool = False) -> Iterator[tuple[str, Outcome]]:
    """The outcomes of all mutants by their keys; what was found before is not run again.

    The order is random, so that those that have run so far are a fair sample too. ``quick``: mutants that only other tests than the first few
    seconds of them can notice have no outcome.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{tree_hash()}.jsonl"
    known = _recorded(path) if path.exists() else {}
    noticed_by = earlier(folder)
    todo = sorted((p for p in drawn if p.key not in known), key=lambda p: hashlib.sha256(p.key.encode()).digest())
    reaching = reached(todo, folder, jobs)
    yield from ((p.key, known[p.key]) for p in drawn if p.key in known)
    with tempfile.TemporaryDirectory() as copies, path.open("a") as file:
        trials: SimpleQueue[Trial] = SimpleQueue()
        used = [Trial(ROOT, Path(copies) / str(number)) for number in range(min(jobs, len(todo)))]
        for trial in used:
            trials.put(trial)

        def try_one(point: Point, plan: Plan | None, first: str) -> Outcome:
            trial = trials.get()
            try:
                return trial.run(point, first, plan)
            finally:
                trials.put(trial)

        def tried(points: Sequence[Point], plans: Mapping[str, Plan | None], first: Mapping[str, str]) -> Iterator[tuple[Point, Outcome]]:
            with ThreadPoolExecutor(max(1, jobs)) as pool:
                yield from zip(points, pool.map(lambda p: try_one(p, plans[p.key], first.get(p.key, "")), points), strict=True)

        def settled() -> Iterator[tuple[Point, Outcome]]:
            """First the tests that take a few seconds, for all mutants; then, for those that are left, the others."""
            begun: dict[str, Plan | None] = {}
            rest: dict[str, Plan | None] = {}
            for point in todo:
                plan = reaching(point)
                begun[point.key], rest[point.key] = plan.split(QUICK) if plan else (None, None)
            later: list[Point] = []
            spent: dict[str, float] = {}
            for point, outcome in tried(todo, begun, noticed_by):
                others = rest[point.key]
                if outcome.said == "alive" and others and others.parts:
                    later.append(point)
                    spent[point.key] = outcome.seconds
                    print(f"not yet: {point.path}:{point.line}: {point.old} -> {point.new}", flush=True)
                else:
                    yield point, outcome
            for point, outcome in tried(later, rest, {}) if not quick else ():
                yield point, replace(outcome, seconds=outcome.seconds + spent[point.key])

        for number, (point, outcome) in enumerate(settled(), 1):
            file.write(json.dumps({"key": point.key, **asdict(outcome)}) + "\n")
            file.flush()
            if outcome.said == "alive":
                print(f"alive: {point.path}:{point.line}: {point.old} -> {point.new}", flush=True)
            if number % 20 == 0:
                print(f"{number} of {len(todo)}", flush=True)
            yield point.key, outcome
        for trial in used:
            trial.close()


def reached(points: Sequence[Point], folder: Path, jobs: int) -> Callable[[Point], Plan | None]:
    """Which tests of its room reach a mutant; None for all of them, where lines cannot be recorded."""
    if not Reach.works_here():
        return lambda point: None
    suites = {path: suites_of(ROOT, path) for path in {point.path for point in points}}
    reach = Reach(ROOT, folder / "reach", jobs)
    reach.add([file for files in suites.values() for file in files])
    return lambda point: reach.plan(point.path, point.line, suites[point.path])


def earlier(folder: Path) -> dict[str, str]:
    """The test that noticed a mutant last, by the mutant's key, in the records of all trees."""
    records = [_recorded(path) for path in sorted(folder.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)]
    return {key: outcome.by for record in records for key, outcome in record.items() if "::" in outcome.by}


def _recorded(path: Path) -> dict[str, Outcome]:
    return {r["key"]: Outcome(r["said"], r["by"], r["seconds"]) for r in map(json.loads, path.read_text().splitlines())}


def tree_hash() -> str:
    """A hash of all sources and tests, by path and content."""
    digest = hashlib.sha256()
    for path in sorted(file for name in ("irscope", "tests") for file in (ROOT / name).rglob("*.py")):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def report(drawn: Sequence[Point], outcomes: dict[str, Outcome], equivalent: dict[str, str]) -> int:
    """Tell how many are noticed, by room; the exit status."""
    alive = [p for p in drawn if outcomes[p.key].said == "alive"]
    unseen = [p for p in alive if p.key not in equivalent]
    by_room = Counter(room_of(p.path) for p in drawn)
    missed = Counter(room_of(p.path) for p in unseen)
    for room in sorted(by_room):
        print(f"{room:10} {by_room[room] - missed[room]:4} of {by_room[room]:4}")
    for point in unseen:
        print(f"alive: {point.key}")
    listed = len(alive) - len(unseen)
    share = 1 - len(unseen) / max(1, len(drawn) - listed)
    seconds = sum(outcomes[p.key].seconds for p in drawn)
    print(f"{share:.1%} of {len(drawn) - listed} noticed, {listed} mean the same as the original; {seconds / 60:.0f} minutes of CPU time")
    return 0 if share >= WANTED and listed <= LISTED * len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
