"""Proof that a kernel stays within its buffers: every load, store and gather, masked or guarded, by the ranges of its indices.

A buffer is a window of a slot (or scratch memory, or a table): ``elements`` elements; the launch passes the address of the first. A lane is
in bounds where its index is at least 0 and less than that, for every iteration, under the guards around the statement, for the lanes that
the mask enables.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from irscope.lower.expressions import limits
from irscope.lower.ranges import KnownBounds, LinearSum, Range, Ranges, facts
from irscope.lower.tile import Assign, Buffer, Declare, Expr, For, GatherLoad, If, Kernel, Let, Load, Register, Stmt, Store, While
from irscope.lower.traversal import Visitor, visits

REGISTER = "register"
MEMORY = "memory"
ARITHMETIC = "arithmetic"


@dataclass(frozen=True, slots=True)
class Unproved:
    """An access that may leave its buffer, as far as the ranges show. ``kind`` is what its index depends on: ``register`` (a loop-carried
    value), ``memory`` (a value that the kernel itself wrote and reads back), or ``arithmetic`` (all else, which should be provable)."""

    buffer: Buffer
    access: str
    kind: str
    low: int
    high: int

    def __str__(self) -> str:
        place = str(self.low) if self.low == self.high else f"{self.low}..{self.high}"
        return f"{self.access} of {self.buffer.name}[{place}] is not shown to lie within {self.buffer.elements} elements"


def unproved(kernel: Kernel) -> list[Unproved]:
    """The accesses of a kernel that are not proved to stay within their buffers."""
    return _Proof().kernel(kernel)


ROUNDS = 4
"""Iterations to the fixpoint of the registers' ranges; a bound that still moves after half of them is widened."""


Facts = tuple[KnownBounds, ...]


