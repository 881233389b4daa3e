"""Resizing and padding of images and signals."""
from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product, starmap
from math import floor
from typing import Any

from irscope.formats.sampling import cubic, product_along
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.convolution import each
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S32, S64, U8
from irscope.lazy import Array, np
from irscope.ops.checked import at_least, in_step, real, table
from irscope.ops.faults import TypeFault
from irscope.source.budget import require_nodes

NAMES = {"nearest": ("nearest", (1, 2, 3)), "nearest_exact": ("exact", (1, 2, 3)), "linear": ("linear", (1,)),
         "bilinear": ("linear", (2,)),
         "trilinear": ("linear", (3,)), "bicubic": ("cubic", (2,)),
         "bilinear_aa": ("linear_aa", (2,)), "bicubic_aa": ("cubic_aa", (2,)), "lanczos_aa": ("lanczos_aa", (2,))}
"""Interpolation operators by torch name: the mode, and the number of dimensions."""
CUBIC = -0.75
"""The parameter of torch's cubic convolution."""
SMALLEST_FACTOR = 1e-9
"""Smaller factors are refused: their reciprocal is no plausible number of elements."""
SUPPORTS = {"linear_aa": 1, "cubic_aa": 2, "lanczos_aa": 3}
"""How far the filters of antialiased resizing reach, in elements of the coarser grid."""


def positions(have: int, want: int, align: bool, scale: float | None) -> Array:
    """The position in the input of the centre of each result element (ATen's area_pixel_compute_source_index)."""
    at = np.arange(want, dtype=np.float64)
    if align:
        return at * ((have - 1) / (want - 1) if want > 1 else 0.0)
    return (at + 0.5) * _step(have, want, scale) - 0.5


def _step(have: int, want: int, scale: float | None) -> float:
    """The distance in the input between neighbouring result elements: from a positive factor, else from the sizes."""
    if scale is not None and scale > 0:
        return 1 / at_least(SMALLEST_FACTOR, "a factor", scale)
    return have / at_least(1, "a result's size", want)


def nearest(have: int, want: int, exact: bool, scale: float | None) -> list[int]:
    """The index of the input element that each result element copies."""
    table("the places of a resized dimension", want)
    require_nodes(want, "a resized dimension", of="places")
    factor = np.float32(_step(have, want, scale))
    return [min(floor((i + (0.5 if exact else 0.0)) * factor), have - 1) for i in range(want)]


@dataclass(frozen=True, slots=True)
class Interpolation:
    """The interpolation mode, and whether the corners of both grids coincide."""

    mode: str
    align: bool = False


def resize(t: Torch, x: Node, d: int, want: int, how: Interpolation, scale: float | None) -> Node:
    """Resize one dimension of ``x``."""
    mode, align = how.mode, how.align
    have = t.shape(x)[d]
    if mode == "nearest" and t.rank(x) < 5 and want in (have, 2 * have):
        scale = None  # ATen ignores the factor there, except for volumes
    if mode in ("nearest", "exact"):
        at = nearest(have, want, mode == "exact", scale)
        return x if at == list(range(have)) else t.take(x, t.array(at, S64), d)
    if have == want and (mode != "cubic" or t.dtype(x) is U8):  # ATen ignores the factor there
        return x
    # One product with a banded matrix: few distinct weights, and matrix products are fast.
    matrix = band(have, want, mode, align, scale)
    if t.dtype(x) is U8:
        return _of_bytes(t, x, d, matrix)
    return product_along(t, x, d, t.array(matrix, t.dtype(x)))


def _of_bytes(t: Torch, x: Node, d: int, matrix: Array) -> Node:
    """Sum bytes in fixed point (ATen's int16 weights): as many bits as the largest weight leaves, rounded to nearest."""
    bits = next((b for b in range(22) if int(0.5 + matrix.max() * (1 << b + 1)) >= 1 << 15), 22)
    whole = np.trunc(matrix * (1 << bits) + np.copysign(0.5, matrix)).astype(np.int32)
    total = t.plus(product_along(t, t.convert(x, S32), d, t.array(whole, S32)), 1 << bits - 1)
    total = t.binary("shift-right-arithmetic", total, t.like(total, bits))
    return t.convert(t.minimum(t.maximum(total, t.like(total, 0)), t.like(total, 255)), U8)


