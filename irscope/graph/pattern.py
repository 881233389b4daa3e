"""Patterns over operators, written as terms, and the terms that replace them.

    add(x, 0)                              x is any operand; a number is a constant, or a broadcast of one, that holds it everywhere
    multiply(negate(x), negate(y))         operators nest; one name twice stands for one and the same instruction
    maximum(min:minimum(x, y), x)          ``min:`` names what an operator matched
    add(multiply'(x, z), multiply'(y, z))  ``'``: the instruction has no other user
    compare[direction=GT](x, y)            an attribute has this value

Operands of commutative operators match in either order. A pattern matches anything with an operator and operands: a node, an instruction of
a rewriter, a node that is in no graph yet. One that looks ``through`` operators (casts, movement) skips them in front of each operand: a
name then stands for the operand itself, and counts as the same instruction wherever only those operators are in between.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from irscope.graph.node import Op
from irscope.graph.walk import Operators, behind

COMMUTATIVE = frozenset("add multiply maximum minimum and or xor".split())
NUMBERS = frozenset("constant broadcast reshape".split())
"""Operators that may hold one number everywhere."""
_TOKEN = re.compile(r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[a-z][a-z0-9_-]*)|(?P<sign>[()\[\],:='|]|[A-Z]+))")


class Matchable(Protocol):
    """What a pattern looks at."""

    @property
    def op(self) -> Op: ...
    @property
    def operands(self) -> Sequence[Any]: ...
    @property
    def attrs(self) -> Mapping[str, Any]: ...


Bindings = dict[str, Any]
"""What each name of a pattern matched."""
IsAll = Callable[[Any, float], bool]
"""Whether every element of an instruction is known to be a number."""


@dataclass(frozen=True, slots=True)
class PatternTerm:
    """One term of a pattern: an operator over operands, a name (``ops`` empty), or a number."""

    ops: tuple[str, ...] = ()
    operands: tuple[PatternTerm, ...] = ()
    name: str = ""
    number: float | None = None
    attrs: tuple[tuple[str, str], ...] = ()
    one_user: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern, and the operators that it looks through. ``ops`` are those of its root, by which patterns are indexed."""

    text: str
    through: Operators = ()
    root: PatternTerm = field(init=False)
    _heads: tuple[tuple[frozenset[str] | None, ...], ...] = field(init=False, repr=False)
    """For each order of the operands, the operators that they must have (None: any)."""

    def __post_init__(self) -> None:
        root = parse_term(self.text)
        numbers = None if self.through else NUMBERS
        heads = tuple(frozenset(o.ops) if o.ops else numbers if o.number is not None else None for o in root.operands)
        is_commutative = len(heads) == 2 and not COMMUTATIVE.isdisjoint(root.ops)
        object.__setattr__(self, "root", root)
        orders = (heads, heads[::-1]) if is_commutative and heads != heads[::-1] else (heads,)
        object.__setattr__(self, "_heads", orders)

    @property
    def ops(self) -> tuple[str, ...]:
        return self.root.ops

    def may_match(self, operands: Sequence[Op]) -> bool:
        """Whether an instruction with operands of these operators, looked through, may match. Most are refused by this alone."""
        for heads in self._heads:
            for head, op in zip(heads, operands):
                if head is not None and op.name not in head:
                    break
            else:
                return True
        return False

    def match(
        self, instruction: Matchable, is_all: IsAll, where: Callable[[Bindings], bool] | None = None, bound: Bindings | None = None
    ) -> Bindings | None:
        """The bindings of the first match for which the condition holds, ``root`` among them; None where nothing matches.

        ``bound`` holds names whose instructions are known in advance.
        """
        root, through = self.root, self.through
        look = _Look(is_all, through)
        ops = [(behind(o, through) if through else o).op for o in instruction.operands]
        if not self.may_match(ops) or not _has_head(root, instruction):
            return None
        for operands in _orders(instruction):
            if not through and not all(_may_match(term, operand, is_all) for term, operand in zip(root.operands, operands)):
                continue
            known: Bindings = {"root": instruction, **(bound or {})}
            if root.name:
                known[root.name] = instruction
            for found in _all_match(root.operands, operands, known, look):
                if where is None or where(found):
                    return dict(found)
        return None


