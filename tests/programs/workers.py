"""Long-lived processes that judge programs: one that crashes or does not end is replaced, and the program that it had is to blame."""
from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from typing import Any

from tests.programs.verdict import Verdict

LIMIT = 10.0
"""Seconds of CPU time that one program may take in all."""
WALL = 300.0
"""Seconds by the clock without any CPU time after which a task is ended: it waits for what does not come. A busy machine only delays it."""
PR_SET_PDEATHSIG = 1
"""prctl(2): the signal that a process gets when its parent ends."""
LIFE = 2000
"""Tasks of one process: machine code that was loaded is never given back, so a new process takes over."""
TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def _serve(there: Connection, cache: str, function: Any) -> None:
    """What the child does: judge what comes until the pipe is closed."""
    os.environ["IRSCOPE_CACHE"] = cache
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # machine code that does not end must not outlive who would end it
    there.send(None)  # all is imported: from here on the time counts
    while True:
        try:
            task = there.recv()
        except EOFError:
            return
        there.send(function(*task))


class Worker:
    """A child process that calls ``function``, one task at a time."""

    def __init__(self, function: Any, limit: float = LIMIT, life: int = LIFE) -> None:
        self.function, self.limit, self.life = function, limit, life
        self._cache = tempfile.TemporaryDirectory(prefix="irscope-random-")
        self._spent = 0.0
        self._start()

    def _start(self) -> None:
        # glibc fills memory that is handed out: what reads it before it is written gives other numbers, with the first program as with the last.
        os.environ.setdefault("MALLOC_PERTURB_", "165")
        context = multiprocessing.get_context("spawn")
        self.here, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, self._cache.name, self.function), daemon=True)
        self.process.start()
        there.close()
        self.here.recv()
        self.tasks, self.used = 0, 0.0

    def give(self, *task: Any) -> None:
        """Begin a task."""
        if self.tasks >= self.life:
            self._again()
        self.tasks += 1
        self.used = self.seen = self._cpu()
        self.active = time.monotonic()
        try:
            self.here.send(task)
        except OSError:  # it died between two tasks
            self._again()
            self.here.send(task)

    def answer(self, wait: float) -> Verdict | None:
        """What came of the task; None as long as it runs."""
        if self.here.poll(wait):
            try:
                verdict: Verdict = self.here.recv()
                return verdict
            except (EOFError, ConnectionError):
                self.process.join()
                code = self.process.exitcode
                self._again()
                return Verdict("died", f"the process ended with {code}", str(code))
        now = self._cpu()
        took = now - self.used
        if now > self.seen:
            self.seen, self.active = now, time.monotonic()
        if took > self.limit or time.monotonic() - self.active > WALL:
            self._again()
            return Verdict("slow", f"{took:.0f} s of CPU time and no end", seconds=took)
        return None

    def ask(self, *task: Any) -> Verdict:
        """A task and its answer."""
        self.give(*task)
        while True:
            verdict = self.answer(0.2)
            if verdict is not None:
                return verdict

    def _cpu(self) -> float:
        """Seconds of CPU time that the child has used, by Linux's /proc; where there is none, the clock's."""
        try:
            with open(f"/proc/{self.process.pid}/stat") as file:
                parts = file.read().rpartition(")")[2].split()
            return (int(parts[11]) + int(parts[12])) / TICKS
        except OSError:
            return time.monotonic()

    def spent(self) -> float:
        """Seconds of CPU time of this process and those that it replaces; of one that died, those before its last task."""
        return self._spent + (self._cpu() if self.process.is_alive() else self.used)

    def renew(self) -> None:
        """Go on in a new process."""
        self._again()

    def _again(self) -> None:
        self._end()
        self._start()

    def _end(self) -> None:
        self._spent = self.spent()
        self.here.close()
        self.process.kill()
        self.process.join()

    def close(self) -> None:
        self._end()
        self._cache.cleanup()