def band(have: int, want: int, mode: str, align: bool, scale: float | None) -> Array:
    """f64[have, want]: the weight of each input element in each result element."""
    table("the weights of an interpolation", have, want)
    if mode in SUPPORTS:
        return _filtered_band(have, want, mode, align, scale)
    place = positions(have, want, align, scale)
    if mode == "linear":
        place = np.maximum(place, 0) if not align else place
        low = np.minimum(np.floor(place).astype(np.int64), have - 1)
        part = place - low
        taps = [(low, 1 - part), (np.minimum(low + 1, have - 1), part)]
    else:
        low = np.floor(place).astype(np.int64)
        weights = cubic(place - low, CUBIC)
        taps = [(np.clip(low + k - 1, 0, have - 1), weights[k]) for k in range(4)]
    matrix = np.zeros((have, want))
    for at, weight in taps:
        np.add.at(matrix, (at, np.arange(want)), weight)
    return matrix


MOST_FILTERED = 1 << 17
"""The most places along a resized dimension, of which each has weights."""


def _filtered_band(have: int, want: int, mode: str, align: bool, scale: float | None) -> Array:
    """The weights of a filter as wide as the coarser of the two grids requires (ATen's _compute_indices_min_size_weights_aa)."""
    step = ((have - 1) / (want - 1) if want > 1 else 0.0) if align else _step(have, want, scale)
    stretch = max(step, 1.0)
    reach = SUPPORTS[mode] * stretch
    require_nodes(want, "a resized dimension", MOST_FILTERED, "places")
    matrix = np.zeros((have, want))
    for i in range(want):
        centre = step * (i + 0.5)
        low, high = max(int(centre - reach + 0.5), 0), min(int(centre + reach + 0.5), have)
        weights = _filter(mode, (np.arange(low, high) - centre + 0.5) / stretch)
        total = weights.sum()
        if low < high:  # a factor may place the filter beyond the input
            matrix[low:high, i] = weights / total if total else weights
    return matrix


def _filter(mode: str, x: Array) -> Array:
    """Triangle; cubic convolution with A = -0.5 (Keys 1981); sinc in a window of sinc (Lanczos)."""
    x = np.abs(x)
    if mode == "linear_aa":
        return np.asarray(np.maximum(1 - x, 0))
    if mode == "lanczos_aa":
        return np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0.0)
    near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))


def _resulting(size: float) -> int:
    """A size times a factor, rounded down. Raises TypeFault for one that is not between 1 and 2 ** 31."""
    if not 1 <= size < 1 << 31:
        raise TypeFault(f"a result's size must be between 1 and 2 ** 31, not {size}")
    return int(size)


def _upsample(name: str, mode: str, n: int) -> None:
    align = mode not in ("nearest", "exact")
    name, tail = name.removesuffix("_aa"), "_aa" if mode in SUPPORTS else ""
    name = f"_upsample_{name}" if mode == "exact" or tail else f"upsample_{name}"
    flag = "bool align_corners, " if align else ""
    scales = ", ".join(f"float? scales_{axis}=None" for axis in ("d", "h", "w")[3 - n:]) if n > 1 else "float? scales=None"

    @operator(f"{name}{n}d{tail}.vec(Tensor input, int[]? output_size, {flag}float[]? scale_factors)")
    def by_list(t: Torch, x: Node, size: list[int] | None, *rest: Any) -> Node:
        corners, factors = (rest[0], rest[1]) if align else (False, rest[0])
        spatial = t.shape(x)[-n:]
        if not size and not factors:
            raise TypeFault("it takes the sizes of the result or factors")
        real("factors", *(factors or ()))
        sizes = size or [_resulting(s * f) for s, f in in_step("dimensions and factors", spatial, factors)]
        return _all(t, x, sizes, Interpolation(mode, corners), factors if size is None and factors else [None] * n)

    @operator(f"{name}{n}d{tail}(Tensor self, int[{n}] output_size, {flag}{scales})")
    def by_size(t: Torch, x: Node, size: list[int], *rest: Any) -> Node:
        corners, factors = (rest[0], rest[1:]) if align else (False, rest)
        return _all(t, x, size, Interpolation(mode, corners), list(factors) or [None] * n)


