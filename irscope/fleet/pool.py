"""One function over many files in several processes: answers in order, and no file can take the others down."""
from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Generic, TypeVar

T = TypeVar("T")

# Starting processes costs about half a second; below this much work one is quicker.
WORTH_FILES = 64
WORTH_BYTES = 8 << 20
CHUNK_FILES = 16
CHUNK_BYTES = 2 << 20


def usable_cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def map_files(ask: Callable[[str], T], died: Callable[[str], T], files: Sequence[str], jobs: int | None = None) -> Iterator[T]:
    """``ask(file)`` for each file, in order; ``died(file)`` where the process that read the file came to its end.

    ``ask`` must be importable (a function of a module, or a ``functools.partial`` of one). With one job, or little to do, all of it
    happens in this process. Standard input is read here in any case.
    """
    jobs = min(jobs or usable_cores(), len(files)) if jobs or _worth_it(files) else 1
    if jobs <= 1:
        for file in files:
            yield ask(file)
        return
    pool = _Pool(ask, died, jobs)
    try:
        yield from pool.run(_chunks(files))
    finally:
        pool.close()


class _Pool(Generic[T]):
    def __init__(self, ask: Callable[[str], T], died: Callable[[str], T], jobs: int) -> None:
        self.ask, self.died, self.jobs = ask, died, jobs
        self._executor: ProcessPoolExecutor | None = None

    def run(self, chunks: Iterator[list[str]]) -> Iterator[T]:
        flying: deque[tuple[list[str], Future[list[T]] | None]] = deque()
        for chunk in chunks:
            flying.append((chunk, self._submit(chunk)))
            while len(flying) > 3 * self.jobs:
                yield from self._land(flying)
        while flying:
            yield from self._land(flying)

    def _submit(self, chunk: list[str]) -> Future[list[T]] | None:
        if chunk == ["-"]:
            return None
        if self._executor is None:
            methods = multiprocessing.get_all_start_methods()
            context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
            self._executor = ProcessPoolExecutor(self.jobs, mp_context=context)
        try:
            return self._executor.submit(_ask_all, self.ask, chunk)
        except BrokenProcessPool:
            self.close()
            return self._submit(chunk)

    def _land(self, flying: deque[tuple[list[str], Future[list[T]] | None]]) -> list[T]:
        chunk, future = flying.popleft()
        if future is None:
            return [self.ask(file) for file in chunk]
        try:
            return future.result()
        except BrokenProcessPool:
            # One file of some chunk has killed its process, and with it all that was under way: that is asked again.
            self.close()
            results = [self._alone(file) for file in chunk]
            for i, (other, lost) in enumerate(flying):
                if lost is not None and (not lost.done() or lost.exception() is not None):
                    flying[i] = other, self._submit(other)
            return results

    def _alone(self, file: str) -> T:
        """Ask one file in a process of its own."""
        future = self._submit([file])
        assert future is not None, "standard input is no chunk that a process reads"
        try:
            return future.result()[0]
        except BrokenProcessPool:
            self.close()
            return self.died(file)

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


def _ask_all(ask: Callable[[str], T], files: list[str]) -> list[T]:
    return [ask(file) for file in files]


def _worth_it(files: Sequence[str]) -> bool:
    return len(files) >= WORTH_FILES or sum(map(_size, files)) >= WORTH_BYTES


def _chunks(files: Sequence[str]) -> Iterator[list[str]]:
    """Files in order, in portions of some number or some bytes."""
    chunk: list[str] = []
    size = 0
    for file in files:
        if file == "-":
            if chunk:
                yield chunk
            yield ["-"]
            chunk, size = [], 0
            continue
        chunk.append(file)
        size += _size(file)
        if len(chunk) >= CHUNK_FILES or size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except (OSError, ValueError):
        return 0
