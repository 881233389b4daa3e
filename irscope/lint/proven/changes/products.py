"""Changes of matrix products: another order of two, and a small one as a sum."""

from __future__ import annotations

from math import prod

from irscope.analysis.values import dims
from irscope.graph import Builder, Graph, Node, TensorType
from irscope.lint.edits import Edit, Site
from irscope.lint.proven.site import RefusedEdge, has_wide_range, tensor
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Dot

SCALES = hlo.named("multiply divide")
MOST = 2**22
"""Multiplications of a product that is written as a sum."""


def reorder_products(edge: RefusedEdge) -> Edit | None:
    """``(A @ B) @ v`` becomes ``A @ (B @ v)``, where that takes fewer multiplications."""
    first, second = edge.producer, edge.consumer
    if first.op is not hlo.dot or second.op is not hlo.dot or second.operands[0] is not first or second.operands[1] is first:
        return None
    one, two = Dot.of(first), Dot.of(second)
    plain = all(not (attrs.lhs_batch_dims or attrs.rhs_batch_dims) and len(attrs.lhs_contracting_dims) == 1 for attrs in (one, two))
    a, b, v = (tensor(node) for node in (*first.operands, second.operands[1]))
    if not plain or a is None or b is None or v is None or len(a.shape) != 2 or len(b.shape) != 2 or two.lhs_contracting_dims != (1,):
        return None
    dtypes = {a.dtype, b.dtype, v.dtype, *(type.dtype for type in (tensor(first), tensor(second)) if type is not None)}
    if len(dtypes) > 1 or (a.dtype.is_float and not has_wide_range(a.dtype)):
        return None  # the product in between would have the range or the precision of another type
    left, right, last = (dims(node) for node in (*first.operands, second.operands[1]))
    if 0 in last:
        return None
    k, n = right[one.rhs_contracting_dims[0]], right[1 - one.rhs_contracting_dims[0]]
    m, p = left[1 - one.lhs_contracting_dims[0]], prod(last) // last[two.rhs_contracting_dims[0]]
    if k * n * p + m * k * p >= m * k * n + m * n * p:
        return None
    rest = tuple(size for d, size in enumerate(last) if d not in two.rhs_contracting_dims)

    def make(site: Site) -> Node:
        inner_attrs = {**second.attrs, "lhs_contracting_dims": (1 - one.rhs_contracting_dims[0],)}
        inner = site.copy(second, site.new(first.operands[1]), site.new(second.operands[1]), type=TensorType(b.dtype, (k, *rest)),
                          attrs=inner_attrs)
        outer_attrs = {**first.attrs, "rhs_contracting_dims": (0,)}
        return site.copy(first, site.new(first.operands[0]), inner, type=second.type, attrs=outer_attrs)

    return Edit({second: make}, (*first.operands, second.operands[1]))


def sum_products(edge: RefusedEdge) -> Edit | None:
    """A small product, or one with a vector, becomes a sum of products, which is computed in a loop with its neighbours."""
    dot = next((node for node in (edge.consumer, edge.producer) if node.op is hlo.dot), None)
    lhs, rhs, result = (tensor(node) for node in (*dot.operands, dot)) if dot is not None else (None, None, None)
    if dot is None or lhs is None or rhs is None or result is None or not lhs.dtype == rhs.dtype == result.dtype:
        return None
    if result.dtype.is_float and result.dtype.bits < 32:
        return None  # compilers sum products of such types in f32, and this sum would be rounded at each step
    attrs = Dot.of(dot)
    lfree = [d for d in range(len(lhs.shape)) if d not in attrs.lhs_batch_dims and d not in attrs.lhs_contracting_dims]
    rfree = [d for d in range(len(rhs.shape)) if d not in attrs.rhs_batch_dims and d not in attrs.rhs_contracting_dims]
    batch = len(attrs.lhs_batch_dims)
    sizes = (*dims(dot), *(dims(dot.operands[0])[d] for d in attrs.lhs_contracting_dims))
    if prod(sizes) > MOST:
        return None
    rank = len(result.shape)

    def places(batches: tuple[int, ...], free: list[int], contracted: tuple[int, ...], start: int, n: int) -> tuple[int, ...]:
        at = {d: i for i, d in enumerate(batches)} | {d: start + i for i, d in enumerate(free)}
        at |= {d: rank + i for i, d in enumerate(contracted)}
        return tuple(at[d] for d in range(n))

    left = places(attrs.lhs_batch_dims, lfree, attrs.lhs_contracting_dims, batch, len(lhs.shape))
    right = places(attrs.rhs_batch_dims, rfree, attrs.rhs_contracting_dims, batch + len(lfree), len(rhs.shape))
    wide = TensorType(result.dtype, sizes)

    def make(site: Site) -> Node:
        both = [_spread(site, operand, wide, dims) for operand, dims in zip(dot.operands, (left, right), strict=True)]
        zero = site.number(0.0, TensorType(result.dtype, ()))
        terms = site.op(hlo.multiply, *both, type=wide)
        return site.op(hlo.reduce, terms, zero, type=result, attrs={"dimensions": tuple(range(rank, len(sizes)))},
                       bodies=(_sum(TensorType(result.dtype, ())),))

    return Edit({dot: make}, dot.operands)


