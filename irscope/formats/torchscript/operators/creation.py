"""Operators that create tensors: arange, zeros, full and their relatives.

Without a dtype, the element type is float32, that of the ``like`` tensor, or that of the given values.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any

from irscope.formats.torchscript.abstract import Scalar
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.matrices import within
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, F64, S64
from irscope.lazy import np
from irscope.ops.checked import at_least, nonzero, real, table
from irscope.ops.faults import TypeFault
from irscope.source.budget import require_nodes

OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
TYPED = "ScalarType? dtype=None, Device? device=None"
LIKE = f"{OPTIONS}, MemoryFormat? memory_format=None"


def _filled(name: str, value: object, sized: Sequence[str] = (), like: Sequence[str] = ()) -> None:
    """Declare ``zeros``, ``zeros_like`` and ``new_zeros``, or those of another value.

    ``sized`` are more schemas that take no tensor, ``like`` more that take one.
    """
    @operator(f"{name}(int[] size, {OPTIONS})", *sized)
    def made(t: Torch, size: list[int], *, dtype: int | None) -> Node:
        return t.full(tuple(size), value, t.dtype_number(dtype, F32))

    @operator(f"{name}_like(Tensor self, {LIKE})", f"new_{name}(Tensor self, int[] size, {OPTIONS})", *like)
    def as_one(t: Torch, x: Node, *, dtype: int | None, size: list[int] | None = None) -> Node:
        return t.full(t.shape(x) if size is None else tuple(size), value, t.dtype_number(dtype, t.dtype(x)))


_filled("zeros", 0)
_filled("ones", 1)
# The content of empty memory is undefined; zeros keep runs repeatable.
_filled("empty", 0, (f"empty.memory_format(int[] size, {LIKE})", f"empty_strided(int[] size, int[] stride, {OPTIONS})",
                     f"empty_permuted(int[] size, int[] physical_layout, {OPTIONS})"),
        (f"new_empty_strided(Tensor self, int[] size, int[] stride, {OPTIONS})",))


@operator(f"full(int[] size, Scalar fill_value, {OPTIONS})")
def full(t: Torch, size: list[int], value: object, *, dtype: int | None) -> Node:
    return t.broadcast_to(t.as_tensor(value, t.dtype_number(dtype, t.result_type(value))), tuple(size))


@operator(f"full_like(Tensor self, Scalar fill_value, {LIKE})", f"new_full(Tensor self, int[] size, Scalar fill_value, {OPTIONS})")
def full_like(t: Torch, x: Node, *, fill_value: object, dtype: int | None, size: list[int] | None = None) -> Node:
    value = t.as_tensor(fill_value, t.dtype_number(dtype, t.dtype(x)))
    return t.broadcast_to(value, t.shape(x) if size is None else tuple(size))


# start, start + step, ... below end; int64 when all three are ints.
@operator(f"arange(Scalar end, {OPTIONS})", f"arange.start(Scalar start, Scalar end, {OPTIONS})",
          f"arange.start_step(Scalar start, Scalar end, Scalar step=1, {OPTIONS})")
def arange(t: Torch, *, start: Any = 0, end: Any, step: Any = 1, dtype: int | None) -> Node:
    if not all(isinstance(v, int | float) for v in (start, end, step)):
        raise TypeFault("the length of arange depends on data")
    whole = all(isinstance(v, int) for v in (start, end, step))
    real("the ends and the step of arange", start, end, nonzero("the step of arange", step))
    n = max(0, -((start - end) // step) if whole else ceil(_count(start, end, step)))
    kind = t.dtype_number(dtype, S64 if whole else F32)
    # torch computes fractions in double and rounds once.
    at = t.iota((n,), 0, kind if kind.is_integer else F64 if kind.is_float and not whole else kind if kind.is_float else S64)
    return t.convert(t.plus(t.scale(at, step), start), kind)


def _count(start: float, end: float, step: float) -> float:
    """The number of steps from start to end, not rounded. Raises TypeFault where it is not finite."""
    count = (end - start) / step
    if not isfinite(count):
        raise TypeFault(f"a range from {start} to {end} in steps of {step} has no finite length")
    return count


@operator(f"range(Scalar start, Scalar end, {OPTIONS})", f"range.step(Scalar start, Scalar end, Scalar step=1, {OPTIONS})")
def range_(t: Torch, start: Any, end: Any, *, step: Any = 1, dtype: int | None) -> Node:
    """``arange`` with its end. The element type is float32 whatever the arguments are."""
    real("the ends and the step of range", start, end, nonzero("the step of range", step))
    n = at_least(0, "the length of a range", int(_count(start, end, step)) + 1)
    kind = t.dtype_number(dtype, F32)
    return t.convert(t.plus(t.scale(t.iota((n,), 0, F64), step), start), kind)


MOST_VALUES = 1 << 25
"""The most values of linspace, which are computed while a program is read."""


@operator(f"linspace(Scalar start, Scalar end, int steps, {OPTIONS})")
def linspace(t: Torch, start: Any, end: Any, n: int, *, dtype: int | None) -> Node:
    if isinstance(start, Scalar) or isinstance(end, Scalar):
        return linspace_between(t, start, end, n, dtype=dtype)
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        raise TypeFault(f"linspace takes real ends, not {start} and {end}")
    table("the values of linspace", at_least(0, "the steps of linspace", n))
    kind = t.dtype_number(dtype, F32)
    if kind.is_integer:  # torch converts the ends to that type first
        real("the ends of linspace", start, end)
        start, end = int(start), int(end)
    step = (end - start) / (n - 1) if n > 1 else 0.0
    # As torch: from the left for the first half, from the right for the second, so that both ends are exact; one number is the start.
    require_nodes(n, "linspace", MOST_VALUES, "values")
    left, right = np.arange(n // 2), np.arange(n - 1 - n // 2, -1, -1)
    with np.errstate(all="ignore"):
        values = np.concatenate([start + step * left, end - step * right]) if n != 1 else np.asarray([start])
    return t.array(np.asarray(values, np.float64), kind)


@operator(f"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, {OPTIONS})",
          f"linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, {OPTIONS})",
          f"linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, {OPTIONS})")
def linspace_between(t: Torch, start: object, end: object, n: int, *, dtype: int | None) -> Node:
    """Ends that depend on data."""
    kind = t.dtype_number(dtype, F32)
    wide = kind if kind.is_float else F64
    if kind.is_integer:
        start, end = t.as_tensor(start, kind), t.as_tensor(end, kind)
    first, last = t.as_tensor(start, wide), t.as_tensor(end, wide)
    if n == 1:
        return t.convert(t.reshape(first, (1,)), kind)
    step = t.div(t.sub(last, first), t.like(first, max(n - 1, 1)))
    at = t.iota((n,), 0, wide)
    left = t.add(t.mul(at, step), first)
    right = t.sub(last, t.mul(t.sub(t.like(at, n - 1), at), step))
    return t.convert(t.select(t.compare("LT", at, t.like(at, n // 2)), left, right), kind)


@operator(f"logspace(Scalar start, Scalar end, int steps, float base=10.0, {OPTIONS})")
def logspace(t: Torch, start: float, end: float, n: int, base: float, *, dtype: int | None) -> Node:
    real("the ends of logspace", start, end)
    table("the values of logspace", at_least(0, "the steps of logspace", n))
    kind = t.dtype_number(dtype, F32)
    if kind.is_integer:  # torch converts the ends and the base to that type first
        real("the base of logspace", base)
        start, end, base = int(start), int(end), int(base)
    with np.errstate(all="ignore"):
        values = np.power(np.complex128(base) if base < 0 else float(base), np.linspace(start, end, n))
    return t.array(np.real(values), kind)


@operator(f"logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10.0, {OPTIONS})",
          f"logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10.0, {OPTIONS})",
          f"logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10.0, {OPTIONS})")
def logspace_between(t: Torch, start: object, end: object, n: int, base: float, *, dtype: int | None) -> Node:
    """Ends that depend on data."""
    kind = t.dtype_number(dtype, F32)
    if kind.is_integer:  # as above
        real("the base of logspace", base)
        start, end, base = t.as_tensor(start, kind), t.as_tensor(end, kind), int(base)
    powers = linspace_between(t, start, end, n, dtype=7)
    return t.convert(t.binary("power", t.like(powers, base), powers), kind)


@operator(f"eye(int n, {OPTIONS})", f"eye.m(int n, int m, {OPTIONS})")
def eye(t: Torch, n: int, *, m: int | None = None, dtype: int | None) -> Node:
    shape = n, n if m is None else m
    same = t.compare("EQ", t.iota(shape, 0, S64), t.iota(shape, 1, S64))
    return t.convert(same, t.dtype_number(dtype, F32))


@operator(f"scalar_tensor(Scalar s, {OPTIONS})")
def scalar_tensor(t: Torch, value: object, *, dtype: int | None) -> Node:
    return t.as_tensor(value, t.dtype_number(dtype, t.result_type(value)))


@operator(*(f"tensor.{kind}({kind} t, *, {TYPED}, bool requires_grad=False)" for kind in ("int", "float", "bool")),
          *(f"as_tensor.{kind}({kind} t, *, {TYPED})" for kind in ("int", "float", "bool")))
def tensor(t: Torch, value: object, *, dtype: int | None) -> Node:
    return t.as_tensor(value, t.dtype_number(dtype, t.result_type(value)))


def _regular(data: list[object]) -> Any:
    """The array of nested lists of numbers. Raises TypeFault for lists of other things, and of different lengths."""
    try:
        array = np.asarray(data)
    except ValueError as fault:  # numpy's, for lists of different lengths
        raise TypeFault(str(fault)) from None
    if array.dtype.kind not in "biufc":
        raise TypeFault("a tensor is made of numbers, in lists of equal lengths")
    return array


@operator(f"tensor(t[] data, *, {TYPED}, bool requires_grad=False)", f"as_tensor.list(t[] data, *, {TYPED})")
def tensor_list(t: Torch, data: list[object], *, dtype: int | None) -> Node:
    array = _regular(data)
    default = F32 if array.dtype.kind == "f" else t.result_type(*array.reshape(-1).tolist()) if array.size else F32
    return t.array(array, t.dtype_number(dtype, default))


def _triangle(name: str) -> None:
    @operator(f"{name}_indices(int row, int col, int offset=0, *, ScalarType? dtype=4, Layout? layout=None, Device? device=None, "
              "bool? pin_memory=None)")
    def indices(t: Torch, rows: int, columns: int, offset: int, *, dtype: int | None) -> Node:
        # [2, n]: the row and the column of each element of the triangle.
        table("the triangle", max(at_least(0, "the rows", rows), 1), max(at_least(0, "the columns", columns), 1))
        found = (np.tril_indices if name == "tril" else np.triu_indices)(rows, within(offset, rows, columns), columns)
        return t.array(np.stack(found), t.dtype_number(dtype, S64))


_triangle("tril")
_triangle("triu")
