"""Propagation of the dimension order of a tensor through instructions, from results to operands or from an operand to the result.

What the kernel of a dot reads is in memory as some order of pieces (:mod:`irscope.fusion.xla.gemm.orders`). An elementwise operation
reads its operands in the order of its result; a transpose swaps pieces, a reshape cuts them differently, a broadcast drops some, a slice
reads a part of one (``GetPropagatedDimOrders`` of triton_tiling_propagation.cc). Without a simple order, the instruction stays outside.
"""
from __future__ import annotations

import itertools
from dataclasses import dataclass

from irscope.fusion.dimensions import inverse
from irscope.fusion.xla.gemm import rules
from irscope.fusion.xla.gemm.orders import Order, Piece
from irscope.fusion.xla.gemm.rules import No
from irscope.fusion.xla.gemm.support import computes
from irscope.fusion.xla.instructions import Instruction
from irscope.graph import Op
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Concatenate, Slice, Transpose

CONCATENATED = 64
"""The size of each part of a concatenation must be a multiple of this (``kMinConcatFragmentSize``): no tile is larger there."""


@dataclass(frozen=True, slots=True)
class DotSide:
    """The properties of one side of a dot: the dimension that is kept, the one that may be in two places (-1: none), and the size of the
    contracting one. ``DotProperties`` of triton_tiling_propagation.h."""

    kept: int
    splittable: int
    contracted: int


Orders = list[Order]
"""One for each operand, or one for the result."""


def to_operands(instruction: Instruction, order: Order, side: DotSide) -> Orders | No:
    """The orders of an instruction's operands, given that of its result; or the refusal."""
    op = instruction.op
    if op is not hlo.parameter and any(user.op in (hlo.concatenate, hlo.dynamic_slice) for user in instruction.users):
        return No(rules.SHARED_PATH)
    if op is hlo.parameter or (op is hlo.constant and instruction.is_array and not instruction.dims):
        return []
    if op in (hlo.transpose, hlo.copy, hlo.broadcast, hlo.slice):
        return _moved(instruction, order, [instruction.operands[0]])
    if instruction.operands and computes(op, instruction.operands[0].dtype):
        return [order] * len(instruction.operands)
    if op in (hlo.bitcast, hlo.reshape):
        return _reshaped(instruction, order, instruction.operands[0])
    if op is hlo.concatenate:
        return _unconcatenated(instruction, order, side)
    return _unimplemented(op)


def to_result(instruction: Instruction, order: Order) -> Orders | No:
    """The order of an instruction's result, given that of its first operand; or the refusal."""
    op = instruction.op
    if op in (hlo.transpose, hlo.copy):
        return _moved(instruction, order, [instruction], upwards=False)
    if op is hlo.broadcast:
        return No(rules.BROADCAST_UP)
    if instruction.operands and computes(op, instruction.operands[0].dtype):
        return [order]
    if op is hlo.slice:
        return No(rules.SLICE_UP)
    return _reshaped(instruction, order, instruction) if op in (hlo.bitcast, hlo.reshape) else _unimplemented(op)


def _unimplemented(op: Op) -> No:
    return No(rules.SECOND if op is hlo.dot else rules.UNIMPLEMENTED, op=op.name)


