"""Makes an input small that shows a defect: options, files, lines and characters go as long as the defect stays the same."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.fuzz.entry import Entry, encode
from tests.fuzz.judge import defect_of, new_worker

Part = TypeVar("Part")
LONGEST = 60.0
"""Seconds of CPU time after which the smallest input so far is taken."""


def minimise(entry: Entry) -> tuple[str, Entry]:
    """The defect of an input, and the smallest input found that has the same."""
    worker = new_worker(guided=False)

    def fails(candidate: Entry) -> str:
        return defect_of(worker.ask(encode(candidate), defect.startswith("unequal")), candidate) if worker.spent() < LONGEST else ""

    defect = ""
    try:
        defect = fails(entry)
        return (defect, smaller(entry, lambda candidate: fails(candidate) == defect)) if defect else ("", entry)
    finally:
        worker.close()


def smaller(entry: Entry, same: Callable[[Entry], bool]) -> Entry:
    """The entry without what ``same`` does not need."""
    if entry.terminal and same(replace(entry, terminal=False)):
        entry = replace(entry, terminal=False)
    entry = replace(entry, cache=tuple(_fewest(entry.cache, lambda lines: same(replace(entry, cache=tuple(lines))))))
    for name in list(entry.files):
        without = replace(entry, files={n: content for n, content in entry.files.items() if n != name})
        if same(without):
            entry = without
    words = _fewest(entry.args[1:], lambda args: same(replace(entry, args=(*entry.args[:1], *args))))
    entry = replace(entry, args=(*entry.args[:1], *words))
    for name in entry.files:
        for separator in (b"\n", b" ", b",", b""):
            content = entry.files[name]
            parts: Sequence[bytes] = content.split(separator) if separator else [content[i:i + 1] for i in range(len(content))]
            if len(parts) <= 3000:
                base = entry
                parts = _fewest(parts, lambda kept, b=base, n=name, s=separator: same(b.with_file(n, s.join(kept))))  # type: ignore[misc]
                entry = entry.with_file(name, separator.join(parts))
    return entry


def _fewest(parts: Sequence[Part], same: Callable[[Sequence[Part]], bool]) -> Sequence[Part]:
    """The parts that are needed: ever smaller runs of them are left out (Zeller's ddmin)."""
    size = max(1, len(parts) // 2)
    while size:
        at = 0
        while at < len(parts):
            without = [*parts[:at], *parts[at + size:]]
            if same(without):
                parts = without
            else:
                at += size
        size //= 2
    return parts
