"""Dots in the canonical form of XLA's CPU compiler, and transposes folded into them."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, Rule, tensor_type
from irscope.fusion.dimensions import inverse
from irscope.ops import hlo
from irscope.ops.attributes import Dot, Transpose

Places = tuple[int, ...]


def places(instr: HloInstruction) -> tuple[Places, Places, Places, Places]:
    """The batch dimensions of both sides, then the contracting dimensions of both sides."""
    attrs = Dot.of(instr)
    return (*attrs.batch_dims, *attrs.contracting_dims)


def with_places(instr: HloInstruction, lhs_batch: Places, rhs_batch: Places, lhs: Places, rhs: Places) -> dict[str, object]:
    """The attributes of a dot with other dimension numbers."""
    attrs = {k: v for k, v in instr.attrs.items() if not k.endswith("_dims")}
    attrs |= {"lhs_contracting_dims": lhs, "rhs_contracting_dims": rhs}
    return attrs | ({"lhs_batch_dims": lhs_batch, "rhs_batch_dims": rhs_batch} if lhs_batch else {})


def free(instr: HloInstruction, batch: Places, contracted: Places) -> list[int]:
    """The free dimensions of an operand: neither batch nor contracting."""
    return [d for d in range(instr.rank) if d not in batch and d not in contracted]


def decompose(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Give dots their batch dimensions first and one dimension of each other kind: XLA's ``DotDecomposer``."""
    lb, rb, lc, rc = places(instr)
    lhs, rhs = instr.operands
    first = tuple(range(len(lb)))
    if len(lc) == 1 and len(lb) + 2 >= lhs.rank and len(rb) + 2 >= rhs.rank and lb == rb == first:
        return False
    batch, size = [lhs.dims[d] for d in lb], prod(lhs.dims[d] for d in lc)
    left, right = free(lhs, lb, lc), free(rhs, rb, rc)
    m, n = ([prod(operand.dims[d] for d in kept)] if kept else [] for operand, kept in ((lhs, left), (rhs, right)))
    a = rewriter.reshape(rewriter.transpose(lhs, [*lb, *left, *lc]), [*batch, *m, size])
    b = rewriter.reshape(rewriter.transpose(rhs, [*rb, *rc, *right]), [*batch, size, *n])
    attrs = with_places(instr, first, first, (len(batch) + len(m),), (len(batch),))
    made = rewriter.make(hlo.dot, tensor_type(instr.dtype, (*batch, *m, *n)), (a, b), attrs)
    # XLA reshapes even where that changes nothing: it makes a separate array, which is rounded if the type is narrow.
    return rewriter.become(instr, hlo.reshape, (made,))


