"""How programs find their operands, and what stands behind their results: the circumstances in which a kernel can go wrong."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.graph import DTYPES
from tests.grid.text import Shape, Text, Value

Operand = Callable[[Text, str, Shape, "list[Value]"], Value]
"""``form(text, dtype, shape, more)``: an operand; what must be read beside it is appended to ``more``, the program's further results."""


def plain(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """A parameter."""
    return text.parameter(dtype, shape)


def framed(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """A value of the program that a padded convolution reads too, so that it lies in the middle of a halo."""
    if not shape or not (DTYPES[dtype].is_float or DTYPES[dtype].is_integer):
        return stored(text, dtype, shape, more)
    room = image_shape(shape)
    value = text.changed(text.parameter(dtype, room))
    more.append(next_convolution(text, value))
    return text.reshape(value, shape)


def stored(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """A value of the program that is a result too: read twice."""
    value = text.changed(text.parameter(dtype, shape))
    more.append(value)
    return value


def strided(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """Every second element along the last dimension, from the second on."""
    if not shape:
        return inner(text, dtype, shape, more)
    value = text.parameter(dtype, (*shape[:-1], 2 * shape[-1] + 1))
    return text.slice(value, [*((0, n, 1) for n in shape[:-1]), (1, 2 * shape[-1] + 1, 2)])


def inner(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """The middle of a larger array: it begins where no vector is aligned."""
    if not shape:
        return text.reshape(text.slice(text.parameter(dtype, (3,)), [(1, 2, 1)]), ())
    value = text.parameter(dtype, tuple(n + 2 for n in shape))
    return text.slice(value, [(1, n + 1, 1) for n in shape])


def transposed(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """The transpose of a parameter."""
    order = tuple(reversed(range(len(shape))))
    value = text.parameter(dtype, shape[::-1])
    return text.transpose(value, order) if len(shape) > 1 else value


def backwards(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """A parameter read from its end along the last dimension: strides below zero."""
    value = text.parameter(dtype, shape)
    return text.like("reverse", value, attrs=f"dimensions={{{len(shape) - 1}}}") if shape else value


def repeated(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """A row that is the same for all rows: strides of zero."""
    if not shape:
        return plain(text, dtype, shape, more)
    return text.broadcast(text.parameter(dtype, shape[-1:]), shape, (len(shape) - 1,))


def fixed(text: Text, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """A weight: known before the program is compiled."""
    return text.parameter(dtype, shape, fixed=True)


FIRST: dict[str, Operand] = {f.__name__: f for f in (plain, framed, stored, strided, inner, transposed, backwards, repeated)}
"""Forms of a program's first operand."""

OTHERS: dict[str, Operand | None] = {**{f.__name__: f for f in (plain, fixed, stored, strided, transposed)}, "aliased": None}
"""Forms of its other operands; ``aliased`` ones lie in the memory of the first."""


def aliased(text: Text, value: Value, dtype: str, shape: Shape, more: list[Value]) -> Value:
    """An operand in the memory of another: the same value where the types are the same, else the same elements seen otherwise."""
    size, wanted = prod(value.shape), prod(shape)
    if value.dtype != dtype or not size:
        return plain(text, dtype, shape, more)
    if value.shape == shape:
        return value
    flat = text.reshape(value, (size,))
    if wanted > size:
        times = -(-wanted // size)
        flat = text.reshape(text.broadcast(flat, (times, size), (1,)), (times * size,))
        size *= times
    return text.reshape(text.slice(flat, [(0, wanted, 1)]) if wanted < size else flat, shape)


def image_shape(shape: Shape) -> Shape:
    """An image of the same elements: a batch, one or two spatial dimensions, channels."""
    return shape if len(shape) in (3, 4) else (1, *shape, 1) if len(shape) < 3 else (1, prod(shape[:-2]), *shape[-2:])


def next_convolution(text: Text, image: Value) -> Value:
    """A padded convolution that reads the whole image; its padding differs from side to side."""
    batch, *spatial, channels = image.shape
    kernel = text.parameter(image.dtype, (*(3 for _ in spatial), channels, 2))
    numbers = "".join(map(str, range(len(spatial))))
    window = f"size={'x'.join('3' for _ in spatial)} pad={'x'.join(('1_1', '0_2')[d % 2] for d in range(len(spatial)))}"
    return text.op("convolution", image.dtype, (batch, *spatial, 2), image, kernel,
                   attrs=f"window={{{window}}}, dim_labels=b{numbers}f_{numbers}io->b{numbers}f")


# ---- what is done to a result in the same kernel

Epilogue = Callable[[Text, Value, Value | None, "list[Value]"], Value]
NARROWED = {"f64": "f32", "f32": "bf16", "f16": "f8e5m2", "bf16": "f8e4m3fn", "s64": "s16", "s32": "s8", "s16": "s8", "u64": "u16", "u32": "u8",
            "u16": "u8", "s8": "f16", "u8": "s4", "pred": "s8", "c128": "c64", "s4": "s32", "u4": "bf16"}
"""Another element type for every one; the other 8-bit floats become f32."""


def unchanged(text: Text, value: Value, first: Value | None, more: list[Value]) -> Value:
    """Nothing."""
    return value


def residual(text: Text, value: Value, first: Value | None, more: list[Value]) -> Value:
    """The first operand is added, where it is of the same type; else an array of its own."""
    same = first is not None and first.type == value.type
    return text.sum(value, first if same and first is not None else text.parameter(value.dtype, value.shape))


def biased(text: Text, value: Value, first: Value | None, more: list[Value]) -> Value:
    """A row is added to all rows."""
    if not value.shape:
        return residual(text, value, None, more)
    return text.sum(value, repeated(text, value.dtype, value.shape, more))


def narrowed(text: Text, value: Value, first: Value | None, more: list[Value]) -> Value:
    """Converted to another element type, mostly a narrower one; of a complex number that has no narrower one, the imaginary part."""
    if value.dtype == "c64":
        return text.op("imag", "f32", value.shape, value)
    return text.op("convert", NARROWED.get(value.dtype, "f32"), value.shape, value)


EPILOGUES: dict[str, Epilogue] = {f.__name__: f for f in (unchanged, residual, biased, narrowed)}

# ---- where a result goes

Behind = Callable[[Text, Value, "list[Value]"], Value]


def alone(text: Text, value: Value, more: list[Value]) -> Value:
    """It is the program's result, with nothing behind it but the end of the memory."""
    return value


def padded(text: Text, value: Value, more: list[Value]) -> Value:
    """It lies in the middle of a larger array."""
    value = lined(text, value)
    shape = tuple(n + 3 for n in value.shape)
    return text.op("pad", value.dtype, shape, value, text.constant(value.dtype, "1"), attrs="padding=" + "x".join("1_2" for _ in shape))


def joined(text: Text, value: Value, more: list[Value]) -> Value:
    """Another array lies behind each of its rows."""
    return _concatenated(text, lined(text, value), False)


def joined_behind(text: Text, value: Value, more: list[Value]) -> Value:
    """Another array lies before each of its rows."""
    return _concatenated(text, lined(text, value), True)


def convolved(text: Text, value: Value, more: list[Value]) -> Value:
    """A padded convolution wants it in a halo, and it is a result too."""
    if not value.kind.is_float and not value.kind.is_integer:
        return padded(text, value, more)
    value = lined(text, value)
    more.append(next_convolution(text, text.reshape(value, image_shape(value.shape))))
    return value


def haloed(text: Text, value: Value, more: list[Value]) -> Value:
    """A padded convolution alone reads it."""
    if not value.kind.is_float and not value.kind.is_integer:
        return joined(text, value, more)
    value = lined(text, value)
    return next_convolution(text, text.reshape(value, image_shape(value.shape)))


def read(text: Text, value: Value, more: list[Value]) -> Value:
    """A reduction reads it, and it is a result too."""
    value = lined(text, value)
    more.append(text.reduce(value, [0], "or" if value.dtype == "pred" else "add"))
    return value


def turned(text: Text, value: Value, more: list[Value]) -> Value:
    """Its transpose is the result."""
    value = lined(text, value)
    return text.transpose(value, tuple(reversed(range(len(value.shape)))))


def updated(text: Text, value: Value, more: list[Value]) -> Value:
    """It is written into a larger array, at a place that is computed."""
    value = lined(text, value)
    large = text.changed(text.parameter(value.dtype, tuple(n + 2 for n in value.shape)))
    starts = [text.parameter("s32", (), -1, 3) for _ in value.shape]
    return text.op("dynamic-update-slice", value.dtype, large.shape, large, value, *starts)


def _concatenated(text: Text, value: Value, behind: bool) -> Value:
    other = text.parameter(value.dtype, (*value.shape[:-1], 3))
    parts = (other, value) if behind else (value, other)
    return text.op("concatenate", value.dtype, (*value.shape[:-1], value.shape[-1] + 3), *parts, attrs=f"dimensions={{{len(value.shape) - 1}}}")


def lined(text: Text, value: Value) -> Value:
    """A scalar as an array of one element."""
    return value if value.shape else text.reshape(value, (1,))


BEHIND: dict[str, Behind] = {f.__name__: f for f in (alone, padded, joined, joined_behind, convolved, haloed, read, turned, updated)}
