"""The values of attributes that pretty forms write in spellings of their own."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.attributes import Array, Attribute, Number, Record, Symbol, Text, Word
from irscope.formats.stablehlo.draft import Draft, Step
from irscope.formats.stablehlo.faults import ATTRIBUTE_VALUE, SYNTAX
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.types import TypeTable
from irscope.formats.stablehlo.values import INTS, WORDS, Values, ints_of
from irscope.graph import DTYPES, NamedType, tensor
from irscope.lazy import np
from irscope.ops.attrs import Literal

S64, I32, I64 = DTYPES["s64"], NamedType("i32"), NamedType("i64")
COMMUTATIVE = frozenset(("add", "and", "maximum", "minimum", "multiply", "or", "xor"))
"""The operations that ``reduce(...) applies`` can name."""


def _value(read: Callable[[Values, Cursor], Attribute]) -> Callable[[str], Step]:
    """A step that reads one attribute."""
    def make(name: str) -> Step:
        def step(values: Values, cursor: Cursor, draft: Draft) -> None:
            draft.attributes[name] = read(values, cursor)
        return step
    return make


def _integer(type: NamedType) -> Callable[[str], Step]:
    return _value(lambda values, cursor: Number(cursor.integer("an integer", ATTRIBUTE_VALUE), type))


def _word(name: str) -> Step:
    kind = kind_of_words(name)
    return _value(lambda values, cursor: values.enumeration(cursor, kind))(name)


def kind_of_words(name: str) -> str:
    """The enumeration of an attribute's words."""
    return name if name != "compare_type" else "comparison_type"


RANGES = re.compile(r"\[(\d{1,18}:\d{1,18}(?::\d{1,18})?(?:, \d{1,18}:\d{1,18}(?::\d{1,18})?)*)\]", re.ASCII)


def _ranges(name: str) -> Step:
    """``[1:7:3, 0:11]`` of a slice."""
    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        m = RANGES.match(cursor.text, cursor.at, cursor.end)
        if m is not None:
            draft.attributes.update(_ranges_of(m[0]))
            cursor.goto(m.end())
            return
        parts: list[list[int]] = []
        for _ in cursor.items("[]", "the ranges of the slice", ATTRIBUTE_VALUE):
            one = [cursor.integer("the start of a range", ATTRIBUTE_VALUE)]
            cursor.expect(":", "in a range", ATTRIBUTE_VALUE)
            one.append(cursor.integer("the limit of a range", ATTRIBUTE_VALUE))
            one.append(cursor.integer("the stride of a range", ATTRIBUTE_VALUE) if cursor.eat(":") else 1)
            parts.append(one)
        draft.attributes.update(_columns(parts))
    return step


def _ranges_of(text: str) -> dict[str, Attribute]:
    """The attributes of a checked ``[1:7:3, 0:11]``."""
    return _columns([[*map(int, part.split(":")), 1][:3] for part in text[1:-1].split(", ")])


def _columns(ranges: Sequence[Sequence[int]]) -> dict[str, Attribute]:
    return {field: Array(S64, tuple([one[i] for one in ranges])) for i, field in enumerate(("start_indices", "limit_indices", "strides"))}


def _format(name: str) -> Step:
    """``e5m10`` of reduce_precision."""
    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        m = re.fullmatch(r"e(\d{1,9})m(\d{1,9})", cursor.value, re.ASCII)
        if cursor.kind != "word" or m is None:
            cursor.refuse("expected a format such as e5m10", ATTRIBUTE_VALUE)
        cursor.next()
        draft.attributes["exponent_bits"] = Number(int(m[1]), I32)
        draft.attributes["mantissa_bits"] = Number(int(m[2]), I32)
    return step


def _precision(values: Values, cursor: Cursor) -> Attribute:
    return tuple([values.enumeration(cursor, "precision") for _ in cursor.items("[]", "the precisions", ATTRIBUTE_VALUE)])


def _pair(values: Values, cursor: Cursor) -> tuple[Array, Array]:
    """``= [0] x [1]``."""
    cursor.expect("=", "before the dimensions", ATTRIBUTE_VALUE)
    lhs = values.ints(cursor)
    cursor.expect_word("x")
    return lhs, values.ints(cursor)