def dot(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a dot (``HandleDot``)."""
    lhs, rhs = instr.operands
    if not lhs.elements or not rhs.elements or not instr.elements:
        return rewriter.replace(instr, rewriter.full(0, instr))
    if not places(instr)[2]:
        return _outer(rewriter, instr)
    if lhs.rank == rhs.rank == len(places(instr)[0]) + len(places(instr)[2]) and rewriter.rewriting.sums_products:
        return _inner(rewriter, instr)
    if 1 in lhs.dims or 1 in rhs.dims:
        return _without_ones(rewriter, instr)
    if lhs.op is rhs.op is hlo.transpose and Transpose.of(lhs).dimensions == Transpose.of(rhs).dimensions:
        return _both_transposed(rewriter, instr)
    return False


def _outer(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite a dot without contraction to a product of both sides, broadcast."""
    lhs, rhs = instr.operands
    lb, rb, _, _ = places(instr)
    n = len(lb)
    sides = []
    for operand, batch, after in ((lhs, lb, 0), (rhs, rb, lhs.rank - n)):
        kept = free(operand, batch, ())
        side = rewriter.convert(rewriter.transpose(operand, [*batch, *kept]), instr.dtype)
        target = (*range(n), *(n + after + i for i in range(len(kept))))
        sides.append(side if side.dims == instr.dims else rewriter.broadcast(side, instr.dims, target))
    return rewriter.become(instr, hlo.multiply, sides)


def _inner(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite a dot that contracts everything to a sum of products."""
    lb, rb, lc, rc = places(instr)
    sides = [rewriter.convert(rewriter.transpose(operand, [*batch, *contracted]), instr.dtype)
             for operand, batch, contracted in zip(instr.operands, (lb, rb), (lc, rc), strict=True)]
    product = rewriter.elementwise(hlo.multiply, sides)
    return rewriter.replace(instr, rewriter.sum(product, tuple(range(len(lb), product.rank))))


def _without_ones(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Drop dimensions of size 1."""
    lb, rb, lc, rc = places(instr)
    lhs, rhs = instr.operands
    if any((lhs.dims[a] == 1) != (rhs.dims[b] == 1) for a, b in zip((*lb, *lc), (*rb, *rc), strict=True)):
        return False  # one of the sizes is dynamic
    maps: list[dict[int, int]] = []
    made = []
    for operand in instr.operands:
        kept = [d for d, n in enumerate(operand.dims) if n != 1]
        maps.append({d: i for i, d in enumerate(kept)})
        made.append(rewriter.reshape(operand, [operand.dims[d] for d in kept]))
    batch = [(maps[0][a], maps[1][b]) for a, b in zip(lb, rb, strict=True) if a in maps[0]]
    left, right = (tuple(kept[d] for d in contracted if d in kept) for kept, contracted in zip(maps, (lc, rc), strict=True))
    attrs = with_places(instr, tuple(a for a, _ in batch), tuple(b for _, b in batch), left, right)
    small = rewriter.make(hlo.dot, tensor_type(instr.dtype, [n for n in instr.dims if n != 1]), made, attrs)
    return rewriter.replace(instr, rewriter.reshape(small, instr.dims))


def _both_transposed(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Transpose the result instead of both sides if both are transposed alike."""
    lhs, rhs = instr.operands
    lb, rb, lc, rc = places(instr)
    rank = instr.rank
    order = Transpose.of(lhs).dimensions
    if lb != rb or lc != (rank - 1,) or rc != (rank - 2,) or rank != len(lb) + 2:
        return False
    if order[-2:] == (rank - 2, rank - 1):
        operands = (lhs.operands[0], rhs.operands[0])
    elif order[-2:] == (rank - 1, rank - 2):
        operands = (rhs.operands[0], lhs.operands[0])
    else:
        return False
    small = rewriter.like(instr, operands, [instr.dims[d] for d in inverse(order)])
    return rewriter.become(instr, hlo.transpose, (small,), {"dimensions": order})


def widen_vector(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Make a vector beside a matrix a matrix of one column: XLA's ``GemvRewriter``. Not beside a transposed matrix without batch."""
    lhs, rhs = instr.operands
    lb, rb, lc, rc = places(instr)
    is_left_matrix, is_right_matrix = lhs.rank == len(lb) + len(lc) + 1, rhs.rank == len(rb) + len(rc) + 1
    if is_left_matrix == is_right_matrix or (not lb and (lhs if is_left_matrix else rhs).op is hlo.transpose):
        return False
    if is_left_matrix:
        rhs, dims = rewriter.reshape(rhs, (*rhs.dims, 1)), (*instr.dims, 1)
    else:
        lhs, dims = rewriter.reshape(lhs, (*lhs.dims, 1)), (*instr.dims[:-1], 1, instr.dims[-1])
    return rewriter.replace(instr, rewriter.reshape(rewriter.like(instr, (lhs, rhs), dims), instr.dims))


def fold_transposes(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Fold a transpose of an operand's two matrix dimensions into the dot: XLA's ``TransposeFolding``."""
    lb, rb, lc, rc = places(instr)
    sides = [(operand, batch, contracted) for operand, batch, contracted in zip(instr.operands, (lb, rb), (lc, rc), strict=True)]
    if not all(free(*side) for side in sides):
        return False
    for number, (operand, batch, contracted) in enumerate(sides):
        if operand.op is hlo.transpose and _swaps_matrix(operand, batch, contracted):
            order = Transpose.of(operand).dimensions
            sides[number] = operand.operands[0], tuple(order[d] for d in batch), tuple(order[d] for d in contracted)
    operands, (lb, rb), (lc, rc) = zip(*sides, strict=True)
    return list(operands) != instr.operands and rewriter.become(instr, hlo.dot, operands, with_places(instr, lb, rb, lc, rc))


def _swaps_matrix(operand: HloInstruction, batch: Places, contracted: Places) -> bool:
    """Whether a transpose keeps the batch dimensions and swaps the contracting with the free one."""
    kept = free(operand, batch, contracted)
    order = Transpose.of(operand).dimensions
    return len(contracted) == 1 and len(kept) == 1 and all(order[d] == d for d in batch) and order[kept[0]] == contracted[0] \
        and order[contracted[0]] == kept[0]


def upcast_whole_numbers(in_library: Callable[[HloInstruction], bool]) -> Rule:
    """Convert the operands of integer dots to the element type of the result: XLA's ``OperandUpcaster``."""
    def upcast(rewriter: HloComputation, instr: HloInstruction) -> bool:
        if in_library(instr) or all(o.dtype == instr.dtype for o in instr.operands):
            return False
        for i, operand in enumerate(list(instr.operands)):
            instr.set_operand(i, rewriter.convert(operand, instr.dtype))
        return True

    return upcast
