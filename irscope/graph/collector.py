"""Pausing the garbage collector while a graph is built."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

PENDING = 1_000_000
"""Objects (some 100 MB) that may have come since the last full collection before the next pause begins with one. A pass over 100,000 nodes,
right after they were read and typed, comes to 940,000: it is not made to wait a third of its time."""
SHARE = 0.25
"""So may this share of those that were there: a large graph is not looked through for each small one. Python's own rule."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """A graph of a million nodes is no garbage; looking for some in it would take twice as long as building it.

    What was built counts as old afterwards, so that the collector does not look through it as soon as it is on again: freezing and thawing
    moves everything into the oldest generation and looks at nothing. Python then forgets how much is new there, and would never look
    again, so that a process which reads a thousand files would keep the garbage of all: when much has come, the next pause begins with a
    full collection. Whoever has frozen objects of their own keeps them frozen.
    """
    was_on = gc.isenabled()
    gc.disable()
    if was_on and _count.due:
        gc.collect()
        _count.start()
    try:
        yield
    finally:
        if was_on:
            _count.note(gc.get_count()[0])  # what came, less what went, since the collector was switched off
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class _Count:
    """How many objects there were after the last full collection, and how many have come in pauses since then.

    Those that have gone outside of pauses are not known: counting all there are takes as long as a small collection.
    """

    def __init__(self) -> None:
        self.kept = self.come = 0

    @property
    def due(self) -> bool:
        """Whether a full collection should be made."""
        return self.come > max(PENDING, SHARE * self.kept)

    def start(self) -> None:
        """A full collection has just been made."""
        self.come = 0
        if not gc.get_freeze_count():
            gc.freeze()
            self.kept = gc.get_freeze_count()
            gc.unfreeze()

    def note(self, objects: int) -> None:
        """So many came in a pause."""
        self.come += objects


_count = _Count()
