"""Range analysis of a kernel's integers: sums of multiples of atoms, the range of each atom, and the conditions on such sums.

An integer expression is decomposed into ``sum(factor * atom) + constant``; atoms are loop variables, loaded values, lanes, minima,
quotients and the like. Every atom has a :class:`Range`: bounds, and the step between its values (``for i in 0..40 step 16`` is
0, 16, 32). A condition (a guard, a mask, the bounds of a loop that depend on other loops) is a :class:`KnownBounds`: a sum and its bounds.
The range of a sum is the tightest of adding up its atoms' ranges and of substituting what is known of a part of it. Arithmetic is exact; a
value that may overflow its type wraps around, and may then be any value of the type.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd
from typing import NamedTuple

from irscope.graph.dtypes import S64
from irscope.lower.expressions import limits
from irscope.lower.tile import Expr, Register
from irscope.lower.traversal import subexpressions

FULL = limits(S64)
MOST_SELECTIONS = 3
"""Selections one inside the other whose conditions are considered: each doubles the cases."""
NEGATED = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}


class Range(NamedTuple):
    """``low``, ``low + step``, ... up to ``high``, both included."""

    low: int
    high: int
    step: int = 1

    def meet(self, other: Range) -> Range:
        """The intersection; the step is that of the range whose bounds are kept."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        base = self if self.step >= other.step else other
        low += (base.low - low) % base.step
        high -= (high - base.low) % base.step
        return Range(low, high, base.step)

    def join(self, other: Range) -> Range:
        """The smallest range that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high), gcd(self.step, other.step, self.low - other.low) or 1)

    def times(self, factor: int) -> Range:
        """Every value multiplied."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Range(low, high, max(1, abs(self.step * factor)))

    def plus(self, other: Range) -> Range:
        """Every sum of one value of each."""
        steps = [r.step for r in (self, other) if r.low != r.high]
        return Range(self.low + other.low, self.high + other.high, gcd(*steps) if steps else 1)


class LinearSum(NamedTuple):
    """``sum(factor * atom) + constant``; the atoms in a fixed order."""

    terms: tuple[tuple[Expr, int], ...]
    constant: int

    def plus(self, other: LinearSum, factor: int = 1) -> LinearSum:
        """``self + factor * other``."""
        found = dict(self.terms)
        for atom, f in other.terms:
            found[atom] = found.get(atom, 0) + factor * f
        return _sum(found, self.constant + factor * other.constant)


