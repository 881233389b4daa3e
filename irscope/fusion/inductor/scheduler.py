"""The scheduler: scores pairs of kernels and joins them, best first, in rounds, until nothing more can be joined.

The tests are in the order of ``Scheduler._can_fuse`` (scheduler.py of torch 2.13), and their words are those of its log; it does not log
the refusals of the C++ backend.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, total_ordering
from math import prod

from irscope.fusion.closure import closure
from irscope.fusion.inductor.ancestors import Ancestors
from irscope.fusion.inductor.cpp import Cpp
from irscope.fusion.inductor.forms import is_indirect
from irscope.fusion.inductor.kernels import Dependence, Kernel, kernel_of, size_of
from irscope.fusion.inductor.limits import Limits
from irscope.fusion.inductor.loops import Access
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.memo import Memo
from irscope.graph.walk import post_order

NO_SHARED_DATA = "no shared data"
DIFFERENT_ACCESS = "memory deps did not match"
BETWEEN = "intermediate nodes between node1 & node2"
ORDER = "node1 must go before node2"
CYCLE = "will create cycle"
TOO_LARGE = "exceeds max fusion"
MEMORY = "Fusion will increase peak memory"
FAR = "Nodes are too far away. Fusing them may increase peak memory."
LITTLE = "score_fusion_memory_threshold"
SIMILAR = 16
"""A larger ratio between two scores in bytes decides alone (``FusionScore`` of choices.py)."""


@dataclass(frozen=True, slots=True)
class RefusedPair:
    """Why two kernels were not joined: the words of the log (None: it logs nothing), the test, and what it compared."""

    words: str | None
    test: str
    numbers: str = ""


@total_ordering
class Score:
    """The score of a fusion: kernels of one kind before mixed ones, then shared bytes, then proximity."""

    __slots__ = ("alike", "near", "shared")

    def __init__(self, alike: bool, shared: int, near: int) -> None:
        self.alike, self.shared, self.near = alike, shared, near

    def __lt__(self, other: Score) -> bool:
        if max(self.shared, other.shared) > min(self.shared, other.shared) * SIMILAR:
            return self.shared < other.shared
        return (self.alike, self.shared, self.near) < (other.alike, other.shared, other.near)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Score) and not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]


class Scheduler:
    """The scheduler on a lowered program.

    ``kernels`` are the current kernels; ``joined`` the pairs in order; ``refused`` has the last reason for each tested pair of operations,
    ``said`` the lines of Inductor's log about them.
    """

    def __init__(self, buffers: Iterable[Buffer], inputs: Iterable[Buffer], results: Iterable[Buffer], limits: Limits) -> None:
        kept = _alive(list(buffers), results)
        self.limits = limits
        self.backend = Cpp(limits)
        self.buffers = {b.name: b for b in (*inputs, *kept)}
        self.kernels = [kernel_of(buffer, order) for order, buffer in enumerate(kept)]
        self.home = {name: kernel for kernel in self.kernels for name in kernel.names}
        self.ancestors = Ancestors(self.kernels)
        self.readers = _count_readers(self.kernels, results)
        self.joined: list[tuple[str, str]] = []
        self._refused: list[tuple[Kernel, Kernel, RefusedPair]] = []
        self._last: dict[tuple[Kernel, Kernel], int] = {}
        self._cyclic: dict[tuple[int, int], int] = {}
        self._sizes = Memo(self._accessed)
        self._reused = Memo(self._reusable)

    def run(self) -> None:
        """Run all rounds, and the last one, which tries other loop orders."""
        for _ in range(self.limits.rounds):
            before = len(self.kernels)
            self._round()
            if len(self.kernels) in (before, 1):
                break
        self._round()

    def read_by(self) -> dict[str, list[Kernel]]:
        """The kernels that read each buffer."""
        found: dict[str, list[Kernel]] = {}
        for kernel in self.kernels:
            for name in dict.fromkeys(d.buffer for d in kernel.needs):
                found.setdefault(name, []).append(kernel)
        return found

    # ------------------------------------------------------------------ a round

    def _round(self) -> None:
        pairs = [(a, b, self.ancestors.before(a, b)) for a, b in self._candidates() if self._refusal(a, b) is None]
        if pairs:
            first = [p for p in pairs if not self.backend.last(*p)]
            pairs = first or pairs
        scored = sorted(((self._score(a, b), a, b) for a, b, _ in pairs), key=lambda s: s[0], reverse=True)
        alive = dict.fromkeys(self.kernels)
        for _, a, b in scored:
            first_, second = self._now(a), self._now(b)
            if first_ is second or self._refusal(first_, second) is not None or self.closes_cycle(first_, second):
                continue
            made = self.backend.join(first_, second, self.ancestors.before(first_, second))
            self.joined.append((first_.label, second.label))
            del alive[first_], alive[second]
            alive[made] = None
            self.home.update(dict.fromkeys(made.names, made))
        self.kernels = self._sorted(sorted(alive, key=lambda k: k.low))

    def _now(self, kernel: Kernel) -> Kernel:
        return self.home[kernel.buffers[0].name]

    def _candidates(self) -> Iterable[tuple[Kernel, Kernel]]:
        """Pairs that access one buffer, each kernel with those that come next in order."""
        touching: dict[str, list[Kernel]] = {}
        for kernel in self.kernels:
            if not kernel.extern:
                for name in kernel.touched():
                    touching.setdefault(name, []).append(kernel)
        seen: set[tuple[Kernel, Kernel]] = set()
        for group in touching.values():
            for i, first in enumerate(group):
                for second in group[i + 1:i + 1 + self.limits.attempts]:
                    if (first, second) not in seen:
                        seen.add((first, second))
                        yield first, second

    # ------------------------------------------------------------------ may two kernels be joined

    def _refusal(self, first: Kernel, second: Kernel) -> RefusedPair | None:
        refused = self._tested(first, second)
        if refused is not None:
            self.refuse(first, second, refused)
        return refused

    def refuse(self, first: Kernel, second: Kernel, refused: RefusedPair) -> None:
        """Record why two kernels are not joined."""
        self._last[first, second] = len(self._refused)
        self._refused.append((first, second, refused))

    @property
    def said(self) -> list[str]:
        """The lines of Inductor's log about pairs that it does not fuse."""
        return [f"cannot fuse {first.label} with {second.label}: {refused.words}" for first, second, refused in self._refused
                if refused.words is not None]

    def refused(self, first: int, second: int) -> RefusedPair | None:
        """Why the kernels that two operations (by number) were in were not joined, the last time that this was tested."""
        tests = [self._last.get((a, b), -1) for a in self._holding.get(first, ()) for b in self._holding.get(second, ())]
        last = max([*tests, self._cyclic.get((first, second), -1)])
        return self._refused[last][2] if last >= 0 else None

    @cached_property
    def _holding(self) -> dict[int, list[Kernel]]:
        """The kernels with refusals that an operation was in, by its number."""
        found: dict[int, list[Kernel]] = {}
        for kernel in dict.fromkeys(kernel for pair in self._last for kernel in pair):
            for buffer in kernel.buffers:
                found.setdefault(buffer.number, []).append(kernel)
        return found

    def _tested(self, first: Kernel, second: Kernel) -> RefusedPair | None:
        limits = self.limits
        if self.ancestors.before(second, first):
            return RefusedPair(ORDER, ORDER)
        shared = self.shared(first, second)
        if not shared:
            return RefusedPair(NO_SHARED_DATA, NO_SHARED_DATA)
        count = len(first.buffers) + len(second.buffers)
        if count > limits.group:
            return RefusedPair(TOO_LARGE, TOO_LARGE, f"{count} > {limits.group}")
        # Elements of buffers that could have been reused between the two (``can_fusion_increase_peak_memory``).
        kept = sum(elements for _, elements in self._reused[first] & self._reused[second])
        if kept > limits.overhead * shared:
            return RefusedPair(MEMORY, MEMORY, f"{kept} > {limits.overhead} * {shared}")
        if self.ancestors.before(first, second):
            words = self._unmatched(first, second)
            if words:
                return RefusedPair(words, words)
            rule = self.backend.vertical(first, second)
            return RefusedPair(None, rule) if rule else None
        if shared < limits.shared:
            return RefusedPair(LITTLE, LITTLE, f"{shared} < {limits.shared}")
        distance = max(abs(first.low - second.high), abs(second.low - first.high))
        if distance > limits.distance:
            return RefusedPair(FAR, FAR, f"{distance} > {limits.distance}")
        rule = self.backend.horizontal(first, second)
        return RefusedPair(None, rule) if rule else None

    def shared(self, first: Kernel, second: Kernel) -> int:
        """Bytes of accesses that both kernels have (``score_fusion_memory``)."""
        mine, theirs = self._sizes[first], self._sizes[second]
        if len(mine) > len(theirs):
            mine, theirs = theirs, mine
        return sum(size for d, size in mine.items() if d in theirs)

    def _accessed(self, kernel: Kernel) -> dict[Dependence, int]:
        """The accesses of a kernel, with their bytes."""
        return {d: size_of(d, self.buffers) for d in {**kernel.reads, **kernel.writes}}

    def _reusable(self, kernel: Kernel) -> set[tuple[int, int]]:
        """For buffers that only this kernel reads, inputs excepted: the bytes of an element and the number of elements."""
        read = [self.buffers[d.buffer] for d in kernel.reads]
        return {(b.itemsize, prod(b.shape)) for b in read if b.kind != "input" and self.readers[b.name] == 1}

    def _unmatched(self, first: Kernel, second: Kernel) -> str:
        """Why the dependences of the second do not match the writes of the first (``can_fuse_vertical``); empty if they do."""
        writes = [write for write in first.writes if isinstance(write, Access)]
        left = [need for need in second.needs
                if not (isinstance(need, Access) and any(_reads_what_is_written(need, write) for write in writes))]
        if any(need.buffer in first.names for need in left):
            return DIFFERENT_ACCESS
        if any(self.ancestors.before(first, self.home[need.buffer]) for need in left):
            return BETWEEN
        return ""

    def closes_cycle(self, first: Kernel, second: Kernel) -> bool:
        """Whether kernels that were joined since the test form a path between the two; if so, records the refusal."""
        if not (self._reaches(second, first) or self._reaches(first, second)):
            return False
        self._cyclic[first.buffers[-1].number, second.buffers[0].number] = len(self._refused)
        self._refused.append((first, second, RefusedPair(CYCLE, CYCLE)))
        return True

    def _reaches(self, start: Kernel, goal: Kernel) -> bool:
        """Whether ``start`` depends on ``goal`` through a kernel between them."""
        def needed(kernel: Kernel) -> list[Kernel]:
            return [home for need in kernel.needs if (home := self.home[need.buffer]) is goal or home.high > goal.low]

        between = [home for need in start.needs if (home := self.home[need.buffer]) not in (start, goal)]
        return goal in closure(between, needed)

    # ------------------------------------------------------------------ order

    def _score(self, first: Kernel, second: Kernel) -> Score:
        near = -max(abs(first.low - second.high), abs(second.low - first.high))
        return Score(first.reduces == second.reduces, self.shared(first, second), near)

    def _sorted(self, kernels: list[Kernel]) -> list[Kernel]:
        """Topological order, otherwise stable (``topological_sort_schedule``)."""
        return post_order(kernels, lambda kernel: [self.home[name] for name in sorted(need.buffer for need in kernel.needs)])


def _reads_what_is_written(read: Access, write: Access) -> bool:
    """Whether a read visits the written elements in the same order; additional loops of the read repeat them."""
    if read.buffer != write.buffer or write.mode == "atomic_add" or is_indirect(read.form):
        return False
    return read.form == write.form and read.sizes[:len(write.sizes)] == write.sizes


def _alive(buffers: list[Buffer], results: Iterable[Buffer]) -> list[Buffer]:
    """The operations that are not dead."""
    wanted = {b.name for b in results}
    kept: list[Buffer] = []
    for buffer in reversed(buffers):
        if buffer.name in wanted or buffer.kind == "extern":
            kept.append(buffer)
            wanted.update(b.name for b in buffer.reads)
            wanted.update(b.name for b, _ in buffer.expression.loads)
    return kept[::-1]


def _count_readers(kernels: list[Kernel], results: Iterable[Buffer]) -> Counter[str]:
    """The number of operations that read each buffer; being a result counts as one."""
    counts = Counter(name for kernel in kernels for name in {d.buffer for d in kernel.reads})
    counts.update({b.name for b in results})
    return counts


