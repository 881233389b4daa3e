"""Types as HLO writes them: ``f32[2,3]{1,0:T(8,128)}``, tuples, tokens; each distinct text is parsed once."""
from __future__ import annotations

import re
from collections.abc import Callable

from irscope.formats.hlo.faults import TYPE_SYNTAX, Refused
from irscope.formats.hlo.lexer import RESERVED_TYPES, Cursor
from irscope.graph import DTYPES, OPAQUE, TOKEN, DynamicDim, Layout, NamedType, TensorType, TupleType, Type
from irscope.graph.types import Dim, agree
from irscope.source import did_you_mean

# As compilers print it: no blanks, no dynamic dimensions, at most a plain layout.
PLAIN = re.compile(r"([a-z]\w*)\[([\d,]*)\](?:\{([\d,]*)\})?", re.ASCII)
PRINTED = re.compile(r"[a-z]\w*\[[\d,]*\](?:\{\d[^{}\n]*\})?", re.ASCII)
# In the order of the text of a layout.
LAYOUT_PARTS = ("D", "T", "L", "#", "*", "E", "S", "SC", "P", "M")
LEVEL = frozenset("DCSH")
MAX_DIMENSION = (1 << 63) - 1


class TypeTable:
    """The types of one text, each distinct spelling parsed once, equal types one object."""

    def __init__(self, tell: Callable[[str, int, int], None] | None = None) -> None:
        """``tell(message, offset, length)`` reports invalid layouts; without it they are refused."""
        self.by_text: dict[str, Type] = {}
        self._tell = tell
        self._own: dict[Type, Type] = {}

    def lookup(self, text: str) -> Type:
        """The type that a text spells. Raises Refused, with offsets into ``text``."""
        found = self.by_text.get(text)
        if found is None:
            found = self._plain(text)
            if found is None:
                cursor, tell = Cursor(text), self._tell
                self._tell = None  # it would report an offset in this text instead of the dump
                try:
                    found = self.read(cursor)
                finally:
                    self._tell = tell
                if cursor.kind != "end":
                    cursor.refuse("expected the type to end", TYPE_SYNTAX)
            self.by_text[text] = found
        return found

    def keep(self, type: Type) -> Type:
        """The canonical object of this type."""
        return self._own.setdefault(type, type)

    def read(self, cursor: Cursor) -> Type:
        """Step over a type."""
        if cursor.sees_word("b") and cursor.peek() == ("mark", "("):
            return self._buffer(cursor)
        if cursor.sees("("):
            return self._tuple(cursor)
        if cursor.kind != "type":
            refuse_element_type(cursor)
        m = PRINTED.match(cursor.text, cursor.at, cursor.end)
        if m is not None:
            found = self.by_text.get(m[0]) or self._plain(m[0])
            if found is not None:
                begin = cursor.at
                cursor.goto(m.end())
                if not opens_layout(cursor):
                    self.by_text[m[0]] = found
                    return found
                cursor.goto(begin)
        name = cursor.value
        cursor.next()
        if not cursor.sees("["):
            cursor.refuse(f"expected '[' after the element type {name}", TYPE_SYNTAX, f"{name} cannot name anything else")
        dims = self._dims(cursor)
        if name in ("token", "opaque"):
            if dims:
                raise Refused(TYPE_SYNTAX, f"{name} has no dimensions", cursor.at)
            layout = self._layout(cursor, 0) if opens_layout(cursor) else None
            return (TOKEN if name == "token" else OPAQUE) if not layout or not layout.rest else self.keep(NamedType(f"{name}[]{layout}"))
        layout = self._layout(cursor, len(dims)) if opens_layout(cursor) else None
        return self.keep(TensorType(DTYPES[name], dims, layout))

    def _plain(self, text: str) -> Type | None:
        m = PLAIN.fullmatch(text)
        if m is None or m[1] not in RESERVED_TYPES or m[1] in ("token", "opaque"):
            return None
        try:
            dims: tuple[Dim, ...] = tuple(map(int, m[2].split(","))) if m[2] else ()
            order = tuple(map(int, m[3].split(","))) if m[3] else ()
        except ValueError:
            return None
        if (m[3] is not None and not is_order(order, len(dims))) or any(d > MAX_DIMENSION for d in dims if isinstance(d, int)):
            return None
        return self.keep(TensorType(DTYPES[m[1]], dims, Layout(order) if m[3] else None))

    def _tuple(self, cursor: Cursor) -> Type:
        cursor.nest(4)
        cursor.next()
        elements: tuple[Type, ...] = ()
        tell, self._tell = self._tell, None  # XLA's parser accepts invalid layouts, but not within tuples
        try:
            if not cursor.sees(")"):
                elements = tuple([self.read(cursor) for _ in cursor.elements()])
        finally:
            self._tell = tell
        cursor.expect(")", "at the end of the tuple type", TYPE_SYNTAX)
        cursor.depth -= 4
        return self.keep(TupleType(elements))

    def _buffer(self, cursor: Cursor) -> Type:
        cursor.nest(4)
        cursor.next()
        cursor.next()
        at = cursor.at
        inner = self.read(cursor)
        if not isinstance(inner, TensorType):
            raise Refused(TYPE_SYNTAX, "a buffer contains an array", at, max(1, cursor.at - at))
        cursor.expect(")", "at the end of the buffer type", TYPE_SYNTAX)
        cursor.depth -= 4
        return self.keep(NamedType(f"b({inner})"))

    def _layout(self, cursor: Cursor, rank: int) -> Layout | None:
        """The layout in the braces here; None for one that is reported, because it is no order of the dimensions."""
        begin = cursor.at
        cursor.next()
        order: list[int] = []
        while cursor.kind == "int":
            order.append(cursor.integer())
            if not cursor.eat(","):
                break
        rest, space = "", 0
        if cursor.eat(":"):
            rest, space = _rest(cursor)
        end = cursor.at + 1
        cursor.expect("}", "at the end of the layout", TYPE_SYNTAX)
        if len(order) != rank:
            raise Refused(TYPE_SYNTAX, f"the layout orders {len(order)} dimensions, but the type has {rank}", begin, end - begin,
                          "a layout lists every dimension, the fastest first: {1,0} is row-major for two")
        if order and not is_order(tuple(order), rank):
            message = f"the layout must list each of the dimensions 0 to {rank - 1} once"
            if self._tell is None:
                raise Refused(TYPE_SYNTAX, message, begin, end - begin)
            self._tell(message, begin, end - begin)
            return None
        return Layout(tuple(order), rest, space)

    def _dims(self, cursor: Cursor) -> tuple[Dim, ...]:
        cursor.expect("[", "after the element type", TYPE_SYNTAX)
        dims: list[Dim] = []
        if cursor.eat("]"):
            return ()
        for _ in cursor.elements():
            if cursor.eat("?"):
                dims.append(DynamicDim())
            else:
                bounded = cursor.eat("<=")
                at, length = cursor.at, cursor.after - cursor.at
                size = cursor.integer("a dimension", TYPE_SYNTAX)
                if not 0 <= size <= MAX_DIMENSION:
                    raise Refused(TYPE_SYNTAX, f"a dimension cannot be {size}", at, length, "write ? for a dimension that is open")
                dims.append(DynamicDim(bound=size) if bounded else size)
        cursor.expect("]", "at the end of the dimensions", TYPE_SYNTAX)
        return tuple(dims)