def parse_term(text: str) -> PatternTerm:
    """Parse a term of a pattern. Raises ValueError, with the place, for a syntax error."""
    tokens = _tokens(text)
    term = _term(tokens, text)
    if tokens:
        raise ValueError(f"{text!r}: unexpected {tokens[0]!r}")
    return term


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"{text!r}: unexpected {text[at:]!r}")
        found.append(token[0].strip())
        at = token.end()
    return found


def _term(tokens: list[str], text: str) -> PatternTerm:
    def take(expected: str = "") -> str:
        if not tokens or (expected and tokens[0] != expected):
            raise ValueError(f"{text!r}: expected {expected or 'a term'}")
        return tokens.pop(0)

    word = take()
    name = ""
    if tokens[:1] == [":"]:
        name, _, word = word, take(), take()
    if re.fullmatch(r"-?\d.*", word):
        return PatternTerm(name=name, number=float(word))
    if not tokens or tokens[0] not in "('[|":
        return PatternTerm(name=word)
    ops = [word]
    while tokens[0] == "|":
        take()
        ops.append(take())
    attrs: tuple[tuple[str, str], ...] = ()
    if tokens[0] == "[":
        take()
        key, _, value = take(), take("="), take()
        attrs = ((key, value),)
        take("]")
    one_user = tokens[0] == "'"
    if one_user:
        take()
    take("(")
    operands = [_term(tokens, text)]
    while tokens[:1] == [","]:
        take()
        operands.append(_term(tokens, text))
    take(")")
    return PatternTerm(tuple(ops), tuple(operands), name, None, attrs, one_user)


def _has_head(term: PatternTerm, at: Matchable) -> bool:
    """Whether an instruction has an operator, the number of operands and the attributes of a term."""
    return at.op.name in term.ops and at.op.is_primitive and len(at.operands) == len(term.operands) \
        and (not term.attrs or all(str(at.attrs.get(key)) == value for key, value in term.attrs))


def _orders(at: Matchable) -> tuple[Sequence[Any], ...]:
    """The orders in which the operands of an instruction may match."""
    operands = at.operands
    return (operands, operands[::-1]) if len(operands) == 2 and at.op.name in COMMUTATIVE else (operands,)


@dataclass(frozen=True, slots=True)
class _Look:
    """How a pattern reads instructions: which hold a number everywhere, which operators are skipped."""

    is_all: IsAll
    through: Operators

    def same(self, one: Any, two: Any) -> bool:
        """Whether two instructions count as the same."""
        return one is two or bool(self.through and behind(one, self.through) is behind(two, self.through))


def _may_match(term: PatternTerm, at: Any, is_all: IsAll) -> bool:
    """Whether a term may match an instruction, by the instruction alone."""
    if term.number is not None:
        return is_all(at, term.number)
    return not term.ops or (at.op.name in term.ops and not (term.one_user and len(at.users) != 1))


# A pattern is as deep as it was written; the depth of the graph does not count here.
def _matches(term: PatternTerm, at: Any, bound: Bindings, look: _Look) -> Iterator[Bindings]:
    """Every way in which a term matches an instruction, given the names bound so far. ``bound`` is valid until the next match."""
    name = term.name
    if name and name in bound:
        if look.same(bound[name], at):
            yield bound
        return
    if term.number is not None:
        if not look.is_all(at, term.number):
            return
    elif term.ops:
        if look.through:
            at = behind(at, look.through)
        if not _has_head(term, at) or (term.one_user and len(at.users) != 1):
            return
    if name:
        bound[name] = at
    if not term.operands:
        yield bound
    else:
        for operands in _orders(at):
            yield from _all_match(term.operands, operands, bound, look)
    if name:
        del bound[name]


def _all_match(terms: Sequence[PatternTerm], operands: Sequence[object], bound: Bindings, look: _Look) -> Iterator[Bindings]:
    if len(terms) == 1:
        yield from _matches(terms[0], operands[0], bound, look)
        return
    for found in _matches(terms[0], operands[0], bound, look):
        yield from _all_match(terms[1:], operands[1:], found, look)


class Maker(Protocol):
    """Builds a replacement: instructions of the shape and element type of the root."""

    def build(self, op: str, operands: Sequence[Any]) -> Any: ...
    def full(self, value: float) -> Any: ...


def build(term: PatternTerm, bound: Bindings, make: Maker) -> Any:
    """Build the replacement: a name becomes what it matched, an operator a new instruction, a number an array filled with it."""
    if term.number is not None:
        return make.full(term.number)
    if not term.ops:
        return bound[term.name]
    return make.build(term.ops[0], [build(operand, bound, make) for operand in term.operands])
