"""A watchdog thread that stops code which does not check its budget, for a process whose main thread is irscope's own.

Most code calls :func:`irscope.source.budget.tick` itself. Other code (one long library call, a loop that makes no nodes) is stopped in
two steps: a signal raises BudgetExceeded in the main thread, as Ctrl-C raises KeyboardInterrupt; where no Python line is reached any
more, the process ends with the same message. A timer raises the same signal where a call keeps the interpreter's lock, but looks for
signals, as regular expressions do. The API has no watchdog: a library leaves the signals of its caller alone.
"""
from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from irscope.source.budget import Budget, BudgetExceeded, Limits, budget, thread_clock

INTERVAL = 0.1
PATIENCE = 1.0
"""Seconds that code has to notice by itself."""
ENDING = 1.0
"""Seconds in which a command ends after the signal."""


@contextmanager
def watched(limits: Limits, end: Callable[[BudgetExceeded], None]) -> Iterator[Budget]:
    """A budget with a watchdog for the main thread, which starts with the first file. ``end`` is called in the watchdog's thread, to
    end the process."""
    with budget(limits) as made:
        if limits == Limits() or sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            yield made
            return
        done = threading.Event()
        dog = threading.Thread(target=_watch, args=(made, done, thread_clock(), end), daemon=True, name="irscope-limits")

        def interrupt(*_: object) -> None:
            if done.is_set() or not made.names:
                return
            if made.fault is not None:
                raise made.exceeded()
            made.spent(made.seconds())  # here too: a search by a regular expression never lets the thread run
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE, PATIENCE)
        dog.start()
        try:
            yield made
        finally:
            done.set()
            signal.setitimer(signal.ITIMER_REAL, 0)
            dog.join()
            signal.signal(signal.SIGALRM, before)


def _watch(made: Budget, done: threading.Event, clock: Callable[[], float], end: Callable[[BudgetExceeded], None]) -> None:
    main = threading.main_thread().ident
    assert main is not None, "it runs"
    while not done.wait(INTERVAL):
        began = made.began
        if not made.names:
            continue  # no file has been read yet
        others = sum(seconds for thread, seconds in list(made.spends.items()) if thread != main)
        if not made.spent(clock() - began[main] + others) or done.wait(PATIENCE):
            continue
        if made.fault is None or made.began is not began:
            continue  # the next file has begun
        fault = made.exceeded()
        signal.pthread_kill(main, signal.SIGALRM)
        if not done.wait(ENDING) and made.began is began:
            end(fault)


def end_process(fault: BudgetExceeded) -> None:
    """Print the error and exit with status 2, whatever the other threads do."""
    os.write(2, (fault.render() + "\n").encode("utf-8", "replace"))
    os._exit(2)
