"""Pausing the garbage collector while a graph is built."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """A graph of a million nodes is no garbage; looking for some in it would take twice as long as building it.

    What was built counts as old afterwards, so that the collector does not look through it as soon as it is on again: freezing and thawing
    moves everything into the oldest generation and looks at nothing. Whoever has frozen objects of their own keeps them frozen.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
