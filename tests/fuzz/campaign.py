"""Runs inputs in several processes until the goals are reached or the time is over, and keeps what was found."""
from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from random import Random

from tests.fuzz.corpora import SEEDS, Corpus, file_name, with_samples
from tests.fuzz.draw import PROGRAM, draw_entry
from tests.fuzz.entry import Entry, decode, encode, formats_of, kind
from tests.fuzz.judge import Judged, defect_of, new_worker
from tests.fuzz.state import State
from tests.programs.verdict import Verdict
from tests.programs.workers import Worker

TWICE = MEASURED = 64
"""One of so many inputs is run twice; of one, and of all that the corpus had, all lines are counted again, which shows what folders its cell uses."""
KEPT = 20_000
"""Bytes of an input beyond which it does not join the corpus."""
WRITTEN = 1000
"""Inputs after which the state is written."""


@dataclass
class Campaign:
    """A campaign over a state; ``corpus`` grows by what reaches something new. ``formats``: only inputs of these are drawn; empty: all."""

    state: State
    rng: Random
    formats: tuple[str, ...] = ()
    corpus: Corpus = field(default_factory=Corpus)
    number: int = 0

    def inputs(self) -> Iterator[tuple[Entry, Path | None]]:
        """Without end: the corpus and the known defects where irscope is another than before, with their files, then what is drawn."""
        known = sorted((self.state.folder / "corpus").glob("*.case"), key=lambda path: path.stat().st_size)
        if not self.state.known:
            for path in [*sorted(SEEDS.glob("*.case")), *sorted((self.state.folder / "replay").glob("*.case"))]:
                yield decode(path.read_bytes()), None
            for path in known:
                yield decode(path.read_bytes()), path
        self.corpus = with_samples(SEEDS, self.state.folder / "corpus", formats=self.formats)
        while True:
            yield draw_entry(self.corpus, self.rng, 0.0 if self.formats else PROGRAM), None

    def run(self, jobs: int, seconds: float, inputs: int) -> None:
        """Run until the goals are reached, or so much CPU time or so many inputs are spent."""
        workers = [new_worker(guided=True) for _ in range(jobs)]
        busy: dict[Worker, tuple[Entry, bytes, Path | None]] = {}
        source = self.inputs()
        began, before, first = time.process_time(), self.state.cpu, self.state.total.total()
        spent, written = 0.0, first
        try:
            while not self.state.done and spent < seconds and self.state.total.total() - first < inputs:
                for worker in workers:
                    if worker not in busy:
                        entry, path = next(source)
                        data = encode(entry)
                        self.number += 1
                        worker.give(data, self.number % TWICE == 1, path is not None or self.number % MEASURED == 0)
                        busy[worker] = entry, data, path
                wait([worker.here for worker in busy], 0.5)
                for worker in list(busy):
                    verdict = worker.answer(0)
                    if verdict is not None:
                        self.take(*busy.pop(worker), verdict)
                        if isinstance(verdict, Judged) and verdict.full:
                            worker.renew()
                spent = time.process_time() - began + sum(worker.spent() for worker in workers)
                self.state.cpu = before + spent
                if self.state.total.total() >= written + WRITTEN:
                    written = self.state.total.total()
                    self.state.write()
                    print(self.state.line(), file=sys.stderr, flush=True)
        finally:
            for worker in workers:
                worker.close()
            self.state.write()

    def take(self, entry: Entry, data: bytes, path: Path | None, verdict: Verdict) -> None:
        """Count an input and keep what is worth it: defects, and what reached something new."""
        judged = verdict if isinstance(verdict, Judged) else Judged(verdict.kind)
        defect = defect_of(verdict, entry)
        self.state.add(kind(entry), formats_of(entry), judged, bool(defect))
        if defect and self.state.keep(kind(entry), defect, verdict.detail, data):
            print(f"new: {defect} ({kind(entry)})", flush=True)
        fresh = self.state.learn(judged.new)
        if path is not None and not defect:
            if fresh:
                path.replace(path.with_name(file_name(data, judged.outcome.deep)))
            else:
                path.unlink()  # what it once showed first is shown by a smaller one now
        elif path is None and fresh and not defect and entry.size() <= KEPT:
            self.corpus.add(entry, judged.outcome.deep)
            (self.state.folder / "corpus" / file_name(data, judged.outcome.deep)).write_bytes(data)