def compatible(a: Type, b: Type) -> bool:
    """Whether two types are the same to XLA's parser: ignoring layouts, and treating a bound as a size."""
    return a is b or agree(a, b, _same_array)


def _same_array(x: TensorType, y: TensorType) -> bool:
    return x.dtype is y.dtype and x.rank == y.rank and all(map(_same_size, x.shape, y.shape))


def _same_size(a: Dim, b: Dim) -> bool:
    x, y = (d if isinstance(d, int) else d.bound for d in (a, b))
    return x is None or y is None or x == y


def is_possible(type: Type) -> bool:
    """Whether every size of an inferred type is valid in a text."""
    leaves = (leaf for leaf in type.leaves() if isinstance(leaf, TensorType))
    return all(
        0 <= size <= MAX_DIMENSION for leaf in leaves for d in leaf.shape if (size := d if isinstance(d, int) else d.bound) is not None
    )


def begins_type(cursor: Cursor) -> bool:
    """Whether a type begins here."""
    return cursor.kind == "type" or cursor.sees("(") or (cursor.sees_word("b") and cursor.peek() == ("mark", "("))


def refuse_element_type(cursor: Cursor) -> None:
    """Stop at a token that should have been a type."""
    looks = cursor.kind == "word" and cursor.text.startswith("[", cursor.after)
    if looks:
        help = (
            did_you_mean(cursor.value, RESERVED_TYPES)
            or "element types are pred, s8..s64, u8..u64, f16, bf16, f32, f64, f8..., c64, c128, token"
        )
        raise Refused(TYPE_SYNTAX, f"{cursor.value} is not an element type", cursor.at, len(cursor.value), help)
    cursor.refuse("expected a type", TYPE_SYNTAX)