def _dot(name: str) -> Step:
    """``batching_dims = [0] x [0], contracting_dims = [1] x [0], precision = [..], algorithm = <..>``."""
    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        fields: dict[str, Attribute] = {}
        if cursor.eat_word("batching_dims"):
            fields["lhs_batching_dimensions"], fields["rhs_batching_dimensions"] = _pair(values, cursor)
            cursor.expect(",", "before contracting_dims")
        cursor.expect_word("contracting_dims")
        fields["lhs_contracting_dimensions"], fields["rhs_contracting_dimensions"] = _pair(values, cursor)
        draft.attributes[name] = Record(draft.name.partition(".")[0], "dot", fields)
        while cursor.eat(","):
            if cursor.eat_word("precision"):
                cursor.expect("=", "after precision")
                draft.attributes["precision_config"] = _precision(values, cursor)
            else:
                cursor.expect_word("algorithm")
                cursor.expect("=", "after algorithm")
                draft.attributes["algorithm"] = Record("stablehlo", "dot_algorithm", values.fields(cursor))
    return step


WINDOW = {"stride": "window_strides", "pad": "padding", "lhs_dilate": "lhs_dilation", "rhs_dilate": "rhs_dilation",
          "reverse": "window_reversal"}


def _window(name: str) -> Step:
    """``stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]``."""
    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        while cursor.kind == "word":
            field = WINDOW.get(cursor.value)
            if field is None or field in draft.attributes:
                cursor.refuse(f"expected one of {', '.join(WINDOW)}, each once", ATTRIBUTE_VALUE)
            cursor.next()
            cursor.expect("=", "in the window")
            if field == "padding":
                rows = [values.ints(cursor).values for _ in cursor.items("[]", "the padding", ATTRIBUTE_VALUE)]
                draft.attributes[field] = table(values.types, rows)
            elif field == "window_reversal":
                bools = [cursor.boolean(ATTRIBUTE_VALUE) for _ in cursor.items("[]", "the reversals", ATTRIBUTE_VALUE)]
                draft.attributes[field] = Array(DTYPES["pred"], tuple(bools))
            else:
                draft.attributes[field] = values.ints(cursor)
            if not cursor.eat(","):
                break
    return step


def table(types: TypeTable, rows: Sequence[Sequence[float]]) -> Literal:
    """The literal of a matrix of 64-bit integers, as the generic form has it for ``pad = [[0, 0], [1, 1]]``."""
    type = types.keep(tensor("s64", len(rows), 2))
    return Literal(type, None, False, lambda literal: np.array(rows, dtype=np.int64).reshape(len(rows), 2))


def can_apply(name: str, inner: str) -> bool:
    """Whether a reduction of this name can apply an operation: one that is commutative, of the same dialect."""
    dialect, _, short = inner.partition(".")
    return dialect == name.partition(".")[0] and short in COMMUTATIVE


def applied_operation(name: str) -> Step:
    """The operation that ``reduce(...) applies``, kept in the draft."""
    def step(values: Values, cursor: Cursor, draft: Draft) -> None:
        at = cursor.at
        inner = cursor.word("the name of the operation that is applied")
        if not can_apply(draft.name, inner):
            raise Refused(SYNTAX, f"custom op '{draft.name}' expected the inner-op to be a commutative binary-op from the dialect", at,
                          len(inner))
        draft.applied = inner, at
    return step


def _angle(values: Values, cursor: Cursor) -> Attribute:
    """``<@mesh, [{"x"}]>``, which the generic form writes as ``#sdy.sharding<...>``."""
    if cursor.kind == "attribute":
        return values.read(cursor)
    if not cursor.sees("<"):
        cursor.refuse("expected '<' before a sharding", ATTRIBUTE_VALUE)
    return Text("#sdy.sharding" + cursor.balanced())


def _mesh(values: Values, cursor: Cursor) -> Attribute:
    """``<["x"=8]>``."""
    return Text("#sdy.mesh" + cursor.balanced()) if cursor.sees("<") else values.read(cursor)


