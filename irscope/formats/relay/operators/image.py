"""Resizing of images, and samples between pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite

from irscope.formats.relay.algebra import Relay, each, shape_text, table_of
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.convolution import SPATIAL
from irscope.formats.relay.operators.pooling import LAYOUT
from irscope.formats.sampling import cubic, product_along
from irscope.graph import Kind, Node
from irscope.graph.dtypes import F32, F64, PRED, S64
from irscope.lazy import np
from irscope.ops.faults import TypeFault

INJ = Kind.INJECTIVE


METHODS = {"bilinear": "linear", "trilinear": "linear", "bicubic": "cubic"}
"""Names of methods up to 0.7, and of ``nn.upsampling``."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """How a resize maps result pixels to the input, as in TVM's ``topi.image.resize``.

    ``whole_steps``: with asymmetric coordinates, an integer factor divides the index without rounding.
    """

    method: str
    mode: str
    rounding: str = ""
    alpha: float = -0.5
    exclude: bool = False
    roi: tuple[float, ...] = ()
    extrapolation: float = 0.0
    whole_steps: bool = False

    @classmethod
    def of(cls, a: Attributes, n: int, whole_steps: bool = False, roi: Sequence[float] | None = None) -> Resampling:
        """The resampling of an operator with ``n`` spatial dimensions. Raises TypeFault for unknown names."""
        given = [float(v) for v in (a.roi or () if roi is None else roi)]
        mode = str(a.coordinate_transformation_mode)
        if len(given) != 2 * n and (given or mode == "tf_crop_and_resize"):
            raise TypeFault(f"roi has {2 * n} numbers for {n} dimension{'s' if n > 1 else ''}, got {len(given)}")
        method = METHODS.get(str(a.method), str(a.method))
        if method not in ("nearest_neighbor", "linear", "cubic"):
            raise TypeFault(f"method {a.method!r} is not known", "it is nearest_neighbor, linear or cubic")
        rounding, alpha = str(a.rounding_method), float(a.cubic_alpha)
        return cls(method, mode, rounding, alpha, bool(a.cubic_exclude), tuple(given), float(a.extrapolation_value), whole_steps)

    def box(self, d: int, n: int) -> tuple[float, float]:
        """Begin and end of ``roi`` along spatial dimension ``d`` of ``n``; of three dimensions TVM takes the last first."""
        at = n - 1 - d if n == 3 else d
        return (self.roi[at], self.roi[n + at]) if self.roi else (0.0, 0.0)


def source(i: int, have: int, want: int, mode: str, box: tuple[float, float] = (0.0, 0.0)) -> float:
    """The position of a result pixel's centre in the input. Raises TypeFault for an unknown mode."""
    match mode:
        case "half_pixel":
            return (i + 0.5) * have / want - 0.5
        case "align_corners":
            return i * (have - 1) / (want - 1) if want > 1 else 0.0
        case "asymmetric":
            return i * have / want
        case "pytorch_half_pixel":
            return (i + 0.5) * have / want - 0.5 if want > 1 else 0.0
        case "tf_half_pixel_for_nn":
            return (i + 0.5) * have / want
        case "tf_crop_and_resize":
            start, end = box
            if want == 1:
                return 0.5 * (start + end) * (have - 1)
            return start * (have - 1) + i * (end - start) * (have - 1) / (want - 1)
    raise TypeFault(f"coordinate_transformation_mode {mode!r} is not known")


def nearest(place: float, how: Resampling, whole: bool) -> int:
    """The nearest pixel to a position; floor and ceil tolerate rounding errors as TVM does."""
    rounding = how.rounding or ("round" if how.mode == "align_corners" else "floor")
    if whole:
        rounding = "floor"
    match rounding:
        case "round":
            return floor(place + 0.5) if place >= 0 else ceil(place - 0.5)
        case "round_prefer_floor":
            return ceil(place - 0.5)
        case "round_prefer_ceil":
            return floor(place + 0.5)
        case "floor":
            return floor(place + 1e-5)
        case "ceil":
            return ceil(place - 1e-5)
    raise TypeFault(f"rounding_method {rounding!r} is not known", "it is round, round_prefer_floor, round_prefer_ceil, floor or ceil")


