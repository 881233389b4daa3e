"""Fuzzes the command line of irscope in process, led by coverage.

    python -m tests.fuzz [--state out/fuzz] [--jobs 2] [--hours 24] [--inputs N] [--seed 0]     a campaign; goes on where it ended
    python -m tests.fuzz --sample 8000                                                         the corpus and drawn inputs, without coverage
    python -m tests.fuzz --replay FILE...                                                      inputs of files, and what becomes of them
    python -m tests.fuzz --minimise FILE...                                                    the same, made small
    python -m tests.fuzz --record                                                              the counts of the state, kept in the repository
    python -m tests.fuzz --distil                                                              the corpus of the repository, chosen again with the state's

The status is 1 when an input showed a defect.
"""
from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.campaign import TWICE, Campaign
from tests.fuzz.corpora import SEEDS, read_corpus, with_samples
from tests.fuzz.distil import fewest, reached, write_corpus
from tests.fuzz.draw import draw_entry
from tests.fuzz.entry import Entry, decode, encode, kind
from tests.fuzz.judge import Judged, defect_of, new_worker
from tests.fuzz.minimise import minimise
from tests.fuzz.state import State
from tests.programs.verdict import Verdict


def sample(inputs: int, seed: int) -> int:
    """Run the corpus of the repository and so many inputs that follow from it and the seed; how many showed a defect."""
    corpus, rng = read_corpus(SEEDS), random.Random(seed)
    sources = with_samples(SEEDS)
    drawn = (draw_entry(sources, rng) for _ in range(inputs))
    counts: Counter[str] = Counter()
    deep = bad = 0
    for entry, verdict in judged([*corpus, *drawn]):
        defect = defect_of(verdict, entry)
        counts[kind(entry)] += 1
        deep += isinstance(verdict, Judged) and verdict.outcome.deep
        if defect:
            bad += 1
            file = Path(f"fuzz-{seed}-{counts.total()}.case")
            file.write_bytes(encode(entry))
            print(f"{file}: {defect}\n{verdict.detail}", flush=True)
    print(f"{counts.total()} inputs, {deep} of them deep, {bad} with a defect: " + ", ".join(f"{name} {n}" for name, n in counts.most_common()))
    return bad


def judged(entries: list[Entry]) -> Iterator[tuple[Entry, Verdict]]:
    """Entries and what becomes of them, without coverage; one of :data:`TWICE` is run twice."""
    worker = new_worker(guided=False)
    try:
        for number, entry in enumerate(entries):
            yield entry, worker.ask(encode(entry), number % TWICE == 1)
    finally:
        worker.close()


def replay(files: list[Path]) -> int:
    """Run the inputs of files and tell of each; how many showed a defect."""
    entries = [decode(file.read_bytes()) for file in files]
    bad = 0
    for file, (entry, verdict) in zip(files, judged(entries), strict=True):
        defect = defect_of(verdict, entry)
        bad += bool(defect)
        status = verdict.outcome.status if isinstance(verdict, Judged) else verdict.kind
        print(f"{file}: irscope {' '.join(entry.args)}: {defect or 'no defect'} (status {status})")
        if len(files) == 1:
            print(verdict.detail or verdict)
    return bad


def shrink(files: list[Path]) -> int:
    """Write each input, made small, beside its file; how many showed a defect."""
    bad = 0
    for file in files:
        defect, entry = minimise(decode(file.read_bytes()))
        bad += bool(defect)
        if defect:
            small = file.with_suffix(".small.case")
            small.write_bytes(encode(entry))
        print(f"{file}: {f'{defect}: {small}, {entry.size()} bytes: irscope ' + ' '.join(entry.args) if defect else 'no defect'}", flush=True)
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--state", type=Path, default=Path("out/fuzz"), metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--hours", type=float, default=24.0, help="of CPU time; it ends before when the goals are reached")
    parser.add_argument("--inputs", type=int, default=1 << 60, metavar="N", help="end after so many")
    parser.add_argument("--seed", type=int, help="of what is drawn (default: the number of inputs so far)")
    parser.add_argument("--formats", nargs="+", default=(), metavar="FORMAT", help="draw inputs of these formats alone (default: all)")
    parser.add_argument("--sample", type=int, metavar="N", help="the corpus of the repository and N inputs of --seed, without coverage and state")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--distil", action="store_true", help="choose the corpus of the repository from it and the state's")
    parser.add_argument("--record", action="store_true", help="keep the counts of the state in the repository, for a campaign elsewhere")
    parser.add_argument("--minimise", type=Path, nargs="+", metavar="FILE")
    args = parser.parse_args()
    if args.sample is not None:
        return int(sample(args.sample, args.seed or 0) > 0)
    if args.replay:
        return int(replay(args.replay) > 0)
    if args.minimise:
        return int(shrink(args.minimise) > 0)
    if args.distil:
        given = read_corpus(SEEDS, args.state / "corpus")
        found = reached(given)
        chosen = fewest({data: verdict.new for data, verdict in found.items()})
        write_corpus(SEEDS, {data: found[data].outcome.deep for data in chosen})
        print(f"{len(chosen)} of {len(given)} entries, {sum(map(len, chosen))} bytes")
        return 0
    state = State(args.state)
    if args.record:
        state.record()
        return 0
    if state.restarted:
        print(f"irscope has changed; counted again from zero: {', '.join(state.restarted)}", file=sys.stderr)
    campaign = Campaign(state, random.Random(state.total.total() if args.seed is None else args.seed), tuple(args.formats))
    campaign.run(args.jobs, args.hours * 3600, args.inputs)
    print("\n".join(state.report()))
    return int(bool(state.defects))


if __name__ == "__main__":
    raise SystemExit(main())
