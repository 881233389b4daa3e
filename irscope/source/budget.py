"""What one file may cost: seconds of processor time, bytes of memory, nodes of a graph. A stranger's file never takes more.

    with limits(seconds=10, memory="2GiB"):      # irscope.limits; the command line: --limit-time 10 --limit-memory 2GiB
        model = irscope.compile("model.hlo")     # BudgetExceeded, a UserError, names the file and the limit

**Where it lives.** A budget belongs to a block of code, by a context variable: nothing hands it on, and threads and tasks have their own.
The innermost counts. Without one nothing is limited but nodes: a caller of the API decides for himself. The command line gives each file
one (``cli/limits.py``), and workers of the fleet make one for each of their files from the same :class:`Limits`.

**How it reaches the loops.** Whatever makes or visits a node calls :func:`tick`: adding a node to a graph (reading, expanding, folding,
every pass), a step of the reference, an expression of a kernel. That decrements a counter; every :data:`STEPS` of them the clock and the
memory are looked at. Compiled programs that may take long run in a thread of their own, while the caller looks here
(``backends/stopping.py``). Code that never asks (one call of numpy, a rule) is ended from outside, by a thread of the command line
(``source/watchdog.py``).

**Time** is processor time, so that a busy machine changes no result; of kernels that are shared out, that of one thread. **Memory** is
what the process holds beyond what it held when the budget began, plus what is about to be allocated: whoever makes an array of a size
that a text gives, or unpacks a file, asks :func:`require` first. Not RLIMIT_AS: it counts reserved addresses, which numpy and LLVM need
far more of than memory, and it holds for the whole process. **Nodes**: :data:`NODES` bounds what inlining and unrolling make of a text,
and :data:`PARTS` the arrays in one nested tuple; both are beyond any real program, and hold without a budget too.

A budget that is spent stays spent: each later question raises again, so that code which catches a UserError and goes another way does not
go far. A refused allocation leaves it as it is.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from irscope.source.errors import UserError
from irscope.source.memory import resident
from irscope.source.sizes import parse_size, told_bytes

NODES = 2_000_000
"""Nodes that a text may become by inlining and unrolling."""
PARTS = 1 << 17
"""Arrays in one value when nested tuples are counted through."""
STEPS = 1024
"""So many nodes cost some milliseconds: the clock is looked at as often."""
LARGE = 1 << 20
"""An array from so many bytes on is worth a question."""


class BudgetExceeded(UserError):
    """A limit of :func:`limits` is reached. The message names the file and the limit, the help what allows more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Processor time in seconds and memory in bytes; None: no limit."""

    seconds: float | None = None
    memory: int | None = None


class Budget:
    """What has been spent of :class:`Limits`; ``names`` are the files that it is spent on."""

    def __init__(self, limits: Limits, names: tuple[str, ...] = ()) -> None:
        self.limits = limits
        self.begin(names)

    def begin(self, names: tuple[str, ...] = ()) -> None:
        """Nothing is spent yet."""
        self.names = names
        self.left = STEPS
        self.held = resident()
        self.fault: tuple[str, str] | None = None
        self.began = {threading.get_ident(): time.thread_time()}
        self.spends: dict[object, float] = {}  # by thread

    def seconds(self) -> float:
        """Processor time so far, of all threads that asked or were charged."""
        me, now = threading.get_ident(), time.thread_time()
        self.spends[me] = now - self.began.setdefault(me, now)
        return sum(self.spends.values())

    def check(self) -> None:
        """Look at the clock and the memory. Raises BudgetExceeded, from then on always."""
        self.left = STEPS
        if self.spent(self.seconds()):
            raise self.exceeded()

    def spent(self, seconds: float) -> bool:
        """Whether nothing is left after so much processor time, or for the memory that the process holds; that stays so."""
        if self.fault is None:
            if self.limits.seconds is not None and seconds > self.limits.seconds:
                self.fault = (f"more than {self.limits.seconds:g} s of processor time",
                              "--limit-time SECONDS allows more, 0 any; in Python: irscope.limits(seconds=...)")
            elif self.limits.memory is not None and resident() - self.held > self.limits.memory:
                self.fault = self._beyond("")
        if self.fault is not None:
            self.left = 0
        return self.fault is not None

    def exceeded(self) -> BudgetExceeded:
        """What to raise of a budget that is spent."""
        assert self.fault is not None, "nothing is spent"
        return self._error(*self.fault)

    def require(self, bytes: int, what: str) -> None:
        """Raise BudgetExceeded where ``bytes`` more would be beyond the limit. The budget is not spent by asking."""
        if self.limits.memory is not None and bytes > self.limits.memory - max(0, resident() - self.held):
            raise self._error(*self._beyond(f": {what} has {told_bytes(bytes)}"))

    def _beyond(self, what: str) -> tuple[str, str]:
        return (f"more than {told_bytes(self.limits.memory or 0)} of memory{what}",
                "--limit-memory SIZE allows more, 0 any; in Python: irscope.limits(memory=...)")

    def _error(self, what: str, help: str) -> BudgetExceeded:
        return BudgetExceeded(f"{' and '.join(self.names) or 'this'} takes {what}", help)


def thread_clock() -> Callable[[], float]:
    """The processor time of the thread that calls, to be asked by another one; where the system has no such clock, of the process."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(threading.get_ident())

    def seconds() -> float:
        try:
            return time.clock_gettime(clock)
        except OSError:  # the thread has ended meanwhile
            return 0.0
    return seconds


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