def _reshaped(instruction: Instruction, order: Order, target: Instruction) -> Orders | No:
    """The pieces of a tensor cut along the dimensions of another that has the same elements in the same memory order."""
    if instruction.op is hlo.reshape and not is_bitcast(instruction):
        return No(rules.NOT_BITCAST)
    sizes = [target.dims[d] for d in target.minor]
    numbers = f"{list(instruction.operands[0].dims)} to {list(instruction.dims)}"
    pieces: list[Piece] = []
    become: list[list[int]] = []
    at, open_ = 0, 1
    """``open_`` is the part of the dimension before ``at`` that no piece fills yet."""
    for piece in order.pieces:
        mine: list[int] = []
        become.append(mine)
        if open_ >= piece.count:
            if open_ % piece.count:
                return No(rules.BITCAST, numbers=numbers)
            mine.append(len(pieces))
            pieces.append(piece)
            open_ //= piece.count
            continue
        rest = piece.count
        while rest > 1:
            size = open_ if open_ > 1 else sizes[at] if at < len(sizes) else 0
            at += open_ == 1
            taken = min(size, rest)
            if not size or piece.is_sliced or (rest % size if open_ > 1 else size > rest and size % rest):
                return No(rules.BITCAST, numbers=numbers)
            open_ = size // rest if size > rest else 1
            mine.append(len(pieces))
            pieces.append(Piece.whole(piece.label, taken))
            rest //= taken
    if open_ != 1 or any(size != 1 for size in sizes[at:]):
        return No(rules.BITCAST, numbers=numbers)
    if pieces:
        for _ in sizes[at:]:
            become[-1].append(len(pieces))
            pieces.append(Piece.whole(pieces[-1].label, 1))
    by_label = {label: tuple(new for old in numbers_ for new in become[old]) for label, numbers_ in order.by_label.items()}
    return [Order(tuple(pieces), {label: found for label, found in by_label.items() if found})]


def _moved(instruction: Instruction, order: Order, targets: list[Instruction], upwards: bool = True) -> Orders | No:
    """The pieces of a tensor after a transpose, copy, broadcast, slice or concatenation, one order for each of ``targets``."""
    source = instruction if upwards else instruction.operands[0]
    if instruction.op is hlo.slice and instruction.elements == 1:
        return No(rules.TO_SCALAR)
    groups = _by_dimension(order, source)
    if groups is None:
        return No(rules.TRIVIAL)
    made: Orders = []
    before = 0
    known: dict[Instruction, Order] = {}
    for target in targets:
        pieces = list(order.pieces)
        if instruction.op is hlo.concatenate:
            along = Concatenate.of(instruction).axis
            group = groups[along]
            if len(group) != 1 or pieces[group[0]].is_sliced:
                return No(rules.CONCATENATION)
            size = target.dims[along]
            part = Piece(pieces[group[0]].label, size, -before, size)
            before += size
            laid = _laid_out(target, groups, pieces, order, {along: part})
            known[target] = _after(known[target], laid) if target in known else laid
            continue
        if instruction.op is hlo.slice:
            for dim, ((start, limit, _), group) in enumerate(zip(Slice.of(instruction).slice, groups, strict=True)):
                if limit - start == target.dims[dim]:
                    continue
                if len(group) > 1:
                    return No(rules.SPLIT_SLICE, numbers=f"dimension {dim}")
                old = pieces[group[0]]
                pieces[group[0]] = Piece(old.label, target.dims[dim], old.start + start, old.sliced)
        placed = [groups[n] for n in _sources(instruction, len(target.dims), upwards)]
        if instruction.op is hlo.broadcast and _drops_part(placed, pieces, order):
            return No(rules.BROADCAST)
        made.append(_laid_out(target, placed, pieces, order, {}))
    return made or [known[target] for target in targets]


def _sources(instruction: Instruction, rank: int, upwards: bool) -> list[int]:
    """The dimension of the known side for each dimension of the other side."""
    if instruction.op is hlo.broadcast:
        return list(Broadcast.of(instruction).dimensions)
    if instruction.op is not hlo.transpose:
        return list(range(rank))
    order = Transpose.of(instruction).dimensions
    return list(inverse(order) if upwards else order)


def _by_dimension(order: Order, tensor: Instruction) -> list[list[int]] | None:
    """For each dimension of a tensor the numbers of its pieces; None if they do not match."""
    if len(order.pieces) < len(tensor.dims):
        return None
    groups: list[list[int]] = [[] for _ in tensor.dims]
    at = 0
    for dim in tensor.minor:
        size = 1
        while not groups[dim] or size < tensor.dims[dim]:
            if at == len(order.pieces):
                return None
            size *= order.pieces[at].count
            groups[dim].append(at)
            at += 1
        if size != tensor.dims[dim]:
            return None
    return groups


