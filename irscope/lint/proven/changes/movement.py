"""Changes that move a cast, a reshape, a transpose or another movement to the other side of the operator next to it, or leave it out."""

from __future__ import annotations

from dataclasses import replace

from irscope.analysis.values import dims
from irscope.graph import Kind, Node
from irscope.lint.edits import Edit, Site
from irscope.lint.proven.site import RefusedEdge, shaped, tensor
from irscope.ops import hlo
from irscope.ops.attributes import Dot, Reduce, Transpose

MOVES = hlo.named("reshape transpose reverse broadcast copy")
"""Movement of one operand that keeps every element. A bitcast is none: what it moves depends on the layouts of its ends."""
REARRANGES = hlo.named("reshape transpose reverse")
SPREADS = REARRANGES | hlo.named("broadcast")
EXACT = hlo.named("negate abs")
"""Arithmetic that gives the same whether it comes before or after a widening cast."""


def cast_after(edge: RefusedEdge) -> Edit | None:
    """``c(convert(x))`` becomes ``convert(c(x))``: the movement or sign is applied to the narrow value, to the same bits."""
    cast, reader = edge.producer, edge.consumer
    source, result = tensor(cast.operands[0]) if cast.operands else None, tensor(reader)
    if cast.op is not hlo.convert or source is None or result is None or len(reader.operands) != 1:
        return None
    if reader.op not in MOVES and not (reader.op in EXACT and _widens(cast, reader)):
        return None
    narrow = type(source)(source.dtype, result.shape, result.layout)

    def make(site: Site) -> Node:
        return site.op(hlo.convert, site.copy(reader, site.new(cast.operands[0]), type=narrow), type=result)

    return Edit({reader: make}, (cast.operands[0],))


def cast_before(edge: RefusedEdge) -> Edit | None:
    """``convert(p(x))`` becomes ``p(convert(x))`` for a movement p."""
    moved, cast = edge.producer, edge.consumer
    result = tensor(cast)
    source = tensor(moved.operands[0]) if moved.operands else None
    if cast.op is not hlo.convert or moved.op not in MOVES or source is None or result is None:
        return None
    narrow = type(result)(result.dtype, source.shape, source.layout)

    def make(site: Site) -> Node:
        return site.copy(moved, site.op(hlo.convert, site.new(moved.operands[0]), type=narrow), type=result)

    return Edit({cast: make}, (moved.operands[0],))


def _widens(cast: Node, reader: Node) -> bool:
    """Whether a cast keeps every value, and its operand's type can hold the reader's result: 0 has a negative there only with a sign."""
    source, result = tensor(cast.operands[0]), tensor(cast)
    if source is None or result is None or not source.dtype.is_float or not result.dtype.holds(source.dtype):
        return False
    return reader.op is not hlo.negate or (source.dtype.has_negation and source.dtype.has_negative_zero)


def movement_after(edge: RefusedEdge) -> Edit | None:
    """``c(move(x), splat)`` becomes ``move(c(x, splat))`` for elementwise c."""
    moved, reader = edge.producer, edge.consumer
    source, result = tensor(moved.operands[0]) if moved.operands else None, tensor(reader)
    if moved.op not in REARRANGES or reader.op.kind is not Kind.ELEMENTWISE or reader.bodies or source is None or result is None:
        return None
    if not all(operand is moved or _is_splat(operand) or _moves_alike(operand, moved) for operand in reader.operands):
        return None
    shape = dims(moved.operands[0])
    inner = shaped(result, shape)

    def make(site: Site) -> Node:
        operands = [_splat(site, operand, shape) if _is_splat(operand) and operand is not moved else site.new(operand.operands[0])
                    for operand in reader.operands]
        return site.copy(moved, site.copy(reader, *operands, type=inner), type=result)

    return Edit({reader: make}, tuple(o.operands[0] for o in reader.operands if o.operands))


def movement_before(edge: RefusedEdge) -> Edit | None:
    """``move(p(x, y))`` becomes ``p(move(x), move(y))`` for elementwise p."""
    reader, moved = edge.producer, edge.consumer
    result = tensor(moved)
    if moved.op not in SPREADS or reader.op.kind is not Kind.ELEMENTWISE or reader.bodies or result is None or not reader.operands:
        return None
    types = [tensor(operand) for operand in reader.operands]
    if any(type is None for type in types) or any(dims(operand) != dims(reader) for operand in reader.operands):
        return None

    def make(site: Site) -> Node:
        operands = []
        for operand, type in zip(reader.operands, types, strict=True):
            assert type is not None
            if _is_splat(operand):
                operands.append(_splat(site, operand, dims(moved)))
            else:
                operands.append(site.copy(moved, site.new(operand), type=shaped(type, dims(moved))))
        return site.copy(reader, *operands, type=result)

    return Edit({moved: make}, tuple(reader.operands))


def reader_before_movement(edge: RefusedEdge) -> Edit | None:
    """``u(move(p), splat)`` becomes ``move(u(p, splat))`` for the elementwise reader u of the movement: it is applied to p itself."""
    moved = edge.consumer
    reader = edge.only_user(moved)
    if reader is None or edge.producer.op is hlo.constant:
        return None
    return movement_after(replace(edge, producer=moved, consumer=reader))


