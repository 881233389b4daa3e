"""Reductions: simplifies them, computes them before movement, and splits them where XLA's CPU compiler does."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, tensor_type
from irscope.fusion.canonicalise.values import combiner, is_all, is_floating, scalar_of
from irscope.fusion.dimensions import is_sorted, unmodified, without
from irscope.graph import Op, TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Concatenate, Pad, Reduce, Transpose, Windowed
from irscope.ops.attrs import Window

TREE_WINDOW = 32
"""Elements that XLA's ``TreeReductionRewriter`` adds in the first of two steps."""

SMALL = 8
"""Elements of the longest contiguous group of dimensions up to which a reduction of several groups stays one (``ReductionSplitter``)."""

ASSOCIATIVE = hlo.named("add multiply and or maximum minimum")
"""Operators that combine the results of two reductions as they combine elements."""


def reduce(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a reduction (``HandleReduce``)."""
    if len(instr.operands) == 2:
        return instr.is_array and _reduce(rewriter, instr)
    source = instr.operands[0]
    first = next(instr.type.leaves(), None)
    if not source.elements or not source.is_array or not isinstance(first, TensorType) or first.elements != source.elements:
        return False
    values = instr.operands[:len(instr.operands) // 2]
    return rewriter.become(instr, hlo.tuple, [rewriter.reshape(value, first.dims()) for value in values])


def _reduce(rewriter: HloComputation, instr: HloInstruction) -> bool:
    source, init = instr.operands
    if not source.elements or not instr.elements:
        return rewriter.replace(instr, rewriter.broadcast(init, instr.dims, ()))
    if source.elements == instr.elements:
        return rewriter.become(instr, hlo.reshape, (source,))
    op = combiner(instr.bodies[0] if instr.bodies else None)
    dimensions = Reduce.of(instr).dimensions
    match source.op:
        case hlo.negate if op is hlo.add and is_floating(instr.dtype) and is_all(init, 0):
            return rewriter.become(instr, hlo.negate, (rewriter.like(instr, (source.operands[0], init)),))
        case hlo.transpose if instr.rank < 2 or len(source.users) == 1 or all(u.op is hlo.reduce for u in source.users):
            return _of_transpose(rewriter, instr, dimensions)
        case hlo.reduce if len(source.operands) == 2 and _same_value(init, source.operands[1]) and op in ASSOCIATIVE \
                and op is combiner(source.bodies[0] if source.bodies else None):
            inner = Reduce.of(source).dimensions
            left = [d for d in range(source.operands[0].rank) if d not in inner]
            merged = sorted([*inner, *(left[d] for d in dimensions)])
            return rewriter.replace(instr, rewriter.reduce(instr, source.operands[0], merged))
        case hlo.reshape:
            return _of_reshape(rewriter, instr, dimensions)
        case hlo.concatenate if Concatenate.of(source).axis in dimensions and op and (
                not rewriter.on_gpu or not instr.dims or all(p.dims == source.operands[0].dims for p in source.operands)):
            total, *parts = [rewriter.like(instr, (piece, init)) for piece in source.operands]
            for part in parts:
                total = rewriter.elementwise(op, (total, part))
            return rewriter.replace(instr, total)
        case hlo.broadcast:
            return op is not None and _of_broadcast(rewriter, instr, dimensions, op)
    return False


def _of_transpose(rewriter: HloComputation, instr: HloInstruction, dimensions: tuple[int, ...]) -> bool:
    """Reduce before a transpose, and transpose the rest."""
    source = instr.operands[0]
    order = Transpose.of(source).dimensions
    reduced = [order[d] for d in dimensions]
    small = rewriter.reduce(instr, source.operands[0], reduced)
    kept = [d for d in order if d not in reduced]
    if is_sorted(kept):
        return rewriter.replace(instr, small)
    return rewriter.become(instr, hlo.transpose, (small,), {"dimensions": tuple(d - sum(r < d for r in reduced) for d in kept)})


def _of_reshape(rewriter: HloComputation, instr: HloInstruction, dimensions: tuple[int, ...]) -> bool:
    """Remove a reshape of reduced dimensions; move one of kept dimensions after the reduction."""
    source = instr.operands[0]
    inner = source.operands[0]
    same = {after: before for before, after in unmodified(inner.dims, source.dims)}
    if all(d in same for d in range(source.rank) if d not in dimensions):
        kept = {before for after, before in same.items() if after not in dimensions}
        return rewriter.replace(instr, rewriter.reduce(instr, inner, [d for d in range(inner.rank) if d not in kept]))
    return len(source.users) == 1 and all(d in same for d in dimensions) \
        and rewriter.become(instr, hlo.reshape, (rewriter.reduce(instr, inner, [same[d] for d in dimensions]),))


def _of_broadcast(rewriter: HloComputation, instr: HloInstruction, dimensions: tuple[int, ...], op: Op) -> bool:
    """Replace the sum of a broadcast by a product, and the extreme of a broadcast by its operand."""
    source, init = instr.operands
    inner, spread = source.operands[0], Broadcast.of(source).dimensions
    if op in (hlo.maximum, hlo.minimum, hlo.and_, hlo.or_) and not inner.dims and len(dimensions) == source.rank:
        return rewriter.become(instr, op, (inner, init))
    if op is hlo.add and not any(d in spread for d in dimensions):
        count = prod(source.dims[d] for d in dimensions)
        product = rewriter.elementwise(hlo.multiply, (inner, rewriter.full(count, inner)))
        total = rewriter.elementwise(hlo.add, (rewriter.spread(init, inner.dims), product))
        return rewriter.become(instr, hlo.broadcast, (total,), {"dimensions": tuple(d - sum(r < d for r in dimensions) for d in spread)})
    return False


def _same_value(a: HloInstruction, b: HloInstruction) -> bool:
    x, y = scalar_of(a), scalar_of(b)
    return a is b or (x is not None and x == y and a.dtype == b.dtype)


def reduce_window(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Turn windows that cover whole dimensions into reductions, and fold paddings into windows (``HandleReduceWindow``)."""
    window = Windowed.of(instr).window
    if len(instr.operands) != 2 or not instr.is_array or window is None:
        return False
    source, init = instr.operands
    plain = all(s == 1 for s in (*window.stride, *window.lhs_dilate, *window.rhs_dilate))
    padded = any((*window.pad_low, *window.pad_high))
    op = combiner(instr.bodies[0] if instr.bodies else None)
    if plain and all(s == 1 for s in window.size) and op in (hlo.add, hlo.minimum, hlo.maximum):
        made = rewriter.elementwise(op, (source, rewriter.spread(init, source.dims)))
        if padded:
            padding = tuple((low, high, 0) for low, high in zip(window.pad_low, window.pad_high, strict=True))
            return rewriter.become(instr, hlo.pad, (made, init), {"padding": padding})
        return rewriter.replace(instr, made)
    wide = tuple(d for d, s in enumerate(window.size) if s != 1)
    if plain and not padded and wide and all(instr.dims[d] == 1 for d in wide):
        type = tensor_type(instr.dtype, without(instr.dims, wide))
        small = rewriter.make(hlo.reduce, type, (source, init), {"dimensions": wide}, instr.bodies)
        return rewriter.become(instr, hlo.reshape, (small,))
    return source.op is hlo.pad and _fold_pad(rewriter, instr, window)


def _fold_pad(rewriter: HloComputation, instr: HloInstruction, window: Window) -> bool:
    pad, init = instr.operands
    inner, value = pad.operands
    padding = Pad.of(pad).padding
    if not _same_value(value, init) or (any(c for _, _, c in padding) and any(s != 1 for s in window.lhs_dilate)):
        return False
    made = replace(window, pad_low=tuple(w + d * a for w, d, (a, _, _) in zip(window.pad_low, window.lhs_dilate, padding, strict=True)),
                   pad_high=tuple(w + d * b for w, d, (_, b, _) in zip(window.pad_high, window.lhs_dilate, padding, strict=True)),
                   lhs_dilate=tuple(1 + c if c else d for d, (_, _, c) in zip(window.lhs_dilate, padding, strict=True)))
    return rewriter.replace(instr, rewriter.like(instr, (inner, init), attrs={"window": made}))


def split_reductions(rewriter: HloComputation, left_alone: Callable[[HloInstruction], bool]) -> bool:
    """Split reductions of more than 32 elements to add 32 at a time first: XLA's ``TreeReductionRewriter``.

    ``left_alone(instr)`` says which reductions a library computes and stay as they are.
    """
    changed = False
    for instr in rewriter.post_order():
        if instr.op is not hlo.reduce or not instr.is_array or len(instr.operands) != 2 or instr.erased or left_alone(instr):
            continue
        source, init = instr.operands
        dimensions = Reduce.of(instr).dimensions
        if not any(source.dims[d] > TREE_WINDOW for d in dimensions):
            continue
        rewriter.at = instr
        size = tuple(min(n, TREE_WINDOW) if d in dimensions else 1 for d, n in enumerate(source.dims))
        dims = [-(-n // s) for n, s in zip(source.dims, size, strict=True)]
        missing = [count * s - n for count, n, s in zip(dims, source.dims, size, strict=True)]
        window = Window.make(size, size, tuple((n // 2, n - n // 2) for n in missing))
        first = rewriter.make(hlo.reduce_window, tensor_type(instr.dtype, dims), (source, init), {"window": window}, instr.bodies)
        rewriter.replace(instr, rewriter.like(instr, (first, init)))
        changed = True
    return changed


def scatter(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a scatter of empty updates."""
    count = (len(instr.operands) - 1) // 2
    if any(update.elements for update in instr.operands[count + 1:]):
        return False
    if instr.is_array:
        return rewriter.replace(instr, instr.operands[0])
    return rewriter.become(instr, hlo.tuple, instr.operands[:count])


def split_apart(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Split a reduction over non-contiguous dimensions into the longest contiguous group and the rest: ``ReductionSplitter``."""
    if not instr.is_array:
        return False
    source = instr.operands[0]
    reduced = set(Reduce.of(instr).dimensions)
    stretches: list[list[int]] = [[]]
    for d, size in enumerate(source.dims):
        if d in reduced:
            stretches[-1].append(d)
        elif size != 1 and stretches[-1]:
            stretches.append([])
    sizes = [prod(source.dims[d] for d in stretch) for stretch in stretches]
    if sum(size > 1 for size in sizes) < 2 or max(sizes) <= SMALL:
        return False
    longest = stretches[sizes.index(max(sizes))]
    first = rewriter.reduce(instr, source, longest)
    left = [d for d in range(source.rank) if d not in longest]
    last = rewriter.reduce(instr, first, [i for i, d in enumerate(left) if d in reduced])
    rewriter.replace(instr, last)
    split_apart(rewriter, last)
    return True
