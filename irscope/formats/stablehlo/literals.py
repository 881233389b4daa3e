"""Values of constants: ``dense<...>`` and ``dense_resource<...>``, checked in place and turned into arrays on demand."""
from __future__ import annotations

import re
from functools import cache
from math import prod
from typing import Any

from irscope.formats.faults import Refused
from irscope.formats.hlo.arrays import MAX_ELEMENTS, narrow
from irscope.formats.hlo.plain import is_nested
from irscope.formats.stablehlo.faults import LIMIT, LITERAL, SYNTAX, TRUNCATED
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.types import TypeTable
from irscope.graph import DTYPES, DType, NamedType, TensorType, Type
from irscope.lazy import Array, np
from irscope.ops.attrs import Literal
from irscope.source.budget import require

SHORT = 60
"""Literals of at most this many characters do not keep the whole text in memory."""
PLAIN = re.compile(r'dense<([^<>"\n]++)> : (tensor<[^<>"\n]++>)')
"""A constant as compilers print it, but for hexadecimal bytes and complex elements."""
ROW = re.compile(r"\[([^\[\]]*+)\]")
INDEX = re.compile(r"tensor<((?:\d{1,18}x)*)index>")
RESOURCE_ALIGNMENT = 4
"""The blob of a resource begins with its alignment, in this many bytes (MLIR's AsmResourcePrinter)."""
_INTEGER = r"-?(?:0x[0-9a-fA-F]+|\d+)"
_FLOAT = r"-?\d+\.\d*(?:[eE][+-]?\d+)?|0x[0-9a-fA-F]+"
ELEMENT = re.compile(rf"(?:\(\s*(?:{_FLOAT})\s*,\s*(?:{_FLOAT})\s*\)|{_FLOAT}|{_INTEGER}|true|false)(?=[\s,\]>]|$)")
VALUE = re.compile(r"[-\w.+]+")
ELIDED = "__elided__"


def read_dense(cursor: Cursor, types: TypeTable) -> Literal:
    """Step over ``dense<...> : type``."""
    m = PLAIN.match(cursor.text, cursor.at, cursor.end)
    plain = types.plain(m[2]) if m is not None else None
    if m is not None and plain is not None:
        cursor.goto(m.end())
        return literal_of(cursor.text, m.start(1), m.end(1), plain)
    cursor.next()
    if not cursor.sees("<"):
        cursor.refuse("expected '<' after dense", LITERAL)
    begin, text = cursor.after, cursor.text
    is_blob = text.startswith('"', begin)
    if is_blob:
        cursor.next()
        end = cursor.after
    else:
        end = text.find(">", begin, cursor.end)
        if end < 0:
            _cut(cursor, begin)
    cursor.goto(end)
    if not cursor.sees(">"):
        cursor.refuse("expected '>'", LITERAL)
    cursor.next()
    type = _type(cursor, types)
    return literal_of(text, begin, end, type)


def _cut(cursor: Cursor, begin: int) -> None:
    """Refuse a literal that is never closed: cut off, or with a fault on its first line."""
    line = cursor.text.find("\n", begin)
    if line >= 0 and cursor.text[line:].strip():
        raise Refused(SYNTAX, "this literal is never closed with '>'", cursor.at)
    raise Refused(TRUNCATED, "the text ends here, in a literal", len(cursor.text[:cursor.end].rstrip()), 1, "was the dump cut off?")


def _type(cursor: Cursor, types: TypeTable) -> Type:
    cursor.expect(":", "before the type of the literal", LITERAL)
    return types.read(cursor)


def read_resource(cursor: Cursor, types: TypeTable, resources: dict[str, tuple[int, int]]) -> Literal:
    """Step over ``dense_resource<name> : type``; a name that the text has no blob for is an elided value."""
    cursor.next()
    cursor.expect("<", "after dense_resource", LITERAL)
    name = cursor.string() if cursor.kind == "string" else cursor.word("the name of a resource", LITERAL)
    cursor.expect(">", "after the name of a resource", LITERAL)
    type = _type(cursor, types)
    blob, shape = resources.get(name), shape_of(type)
    if blob is None or shape is None:
        return Literal(type, None, True)
    text, (begin, end) = cursor.text, blob
    _check_blob(text, begin, end, type, shape, RESOURCE_ALIGNMENT)
    return Literal(type, None, False, lambda literal: _of_bytes(_bytes(text, begin, end)[RESOURCE_ALIGNMENT:], literal.type))


