"""Parses the values of attributes into Python, and reports values that do not fit."""
from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable

from irscope.formats.hlo.devices import int_lists, ints, read_alias, read_groups
from irscope.formats.hlo.faults import ATTRIBUTE_VALUE, Faults, Refused
from irscope.formats.hlo.lexer import Cursor
from irscope.formats.hlo.literals import read_typed_literal
from irscope.formats.hlo.opcodes import WORDS
from irscope.formats.hlo.raw import check_domain, step_over_value
from irscope.formats.hlo.types import TypeTable
from irscope.ops.attrs import ConvDims, ResultAccuracy, Window
from irscope.source import SourceText, did_you_mean

FLOAT_MAX = 3.4028234663852886e38
MAX_SIZES = 1000  # characters of one token such as 3x3: a longer one is not a window size


def read_value(kind: str, cursor: Cursor, types: TypeTable) -> object:
    """Step over the value of an attribute and return it. Raises Refused where it does not have the form of its kind."""
    words = WORDS.get(kind)
    if words is not None:
        return _word(cursor, words)
    return READERS[kind](cursor, types)


def _word(cursor: Cursor, words: frozenset[str]) -> str:
    word = cursor.value.lower() if words is WORDS["precision"] else cursor.value  # the one kind whose case XLA ignores
    if cursor.kind != "word" or word not in words:
        near = did_you_mean(cursor.value, words)
        cursor.refuse(f"expected {_one_of(words)}", ATTRIBUTE_VALUE, near)
    cursor.next()
    return word


def _one_of(words: frozenset[str]) -> str:
    listed = sorted(words)
    return "one of " + ", ".join(listed) if len(listed) <= 8 else "one of " + ", ".join(listed[:6]) + f" and {len(listed) - 6} more"


def number(cursor: Cursor, what: str) -> float:
    """Step over a number, inf and nan included."""
    if cursor.kind == "int" or cursor.kind == "inf":
        value = float(cursor.value)
    elif cursor.kind == "decimal":
        value = float("nan") if "nan" in cursor.value else float(cursor.value)
    elif cursor.sees_word("inf"):
        value = float("inf")
    else:
        cursor.refuse(f"expected {what}", ATTRIBUTE_VALUE)
    cursor.next()
    return value


def _float(cursor: Cursor, types: TypeTable) -> float:
    at, length = cursor.at, cursor.after - cursor.at
    value = number(cursor, "a number")
    if abs(value) > FLOAT_MAX:
        raise Refused(ATTRIBUTE_VALUE, "the number does not fit into an f32", at, length)
    return value


def _slices(cursor: Cursor, types: TypeTable) -> tuple[tuple[int, int, int], ...]:
    ranges: list[tuple[int, int, int]] = []
    for _ in cursor.items("{}", "the ranges of the slice", ATTRIBUTE_VALUE, "at the end of the slice"):
        at = cursor.at
        cursor.expect("[", "before a range", ATTRIBUTE_VALUE)
        parts = [cursor.integer("the start of a range", ATTRIBUTE_VALUE)]
        while cursor.eat(":"):
            parts.append(cursor.integer("a number of the range", ATTRIBUTE_VALUE))
        cursor.expect("]", "after a range", ATTRIBUTE_VALUE)
        if len(parts) not in (2, 3):
            raise Refused(ATTRIBUTE_VALUE, f"a range is [start:limit] or [start:limit:stride], not {len(parts)} numbers", at,
                          max(1, cursor.at - at))
        ranges.append((parts[0], parts[1], parts[2] if len(parts) == 3 else 1))
    return tuple(ranges)


def _padding(cursor: Cursor, types: TypeTable) -> tuple[tuple[int, int, int], ...]:
    if cursor.kind != "pad" or len(cursor.value) > MAX_SIZES or cursor.text.startswith("_", cursor.after):
        cursor.refuse("expected padding, low_high or low_high_interior for each dimension, e.g. 0_0_0x3_3_1", ATTRIBUTE_VALUE)
    value = parse_padding(cursor.value)
    _fits(cursor, [n for triple in value for n in triple])
    cursor.next()
    return value


def _fits(cursor: Cursor, numbers: Iterable[int]) -> None:
    """Refuse a token with a number that does not fit into 64 bits."""
    if not all(-(1 << 63) <= n < 1 << 63 for n in numbers):
        cursor.refuse("a number does not fit into 64 bits", ATTRIBUTE_VALUE, sees=False)