def _all(t: Torch, x: Node, size: list[int], how: Interpolation, factors: list[float | None]) -> Node:
    n = len(factors)
    lead = len(t.shape_of(x, n)) - n
    real("factors", *(factor for factor in factors if factor is not None))
    for have, want in in_step("sizes of the result and factors", t.shape(x)[lead:], size):
        at_least(1, "a size that is interpolated", min(have, want))
    if t.dtype(x).is_integer and how.mode not in ("nearest", "exact"):
        if t.dtype(x) is not U8:
            raise TypeFault(f"torch interpolates floating numbers and bytes, not {t.dtype(x)}")
        # Bytes are rounded between the dimensions, and ATen begins with the last.
    for i in reversed(range(n)):
        x = resize(t, x, lead + i, size[i], how, factors[i])
    return x


for _name, (_mode, _ranks) in NAMES.items():
    for _n in _ranks:
        _upsample(_name, _mode, _n)


# ---------------------------------------------------------------------- padding


def _paired(pads: list[int]) -> list[int]:
    if len(pads) % 2:
        raise TypeFault(f"padding is given in pairs, not by {len(pads)} numbers")
    return pads


@operator("constant_pad_nd(Tensor self, int[] pad, Scalar value=0)")
def constant_pad(t: Torch, x: Node, pads: list[int], value: object) -> Node:
    """Pairs of low and high, the last dimension first; negative ones crop."""
    n = len(t.shape_of(x, len(_paired(pads)) // 2))
    low, high = [0] * n, [0] * n
    for i in range(len(pads) // 2):
        low[n - 1 - i], high[n - 1 - i] = pads[2 * i], pads[2 * i + 1]
    return t.pad(x, t.as_tensor(value, t.dtype(x)), low, high)


@operator("pad(Tensor self, int[] pad, str mode=\"constant\", float? value=None)")
def pad(t: Torch, x: Node, pads: list[int], mode: str, value: float | None) -> Node:
    if mode == "constant":
        return constant_pad(t, x, pads, value or 0)
    return _mirrored(t, x, pads, mode)


def _mirrored(t: Torch, x: Node, pads: list[int], mode: str) -> Node:
    if mode == "circular":
        # Negative sizes crop first: padding uses the remaining elements.
        x = constant_pad(t, x, [min(p, 0) for p in pads], 0)
        pads = [max(p, 0) for p in pads]
    for i in range(len(_paired(pads)) // 2):
        d = len(t.shape_of(x, len(pads) // 2)) - 1 - i
        n, (low, high) = t.shape(x)[d], pads[2 * i:2 * i + 2]
        x = t.take(x, t.array(mirror(n, low, high, mode), S64), d)
    return x


def mirror(n: int, low: int, high: int, mode: str) -> list[int]:
    """The index of the input element at each position of the padded dimension. Raises TypeFault for an unknown mode, and where the
    padding is longer than the mode allows."""
    if n < 1 or (mode == "reflect" and max(low, high) >= n) or n + low + high < 0:
        raise TypeFault(f"padding of {low} and {high} does not fit {n} elements in the mode {mode!r}")
    table("the padded dimension", max(0, n + low + high))
    require_nodes(n + low + high, "a padded dimension", of="places")
    at = []
    for k in range(-low, n + high):
        match mode:
            case "reflect":
                at.append(abs(k) if k < n else 2 * (n - 1) - k)
            case "replicate":
                at.append(min(max(k, 0), n - 1))
            case "circular":
                at.append(k % n)
            case _:
                raise TypeFault(f"padding mode {mode!r} is not one of constant, reflect, replicate, circular")
    return at


@operator(*(f"reflection_pad{n}d(Tensor self, int[{2 * n}] padding)" for n in (1, 2, 3)))
def reflection(t: Torch, x: Node, pads: list[int]) -> Node:
    return _mirrored(t, x, pads, "reflect")


@operator(*(f"replication_pad{n}d(Tensor self, int[{2 * n}] padding)" for n in (1, 2, 3)))
def replication(t: Torch, x: Node, pads: list[int]) -> Node:
    return _mirrored(t, x, pads, "replicate")


MOST_PLACES = 1 << 13
"""The most places of a kernel that are written as a slice each."""


@operator("im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride)")
def im2col(t: Torch, x: Node, kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]) -> Node:
    """torch.nn.Unfold: windows as columns."""
    single = t.rank(x) == 3
    if single:
        x = t.unsqueeze(x, 0)
    t.shape_of(x, 4, 4)
    x = t.pad(x, t.array(0, t.dtype(x)), [0, 0, *each(padding, 2)], [0, 0, *each(padding, 2)])
    n, c, h, w = t.shape_of(x, 4, 4)
    kernel, dilation, stride = (list(each(v, 2)) for v in (kernel, dilation, stride))
    rows = zip((h, w), dilation, kernel, stride, strict=True)
    oh, ow = ((s - d * (k - 1) - 1) // at_least(1, "a stride", st) + 1 for s, d, k, st in rows)
    require_nodes(kernel[0] * kernel[1], "im2col", MOST_PLACES, "places of its kernel")
    parts = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            a, b = i * dilation[0], j * dilation[1]
            part = t.slice(x, [0, 0, a, b], [n, c, a + (oh - 1) * stride[0] + 1, b + (ow - 1) * stride[1] + 1], [1, 1, *stride])
            parts.append(t.reshape(part, (n, c, 1, oh * ow)))
    y = t.reshape(t.concat(parts, 2), (n, c * kernel[0] * kernel[1], oh * ow))
    return t.reshape(y, t.shape(y)[1:]) if single else y


@operator("col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride)")
def col2im(t: Torch, x: Node, size: list[int], kernel: list[int], dilation: list[int], padding: list[int], stride: list[int]) -> Node:
    """torch.nn.Fold: columns added up where windows overlap."""
    single = t.rank(x) == 2
    if single:
        x = t.unsqueeze(x, 0)
    n = t.shape(x)[0]
    c = t.shape(x)[1] // (at_least(1, "a kernel's size", kernel[0]) * at_least(1, "a kernel's size", kernel[1]))
    h, w = size[0] + 2 * padding[0], size[1] + 2 * padding[1]
    kernel, dilation, stride = (list(each(v, 2)) for v in (kernel, dilation, stride))
    rows = zip((h, w), dilation, kernel, stride, strict=True)
    oh, ow = ((s - d * (k - 1) - 1) // at_least(1, "a stride", st) + 1 for s, d, k, st in rows)
    columns = t.reshape(x, (n, c, kernel[0], kernel[1], oh, ow))
    zero = t.array(0, t.dtype(x))

    def spread(i: int, j: int) -> Node:
        part = t.reshape(t.slice(columns, [0, 0, i, j, 0, 0], [n, c, i + 1, j + 1, oh, ow]), (n, c, oh, ow))
        a, b = i * dilation[0], j * dilation[1]
        high = [0, 0, h - a - ((oh - 1) * stride[0] + 1), w - b - ((ow - 1) * stride[1] + 1)]
        return t.pad(part, zero, [0, 0, a, b], high, [0, 0, stride[0] - 1, stride[1] - 1])
    require_nodes(kernel[0] * kernel[1], "col2im", MOST_PLACES, "places of its kernel")
    total = reduce(t.add, starmap(spread, product(range(kernel[0]), range(kernel[1]))))
    y = t.slice(total, [0, 0, padding[0], padding[1]], [n, c, h - padding[0], w - padding[1]])
    return t.reshape(y, t.shape(y)[1:]) if single else y
