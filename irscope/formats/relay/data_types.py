"""Data types and their constructors: ``type List[A] { Cons(A, List[A]), Nil }``."""

from __future__ import annotations

from irscope.formats.relay.context import ReadingContext
from irscope.formats.relay.expressions import ExpressionReader
from irscope.formats.relay.types import type_text
from irscope.formats.syntax import SyntaxFault


def constructors_of(parser: ExpressionReader) -> dict[str, int]:
    """The constructors of all data types in the text, with the place of its declaration."""
    found: dict[str, int] = {}
    at = 0
    while at + 1 < len(parser.kinds):
        if parser.kinds[at] == "ident" and parser.texts[at] == "type" and parser.kinds[at + 1] == "ident":
            at = _collect(parser, at + 2, found)
        else:
            at += 1
    return found


def _collect(parser: ExpressionReader, at: int, found: dict[str, int]) -> int:
    """Add the constructors of one data type; returns where the search for the next type continues, so that no token is read twice."""
    while parser.texts[at] not in ("{", "") and parser.kinds[at] != "end":
        if parser.texts[at] in ("def", "}", "type"):
            return at
        at += 1
    depth = 0
    while parser.kinds[at] != "end":
        word = parser.texts[at]
        if word in "{([" and word:
            depth += 1
        elif word in "})]" and word:
            depth -= 1
            if depth == 0:
                return at
        elif depth == 1 and parser.kinds[at] == "ident":
            found.setdefault(word, parser.offsets[at])
        at += 1
    return at


def data_type(context: ReadingContext, parser: ExpressionReader) -> None:
    """Read one data type; stores its constructors and the types of their fields in the module. Raises SyntaxFault."""
    parser.at += 1
    name = name_of(parser)
    if parser.word == "<":
        raise parser.fault("type parameters are written in square brackets: `type List[A] { ... }`")
    generics = parser.generics()
    parser.typevars.append(set(generics))
    constructors: dict[str, list[str]] = {}
    if parser.take("="):
        raise parser.fault("a data type is written `type List[A] { Cons(A, List[A]), Nil }`")
    if parser.take("{"):
        for _ in parser.listed("}", True):
            at, own = parser.offset, name_of(parser)
            if own in constructors or context.constructors.get(own, at) != at:
                first = context.place(context.constructors[own])
                raise SyntaxFault(at, f"constructor `{own}` is already defined at {first}", length=len(own))
            constructors[own] = [type_text(t) for t in parser._types(")")] if parser.take("(") else []
    parser.typevars.pop()
    parser.take(";")
    context.module.attrs.setdefault("types", {})[name + (f"[{', '.join(generics)}]" if generics else "")] = constructors


def name_of(parser: ExpressionReader) -> str:
    """The name here. Raises SyntaxFault where there is none."""
    if parser.kind != "ident":
        raise parser.fault(f"a name is expected, but here is {parser.shown()}")
    parser.at += 1
    return parser.texts[parser.at - 1]
