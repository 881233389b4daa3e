"""What a child process does with an input (tests/programs/workers.py): run it, and tell what it was the first to reach."""
from __future__ import annotations

import gc
import os
import re
import resource
import sys
import tempfile
import zlib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from tests.fuzz.coverage import Coverage, unit
from tests.fuzz.entry import Entry, decode, kind
from tests.fuzz.target import ROOM, Outcome, run_entry
from tests.programs.verdict import Verdict
from tests.programs.workers import Worker

LARGEST = 700
"""Megabytes after which a process gives way to a new one: machine code that was loaded is never given back."""
LIFE = 20_000
"""Inputs of one process: it imports and warms up for four seconds, and is ended by its size (:data:`LARGEST`) before."""
WARM = 300
"""Inputs after which a process has imported and cached most of what it will."""
PATIENCE = 15.0
"""Seconds of CPU time after which a process is ended that did not end its input by itself: machine code does not hear of signals."""


@dataclass(frozen=True, slots=True)
class Judged(Verdict):
    """The outcome of an input; lines and features that this process reached first; folders of irscope that it used, where they were measured."""

    outcome: Outcome = field(default_factory=lambda: Outcome(None))
    new: frozenset[str] = frozenset()
    rooms: frozenset[str] = frozenset()
    full: bool = False


class _Process:
    """What lasts as long as the child: its folder, its coverage, and what it has reported already."""

    def __init__(self, guided: bool) -> None:
        self._temporary = tempfile.TemporaryDirectory(prefix="irscope-fuzz-")
        self.folder = Path(self._temporary.name)
        self.reported: set[str] = set()
        self.inputs = 0
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (ROOM + _address_space(), resource.RLIM_INFINITY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        self.coverage = Coverage() if guided else None
        if self.coverage:
            self.coverage.start()

    def run(self, entry: Entry, twice: bool, measured: bool, whole: bool) -> Judged:
        self.inputs += 1
        if self.inputs in (1, WARM):
            _freeze()
        if self.coverage is None:
            outcome = run_entry(entry, self.folder, twice)
            return Judged(outcome.defect or "clean", outcome.why, outcome=outcome)
        if measured:
            self.coverage.again()
        self.coverage.take()
        outcome = run_entry(entry, self.folder, twice)
        lines = self.coverage.take()
        rooms = frozenset(unit(file) for file, _ in lines) if measured else frozenset()
        reached = frozenset({f"{file}:{line}" for file, line in lines} | features(entry, outcome))
        new = reached if whole else reached - self.reported
        self.reported |= new
        full = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10 > LARGEST
        said_less = replace(outcome, said="", out="")  # the campaign asks for neither, and a page has megabytes
        return Judged(outcome.defect or "clean", outcome.why, outcome=said_less, new=new, rooms=rooms, full=full)


def _freeze() -> None:
    """Keep what is alive out of all collections to come, which took a tenth of the time of a campaign.

    irscope asks at each reading whether objects are frozen, and Python would count all of them for that.
    """
    gc.collect()
    gc.freeze()
    frozen = gc.get_freeze_count()
    gc.get_freeze_count = lambda: frozen


@cache
def _process(guided: bool) -> _Process:
    return _Process(guided)


def judge(data: bytes, twice: bool = False, measured: bool = False, whole: bool = False) -> Verdict:
    """Run the entry of a file, with coverage; ``measured``: all lines count as new, so that its rooms are known; ``whole``: they are reported."""
    return _process(True).run(decode(data), twice, measured, whole)


def judge_plainly(data: bytes, twice: bool = False) -> Verdict:
    """The same without coverage, which is what is wanted of a replay."""
    return _process(False).run(decode(data), twice, False, False)


def features(entry: Entry, outcome: Outcome) -> set[str]:
    """What is remarkable about an outcome beside its lines: its first complaint, names and numbers left out."""
    found = re.search(r"(?:error|warning)(?:\[\w+\])?: (.*)", outcome.said)
    message = re.sub(r"[%@]?[\w./\-]*\d[\w./\-]*|'[^']*'|\"[^\"]*\"", "#", found[1])[:80] if found else ""
    return {f"{kind(entry)} {outcome.status} {zlib.crc32(message.encode('utf-8', 'replace')) % 4096}"}


def defect_of(verdict: Verdict, entry: Entry) -> str:
    """The name of the defect that a verdict tells of; empty for none. A process that died or did not end tells by the kind of command line.

    One that ended with status 2 was ended by irscope: a thread of it does so where a limit is reached in code that does not ask.
    """
    if isinstance(verdict, Judged):
        return verdict.outcome.defect
    if (verdict.kind, verdict.key) == ("died", "2"):
        return ""
    return f"{verdict.kind} {verdict.key} {kind(entry)}" if verdict.kind == "died" else f"endless {kind(entry)}"


def new_worker(guided: bool) -> Worker:
    """A child process for inputs."""
    return Worker(judge if guided else judge_plainly, PATIENCE, LIFE)


def _address_space() -> int:
    """Bytes of address space that this process has taken already."""
    if sys.platform != "linux":
        return 0
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
