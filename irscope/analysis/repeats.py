"""Stretches of a sequence that repeat several times in a row: the layers of a network without names."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import eq

MAX_CANDIDATES = 12
MIN_UNIT = 4
"""A unit of fewer elements is folded only when it repeats :data:`MIN_SHORT` times."""
MIN_SHORT = 8
MIN_PAIR = 16
"""A unit that occurs only twice must be this long: two short stretches that look alike are chance."""


@dataclass(frozen=True, slots=True)
class RepeatedStretch:
    """``times`` copies of ``period`` elements each, from ``begin`` on."""

    begin: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.begin + self.period * self.times


def is_long(begin: int, period: int, times: int) -> bool:
    """Whether ``times`` copies of ``period`` elements are unlikely to be chance."""
    return times >= MIN_SHORT or (period >= MIN_UNIT and times > 2) or period >= MIN_PAIR


def is_layered(begin: int, period: int, times: int) -> bool:
    """Whether ``times`` copies of ``period`` contractions are likely to be the layers of a network."""
    return (times > 2 and period > 1) or times >= MIN_SHORT or period >= MIN_SHORT


def repeats(sequence: Sequence[int], is_enough: Callable[[int, int, int], bool] = is_long) -> list[RepeatedStretch]:
    """The repeats of a sequence, in order and disjoint; the period that covers most is chosen first.

    ``is_enough(begin, period, times)`` decides which repeats count.

    >>> repeats([7, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 9])
    [RepeatedStretch(begin=1, period=4, times=3)]
    """
    found: list[RepeatedStretch] = []
    todo = [(0, len(sequence))]
    while todo:
        begin, end = todo.pop()
        best = _best(sequence[begin:end], begin, is_enough)
        if not best:
            continue
        at = begin
        for repeat in best:
            found.append(repeat)
            todo.append((at, repeat.begin))
            at = repeat.end
        todo.append((at, end))
    return sorted(found, key=lambda r: r.begin)


def _best(part: Sequence[int], first: int, is_enough: Callable[[int, int, int], bool]) -> list[RepeatedStretch]:
    """The repeats of the one period that covers most of ``part``; of two periods that cover about the same, the shorter.

    ``first`` is the number of the first element of ``part`` in the whole sequence, by which the repeats are numbered.
    """
    last: dict[int, int] = {}
    gaps: Counter[int] = Counter()
    for i, element in enumerate(part):
        before = last.get(element)
        if before is not None:
            gaps[i - before] += 1
        last[element] = i
    best: list[RepeatedStretch] = []
    covered = 0
    frequent = [gap for gap, _ in gaps.most_common(MAX_CANDIDATES)]
    # Elements that occur once per copy have the true period as their gap; they are rare when a copy has many equal elements.
    long = [gap for gap, n in sorted(gaps.items(), key=lambda g: -g[0] * min(g[1], 64))[:MAX_CANDIDATES]]
    for period in sorted({*frequent, *long}):
        runs = _runs(part, first, period, is_enough)
        cover = sum(run.period * run.times for run in runs)
        if cover > covered * 1.05:
            best, covered = runs, cover
    return best


def _runs(part: Sequence[int], first: int, period: int, is_enough: Callable[[int, int, int], bool]) -> list[RepeatedStretch]:
    same = bytes(map(eq, part[period:], part))
    found = []
    for match in re.finditer(rb"\x01{%d,}" % period, same):
        times = (match.end() - match.start()) // period + 1
        if is_enough(first + match.start(), period, times):
            found.append(RepeatedStretch(first + match.start(), period, times))
    return found
