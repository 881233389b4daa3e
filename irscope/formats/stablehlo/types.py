"""Types: from MLIR's spelling to irscope's types and back. Equal texts share one object."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.faults import LIMIT, TYPE_SYNTAX, UNKNOWN_ALIAS
from irscope.formats.stablehlo.lexer import Cursor
from irscope.graph import DTYPES, TOKEN, Dim, DType, DynamicDim, FunctionType, NamedType, TensorType, TupleType, Type
from irscope.ops.faults import TypeFault
from irscope.source import did_you_mean

_FLOATS = ("f16", "bf16", "f32", "f64", "f8E5M2", "f8E4M3", "f8E4M3FN", "f8E4M3B11FNUZ", "f8E3M4", "f8E5M2FNUZ", "f8E4M3FNUZ", "f8E8M0FNU",
           "f4E2M1FN", "f6E3M2FN", "f6E2M3FN")
ELEMENTS: dict[str, DType] = {
    "i1": DTYPES["pred"], **{f"{prefix}i{bits}": DTYPES[f"{kind}{bits}"] for bits in (2, 4, 8, 16, 32, 64)
                             for prefix, kind in (("", "s"), ("s", "s"), ("u", "u"))},
    **{name: DTYPES[name.lower()] for name in _FLOATS}, "complex<f32>": DTYPES["c64"], "complex<f64>": DTYPES["c128"],
}
"""The element types by MLIR's names. A signless integer is signed; i1 is the type of predicates."""
SPELLED = {dtype: name for name, dtype in reversed(ELEMENTS.items()) if not name.startswith("si")}
SCALAR = re.compile(rf"(?:[su]?i\d{{1,8}}|{'|'.join(_FLOATS)}|tf32|f80|f128|index|none)", re.ASCII)
"""Types of scalars, which attributes have; those of a tensor's elements that irscope lacks are among them."""
_INNER = r"[^<>\"\n]"
TENSOR = re.compile(rf"tensor<(?:{_INNER}|<{_INNER}*+>)*+>")
PARTS = re.compile(r"tensor<[ \t]*((?:(?:\d{1,19}|\?)x)*+)(complex<[ \t]*f\d+[ \t]*>|\w++)[ \t]*(?:,[ \t]*#\w+\.(?:bounds|type_extensions)"
                   r"<(?:[ \t]*bounds[ \t]*=[ \t]*\[)?([\d?, \t\-]*)\]?>[ \t]*)?>", re.ASCII)
STATIC = re.compile(r"tensor<((?:\d{1,18}x)*+)([a-zA-Z]\w*+)>", re.ASCII)
DIMENSION = re.compile(r"(\d+|\?)x(?=\S)|", re.ASCII)
_PLAIN = rf"tensor<{_INNER}++>"
_PLAINS = rf"{_PLAIN}(?:, {_PLAIN})*+"
PLAIN_LIST = re.compile(_PLAINS + r"(?!\s*,)")
PLAIN_FUNCTION = re.compile(rf"\((?:{_PLAINS})?+\) -> (?:{_PLAIN}|\((?:{_PLAINS})?+\))")
OTHERS = ("vector", "memref", "tensor")
TOKENS = ("stablehlo.token", "mhlo.token")


class LineTypes(NamedTuple):
    """The types at the end of a line: of the operands, None for a list without an arrow, and of the results.

    ``is_static``: all of them are arrays whose sizes are known.
    """

    operands: tuple[Type, ...] | None
    results: tuple[Type, ...]
    is_static: bool


class Shared(NamedTuple):
    """What texts of a process have in common.

    ``types`` has arrays of known sizes by their text, one object for each, as MLIR's types are unique in their context. ``plans`` has what
    lines become, over these objects.
    """

    types: dict[str, TensorType]
    plans: dict[tuple[str | None, ...], Any]


MOST_SHARED = 1 << 14
"""Entries of each table."""
MOST_PARTS = 1 << 14
"""Types in one type, counted through its aliases."""
LONGEST_SHARED = 100
"""In characters: types with a longer text are not shared."""
_current = [Shared({}, {})]


def shared() -> Shared:
    """The tables for a text that begins: those of the texts before it, or new ones where one of those is full.

    Full tables are replaced, not emptied: texts that other threads read go on with the tables that they began with.
    """
    if any(len(table) >= MOST_SHARED for table in _current[0]):
        _current[0] = Shared({}, {})
    return _current[0]


