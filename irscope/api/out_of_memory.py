"""The out-of-memory error in a log that a user names."""
from __future__ import annotations

from irscope.fleet.out_of_memory import OutOfMemory, parse_out_of_memory
from irscope.source import UserError
from irscope.source.files import read_bytes


def out_of_memory_of(path: str) -> OutOfMemory:
    """The out-of-memory error of a log. Raises UserError where it has none."""
    error = parse_out_of_memory(read_bytes(path).decode("utf-8", "replace"))
    if error is None or not error.buffers:
        raise UserError(f"{path} has no out-of-memory error of XLA that lists buffers",
                        "it lists them after 'Peak buffers:' or 'Largest program allocations'")
    return error
