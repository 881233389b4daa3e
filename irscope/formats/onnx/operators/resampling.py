"""Resizing of images: each dimension by itself, by a selection of elements or a product with a banded matrix.

Coordinates, neighbours and weights are those of ONNX's reference (onnx/reference/ops/op_resize.py), but for ``pytorch_half_pixel`` to one
element, which the standard reads at 0, as ONNX Runtime does, and the reference at -0.5.
"""
from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, nan

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.sampling import product_along
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED, S64
from irscope.lazy import Array, np
from irscope.ops.checked import real
from irscope.ops.faults import TypeFault


@dataclass(frozen=True, slots=True)
class Line:
    """One dimension: ``have`` elements become ``want``, by a scale; ``box`` is the region of ``tf_crop_and_resize``."""

    have: int
    want: int
    scale: float
    box: tuple[float, float] = (0.0, 1.0)

    def place(self, i: int, mode: str) -> float:
        """The position of an element of the result in the operand. Raises TypeFault for an unknown mode."""
        have, wide = self.have, self.scale * self.have
        match mode:
            case "align_corners":
                return 0.0 if self.want == 1 else i * (have - 1) / (wide - 1)
            case "asymmetric":
                return i / self.scale
            case "tf_crop_and_resize":
                low, high = self.box
                if self.want == 1:
                    return (high - low) * (have - 1) / 2 + low * (have - 1)
                return i * (high - low) * (have - 1) / (self.want - 1) + low * (have - 1)
            case "pytorch_half_pixel":
                return 0.0 if self.want == 1 else (i + 0.5) / self.scale - 0.5
            case "half_pixel":
                return (i + 0.5) / self.scale - 0.5
            case "half_pixel_symmetric":
                return have / 2 * (1 - self.want / wide) + (i + 0.5) / self.scale - 0.5
            case "tf_half_pixel_for_nn":
                return (i + 0.5) / self.scale
        raise TypeFault(f"coordinate_transformation_mode {mode!r} is not known")


def nearest(place: float, mode: str) -> int:
    """The nearest element. Raises TypeFault for an unknown mode."""
    match mode:
        case "round_prefer_floor":
            return ceil(place - 0.5)
        case "round_prefer_ceil":
            return floor(place + 0.5)
        case "floor":
            return floor(place)
        case "ceil":
            return ceil(place)
    raise TypeFault(f"nearest_mode {mode!r} is not known")


def _cubic(x: float, a: float) -> float:
    """The kernel of cubic convolution (R. Keys, 1981)."""
    x = abs(x)
    if x <= 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a if x < 2 else 0.0


def taps(a: Attributes, place: float, scale: float) -> list[tuple[int, float]]:
    """Neighbours of a position with their weights. With ``antialias`` the kernel is stretched where elements are skipped."""
    low = floor(place)
    part = place - low
    shrink = min(scale, 1.0) if a.antialias else 1.0
    reach = 2 if a.mode == "cubic" else 1
    first = floor(-reach / shrink) + 1
    if a.mode == "cubic":
        weights = [_cubic(shrink * (i - part), a.cubic_coeff_a) for i in range(first, 2 - first)]
    else:
        weights = [max(0.0, 1 - abs(shrink * (i - part))) for i in range(first, 2 - first)]
    total = sum(weights) if a.antialias else 1.0
    return [(low + first + k, w / total if total else nan) for k, w in enumerate(weights)]


