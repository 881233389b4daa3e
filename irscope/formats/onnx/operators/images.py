"""Samples of images between pixels: grids, regions of interest; and the choice of boxes."""
from __future__ import annotations

from functools import reduce
from itertools import product, starmap

from irscope.formats.onnx.algebra import Onnx, bounded
from irscope.formats.onnx.declarations import Attributes
from irscope.formats.onnx.operators import operator
from irscope.formats.onnx.operators.indexing import places_of
from irscope.formats.relay.operators.image import sampled
from irscope.formats.relay.operators.suppression import Candidates, best_first, rows, survivors
from irscope.formats.relay.operators.vision import cells_of
from irscope.formats.torchscript.operators.grids import grid_sampler
from irscope.graph import Node
from irscope.graph.dtypes import F64, PRED, S32, S64
from irscope.lazy import np
from irscope.ops.checked import at_least, real
from irscope.ops.faults import TypeFault

MODES = {"bilinear": 0, "linear": 0, "nearest": 1, "bicubic": 2, "cubic": 2}
PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


@operator("GridSample(X: tensor[3+], grid: float[3+]; align_corners=0, mode='bilinear', padding_mode='zeros')")
def grid_sample(t: Onnx, a: Attributes, x: Node, grid: Node) -> Node:
    """Samples at positions from -1 to 1, the last coordinate first."""
    mode = "bilinear" if a.mode == "linear" else a.mode
    if mode not in MODES or a.padding_mode not in PADDINGS:
        raise TypeFault(f"mode {a.mode!r} with padding {a.padding_mode!r} is not known")
    made: Node = t.by_torch(grid_sampler, x, grid, MODES[mode], PADDINGS[a.padding_mode], bool(a.align_corners))
    return made


@operator("RoiAlign(X: float[4], rois: float[2], batch_indices: int[1]; coordinate_transformation_mode: str=None, mode='avg', "
          "output_height=1, output_width=1, sampling_ratio=0, spatial_scale=1.0)")
def roi_align(t: Onnx, a: Attributes, x: Node, rois: Node, batch: Node) -> Node:
    """Regions (x1, y1, x2, y2) averaged to one size. Without a sampling ratio, larger regions take more samples: they must be known."""
    half = (a.coordinate_transformation_mode or ("half_pixel" if a.version >= 16 else "output_half_pixel")) == "half_pixel"
    n = t.shape(rois)[0]
    if a.mode not in ("avg", "max") or a.output_height < 1 or a.output_width < 1:
        raise TypeFault(f"mode {a.mode!r}, size {a.output_height} x {a.output_width}")
    if t.shape(rois)[1] != 4 or t.shape(batch)[0] != n:
        raise TypeFault(f"regions {list(t.shape(rois))} and batch_indices {list(t.shape(batch))}: four numbers and an index for each "
                        "are needed")
    if a.sampling_ratio > 0 or not n:
        return _aligned(t, a, x, rois, batch, (a.sampling_ratio, a.sampling_ratio, half))
    known = np.array(t.floats(rois, "the regions")).reshape(n, 4) * a.spatial_scale
    real("the scaled regions", *known.ravel().tolist())
    parts = []
    for i in range(n):
        left, top, right, bottom = known[i].tolist()
        width, height = right - left, bottom - top
        real("the sizes of the regions", width, height)
        if not half:
            width, height = max(width, 1), max(height, 1)
        counts = (max(1, int(np.ceil(height / a.output_height))), max(1, int(np.ceil(width / a.output_width))), half)
        parts.append(_aligned(t, a, x, t.slice_dim(rois, 0, i, i + 1), t.slice_dim(batch, 0, i, i + 1), counts))
    return t.concat(parts, 0)


def _aligned(t: Onnx, a: Attributes, x: Node, rois: Node, batch: Node, form: tuple[int, int, bool]) -> Node:
    """Regions with the same number of samples in each cell. ``form``: samples down and across, and whether to shift by half a pixel."""
    down, across, half = form
    c, n = t.shape(x)[1], t.shape(rois)[0]
    images = t.take(x, t.convert(batch, S64), 0)
    places = []
    for low, count, ratio in ((1, a.output_height, down), (0, a.output_width, across)):
        start, end = (t.plus(t.scale(t.slice_dim(rois, 1, k, k + 1), a.spatial_scale), -0.5 if half else 0) for k in (low, low + 2))
        length = t.sub(end, start) if half else t.maximum(t.sub(end, start), t.like(start, 1))
        step = (np.arange(bounded(count * ratio, "the samples of a region")) + 0.5) / max(ratio, 1) / count
        places.append(t.add(start, t.mul(length, t.array(step.reshape(1, -1), t.dtype(rois)))))
    cells = (n, c, a.output_height, down, a.output_width, across)
    if a.mode == "avg":
        return t.mean(cells_of(t, images, places, cells, lambda y, z: sampled(t, images, y, z, "bilinear")), [3, 5])
    return t.max(cells_of(t, images, places, cells, lambda y, z: _greatest(t, images, y, z)), [3, 5])