def are_static(types: tuple[Type, ...]) -> bool:
    """Whether all types are of arrays whose sizes are known."""
    return all(isinstance(type, TensorType) and type.is_static for type in types)


class TypeTable:
    """Reads types. ``alias`` gives the offset of the text that an alias stands for, None for an unknown alias."""

    def __init__(self, alias: Callable[[str], int | None]) -> None:
        self.alias = alias
        self.by_text: dict[str, Type] = {}
        self.by_line: dict[str, LineTypes] = {}
        self.static: dict[str, TensorType] = {}
        """Those of ``by_text`` that are arrays of known sizes."""
        self._kept: dict[Type, Type] = {}
        self.aliased: dict[str, tuple[Type, int, int]] = {}
        """The types of aliases that were read, their numbers of parts and how deeply these are nested."""
        self.parts = 0
        """How many types were read, aliases counted with all their parts."""
        self.deepest = 0
        """The deepest nesting at which a part was read."""
        self.shared = shared()
        self.is_shared = True
        """Whether all of ``static`` are the objects in ``shared``."""

    def keep(self, type: Type) -> Type:
        """The object that all equal types share."""
        return self._kept.setdefault(type, type)

    def line(self, text: str) -> LineTypes | None:
        """The types in ``(T, U) -> V`` or ``T, U``; None for a text with other types."""
        found = self.by_line.get(text)
        if found is None:
            params, arrow, results = text.rpartition(" -> ")
            if not arrow:
                listed = self._plain_list(text)
                found = None if listed is None else LineTypes(None, *listed)
            elif params[:1] == "(" and params[-1:] == ")":
                inner = results[1:-1] if results[:1] == "(" and results[-1:] == ")" else results
                given, made = self._plain_list(params[1:-1]), self._plain_list(inner)
                found = None if given is None or made is None else LineTypes(given[0], made[0], given[1] and made[1])
            if found is not None:
                self.by_line[text] = found
        return found

    def _plain_list(self, text: str) -> tuple[tuple[Type, ...], bool] | None:
        """The types between commas, and whether all are static; None where one of them needs the cursor."""
        parts = text.split(", ") if text else []
        known = self.static.get
        arrays = tuple([known(part) or self._static(part) for part in parts])
        if None not in arrays:
            return arrays, True  # type: ignore[return-value]
        found = tuple([type for type in map(self.plain, parts) if type is not None])
        return (found, False) if len(found) == len(parts) else None

    def plain(self, text: str) -> Type | None:
        """A type that was read before, or a tensor type without bounds; None for another one."""
        found = self.by_text.get(text) or self._static(text)
        if found is not None:
            return found
        m = PARTS.fullmatch(text)
        dtype = ELEMENTS.get(m[2]) if m is not None else None
        shape = _sizes(m[1]) if m is not None else None
        if m is None or dtype is None or shape is None or m[3] is not None:
            return None
        type = self.by_text[text] = self.keep(TensorType(dtype, shape))
        return type

    def _static(self, text: str) -> TensorType | None:
        """An array of known sizes; None for another type, and for sizes of 19 digits."""
        common = self.shared.types
        type = common.get(text)
        if type is None:
            m = STATIC.fullmatch(text)
            dtype = ELEMENTS.get(m[2]) if m is not None else None
            if m is None or dtype is None:
                return None
            type = TensorType(dtype, tuple(map(int, m[1].split("x")[:-1])))
            if len(common) < MOST_SHARED and len(text) <= LONGEST_SHARED:
                type = common.setdefault(text, type)
            else:
                self.is_shared = False
        kept = self._kept.setdefault(type, type)
        if kept is not type:  # it was spelled in another way before
            self.is_shared = False
            assert isinstance(kept, TensorType)
            type = kept
        self.static[text] = self.by_text[text] = type
        return type

    def read(self, cursor: Cursor) -> Type:
        """Step over a type."""
        self.parts += 1
        self.deepest = max(self.deepest, cursor.depth)
        if cursor.kind == "word":
            if cursor.value == "tensor":
                m = TENSOR.match(cursor.text, cursor.at, cursor.end)
                if m is not None:
                    found = self.by_text.get(m[0]) or self._tensor(m[0], cursor)
                    cursor.goto(m.end())
                    return found
            return self._word(cursor)
        if cursor.kind == "type":
            return self._named(cursor)
        if cursor.sees("("):
            return self.function(cursor)
        cursor.missing("expected a type", TYPE_SYNTAX)

    def list(self, cursor: Cursor) -> tuple[Type, ...]:
        """Step over types between commas, one or more."""
        m = PLAIN_LIST.match(cursor.text, cursor.at, cursor.end)
        plain = self._plain_list(m[0]) if m is not None else None
        if m is not None and plain is not None:
            cursor.goto(m.end())
            return plain[0]
        return tuple([self.read(cursor) for _ in cursor.elements()])

    def results(self, cursor: Cursor) -> tuple[Type, ...]:
        """Step over ``T`` or ``(T, U)`` after an arrow."""
        if not cursor.sees("("):
            if cursor.kind not in ("word", "type"):
                cursor.missing("expected non-function type", TYPE_SYNTAX)
            return (self.read(cursor),)
        return tuple([self.read(cursor) for _ in cursor.items("()", "the types of results", TYPE_SYNTAX)])

    def function(self, cursor: Cursor) -> FunctionType:
        """Step over ``(T, U) -> V``."""
        m = PLAIN_FUNCTION.match(cursor.text, cursor.at, cursor.end)
        plain = self.line(m[0]) if m is not None else None
        if m is not None and plain is not None and plain[0] is not None:
            cursor.goto(m.end())
            self.parts += len(plain[0]) + len(plain[1])
            return FunctionType(plain[0], TupleType(plain[1]))
        cursor.nest(4)
        operands = tuple([self.read(cursor) for _ in cursor.items("()", "the types of operands", TYPE_SYNTAX)])
        cursor.expect("->", "in a function type", TYPE_SYNTAX)
        results = self.results(cursor)
        cursor.depth -= 4
        return FunctionType(operands, TupleType(results))

    def _word(self, cursor: Cursor) -> Type:
        word, begin = cursor.value, cursor.at
        if word in ("tuple", "complex") or word in OTHERS:
            cursor.next()
            if not cursor.sees("<"):
                cursor.refuse(f"expected '<' after {word}", TYPE_SYNTAX)
            if word == "tuple":
                cursor.nest(4)
                elements = tuple([self.read(cursor) for _ in cursor.items("<>", "the elements of a tuple", TYPE_SYNTAX)])
                cursor.depth -= 4
                return self.keep(TupleType(elements))
            return self._other(cursor, begin)
        if SCALAR.fullmatch(word) is None:
            cursor.refuse("expected a type", TYPE_SYNTAX, did_you_mean(word, ELEMENTS))
        cursor.next()
        return self.keep(NamedType(word))

    def _named(self, cursor: Cursor) -> Type:
        """``!stablehlo.token``, ``!dialect.name<...>`` or an alias."""
        name, begin = cursor.value, cursor.at
        if "." not in name:
            at = self.alias("!" + name)
            if at is None:
                cursor.refuse(f"undefined symbol alias id '{name}'", UNKNOWN_ALIAS, sees=False)
            place = cursor.at
            cursor.next()
            known = self.aliased.get(name)
            if known is None:
                inner = Cursor(cursor.text, at)
                inner.depth = cursor.depth
                inner.nest(4)  # an alias may name itself
                before, deepest = self.parts, self.deepest
                self.deepest = inner.depth
                type = self.read(inner)
                known = self.aliased[name] = type, self.parts - before, self.deepest - cursor.depth
                self.deepest = max(self.deepest, deepest)
            else:
                cursor.nest(known[2])
                self.parts += known[1]
                self.deepest = max(self.deepest, cursor.depth)
                cursor.depth -= known[2]
            if known[1] > MOST_PARTS:  # each alias may name the one before it twice
                raise Refused(LIMIT, f"the type !{name} has more than {MOST_PARTS:,} parts", place, len(name) + 1)
            return known[0]
        cursor.next()
        if name in TOKENS:
            return TOKEN
        if cursor.sees("<") and cursor.at == begin + 1 + len(name):
            return self._other(cursor, begin)
        return self.keep(NamedType("!" + name))

    def _other(self, cursor: Cursor, begin: int) -> Type:
        """A type that irscope keeps as text; the cursor is at its ``<``."""
        cursor.balanced()
        text = cursor.text[begin:cursor.at].rstrip()
        return self.keep(NamedType(text))

    def _tensor(self, text: str, cursor: Cursor) -> Type:
        """A tensor type whose text is new."""
        found = self.plain(text)
        if found is None:
            m = PARTS.fullmatch(text)
            dtype = ELEMENTS.get(m[2].replace(" ", "")) if m is not None else None
            shape = _sizes(m[1]) if m is not None else None
            if m is None or dtype is None:
                found = self._odd(text, cursor)
            elif shape is None:
                raise Refused(TYPE_SYNTAX, "a dimension does not fit into 64 bits", cursor.at, len(text))
            else:
                found = self.keep(TensorType(dtype, self._bounded(shape, m[3], text, cursor)))
            self.by_text[text] = found
        return found

    def _bounded(self, shape: tuple[Dim, ...], written: str | None, text: str, cursor: Cursor) -> tuple[Dim, ...]:
        """A shape with the bounds of a type, if it has some."""
        if written is None:
            return shape
        bounds = [bound.strip() for bound in written.split(",")] if written.strip() else []
        if len(bounds) != len(shape):
            raise Refused(TYPE_SYNTAX, f"the type has {len(shape)} dimensions, but {len(bounds)} bounds", cursor.at, len(text))
        return tuple([DynamicDim("", int(bound)) if bound.isdecimal() and size == DynamicDim() else size
                      for size, bound in zip(shape, bounds, strict=True)])

    def _odd(self, text: str, cursor: Cursor) -> Type:
        """A tensor that is not of irscope's element types, or a fault in it."""
        at = len("tensor<")
        at += len(text[at:]) - len(text[at:].lstrip())
        if text.startswith("*x", at):
            at += 2
        else:
            while (m := DIMENSION.match(text, at)) is not None and m.end() > at:
                if len(m[1]) > 19:
                    raise Refused(TYPE_SYNTAX, f"a dimension of {len(m[1])} digits", cursor.at + at, len(m[1]))
                at = m.end()
        element = re.compile(r"[^,<>\s]*").match(text, at)
        word = element[0] if element is not None else ""
        place = cursor.at + at
        if word[:1].isdigit() or word[:1] in ("-", "?", "*", ""):
            what = "expected 'x' in dimension list" if word[:1].isdigit() else "expected a dimension or an element type"
            raise Refused(TYPE_SYNTAX, what, place, max(1, len(word)))
        if word in ("complex", "vector", "tensor", "tuple", "memref") or word[0] == "!" or SCALAR.fullmatch(word) is not None:
            return self.keep(NamedType(text))
        raise Refused(TYPE_SYNTAX, f"{word!r} is no element type", place, len(word), did_you_mean(word, ELEMENTS))


