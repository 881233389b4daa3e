"""Runs one function over many files in several processes: results in order, and no file can crash the others."""
from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Generic, TypeVar

from irscope.source.budget import BudgetExceeded, Limits, current
from irscope.source.cores import available_threads
from irscope.source.watchdog import watched

T = TypeVar("T")

# Starting processes costs about half a second; below this much work one is quicker.
WORTH_FILES = 64
WORTH_BYTES = 8 << 20
CHUNK_FILES = 16
CHUNK_BYTES = 2 << 20
AHEAD = 256
"""How many answers may wait for the one before them: the answers of a million files need not be in memory."""
TRIES = 3
"""A file is reported as the cause when so many processes died that were reading it alone; fewer may have been killed from outside."""
STARTS = 20
"""The same for processes that died before they began to read: seldom the file's fault, but what can never start must not be started for
ever."""


def map_files(ask: Callable[[str], T], died: Callable[[str, str], T], files: Sequence[str], jobs: int | None = None) -> Iterator[T]:
    """``ask(file)`` for each file, in order; ``died(file, why)`` where the process that read the file came to its end, with its last word
    if it had one. The budget of the caller holds for each file, in whatever process (``ask`` begins a fresh one).

    ``ask`` must be importable (a function of a module, or a ``functools.partial`` of one). With one job, or little to do, all of it
    happens in this process. Standard input is read here in any case.
    """
    jobs = min(jobs or available_threads(), len(files)) if jobs or _worth_it(files) else 1
    if jobs <= 1:
        for file in files:
            yield ask(file)
        return
    # Not concurrent.futures: when one of its processes dies, its shutdown may wait for the others for ever.
    pool = _Pool(ask, died, files, jobs)
    try:
        yield from pool.answers()
    finally:
        pool.close()


@dataclass(slots=True)
class _Worker:
    process: BaseProcess
    connection: Connection
    task: range | None = None
    started: bool = False
    """Whether it has begun to take tasks, with its modules imported."""


class _Pool(Generic[T]):
    """Each worker has its own pipe, so that the death of one is detected as the end of its pipe and does not affect the others."""

    def __init__(self, ask: Callable[[str], T], died: Callable[[str, str], T], files: Sequence[str], jobs: int) -> None:
        self.ask, self.died, self.files = ask, died, files
        forkserver = "forkserver" in multiprocessing.get_all_start_methods()
        self._context = multiprocessing.get_context("forkserver") if forkserver else multiprocessing.get_context("spawn")
        self._tasks = deque(_chunks(files))
        self._retries: deque[range] = deque()
        self._found: dict[int, T] = {}
        self._deaths: Counter[int] = Counter()
        self._failed_starts: Counter[int] = Counter()
        self._workers = [self._start() for _ in range(min(jobs, len(self._tasks)))]

    def answers(self) -> Iterator[T]:
        """The answers, in the order of the files."""
        for number in range(len(self.files)):
            while number not in self._found:
                self._hand_out(number + AHEAD)
                self._collect()
            yield self._found.pop(number)

    def close(self) -> None:
        """End the workers; those that are idle end by themselves when their pipe does."""
        for worker in self._workers:
            worker.connection.close()
            if worker.task is not None:
                worker.process.kill()
        for worker in self._workers:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
        self._workers = []

    def _start(self) -> _Worker:
        here, there = self._context.Pipe()
        budget = current()
        process = self._context.Process(target=_serve, args=(there, self.ask, budget.limits if budget else Limits()), daemon=True)
        process.start()
        there.close()
        return _Worker(process, here)

    def _hand_out(self, limit: int) -> None:
        """Give each idle worker a task, as long as it does not run too far ahead."""
        for number, worker in enumerate(self._workers):
            while worker.task is None and (task := self._next_task(limit)) is not None:
                if self.files[task.start] == "-":
                    self._found[task.start] = self.ask("-")
                    continue
                worker.task = task
                try:
                    worker.connection.send([self.files[i] for i in task])
                except OSError:
                    self._lost(number)
                    worker = self._workers[number]

    def _next_task(self, limit: int) -> range | None:
        """The next files to read. Retries come last: what kills workers from outside has often stopped by then."""
        if self._tasks and self._tasks[0].start < limit:
            return self._tasks.popleft()
        return self._retries.popleft() if self._retries else None

    def _collect(self) -> None:
        """Wait for an answer, or for the end of a worker."""
        busy = {worker.connection: number for number, worker in enumerate(self._workers) if worker.task is not None}
        for connection in wait(list(busy)) if busy else ():
            assert isinstance(connection, Connection)
            worker = self._workers[busy[connection]]
            try:
                answers = connection.recv()
            except (EOFError, OSError):
                self._lost(busy[connection])
                continue
            if isinstance(answers, _Started):
                worker.started = True
                continue
            if isinstance(answers, _LastWord):
                self._lost(busy[connection], answers.why)
                continue
            assert worker.task is not None
            self._found.update(zip(worker.task, answers, strict=True))
            worker.task = None

    def _lost(self, number: int, why: str = "") -> None:
        """A worker died with its task: its files are read again one by one, and one that kills every time is reported; at once where the
        worker said ``why``."""
        worker = self._workers[number]
        task = worker.task
        assert task is not None
        worker.connection.close()
        worker.process.join()
        if len(task) > 1:
            self._tasks.extendleft(range(i, i + 1) for i in reversed(task))
        else:
            (self._deaths if worker.started else self._failed_starts)[task.start] += 1
            if why or self._deaths[task.start] == TRIES or self._failed_starts[task.start] == STARTS:
                self._found[task.start] = self.died(self.files[task.start], why)
            else:
                self._retries.append(task)
        self._workers[number] = self._start()


class _Started:
    """What a worker sends first, once its modules are imported."""


@dataclass(frozen=True, slots=True)
class _LastWord:
    """What a worker sends before it exits because a file exceeds its budget."""

    why: str


def _serve(connection: Connection, ask: Callable[[str], T], limits: Limits) -> None:
    """A worker: answers portions of files until its pipe ends. Ctrl-C is for the process that asked."""
    def end(why: BudgetExceeded) -> None:
        connection.send(_LastWord(why.message))
        os._exit(0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with watched(limits, end):
        with suppress(OSError):
            connection.send(_Started())
        while True:
            try:
                files = connection.recv()
                connection.send([ask(file) for file in files])
            except (EOFError, OSError):
                return


def _worth_it(files: Sequence[str]) -> bool:
    return len(files) >= WORTH_FILES or sum(map(_size, files)) >= WORTH_BYTES


def _chunks(files: Sequence[str]) -> Iterator[range]:
    """The numbers of files in portions of some number or some bytes; standard input is a portion of its own."""
    begin = size = 0
    for number, file in enumerate(files):
        if number > begin and (file == "-" or files[begin] == "-" or number - begin >= CHUNK_FILES or size >= CHUNK_BYTES):
            yield range(begin, number)
            begin, size = number, 0
        size += _size(file)
    if begin < len(files):
        yield range(begin, len(files))


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except (OSError, ValueError):
        return 0