def _laid_out(target: Instruction, groups: list[list[int]], pieces: list[Piece], order: Order, parts: dict[int, Piece]) -> Order:
    """Pieces in the memory order of the dimensions of ``target``; ``parts`` replace whole dimensions, and are not among their pieces."""
    laid: list[Piece] = []
    become: dict[int, int] = {}
    for dim in target.minor:
        if dim in parts:
            laid.append(parts[dim])
            continue
        for number in groups[dim]:
            become[number] = len(laid)
            laid.append(pieces[number])
    by_label = {label: tuple(become[n] for n in numbers if n in become) for label, numbers in order.by_label.items()}
    return Order(tuple(laid), {label: found for label, found in by_label.items() if found})


def _after(order: Order, other: Order) -> Order:
    """Concatenates two orders of one tensor that a concatenation reads twice, as XLA does; no kernel can follow the result."""
    first = len(order.pieces)
    labels = dict.fromkeys((*order.by_label, *other.by_label))
    return Order((*order.pieces, *other.pieces), {
        label: (*order.by_label.get(label, ()), *(first + n for n in other.by_label.get(label, ()))) for label in labels})


def _drops_part(placed: list[list[int]], pieces: list[Piece], order: Order) -> bool:
    """Whether a broadcast drops one piece of a dimension and keeps another."""
    kept = {number for group in placed for number in group}
    labels = {pieces[number].label for number in kept if pieces[number].count > 1}
    return any(label in labels and any(n not in kept and pieces[n].count > 1 for n in numbers) for label, numbers in order.by_label.items())


def _unconcatenated(instruction: Instruction, order: Order, side: DotSide) -> Orders | No:
    along = Concatenate.of(instruction).axis
    if len(order.by_label.get(side.kept, ())) > 1:
        return No(rules.SPLIT_CONCATENATION)
    if _dimension_labelled(instruction, order, side.kept) != along:
        return No(rules.CONCATENATION)
    for operand in instruction.operands:
        if operand.dims[along] % CONCATENATED:
            return No(rules.UNEVEN_CONCATENATION, numbers=f"%{operand.name} has {operand.dims[along]}")
    return _moved(instruction, order, list(instruction.operands))


def _dimension_labelled(tensor: Instruction, order: Order, label: int) -> int | None:
    """The dimension of a tensor that has a piece of a dimension of the dot."""
    at = 0
    for dim in tensor.minor:
        size = 1
        while size < tensor.dims[dim] and at < len(order.pieces):
            size *= order.pieces[at].count
            if order.pieces[at].label == label:
                return dim
            at += 1
    return None


def is_bitcast(reshape: Instruction) -> bool:
    """Whether a reshape keeps every element in place (``ShapeUtil::ReshapeIsBitcast``): each group of dimensions of equal size
    is contiguous up to one stride on both sides."""
    sides = reshape.operands[0], reshape
    if any(not i.is_array for i in sides):
        return False
    runs = [_runs(i) for i in sides]
    at, products = [0, 0], [1, 1]
    begun = [0, 0]
    while at[0] < len(runs[0]) or at[1] < len(runs[1]):
        smaller = 0 if (products[0] <= products[1] and at[0] < len(runs[0])) or at[1] == len(runs[1]) else 1
        products[smaller] *= runs[smaller][at[smaller]][0]
        at[smaller] += 1
        if products[0] == products[1]:
            groups = [runs[s][begun[s]:at[s]] for s in (0, 1)]
            if not all(map(_contiguous, groups)) or groups[0][-1][1] != groups[1][-1][1]:
                return False
            begun, products = list(at), [1, 1]
    return True


def _runs(tensor: Instruction) -> list[tuple[int, int]]:
    """(size, step in memory) of the dimensions larger than one, slowest first as they are written."""
    steps, step = {}, 1
    for dim in tensor.minor:
        steps[dim] = step
        step *= tensor.dims[dim]
    return [(size, steps[dim]) for dim, size in enumerate(tensor.dims) if size != 1]


def _contiguous(group: list[tuple[int, int]]) -> bool:
    return all(step == size * inner for (_, step), (size, inner) in itertools.pairwise(group))
