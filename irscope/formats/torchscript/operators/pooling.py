"""Pooling: sliding and adaptive windows."""
from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.sampling import adaptive
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.convolution import each
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.attrs import Window
from irscope.ops.checked import at_least, nonzero
from irscope.ops.faults import TypeFault


def _each(values: int | list[int], n: int) -> tuple[int, ...]:
    return each([values] if isinstance(values, int) else values, n)


def _sizes(t: Torch, x: Node, size: int | list[int], n: int) -> tuple[int, ...]:
    """The sizes of an adaptive pool's result. Raises TypeFault where the tensor lacks dimensions, and for sizes below 1."""
    t.shape_of(x, n)
    return tuple(at_least(1, "a result's size", wanted) for wanted in _each(size, n))


class PoolWindow:
    """A window over the last ``n`` dimensions; the stride defaults to its size."""

    def __init__(self, n: int, kernel: Any, stride: Any, padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> None:
        self.n, self.ceil = n, ceil
        self.kernel = _each(kernel, n)
        self.stride = _each(stride, n) if stride else self.kernel
        self.padding, self.dilation = _each(padding, n), _each(dilation, n)

    def window(self, shape: tuple[int, ...]) -> Window:
        """The window over all dimensions. With ``ceil`` the padding at the end grows until the last window that begins inside fits."""
        lead = len(shape) - self.n
        if lead < 0:
            raise TypeFault(f"it takes a tensor of {self.n} dimensions or more, not one of the sizes {list(shape)}")
        for step in self.stride:
            at_least(1, "a stride", step)
        pads = []
        for n, k, s, p, d in zip(shape[lead:], self.kernel, self.stride, self.padding, self.dilation, strict=True):
            reach = d * (k - 1) + 1
            if not 0 <= 2 * p <= reach:
                raise TypeFault(f"the padding of a window must be at least 0 and at most half of its size {reach}, not {p}")
            out = (n + 2 * p - reach + (s - 1 if self.ceil else 0)) // s + 1
            if self.ceil and (out - 1) * s >= n + p:
                out -= 1
            pads.append((p, max(p, (out - 1) * s + reach - n - p) if self.ceil else p))
        one = (1,) * lead
        return Window.make(one + self.kernel, one + self.stride, ((0, 0),) * lead + tuple(pads), rhs_dilate=one + self.dilation)


def max_pool(t: Torch, x: Node, pool: PoolWindow) -> Node:
    return t.window("maximum", x, t.dtype(x).lowest, pool.window(t.shape(x)))


def avg_pool(t: Torch, x: Node, pool: PoolWindow, count_padding: bool, divisor: int | None) -> Node:
    wide = widened(t, x)  # sums of half types overflow
    total = t.window("add", wide, 0, pool.window(t.shape(x)))
    return t.convert(t.div(total, divisors(t, total, t.shape(x), pool, count_padding, divisor)), t.dtype(x))


def divisors(t: Torch, total: Node, shape: tuple[int, ...], pool: PoolWindow, count_padding: bool, divisor: int | None) -> Node:
    """By what the sum of each window over a tensor of this shape is divided.

    It counts the elements of the input, and optionally its declared padding; never what ceil adds.
    """
    if divisor is not None:
        return t.like(total, nonzero("divisor_override", divisor))
    pad, window, dtype = pool.padding, pool.window(shape), t.dtype(total)
    if not any(pad) and not pool.ceil:
        return t.like(total, prod(pool.kernel))
    lead = len(shape) - pool.n
    ones = t.full((1,) * lead + shape[lead:], 1, dtype)
    spread = [0] * lead + list(pad)
    if count_padding:
        ones = t.pad(ones, t.array(1, dtype), spread, spread)
        low = tuple(p - s for p, s in zip(window.pad_low, spread, strict=True))
        high = tuple(p - s for p, s in zip(window.pad_high, spread, strict=True))
        window = Window(window.size, window.stride, low, high, window.lhs_dilate, window.rhs_dilate, window.rhs_reversal)
    return t.window("add", ones, 0, window)


def _pools(n: int) -> None:
    @operator(f"max_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, "
              "bool ceil_mode=False)")
    def plain_max(t: Torch, x: Node, kernel: object, stride: object, padding: object, dilation: object, ceil: bool) -> Node:
        return max_pool(t, x, PoolWindow(n, kernel, stride, padding, dilation, ceil))

    @operator(f"max_pool{n}d_with_indices(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, "
              "bool ceil_mode=False)")
    def with_indices(t: Torch, x: Node, kernel: object, stride: object, padding: object, dilation: object, ceil: bool) -> tuple[Node, Node]:
        pool = PoolWindow(n, kernel, stride, padding, dilation, ceil)
        return max_pool(t, x, pool), _indices(t, x, pool)

    rest = ", bool ceil_mode=False, bool count_include_pad=True" + (", int? divisor_override=None" if n > 1 else "")

    @operator(f"avg_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0{rest})")
    def average(t: Torch, x: Node, kernel: object, stride: object, padding: object, ceil: bool, count: bool,
                divisor: int | None = None) -> Node:
        return avg_pool(t, x, PoolWindow(n, kernel, stride, padding, ceil=ceil), count, divisor)

    @operator(f"adaptive_avg_pool{n}d(Tensor self, int[{n}] output_size)", f"_adaptive_avg_pool{n}d(Tensor self, int[{n}] output_size)")
    def adaptive_average(t: Torch, x: Node, size: Any) -> Node:
        return t.convert(adaptive(t, widened(t, x), _sizes(t, x, size, n), True), t.dtype(x))

    @operator(f"adaptive_max_pool{n}d(Tensor self, int[{n}] output_size)")
    def adaptive_max(t: Torch, x: Node, size: Any) -> tuple[Node, Node]:
        flat = _flat_index(t, x, n)
        sizes = _sizes(t, x, size, n)
        return adaptive(t, x, sizes, False), _adaptive_indices(t, x, flat, n, sizes)


for _n in (1, 2, 3):
    _pools(_n)


def _flat_index(t: Torch, x: Node, n: int) -> Node:
    """The flat index of each element in its plane."""
    shape = t.shape(x)
    plane = shape[-n:]
    return t.broadcast_to(t.reshape(t.iota((prod(plane),), 0, S64), plane), shape)


def _windows(t: Torch, x: Node, n: int, starts: list[list[tuple[int, int, int]]], fill: object) -> list[Node]:
    """The elements at each position of the window, as tensors of the result's size, with ``fill`` outside."""
    out = []
    stack: list[tuple[int, Node]] = [(0, x)]
    while stack:
        i, part = stack.pop()
        if i == n:
            out.append(part)
            continue
        d = t.rank(x) - n + i
        for low, stride, count in reversed(starts[i]):
            have = t.shape(part)[d]
            left, right = max(0, -low), max(0, low + (count - 1) * stride + 1 - have)
            pad_low, pad_high = [0] * t.rank(x), [0] * t.rank(x)
            pad_low[d], pad_high[d] = left, right
            padded = t.pad(part, t.array(fill, t.dtype(part)), pad_low, pad_high)
            stack.append((i + 1, t.slice_dim(padded, d, low + left, low + left + (count - 1) * stride + 1, stride)))
    return out


def _starts(t: Torch, x: Node, pool: PoolWindow) -> list[list[tuple[int, int, int]]]:
    """For each dimension and each place in the window: the first element, the stride and the number of windows."""
    n, window = pool.n, pool.window(t.shape(x))
    lead = t.rank(x) - n
    starts = []
    for i in range(n):
        d = lead + i
        count = window.output_size(d, t.shape(x)[d])
        starts.append([(j * window.rhs_dilate[d] - window.pad_low[d], window.stride[d], count) for j in range(pool.kernel[i])])
    return starts


def _indices(t: Torch, x: Node, pool: PoolWindow) -> Node:
    """The flat index in its plane of each window's first largest element."""
    starts = _starts(t, x, pool)
    return _chosen(t, _windows(t, x, pool.n, starts, t.dtype(x).lowest), _windows(t, _flat_index(t, x, pool.n), pool.n, starts, -1))


def offsets(t: Torch, x: Node, pool: PoolWindow) -> Node:
    """The flat index within each window of its first largest element."""
    values = _windows(t, x, pool.n, _starts(t, x, pool), t.dtype(x).lowest)
    return _chosen(t, values, [t.full(t.shape(value), i, S64) for i, value in enumerate(values)])


def places(t: Torch, within: Node, pool: PoolWindow, size: list[int]) -> Node:
    """The flat index in a plane of this size of each element whose index within its window is given."""
    n = pool.n
    lead = t.rank(within) - n
    rest, shape = t.convert(within, S64), t.shape(within)
    steps: list[Node] = []
    for k in reversed(pool.kernel):
        steps.insert(0, t.binary("remainder", rest, t.like(rest, k)))
        rest = t.div(rest, t.like(rest, k))
    at = t.full(shape, 0, S64)
    for i, step in enumerate(steps):
        first = t.plus(t.scale(t.iota(shape, lead + i, S64), pool.stride[i]), -pool.padding[i])
        at = t.add(t.scale(at, size[i]), t.add(first, t.scale(step, pool.dilation[i])))
    return at


def _chosen(t: Torch, values: list[Node], at: list[Node]) -> Node:
    """The place of the first largest value, where NaN is the largest. A place of padding is -1, and any other is chosen before it."""
    if not values:
        raise TypeFault("a window has no elements")
    best, chosen = values[0], at[0]
    for value, place in zip(values[1:], at[1:], strict=True):
        better = t.binary("or", t.compare("GT", value, best), t.compare("LT", chosen, t.like(chosen, 0)))
        if t.dtype(value).is_float:
            better = t.binary("or", better, t.compare("NE", value, value))
        best, chosen = t.select(better, value, best), t.select(better, place, chosen)
    return chosen


def _adaptive_indices(t: Torch, x: Node, flat: Node, n: int, size: tuple[int | None, ...]) -> Node:
    """The flat index in its plane of each adaptive window's largest element, one dimension after the other."""
    lead = t.rank(x) - n
    for i, wanted in enumerate(size):
        d = lead + i
        have = t.shape(x)[d]
        if wanted is None or wanted == have:
            continue
        values, places = [], []
        for o in range(wanted):
            low, high = o * have // wanted, -(-(o + 1) * have // wanted)
            part, where = t.slice_dim(x, d, low, high), t.slice_dim(flat, d, low, high)
            value, at = t.arg_extreme(part, d, True, S64)
            at = t.unsqueeze(at, d)
            values.append(t.unsqueeze(value, d))
            places.append(t.gather_elements(where, at, d))
        x, flat = t.concat(values, d), t.concat(places, d)
    return flat


@operator("lp_pool2d(Tensor self, Scalar norm_type, int[2] kernel_size, int[2] stride=[], bool ceil_mode=False)")
def lp_pool2d(t: Torch, x: Node, p: float, kernel: object, stride: object, ceil: bool) -> Node:
    pool = PoolWindow(2, kernel, stride, ceil=ceil)
    mean = avg_pool(t, t.binary("power", x, t.like(x, p)), pool, True, None)
    total = t.scale(t.maximum(mean, t.like(mean, 0)), prod(pool.kernel))
    return t.binary("power", total, t.like(total, 1 / nonzero("norm_type", p)))
