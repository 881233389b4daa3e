"""Gradients of sampling at the positions of a grid, with respect to the image and to the grid."""
from __future__ import annotations

from functools import reduce
from itertools import product
from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.grids import BILINEAR, NEAREST, REFLECTION, ZEROS, Image, corner_shares
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.faults import TypeFault


def _unnormalised(t: Torch, v: Node, n: int, corners: bool) -> tuple[Node, float]:
    """A coordinate in elements, and its derivative with respect to the coordinate of the grid."""
    v = t.plus(v, 1)
    return (t.scale(v, (n - 1) / 2), (n - 1) / 2) if corners else (t.plus(t.scale(v, n / 2), -0.5), n / 2)


def _bounded(t: Torch, v: Node, n: int, padding: int, corners: bool) -> tuple[Node, Node]:
    """The coordinate after padding, and its derivative: 1, -1 where it is reflected, 0 on and beyond the border.

    Zero padding changes no coordinate.
    """
    one = t.like(v, 1)
    slope = one
    if padding == ZEROS:
        return v, one
    if padding == REFLECTION:
        low, span = (0.0, n - 1.0) if corners else (-0.5, float(n))
        if span <= 0:
            return t.like(v, 0), t.like(v, 0)
        away = t.plus(v, -low)
        slope = t.select(t.compare("LT", away, t.like(v, 0)), t.like(v, -1), one)
        away = t.unary("abs", away)
        rest = t.binary("remainder", away, t.like(v, span))
        even = t.compare("EQ", t.binary("remainder", t.unary("floor", t.scale(away, 1 / span)), t.like(v, 2)), t.like(v, 0))
        v = t.plus(t.select(even, rest, t.sub(t.like(v, span), rest)), low)
        slope = t.select(even, slope, t.unary("negate", slope))
    outside = t.binary("or", t.compare("LE", v, t.like(v, 0)), t.compare("GE", v, t.like(v, n - 1)))
    return t.minimum(t.maximum(v, t.like(v, 0)), t.like(v, n - 1)), t.select(outside, t.like(v, 0), slope)


class _Sampling(Image):
    """An image, and for each of its elements the sum of the gradients that were added."""

    def __init__(self, t: Torch, x: Node, out: tuple[int, ...]) -> None:
        super().__init__(t, x, out)
        self.sums = t.like(self.flat, 0)

    def read(self, at: list[Node]) -> Node:
        place, inside = self.places(at)
        rows = self.t.take(self.flat, place, 0)
        return self.t.select(self.t.unsqueeze(inside, -1), rows, self.t.array(0, self.t.dtype(rows)))

    def add(self, at: list[Node], grad: Node) -> None:
        """Add gradients [N, *out, C] to the elements at the coordinates; those outside are ignored."""
        t = self.t
        place, inside = self.places(at)
        kept = t.select(t.unsqueeze(inside, -1), grad, t.array(0, t.dtype(grad)))
        n = prod(t.shape(place))
        self.sums = t.scatter(self.sums, t.reshape(place, (n, 1)), t.reshape(kept, (n, self.channels)), "add", window_dims=(1,),
                              inserted=(0,))

    def gradient(self) -> Node:
        """The sums as an image."""
        t = self.t
        rows = t.reshape(self.sums, (self.batch, *self.sizes, self.channels))
        return t.transpose(rows, [self.order.index(d) for d in range(len(self.order))])


@operator(*(f"grid_sampler_{n}d_backward(Tensor grad_output, Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
            "bool align_corners, bool[2] output_mask)" for n in (2, 3)))
def grid_sampler_backward(t: Torch, grad: Node, x: Node, grid: Node, mode: int, padding: int, corners: bool,
                          wanted: list[bool]) -> object:
    if mode not in (BILINEAR, NEAREST):
        raise TypeFault("the gradient of bicubic sampling is not supported")
    rank = t.rank(x) - 2
    sizes, out = t.shape(x)[2:], t.shape(grid)[1:-1]
    sampling = _Sampling(t, x, out)
    g = t.transpose(grad, [0, *range(2, rank + 2), 1])
    last = t.rank(grid) - 1
    places, slopes = [], []
    for d in range(rank):  # the grid has the last dimension first
        k = rank - 1 - d
        v = t.reshape(t.slice_dim(grid, last, k, k + 1), t.shape(grid)[:-1])
        v, factor = _unnormalised(t, v, sizes[d], corners)
        v, slope = _bounded(t, v, sizes[d], padding, corners)
        places.append(v)
        slopes.append(t.scale(slope, factor))
    if mode == NEAREST:
        at = [t.convert(t.unary("round-nearest-even", v), S64) for v in places]
        sampling.add(at, g)
        return sampling.gradient() if wanted[0] else None, t.like(grid, 0) if wanted[1] else None
    low = [t.unary("floor", v) for v in places]
    parts = [t.sub(v, f) for v, f in zip(places, low, strict=True)]
    whole = [t.convert(f, S64) for f in low]
    by_place: list[Node] = [t.like(v, 0) for v in places]
    for corner in product((0, 1), repeat=rank):
        at = [t.plus(v, up) for v, up in zip(whole, corner, strict=True)]
        sampling.add(at, t.mul(g, t.unsqueeze(reduce(t.mul, corner_shares(t, parts, corner)), -1)))
        along = t.sum(t.mul(sampling.read(at), g), [rank + 1])
        for d in range(rank):
            shares = list(corner_shares(t, parts, corner, d))
            term = t.mul(along, reduce(t.mul, shares)) if shares else along
            by_place[d] = t.add(by_place[d], term if corner[d] else t.unary("negate", term))
    by_grid = [t.unsqueeze(t.mul(p, slope), -1) for p, slope in zip(by_place, slopes, strict=True)]
    return sampling.gradient() if wanted[0] else None, t.concat(by_grid[::-1], last) if wanted[1] else None
