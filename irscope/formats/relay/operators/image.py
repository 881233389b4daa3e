"""Images in another size, and samples at places between the pixels."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

from irscope.formats.relay.algebra import Relay, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.convolution import SPATIAL
from irscope.formats.relay.operators.pooling import LAYOUT
from irscope.graph import Kind, Node
from irscope.graph.dtypes import S64
from irscope.ops.lazy import LazyModule

np: Any = LazyModule("numpy")
INJ = Kind.INJECTIVE


def source(i: float, have: int, want: int, mode: str, roi: tuple[float, float] | None = None) -> float:
    """Where the centre of a result pixel lies in the input."""
    scale = want / have
    match mode:
        case "half_pixel":
            return (i + 0.5) / scale - 0.5
        case "align_corners":
            return i * (have - 1) / (want - 1) if want > 1 else 0.0
        case "asymmetric":
            return i / scale
        case "pytorch_half_pixel":
            return (i + 0.5) / scale - 0.5 if want > 1 else 0.0
        case "tf_half_pixel_for_nn":
            return (i + 0.5) / scale
        case "tf_crop_and_resize":
            start, end = roi or (0.0, 1.0)
            inner = i * (end - start) * (have - 1) / (want - 1) if want > 1 else 0.5 * (end - start) * (have - 1)
            return start * (have - 1) + inner
    raise ValueError(f"coordinate_transformation_mode {mode!r} is not known")


def nearest(place: float, rounding: str, mode: str) -> int:
    """The pixel that stands for a place between two."""
    rounding = rounding or ("floor" if mode in ("asymmetric", "tf_half_pixel_for_nn") else "round_prefer_ceil")
    match rounding:
        case "floor":
            return floor(place + 1e-5 if mode == "align_corners" else place)
        case "ceil":
            return ceil(place - 1e-5)
        case "round_prefer_floor":
            return ceil(place - 0.5)
    return floor(place + 0.5)


def resized(t: Relay, x: Node, d: int, want: int, a: Attributes, roi: tuple[float, float] | None = None) -> Node:
    """One dimension in another size: a choice of pixels, or a product with a banded matrix."""
    have, mode = t.shape(x)[d], str(a.coordinate_transformation_mode)
    places = [source(i, have, want, mode, roi) for i in range(table_of(want))]
    if a.method == "nearest_neighbor":
        at = [min(max(nearest(p, str(a.rounding_method), mode), 0), have - 1) for p in places]
        return x if at == list(range(have)) else t.take(x, t.array(at, S64), d)
    if want == have and places == [float(i) for i in range(have)]:
        return x
    table_of(have * want)
    matrix = np.zeros((have, want))
    for i, place in enumerate(places):
        low = floor(place)
        part = place - low
        taps = [(low, 1 - part), (low + 1, part)]
        if a.method in ("cubic", "bicubic"):
            taps = [(low + k - 1, w) for k, w in enumerate(cubic(part, float(a.cubic_alpha)))]
            if a.cubic_exclude:
                taps = [(p, w if 0 <= p < have else 0.0) for p, w in taps]
                total = sum(w for _, w in taps)
                taps = [(p, w / total) for p, w in taps]
        for p, weight in taps:
            matrix[min(max(p, 0), have - 1), i] += weight
    return product_along(t, x, d, matrix)


def product_along(t: Relay, x: Node, d: int, matrix: Any) -> Node:
    """One dimension multiplied by a matrix."""
    moved = t.dot(x, t.array(matrix, t.dtype(x)), ([d], [0]))
    order = list(range(t.rank(x) - 1))
    order.insert(d, t.rank(x) - 1)
    return t.transpose(moved, order)


def cubic(f: float, a: float) -> list[float]:
    """Weights of the four neighbours in cubic convolution."""

    def near(v: float) -> float:
        return ((a + 2) * v - (a + 3)) * v * v + 1

    def far(v: float) -> float:
        return ((a * v - 5 * a) * v + 8 * a) * v - 4 * a

    return [far(f + 1), near(f), near(1 - f), far(2 - f)]


def _resize(n: int) -> None:
    def build(t: Relay, a: Attributes, x: Node) -> Node:
        return resize_to(t, a, x, n, a.size if isinstance(a.size, list | tuple) else [a.size] * n)

    build.__doc__ = "An image in another size."
    rest = (
        f"(data; size=None, roi=None, layout={LAYOUT[n]!r}, method='linear', coordinate_transformation_mode='half_pixel', "
        "rounding_method='', cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None)"
    )
    schemas = [f"image.resize{n}d{rest}"]
    if n == 2:
        schemas.append("image.resize" + rest.replace("'linear'", "'bilinear'"))
    operator(*schemas, kind=INJ, level=5)(build)


def resize_to(t: Relay, a: Attributes, x: Node, n: int, sizes: Any) -> Node:
    """All spatial dimensions in other sizes."""
    plain = "NC" + SPATIAL[n]
    out = t.dtype_word(a.out_dtype, t.dtype(x))
    x = t.to_layout(x, a.layout, plain)
    whole = not t.dtype(x).is_float and a.method != "nearest_neighbor"
    if whole:
        from irscope.graph.dtypes import F32

        x = t.convert(x, F32)
    for i in range(n):
        roi = None
        if a.roi and len(a.roi) == 2 * n:
            roi = (float(a.roi[i]), float(a.roi[n + i]))
        x = resized(t, x, 2 + i, int(sizes[i]), a, roi)
    return t.to_layout(t.convert(x, out), plain, a.layout)


for _n in (1, 2, 3):
    _resize(_n)


@operator(
    "nn.upsampling(data; scale_h=1.0, scale_w=1.0, layout='NCHW', method='nearest_neighbor', align_corners=False)", kind=INJ, level=2
)
def upsampling(t: Relay, a: Attributes, x: Node) -> Node:
    """An image larger by a factor."""
    return upsampled(t, a, x, [float(a.scale_h), float(a.scale_w)])


@operator(
    "nn.upsampling3d(data; scale_d=1.0, scale_h=1.0, scale_w=1.0, layout='NCDHW', method='nearest_neighbor', "
    "coordinate_transformation_mode='half_pixel')",
    kind=INJ,
    level=2,
)
def upsampling3d(t: Relay, a: Attributes, x: Node) -> Node:
    """A volume larger by a factor."""
    return upsampled(t, a, x, [float(a.scale_d), float(a.scale_h), float(a.scale_w)])


def upsampled(t: Relay, a: Attributes, x: Node, scales: list[float]) -> Node:
    """Sizes times factors, rounded."""
    n = len(scales)
    plain = "NC" + SPATIAL[n]
    inner = t.to_layout(x, a.layout, plain)
    sizes = [floor(s * f + 0.5) for s, f in zip(t.shape(inner)[2:], scales, strict=True)]
    mode = getattr(a, "coordinate_transformation_mode", None)
    if mode is None:
        mode = "align_corners" if getattr(a, "align_corners", False) else "asymmetric" if a.method == "nearest_neighbor" else "half_pixel"
    method = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}.get(a.method, a.method)
    how = Attributes(
        method=method, coordinate_transformation_mode=mode, rounding_method="", cubic_alpha=-0.5, cubic_exclude=0, roi=None,
        out_dtype=None, layout=plain,
    )  # fmt: skip
    return t.to_layout(resize_to(t, how, inner, n, sizes), plain, a.layout)


# ---------------------------------------------------------------------- samples between pixels


def sampled(t: Relay, x: Node, rows: Node, columns: Node, method: str, outside: str = "border") -> Node:
    """``x`` (N, C, H, W) at places (N, H', W') given in pixels; ``outside`` is zeros or border."""
    n = t.shape(x)[0]
    if method.startswith("nearest"):
        return _pixel(t, x, t.unary("round-nearest-even", rows), t.unary("round-nearest-even", columns), outside)
    top, left = t.unary("floor", rows), t.unary("floor", columns)
    down, right = t.sub(rows, top), t.sub(columns, left)
    total: Node | None = None
    for i in (0, 1):
        for j in (0, 1):
            weight = t.mul(down if i else _rest(t, down), right if j else _rest(t, right))
            pixel = _pixel(t, x, t.plus(top, i), t.plus(left, j), outside)
            part = t.mul(pixel, t.reshape(weight, (n, 1, *t.shape(weight)[1:])))
            total = part if total is None else t.add(total, part)
    assert total is not None
    return total


def _rest(t: Relay, x: Node) -> Node:
    return t.sub(t.like(x, 1), x)


def _pixel(t: Relay, x: Node, rows: Node, columns: Node, outside: str) -> Node:
    """The pixel at whole places, clamped; zero outside where that is wanted."""
    n, c, h, w = t.shape(x)
    place = t.shape(rows)[1:]

    def clamped(v: Node, size: int) -> Node:
        return t.convert(t.minimum(t.maximum(v, t.like(v, 0)), t.like(v, size - 1)), S64)

    flat = t.add(t.scale(clamped(rows, h), w), clamped(columns, w))
    at = t.reshape(t.add(flat, t.scale(t.iota((n, *place), 0, S64), h * w)), (n * place[0] * place[1],))
    pixels = t.reshape(t.transpose(x, (0, 2, 3, 1)), (n * h * w, c))
    picked = t.transpose(t.reshape(t.take(pixels, at, 0), (n, *place, c)), (0, 3, 1, 2))
    if outside != "zeros":
        return picked
    inside = t.binary(
        "and",
        t.binary("and", t.compare("GE", rows, t.like(rows, 0)), t.compare("LE", rows, t.like(rows, h - 1))),
        t.binary("and", t.compare("GE", columns, t.like(columns, 0)), t.compare("LE", columns, t.like(columns, w - 1))),
    )
    return t.select(t.reshape(inside, (n, 1, *place)), picked, t.like(picked, 0))


@operator("image.grid_sample(data, grid; method='bilinear', layout='NCHW', padding_mode='zeros', align_corners=True)", kind=INJ, level=5)
def grid_sample(t: Relay, a: Attributes, x: Node, grid: Node) -> Node:
    """The image at places of a grid, given from -1 to 1 (N, 2, H, W: x, then y)."""
    if a.layout != "NCHW" or a.padding_mode not in ("zeros", "border") or a.method not in ("bilinear", "nearest"):
        raise ValueError("only NCHW, bilinear or nearest, with zeros or border outside")
    n, _, h, w = t.shape(x)
    place = t.shape(grid)[2:]

    def pixels(d: int, size: int) -> Node:
        v = t.reshape(t.slice_dim(grid, 1, d, d + 1), (n, *place))
        v = t.scale(t.plus(v, 1), 0.5)
        v = t.scale(v, size - 1) if a.align_corners else t.plus(t.scale(v, size), -0.5)
        return t.minimum(t.maximum(v, t.like(v, 0)), t.like(v, size - 1)) if a.padding_mode == "border" else v

    return sampled(t, x, pixels(1, h), pixels(0, w), a.method, a.padding_mode)


@operator("image.affine_grid(data; target_shape!)", kind=INJ, level=5)
def affine_grid(t: Relay, a: Attributes, theta: Node) -> Node:
    """The grid that an affine map (N, 2, 3) takes the target to, from -1 to 1."""
    h, w = (int(v) for v in a.target_shape)
    n = t.shape(theta)[0]
    rows = np.linspace(-1, 1, h) if h > 1 else np.zeros(1)
    columns = np.linspace(-1, 1, w) if w > 1 else np.zeros(1)
    base = np.stack([np.broadcast_to(columns, (h, w)), np.broadcast_to(rows[:, None], (h, w)), np.ones((h, w))]).reshape(3, h * w)
    return t.reshape(t.dot(theta, t.array(base, t.dtype(theta)), ([2], [0])), (n, 2, h, w))


@operator(
    "image.crop_and_resize(data, boxes, box_indices; crop_size=None, layout='NCHW', method='bilinear', extrapolation_value=0.0, "
    "out_dtype=None)",
    kind=INJ,
    level=5,
)
def crop_and_resize(t: Relay, a: Attributes, x: Node, boxes: Node, indices: Node) -> Node:
    """Boxes (y1, x1, y2, x2 from 0 to 1) of the images in one size."""
    x = t.convert(t.to_layout(x, a.layout, "NCHW"), t.dtype(boxes))
    h, w = t.shape(x)[2:]
    oh, ow = (int(v) for v in a.crop_size)
    n = t.shape(boxes)[0]
    images = t.take(x, t.convert(indices, S64), 0)

    def line(low: int, high: int, size: int, count: int) -> Node:
        start, end = (t.reshape(t.slice_dim(boxes, 1, k, k + 1), (n, 1)) for k in (low, high))
        step = np.arange(count) / (count - 1) if count > 1 else np.full(1, 0.5)
        at = t.add(start, t.mul(t.sub(end, start), t.array(step.reshape(1, count), t.dtype(boxes))))
        return t.scale(at, size - 1)

    rows = t.broadcast_to(t.reshape(line(0, 2, h, oh), (n, oh, 1)), (n, oh, ow))
    columns = t.broadcast_to(t.reshape(line(1, 3, w, ow), (n, 1, ow)), (n, oh, ow))
    made = sampled(t, images, rows, columns, "nearest" if a.method == "nearest_neighbor" else "bilinear")
    inside = t.binary(
        "and",
        t.binary("and", t.compare("GE", rows, t.like(rows, 0)), t.compare("LE", rows, t.like(rows, h - 1))),
        t.binary("and", t.compare("GE", columns, t.like(columns, 0)), t.compare("LE", columns, t.like(columns, w - 1))),
    )
    made = t.select(t.reshape(inside, (n, 1, oh, ow)), made, t.like(made, float(a.extrapolation_value)))
    return t.to_layout(t.convert(made, t.dtype_word(a.out_dtype, t.dtype(made))), "NCHW", a.layout)