def results_of(type: FunctionType) -> tuple[Type, ...]:
    """The types of the results of a function."""
    return type.result.elements if isinstance(type.result, TupleType) else (type.result,)


def _sizes(written: str) -> tuple[Dim, ...] | None:
    """The sizes in ``2x?x``; None where one of them does not fit into 64 bits."""
    sizes = tuple([int(size) if size != "?" else DynamicDim() for size in written.split("x")[:-1]])
    return None if any(isinstance(size, int) and size >= 1 << 63 for size in sizes) else sizes


def spelled(type: Type) -> str:
    """The type as MLIR writes it. Raises TypeFault for an element type that StableHLO does not have."""
    if isinstance(type, TensorType):
        if type.dtype not in SPELLED:
            raise TypeFault(f"StableHLO has no type {type}")
        sizes = "".join(f"{size}x" if isinstance(size, int) else "?x" for size in type.shape)
        bounds = [size.bound if isinstance(size, DynamicDim) else None for size in type.shape]
        shown = ", ".join("?" if bound is None else str(bound) for bound in bounds)
        tail = f", #stablehlo.bounds<{shown}>" if any(bound is not None for bound in bounds) else ""
        return f"tensor<{sizes}{SPELLED[type.dtype]}{tail}>"
    if isinstance(type, TupleType):
        return f"tuple<{', '.join(map(spelled, type.elements))}>"
    if isinstance(type, FunctionType):
        return f"({', '.join(map(spelled, type.params))}) -> {spelled_results(results_of(type))}"
    return "!stablehlo.token" if type is TOKEN else str(type)


def spelled_results(types: tuple[Type, ...]) -> str:
    """The types of results after an arrow: one alone without parentheses."""
    alone = len(types) == 1 and not isinstance(types[0], FunctionType)
    return spelled(types[0]) if alone else f"({', '.join(map(spelled, types))})"