def parse_padding(text: str) -> tuple[tuple[int, int, int], ...]:
    """``0_1x2_3_1``."""
    out: list[tuple[int, int, int]] = []
    for dimension in text.split("x"):
        parts = [int(n) for n in dimension.split("_")]
        out.append((parts[0], parts[1], parts[2] if len(parts) > 2 else 0))
    return tuple(out)


def _dxd(cursor: Cursor, name: str) -> tuple[int, ...]:
    if cursor.kind not in ("int", "dxd") or len(cursor.value) > MAX_SIZES:
        cursor.refuse(f"expected {name}=i or {name}=ixj...", ATTRIBUTE_VALUE)
    value = tuple(int(n) for n in cursor.value.split("x"))
    _fits(cursor, value)
    cursor.next()
    return value


def _window(cursor: Cursor, types: TypeTable) -> Window:
    begin = cursor.at
    cursor.expect("{", "before the window", ATTRIBUTE_VALUE)
    found: dict[str, tuple[int, ...]] = {}
    pad: tuple[tuple[int, int], ...] | None = None
    while not cursor.sees("}"):
        if cursor.kind != "attribute":
            cursor.refuse("expected size=, stride=, pad=, lhs_dilate=, rhs_dilate= or rhs_reversal=", ATTRIBUTE_VALUE)
        name, at = cursor.value, cursor.at
        if name in found or (name == "pad" and pad is not None):
            raise Refused(ATTRIBUTE_VALUE, f"the window gives {name} twice", at, len(name))
        cursor.next()
        if name == "pad":
            if cursor.kind != "pad" or len(cursor.value) > MAX_SIZES:
                cursor.refuse("expected the padding of the window, e.g. 0_0x3_3", ATTRIBUTE_VALUE)
            pairs = [tuple(int(n) for n in d.split("_")) for d in cursor.value.split("x")]
            if any(len(p) != 2 for p in pairs):
                cursor.refuse("the padding of a window is low_high, without interior padding", ATTRIBUTE_VALUE)
            pad = tuple((p[0], p[1]) for p in pairs)
            _fits(cursor, [n for pair in pad for n in pair])
            cursor.next()
        elif name in ("size", "stride", "lhs_dilate", "rhs_dilate", "rhs_reversal"):
            found[name] = _dxd(cursor, name)
        else:
            raise Refused(ATTRIBUTE_VALUE, f"a window has no {name}", at, len(name),
                          did_you_mean(name, ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")))
    end = cursor.after
    cursor.next()
    size = found.get("size", ())
    for name, given in [*found.items(), *([("pad", pad)] if pad is not None else [])]:
        if len(given) != len(size):
            raise Refused(ATTRIBUTE_VALUE, f"{name}= has {len(given)} dimensions, but size= has {len(size)}", begin, end - begin)
    reversal = found.get("rhs_reversal")
    return Window.make(size, found.get("stride"), pad, found.get("lhs_dilate"), found.get("rhs_dilate"),
                       tuple(n == 1 for n in reversal) if reversal is not None else None)


def _dim_labels(cursor: Cursor, types: TypeTable) -> ConvDims | str:
    if cursor.kind != "labels":
        cursor.refuse("expected dimension labels, e.g. bf01_oi01->bf01", ATTRIBUTE_VALUE)
    text = cursor.value
    if "?" in text:  # dimensions without a role, which GPU custom-calls have
        cursor.next()
        return text
    try:
        value = ConvDims.parse(text)
    except ValueError as e:
        cursor.refuse(f"the dimension labels do not fit together: {e}", ATTRIBUTE_VALUE, sees=False)
    cursor.next()
    return value


def _precisions(cursor: Cursor, types: TypeTable) -> tuple[str, ...]:
    return tuple(_word(cursor, WORDS["precision"]) for _ in cursor.items("{}", "the precisions", ATTRIBUTE_VALUE))


def _aliasing(cursor: Cursor, types: TypeTable) -> tuple[tuple[tuple[int, ...], tuple[int, tuple[int, ...]]], ...]:
    form = "as in {output index}: (operand, {operand index})"
    pairs: list[tuple[tuple[int, ...], tuple[int, tuple[int, ...]]]] = []
    for _ in cursor.items("{}", "the aliases", ATTRIBUTE_VALUE):
        output, operand, index = read_alias(cursor, "an operand", form)
        pairs.append((output, (operand, index)))
        cursor.expect(")", form, ATTRIBUTE_VALUE)
    return tuple(pairs)


def _result_accuracy(cursor: Cursor, types: TypeTable) -> ResultAccuracy:
    cursor.expect("{", "before the accuracy", ATTRIBUTE_VALUE)
    if cursor.field(("mode", "tolerance"), "expected mode= or tolerance=", ATTRIBUTE_VALUE) == "mode":
        made = ResultAccuracy(_word(cursor, WORDS["accuracy"]))
    else:
        tolerances = {"atol": 0.0, "rtol": 0.0, "ulps": 0.0}
        for _ in cursor.items("{}", "the tolerances", ATTRIBUTE_VALUE):
            name = cursor.field(tuple(tolerances), "expected atol=, rtol= or ulps=", ATTRIBUTE_VALUE)
            tolerances[name] = number(cursor, "a tolerance")
        ulps = tolerances["ulps"]
        made = ResultAccuracy("tolerance", tolerances["atol"], tolerances["rtol"], int(ulps) if math.isfinite(ulps) else 0)
    cursor.expect("}", "after the accuracy", ATTRIBUTE_VALUE)
    return made


def _domain(cursor: Cursor, types: TypeTable) -> str:
    begin, faults = cursor.at, Faults(SourceText("", ""))
    check_domain(cursor, faults)
    return cursor.text[begin:cursor.at].rstrip()


READERS: dict[str, Callable[[Cursor, TypeTable], object]] = {
    "int": lambda cursor, types: cursor.integer("an integer", ATTRIBUTE_VALUE),
    "int32": lambda cursor, types: cursor.int32("an integer", ATTRIBUTE_VALUE),
    "bool": lambda cursor, types: cursor.boolean(ATTRIBUTE_VALUE),
    "string": lambda cursor, types: cursor.string("a string", ATTRIBUTE_VALUE),
    "braces": lambda cursor, types: cursor.balanced("before the value", ATTRIBUTE_VALUE),
    "types": lambda cursor, types: tuple(types.read(cursor) for _ in cursor.items("{}", "the types", ATTRIBUTE_VALUE)),
    "ints": lambda cursor, types: ints(cursor), "intlists": lambda cursor, types: int_lists(cursor),
    "groups": lambda cursor, types: read_groups(cursor), "any": lambda cursor, types: step_over_value(cursor),
    "type": lambda cursor, types: types.read(cursor), "literal": lambda cursor, types: read_typed_literal(cursor, types),
    "float": _float, "slices": _slices, "padding": _padding, "window": _window, "dim_labels": _dim_labels, "precisions": _precisions,
    "aliasing": _aliasing, "result_accuracy": _result_accuracy, "domain": _domain,
}


# The same values from printed text, without a cursor: the line reader parses millions of them. None: leave it to the cursor.
INTS = re.compile(r"\{(-?\d{1,18}(?:,-?\d{1,18})*)?\}", re.ASCII)
_ONE_RANGE = r"\[\d{1,18}:\d{1,18}(?::\d{1,18})?\]"
SLICES = re.compile(r"\{" + _ONE_RANGE + "(?:, " + _ONE_RANGE + r")*\}", re.ASCII)
RANGE = re.compile(r"\[(\d+):(\d+)(?::(\d+))?\]", re.ASCII)
SMALL_INT = re.compile(r"-?\d{1,18}", re.ASCII)


def quick_value(kind: str, text: str) -> object:
    """The value of an attribute as compilers print it; None for a value that only the cursor can check."""
    if kind == "ints":
        m = INTS.fullmatch(text)
        if m is None:
            return None
        return tuple(map(int, m[1].split(","))) if m[1] else ()
    if kind == "int":
        return int(text) if SMALL_INT.fullmatch(text) else None
    if kind == "bool":
        return True if text == "true" else False if text == "false" else None
    if kind == "slices":
        if not SLICES.fullmatch(text):
            return None
        return tuple((int(a), int(b), int(c) if c else 1) for a, b, c in RANGE.findall(text))
    if kind == "string":
        return text[1:-1] if text[0] == '"' and "\\" not in text else None
    words = WORDS.get(kind)
    return text if words is not None and text in words else None