def scale_after_product(edge: RefusedEdge) -> Edit | None:
    """``(x * s) @ y`` becomes ``(x @ y) * s`` where s is one number, or is the same along the dimensions that are contracted."""
    scale, dot = edge.producer, edge.consumer
    result, wide = tensor(dot), tensor(scale)
    if dot.op is not hlo.dot or scale.op not in SCALES or dot.operands.count(scale) != 1 or result is None or wide is None:
        return None
    side = dot.operands.index(scale)
    attrs = Dot.of(dot)
    batches, contracted = attrs.batch_dims[side], attrs.contracting_dims[side]
    free = [d for d in range(len(wide.shape)) if d not in batches and d not in contracted]
    start = len(batches) + (0 if side == 0 else len(result.shape) - len(batches) - len(free))
    at = {d: n for n, d in enumerate(batches)} | {d: start + n for n, d in enumerate(free)}
    spread = next((o for o in reversed(scale.operands) if o.op is hlo.broadcast and set(Broadcast.of(o).dimensions) <= at.keys()), None)
    if spread is None or (scale.op is hlo.divide and spread is not scale.operands[1]) or wide.dtype != result.dtype:
        return None
    if (wide.dtype.is_float and not has_wide_range(wide.dtype)) or (scale.op is hlo.divide and wide.dtype.is_integer):
        return None
    value = next((o for o in scale.operands if o is not spread), None)
    places = tuple(at[d] for d in Broadcast.of(spread).dimensions)
    if value is None or list(places) != sorted(places):
        return None

    def make(site: Site) -> Node:
        product = site.copy(dot, *(site.new(value if o is scale else o) for o in dot.operands))
        small = site.op(hlo.broadcast, site.new(spread.operands[0]), type=result, attrs={"dimensions": places})
        return site.op(scale.op, product, small, type=result)

    return Edit({dot: make}, (value, spread.operands[0], *dot.operands))


def _spread(site: Site, node: Node, wide: TensorType, places: tuple[int, ...]) -> Node:
    """A value broadcast to a shape: transposed first where its dimensions come in another order."""
    value = site.new(node)
    type = tensor(node)
    assert type is not None
    order = tuple(sorted(range(len(places)), key=places.__getitem__))
    if order != tuple(range(len(places))):
        value = site.op(hlo.transpose, value, type=TensorType(type.dtype, tuple(dims(node)[d] for d in order)), attrs={"dimensions": order})
    return site.op(hlo.broadcast, value, type=wide, attrs={"dimensions": tuple(sorted(places))})


def _sum(scalar: TensorType) -> Graph:
    """The computation of a sum of two scalars."""
    graph = Graph("add")
    builder = Builder(graph)
    one, two = (builder.param(hlo.parameter, scalar, name) for name in ("x", "y"))
    graph.root = builder.add(hlo.add, (one, two), type=scalar)
    return graph