def current() -> Budget | None:
    """The budget of the code that asks."""
    return _current.get()


@contextmanager
def limits(seconds: float | None = None, memory: int | str | None = None) -> Iterator[Budget]:
    """Bound the work done inside: ``seconds`` of processor time, ``memory`` in bytes or as ``"2GiB"``. None and 0: no limit.

    Raises BudgetExceeded (a UserError) where the work takes more, UserError for what is no size.
    """
    with budget(Limits(seconds or None, (parse_size(memory) if memory is not None else None) or None)) as made:
        yield made


@contextmanager
def budget(limits: Limits, *names: str) -> Iterator[Budget]:
    """A budget of its own for the work on some files."""
    made = Budget(limits, names)
    before = _current.set(made)
    try:
        yield made
        if made.fault is not None:
            raise made.exceeded()  # it was raised, and somebody went on without
    finally:
        _current.reset(before)


@contextmanager
def fresh_budget(*names: str) -> Iterator[None]:
    """The same limits from the beginning, for the next of several files; nothing where there is no budget."""
    budget = _current.get()
    if budget is None:
        yield
        return
    budget.begin(names)
    try:
        yield
        if budget.fault is not None:
            raise budget.exceeded()
    finally:
        budget.begin()


def concerning(name: str) -> None:
    """The current budget is spent on this file too. With the first it begins: what came before is no file's fault."""
    budget = _current.get()
    if budget is None:
        return
    if not budget.names:
        budget.begin((name,))
    elif name not in budget.names:
        budget.names += (name,)


def tick(steps: int = 1) -> None:
    """A node is made or visited. Raises BudgetExceeded when the limit is reached; without a budget nothing happens."""
    budget = _current.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            budget.check()


def require(bytes: int, what: str) -> None:
    """So many bytes are about to be allocated for ``what``. Raises BudgetExceeded where that is beyond the limit."""
    if bytes >= LARGE:
        budget = _current.get()
        if budget is not None:
            budget.require(bytes, what)


def require_nodes(count: int, what: str, limit: int = NODES, of: str = "nodes") -> None:
    """Raise BudgetExceeded where a text becomes more nodes, or a value gets more elements, than ``limit``; ``what`` says by what."""
    if count > limit:
        raise BudgetExceeded(f"{what} makes more than {limit:,} {of}", "give a smaller part of the program")


def require_parts(count: int) -> None:
    """Raise BudgetExceeded where a value holds so many arrays."""
    if count > PARTS:
        raise BudgetExceeded(MANY_PARTS, "nested tuples that hold the same value often count it as often")


MANY_PARTS = f"a value has more than {PARTS:,} parts when nested tuples are counted through"