def literal_of(text: str, begin: int, end: int, type: Type) -> Literal:
    """A literal of the text between two offsets, checked against its type."""
    shape = shape_of(type)
    if shape is None:
        raise Refused(LITERAL, f"a constant cannot be of type {type}", begin, max(1, end - begin))
    if prod(shape) >= 1 << 62:
        raise Refused(LIMIT, f"a constant of type {type} does not fit into any memory", begin, max(1, end - begin))
    if text.startswith('"', begin):
        _check_blob(text, begin + 1, end - 1, type, shape)
        if end - begin <= SHORT:
            text, begin, end = text[begin:end], 0, end - begin
        return Literal(type, None, False, lambda literal: _of_bytes(_bytes(text, begin + 1, end - 1), literal.type))
    if end - begin <= 40 and text[begin:end].strip() == ELIDED:
        return Literal(type, None, True)
    _check(text, begin, end, type, shape)
    plain = text[begin:end] if not shape and end - begin < 40 and "x" not in text[begin:end] and "(" not in text[begin:end] else None
    if end - begin <= SHORT:
        body = text[begin:end]
        return Literal(type, plain, False, lambda literal: _of_text(body, literal.type))
    return Literal(type, None, False, lambda literal: _of_text(text[begin:end], literal.type))


def shape_of(type: Type) -> tuple[int, ...] | None:
    """The sizes of a type that a constant may have, None for any other."""
    if isinstance(type, TensorType):
        return type.dims() if type.is_static else None
    m = INDEX.fullmatch(type.name) if isinstance(type, NamedType) else None
    return tuple(int(size) for size in m[1].split("x")[:-1]) if m is not None else None


def dtype_of_literal(type: Type) -> DType:
    """The element type of a constant; an ``index`` is a 64-bit integer."""
    return type.dtype if isinstance(type, TensorType) else DTYPES["s64"]