class _Proof(Visitor):
    def __init__(self) -> None:
        self.ranges = Ranges({})
        self.found: list[Unproved] = []
        self.sources: dict[Expr, str] = {}
        self.moved = False
        self.hurried = False
        self.trusted = True

    def kernel(self, kernel: Kernel) -> list[Unproved]:
        """Iterate over the kernel until the ranges assumed of its registers are those stored to them."""
        registers: dict[Register, Range] = {}
        for number in range(ROUNDS):
            self.ranges, self.found, self.sources, self.moved, self.hurried = Ranges(registers), [], {}, False, 2 * number >= ROUNDS
            self.block(kernel.body, ())
            if not self.moved:
                return self.found
        self.ranges, self.found, self.sources, self.trusted = Ranges({}), [], {}, False
        self.block(kernel.body, ())
        return self.found

    def keep(self, register: Register, value: Expr, known: Facts) -> None:
        """A register may hold this value too."""
        if not register.dtype.is_integer or not self.trusted:
            return
        found, before = self.ranges.range(value, known), self.ranges.registers.get(register)
        joined = found if before is None else before.join(found)
        if before is not None and joined != before:
            self.moved = True
            low, high = limits(register.dtype)
            if self.hurried:
                joined = Range(before.low if joined.low == before.low else low, before.high if joined.high == before.high else high)
        self.ranges.registers[register] = joined

    def block(self, body: Sequence[Stmt], *args: Any) -> None:
        """Statements that run where ``known`` holds, if they ever do."""
        if self.ranges.can_hold(*args):
            super().block(body, *args)

    @visits(Load)
    def load(self, s: Load, known: Facts) -> None:
        self.access(s.buffer, "load", s.index, s.var.lanes, s.mask, known)
        self.loaded(s.var, s.buffer)

    @visits(Store)
    def store(self, s: Store, known: Facts) -> None:
        self.access(s.buffer, "store", s.index, s.value.lanes, s.mask, known)

    @visits(Declare, Assign)
    def set(self, s: Declare | Assign, known: Facts) -> None:
        for value in s.operands():
            self.keep(s.register, value, known)

    @visits(Let)
    def let(self, s: Let, known: Facts) -> None:
        self.ranges.name(s.var, s.value, known)
        self.sources[s.var] = self.kind([s.value])

    @visits(If)
    def if_(self, s: If, known: Facts) -> None:
        self.block(s.then, (*known, *facts(self.ranges, s.condition, known)))
        self.block(s.otherwise, (*known, *facts(self.ranges, s.condition, known, False)))

    @visits(While)
    def while_(self, s: While, known: Facts) -> None:
        self.block(s.head, known)
        self.block(s.body, (*known, *facts(self.ranges, s.condition, known)))

    @visits(Stmt)
    def other(self, s: Stmt, known: Facts) -> None:
        for block in s.blocks():
            self.block(block, known)

    def loaded(self, var: Expr, buffer: Buffer) -> None:
        if var.dtype.is_integer:
            if buffer.scope == "const" and buffer.data is not None and buffer.elements:
                self.ranges.define(var, Range(int(buffer.data.min()), int(buffer.data.max())))
            else:
                self.ranges.define(var, Range(*limits(var.dtype)))
            self.sources[var] = MEMORY if buffer.scope in ("scratch", "out", "inout") else ARITHMETIC

    @visits(For)
    def for_(self, s: For, known: Facts) -> None:
        """Record the variable's range and, where the bounds depend on other loops, the relation between them."""
        self.sources[s.var] = self.kind([s.low, s.high])
        ranges = self.ranges
        low, high = ranges.range(s.low, known), ranges.range(s.high, known)
        if high.high <= low.low:
            return  # it never runs
        step = s.step if low.low == low.high else gcd(low.step, s.step)
        last = high.high - 1
        ranges.define(s.var, Range(low.low, last - (last - low.low) % step, step))
        here, far = ranges.sum(s.var), 1 << 65
        inside = known
        if low.low != low.high:
            apart = here.plus(ranges.sum(s.low), -1)
            inside = (*inside, KnownBounds.of(apart, 0, far))
        if high.low != high.high:
            apart = ranges.sum(s.high).plus(here, -1)
            inside = (*inside, KnownBounds.of(apart, 1, far))
        self.block(s.body, inside)

    # ---- accesses

    def access(self, buffer: Buffer, access: str, index: Expr, lanes: int, mask: Expr | None, known: Facts) -> None:
        first, last = 0, lanes - 1
        if mask is not None:
            mask = self.ranges.definition(mask)
            through = _through(mask)
            if through is not None:
                if not through:
                    return
                first, last = through[0], through[-1]
            else:
                if mask.op == "splat" or mask.lanes == 1:
                    known = (*known, *facts(self.ranges, mask, known))
                else:
                    self.lane_by_lane(buffer, access, index, mask, known)
                    return
        if not self.ranges.can_hold(known):
            return
        found = self.ranges.range(index, known)
        self.judge(buffer, access, (index,), Range(found.low + first, found.high + last))

    def lane_by_lane(self, buffer: Buffer, access: str, index: Expr, mask: Expr, known: Facts) -> None:
        """Check a computed mask: index + lane, where the mask holds for the lane."""
        said = facts(self.ranges, mask, known)
        lane = next((a for fact in said for a, _ in fact.sum.terms if a.op == "lane"), None)
        s = self.ranges.sum(index)
        if lane is not None:
            s = s.plus(LinearSum(((lane, 1),), 0))
            found = self.ranges.of(s, (*known, *said))
        else:
            found = self.ranges.of(s, (*known, *said)).plus(Range(0, mask.lanes - 1))
        self.judge(buffer, access, (index, mask), found)

    @visits(GatherLoad)
    def gather(self, s: GatherLoad, known: Facts) -> None:
        self.gathered(s, known)
        self.loaded(s.var, s.buffer)

    def gathered(self, s: GatherLoad, known: Facts) -> None:
        mask = self.ranges.definition(s.mask) if s.mask is not None else None
        through = _through(mask) if mask is not None else None
        if mask is not None and through is None:
            known = (*known, *facts(self.ranges, mask, known))
        if through is not None and s.indices.op == "const":
            if through:
                places = [s.indices.value[lane] for lane in through]
                self.judge(s.buffer, "gather", (s.indices,), Range(min(places), max(places)))
            return
        total = self.ranges.sum(s.indices)
        lane = next((a for a, _ in total.terms if a.op == "lane"), None)
        if through is not None and lane is not None:
            if not through:
                return
            known = (*known, KnownBounds.of(LinearSum(((lane, 1),), 0), through[0], through[-1]))
        self.judge(s.buffer, "gather", (s.indices,), self.ranges.range(s.indices, known))

    def judge(self, buffer: Buffer, access: str, roots: Sequence[Expr], found: Range) -> None:
        if found.low > found.high or (found.low >= 0 and found.high < buffer.elements):
            return
        self.found.append(Unproved(buffer, access, self.kind(roots), found.low, found.high))

    def kind(self, roots: Sequence[Expr]) -> str:
        """What an index depends on whose range is unknown."""
        kinds: set[str] = set()
        stack, seen = list(roots), set(roots)
        while stack:
            x = stack.pop()
            if x.op == "reg":
                kinds.add(REGISTER)
            kinds.add(self.sources.get(x, ARITHMETIC))
            more = [*x.args, self.ranges.definition(x)]
            stack += [a for a in more if a not in seen]
            seen.update(more)
        return REGISTER if REGISTER in kinds else MEMORY if MEMORY in kinds else ARITHMETIC


def _through(mask: Expr) -> list[int] | None:
    """The lanes that a constant mask enables; None for a computed mask."""
    if mask.op != "const":
        return None
    values = mask.value if mask.lanes > 1 else (mask.value,)
    return [lane for lane, open in enumerate(values) if open]