def opens_layout(cursor: Cursor) -> bool:
    """Whether the brace here opens a layout. ``f32[2] {`` may also open a computation: then no number and no colon follows."""
    if not cursor.sees("{"):
        return False
    kind, value = cursor.peek()
    return kind == "int" or (kind == "mark" and (value == ":" or value == "}"))


def is_order(order: tuple[int, ...], rank: int) -> bool:
    return len(order) == rank and sorted(order) == list(range(rank))


def _rest(cursor: Cursor) -> tuple[str, int]:
    """The text after the colon of a layout, without blanks, and the memory space in it."""
    out: list[str] = []
    space, last = 0, -1
    while not cursor.sees("}"):
        part = cursor.value
        if part not in LAYOUT_PARTS:
            cursor.refuse("expected a part of a layout: D, T, L, #, *, E, S, SC, P or M", TYPE_SYNTAX)
        place = LAYOUT_PARTS.index(part)
        if place <= last:
            cursor.refuse(f"the parts of a layout come in the order {' '.join(LAYOUT_PARTS)}, each once", TYPE_SYNTAX)
        last = place
        cursor.next()
        inside = _part(cursor, part)
        while part in ("T", "SC") and cursor.sees("("):
            inside += _part(cursor, part)
        out.append(part + inside)
        if part == "S":
            space = int(inside[1:-1])
    return "".join(out), space


def _part(cursor: Cursor, part: str) -> str:
    """``(...)`` of one part of a layout."""
    cursor.expect("(", f"after {part} of the layout", TYPE_SYNTAX)
    if part in ("L", "E", "S", "M"):
        number = cursor.integer("an integer", TYPE_SYNTAX)
        cursor.expect(")", f"after {part} of the layout", TYPE_SYNTAX)
        return f"({number})"
    out: list[str] = []
    while not cursor.sees(")"):
        if part == "D":
            out.append(cursor.one_of(LEVEL, "expected a DimLevelType abbreviation (D, C, S or H)", TYPE_SYNTAX))
            out += [mark for mark in ("+", "~") if cursor.eat(mark)]
        elif part == "P":
            cursor.nest(4)
            out.append(str(TypeTable().read(cursor)))
            cursor.depth -= 4
        elif part in ("#", "*"):
            if cursor.kind != "type" or DTYPES[cursor.value].kind != "uint":
                cursor.refuse("expected an unsigned integer type", TYPE_SYNTAX)
            out.append(cursor.take())
        elif part == "T" and cursor.eat("*"):
            out.append("*")
        else:
            out.append(str(cursor.integer("an integer", TYPE_SYNTAX)))
            if part == "SC" and cursor.eat(":"):
                out.append(":")
                continue
        if cursor.eat(","):
            out.append(",")
            if cursor.sees(")"):
                cursor.refuse("expected a number after the comma", TYPE_SYNTAX)
    cursor.expect(")", f"after {part} of the layout", TYPE_SYNTAX)
    return "(" + "".join(out) + ")"