def resized(t: Relay, x: Node, d: int, places: Sequence[float], want: int, how: Resampling) -> Node:
    """Resize one dimension: by a selection of pixels, or a product with a banded matrix."""
    have = t.shape(x)[d]
    if how.method == "nearest_neighbor":
        whole = how.whole_steps and how.mode == "asymmetric" and want % have == 0
        at = [min(max(nearest(p, how, whole), 0), have - 1) for p in places]
        return x if len(at) == have and at == list(range(have)) else t.take(x, t.array(at, S64), d)
    if want == have and list(places) == [float(i) for i in range(have)]:
        return x
    table_of(have * want)
    matrix = np.zeros((have, want))
    for i, place in enumerate(places):
        low = floor(place)
        part = place - low
        taps = [(low, 1 - part), (low + 1, part)]
        if how.method == "cubic":
            taps = [(low + k - 1, w) for k, w in enumerate(cubic(part, how.alpha))]
            if how.exclude:
                taps = [(p, w if 0 <= p < have else 0.0) for p, w in taps]
                total = sum(w for _, w in taps)
                taps = [(p, w / total) for p, w in taps] if total else taps
        for p, weight in taps:
            matrix[min(max(p, 0), have - 1), i] += weight
    return product_along(t, x, d, t.array(matrix, t.dtype(x)))


def _resize(n: int) -> None:
    def build(t: Relay, a: Attributes, x: Node) -> Node:
        return resize_to(t, a, x, each(a.size, n), Resampling.of(a, n, whole_steps=n == 2))

    build.__doc__ = "An image resized."
    rest = (
        f"(data; size!, roi=None, layout={LAYOUT[n]!r}, method='linear', coordinate_transformation_mode='half_pixel', "
        "rounding_method='round', cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=None)"
    )
    schemas = [f"image.resize{n}d{rest}"]
    if n == 2:  # of 0.7, which rounds to the nearest only with aligned corners
        schemas.append("image.resize" + rest.replace("'linear'", "'bilinear'").replace("'round'", "''"))
    operator(*schemas, kind=INJ)(build)


def resize_to(t: Relay, a: Attributes, x: Node, sizes: Sequence[int], how: Resampling) -> Node:
    """Resize all spatial dimensions. Sums are in float32 at least, as in TVM."""
    n = len(sizes)
    plain = "NC" + SPATIAL[n]
    out = t.dtype_word(a.out_dtype, t.dtype(x))
    x = t.to_layout(x, a.layout, plain)
    if how.method != "nearest_neighbor" and t.dtype(x) not in (F32, F64):
        x = t.convert(x, F32)
    inside: list[tuple[int, list[bool]]] = []
    for i, size in enumerate(sizes):
        have, want = t.shape(x)[2 + i], table_of(64 * size) // 64
        if want < 0:
            raise TypeFault(f"sizes are not negative, got {want}")
        if want and not have:
            raise TypeFault(f"an image without pixels has none to resize: {shape_text(t.shape(x))}")
        places = [source(k, have, want, how.mode, how.box(i, n)) for k in range(want)]
        if not all(map(isfinite, places)):
            raise TypeFault("a place in the image is not finite")
        inside.append((2 + i, [0 <= p <= have - 1 for p in places]))
        x = resized(t, x, 2 + i, places, want, how)
    if how.mode == "tf_crop_and_resize":
        for d, within in inside:
            if not all(within):
                mask = t.emit("broadcast", (t.array(within, PRED),), {"dimensions": (d,)}, type=t.type(x).with_dtype(PRED))
                x = t.select(mask, x, t.like(x, how.extrapolation))
    return t.to_layout(t.convert(x, out), plain, a.layout)


