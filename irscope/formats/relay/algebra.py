"""Tensor algebra with Relay's rules: equal element types, axes counted from the end, named layouts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

from irscope.formats.relay.types import PRINTED, dtype_named
from irscope.graph import Builder, DType, Node, TensorType
from irscope.lazy import Array, np
from irscope.ops.faults import TypeFault
from irscope.ops.tensors import Shape, Tensors

AXIS = re.compile(r"(\d*)([A-Za-z])")
MAX_KNOWN = 4096
"""Constants with more elements than this are not computed while types are inferred."""
MAX_RANK = 64
"""The most dimensions of an array of numpy."""


class Relay(Tensors):
    """The builder that operators use."""

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        self._known: dict[Node, Array | None] = {}

    # ------------------------------------------------------------------ facts

    def dtype_word(self, word: object, default: DType | None = None) -> DType:
        """The element type that an attribute names; None and the empty string mean the default."""
        if word is None or word == "":
            if default is None:
                raise TypeFault("the element type must be given")
            return default
        found = dtype_named(str(word))
        if found is None:
            raise TypeFault(f"`{word}` is not an element type")
        return found

    def axis(self, x: Node | int, axis: int) -> int:
        """A dimension counted from the front. ``x`` is the tensor or its rank."""
        rank = x if isinstance(x, int) else self.rank(x)
        if not -rank <= axis < rank:
            raise TypeFault(f"axis {axis} is out of range for {rank} dimension{'s' if rank != 1 else ''}")
        return axis % rank

    def axes(self, x: Node, axis: Any, exclude: bool = False) -> list[int]:
        """The dimensions of a reduction: None are all, ``exclude`` means all but those."""
        rank = self.rank(x)
        if axis is None or (axis == [] and not exclude):
            return list(range(rank))
        given = [self.axis(x, a) for a in (axis if isinstance(axis, list | tuple) else [axis])]
        return [d for d in range(rank) if d not in given] if exclude else sorted(set(given))

    def flat_or_axis(self, x: Node, axis: int | None) -> tuple[Node, int]:
        """The tensor and an axis, counted from the front; for None the flattened tensor and 0."""
        return (self.reshape(x, (prod(self.shape(x)),)), 0) if axis is None else (x, self.axis(x, axis))

    def known(self, x: Node) -> Array | None:
        """The value of a node that depends only on constants, or None."""
        stack = [x]
        while stack:
            node = stack[-1]
            if node in self._known:
                stack.pop()
                continue
            if node.op.name == "constant":
                literal = node.attrs["literal"]
                small = self.type(node).elements <= MAX_KNOWN and not literal.elided
                self._known[node] = literal.value() if small else None
                continue
            waiting = [o for o in node.operands if o not in self._known]
            if waiting:
                stack.extend(waiting)
                continue
            self._known[node] = self._computed(node)
        return self._known[x]

    def _computed(self, node: Node) -> Array | None:
        values = [self._known[o] for o in node.operands]
        if node.op.reference is None or node.bodies or node.op.name == "parameter" or any(v is None for v in values):
            return None
        if not isinstance(node.type, TensorType) or node.type.elements > MAX_KNOWN or node.type.rank > MAX_RANK:
            return None
        return np.asarray(node.op.reference(None, node, *values))

    def array(self, value: object, dtype: DType) -> Node:
        """A constant. Raises TypeFault for a number outside the element type."""
        wrong = isinstance(value, float) and not dtype.is_float and not dtype.is_complex and not dtype.lowest <= value <= dtype.highest
        if wrong or (isinstance(value, int) and not -(1 << 63) <= value < 1 << 64):
            raise TypeFault(f"{value} does not fit {word_of(dtype)}")
        with np.errstate(over="ignore"):  # a bound beyond the range of a narrow float becomes infinite
            return super().array(value, dtype)

    def single(self, x: Node, what: str) -> int:
        """The integer value of a constant operand. Raises TypeFault as :meth:`ints` does, and where it is not a single number."""
        found = self.ints(x, what)
        if len(found) != 1:
            raise TypeFault(f"{what} is one number, got {shape_text(self.shape(x))}")
        return found[0]

    def ints(self, x: Node, what: str) -> list[int]:
        """The integers in a constant operand. Raises TypeFault when they depend on data."""
        value = self.known(x)
        if value is None:
            raise TypeFault(f"{what} depends on data: irscope compiles programs whose shapes are known")
        if not np.isfinite(value).all():
            raise TypeFault(f"{what} is {value.reshape(-1)[0]}, not an integer")
        return [int(v) for v in value.reshape(-1)]

    # ------------------------------------------------------------------ rules

    def same_dtype(self, x: Node, y: Node) -> None:
        """Check that two element types are equal: Relay never promotes."""
        if self.dtype(x) is not self.dtype(y):
            raise TypeFault(f"equal dtypes are needed, got {word_of(self.dtype(x))} and {word_of(self.dtype(y))}")

    def binary(self, name: str, x: Node, y: Node) -> Node:
        """An elementwise operator of two operands of one element type, which are broadcast to one shape."""
        self.same_dtype(x, y)
        return super().binary(name, x, y)

    def compare(self, direction: str, x: Node, y: Node) -> Node:
        """``direction`` is EQ NE LT LE GT GE; both operands are of one element type."""
        self.same_dtype(x, y)
        return super().compare(direction, x, y)

    def together(self, *xs: Node) -> list[Node]:
        """All operands broadcast to their common shape. Raises TypeFault that names the axes that do not fit."""
        shape: tuple[int, ...] = ()
        for x in xs:
            shape = self.broadcast_two(shape, self.shape(x))
        return [self.broadcast_to(x, shape) for x in xs]

    @staticmethod
    def broadcast_two(a: Shape, b: Shape) -> Shape:
        """The broadcast shape of two."""
        out: list[int] = []
        for i in range(1, max(len(a), len(b)) + 1):
            m, n = (a[-i] if i <= len(a) else 1), (b[-i] if i <= len(b) else 1)
            if m != n and 1 not in (m, n):
                raise TypeFault(f"cannot broadcast {shape_text(a)} with {shape_text(b)}: axis {-i} is {m} and {n}")
            out.append(n if m == 1 else m)
        return tuple(reversed(out))

    def along(self, v: Node, x: Node, axis: int) -> Node:
        """A vector as long as a dimension of ``x``, broadcast over the others."""
        d = self.axis(x, axis)
        n = self.shape(x)[d]
        if self.rank(v) == 0 or (self.rank(v) == 1 and self.shape(v)[0] == 1 and n != 1):
            return self.broadcast_to(self.reshape(v, ()), self.shape(x))
        if self.rank(v) != 1 or self.shape(v)[0] != n:
            raise TypeFault(f"data axis {axis} is {n}, but the operand for it is {shape_text(self.shape(v))}")
        return self.emit("broadcast", (v,), {"dimensions": (d,)}, type=self.type(x).with_dtype(self.dtype(v)))

    # ------------------------------------------------------------------ layouts

    def to_layout(self, x: Node, source: str, target: str) -> Node:
        """``NCHW`` to ``NHWC``, ``NCHW8c`` and back: each letter is a dimension, ``8c`` its inner part of 8."""
        old, new = layout_axes(source), layout_axes(target)
        shape = self.shape(x)
        if len(old) != len(shape):
            raise TypeFault(f"layout {source} has {len(old)} axes, the data is {shape_text(shape)}")
        if source == target:
            return x
        for (_, factor), n in zip(old, shape, strict=True):
            if factor and factor != n:
                raise TypeFault(f"layout {source} has a part of {factor}, the data is {shape_text(shape)}")
        letters = [letter for letter, factor in old if not factor]
        if sorted(letters) != sorted(letter for letter, factor in new if not factor):
            raise TypeFault(f"layouts {source} and {target} have different axes")
        # Move the parts next to their whole, then merge them.
        order, sizes = [], []
        for letter in letters:
            places = [i for i, (name, factor) in enumerate(old) if name.upper() == letter and (not factor or name.islower())]
            order += places
            sizes.append(prod(shape[i] for i in places))
        if len(order) != len(old):
            raise TypeFault(f"layout {source} has a part of an axis that it does not have")
        x = self.reshape(self.transpose(x, order), tuple(sizes))
        split: list[int] = []
        names: list[tuple[str, int]] = []
        for letter, size in zip(letters, sizes, strict=True):
            parts = [(name, factor) for name, factor in new if factor and name.upper() == letter]
            inner = prod(factor for _, factor in parts)
            if size % inner:
                raise TypeFault(f"axis {letter} is {size}, not a multiple of {inner} as layout {target} requires")
            names += [(letter, 0), *parts]
            split += [size // inner, *(factor for _, factor in parts)]
        if sorted(names) != sorted(new):
            raise TypeFault(f"layout {target} has a part of an axis that it does not have")
        x = self.reshape(x, tuple(split))
        return self.transpose(x, [names.index(axis) for axis in new])


def layout_axes(layout: str | None) -> list[tuple[str, int]]:
    """``NCHW16c`` as (letter, size) pairs; whole axes have size 0. Raises TypeFault for an invalid layout."""
    if layout is None or not re.fullmatch(r"(?:\d{0,9}[A-Za-z])+", layout):
        raise TypeFault(f"`{layout}` is not a layout")
    return [(letter, int(size or 0)) for size, letter in AXIS.findall(layout)]


def plain_layout(layout: str) -> str:
    """The whole axes alone: ``NCHW16c`` is ``NCHW``."""
    return "".join(letter for letter, size in layout_axes(layout) if not size)


def shape_text(shape: Sequence[object]) -> str:
    """``(4, 3)``."""
    return f"({', '.join(map(str, shape))})"


def word_of(dtype: DType) -> str:
    """Relay's word for an element type."""
    return PRINTED.get(dtype.name, dtype.name)


