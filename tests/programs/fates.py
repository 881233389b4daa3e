"""A task for a worker that the tests of workers give; it imports little, since each worker imports it anew."""
from __future__ import annotations

import os

from tests.programs.verdict import Verdict


def fate(seed: int) -> Verdict:
    """Seed 1 ends the process, seed 2 does not end."""
    if seed == 1:
        os._exit(3)
    while seed == 2:
        pass
    return Verdict("same")