for _n in (1, 2, 3):
    _resize(_n)


@operator("nn.upsampling(data; scale_h!, scale_w!, layout='NCHW', method='nearest_neighbor', align_corners=False)", kind=INJ)
def upsampling(t: Relay, a: Attributes, x: Node) -> Node:
    """An image enlarged by a factor."""
    return upsampled(t, a, x, [float(a.scale_h), float(a.scale_w)], "align_corners" if a.align_corners else "asymmetric")


@operator("nn.upsampling3d(data; scale_d!, scale_h!, scale_w!, layout='NCDHW', method='nearest_neighbor', "
          "coordinate_transformation_mode='half_pixel')", kind=INJ)
def upsampling3d(t: Relay, a: Attributes, x: Node) -> Node:
    """A volume enlarged by a factor."""
    return upsampled(t, a, x, [float(a.scale_d), float(a.scale_h), float(a.scale_w)], str(a.coordinate_transformation_mode))


def upsampled(t: Relay, a: Attributes, x: Node, scales: list[float], mode: str) -> Node:
    """Sizes times factors, rounded: TVM's ``topi.nn.upsampling``, which is a resize with the coordinates of ``mode``."""
    plain = "NC" + SPATIAL[len(scales)]
    inner = t.to_layout(x, a.layout, plain)
    if not all(0 <= factor < table_of(1 << 20) for factor in scales):
        raise TypeFault(f"factors are between 0 and {1 << 20}, got {', '.join(map(str, scales))}")
    if t.rank(inner) != len(scales) + 2:
        raise TypeFault(f"{len(scales)} factors for data of {shape_text(t.shape(inner))}")
    sizes = [floor(s * f + 0.5) for s, f in zip(t.shape(inner)[2:], scales, strict=True)]
    how = Resampling(METHODS.get(str(a.method), str(a.method)), mode)
    if how.method not in ("nearest_neighbor", "linear", "cubic"):
        raise TypeFault(f"method {a.method!r} is not known", "it is nearest_neighbor, bilinear or bicubic")
    return t.to_layout(resize_to(t, Attributes(out_dtype=None, layout=plain), inner, sizes, how), plain, a.layout)


# ---------------------------------------------------------------------- samples between pixels


ROUNDED = {"nearest": "round-nearest-even", "nearest_away": "round-nearest-afz"}
CROPPED = {"bilinear": "bilinear", "nearest_neighbor": "nearest_away"}
"""Methods of ``image.crop_and_resize``: TVM rounds its places away from zero."""


def sampled(t: Relay, x: Node, rows: Node, columns: Node, method: str, outside: str = "border") -> Node:
    """Samples of ``x`` (N, C, H, W) at positions (N, H', W') in pixels; ``outside`` is zeros or border."""
    n = t.shape(x)[0]
    if method in ROUNDED:
        return _pixel(t, x, t.unary(ROUNDED[method], rows), t.unary(ROUNDED[method], columns), outside)
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
    """The pixels at integer positions, clamped; zero outside for ``zeros``."""
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
    inside = t.binary("and", t.binary("and", t.compare("GE", rows, t.like(rows, 0)), t.compare("LE", rows, t.like(rows, h - 1))),
                      t.binary("and", t.compare("GE", columns, t.like(columns, 0)), t.compare("LE", columns, t.like(columns, w - 1))))
    return t.select(t.reshape(inside, (n, 1, *place)), picked, t.like(picked, 0))


