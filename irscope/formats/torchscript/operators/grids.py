"""Samples images and volumes at computed positions: affine grids and grid_sample."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import product
from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.lazy import Array, np
from irscope.ops.checked import at_least, table
from irscope.ops.faults import TypeFault

BILINEAR, NEAREST, BICUBIC = 0, 1, 2
"""torch's numbers for modes of interpolation."""
ZEROS, BORDER, REFLECTION = 0, 1, 2
"""torch's numbers for modes of padding."""


@operator("affine_grid_generator(Tensor theta, int[] size, bool align_corners)")
def affine_grid(t: Torch, theta: Node, size: list[int], corners: bool) -> Node:
    """The positions to which theta maps the pixels of an image [N, C, H, W] or a volume, from -1 to 1; the last coordinate comes first."""
    if len(size) not in (4, 5):
        raise TypeFault("affine grids are for images and volumes: four or five sizes")
    n, spatial = size[0], size[2:]

    def axis(count: int) -> Array:
        at = np.linspace(-1, 1, count) if count > 1 else np.zeros(1)
        return at if corners else at * (count - 1) / count
    table("the grid", *(at_least(1, "a size of the grid", length) for length in spatial))
    places = np.meshgrid(*map(axis, spatial), indexing="ij")
    base = np.stack([*reversed(places), np.ones(spatial)], -1).reshape(-1, len(spatial) + 1)
    grid = t.dot(theta, t.array(base, t.dtype(theta)), ([2], [1]))
    return t.reshape(t.swap(grid, 1, 2), (n, *spatial, len(spatial)))


@operator(*(f"grid_sampler{form}(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners)"
            for form in ("_2d", "_3d", "")))
def grid_sampler(t: Torch, x: Node, grid: Node, mode: int, padding: int, corners: bool) -> Node:
    """Samples at grid positions, the last coordinate first; outside is zero, the border, or the mirrored image."""
    rank = t.rank(x) - 2
    if rank not in (2, 3) or mode not in (BILINEAR, NEAREST, BICUBIC) or padding not in (ZEROS, BORDER, REFLECTION):
        raise TypeFault("grid_sample is for images and volumes, bilinear, nearest or bicubic, padded by zeros, border or reflection")
    if mode == BICUBIC and rank == 3:
        raise TypeFault("grid_sample of volumes is bilinear or nearest, also in torch")
    sizes = t.shape(x)[2:]
    places = [_place(t, grid, rank - 1 - d, n, corners) for d, n in enumerate(sizes)]
    sample = Image(t, x, t.shape(grid)[1:-1]).read
    if mode == BICUBIC:
        y = _bicubic(t, places, sizes, padding, corners, sample)
    else:
        places = [_bounded(t, v, n, padding, corners) for v, n in zip(places, sizes, strict=True)]
        if mode == NEAREST:
            places = [t.select(t.compare("EQ", v, v), v, t.like(v, -1)) for v in places]  # NaN is outside
            y = sample([t.convert(t.unary("round-nearest-even", v), S64) for v in places])
        else:
            y = _linear(t, places, sample)
    return t.transpose(y, [0, rank + 1, *range(1, rank + 1)])


def _place(t: Torch, grid: Node, k: int, n: int, corners: bool) -> Node:
    """Coordinate ``k`` of the grid in elements of the image, which has ``n`` in that dimension."""
    d = t.rank(grid) - 1
    v = t.plus(t.reshape(t.slice_dim(grid, d, k, k + 1), t.shape(grid)[:-1]), 1)
    return t.scale(v, (n - 1) / 2) if corners else t.plus(t.scale(v, n / 2), -0.5)


def _bounded(t: Torch, v: Node, n: int, padding: int, corners: bool) -> Node:
    """A coordinate clamped to the border or reflected; unchanged for zero padding."""
    if padding == REFLECTION:
        low, span = (0.0, n - 1.0) if corners else (-0.5, float(n))
        if span <= 0:
            return t.like(v, 0)
        v = t.unary("abs", t.plus(v, -low))
        rest = t.binary("remainder", v, t.like(v, span))
        flips = t.binary("remainder", t.unary("floor", t.scale(v, 1 / span)), t.like(v, 2))
        v = t.plus(t.select(t.compare("EQ", flips, t.like(v, 0)), rest, t.sub(t.like(v, span), rest)), low)
    if padding == ZEROS:
        return v
    return t.minimum(t.select(t.compare("GT", v, t.like(v, 0)), v, t.like(v, 0)), t.like(v, n - 1))  # NaN is at the border


