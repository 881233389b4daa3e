"""Changes of concatenations and slices."""

from __future__ import annotations

from irscope.analysis.values import body_operator, dims
from irscope.graph import DTYPES, Kind, Node, TensorType
from irscope.lint.edits import Edit, Site
from irscope.lint.proven.changes.reductions import is_plain
from irscope.lint.proven.site import RefusedEdge, shaped, tensor
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Dot, Reduce, Slice

FEW = 8
"""Pieces that are reduced or computed each by itself."""
MOST = 8
"""Pieces of a concatenation that is written as choices: each is padded to the size of the whole."""


def _concatenation(edge: RefusedEdge) -> Node | None:
    return next((node for node in (edge.producer, edge.consumer) if node.op is hlo.concatenate), None)


def choose_pieces(edge: RefusedEdge) -> Edit | None:
    """A concatenation of a few pieces becomes a choice among them by the index, each padded to the size of the whole."""
    whole = _concatenation(edge)
    type = tensor(whole) if whole is not None else None
    if whole is None or type is None or not 2 <= len(whole.operands) <= MOST or not (type.dtype.is_float or type.dtype.is_integer):
        return None
    axis = Concatenate.of(whole).axis
    length, lengths = dims(whole)[axis], [dims(piece)[axis] for piece in whole.operands]
    index = TensorType(DTYPES["s32" if length < 1 << 31 else "s64"], type.shape)
    truth = TensorType(DTYPES["pred"], type.shape)

    def make(site: Site) -> Node:
        zero = site.number(0.0, TensorType(type.dtype, ()))
        place = site.op(hlo.iota, type=index, attrs={"iota_dimension": axis})
        made: Node | None = None
        end = length
        for piece, n in zip(reversed(whole.operands), reversed(lengths), strict=True):
            low, end = end - n, end - n
            around = tuple((low, length - low - n, 0) if d == axis else (0, 0, 0) for d in range(len(type.shape)))
            wide = site.op(hlo.pad, site.new(piece), zero, type=type, attrs={"padding": around})
            if made is None:
                made = wide
            else:
                limit = site.number(float(low + n), index)
                below = site.op(hlo.compare, place, limit, type=truth, attrs={"direction": "LT"})
                made = site.op(hlo.select, below, wide, made, type=type)
        assert made is not None
        return made

    return Edit({whole: make}, whole.operands)


def reduce_pieces(edge: RefusedEdge) -> Edit | None:
    """A reduction along a concatenation becomes reductions of the pieces, which are combined."""
    whole, reduce = edge.producer, edge.consumer
    if whole.op is not hlo.concatenate or not is_plain(reduce) or reduce.operands[0] is not whole or len(whole.operands) > FEW:
        return None
    if Concatenate.of(whole).axis not in Reduce.of(reduce).dimensions:
        return None
    operator = body_operator(reduce)
    assert operator is not None

    def make(site: Site) -> Node:
        begin = site.new(reduce.operands[1])
        parts = [site.copy(reduce, site.new(piece), begin) for piece in whole.operands]
        made = parts[0]
        for part in parts[1:]:
            made = site.op(operator, made, part, type=reduce.type)
        return made

    return Edit({reduce: make}, whole.operands)


def apply_to_pieces(edge: RefusedEdge) -> Edit | None:
    """An elementwise operator on a concatenation is applied to its pieces."""
    whole, reader = edge.producer, edge.consumer
    type = tensor(reader)
    if whole.op is not hlo.concatenate or reader.op.kind is not Kind.ELEMENTWISE or len(reader.operands) != 1 or type is None \
            or len(whole.operands) > FEW or reader.bodies:
        return None

    def make(site: Site) -> Node:
        parts = [site.copy(reader, site.new(piece), type=shaped(type, dims(piece))) for piece in whole.operands]
        return site.copy(whole, *parts, type=type)

    return Edit({reader: make}, whole.operands)


def slice_before(edge: RefusedEdge) -> Edit | None:
    """``slice(p(x, y))`` becomes ``p(slice(x), slice(y))``: of a product or a reduction, only what is read is computed."""
    whole, part = edge.producer, edge.consumer
    result = tensor(part)
    if part.op is not hlo.slice or result is None:
        return None
    ranges = Slice.of(part).slice
    if whole.op is hlo.dot:
        return _slice_product(whole, part, ranges, result)
    if is_plain(whole):
        if tensor(whole.operands[0]) is None:
            return None
        reduced, kept = Reduce.of(whole).dimensions, iter(ranges)
        cut = tuple((0, n, 1) if d in reduced else next(kept) for d, n in enumerate(dims(whole.operands[0])))
        return Edit({part: lambda site: site.copy(whole, _cut(site, whole.operands[0], cut), site.new(whole.operands[1]), type=result)},
                    whole.operands)
    if whole.op.kind is Kind.ELEMENTWISE and whole.operands and all(_same_shape(o, whole) for o in whole.operands):
        return Edit({part: lambda site: site.copy(whole, *(_cut(site, o, ranges) for o in whole.operands), type=result)}, whole.operands)
    return None


def _slice_product(dot: Node, part: Node, ranges: tuple[tuple[int, int, int], ...], result: TensorType) -> Edit | None:
    attrs = Dot.of(dot)
    if any(tensor(operand) is None for operand in dot.operands):
        return None
    batch = len(attrs.lhs_batch_dims)
    cuts = []
    start = batch
    for operand, batches, contracted in zip(dot.operands, attrs.batch_dims, attrs.contracting_dims, strict=True):
        cut = [(0, n, 1) for n in dims(operand)]
        for place, d in enumerate(batches):
            cut[d] = ranges[place]
        for d in range(len(cut)):
            if d not in batches and d not in contracted:
                cut[d] = ranges[start]
                start += 1
        cuts.append(tuple(cut))
    return Edit({part: lambda site: site.copy(dot, *(_cut(site, o, cut) for o, cut in zip(dot.operands, cuts, strict=True)), type=result)},
                dot.operands)


def _cut(site: Site, node: Node, ranges: tuple[tuple[int, int, int], ...]) -> Node:
    """A slice of a value; the value itself where that is all of it."""
    type = tensor(node)
    assert type is not None
    shape = tuple(-(-(end - begin) // step) for begin, end, step in ranges)
    if shape == dims(node):
        return site.new(node)
    return site.op(hlo.slice, site.new(node), type=shaped(type, shape), attrs={"slice": ranges})


def _same_shape(one: Node, other: Node) -> bool:
    a, b = tensor(one), tensor(other)
    return a is not None and b is not None and a.shape == b.shape
