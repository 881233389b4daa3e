"""Attribute values that are more than a number or a tuple: windows, convolution dimensions, literals."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from irscope.graph import TensorType
from irscope.lazy import Array
from irscope.ops.faults import TypeFault
from irscope.source.budget import require_nodes

if TYPE_CHECKING:

    from irscope.graph import Type


NUMPY_RANK = 64
"""The most dimensions of an array of numpy."""
LONGEST = 1 << 62
"""A dimension with its padding and dilation has fewer positions: sums of two of them still fit in 64 bits."""


@dataclass(frozen=True, slots=True)
class Window:
    """A sliding window, one entry per dimension. Negative padding crops (the dilated operand)."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    pad_low: tuple[int, ...]
    pad_high: tuple[int, ...]
    lhs_dilate: tuple[int, ...]
    rhs_dilate: tuple[int, ...]
    rhs_reversal: tuple[bool, ...]

    @staticmethod
    def make(size: tuple[int, ...], stride: tuple[int, ...] | None = None, pad: tuple[tuple[int, int], ...] | None = None,
             lhs_dilate: tuple[int, ...] | None = None, rhs_dilate: tuple[int, ...] | None = None,
             rhs_reversal: tuple[bool, ...] | None = None) -> Window:
        """A window with HLO's defaults: stride and dilation 1, no padding, no reversal."""
        n = len(size)
        one, pad = (1,) * n, pad or ((0, 0),) * n
        return Window(size, stride or one, tuple(p[0] for p in pad), tuple(p[1] for p in pad), lhs_dilate or one, rhs_dilate or one,
                      rhs_reversal or (False,) * n)

    def output_size(self, dimension: int, size: int) -> int:
        """The number of windows along a dimension of ``size`` elements (XLA's ``window_util``: dilated + padding - dilated window).

        Raises TypeFault where positions in the padded dimension do not fit in 64 bits.
        """
        dilated = (size - 1) * self.lhs_dilate[dimension] + 1 if size > 0 else 0
        padded = dilated + self.pad_low[dimension] + self.pad_high[dimension]
        reach = (self.size[dimension] - 1) * self.rhs_dilate[dimension] + 1 if self.size[dimension] > 0 else 0
        low, high = self.pad_low[dimension], self.pad_high[dimension]
        if max(abs(low), abs(high), dilated + max(low, 0) + max(high, 0), self.lhs_dilate[dimension]) >= LONGEST:
            raise TypeFault(f"the window over dimension {dimension} of {size} elements makes positions that do not fit in 64 bits: "
                            f"padding {low}_{high}, dilation {self.lhs_dilate[dimension]}")
        return 0 if padded < reach or padded <= 0 else (padded - reach) // self.stride[dimension] + 1


@dataclass(frozen=True, slots=True, eq=False)
class ResultAccuracy:
    """The accuracy that is asked of an elementwise function: ``mode`` is ``default``, ``highest`` or ``tolerance``.

    The other fields are those of a tolerance: absolute, relative, and in units in the last place. Two are equal where HLO's spelling of
    them is: it has six digits.
    """

    mode: str = "default"
    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ResultAccuracy) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        """HLO's spelling."""
        if self.mode != "tolerance":
            return f"{{mode={self.mode}}}"
        return f"{{tolerance={{atol={self.atol:g},rtol={self.rtol:g},ulps={self.ulps}}}}}"


@dataclass(frozen=True, slots=True)
class ConvDims:
    """``dim_labels``: the role of each dimension. ``*_spatial[i]`` is the dimension that holds spatial number i."""

    lhs_batch: int
    lhs_feature: int
    lhs_spatial: tuple[int, ...]
    rhs_input: int
    rhs_output: int
    rhs_spatial: tuple[int, ...]
    out_batch: int
    out_feature: int
    out_spatial: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> ConvDims:
        """``b01f_01io->b01f``. Raises ValueError when a letter or a spatial number is missing or repeated."""
        lhs, rest = text.split("_", 1)
        rhs, out = rest.split("->", 1)
        n = len(lhs) - 2

        def places(labels: str, first: str, second: str) -> tuple[int, int, tuple[int, ...]]:
            wanted = [first, second, *map(str, range(n))]
            if sorted(labels) != sorted(wanted):
                raise ValueError(f"{labels} must hold each of {', '.join(wanted)} once")
            return labels.index(first), labels.index(second), tuple(labels.index(str(i)) for i in range(n))

        lb, lf, ls = places(lhs, "b", "f")
        ri, ro, rs = places(rhs, "i", "o")
        ob, of, os_ = places(out, "b", "f")
        return ConvDims(lb, lf, ls, ri, ro, rs, ob, of, os_)

    def __str__(self) -> str:
        def labels(first: str, i: int, second: str, j: int, spatial: tuple[int, ...]) -> str:
            chars = [""] * (2 + len(spatial))
            chars[i], chars[j] = first, second
            for number, place in enumerate(spatial):
                chars[place] = str(number)
            return "".join(chars)
        return (labels("b", self.lhs_batch, "f", self.lhs_feature, self.lhs_spatial) + "_"
                + labels("i", self.rhs_input, "o", self.rhs_output, self.rhs_spatial) + "->"
                + labels("b", self.out_batch, "f", self.out_feature, self.out_spatial))


@dataclass(slots=True, eq=False)
class Literal:
    """The value of a constant, kept as text and parsed lazily.

    ``text`` is its text in the dump (None when built from an array); ``elided`` means that the dump omits the value
    (``{...}``); ``parse`` turns the text into an array when ``value()`` is first called. Tuples become a tuple of arrays.
    """

    type: Type
    text: str | None = None
    elided: bool = False
    parse: Callable[[Literal], Any] | None = field(default=None, repr=False)
    _value: object = field(default=None, repr=False)

    @staticmethod
    def of(array: Array, type: Type) -> Literal:
        """A literal that holds ``array``."""
        return Literal(type, _value=array)

    def value(self) -> Any:
        """The array (read-only), or a tuple of arrays. Raises TypeFault when the value was elided, BudgetExceeded when numpy has too few
        dimensions for it."""
        if self._value is None:
            if self.elided or self.parse is None:
                raise TypeFault("the text elides the value of this constant")
            for leaf in self.type.leaves():
                if isinstance(leaf, TensorType):
                    require_nodes(leaf.rank, f"a constant of type {leaf}", NUMPY_RANK, "dimensions")
            self._value = self.parse(self)
        return self._value

    def __str__(self) -> str:
        return self.text if self.text is not None else str(self._value)
