"""Interruption of machine code: compiled code polls for a request to stop, so that Python can interrupt an endless or very long run.

    %s = load atomic i64, ptr @irscope_stop         not 0: stop requested
    %f = (load i64, ptr @irscope_stop + 8) - 4096   statements that are left, written back
    br i1 (%s != 0 or %f < 0), label %out, label %on

Python handles a signal in the main thread between two bytecode instructions, so a thread inside machine code never sees one. A
program that may take long (:func:`may_take_long`) therefore runs in a separate thread, while the calling thread waits: Ctrl-C and an
exhausted budget set the word, and the code returns (:class:`Stopper`). Its results so far are discarded. That costs some thread switches,
so the program first runs in the calling thread, for as many statements as take a few milliseconds; where these do not suffice, it starts
again in a separate thread. All other programs do not poll.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from ctypes import addressof, c_int64

from irscope.lower.program import Launch, Loop, Program, Step, Switch
from irscope.lower.tile import For, Kernel, Stmt
from irscope.source.budget import current, thread_clock

STOP = "irscope_stop"
"""The symbol of the two words; each program in memory has its own."""
DECLARED = f"@{STOP} = external global [2 x i64]"
LONG = 1 << 27
"""Statements of the tile IR that take about a tenth of a second: nothing longer runs without polling."""
HERE = 1 << 22
"""Statements that run in the calling thread."""
ENDLESS = 1 << 62
UNKNOWN_TRIPS = 64
"""The assumed trips of a kernel's loop whose end depends on data. All such loops end: sorting, sweeps of an iteration."""
INTERVAL = 0.05
"""Seconds between the waiting thread's checks of its budget."""


def may_take_long(program: Program) -> bool:
    """Whether a run takes more than :data:`LONG` statements, or has a loop of unknown trip count."""
    return work_of(program.steps, {}) > LONG


def work_of(steps: list[Step], known: dict[Kernel, float]) -> float:
    """The approximate number of statements in a run of these steps; infinite where a loop's trips are unknown. Steps nest a few deep.

    ``known`` caches the counts of kernels.
    """
    found = 0.0
    for step in steps:
        if isinstance(step, Launch):
            if step.kernel not in known:
                known[step.kernel] = statements(step.kernel.body)
            found += known[step.kernel]
        elif isinstance(step, Loop):
            trips = float("inf") if step.trips is None else step.trips + 1.0
            found += trips * (1 + work_of(step.condition, known) + work_of(step.body, known))
        elif isinstance(step, Switch):
            found += max((work_of(branch, known) for branch in step.branches), default=0.0)
    return found


def statements(body: list[Stmt]) -> float:
    """The approximate number of statements in a run of these."""
    return sum(map(_statements, body))


def _statements(s: Stmt) -> float:
    return 1 + (UNKNOWN_TRIPS if s.trips is None else s.trips) * sum(map(statements, s.blocks()))


def looking(kernel: Kernel) -> dict[int, int]:
    """The bodies of loops (by ``id``) that poll in each iteration, with the statements of an iteration: the outermost ones whose iteration
    is no longer than :data:`LONG`, in loops that are. None in a short kernel."""
    return dict(_looking(kernel.body))


def _looking(body: list[Stmt]) -> Iterator[tuple[int, int]]:
    """Recurses as deep as the kernel's loops."""
    for s in body:
        for block in s.blocks():
            if not isinstance(s, For):
                yield from _looking(block)
            elif _statements(s) > LONG:
                inside = statements(block)
                if inside <= LONG:
                    yield id(block), int(inside)
                else:
                    yield from _looking(block)


def joined(bodies: dict[int, int], nest: list[For]) -> dict[int, int]:
    """The same where a nest is collapsed to one loop: its iterations are those of the innermost."""
    if not any(id(loop.body) in bodies for loop in nest):
        return bodies
    inner = nest[-1].body
    return {**bodies, id(inner): int(statements(inner))}


def look(name: Callable[[], str], work: int) -> tuple[list[str], str]:
    """The instructions that poll before ``work`` statements run, and the name of their result (i1); ``name`` creates names."""
    word, at, left, less, asked, spent, either = (name() for _ in range(7))
    return [
        f"{word} = load atomic i64, ptr @{STOP} monotonic, align 8",
        f"{at} = getelementptr i64, ptr @{STOP}, i64 1",
        f"{left} = load atomic i64, ptr {at} monotonic, align 8",
        f"{less} = sub i64 {left}, {max(1, work)}",
        f"store atomic i64 {less}, ptr {at} monotonic, align 8",
        f"{asked} = icmp ne i64 {word}, 0",
        f"{spent} = icmp slt i64 {less}, 0",
        f"{either} = or i1 {asked}, {spent}",
    ], either


class Stopper:
    """The words of one program, and the way to run it."""

    def __init__(self) -> None:
        self.words = (c_int64 * 2)()
        self.long = False  # the run before was

    @property
    def address(self) -> int:
        return addressof(self.words)

    def run(self, call: Callable[[], None], workers: Sequence[threading.Thread] = ()) -> None:
        """Run machine code: in this thread while that is short, else in a separate one. ``workers`` are the threads that share its work."""
        self.words[0] = 0
        if not self.long:
            self.words[1] = HERE
            call()
            if self.words[1] >= 0:
                return
        self.words[1] = ENDLESS
        self._apart(call, workers)
        self.long = ENDLESS - self.words[1] > HERE

    def _apart(self, call: Callable[[], None], workers: Sequence[threading.Thread]) -> None:
        """Run it in a separate thread. An exception raised here meanwhile (KeyboardInterrupt, BudgetExceeded) stops it, and propagates when
        it has returned: until then it writes to arrays."""
        clocks = {worker: thread_clock(worker.ident) for worker in workers if worker.is_alive()}
        earlier = sum(clock() for clock in clocks.values())
        done = threading.Event()

        def work() -> None:
            clocks[thread] = thread_clock()
            try:
                call()
            finally:
                done.set()
        thread = threading.Thread(target=work, daemon=True, name="irscope-run")
        budget = current()
        thread.start()
        try:
            while not done.wait(INTERVAL):
                if budget is not None:
                    budget.spends[thread] = sum(clock() for clock in list(clocks.values())) - earlier
                    budget.check()
        except BaseException:
            self.words[0] = 1
            _join(thread)
            raise
        thread.join()


def _join(thread: threading.Thread) -> None:
    """Wait for the end, which is near; further interrupts wait too."""
    while thread.is_alive():
        try:
            thread.join()
        except KeyboardInterrupt:
            continue