def _group(values: Values, cursor: Cursor) -> Attribute:
    """``group_id=3`` of ``sdy.sharding_group``."""
    cursor.expect_word("group_id")
    cursor.expect("=", "after group_id")
    return Number(cursor.integer("the number of a group", ATTRIBUTE_VALUE), I64)


def _key(name: str) -> Step:
    """``name=word``."""
    def read(values: Values, cursor: Cursor) -> Attribute:
        cursor.expect_word(name)
        cursor.expect("=", f"after {name}")
        return Text(cursor.word("a word", ATTRIBUTE_VALUE))
    return _value(read)(name)


VALUES: dict[str, Callable[[str], Step]] = {
    "i64": _integer(I64), "i32": _integer(I32), "word": _word, "ranges": _ranges, "format": _format, "dot": _dot, "window": _window,
    "key": _key, "applied": applied_operation, "ints": _value(Values.ints), "value": _value(Values.read), "mesh": _value(_mesh),
    "bool": _value(lambda values, cursor: cursor.boolean(ATTRIBUTE_VALUE)), "precision": _value(_precision), "group": _value(_group),
    "text": _value(lambda values, cursor: cursor.string()), "angle": _value(_angle),
    "conv": _value(lambda values, cursor: Record("stablehlo", "conv", values.convolution_dimensions(cursor))),
    "symbol": _value(lambda values, cursor: cursor.symbol()),  # the name that an operation defines, a string in the generic form
    "callee": _value(lambda values, cursor: Symbol(cursor.symbol("the name of a function, @name"))),
    "any": _value(lambda values, cursor: Text(cursor.word("a word", ATTRIBUTE_VALUE))),
}


def _plain_ints(dialect: str, name: str, text: str) -> dict[str, Attribute] | None:
    m = INTS.fullmatch(text)
    return {name: ints_of(m)} if m is not None else None


def _plain_integer(dialect: str, name: str, text: str) -> dict[str, Attribute] | None:
    return {name: Number(int(text), I64)} if INTEGER.fullmatch(text) is not None else None


def _plain_word(dialect: str, name: str, text: str) -> dict[str, Attribute] | None:
    kind = kind_of_words(name)
    return {name: Word("stablehlo", kind, text)} if text in WORDS[kind] else None


def _plain_ranges(dialect: str, name: str, text: str) -> dict[str, Attribute] | None:
    return _ranges_of(text) if RANGES.fullmatch(text) is not None else None


def _plain_dot(dialect: str, name: str, text: str) -> dict[str, Attribute] | None:
    m = DOT.fullmatch(text)
    if m is None:
        return None
    lists: list[Attribute] = [Array(S64, tuple(map(int, part.split(","))) if part else ()) for part in m.groups()[:4] if part is not None]
    fields: dict[str, Attribute] = dict(zip(BATCHING + CONTRACTING if len(lists) == 4 else CONTRACTING, lists, strict=True))
    found: dict[str, Attribute] = {name: Record(dialect, "dot", fields)}
    if m[5]:
        words = m[5].split(", ")
        if not all(word in WORDS["precision"] for word in words):
            return None
        found["precision_config"] = tuple([Word("stablehlo", "precision", word) for word in words])
    return found


INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)
BATCHING = ("lhs_batching_dimensions", "rhs_batching_dimensions")
CONTRACTING = ("lhs_contracting_dimensions", "rhs_contracting_dimensions")
_DIMENSIONS = r"\[((?:\d{1,9}(?:, \d{1,9})*)?)\]"
DOT = re.compile(rf"(?:batching_dims = {_DIMENSIONS} x {_DIMENSIONS}, )?contracting_dims = {_DIMENSIONS} x {_DIMENSIONS}"
                 r"(?:, precision = \[(\w+(?:, \w+)*)\])?", re.ASCII)
PLAIN: dict[str, Callable[[str, str, str], dict[str, Attribute] | None]] = {
    "ints": _plain_ints, "i64": _plain_integer, "word": _plain_word, "ranges": _plain_ranges, "dot": _plain_dot,
}
"""What the steps of some kinds read, from the text alone, as StableHLO's printer writes it; None where the step has to read it."""