class KnownBounds(NamedTuple):
    """Known bounds of a sum without a constant."""

    sum: LinearSum
    low: int
    high: int

    @staticmethod
    def of(s: LinearSum, low: int, high: int) -> KnownBounds:
        """``low <= s <= high``, with the smallest factors and the first one positive, so that equal sums compare equal."""
        by = gcd(*(f for _, f in s.terms)) or 1
        if s.terms and s.terms[0][1] < 0:
            s, low, high = LinearSum((), 0).plus(s, -1), -high, -low
        return KnownBounds(LinearSum(tuple((a, f // by) for a, f in s.terms), 0), -((s.constant - low) // by), (high - s.constant) // by)


def _sum(terms: dict[Expr, int], constant: int) -> LinearSum:
    return LinearSum(tuple(sorted(((a, f) for a, f in terms.items() if f), key=lambda term: term[0].number)), constant)


class Ranges:
    """The integers of one kernel. Call ``define`` and ``name`` for variables in the order of the statements."""

    def __init__(self, registers: dict[Register, Range]) -> None:
        self.registers = registers
        self._ranges: dict[Expr, Range] = {}
        self._sums: dict[Expr, LinearSum] = {}
        self._values: dict[Expr, Expr] = {}
        self._atoms: dict[tuple[Expr, tuple[KnownBounds, ...]], Range] = {}
        self.selections = 0

    # ---- what variables are

    def define(self, var: Expr, found: Range) -> None:
        """Set a variable's range."""
        if var in self._sums:
            self._atoms.clear()  # ranges may be known that were found without it
        self._ranges[var] = found

    def name(self, var: Expr, value: Expr, known: Sequence[KnownBounds]) -> None:
        """Record that a variable is a value computed where ``known`` holds."""
        if var.dtype.is_integer:
            self.define(var, self.range(value, known))
        if not _has_register(value):
            self._values[var] = value

    # ---- sums and their ranges

    def sum(self, x: Expr) -> LinearSum:
        """An integer as a sum. Where a narrow type could wrap around it is an atom."""
        found = self._sums.get(x)
        if found is None:
            found = self._sums[x] = self._sum(x)
        return found

    def _sum(self, x: Expr) -> LinearSum:
        value = self._values.get(x, x)
        if value is not x:
            return self.sum(value)
        made = None
        if x.op == "const" and x.lanes == 1:
            return LinearSum((), int(x.value))
        if x.op in ("add", "sub"):
            made = self.sum(x.args[0]).plus(self.sum(x.args[1]), 1 if x.op == "add" else -1)
        elif x.op == "neg":
            made = LinearSum((), 0).plus(self.sum(x.args[0]), -1)
        elif x.op == "mul":
            left, right = (self.sum(a) for a in x.args)
            if not left.terms or not right.terms:
                factor, other = (left.constant, right) if not left.terms else (right.constant, left)
                made = LinearSum((), 0).plus(other, factor)
        elif x.op == "splat" or (x.op == "convert" and x.args[0].dtype.is_integer and self._fits(self.sum(x.args[0]), x)):
            made = self.sum(x.args[0])
        if made is not None and (x.dtype is S64 or self._fits(made, x)):
            return made
        return LinearSum(((x, 1),), 0)

    def _fits(self, s: LinearSum, x: Expr) -> bool:
        low, high = limits(x.dtype)
        found = self._added(s, ())
        return low <= found.low and found.high <= high

    def range(self, x: Expr, known: Sequence[KnownBounds] = ()) -> Range:
        """The range of an integer expression where ``known`` holds."""
        found, (low, high) = self.of(self.sum(x), known), limits(x.dtype)
        return found if low <= found.low and found.high <= high else Range(low, high)

    def of(self, s: LinearSum, known: Sequence[KnownBounds], begin: int = 0, divided: int = -1) -> Range:
        """The exact range of a sum (it may leave s64). The facts before ``begin`` are substituted already, and quotients up to
        the expression numbered ``divided`` are decomposed."""
        best = self._added(s, known)
        for place in range(begin, len(known)):
            fact = known[place]
            factor = _ratio(s, fact.sum)
            if factor and not any(other.sum == fact.sum for other in known[:place]):
                rest = self.of(s.plus(fact.sum, -factor), known, place + 1, divided)
                best = best.meet(self._all_known(fact.sum, known).times(factor).plus(rest))
        for atom, factor in s.terms:
            if atom.op == "floordiv" and atom.number > divided:
                # by * (x // by) is x without its remainder: by times the sum is a sum without the quotient.
                by = self.sum(atom.args[1]).constant
                whole = LinearSum((), 0).plus(s, by).plus(LinearSum(((atom, 1),), 0), -factor * by).plus(self.sum(atom.args[0]), factor)
                found = self.of(whole, known, 0, atom.number).plus(_remainder(atom, by, known).times(-factor))
                best = best.meet(Range(-(-found.low // by), found.high // by))
        return best

    def can_hold(self, known: Sequence[KnownBounds]) -> bool:
        """Whether every known sum has a possible value; otherwise a statement never runs."""
        return all(part.low <= part.high for part in (self._all_known(fact.sum, known) for fact in known))

    def _all_known(self, s: LinearSum, known: Sequence[KnownBounds]) -> Range:
        """The range of a sum from its atoms and from all facts about this sum itself."""
        found = self._added(s, ())
        for fact in known:
            if fact.sum == s:
                found = found.meet(Range(fact.low, fact.high))
        return found

    def _added(self, s: LinearSum, known: Sequence[KnownBounds]) -> Range:
        total = Range(s.constant, s.constant)
        for atom, factor in s.terms:
            total = total.plus(self._atom(atom, known).times(factor))
        return total

    def _atom(self, x: Expr, known: Sequence[KnownBounds]) -> Range:
        """The range of an expression that is no sum. A value that may overflow its type wraps around."""
        if x in self._ranges:
            return self._ranges[x]
        key = (x, tuple(known))
        if key not in self._atoms:
            low, high = limits(x.dtype)
            rule = _ATOMS.get(x.op)
            found = rule(self, x, known) if rule is not None else None
            self._atoms[key] = found if found is not None and low <= found.low and found.high <= high else Range(low, high)
        return self._atoms[key]

    def args(self, x: Expr, known: Sequence[KnownBounds]) -> list[Range]:
        """The ranges of an expression's operands."""
        return [self.range(arg, known) for arg in x.args]

    def definition(self, x: Expr) -> Expr:
        """The value that a variable names, where that is known."""
        return self._values.get(x, x)


def _extreme(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range:
    (a, b), pick = ranges.args(x, known), min if x.op == "min" else max
    return Range(pick(a.low, b.low), pick(a.high, b.high), gcd(a.step, b.step, a.low - b.low) or 1)


def _selected(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range:
    if ranges.selections == MOST_SELECTIONS:
        return ranges.range(x.args[1], known).join(ranges.range(x.args[2], known))
    ranges.selections += 1
    yes, no = facts(ranges, x.args[0], known), facts(ranges, x.args[0], known, False)
    found = ranges.range(x.args[1], [*known, *yes]).join(ranges.range(x.args[2], [*known, *no]))
    ranges.selections -= 1
    return found


def _floor(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range:
    a, by = ranges.range(x.args[0], known), ranges.sum(x.args[1]).constant
    if x.op == "floordiv":
        return Range(a.low // by, a.high // by)
    return Range(a.low % by, a.high % by) if a.low // by == a.high // by else Range(0, by - 1)


def _truncated(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range | None:
    a, b = ranges.args(x, known)
    if a.low < 0 or b.low <= 0:
        return None
    return Range(a.low // b.high, a.high // b.low) if x.op == "div" else Range(0, min(a.high, b.high - 1))


def _product(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range:
    a, b = ranges.args(x, known)
    ends = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    return Range(min(ends), max(ends))


def _masked(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range | None:
    positive = [r.high for r in ranges.args(x, known) if r.low >= 0]
    return Range(0, min(positive)) if positive else None


def _shifted(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range | None:
    a, b = ranges.args(x, known)
    if a.low < 0 or not 0 <= b.low <= b.high < x.dtype.bits:
        return None
    return Range(a.low << b.low, a.high << b.high) if x.op == "shl" else Range(a.low >> b.high, a.high >> b.low)


def _converted(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range | None:
    source = x.args[0].dtype
    return ranges.range(x.args[0], known) if source.is_integer else Range(0, 1) if source.kind == "pred" else None


def _magnitude(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range:
    a, = ranges.args(x, known)
    return Range(0, max(abs(a.low), abs(a.high)))


def _added(ranges: Ranges, x: Expr, known: Sequence[KnownBounds]) -> Range:
    a, b = ranges.args(x, known)
    return a.plus(b.times(1 if x.op == "add" else -1))


_ATOMS: dict[str, Callable[[Ranges, Expr, Sequence[KnownBounds]], Range | None]] = {
    "reg": lambda ranges, x, known: ranges.registers.get(x.value), "const": lambda ranges, x, known: Range(min(x.value), max(x.value)),
    "lane": lambda ranges, x, known: Range(0, x.lanes - 1), "min": _extreme, "max": _extreme, "select": _selected, "floordiv": _floor,
    "floormod": _floor, "div": _truncated, "rem": _truncated, "mul": _product, "and": _masked, "shl": _shifted, "shr_logical": _shifted,
    "shr_arithmetic": _shifted, "popcnt": lambda ranges, x, known: Range(0, x.dtype.bits), "convert": _converted, "abs": _magnitude,
    "clz": lambda ranges, x, known: Range(0, x.dtype.bits), "add": _added, "sub": _added,
    "neg": lambda ranges, x, known: ranges.args(x, known)[0].times(-1),
}
"""The range of an operation's result from those of its operands; None where nothing is known."""


def facts(ranges: Ranges, condition: Expr, known: Sequence[KnownBounds], holds: bool = True) -> list[KnownBounds]:
    """The facts implied by a condition (of one lane, or of each lane of a mask) that holds or does not."""
    found: list[KnownBounds] = []
    stack = [(condition, holds)]
    while stack:
        x, positive = stack.pop()
        x = ranges.definition(x)
        if x.op == "not":
            stack.append((x.args[0], not positive))
        elif x.op == "splat":
            stack.append((x.args[0], positive))
        elif x.op == ("and" if positive else "or"):
            stack += [(a, positive) for a in x.args]
        elif x.op.startswith("cmp.") and x.args[0].dtype.is_integer and not _has_register(x):
            found += _compared(ranges, x.op[4:] if positive else NEGATED[x.op[4:]], x.args[0], x.args[1], known)
    return [*found, *_settled([*known, *found])]


def _settled(known: Sequence[KnownBounds]) -> list[KnownBounds]:
    """The facts with atoms of one known value substituted."""
    values = {fact.sum.terms[0][0]: fact.low for fact in known if len(fact.sum.terms) == 1 and fact.low == fact.high}
    found = []
    for fact in known:
        fixed = [(atom, factor) for atom, factor in fact.sum.terms if atom in values]
        if fixed and len(fixed) < len(fact.sum.terms):
            left = tuple(term for term in fact.sum.terms if term not in fixed)
            found.append(KnownBounds.of(LinearSum(left, sum(values[atom] * factor for atom, factor in fixed)), fact.low, fact.high))
    return found


def _compared(ranges: Ranges, direction: str, x: Expr, y: Expr, known: Sequence[KnownBounds]) -> Iterable[KnownBounds]:
    a, b = ranges.sum(x), ranges.sum(y)
    for s, expr in ((a, x), (b, y)):
        low, high = limits(expr.dtype)
        within = ranges.of(s, known)
        if within.low < low or within.high > high:
            return []  # it may wrap around: then the comparison implies nothing about the sum
    apart = b.plus(a, -1)
    far = 1 << 65
    bounds = {"LT": (1, far), "LE": (0, far), "GT": (-far, -1), "GE": (-far, 0), "EQ": (0, 0)}.get(direction)
    return [KnownBounds.of(apart, *bounds)] if bounds and apart.terms else []


def _ratio(s: LinearSum, part: LinearSum) -> int:
    """How often to subtract a part from a sum to eliminate its atoms; 0 where that is impossible."""
    mine = dict(s.terms)
    factor = 0
    for atom, f in part.terms:
        here = mine.get(atom, 0)
        if not here or here % f or (factor and here // f != factor):
            return 0
        factor = here // f
    return factor


def _remainder(quotient: Expr, by: int, known: Sequence[KnownBounds]) -> Range:
    """The range of a remainder: less than the divisor, or as a condition bounds it."""
    for fact in known:
        if len(fact.sum.terms) == 1:
            (atom, factor), = fact.sum.terms
            if atom.op == "floormod" and atom.args == quotient.args and fact.low == fact.high and factor == 1:
                return Range(fact.low, fact.high)
    return Range(0, by - 1)


def _has_register(x: Expr) -> bool:
    """Whether a value may change between its statement and a later one."""
    return any(part.op == "reg" for part in subexpressions([x]))