def _is_splat(node: Node) -> bool:
    """Whether a value is one number in every element."""
    return node.op is hlo.broadcast and tensor(node.operands[0]) is not None and not dims(node.operands[0])


def _splat(site: Site, node: Node, shape: tuple[int, ...]) -> Node:
    type = tensor(node)
    assert type is not None
    return site.copy(node, site.new(node.operands[0]), type=shaped(type, shape))


def _moves_alike(node: Node, moved: Node) -> bool:
    """Whether a value is moved in the same way."""
    same = node.op is moved.op and dict(node.attrs) == dict(moved.attrs)
    return same and dims(node.operands[0]) == dims(moved.operands[0])


def reduce_without_movement(edge: RefusedEdge) -> Edit | None:
    """``reduce(transpose(x))`` becomes a reduction of x over the dimensions that the transpose moved; a copy is left out."""
    moved, reduce = edge.producer, edge.consumer
    if reduce.op is not hlo.reduce or len(reduce.operands) != 2 or reduce.operands[0] is not moved:
        return None
    if moved.op is hlo.copy:
        return Edit.use(moved, moved.operands[0])
    result = tensor(reduce)
    if moved.op is not hlo.transpose or result is None:
        return None
    order = Transpose.of(moved).dimensions
    reduced = {order[d] for d in Reduce.of(reduce).dimensions}
    kept = [d for n, d in enumerate(order) if n not in Reduce.of(reduce).dimensions]
    places = sorted(range(len(kept)), key=kept.__getitem__)
    plain = shaped(result, tuple(dims(reduce)[n] for n in places))

    def make(site: Site) -> Node:
        attrs = {**reduce.attrs, "dimensions": tuple(sorted(reduced))}
        made = site.copy(reduce, site.new(moved.operands[0]), site.new(reduce.operands[1]), type=plain, attrs=attrs)
        if places == sorted(places):
            return made
        back = tuple(places.index(n) for n in range(len(kept)))
        return site.op(hlo.transpose, made, type=result, attrs={"dimensions": back})

    return Edit({reduce: make}, (moved.operands[0],))


def multiply_without_transpose(edge: RefusedEdge) -> Edit | None:
    """``dot(transpose(x), y)`` becomes a product of x that contracts, and keeps, the dimensions that the transpose moved."""
    moved, dot = edge.producer, edge.consumer
    if dot.op is not hlo.dot or moved.op is not hlo.transpose or dot.operands.count(moved) != 1:
        return None
    side = dot.operands.index(moved)
    attrs = Dot.of(dot)
    batch, contracted = attrs.batch_dims[side], attrs.contracting_dims[side]
    order = Transpose.of(moved).dimensions
    free = [d for d in range(len(order)) if d not in batch and d not in contracted]
    if [order[d] for d in free] != sorted(order[d] for d in free):
        return None  # the order of the result would change
    name = "lhs" if side == 0 else "rhs"
    changed = {f"{name}_contracting_dims": tuple(order[d] for d in contracted), f"{name}_batch_dims": tuple(order[d] for d in batch)}

    def make(site: Site) -> Node:
        operands = [site.new(moved.operands[0] if o is moved else o) for o in dot.operands]
        return site.copy(dot, *operands, attrs={**dot.attrs, **changed})

    return Edit({dot: make}, (moved.operands[0],))


def swap_product(edge: RefusedEdge) -> Edit | None:
    """``transpose(dot(x, y))`` becomes ``dot(y, x)``, where the transpose swaps the dimensions of the two sides."""
    dot, moved = edge.producer, edge.consumer
    result = tensor(moved)
    if dot.op is not hlo.dot or moved.op is not hlo.transpose or result is None:
        return None
    attrs = Dot.of(dot)
    batch = len(attrs.lhs_batch_dims)
    left = _rank(dot.operands[0]) - batch - len(attrs.lhs_contracting_dims)
    right = _rank(dot.operands[1]) - batch - len(attrs.rhs_contracting_dims)
    swapped = (*range(batch), *range(batch + left, batch + left + right), *range(batch, batch + left))
    if Transpose.of(moved).dimensions != swapped:
        return None
    turned: dict[str, tuple[object, ...]] = {
        "lhs_contracting_dims": attrs.rhs_contracting_dims, "rhs_contracting_dims": attrs.lhs_contracting_dims,
        "lhs_batch_dims": attrs.rhs_batch_dims, "rhs_batch_dims": attrs.lhs_batch_dims,
    }
    if attrs.operand_precision:
        turned["operand_precision"] = tuple(reversed(attrs.operand_precision))

    def make(site: Site) -> Node:
        return site.copy(dot, *(site.new(o) for o in reversed(dot.operands)), type=result, attrs={**dot.attrs, **turned})

    return Edit({moved: make}, dot.operands)


def _rank(node: Node) -> int:
    type = tensor(node)
    return len(type.shape) if type is not None else 0
