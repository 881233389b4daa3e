"""Resource limits for one untrusted file: seconds of processor time, bytes of memory, nodes of a graph.

    with limits(seconds=10, memory="2GiB"):      # irscope.limits; the command line: --limit-time 10 --limit-memory 2GiB
        model = irscope.compile("model.hlo")     # BudgetExceeded, a UserError, names the file and the limit

**Scope.** A budget belongs to a block of code, by a context variable: no code passes it on, and each thread and task has its own.
The innermost applies. Without a budget only nodes are limited: a caller of the API decides. The command line gives each file
a budget (``cli/limits.py``), and fleet workers create one per file from the same :class:`Limits`.

**Checks.** Code that makes or visits a node calls :func:`tick`: adding a node to a graph (reading, expanding, folding,
every pass), a step of the reference, an expression of a kernel. It decrements a counter, and checks the clock and the memory every
:data:`STEPS` steps. Compiled programs that may take long run in a separate thread, while the caller checks the budget
(``backends/stopping.py``). Code that never checks (one call of numpy, a rule) is stopped from outside, by a thread of the command line
(``source/watchdog.py``).

**Time** is processor time, so that a busy machine changes no result; for parallel kernels, that of all their threads. **Memory** is
the growth of the process since the budget began, plus what is about to be allocated: code that makes an array of a size
that a text states, or unpacks a file, calls :func:`require` first. Not RLIMIT_AS: it counts reserved addresses, which numpy and LLVM need
far more of than memory, and it applies to the whole process. **Nodes**: :data:`NODES` bounds the result of inlining and unrolling,
:data:`PARTS` the arrays in one nested tuple, and :data:`SIZE_BITS` the sizes of an array; all are beyond any real program, and apply
without a budget too.

A budget that is spent stays spent: each later check raises again, so that code which catches a UserError and takes another path stops
soon. A refused allocation does not spend it.
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
"""The maximal number of arrays in one value, counted through nested tuples."""
SIZE_BITS = 256
"""The maximal number of bits that the sizes of one array have together: the product of a few such arrays is still a float."""
STEPS = 1024
"""The steps between two checks of the clock: they take some milliseconds."""
LARGE = 1 << 20
"""Arrays from this many bytes on are checked before they are made."""


class BudgetExceeded(UserError):
    """A limit of :func:`limits` is reached. The message names the file and the limit, the help says how to raise it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Processor time in seconds and memory in bytes; None: no limit."""

    seconds: float | None = None
    memory: int | None = None


class Budget:
    """The spent part of :class:`Limits`; ``names`` are the files that it is spent on."""

    def __init__(self, limits: Limits, names: tuple[str, ...] = ()) -> None:
        self.limits = limits
        self.begin(names)

    def begin(self, names: tuple[str, ...] = ()) -> None:
        """Start with nothing spent."""
        self.names = names
        self.left = STEPS
        self.held = resident()
        self.fault: tuple[str, str] | None = None
        self.began = {threading.get_ident(): time.thread_time()}
        self.spends: dict[object, float] = {}  # by thread

    def seconds(self) -> float:
        """Processor time used, of all threads that checked or were charged."""
        me, now = threading.get_ident(), time.thread_time()
        self.spends[me] = now - self.began.setdefault(me, now)
        return sum(self.spends.values())

    def check(self) -> None:
        """Check the clock and the memory. Raises BudgetExceeded, and then on every later call."""
        self.left = STEPS
        if self.spent(self.seconds()):
            raise self.exceeded()

    def spent(self, seconds: float) -> bool:
        """Whether this much processor time, or the memory of the process, exceeds the limits; the answer then stays True."""
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
        """The error of a spent budget."""
        assert self.fault is not None, "nothing is spent"
        return self._error(*self.fault)

    def require(self, bytes: int, what: str) -> None:
        """Raise BudgetExceeded where ``bytes`` more would exceed the limit. The check does not spend the budget."""
        if self.limits.memory is not None and bytes > self.limits.memory - max(0, resident() - self.held):
            raise self._error(*self._beyond(f": {what} has {told_bytes(bytes)}"))

    def _beyond(self, what: str) -> tuple[str, str]:
        return (f"more than {told_bytes(self.limits.memory or 0)} of memory{what}",
                "--limit-memory SIZE allows more, 0 any; in Python: irscope.limits(memory=...)")

    def _error(self, what: str, help: str) -> BudgetExceeded:
        return BudgetExceeded(f"{' and '.join(self.names) or 'this'} takes {what}", help)


def thread_clock(thread: int | None = None) -> Callable[[], float]:
    """A clock of the processor time of a thread (its identifier; default: the calling one) for other threads to read.

    It is the clock of the process where the system has no clocks of threads.
    """
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(threading.get_ident() if thread is None else thread)

    def seconds() -> float:
        try:
            return time.clock_gettime(clock)
        except OSError:  # the thread has ended
            return 0.0
    return seconds


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


def current() -> Budget | None:
    """The budget of the calling code."""
    return _current.get()


@contextmanager
def limits(seconds: float | None = None, memory: int | str | None = None) -> Iterator[Budget]:
    """Limit the work in a block: ``seconds`` of processor time, ``memory`` in bytes or as ``"2GiB"``. None and 0: no limit.

    Raises BudgetExceeded (a UserError) where the work takes more, UserError for an invalid size.
    """
    with budget(Limits(seconds or None, (parse_size(memory) if memory is not None else None) or None)) as made:
        yield made


@contextmanager
def budget(limits: Limits, *names: str) -> Iterator[Budget]:
    """A separate budget for the work on some files."""
    made = Budget(limits, names)
    before = _current.set(made)
    try:
        yield made
        if made.fault is not None:
            raise made.exceeded()  # it was raised, and a caller caught it and continued
    finally:
        _current.reset(before)


@contextmanager
def fresh_budget(*names: str) -> Iterator[None]:
    """Restart the budget with the same limits, for the next of several files; does nothing without a budget."""
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
    """Charge the current budget to this file too. The first file starts it: earlier work is not charged to a file."""
    budget = _current.get()
    if budget is None:
        return
    if not budget.names:
        budget.begin((name,))
    elif name not in budget.names:
        budget.names += (name,)


def tick(steps: int = 1) -> None:
    """Count nodes that are made or visited. Raises BudgetExceeded when the limit is reached; does nothing without a budget."""
    budget = _current.get()
    if budget is not None:
        budget.left -= steps
        if budget.left < 0:
            budget.check()


def require(bytes: int, what: str) -> None:
    """Announce an allocation of ``bytes`` for ``what``. Raises BudgetExceeded where it would exceed the limit."""
    if bytes >= LARGE:
        budget = _current.get()
        if budget is not None:
            budget.require(bytes, what)


def require_nodes(count: int, what: str, limit: int = NODES, of: str = "nodes") -> None:
    """Raise BudgetExceeded where a text becomes more nodes, or a value gets more elements, than ``limit``; ``what`` names the cause."""
    if count > limit:
        raise BudgetExceeded(f"{what} makes more than {limit:,} {of}", "give a smaller part of the program")


def require_parts(count: int) -> None:
    """Raise BudgetExceeded where a value has too many arrays."""
    if count > PARTS:
        raise BudgetExceeded(MANY_PARTS, "nested tuples count a repeated value each time")


def require_bits(count: int) -> None:
    """Raise BudgetExceeded where the sizes of an array multiply to a number of too many bits."""
    if count > SIZE_BITS:
        raise BudgetExceeded(f"an array has more than 2**{SIZE_BITS} elements when sizes of 0 are left out",
                             "XLA, torch and LLVM count elements in 64 bits: check the shapes of the text")


MANY_PARTS = f"a value has more than {PARTS:,} parts when nested tuples are counted through"