def _check_blob(text: str, begin: int, end: int, type: Type, shape: tuple[int, ...], ahead: int = 0) -> None:
    """Check the hexadecimal digits and their number: bytes ``ahead``, and then all elements, or one for all of them."""
    dtype, count = dtype_of_literal(type), prod(shape)
    if not text.startswith("0x", begin):
        raise Refused(LITERAL, "a string literal must be hexadecimal digits after 0x", begin, max(1, end - begin))
    sizes = {count * dtype.storage, dtype.storage}
    if dtype.kind == "pred":
        sizes.add((count + 7) // 8)
    size, odd = divmod(end - begin - 2 - 2 * ahead, 2)
    if odd or size not in sizes:
        raise Refused(LITERAL, f"{size} bytes of hexadecimal data are not the {count * dtype.storage} of {type}", begin - 1,
                      max(1, min(end - begin, 80)))
    bad = re.compile(r"[^0-9a-fA-F]").search(text, begin + 2, end)
    if bad is not None:
        raise Refused(LITERAL, f"{bad[0]!r} is no hexadecimal digit", bad.start())


def _check(text: str, begin: int, end: int, type: Type, shape: tuple[int, ...]) -> None:
    """Check the elements and brackets of a literal."""
    body = text[begin:end]
    dtype = dtype_of_literal(type)
    if not body.strip():
        if 0 not in shape:
            raise Refused(LITERAL, f"no elements, but {type} has some", begin - 1)
        return
    if "[" not in body and "]" not in body:
        if _row_of(dtype).fullmatch(body) is None or ("," in body and "(" not in body):
            _explain(text, begin, end, type)
    elif not _has_shape(body, dtype, shape):
        _explain(text, begin, end, type)
    if dtype.kind != "pred":
        _check_range(text, begin, end, type)


def _check_range(text: str, begin: int, end: int, type: Type) -> None:
    """Check that integers, and the bits of hexadecimal floats, fit their type; a signless type takes any number of as many bits."""
    dtype = dtype_of_literal(type)
    bits = dtype.bits // 2 if dtype.is_complex else dtype.bits
    high = 1 << (bits - 1 if isinstance(type, NamedType) else bits)  # an index is signed
    low = -(1 << bits - 1) if dtype.kind == "int" else 0
    for m in _doubtful(dtype).finditer(text, begin, end):
        word, length = m[0], len(m[0])
        if dtype.kind == "uint" and word.startswith("-"):
            raise Refused(LITERAL, f"expected unsigned integer elements, but parsed negative value {word[:40]}", m.start(), length)
        if not low <= _integer(word) < high:
            what = "integer" if dtype.is_integer else "hexadecimal float"
            raise Refused(LITERAL, f"{what} constant out of range for type {dtype.name}: {word[:40]}", m.start(), length)


@cache
def _doubtful(dtype: DType) -> re.Pattern[str]:
    """Numbers that may not fit a type: hexadecimal ones, integers of as many digits as the largest, negative ones of an unsigned type."""
    if not dtype.is_integer:
        return re.compile(r"0x[0-9a-fA-F]+")
    return re.compile(rf"-?0x[0-9a-fA-F]+|-?\d{{{len(str(1 << dtype.bits - 1))},}}" + (r"|-\d+" if dtype.kind == "uint" else ""))


def _integer(word: str) -> int:
    """A number in digits; of one that has far more than 64 bits the first ones, which are too large for every type too."""
    digits = word.removeprefix("-")
    value = int(digits.removeprefix("0x").lstrip("0")[:30] or "0", 16 if "x" in digits else 10)
    return -value if word.startswith("-") else value


def _has_shape(body: str, dtype: DType, shape: tuple[int, ...]) -> bool:
    """Whether brackets and elements fit a shape."""
    if not shape:
        return False
    if 0 in shape:
        return not body.replace("[", "").replace("]", "").replace(",", "").strip()
    fits, last = _row_of(dtype).fullmatch, shape[-1] - 1
    commas = 2 * last + 1 if dtype.is_complex else last
    return is_nested(body, ROW, shape[:-1], lambda row: row.count(",") == commas and fits(row) is not None)


@cache
def _row_of(dtype: DType) -> re.Pattern[str]:
    """Elements of a type between commas."""
    if dtype.is_complex:
        number = rf"(?:{_FLOAT})"
        value = rf"\(\s*{number}\s*,\s*{number}\s*\)"
    elif dtype.is_float:
        value = rf"(?:{_FLOAT})"
    else:
        value = r"(?:true|false|[01]|-1)" if dtype.kind == "pred" else _INTEGER
    return re.compile(rf"\s*{value}\s*(?:,\s*{value}\s*)*+", re.ASCII)


def _explain(text: str, begin: int, end: int, type: Type) -> None:
    """Refuse a literal, at its first element or bracket that is wrong."""
    dtype = dtype_of_literal(type)
    fits = _row_of(dtype).fullmatch
    for m in re.compile(r"\([^()]*\)|[^\s,\[\]()]+|[()]").finditer(text, begin, end):
        if fits(m[0]) is None:
            word = m[0]
            if ELEMENT.fullmatch(word) is None:
                what = "expected element literal of primitive type"
            elif dtype.is_float:
                what = f"expected floating-point elements for {type}"
            else:
                what = f"expected elements of type {dtype.name}, but parsed {word[:40]}"
            raise Refused(LITERAL, f"{what}, but here is {word[:40]!r}" if "parsed" not in what else what, m.start(), len(word))
    raise Refused(LITERAL, f"the brackets of the value do not give the shape of {type}", begin, max(1, min(end - begin, 80)))


def _bytes(text: str, begin: int, end: int) -> bytes:
    return bytes.fromhex(text[begin + 2:end])


def _room(type: Type) -> tuple[int, ...]:
    """The shape of the array that a literal becomes. Raises ValueError where it is too large."""
    shape = shape_of(type) or ()
    if prod(shape) > MAX_ELEMENTS:
        raise ValueError(f"a constant of type {type} is too large")
    require(prod(shape) * dtype_of_literal(type).storage, f"a constant of type {type}")
    return shape


def _frozen(array: Any, shape: tuple[int, ...]) -> Any:
    """The array in a shape, read-only; one element stands for all."""
    made = np.broadcast_to(array.reshape(()), shape) if array.size == 1 else array.reshape(shape)
    made.flags.writeable = False
    return made


def _of_bytes(data: bytes, type: Type) -> Any:
    """The array of little-endian bytes. Raises ValueError where their number does not fit."""
    shape, dtype = _room(type), dtype_of_literal(type)
    count = prod(shape)
    if dtype.kind == "pred":
        raw: Array = np.frombuffer(data, np.uint8)
        is_one = len(data) == 1 and (count > 8 or data[0] in (0, 1, 0xFF))  # one byte stands for all
        if len(data) != count and not is_one:  # bit-packed, low bit first, as MLIR wrote it to 2025
            raw = np.unpackbits(raw, bitorder="little")[:count]
        return _frozen(raw.astype(bool), shape)
    if dtype.bits < 8:
        return _frozen(narrow(np.frombuffer(data, np.uint8), dtype), shape)
    return _frozen(np.frombuffer(data, dtype.numpy()), shape)


def _of_text(body: str, type: Type) -> Any:
    """The array of a checked text."""
    shape, dtype = _room(type), dtype_of_literal(type)
    words = VALUE.findall(body)
    if dtype.kind == "pred":
        array = np.array([word in ("true", "1", "-1") for word in words], dtype=bool)
    elif dtype.is_complex:
        parts = _floats(words, DTYPES["f32"] if dtype.bits == 64 else DTYPES["f64"])
        array = parts.view(dtype.numpy())
    elif dtype.is_float:
        array = _floats(words, dtype)
    else:
        mask = (1 << dtype.bits) - 1
        raw = np.array([int(word, 0 if "x" in word else 10) & mask for word in words], dtype=np.uint64)
        array = _integers(raw, dtype)
    return _frozen(array if array.size else np.zeros(prod(shape), dtype.numpy()), shape)


def _integers(raw: Any, dtype: DType) -> Any:
    """Integers from the low bits of 64-bit words."""
    if dtype.bits < 8:
        return narrow(raw.astype(np.uint8), dtype)
    return raw.astype(f"uint{dtype.bits}").view(dtype.numpy())


def _floats(words: list[str], dtype: DType) -> Any:
    """Floats from decimal numbers, and from hexadecimal ones, which are bits."""
    hexes = [(i, word) for i, word in enumerate(words) if "x" in word]
    for i, _ in hexes:
        words[i] = "0"
    with np.errstate(over="ignore", invalid="ignore"):
        array = _narrowed(np.array([float(word) for word in words], dtype=np.float64), dtype)
    if hexes:
        view = array.view(f"uint{8 * dtype.storage}")
        for i, word in hexes:
            view[i] = int(word, 16) & ((1 << dtype.bits) - 1)
    return array


def _narrowed(wide: Any, dtype: DType) -> Any:
    """Doubles as another type, rounded once.

    numpy and ml_dtypes round to the types below f16 by way of f32. There a double that f32 does not have becomes the neighbour whose last
    bit is 1: it is never a tie, and on the same side of every tie.
    """
    if dtype.numpy() in (np.float64, np.float32, np.float16):
        return wide.astype(dtype.numpy())
    single = wide.astype(np.float32)
    off = np.isfinite(single) & (single.astype(np.float64) != wide) & (single.view(np.uint32) & 1 == 0)
    outward = np.abs(single.astype(np.float64)) < np.abs(wide)
    bits = np.where(outward, single.view(np.uint32) + 1, single.view(np.uint32) - 1)
    return np.where(off, bits.astype(np.uint32), single.view(np.uint32)).view(np.float32).astype(dtype.numpy())
