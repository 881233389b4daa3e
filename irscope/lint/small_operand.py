"""A broadcast's reader over the small operand: what the rule on broadcasts that are written out puts in the reader's place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from irscope.analysis.values import dims
from irscope.graph import Node, TensorType
from irscope.lint.edits import Edit, Site
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Dot, Sort

SIDES = ("lhs", "rhs")
Axis = tuple[int, int]
"""A dimension of a product's result by the operand and the dimension of it that it comes from; batches by those of the left operand."""


def with_small(wide: Node, reader: Node) -> Edit | None:
    """The small operand in a broadcast's place, where that can be said: for the caller, in a sort, and in a product.

    The product may read the broadcast through a reshape that merges the repeats into a batch or into rows, as ``jnp.repeat`` leaves it.
    """
    small = wide.operands[0]
    if reader is wide:
        return Edit.use(wide, small)
    if reader.op is hlo.sort and reader.operands == (wide,) and _sorted_axis(reader) in Broadcast.of(wide).dimensions:
        return Edit({reader: partial(_sorted_before, reader)}, (small,))
    if reader.op is not hlo.dot or reader.operands[0] is reader.operands[1]:
        return None
    product = _product_over(wide, reader)
    return Edit({reader: partial(_multiplied, product)}, (small,)) if product is not None else None


def _sorted_axis(sort: Node) -> int:
    return next(iter(Sort.of(sort).dimensions), -1)


def _sorted_before(sort: Node, site: Site) -> Node:
    """One of the equal rows sorted, and then repeated."""
    wide = sort.operands[0]
    small = wide.operands[0]
    axis = Broadcast.of(wide).dimensions.index(_sorted_axis(sort))
    one = site.copy(sort, site.new(small), type=small.type, attrs={**sort.attrs, "dimensions": (axis,)})
    return site.op(hlo.broadcast, one, type=sort.type, attrs=wide.attrs)


@dataclass(slots=True)
class _Product:
    """A product with a broadcast operand, as if it read that before any reshape: shapes, batches and sums of both operands."""

    dot: Node
    side: int
    wide: Node
    shapes: list[list[int]]
    batches: list[tuple[int, ...]]
    summed: list[tuple[int, ...]]


def _product_over(wide: Node, dot: Node) -> _Product | None:
    """The product, where it sums over no repeats; None where it does, or what lies between is no reshape of repeats in a batch."""
    operands = list(dot.operands[:2])
    side = next((i for i, o in enumerate(operands) if o is wide or (o.op is hlo.reshape and o.operands[0] is wide)), None)
    if side is None:
        return None
    found = _Product(
        dot,
        side,
        wide,
        [list(dims(o)) for o in operands],
        list(Dot.of(dot).batch_dims),
        list(Dot.of(dot).contracting_dims),
    )
    if operands[side] is not wide:
        merged = _merged(dims(wide), dims(operands[side]))
        if merged is None or merged in found.summed[side]:
            return None
        if merged in found.batches[side]:
            place = found.batches[side].index(merged)
            for one in (0, 1):
                _split(found, one, found.batches[one][place], dims(wide)[merged])
        else:
            _split(found, side, merged, dims(wide)[merged])
    kept = Broadcast.of(wide).dimensions
    return None if any(d not in kept for d in found.summed[side]) else found


def _merged(before: tuple[int, ...], after: tuple[int, ...]) -> int | None:
    """The dimension that a reshape made of two neighbours, where it did nothing else."""
    for d in range(len(after)):
        if before[:d] == after[:d] and len(before) == len(after) + 1 and before[d + 2 :] == after[d + 1 :]:
            return d
    return None


def _split(product: _Product, side: int, at: int, first: int) -> None:
    """Count a dimension of an operand as two, the first of a given length."""
    shape = product.shapes[side]
    shape[at : at + 1] = [first, shape[at] // first]

    def moved(axes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(b for d in axes for b in ((d, d + 1) if d == at else (d + (d > at),)))

    product.batches[side], product.summed[side] = moved(product.batches[side]), moved(product.summed[side])


def _multiplied(product: _Product, site: Site) -> Node:
    """The product with the small operand: repeats in a batch are free dimensions of the other operand, free ones are repeated behind it."""
    dot, side, kept = product.dot, product.side, Broadcast.of(product.wide).dimensions
    other = 1 - side
    stays = [i for i, d in enumerate(product.batches[side]) if d in kept]
    batches = [tuple(b[i] for i in stays) for b in product.batches]
    summed = list(product.summed)
    batches[side] = tuple(kept.index(d) for d in batches[side])
    summed[side] = tuple(kept.index(d) for d in summed[side])
    before = _axes(product.shapes, product.batches, product.summed, other)
    shapes = list(product.shapes)
    shapes[side] = list(dims(product.wide.operands[0]))
    after = [(one, kept[d] if one == side else d) for one, d in _axes(shapes, batches, summed, other)]
    length = {axis: _length(product, axis) for axis in before}
    given = [site.new(operand) for operand in dot.operands[:2]]
    given[side] = site.new(product.wide.operands[0])
    given[other] = _shaped(site, given[other], tuple(product.shapes[other]))
    attrs = {**dot.attrs}
    for i, name in enumerate(SIDES):
        attrs[f"{name}_batch_dims"], attrs[f"{name}_contracting_dims"] = batches[i], summed[i]
    assert isinstance(dot.type, TensorType)
    made = site.copy(dot, *given, type=TensorType(dot.type.dtype, tuple(length[axis] for axis in after)), attrs=attrs)
    there = [axis for axis in before if axis in after]
    if after != there:
        order = tuple(after.index(axis) for axis in there)
        made = site.op(hlo.transpose, made, type=TensorType(dot.type.dtype, tuple(length[a] for a in there)), attrs={"dimensions": order})
    if there != before:
        places = tuple(before.index(axis) for axis in there)
        made = site.op(hlo.broadcast, made, type=TensorType(dot.type.dtype, tuple(length[a] for a in before)), attrs={"dimensions": places})
    return _shaped(site, made, dims(dot))


def _axes(shapes: list[list[int]], batches: list[tuple[int, ...]], summed: list[tuple[int, ...]], named: int) -> list[Axis]:
    """The dimensions of a product's result in order; batches are named by those of one operand."""
    found = [(named, d) for d in batches[named]]
    for one in (0, 1):
        found += [(one, d) for d in range(len(shapes[one])) if d not in batches[one] and d not in summed[one]]
    return found


def _length(product: _Product, axis: Axis) -> int:
    return product.shapes[axis[0]][axis[1]]


def _shaped(site: Site, node: Node, shape: tuple[int, ...]) -> Node:
    if dims(node) == shape:
        return node
    assert isinstance(node.type, TensorType)
    return site.op(hlo.reshape, node, type=TensorType(node.type.dtype, shape))
