"""The corpus of the repository: of many inputs the few that together reach every line that all of them reach."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from tests.fuzz.corpora import file_name
from tests.fuzz.entry import Entry, encode
from tests.fuzz.judge import Judged, new_worker

BYTES = 195_000
"""How large the corpus may be."""


def reached(entries: Iterable[Entry]) -> dict[bytes, Judged]:
    """By file of an entry: what became of it, with all lines and features that it reaches. Entries with a defect are left out."""
    worker = new_worker(guided=True)
    found: dict[bytes, Judged] = {}
    names: dict[str, str] = {}  # one object for each line: thousands of entries reach most of them
    try:
        for entry in entries:
            verdict = worker.ask(encode(entry), False, True, True)
            if isinstance(verdict, Judged) and not verdict.outcome.defect:
                found[encode(entry)] = replace(verdict, new=frozenset(names.setdefault(name, name) for name in verdict.new))
    finally:
        worker.close()
    return found


def fewest(reaching: Mapping[bytes, frozenset[str]], limit: int = BYTES) -> list[bytes]:
    """Files of at most ``limit`` bytes, chosen one by one: whichever adds most lines for its bytes."""
    left, lines, chosen, size = dict(reaching), set[str](), [], 0
    gain = {data: len(reach) for data, reach in left.items()}
    while left:
        # A gain only ever falls: the best one is exact once it is still the best when it is counted again.
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


def write_corpus(folder: Path, chosen: Mapping[bytes, bool]) -> None:
    """Let a folder hold these files, with whether they are deep, and no other entries."""
    for path in folder.glob("*.case"):
        path.unlink()
    for data, deep in chosen.items():
        (folder / file_name(data, deep)).write_bytes(data)
