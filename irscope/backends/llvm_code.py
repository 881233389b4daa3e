"""Emits the body of one LLVM function: places, names, sharing, hoisting.

An instruction without side effects is hoisted to the outermost loop in which all its operands exist, before the inner ones, and equal
instructions are emitted once (LICM and CSE). LLVM's passes would do the same; here it costs a dictionary look-up, and no passes run.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

_CHEAP = frozenset("add sub mul shl lshr ashr and or xor getelementptr insertelement shufflevector extractelement sext zext trunc icmp "
                   "bitcast".split())
"""Instructions that may be speculated out of a condition."""

Typed = tuple[str, str]  # a type and a name or constant
Lines = list[object]  # str, and nested Lines that are filled later


@dataclass(slots=True)
class InsertionPoint:
    """Where lines are appended, and the label of the basic block that is open there."""

    lines: Lines
    label: str


@dataclass(slots=True)
class CodeRegion:
    """A function body, a loop or an arm of a condition. ``before`` is where its invariants are hoisted to."""

    place: InsertionPoint
    before: InsertionPoint | None
    conditional: bool
    memo: dict[str, str] = field(default_factory=dict)


class Code:
    """One function being emitted."""

    def __init__(self) -> None:
        self.regions = [CodeRegion(InsertionPoint([], "entry"), None, False)]
        self.level: dict[str, int] = {}
        self.declarations: set[str] = set()
        self.helpers: dict[str, str] = {}
        self._count = 0

    # ---- instructions

    def name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    @property
    def depth(self) -> int:
        return len(self.regions) - 1

    def pure(self, text: str, *operands: str) -> str:
        """Emit an instruction without side effects; returns its result. ``operands`` are the names in ``text`` that decide its place."""
        level = 0
        for operand in operands:
            at = self.level.get(operand, 0)
            if at > level:
                level = at
        regions = self.regions
        for region in reversed(regions[level:]):
            known = region.memo.get(text)
            if known is not None:
                return known
        here = len(regions) - 1
        if level < here and text.split(" ", 1)[0] not in _CHEAP:
            while here > level and not regions[here].conditional:
                here -= 1
            level = here
        name = self.name()
        place = self.place(level)
        place.lines.append(f"  {name} = {text}")
        regions[level].memo[text] = name
        if level:
            self.level[name] = level
        return name

    def place(self, level: int) -> InsertionPoint:
        """The place where an instruction of a level is appended."""
        if level == len(self.regions) - 1:
            return self.regions[-1].place
        before = self.regions[level + 1].before
        assert before is not None
        return before

    def effect(self, text: str) -> None:
        """A line that is not moved."""
        self.regions[-1].place.lines.append("  " + text)

    def result(self, text: str) -> str:
        """An instruction that is neither moved nor shared: a load."""
        name = self.name()
        self.effect(f"{name} = {text}")
        if self.depth:
            self.level[name] = self.depth
        return name

    def call(self, result: str, function: str, *args: Typed) -> str:
        """Call a pure intrinsic or helper."""
        self.declare(result, function, args)
        return self.pure(f"call {result} {function}({typed(args)})", *(value for _, value in args))

    def declare(self, result: str, function: str, args: tuple[Typed, ...]) -> None:
        if function not in self.helpers:
            self.declarations.add(f"declare {result} {function}({', '.join(kind for kind, _ in args)})")

    def rarely(self, condition: str, result: str, function: str, args: tuple[Typed, ...], usual: str) -> str:
        """The result of a function where the one-lane ``condition`` holds, else ``usual``: control flow inside an expression."""
        level = max(self.level.get(name, 0) for name in (condition, usual, *(value for _, value in args)))
        here = self.depth
        while here > level and not self.regions[here].conditional:
            here -= 1
        level = here
        text = f"rarely {function} {condition} {usual}"
        for region in self.regions[level:]:
            if text in region.memo:
                return region.memo[text]
        place = self.place(level)
        odd, join, out, name = self.label(), self.label(), self.name(), self.name()
        place.lines += [f"  br i1 {condition}, label %{odd}, label %{join}, !prof !9", f"{odd}:",
                        f"  {out} = call {result} {function}({typed(args)})", f"  br label %{join}", f"{join}:",
                        f"  {name} = phi {result} [ {usual}, %{place.label} ], [ {out}, %{odd} ]"]
        place.label = join
        self.regions[level].memo[text] = name
        if level:
            self.level[name] = level
        return name

    # ---- control flow

    def enter(self, conditional: bool, label: str) -> None:
        """Open a region whose first block is ``label``; the caller emits the branch to that block, after the hoisted lines."""
        outer = self.regions[-1].place
        ahead = InsertionPoint([], outer.label)
        outer.lines.append(ahead.lines)
        self.regions.append(CodeRegion(InsertionPoint([], label), ahead, conditional))

    def leave(self) -> None:
        """Close the innermost region."""
        region = self.regions.pop()
        if region.before is not None:
            self.regions[-1].place.label = region.before.label  # a rare branch may have split the block before

    def text(self) -> list[str]:
        """All lines, including nested ones, in order."""
        out: list[str] = []
        stack: list[Any] = [self.regions[0].place.lines]
        while stack:
            top = stack.pop()
            if isinstance(top, str):
                out.append(top)
            else:
                stack.extend(reversed(top))
        return out


def typed(args: tuple[Typed, ...]) -> str:
    """The arguments of a call as text."""
    return ", ".join(f"{kind} {value}" for kind, value in args)
