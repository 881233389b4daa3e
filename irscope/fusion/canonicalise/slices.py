"""Slices, updates, pads, concatenations and reverses: merges them, and moves slices up to smaller operands."""
from __future__ import annotations

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.fusion.canonicalise.values import is_all, scalar_of
from irscope.fusion.dimensions import inserted_or_deleted, inverse, unmodified
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Concatenate, Pad, Reverse, Slice, Transpose

Cut = tuple[tuple[int, int, int], ...]
"""For each dimension: start, limit, stride."""
MAX_PIECES = 256
"""The most pieces that a concatenation may have after concatenations that others read too are merged into it."""


def slice_(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a slice (``HandleSlice``)."""
    source, cut = instr.operands[0], Slice.of(instr).slice
    if source.dims == instr.dims:
        return rewriter.replace(instr, source)
    if source.op is hlo.pad and _of_pad(rewriter, instr, cut):
        return True
    whole = all(step == 1 for _, _, step in cut)
    if source.op is hlo.slice and whole and all(step == 1 for _, _, step in Slice.of(source).slice):
        outer = tuple((a + c, b + c, 1) for (a, b, _), (c, _, _) in zip(cut, Slice.of(source).slice, strict=True))
        return rewriter.become(instr, hlo.slice, (source.operands[0],), {"slice": outer})
    if source.op is hlo.broadcast:
        return _of_broadcast(rewriter, instr, cut)
    if source.op is hlo.concatenate and whole and _of_concatenation(rewriter, instr, cut):
        return True
    if source.op is hlo.reshape and whole and _of_reshape(rewriter, instr, cut):
        return True
    if source.op is hlo.reverse:
        reversed_ = Reverse.of(source).dimensions
        outer = tuple((source.dims[d] - b, source.dims[d] - a, s) if d in reversed_ else (a, b, s) for d, (a, b, s) in enumerate(cut))
        small = rewriter.make(hlo.slice, instr.type, source.operands, {"slice": outer})
        return rewriter.become(instr, hlo.reverse, (small,), {"dimensions": reversed_})
    outer = tuple((a, a + 1, 1) if s != 1 and (s >= b or a + s >= b) else (a, b, s) for a, b, s in cut)
    return outer != cut and rewriter.become(instr, hlo.slice, (source,), {"slice": outer})


def _of_pad(rewriter: HloComputation, instr: HloInstruction, cut: Cut) -> bool:
    """Slice the operand of a pad, or only its padding."""
    pad = instr.operands[0]
    inner = pad.operands[0]
    undoes = inside = True
    inner_cut = []
    for (start, limit, stride), (low, high, interior), size in zip(cut, Pad.of(pad).padding, pad.dims, strict=True):
        edge = size - high
        if limit <= low or start >= edge:
            return rewriter.replace(instr, rewriter.broadcast(pad.operands[1], instr.dims, ()))
        undoes = undoes and start == low and stride - 1 == interior
        inside = inside and start >= low and limit <= edge and interior == 0 and stride == 1
        inner_cut.append((start - low, limit - low, stride))
    if undoes and inner.dims == instr.dims:
        return rewriter.replace(instr, inner)
    return inside and rewriter.become(instr, hlo.slice, (inner,), {"slice": tuple(inner_cut)})


def _of_broadcast(rewriter: HloComputation, instr: HloInstruction, cut: Cut) -> bool:
    """Slice the operand of a broadcast instead of its result."""
    source = instr.operands[0]
    inner, dimensions = source.operands[0], Broadcast.of(source).dimensions
    inner_cut = [cut[d] for d in dimensions]
    if inner_cut != [(0, source.dims[d], 1) for d in dimensions]:
        inner = rewriter.slice(inner, inner_cut)
    return rewriter.become(instr, hlo.broadcast, (inner,), {"dimensions": dimensions})


def _of_concatenation(rewriter: HloComputation, instr: HloInstruction, cut: Cut) -> bool:
    """Slice only the pieces of a concatenation that the slice overlaps."""
    source = instr.operands[0]
    axis = Concatenate.of(source).axis
    start, limit, _ = cut[axis]
    if start >= limit:
        return False  # an empty slice overlaps no piece
    begins = [0]
    for piece in source.operands[:-1]:
        begins.append(begins[-1] + piece.dims[axis])
    first = max(i for i, b in enumerate(begins) if b <= start)
    last = max(i for i, b in enumerate(begins) if b < limit)
    pieces = source.operands[first:last + 1]
    if len(pieces) == len(source.operands):
        return False
    if len(pieces) == 1 and pieces[0].dims == instr.dims:
        return rewriter.replace(instr, pieces[0])
    inner_cut = tuple((a - begins[first], b - begins[first], s) if d == axis else (a, b, s) for d, (a, b, s) in enumerate(cut))
    return rewriter.become(instr, hlo.slice, (rewriter.concatenate(pieces, axis),), {"slice": inner_cut})


def _of_reshape(rewriter: HloComputation, instr: HloInstruction, cut: Cut) -> bool:
    """Move a slice that begins at the start of the first dimension above a reshape, if it is a block there too
    (``TryToReorderSliceAndReshape``)."""
    source = instr.operands[0]
    inner = source.operands[0]
    if cut[0][0] or any((a, b) != (0, source.dims[d]) for d, (a, b, _) in enumerate(cut) if d) or not all(inner.dims):
        return False
    limits, left = list(inner.dims), instr.elements
    for d in reversed(range(inner.rank)):
        if left >= inner.dims[d] and left % inner.dims[d]:
            return False
        limits[d] = min(left, inner.dims[d])
        left = max(1, left // inner.dims[d])
    return rewriter.become(instr, hlo.reshape, (rewriter.slice(inner, [(0, limit, 1) for limit in limits]),))


def dynamic_slice(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a slice at computed start indices (``HandleDynamicSlice``)."""
    source, starts, sizes = instr.operands[0], instr.operands[1:], instr.dims
    if not starts or starts[0].dims:
        return False
    if source.dims == sizes:
        return rewriter.replace(instr, source)
    if _start_at_zero(rewriter, instr, sizes, 1):
        return True
    if source.op is hlo.broadcast:
        inner, dimensions = source.operands[0], Broadcast.of(source).dimensions
        if dimensions:
            inner = rewriter.dynamic_slice(inner, [starts[d] for d in dimensions], [sizes[d] for d in dimensions])
        return rewriter.become(instr, hlo.broadcast, (inner,), {"dimensions": dimensions})
    if source.op is hlo.reshape and inserted_or_deleted(source.operands[0].dims, source.dims) is not None:
        inner = source.operands[0]
        inner_starts = [rewriter.constant(0, starts[0].dtype)] * inner.rank
        inner_sizes = [1] * inner.rank
        for before, after in unmodified(inner.dims, source.dims):
            if inner.dims[before] != 1:
                inner_starts[before], inner_sizes[before] = starts[after], sizes[after]
        return rewriter.become(instr, hlo.reshape, (rewriter.dynamic_slice(inner, inner_starts, inner_sizes),))
    if source.op is hlo.transpose:
        order = Transpose.of(source).dimensions
        back = inverse(order)
        small = rewriter.dynamic_slice(source.operands[0], [starts[d] for d in back], [sizes[d] for d in back])
        return rewriter.become(instr, hlo.transpose, (small,), {"dimensions": order})
    known = [scalar_of(s) for s in starts]
    if source.op is not hlo.constant and all(isinstance(p, int) and p >= 0 for p in known):
        begins = [min(p, n - m) for p, n, m in zip(known, source.dims, sizes, strict=True)]
        return rewriter.become(instr, hlo.slice, (source,), {"slice": tuple((b, b + m, 1) for b, m in zip(begins, sizes, strict=True))})
    return False


def _start_at_zero(rewriter: HloComputation, instr: HloInstruction, sizes: tuple[int, ...], first: int) -> bool:
    """Set start indices to zero along dimensions that the window covers wholly. The starts are the operands from ``first`` on."""
    array, starts = instr.operands[0], instr.operands[first:]
    full = [d for d, n in enumerate(sizes) if n == array.dims[d] and not (starts[d].op is hlo.constant and is_all(starts[d], 0))]
    if not full:
        return False
    zero = rewriter.constant(0, starts[0].dtype)
    starts = [zero if d in full else s for d, s in enumerate(starts)]
    return rewriter.replace(instr, rewriter.like(instr, (*instr.operands[:first], *starts)))


def dynamic_update_slice(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify an update (``HandleDynamicUpdateSlice``)."""
    target, part, *starts = instr.operands
    if not starts or starts[0].dims:
        return False
    known = [scalar_of(s) for s in starts]
    if target.op is hlo.broadcast and not target.operands[0].dims and all(isinstance(start, int) for start in known):
        lows = [min(max(0, start), large - small) for start, small, large in zip(known, part.dims, target.dims, strict=True)]
        padding = tuple((low, large - low - small, 0) for low, small, large in zip(lows, part.dims, target.dims, strict=True))
        return rewriter.become(instr, hlo.pad, (part, target.operands[0]), {"padding": padding})
    if part.dims == instr.dims:
        return rewriter.replace(instr, part)
    return _start_at_zero(rewriter, instr, part.dims, 2) or (not part.elements and rewriter.replace(instr, target))


def pad(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a pad (``HandlePad``)."""
    source, value = instr.operands
    padding = Pad.of(instr).padding
    if not source.elements:
        return rewriter.replace(instr, rewriter.broadcast(value, instr.dims, ()))
    cleared = tuple((a, b, 0 if n == 1 else c) for (a, b, c), n in zip(padding, source.dims, strict=True))
    if cleared != padding:
        return rewriter.become(instr, hlo.pad, (source, value), {"padding": cleared})
    if all((a, b) == (0, 0) for a, b, _ in padding) and source.dims == instr.dims:
        return rewriter.replace(instr, source)
    padded = [d for d, p in enumerate(padding) if p != (0, 0, 0)]
    if source.op is hlo.broadcast and len(source.users) == 1 and len(padded) < instr.rank and source.operands[0].rank <= len(padded) \
            and all(d in padded for d in Broadcast.of(source).dimensions):
        dimensions = [padded.index(d) for d in Broadcast.of(source).dimensions]
        inner = rewriter.broadcast(source.operands[0], [source.dims[d] for d in padded], dimensions)
        small = rewriter.pad(inner, value, [padding[d] for d in padded])
        return rewriter.become(instr, hlo.broadcast, (small,), {"dimensions": tuple(padded)})
    if any(a < 0 or b < 0 for a, b, _ in padding):
        large = rewriter.pad(source, value, [(max(a, 0), max(b, 0), c) for a, b, c in padding])
        cut = tuple((max(-a, 0), n + min(b, 0), 1) for n, (a, b, _) in zip(large.dims, padding, strict=True))
        return rewriter.become(instr, hlo.slice, (large,), {"slice": cut})
    return False


def concatenate(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a concatenation (``HandleConcatenate``)."""
    axis = Concatenate.of(instr).axis
    pieces = [p for p in instr.operands if p.elements]
    if len(instr.operands) == 1 or (pieces and len(pieces) < len(instr.operands)):
        return rewriter.replace(instr, rewriter.like(instr, pieces) if len(pieces) > 1 else (pieces or instr.operands)[0])
    nested = [p for p in instr.operands if p.op is hlo.concatenate and Concatenate.of(p).axis == axis]
    if nested and _merges(instr, nested):
        flat = [q for p in instr.operands for q in (p.operands if p.op is hlo.concatenate and Concatenate.of(p).axis == axis else (p,))]
        return rewriter.replace(instr, rewriter.like(instr, flat))
    merged = _merge_slices(rewriter, instr, axis)
    if len(merged) < len(instr.operands):
        return rewriter.replace(instr, merged[0] if merged[0].dims == instr.dims else rewriter.like(instr, merged))
    if len(instr.operands) == 2:
        return _as_pad(rewriter, instr, axis)
    first = instr.operands[0]
    if all(p is first for p in instr.operands) and first.dims[axis] == 1:
        others = tuple(d for d in range(instr.rank) if d != axis)
        return rewriter.become(instr, hlo.broadcast, (rewriter.reshape(first, [first.dims[d] for d in others]),), {"dimensions": others})
    return False


def _merges(instr: HloInstruction, nested: list[HloInstruction]) -> bool:
    """Whether the pieces of nested concatenations replace them: up to :data:`MAX_PIECES`, or if nothing else reads the nested ones.

    XLA sets no limit; a value that is concatenated with itself 40 times would have 2^40 pieces.
    """
    if len(set(nested)) == len(nested) and all(len(inner.users) == 1 for inner in nested):
        return True
    return len(instr.operands) + sum(len(inner.operands) - 1 for inner in nested) <= MAX_PIECES


def _as_pad(rewriter: HloComputation, instr: HloInstruction, axis: int) -> bool:
    """Rewrite a concatenation of an array and a broadcast scalar to a pad."""
    low, high = instr.operands
    for value, piece, around in ((low, high, (low.dims[axis], 0, 0)), (high, low, (0, high.dims[axis], 0))):
        if value.op is hlo.broadcast and not value.operands[0].dims:
            padding = tuple(around if d == axis else (0, 0, 0) for d in range(instr.rank))
            return rewriter.become(instr, hlo.pad, (piece, value.operands[0]), {"padding": padding})
    return False


def _merge_slices(rewriter: HloComputation, instr: HloInstruction, axis: int) -> list[HloInstruction]:
    """The pieces, with adjacent slices of one array merged into one slice."""
    runs: list[tuple[HloInstruction, Cut]] = []  # the first slice, and the bounds of all merged; no bounds for any other piece
    for operand in instr.operands:
        cut = Slice.of(operand).slice if operand.op is hlo.slice else ()
        cut = cut if all(step == 1 for _, _, step in cut) else ()
        first, joined = runs[-1] if runs else (operand, ())
        if cut and joined and first.operands[0] is operand.operands[0] and _follows(joined, cut, axis):
            runs[-1] = first, tuple((a, cut[d][1] if d == axis else b, 1) for d, (a, b, _) in enumerate(joined))
        else:
            runs.append((operand, cut))
    return [first if not cut or cut == Slice.of(first).slice else rewriter.slice(first.operands[0], cut) for first, cut in runs]


def _follows(first: Cut, second: Cut, axis: int) -> bool:
    """Whether one slice starts where another ends along one dimension, and has the same start along all others."""
    return all(b[0] == (a[1] if d == axis else a[0]) for d, (a, b) in enumerate(zip(first, second, strict=True)))


def reverse(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Simplify a reverse (``HandleReverse``)."""
    source, dimensions = instr.operands[0], Reverse.of(instr).dimensions
    if all(instr.dims[d] == 1 for d in dimensions):
        return rewriter.replace(instr, source)
    if source.op is hlo.reverse:
        left = tuple(sorted(set(dimensions) ^ set(Reverse.of(source).dimensions)))
        if not left:
            return rewriter.replace(instr, source.operands[0])
        return rewriter.become(instr, hlo.reverse, (source.operands[0],), {"dimensions": left})
    if source.op in ELEMENTWISE and len(source.operands) == 2 and source.op not in (hlo.compare, hlo.rng):
        for i, value in enumerate(source.operands):
            if value.op is hlo.broadcast and not value.operands[0].dims:
                other = rewriter.make(hlo.reverse, source.operands[1 - i].type, (source.operands[1 - i],), {"dimensions": dimensions})
                return rewriter.replace(instr, rewriter.like(source, (value, other) if i == 0 else (other, value)))
        return False
    if source.op is hlo.reshape:
        change = inserted_or_deleted(source.operands[0].dims, source.dims)
        if change is not None and not change[0]:
            left = tuple(d - sum(i < d for i in change[1]) for d in dimensions if source.dims[d] != 1)
            small = rewriter.make(hlo.reverse, source.operands[0].type, (source.operands[0],), {"dimensions": left})
            return rewriter.become(instr, hlo.reshape, (small,))
    return False