def matrix_of(a: Attributes, line: Line) -> Array:
    """The matrix (have, want) of weights."""
    bounded(line.have * line.want // 8, "the weights of a resize")
    bounded(int(16 * line.want / min(line.scale, 1.0)) if a.antialias else 16 * line.want, "a resize")
    made = np.zeros((line.have, line.want))
    for i in range(line.want):
        row = taps(a, line.place(i, a.coordinate_transformation_mode), line.scale)
        if a.exclude_outside:
            row = [(p, w if 0 <= p < line.have else 0.0) for p, w in row]
            total = sum(w for _, w in row)
            row = [(p, w / total if total else nan) for p, w in row]
        for p, w in row:
            made[min(max(p, 0), line.have - 1), i] += w
    return made


def resized(t: Onnx, a: Attributes, x: Node, d: int, line: Line) -> Node:
    """One dimension resized."""
    bounded(16 * line.want, "a resize")
    mode = a.coordinate_transformation_mode
    if a.mode == "nearest":
        at = [min(max(nearest(line.place(i, mode), a.nearest_mode), 0), line.have - 1) for i in range(line.want)]
        return x if line.want == line.have and at == list(range(line.have)) else t.take(x, t.array(at, S64), d)
    if a.mode not in ("linear", "cubic", "bilinear"):
        raise TypeFault(f"mode is nearest, linear or cubic, not {a.mode!r}")
    made = matrix_of(a, line)
    if line.have == line.want and np.array_equal(made, np.eye(line.have)):
        return x
    wide = x if t.dtype(x).is_float and t.dtype(x).bits >= 32 else t.convert(x, F32)
    return product_along(t, wide, d, t.array(made, t.dtype(wide)))


def _converted(t: Onnx, x: Node, like: Node) -> Node:
    """The result in the type of the operand; integers are rounded and saturated by truncation as the reference does."""
    return t.convert(x, t.dtype(like))


def _outside(t: Onnx, a: Attributes, x: Node, lines: dict[int, Line]) -> Node:
    """The extrapolation value where a position is outside of the operand."""
    for d, line in lines.items():
        places = [line.place(i, a.coordinate_transformation_mode) for i in range(line.want)]
        out = [p < 0 or p > line.have - 1 for p in places]
        if any(out):
            shape = tuple(line.want if k == d else 1 for k in range(t.rank(x)))
            x = t.select(t.reshape(t.array(out, PRED), shape), t.like(x, a.extrapolation_value), x)
    return x


@operator("Resize(X: tensor[1+], roi?: float[0-1], scales?: float[0-1], sizes?: int[0-1]; antialias=0, axes: ints=None, "
          "coordinate_transformation_mode='half_pixel', cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, "
          "keep_aspect_ratio_policy='stretch', mode='nearest', nearest_mode='round_prefer_floor')")
def resize(t: Onnx, a: Attributes, x: Node, roi: Node | None, scales: Node | None, sizes: Node | None) -> Node:
    """An image resized, by scales or to sizes. Version 10 has scales alone, and the simplest coordinates."""
    if a.version < 11:
        scales, roi = roi, None
        a.coordinate_transformation_mode, a.nearest_mode = "asymmetric", "floor"
    axes = list(range(t.rank(x))) if a.axes is None else t.given_axes(x, a.axes)
    box = t.floats(roi, "the region") if roi is not None and a.coordinate_transformation_mode == "tf_crop_and_resize" else []
    if sizes is not None and t.type(sizes).elements:
        lines = _to_sizes(t, a, x, axes, t.ints(sizes, "the sizes"))
    elif scales is not None and t.type(scales).elements == len(axes):
        lines = {d: _scaled(t.shape(x)[d], s) for d, s in zip(axes, t.floats(scales, "the scales"), strict=True)}
    else:
        raise TypeFault("neither scales nor sizes are given, one a dimension")
    n = len(axes)
    if box and len(box) != 2 * n:
        raise TypeFault(f"the region has {2 * n} numbers, got {len(box)}")
    whole = {d: Line(t.shape(x)[d], lines[d][0], lines[d][1], (box[i], box[n + i]) if box else (0.0, 1.0)) for i, d in enumerate(axes)}
    if any(line.scale <= 0 or (line.have == 0 and line.want) for line in whole.values()):
        raise TypeFault(f"the scales are {[line.scale for line in whole.values()]}")
    made, mode = x, a.coordinate_transformation_mode
    for d, line in whole.items():
        if line.want:
            real("the positions in the operand", line.place(0, mode), line.place(line.want - 1, mode))
        made = resized(t, a, made, d, line)
    if mode == "tf_crop_and_resize":
        made = _outside(t, a, made, whole)
    return _converted(t, made, x)


def _scaled(have: int, scale: float) -> tuple[int, float]:
    """The size of a dimension times a scale, and the scale. Raises TypeFault for one that is not positive and finite."""
    real("the scales", scale)
    if scale <= 0:
        raise TypeFault(f"the scales must be positive, not {scale}")
    real("the sizes of the result", have * scale)
    return floor(have * scale), scale


def _to_sizes(t: Onnx, a: Attributes, x: Node, axes: list[int], sizes: list[int]) -> dict[int, tuple[int, float]]:
    """Size and scale by axis."""
    if len(sizes) != len(axes):
        raise TypeFault(f"{len(sizes)} sizes for {len(axes)} axes")
    ratios = [want / max(t.shape(x)[d], 1) for d, want in zip(axes, sizes, strict=True)]
    if a.keep_aspect_ratio_policy == "stretch":
        return {d: (want, ratio) for d, want, ratio in zip(axes, sizes, ratios, strict=True)}
    if a.keep_aspect_ratio_policy not in ("not_larger", "not_smaller"):
        raise TypeFault(f"keep_aspect_ratio_policy {a.keep_aspect_ratio_policy!r} is not known")
    scale = min(ratios) if a.keep_aspect_ratio_policy == "not_larger" else max(ratios)
    return {d: (floor(scale * t.shape(x)[d] + 0.5), scale) for d in axes}


@operator("Upsample(X, scales?: float[1]; mode='nearest', scales: floats=None, height_scale: float=None, width_scale: float=None)")
def upsample(t: Onnx, a: Attributes, x: Node, scales: Node | None) -> Node:
    """An image enlarged by scales, from the first element on."""
    given = a.scales if scales is None else t.floats(scales, "the scales")
    if given is None and a.height_scale and a.width_scale:
        given = [1.0, 1.0, a.height_scale, a.width_scale]
    if given is None or len(given) != t.rank(x):
        raise TypeFault("one scale a dimension is needed")
    a.coordinate_transformation_mode, a.nearest_mode, a.antialias, a.exclude_outside, a.cubic_coeff_a = "asymmetric", "floor", 0, 0, -0.75
    made = x
    for d, scale in enumerate(given):
        made = resized(t, a, made, d, Line(t.shape(x)[d], *_scaled(t.shape(x)[d], scale)))
    return _converted(t, made, x)
