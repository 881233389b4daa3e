"""Pauses the garbage collector while a graph is built."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

PENDING = 1_000_000
"""New objects (some 100 MB) since the last full collection, above which the next pause begins with one. Reading, typing and one pass over
100,000 nodes allocate 940,000: below the limit, because a full collection would add a third to the time of the pass."""
SHARE = 0.25
"""The same limit as a share of the objects kept: a large graph is not traversed again for each small one. This is Python's own rule."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector: a graph of a million nodes contains no garbage, and searching it would take twice as long as building it.

    Afterwards, freezing and unfreezing moves all objects to the oldest generation without traversing them, so the collector does not
    traverse the new graph as soon as it is on again. Python then loses the count of new objects there and would never start a full
    collection, so a process that reads a thousand files would keep all their garbage: after many allocations, the next pause begins with
    a full collection. Objects that the caller has frozen stay frozen.
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
            _count.note(gc.get_count()[0])  # allocations less deallocations since the collector was disabled
            if not _count.finds_frozen():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


class _Count:
    """The number of objects after the last full collection, and of those allocated in pauses since then.

    Deallocations outside of pauses are not counted: counting all objects takes as long as a small collection.
    """

    def __init__(self) -> None:
        self.kept = self.come = 0
        self.is_frozen = False

    @property
    def due(self) -> bool:
        """Whether a full collection is due."""
        return self.come > max(PENDING, SHARE * self.kept)

    def start(self) -> None:
        """Reset the counts right after a full collection."""
        self.come = 0
        self.is_frozen = False
        if not self.finds_frozen():
            gc.freeze()
            self.kept = gc.get_freeze_count()
            gc.unfreeze()

    def finds_frozen(self) -> bool:
        """Whether the caller has frozen objects. Python visits all of them to count them, so that once there are some, they are counted
        again only at the next full collection.
        """
        self.is_frozen = self.is_frozen or gc.get_freeze_count() > 0
        return self.is_frozen

    def note(self, objects: int) -> None:
        """Add the objects of a pause."""
        self.come += objects


_count = _Count()
