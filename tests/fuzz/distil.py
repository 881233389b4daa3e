"""The corpus of the repository: of many inputs the few that together reach every line that all of them reach."""
from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz.entry import Entry, encode
from tests.fuzz.judge import Judged, new_worker

BYTES = 195_000
"""How large the corpus may be."""


def reached(entries: Sequence[Entry]) -> dict[bytes, frozenset[str]]:
    """By file of an entry: the lines and features that it reaches. Entries with a defect, and those that start processes, are left out."""
    worker = new_worker(guided=True)
    found = {}
    try:
        for entry in entries:
            verdict = worker.ask(encode(entry), False, True, True)
            if isinstance(verdict, Judged) and not verdict.outcome.defect:
                found[encode(entry)] = verdict.new
    finally:
        worker.close()
    return found


def fewest(reaching: Mapping[bytes, frozenset[str]], limit: int = BYTES) -> list[bytes]:
    """Files of at most ``limit`` bytes, chosen one by one: whichever adds most lines for its bytes."""
    left, lines, chosen, size = dict(reaching), set[str](), [], 0
    gain = {data: len(reach) for data, reach in left.items()}
    while left:
        # A gain only ever falls: the best one is exact once it is still the best when it is counted anew.
        best = max(gain, key=lambda data: gain[data] / len(data))
        now = len(left[best] - lines)
        if now != gain[best]:
            gain[best] = now
            continue
        reach = left.pop(best)
        del gain[best]
        if now and size + len(best) <= limit:
            chosen.append(best)
            lines |= reach
            size += len(best)
    return chosen


def write_corpus(folder: Path, chosen: Sequence[bytes]) -> None:
    """Let a folder hold these files and no other entries."""
    for path in folder.glob("*.case"):
        path.unlink()
    for data in chosen:
        (folder / f"{zlib.crc32(data):08x}.case").write_bytes(data)
