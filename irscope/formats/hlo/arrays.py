"""Literal text to numpy arrays and back; the only file of the reader that needs numpy, imported with the first array."""
from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod
from typing import Any

from irscope.graph import DTYPES, DType, TensorType, TupleType, Type, dtype_of
from irscope.lazy import Array, np
from irscope.source.budget import require, require_nodes

VALUE = re.compile(r"-?nan\(0x[0-9a-fA-F]+\)|[-+\w.]+", re.ASCII)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
MAX_ELEMENTS = 1 << 31
"""The maximal size of the array of one constant."""
MANY_BRACES = 1 << 16
"""Empty rows that are written: an array without elements may have a billion of them."""


def array_of(text: str, type: Type) -> Any:
    """The array of a checked literal text, in logical order whatever the layout; tuples give tuples."""
    if "/" in text:
        text = COMMENT.sub(" ", text)
    values = iter(VALUE.findall(text))
    return in_tuples(iter([_array(values, leaf) for leaf in type.leaves()]), type)


def in_tuples(leaves: Iterator[object], type: Type) -> object:
    """``leaves`` in the structure of a type: nested tuples for tuple types, the next leaf for any other type."""
    if isinstance(type, TupleType):
        return tuple(in_tuples(leaves, element) for element in type.elements)
    return next(leaves)


def _array(values: Any, type: Type) -> object:
    if not isinstance(type, TensorType):
        raise ValueError(f"a constant of type {type} has no array")
    dims = type.dims()
    count = type.elements
    require_nodes(count, f"a constant of type {type}", MAX_ELEMENTS, "elements")
    dtype = type.dtype
    if dtype.is_complex:
        words = [v for _, v in zip(range(2 * count), values, strict=False)]
        first = _reals(words, DTYPES["f32" if dtype.name == "c64" else "f64"]).view(dtype.numpy())
    else:
        words = [v for _, v in zip(range(count), values, strict=False)]
        first = _reals(words, dtype) if dtype.kind == "float" else _integers(words, dtype)
    out = first
    if len(first) < count:  # a bare number is the first element, and the others are 0
        require(count * first.dtype.itemsize, f"a constant of type {type}")
        out = np.zeros(count, first.dtype)
        out[:len(first)] = first
    out = out.reshape(dims)
    out.flags.writeable = False
    return out


def _reals(words: list[str], dtype: DType) -> Any:
    payloads = [(i, w) for i, w in enumerate(words) if "(" in w]
    for i, _ in payloads:
        words[i] = "nan"
    out = np.array([float(w) for w in words], dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        out = out.astype(dtype.numpy())
    for i, word in payloads:
        size = out.dtype.itemsize
        bits = out.view(f"u{size}")
        payload = int(word[word.index("(") + 1:-1], 16)
        exponent = (1 << (8 * size - 1)) - (1 << dtype.fraction)
        bits[i] = exponent | payload | (1 << (8 * size - 1) if word.startswith("-") else 0)
    return out


def _integers(words: list[str], dtype: DType) -> Any:
    if dtype.kind == "pred":
        return np.array([w == "true" or (w != "false" and int(w) != 0) for w in words], dtype=np.bool_)
    numbers = [int(w) for w in words]
    wide = np.uint64 if any(n >= 1 << 63 for n in numbers) else np.int64
    if wide is np.uint64:
        numbers = [n & ((1 << 64) - 1) for n in numbers]
    return np.array(numbers, dtype=wide).astype(dtype.numpy())


def narrow(raw: Array, dtype: DType) -> Array:
    """An array of an element type of less than 8 bits, from the low bits of one uint8 for each element."""
    bits = raw & ((1 << dtype.bits) - 1)
    if dtype.is_integer:
        sign = (bits >> (dtype.bits - 1)) & 1 if dtype.kind == "int" else bits & 0
        return (bits.astype(np.int64) - (sign.astype(np.int64) << dtype.bits)).astype(dtype.numpy())
    return bits.astype(np.uint8).view(dtype.numpy())


def text_of(value: Any, type: Type) -> str:
    """The text of an array (or tuple of arrays): braces by dimension, numbers as short as reading them back allows."""
    if isinstance(type, TupleType):
        return "(" + ", ".join(text_of(v, t) for v, t in zip(value, type.elements, strict=True)) + ")"
    if not isinstance(type, TensorType):
        raise ValueError(f"a constant of type {type} has no text")
    array = np.asarray(value).reshape(type.dims())
    words = [_word(x, type.dtype) for x in array.reshape(-1)]
    return _braced(words, array.shape)


def _braced(words: list[str], shape: tuple[int, ...]) -> str:
    if not shape:
        return words[0]
    if not words and prod(shape[:shape.index(0)]) > MANY_BRACES:
        return "{...}"  # no value is left out
    groups = words
    for level, size in enumerate(reversed(shape)):
        count = 1
        for d in shape[:len(shape) - 1 - level]:
            count *= d
        groups = [_brace(groups[i * size:(i + 1) * size], level) for i in range(count)]
    return groups[0]


def _brace(parts: list[str], level: int) -> str:
    return "{" + ", ".join(parts) + "}" if level == 0 or not parts else "{ " + ", ".join(parts) + " }"


def _word(x: Any, dtype: DType) -> str:
    if dtype.kind == "pred":
        return "true" if x else "false"
    if dtype.is_integer:
        return str(int(x))
    if dtype.is_complex:
        part = np.float32 if dtype.name == "c64" else np.float64
        return f"({_real_word(part(x.real))}, {_real_word(part(x.imag))})"
    return _real_word(x)


def _real_word(x: Any) -> str:
    with np.errstate(invalid="ignore"):
        missing = np.isnan(x)
    if missing:
        return _nan_word(np.asarray(x))
    number = float(x)
    if number in (float("inf"), float("-inf")):
        return "inf" if number > 0 else "-inf"
    if isinstance(x, np.float64):
        text = repr(number)
    elif isinstance(x, np.float32):
        text = str(x)
    else:
        with np.errstate(over="ignore"):
            text = next(t for t in (f"{number:.{p}g}" for p in range(1, 18)) if type(x)(float(t)) == x)
    # "-0" would be read as the integer 0, and lose its sign.
    return text[:-2] if text.endswith(".0") and number != 0 else "-0.0" if number == 0 and np.signbit(x) else "0" if number == 0 else text


def _nan_word(x: Any) -> str:
    size = x.dtype.itemsize
    if size == 1:
        return "-nan" if dtype_of(x.dtype).has_negation and int(x.reshape(1).view("u1")[0]) >> 7 else "nan"
    mantissa = dtype_of(x.dtype).fraction
    bits = int(x.reshape(1).view(f"u{size}")[0])
    payload = bits & ((1 << mantissa) - 1)
    sign = "-" if bits >> (8 * size - 1) else ""
    return f"{sign}nan" if payload == 1 << (mantissa - 1) else f"{sign}nan({payload:#x})"
