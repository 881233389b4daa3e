"""Patterns over operators, written as terms, and what replaces them.

    add(x, 0)                              x is any operand; a number is a constant, or a broadcast of one, that holds it everywhere
    multiply(negate(x), negate(y))         operators nest; one name twice stands for one and the same instruction
    maximum(min:minimum(x, y), x)          ``min:`` names what an operator matched
    add(multiply'(x, z), multiply'(y, z))  ``'``: the instruction has no other user
    compare[direction=GT](x, y)            an attribute has this value

Operands of commutative operators match in either order. A pattern matches whatever has an operator and operands: a node, an instruction of
a rewriter, a node that is in no graph yet.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from irscope.graph.op import Op

COMMUTATIVE = frozenset("add multiply maximum minimum and or xor".split())
NUMBERS = frozenset("constant broadcast reshape".split())
"""Operators that may hold one number everywhere."""
_TOKEN = re.compile(r"\s*(?:(?P<number>-?\d+(?:\.\d+)?)|(?P<word>[a-z][a-z0-9_-]*)|(?P<sign>[()\[\],:='|]|[A-Z]+))")


class Instruction(Protocol):
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
class Term:
    """One term of a pattern: an operator over operands, a name (``ops`` empty), or a number."""

    ops: tuple[str, ...] = ()
    operands: tuple[Term, ...] = ()
    name: str = ""
    number: float | None = None
    attrs: tuple[tuple[str, str], ...] = ()
    one_user: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern. ``ops`` are the operators of its root, by which patterns are indexed."""

    text: str
    root: Term = field(init=False)
    _heads: tuple[frozenset[str], ...] = field(init=False, repr=False)
    """The operators that operands must have, for those that must have one. Most instructions are refused by this alone."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", parse_term(self.text))
        heads = (frozenset(o.ops) if o.ops else NUMBERS if o.number is not None else None for o in self.root.operands)
        object.__setattr__(self, "_heads", tuple(head for head in heads if head is not None))

    @property
    def ops(self) -> tuple[str, ...]:
        return self.root.ops

    def match(self, instruction: Instruction, is_all: IsAll, where: Callable[[Bindings], bool] | None = None) -> Bindings | None:
        """What the names stand for in the first match for which the condition holds, ``root`` among them; None where there is none."""
        for head in self._heads:
            for operand in instruction.operands:
                if operand.op.name in head:
                    break
            else:
                return None
        found = _matches(self.root, instruction, {"root": instruction}, is_all, is_root=True)
        return next(found if where is None else filter(where, found), None)


def parse_term(text: str) -> Term:
    """A term of a pattern. Raises ValueError, with the place, for what is none."""
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


def _term(tokens: list[str], text: str) -> Term:
    def take(expected: str = "") -> str:
        if not tokens or (expected and tokens[0] != expected):
            raise ValueError(f"{text!r}: expected {expected or 'a term'}")
        return tokens.pop(0)

    word = take()
    name = ""
    if tokens[:1] == [":"]:
        name, _, word = word, take(), take()
    if re.fullmatch(r"-?\d.*", word):
        return Term(name=name, number=float(word))
    if not tokens or tokens[0] not in "('[|":
        return Term(name=word)
    ops = [word]
    while tokens[0] == "|":
        take()
        ops.append(take())
    attrs: list[tuple[str, str]] = []
    if tokens[0] == "[":
        take()
        key = take()
        take("=")
        attrs.append((key, take()))
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
    return Term(tuple(ops), tuple(operands), name, None, tuple(attrs), one_user)


# A pattern is as deep as it was written; the depth of the graph does not count here.
def _matches(term: Term, at: Any, bound: Bindings, is_all: IsAll, is_root: bool = False) -> Iterator[Bindings]:
    """Every way in which a term matches an instruction, given what names stand for already."""
    if term.number is not None:
        if is_all(at, term.number):
            yield {**bound, term.name: at} if term.name else bound
        return
    if term.name and term.name in bound:
        if bound[term.name] is at:
            yield bound
        return
    if term.ops:
        if at.op.name not in term.ops or not at.op.is_primitive or len(at.operands) != len(term.operands):
            return
        if term.one_user and not is_root and len(at.users) != 1:
            return
        if any(str(at.attrs.get(key)) != value for key, value in term.attrs):
            return
    if term.name:
        bound = {**bound, term.name: at}
    if not term.operands:
        yield bound
    elif len(term.operands) == 1:
        yield from _matches(term.operands[0], at.operands[0], bound, is_all)
    else:
        yield from _all_match(term.operands, at.operands, bound, is_all)
        if len(term.operands) == 2 and at.op.name in COMMUTATIVE:
            yield from _all_match(term.operands, at.operands[::-1], bound, is_all)


def _all_match(terms: Sequence[Term], operands: Sequence[Any], bound: Bindings, is_all: IsAll) -> Iterator[Bindings]:
    if not terms:
        yield bound
        return
    for found in _matches(terms[0], operands[0], bound, is_all):
        yield from _all_match(terms[1:], operands[1:], found, is_all)


class Maker(Protocol):
    """What builds a replacement: instructions of the shape and element type of the root."""

    def build(self, op: str, operands: Sequence[Any]) -> Any: ...
    def full(self, value: float) -> Any: ...


def build(term: Term, bound: Bindings, make: Maker) -> Any:
    """The replacement: names are what they matched, operators are built over them, numbers fill an array."""
    if term.number is not None:
        return make.full(term.number)
    if not term.ops:
        return bound[term.name]
    return make.build(term.ops[0], [build(operand, bound, make) for operand in term.operands])