Sample = Callable[[list[Node]], Node]


class Image:
    """An image [N, C, ...] as rows of channels, which is read at integer coordinates [N, *out], one tensor per dimension."""

    def __init__(self, t: Torch, x: Node, out: tuple[int, ...]) -> None:
        self.t, self.out = t, out
        self.batch, self.channels, *self.sizes = t.shape_of(x, 3)
        self.total = prod(self.sizes)
        self.order = [0, *range(2, len(self.sizes) + 2), 1]
        self.flat = t.reshape(t.transpose(x, self.order), (self.batch * self.total, self.channels))

    def places(self, at: list[Node]) -> tuple[Node, Node]:
        """The row at each coordinate, clamped to the image, and whether the coordinate is inside."""
        t, step, inside = self.t, self.total, None
        place = t.scale(t.iota((self.batch, *self.out), 0, S64), self.total)
        for v, size in zip(at, self.sizes, strict=True):
            step //= max(size, 1)
            here = t.binary("and", t.compare("GE", v, t.like(v, 0)), t.compare("LT", v, t.like(v, size)))
            inside = here if inside is None else t.binary("and", inside, here)
            place = t.add(place, t.scale(t.minimum(t.maximum(v, t.like(v, 0)), t.like(v, size - 1)), step))
        assert inside is not None, "an image has dimensions"
        return place, inside

    def read(self, at: list[Node]) -> Node:
        """[N, *out, C]: the elements at the coordinates, zeros outside."""
        t, (place, inside) = self.t, self.places(at)
        rows = t.take(self.flat, place, 0)
        return t.select(t.broadcast_to(t.unsqueeze(inside, -1), t.shape(rows)), rows, t.like(rows, 0))


def _linear(t: Torch, places: list[Node], sample: Sample) -> Node:
    """Linear interpolation of the corners around each position."""
    low = [t.unary("floor", v) for v in places]
    parts = [t.sub(v, f) for v, f in zip(places, low, strict=True)]
    whole = [t.convert(f, S64) for f in low]

    def term(corner: tuple[int, ...]) -> Node:
        weight = reduce(t.mul, corner_shares(t, parts, corner))
        return t.mul(sample([t.plus(v, up) for v, up in zip(whole, corner, strict=True)]), t.unsqueeze(weight, -1))
    return reduce(t.add, map(term, product((0, 1), repeat=len(places))))


def corner_shares(t: Torch, parts: list[Node], corner: tuple[int, ...], without: int = -1) -> Iterator[Node]:
    """The factors of a corner's interpolation weight, one per dimension; the dimension ``without`` is left out."""
    return (part if up else t.sub(t.like(part, 1), part) for d, (up, part) in enumerate(zip(corner, parts, strict=True)) if d != without)


def _bicubic(t: Torch, places: list[Node], sizes: tuple[int, ...], padding: int, corners: bool, sample: Sample) -> Node:
    """Bicubic interpolation of sixteen elements around each position, each padded separately."""
    low = [t.unary("floor", v) for v in places]
    weights = [_cubic(t, t.sub(v, f)) for v, f in zip(places, low, strict=True)]
    taps = [[t.convert(_bounded(t, t.plus(f, k - 1), n, padding, corners), S64) for k in range(4)] for f, n in zip(low, sizes, strict=True)]

    def row(y: Node) -> Node:
        return reduce(t.add, (t.mul(sample([y, x]), t.unsqueeze(w, -1)) for x, w in zip(taps[1], weights[1], strict=True)))
    return reduce(t.add, (t.mul(row(y), t.unsqueeze(w, -1)) for y, w in zip(taps[0], weights[0], strict=True)))


def _cubic(t: Torch, f: Node, a: float = -0.75) -> list[Node]:
    """Weights of the four neighbours in cubic convolution with A = -0.75 (Keys 1981)."""
    def near(v: Node) -> Node:
        return t.plus(t.mul(t.mul(t.plus(t.scale(v, a + 2), -(a + 3)), v), v), 1)

    def far(v: Node) -> Node:
        return t.plus(t.mul(t.plus(t.mul(t.plus(t.scale(v, a), -5 * a), v), 8 * a), v), -4 * a)
    g = t.sub(t.like(f, 1), f)
    return [far(t.plus(f, 1)), near(f), near(g), far(t.plus(g, 1))]