MAX_TABLE = 1 << 24
"""The maximal number of entries of a table that an expansion computes (128 MiB): a text that needs more is a mistake."""
MAX_STEPS = 4096
"""The maximal number of steps that an expansion unrolls, each into several nodes."""


def table_of(entries: int) -> int:
    """The number of entries of a table. Raises TypeFault where it is too large."""
    if entries > MAX_TABLE:
        raise TypeFault(f"this takes a table of {entries} numbers, more than {MAX_TABLE}")
    return entries


def steps_of(count: int) -> int:
    """The number of steps of an expansion. Raises TypeFault where they are too many."""
    if count > MAX_STEPS:
        raise TypeFault(f"this unrolls {count} steps, more than {MAX_STEPS}")
    return count


def each(values: object, n: int) -> tuple[int, ...]:
    """Expand one number for all spatial dimensions, or one for each."""
    given = tuple(values) if isinstance(values, list | tuple) else (values,)
    if not all(isinstance(v, int) for v in given):
        raise TypeFault("a size is left open")
    if len(given) not in (1, n):
        raise TypeFault(f"{shape_text(given)} has {len(given)} numbers; {n} dimensions take {'1' if n == 1 else f'1 or {n}'}")
    return given * n if len(given) == 1 else given


def paddings(values: object, n: int) -> list[tuple[int, int]]:
    """One number, one a dimension, or all lows and then all highs."""
    given = tuple(values) if isinstance(values, list | tuple) else (values,)
    if len(given) == 1:
        return [(given[0], given[0])] * n
    if len(given) == n:
        return [(p, p) for p in given]
    if len(given) != 2 * n:
        raise TypeFault(f"padding has {len(given)} numbers; {n} dimensions take 1, {n} or {2 * n}")
    return [(given[i], given[n + i]) for i in range(n)]