def _greatest(t: Onnx, images: Node, y: Node, z: Node) -> Node:
    """The greatest of the four weighted neighbours of each position."""
    top, left = t.unary("floor", y), t.unary("floor", z)
    down, right = t.sub(y, top), t.sub(z, left)

    def part(i: int, j: int) -> Node:
        weight = t.mul(down if i else t.sub(t.like(down, 1), down), right if j else t.sub(t.like(right, 1), right))
        pixel = sampled(t, images, t.plus(top, i), t.plus(left, j), "nearest")
        return t.mul(pixel, t.reshape(weight, (t.shape(weight)[0], 1, *t.shape(weight)[1:])))
    return reduce(t.maximum, starmap(part, product((0, 1), repeat=2)))


@operator("MaxRoiPool(X: float[4], rois: float[2]; pooled_shape: ints!, spatial_scale=1.0)")
def max_roi_pool(t: Onnx, a: Attributes, x: Node, rois: Node) -> Node:
    """The greatest element of each cell of regions (batch, x1, y1, x2, y2), which must be known."""
    if len(a.pooled_shape) != 2 or t.shape(rois)[1] != 5:
        raise TypeFault(f"pooled_shape {a.pooled_shape} and regions {list(t.shape(rois))}: two sizes, and five numbers for each region "
                        "are needed")
    known = np.array(t.floats(rois, "the regions"), np.float64 if t.dtype(rois) is F64 else np.float32).reshape(t.shape(rois))
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.multiply(known[:, 1:], a.spatial_scale, dtype=known.dtype)  # whether 3.5 is reached decides about a row
    real("the scaled regions", *scaled.ravel().tolist())
    (_, c, h, w), (ph, pw) = t.shape(x), (at_least(1, "a size of the result", size) for size in a.pooled_shape)
    bounded(16 * len(known) * ph * pw, "pooling the regions")
    found = []
    for row, corners in zip(known, scaled, strict=True):
        left, top, right, bottom = (int(np.floor(float(v) + 0.5)) for v in corners)
        height, width = max(bottom - top + 1, 1), max(right - left + 1, 1)
        image = t.slice_dim(x, 0, int(row[0]), int(row[0]) + 1)
        for i in range(ph):
            for j in range(pw):
                low, high = (min(max(v + top, 0), h) for v in (i * height // ph, -(-(i + 1) * height // ph)))
                first, last = (min(max(v + left, 0), w) for v in (j * width // pw, -(-(j + 1) * width // pw)))
                cell = t.slice_dim(t.slice_dim(image, 2, low, max(low, high)), 3, first, max(first, last))
                empty = high <= low or last <= first
                found.append(t.full((1, c), 0, t.dtype(x)) if empty else t.max(cell, [2, 3]))
    if not found:
        return t.full((0, c, ph, pw), 0, t.dtype(x))
    return t.transpose(t.reshape(t.concat(found, 0), (len(known), ph, pw, c)), (0, 3, 1, 2))


@operator("NonMaxSuppression(boxes: float[3], scores: float[3], max_output_boxes_per_class?: int[0-1], iou_threshold?: float[0-1], "
          "score_threshold?: float[0-1]; center_point_box=0)")
def non_max_suppression(t: Onnx, a: Attributes, boxes: Node, scores: Node, most: Node | None, iou: Node | None, least: Node | None) -> Node:
    """The boxes that no better one of their class overlaps, as (batch, class, box). Their number is computed from the inputs."""
    b, c, n = t.shape(scores)
    if a.center_point_box:
        x, y, w, h = (t.slice_dim(boxes, 2, i, i + 1) for i in range(4))
        half_w, half_h = t.scale(w, 0.5), t.scale(h, 0.5)
        boxes = t.concat([t.sub(y, half_h), t.sub(x, half_w), t.add(y, half_h), t.add(x, half_w)], 2)
    flat = t.reshape(scores, (b * c, n))
    value, order = best_first(t, flat, t.full((b * c, n), True, PRED))
    able = t.full((b * c, n), True, PRED)
    if least is not None:
        able = t.compare("GT", value, t.broadcast_to(t.convert(t.reshape(least, ()), t.dtype(value)), (b * c, n)))
    owner = t.reshape(t.broadcast_to(t.reshape(boxes, (b, 1, n, 4)), (b, c, n, 4)), (b * c, n, 4))
    limit = t.array(0, S64) if most is None else t.convert(t.reshape(most, ()), S64)
    limit = t.broadcast_to(t.convert(t.minimum(limit, t.like(limit, n)), S32), (b * c,))
    close = t.array(0, t.dtype(boxes)) if iou is None else t.convert(t.reshape(iou, ()), t.dtype(boxes))
    kept, _ = survivors(t, Candidates(rows(t, owner, order), able, able, able), close, limit, strict=True)
    numbers = [t.broadcast_to(t.reshape(t.iota((b, c), d, S64), (b * c, 1)), (b * c, n)) for d in (0, 1)]
    found = places_of(t, t.reshape(kept, (b * c * n,)))
    columns = [t.take(t.reshape(part, (b * c * n,)), found, 0) for part in (*numbers, t.convert(order, S64))]
    return t.concat([t.reshape(column, (t.shape(column)[0], 1)) for column in columns], 1)
