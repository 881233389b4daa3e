"""Joins and reorders: cat, stack, flip, roll, shuffles, windows."""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.ops.checked import at_least, in_step
from irscope.ops.faults import TypeFault

# ---------------------------------------------------------------------- joining


def _require_any(tensors: list[Node]) -> None:
    if not tensors:
        raise TypeFault("it takes at least one tensor")


@operator("cat(Tensor[] tensors, int dim=0)", "concat(Tensor[] tensors, int dim=0)", "concatenate(Tensor[] tensors, int dim=0)")
def cat(t: Torch, tensors: list[Node], dim: int) -> Node:
    """Concatenates. Skips empty vectors among the operands, as torch does for old programs."""
    _require_any(tensors)
    kept = [x for x in tensors if t.shape(x) != (0,)] or tensors[:1]
    xs = t.promote(*kept, to=t.result_type(*tensors))
    return t.concat(xs, t.dim(xs[0], dim))


@operator("stack(Tensor[] tensors, int dim=0)", "_stack(Tensor[] tensors, int dim=0)")
def stack(t: Torch, tensors: list[Node], dim: int) -> Node:
    _require_any(tensors)
    xs = t.promote(*tensors)
    d = t.dim(xs[0], dim, 1)
    return t.concat([t.unsqueeze(x, d) for x in xs], d)


def _stacked(name: str, rank: int, dim: int) -> None:
    @operator(f"{name}(Tensor[] tensors)")
    def stacked(t: Torch, tensors: list[Node]) -> Node:
        _require_any(tensors)
        xs = []
        for x in tensors:
            shape: tuple[int, ...] = t.shape(x)
            if len(shape) < rank:
                shape = ((1,) * (rank - len(shape)) + shape) if name == "vstack" else shape + (1,) * (rank - len(shape))
            xs.append(t.reshape(x, shape))
        d = 0 if name == "hstack" and t.rank(xs[0]) == 1 else dim
        return t.concat(t.promote(*xs), d)


for _name, _rank, _dim in (("hstack", 1, 1), ("vstack", 2, 0), ("column_stack", 2, 1)):
    _stacked(_name, _rank, _dim)


# ---------------------------------------------------------------------- order


@operator("flip(Tensor self, int[] dims)")
def flip(t: Torch, x: Node, dims: list[int]) -> Node:
    return t.reverse(x, t.dims(x, dims) if dims else [])


@operator("fliplr(Tensor self)")
def fliplr(t: Torch, x: Node) -> Node:
    t.shape_of(x, 2)
    return t.reverse(x, [1])


@operator("flipud(Tensor self)")
def flipud(t: Torch, x: Node) -> Node:
    t.shape_of(x, 1)
    return t.reverse(x, [0])


@operator("roll(Tensor self, int[1] shifts, int[1] dims=[])")
def roll(t: Torch, x: Node, shifts: list[int], dims: list[int]) -> Node:
    if not dims:
        shape = t.shape(x)
        flat = roll(t, t.reshape(x, (prod(shape),)), shifts, [0])
        return t.reshape(flat, shape)
    for shift, dim in in_step("shifts and dims", shifts, dims):
        d = t.dim(x, dim)
        n = t.shape(x)[d]
        if n and shift % n:
            at = n - shift % n
            x = t.concat([t.slice_dim(x, d, at, n), t.slice_dim(x, d, 0, at)], d)
    return x


@operator("rot90(Tensor self, int k=1, int[] dims=[0, 1])")
def rot90(t: Torch, x: Node, k: int, dims: list[int]) -> Node:
    if len(dims) != 2:
        raise TypeFault(f"it turns two dimensions, not {len(dims)}")
    a, b = (t.dim(x, d) for d in dims)
    if a == b:
        raise TypeFault(f"it turns two different dimensions, not {dims}")
    match k % 4:
        case 1:
            return t.swap(t.reverse(x, [b]), a, b)
        case 2:
            return t.reverse(x, [a, b])
        case 3:
            return t.swap(t.reverse(x, [a]), a, b)
    return x


@operator("pixel_shuffle(Tensor self, int upscale_factor)")
def pixel_shuffle(t: Torch, x: Node, r: int) -> Node:
    at_least(1, "upscale_factor", r)
    *lead, c, h, w = t.shape_of(x, 3)
    n = len(lead)
    y = t.reshape(x, (*lead, c // (r * r), r, r, h, w))
    y = t.transpose(y, (*range(n), n, n + 3, n + 1, n + 4, n + 2))
    return t.reshape(y, (*lead, c // (r * r), h * r, w * r))


@operator("pixel_unshuffle(Tensor self, int downscale_factor)")
def pixel_unshuffle(t: Torch, x: Node, r: int) -> Node:
    at_least(1, "downscale_factor", r)
    *lead, c, h, w = t.shape_of(x, 3)
    n = len(lead)
    y = t.reshape(x, (*lead, c, h // r, r, w // r, r))
    y = t.transpose(y, (*range(n), n, n + 2, n + 4, n + 1, n + 3))
    return t.reshape(y, (*lead, c * r * r, h // r, w // r))


@operator("channel_shuffle(Tensor self, int groups)", "native_channel_shuffle(Tensor self, SymInt groups)")
def channel_shuffle(t: Torch, x: Node, groups: int) -> Node:
    n, c, *rest = t.shape_of(x, 2)
    y = t.reshape(x, (n, groups, c // at_least(1, "groups", groups), *rest))
    return t.reshape(t.swap(y, 1, 2), (n, c, *rest))
