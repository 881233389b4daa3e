"""Processes that run cases, and what happens when one of them dies of a guard page or does not come back."""
from __future__ import annotations

import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict

from tests.grid.case import Case
from tests.grid.run import run_case
from tests.grid.state import ROOT, Result

BATCH = 50
LIFE = 40
"""Batches of a worker: code that was loaded is never given back, so a new process takes over."""
LIMIT = 120.0
"""Seconds without an answer to one case after which it counts as endless."""


def serve() -> None:
    """A worker: a line of keys comes in, a line goes out for each case, and at last one with the CPU seconds of the batch."""
    # Kernels of a case are shared between its two programs; nothing outlives the worker.
    with tempfile.TemporaryDirectory(prefix="irscope-grid-") as folder:
        os.environ["IRSCOPE_CACHE"] = folder
        for line in sys.stdin:
            began = _cpu()
            for key in json.loads(line):
                outcome = run_case(Case.of(key))
                print(json.dumps({"key": key, **asdict(outcome)}), flush=True)
            print(json.dumps({"seconds": _cpu() - began}), flush=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class _Worker:
    """A process with a batch of keys, of which the first of ``left`` is running."""

    def __init__(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "tests.grid", "--worker"], cwd=ROOT, bufsize=0,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._begun = b""
        self.left: deque[str] = deque()
        self.done: list[Result] = []
        self.batches = 0
        self.late = False
        self.hear()

    def hear(self) -> None:
        """The process has answered."""
        self.heard = time.monotonic()

    def give(self, keys: Sequence[str]) -> None:
        assert self.process.stdin is not None
        self.left, self.done = deque(keys), []
        self.hear()
        self.batches += 1
        self.process.stdin.write(json.dumps(list(keys)).encode() + b"\n")

    def lines(self) -> list[str] | None:
        """What it has said since, in whole lines; None where it is gone."""
        assert self.process.stdout is not None
        said = os.read(self.process.stdout.fileno(), 1 << 16)
        *whole, self._begun = (self._begun + said).split(b"\n")
        return [line.decode() for line in whole] if said else None

    def end(self) -> int:
        """The exit status of the process, which ends when nothing more comes."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        status = self.process.wait()
        self.process.stdout.close()
        return status


def run_all(keys: Sequence[str], jobs: int, keep: Callable[[list[Result], float], bool]) -> None:
    """Run cases in ``jobs`` processes. ``keep`` gets the results of each batch and its CPU seconds, and says whether to go on."""
    todo = deque(keys)
    going = True
    selector = selectors.DefaultSelector()

    def supply(worker: _Worker) -> None:
        if not going or not todo:
            worker.end()
            return
        if worker.batches >= LIFE:
            worker.end()
            worker = _Worker()
        worker.give([todo.popleft() for _ in range(min(BATCH, len(todo)))])
        selector.register(worker.process.stdout, selectors.EVENT_READ, worker)  # type: ignore[arg-type]

    for _ in range(min(jobs, -(-len(todo) // BATCH))):
        supply(_Worker())
    while selector.get_map():
        for ready, _ in selector.select(1.0):
            worker: _Worker = ready.data
            lines = worker.lines()
            if lines is None:
                selector.unregister(ready.fileobj)
                going = keep([*worker.done, _died(worker, worker.end())], 0.0) and going
                todo.extendleft(reversed(list(worker.left)[1:]))
                supply(_Worker())
            for told in map(json.loads, lines or ()):
                worker.hear()
                if "key" in told:
                    worker.left.popleft()
                    worker.done.append(Result(**told))
                else:
                    selector.unregister(ready.fileobj)
                    going = keep(worker.done, told["seconds"]) and going
                    supply(worker)
        for entry in list(selector.get_map().values()):
            if time.monotonic() - entry.data.heard > LIMIT:
                entry.data.late = True
                entry.data.process.kill()


def _died(worker: _Worker, status: int) -> Result:
    """The result of the case that a worker died of."""
    key = worker.left[0] if worker.left else "none/of/them"
    if worker.late:
        return Result(key, "endless", f"no answer in {LIMIT:.0f} s")
    return Result(key, "crashed", signal.Signals(-status).name if status < 0 else f"exit {status}")