@operator("image.grid_sample(data: 4d, grid: 4d; method='bilinear', layout='NCHW', padding_mode='zeros', align_corners=True)", kind=INJ)
def grid_sample(t: Relay, a: Attributes, x: Node, grid: Node) -> Node:
    """Samples of the image at the positions of a grid, from -1 to 1 (N, 2, H, W: x, then y)."""
    if a.layout != "NCHW" or a.padding_mode not in ("zeros", "border") or a.method not in ("bilinear", "nearest"):
        raise TypeFault("only NCHW, bilinear or nearest, with zeros or border outside")
    n, _, h, w = t.shape(x)
    place = t.shape(grid)[2:]

    def pixels(d: int, size: int) -> Node:
        v = t.reshape(t.slice_dim(grid, 1, d, d + 1), (n, *place))
        v = t.scale(t.plus(v, 1), 0.5)
        v = t.scale(v, size - 1) if a.align_corners else t.plus(t.scale(v, size), -0.5)
        return t.minimum(t.maximum(v, t.like(v, 0)), t.like(v, size - 1)) if a.padding_mode == "border" else v

    return sampled(t, x, pixels(1, h), pixels(0, w), a.method, a.padding_mode)


@operator("image.affine_grid(data: 3d; target_shape!)", kind=INJ)
def affine_grid(t: Relay, a: Attributes, theta: Node) -> Node:
    """The grid of source positions of an affine map (N, 2, 3), from -1 to 1."""
    h, w = each(a.target_shape, 2)
    n = t.shape(theta)[0]
    table_of(4 * max(h, 1) * max(w, 1))
    rows = np.linspace(-1, 1, h) if h > 1 else np.zeros(1)
    columns = np.linspace(-1, 1, w) if w > 1 else np.zeros(1)
    base = np.stack([np.broadcast_to(columns, (h, w)), np.broadcast_to(rows[:, None], (h, w)), np.ones((h, w))]).reshape(3, h * w)
    return t.reshape(t.dot(theta, t.array(base, t.dtype(theta)), ([2], [0])), (n, 2, h, w))


@operator("image.crop_and_resize(data, boxes: float 2d, box_indices: int 1d; crop_size: sizes!, layout='NCHW', method='bilinear', "
          "extrapolation_value=0.0, out_dtype=None)", kind=INJ)
def crop_and_resize(t: Relay, a: Attributes, x: Node, boxes: Node, indices: Node) -> Node:
    """Crops boxes (y1, x1, y2, x2 from 0 to 1) of the images and resizes them to one size."""
    if str(a.method) not in CROPPED:
        raise TypeFault(f"method {a.method!r} is not known", f"it is {' or '.join(CROPPED)}")
    out = t.dtype_word(a.out_dtype, t.dtype(x))
    x = t.convert(t.to_layout(x, a.layout, "NCHW"), t.dtype(boxes))
    h, w = t.shape(x)[2:]
    oh, ow = each(a.crop_size, 2)
    n = t.shape(boxes)[0]
    images = t.take(x, t.convert(indices, S64), 0)

    def line(low: int, high: int, size: int, count: int) -> Node:
        start, end = (t.reshape(t.slice_dim(boxes, 1, k, k + 1), (n, 1)) for k in (low, high))
        step = np.arange(table_of(count)) / (count - 1) if count > 1 else np.full(1, 0.5)
        at = t.add(start, t.mul(t.sub(end, start), t.array(step.reshape(1, count), t.dtype(boxes))))
        return t.scale(at, size - 1)

    rows = t.broadcast_to(t.reshape(line(0, 2, h, oh), (n, oh, 1)), (n, oh, ow))
    columns = t.broadcast_to(t.reshape(line(1, 3, w, ow), (n, 1, ow)), (n, oh, ow))
    made = sampled(t, images, rows, columns, CROPPED[str(a.method)])
    inside = t.binary(
        "and",
        t.binary("and", t.compare("GE", rows, t.like(rows, 0)), t.compare("LE", rows, t.like(rows, h - 1))),
        t.binary("and", t.compare("GE", columns, t.like(columns, 0)), t.compare("LE", columns, t.like(columns, w - 1))),
    )
    made = t.select(t.reshape(inside, (n, 1, oh, ow)), made, t.like(made, float(a.extrapolation_value)))
    return t.to_layout(t.convert(made, out), "NCHW", a.layout)
