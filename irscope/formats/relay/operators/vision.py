"""Operators of detection networks that are plain arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt

from irscope.formats.relay.algebra import Relay, each, plain_layout, shape_text, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.image import sampled
from irscope.graph import Kind, Node, TensorType, Type
from irscope.graph.dtypes import S32, S64
from irscope.lazy import np
from irscope.ops.faults import TypeFault


@operator("vision.yolo_reorg(data: 4d; stride=1)", kind=Kind.INJECTIVE)
def yolo_reorg(t: Relay, a: Attributes, x: Node) -> Node:
    """Darknet's reorganisation: planes become channels, in darknet's own order."""
    n, c, h, w = t.shape(x)
    s = int(a.stride)
    out = c // (s * s)
    if not out or h % s or w % s:
        raise TypeFault(f"planes of {h} x {w} and {c} channels have no blocks of {s}")
    # Element (b, k, i, j) of the result reads the input as (out, h*s, w*s) planes: darknet's index arithmetic.
    table_of(8 * c * h * w)
    k, i, j = np.meshgrid(np.arange(c), np.arange(h), np.arange(w), indexing="ij")
    plane, offset = k % out, k // out
    column, row = j * s + offset % s, i * s + offset // s
    flat = column + w * s * (row + h * s * plane)
    wide = t.take(t.reshape(x, (n, c * h * w)), t.array(flat.reshape(-1), S64), 1)
    return t.reshape(wide, (n, c * s * s, h // s, w // s))


@operator("vision.multibox_prior(data: 4d; sizes=[1.0], ratios=[1.0], steps=[-1.0, -1.0], offsets=[0.5, 0.5], clip=False)",
          "nn.multibox_prior(data: 4d; sizes=[1.0], ratios=[1.0], steps=[-1.0, -1.0], offsets=[0.5, 0.5], clip=False)")
def multibox_prior(t: Relay, a: Attributes, x: Node) -> Node:
    """The anchor boxes of every pixel: a constant."""
    h, w = t.shape(x)[2:]
    sizes, ratios = [float(v) for v in a.sizes], [float(v) for v in a.ratios]
    if not sizes or not h * w or min(ratios, default=1) <= 0 or len(a.steps) != 2 or len(a.offsets) != 2:
        told = ", ".join(f"{name} {shape_text(v)}" for name, v in vars(a).items() if isinstance(v, list))
        raise TypeFault(f"sizes, positive ratios, two steps, two offsets and pixels are needed, got {shape_text(t.shape(x))}, {told}")
    table_of(8 * h * w * 4 * (len(sizes) + len(ratios)))
    steps = [1.0 / n if s <= 0 else float(s) for s, n in zip(a.steps, (h, w), strict=True)]
    shapes = [(s * h / w / 2, s / 2) for s in sizes] + [
        (sizes[0] * h / w * sqrt(r) / 2, sizes[0] / sqrt(r) / 2) for r in ratios[1:]
    ]
    boxes = []
    for i in range(h):
        cy = (i + float(a.offsets[0])) * steps[0]
        for j in range(w):
            cx = (j + float(a.offsets[1])) * steps[1]
            boxes += [[cx - bw, cy - bh, cx + bw, cy + bh] for bw, bh in shapes]
    values = np.asarray(boxes)[None]
    return t.array(np.clip(values, 0, 1) if a.clip else values, t.dtype(x))


@operator("vision.roi_align(data: 4d, rois: 2d; pooled_size!, spatial_scale!, sample_ratio=-1, layout='NCHW', mode='avg')",
          kind=Kind.CONTRACTION)
def roi_align(t: Relay, a: Attributes, x: Node, rois: Node) -> Node:
    """Regions (batch, x1, y1, x2, y2) averaged to one size, with a fixed number of samples per cell."""
    ratio = int(a.sample_ratio)
    if ratio <= 0:
        raise TypeFault("sample_ratio depends on the regions; give it a positive number")
    x = t.to_layout(x, a.layout, "NCHW")
    n, c = t.shape(rois)[0], t.shape(x)[1]
    ph, pw = each(a.pooled_size, 2)
    scale = float(a.spatial_scale)
    images = t.take(x, t.convert(t.reshape(t.slice_dim(rois, 1, 0, 1), (n,)), S64), 0)
    places: list[Node] = []
    for low, high, count in ((2, 4, ph), (1, 3, pw)):
        start, end = (t.scale(t.slice_dim(rois, 1, k, k + 1), scale) for k in (low, high))
        length = t.maximum(t.sub(end, start), t.like(start, 1))
        step = (np.arange(table_of(count * ratio)) + 0.5) / ratio / count
        places.append(t.add(start, t.mul(length, t.array(step.reshape(1, -1), t.dtype(rois)))))
    cells = cells_of(t, images, places, (n, c, ph, ratio, pw, ratio), lambda y, z: sampled(t, images, y, z, "bilinear"))
    made = t.mean(cells, [3, 5]) if a.mode in ("avg", b"avg") else t.max(cells, [3, 5])
    return t.to_layout(made, "NCHW", a.layout)


def cells_of(t: Relay, images: Node, places: Sequence[Node], cells: tuple[int, ...], read: Callable[[Node, Node], Node]) -> Node:
    """The samples of N regions, of shape ``cells``: (N, C, rows, samples, columns, samples).

    ``places`` are the positions down (N, rows * samples) and across (N, columns * samples), at which ``read`` samples the images.
    Samples more than a pixel outside of the image are 0.
    """
    n, (h, w) = cells[0], t.shape(images)[2:]
    size = (n, cells[2] * cells[3], cells[4] * cells[5])
    y = t.broadcast_to(t.reshape(places[0], (n, size[1], 1)), size)
    z = t.broadcast_to(t.reshape(places[1], (n, 1, size[2])), size)
    both = (y, h), (z, w)
    inside = t.binary("and", *(t.binary("and", t.compare("GE", v, t.like(v, -1)), t.compare("LE", v, t.like(v, k))) for v, k in both))
    values = read(*(t.minimum(t.maximum(v, t.like(v, 0)), t.like(v, k - 1)) for v, k in both))
    return t.reshape(t.select(t.reshape(inside, (n, 1, *size[1:])), values, t.like(values, 0)), cells)


@operator("vision.get_valid_counts(data: 3d, score_threshold; score_threshold=0.0, id_index=0, score_index=1)")
def get_valid_counts(t: Relay, a: Attributes, x: Node, threshold: Node) -> list[Node]:
    """Moves boxes above a threshold to the front: their number, the boxes, and their former positions."""
    b, n, k = t.shape(x)

    def column(index: int) -> Node:
        return t.reshape(t.slice_dim(x, 2, index, index + 1), (b, n))

    score = column(int(a.score_index))
    valid = t.compare("GT", score, t.convert(t.reshape(threshold, ()), t.dtype(x)))
    if int(a.id_index) >= 0:
        ident = column(int(a.id_index))
        valid = t.binary("and", valid, t.compare("GE", ident, t.like(ident, 0)))
    count = t.sum(t.convert(valid, S32), [1])
    key = t.select(valid, t.iota((b, n), 1, S32), t.plus(t.iota((b, n), 1, S32), n))
    order = t.sort([key, t.iota((b, n), 1, S32)], 1)[1]
    kept = t.compare("LT", t.iota((b, n), 1, S32), t.reshape(count, (b, 1)))
    wide = t.convert(t.broadcast_to(t.reshape(order, (b, n, 1)), (b, n, k)), S64)
    moved = t.gather_elements(x, wide, 1)
    boxes = t.select(t.reshape(kept, (b, n, 1)), moved, t.like(moved, -1))
    return [count, boxes, t.select(kept, order, t.like(order, -1))]


def pooled_type(a: Attributes, data: Type, rois: Type) -> Type | None:
    """One patch of ``pooled_size`` for each region."""
    if not (isinstance(data, TensorType) and isinstance(rois, TensorType) and data.rank == 4 and rois.rank == 2):
        return None
    letters = plain_layout(str(a.layout))
    if sorted(letters) != sorted("NCHW"):
        raise TypeFault(f"layout {a.layout} must contain each of NCHW")
    height, width = each(a.pooled_size, 2)
    sizes = dict(zip(letters, data.shape, strict=True)) | {"N": rois.shape[0], "H": height, "W": width}
    return TensorType(data.dtype, tuple(sizes[letter] for letter in letters))


@operator("vision.roi_pool(data: 4d, rois: 2d; pooled_size!, spatial_scale!, layout='NCHW')", kind=Kind.CONTRACTION, infer=pooled_type)
def roi_pool(t: Relay, a: Attributes, x: Node, rois: Node) -> Node:
    """The largest element in each cell of regions (batch, x1, y1, x2, y2) divided into a fixed number of cells; 0 in empty ones."""
    x = t.to_layout(x, a.layout, "NCHW")
    _, c, *sizes = t.shape(x)
    r = t.shape(rois)[0]
    images = t.take(x, t.convert(t.reshape(t.slice_dim(rois, 1, 0, 1), (r,)), S64), 0)
    inside = []  # (R, cells, pixels) of rows and of columns
    for low, high, cells, size in ((2, 4, each(a.pooled_size, 2)[0], sizes[0]), (1, 3, each(a.pooled_size, 2)[1], sizes[1])):
        start, end = (t.unary("round-nearest-afz", t.scale(t.slice_dim(rois, 1, k, k + 1), float(a.spatial_scale))) for k in (low, high))
        length = t.maximum(t.plus(t.sub(end, start), 1), t.like(start, 1))
        step = t.scale(length, 1.0 / cells) if cells & (cells - 1) == 0 else t.div(length, t.like(length, cells))
        number = t.array(np.arange(table_of(cells)).reshape(1, -1), t.dtype(rois))
        begin = t.add(t.unary("floor", t.mul(number, step)), start)
        stop = t.add(t.unary("ceil", t.mul(t.plus(number, 1), step)), start)
        pixel = t.array(np.arange(table_of(size)).reshape(1, 1, -1), t.dtype(rois))
        begin, stop = t.reshape(begin, (r, cells, 1)), t.reshape(stop, (r, cells, 1))
        inside.append(t.binary("and", t.compare("GE", pixel, begin), t.compare("LT", pixel, stop)))
    rows, columns = inside
    h, w = sizes
    ph, pw = t.shape(rows)[1], t.shape(columns)[1]
    lowest = t.array(t.dtype(x).lowest, t.dtype(x))
    across = t.select(t.reshape(columns, (r, 1, 1, pw, w)), t.reshape(images, (r, c, h, 1, w)), lowest)
    best = t.max(across, [4])  # R, C, H, PW
    down = t.select(t.reshape(rows, (r, 1, ph, 1, h)), t.reshape(t.transpose(best, (0, 1, 3, 2)), (r, c, 1, pw, h)), lowest)
    made = t.max(down, [4])
    filled = t.binary("and", t.reshape(t.any(rows, [2]), (r, 1, ph, 1)), t.reshape(t.any(columns, [2]), (r, 1, 1, pw)))
    return t.to_layout(t.select(filled, made, t.like(made, 0)), "NCHW", a.layout)
