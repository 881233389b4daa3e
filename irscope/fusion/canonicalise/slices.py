"""Slices, updates, paddings, concatenations and reversals: merged and moved to where there is less to cut."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.canonicalise.values import is_all, scalar_of
from irscope.fusion.dimensions import inserted_or_deleted, inverse, unmodified
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Concatenate, Pad, Reverse, Slice, Transpose

Cut = tuple[tuple[int, int, int], ...]
"""For each dimension: start, limit, stride."""


def slice_(body: Body, term: Term) -> bool:
    """Simplify a slice (``HandleSlice``)."""
    source, cut = term.operands[0], Slice.of(term).slice
    if source.dims == term.dims:
        return body.replace(term, source)
    if source.op is hlo.pad and _of_pad(body, term, cut):
        return True
    whole = all(step == 1 for _, _, step in cut)
    first = Slice.of(source).slice if source.op is hlo.slice else ()
    if first and whole and all(step == 1 for _, _, step in first):
        outer = tuple((a + c, b + c, 1) for (a, b, _), (c, _, _) in zip(cut, first, strict=True))
        return body.become(term, hlo.slice, (source.operands[0],), {"slice": outer})
    if source.op is hlo.broadcast:
        return _of_broadcast(body, term, cut)
    if source.op is hlo.concatenate:
        if whole and _of_concatenation(body, term, cut):
            return True
    if source.op is hlo.reshape and whole and _of_reshape(body, term, cut):
        return True
    if source.op is hlo.reverse:
        inner = source.operands[0]
        turned = Reverse.of(source).dimensions
        outer = tuple((source.dims[d] - b, source.dims[d] - a, s) if d in turned else (a, b, s) for d, (a, b, s) in enumerate(cut))
        small = body.make(hlo.slice, term.type, (inner,), {"slice": outer}, term)
        return body.become(term, hlo.reverse, (small,), {"dimensions": turned})
    if any(s != 1 and (s >= b or a + s >= b) for a, b, s in cut):
        outer = tuple((a, a + 1, 1) if s != 1 and (s >= b or a + s >= b) else (a, b, s) for a, b, s in cut)
        return body.become(term, hlo.slice, (source,), {"slice": outer})
    return False


def _of_pad(body: Body, term: Term, cut: Cut) -> bool:
    """A slice of a padding: of what is padded, or of the padding alone."""
    pad = term.operands[0]
    inner = pad.operands[0]
    undoes = inside = True
    moved = []
    for (start, limit, stride), (low, high, interior), size in zip(cut, Pad.of(pad).padding, pad.dims, strict=True):
        edge = size - high
        if limit <= low or start >= edge:
            return body.replace(term, body.broadcast(pad.operands[1], term.dims, (), term))
        undoes = undoes and start == low and stride - 1 == interior
        inside = inside and start >= low and limit <= edge and interior == 0 and stride == 1
        moved.append((start - low, limit - low, stride))
    if undoes and inner.dims == term.dims:
        return body.replace(term, inner)
    return inside and body.become(term, hlo.slice, (inner,), {"slice": tuple(moved)})


def _of_broadcast(body: Body, term: Term, cut: Cut) -> bool:
    """What is repeated is cut before it is repeated."""
    source = term.operands[0]
    inner, dimensions = source.operands[0], Broadcast.of(source).dimensions
    mine = tuple(cut[d] for d in dimensions)
    if any((a, b, s) != (0, source.dims[d], 1) for d, (a, b, s) in zip(dimensions, mine, strict=True)):
        dims = [-(-(b - a) // s) for a, b, s in mine]
        inner = body.make(hlo.slice, tensor_type(inner.dtype, dims), (inner,), {"slice": mine}, term)
    return body.become(term, hlo.broadcast, (inner,), {"dimensions": dimensions})


def _of_concatenation(body: Body, term: Term, cut: Cut) -> bool:
    """A slice of a concatenation reads the pieces that it meets only."""
    source = term.operands[0]
    axis = Concatenate.of(source).axis
    start, limit, _ = cut[axis]
    at, begins = 0, []
    for piece in source.operands:
        begins.append(at)
        at += piece.dims[axis]
    first = max(i for i, b in enumerate(begins) if b <= start)
    last = max(i for i, b in enumerate(begins) if b < limit)
    pieces = source.operands[first:last + 1]
    if len(pieces) == len(source.operands):
        return False
    if len(pieces) == 1 and pieces[0].dims == term.dims:
        return body.replace(term, pieces[0])
    inner = pieces[0]
    if len(pieces) > 1:
        dims = list(source.dims)
        dims[axis] = sum(p.dims[axis] for p in pieces)
        inner = body.make(hlo.concatenate, tensor_type(term.dtype, dims), pieces, source.attrs, term)
    moved = tuple((a - begins[first], b - begins[first], s) if d == axis else (a, b, s) for d, (a, b, s) in enumerate(cut))
    return body.become(term, hlo.slice, (inner,), {"slice": moved})


def _of_reshape(body: Body, term: Term, cut: Cut) -> bool:
    """A slice of the first dimension goes before a reshape where it is one run of whole parts there too."""
    source = term.operands[0]
    inner = source.operands[0]
    if not inner.dims or any((a, b) != (0, source.dims[d]) for d, (a, b, _) in enumerate(cut) if d):
        return False
    size = 1
    for n in source.dims[1:]:
        size *= n
    start, count = cut[0][0] * size, term.elements
    below = 1
    for n in inner.dims[1:]:
        below *= n
    if not below or start % below or count % below:
        return False
    first, many = start // below, count // below
    moved = ((first, first + many, 1), *((0, n, 1) for n in inner.dims[1:]))
    small = body.make(hlo.slice, tensor_type(term.dtype, (many, *inner.dims[1:])), (inner,), {"slice": moved}, term)
    return body.become(term, hlo.reshape, (small,))


def dynamic_slice(body: Body, term: Term) -> bool:
    """Simplify a slice at places that are computed (``HandleDynamicSlice``)."""
    source, starts = term.operands[0], term.operands[1:]
    if not starts or starts[0].dims:
        return False
    if source.dims == term.dims:
        return body.replace(term, source)
    full = [d for d, n in enumerate(source.dims) if n == term.dims[d] and not (starts[d].op is hlo.constant and is_all(starts[d], 0))]
    if full:
        zero = body.constant(0, starts[0].dtype, term)
        return body.replace(term, body.like(term, (source, *(zero if d in full else s for d, s in enumerate(starts)))))
    sizes = term.dims
    if source.op is hlo.broadcast:
        inner, dimensions = source.operands[0], Broadcast.of(source).dimensions
        if dimensions:
            chosen = tuple(sizes[d] for d in dimensions)
            inner = body.make(hlo.dynamic_slice, tensor_type(inner.dtype, chosen), (inner, *(starts[d] for d in dimensions)),
                              {"dynamic_slice_sizes": chosen}, term)
        return body.become(term, hlo.broadcast, (inner,), {"dimensions": dimensions})
    if source.op is hlo.reshape and inserted_or_deleted(source.operands[0].dims, source.dims) is not None:
        inner = source.operands[0]
        zero = body.constant(0, starts[0].dtype, term)
        places = [zero] * inner.rank
        chosen_sizes = [1] * inner.rank
        for before, after in unmodified(inner.dims, source.dims):
            if inner.dims[before] != 1:
                places[before], chosen_sizes[before] = starts[after], sizes[after]
        small = body.make(hlo.dynamic_slice, tensor_type(term.dtype, chosen_sizes), (inner, *places),
                          {"dynamic_slice_sizes": tuple(chosen_sizes)}, term)
        return body.become(term, hlo.reshape, (small,))
    if source.op is hlo.transpose:
        order = Transpose.of(source).dimensions
        back = inverse(order)
        chosen = tuple(sizes[d] for d in back)
        small = body.make(hlo.dynamic_slice, tensor_type(term.dtype, chosen), (source.operands[0], *(starts[d] for d in back)),
                          {"dynamic_slice_sizes": chosen}, term)
        return body.become(term, hlo.transpose, (small,), {"dimensions": order})
    places_known = [scalar_of(s) for s in starts]
    if source.op is not hlo.constant and all(isinstance(p, int) and p >= 0 for p in places_known):
        begins = [min(p, n - m) for p, n, m in zip(places_known, source.dims, sizes, strict=True)]
        return body.become(term, hlo.slice, (source,), {"slice": tuple((b, b + m, 1) for b, m in zip(begins, sizes, strict=True))})
    return False


def dynamic_update_slice(body: Body, term: Term) -> bool:
    """Simplify an update (``HandleDynamicUpdateSlice``)."""
    target, part, *starts = term.operands
    if not starts or starts[0].dims:
        return False
    if target.op is hlo.broadcast and not target.operands[0].dims and all(isinstance(scalar_of(s), int) for s in starts):
        padding = []
        for start, small, large in zip(starts, part.dims, target.dims, strict=True):
            low = min(max(0, scalar_of(start)), large - small)
            padding.append((low, large - low - small, 0))
        return body.become(term, hlo.pad, (part, target.operands[0]), {"padding": tuple(padding)})
    if part.dims == term.dims:
        return body.replace(term, part)
    full = [d for d, n in enumerate(part.dims) if n == term.dims[d] and not (starts[d].op is hlo.constant and is_all(starts[d], 0))]
    if full:
        zero = body.constant(0, starts[0].dtype, term)
        return body.replace(term, body.like(term, (target, part, *(zero if d in full else s for d, s in enumerate(starts)))))
    return not part.elements and body.replace(term, target)


def pad(body: Body, term: Term) -> bool:
    """Simplify a padding (``HandlePad``)."""
    source, value = term.operands
    padding = Pad.of(term).padding
    if not source.elements:
        return body.replace(term, body.broadcast(value, term.dims, (), term))
    if any(inner > 0 and n == 1 for (_, _, inner), n in zip(padding, source.dims, strict=True)):
        cleared = tuple((a, b, 0 if n == 1 else c) for (a, b, c), n in zip(padding, source.dims, strict=True))
        return body.become(term, hlo.pad, (source, value), {"padding": cleared})
    if all((a, b) == (0, 0) for a, b, _ in padding) and source.dims == term.dims:
        return body.replace(term, source)
    padded = [d for d, p in enumerate(padding) if p != (0, 0, 0)]
    if source.op is hlo.broadcast and len(source.users) == 1 and len(padded) < term.rank and source.operands[0].rank <= len(padded) \
            and all(d in padded for d in Broadcast.of(source).dimensions):
        inner = body.broadcast(source.operands[0], [source.dims[d] for d in padded],
                               [padded.index(d) for d in Broadcast.of(source).dimensions], term)
        small = body.make(hlo.pad, tensor_type(term.dtype, [term.dims[d] for d in padded]), (inner, value),
                          {"padding": tuple(padding[d] for d in padded)}, term)
        return body.become(term, hlo.broadcast, (small,), {"dimensions": tuple(padded)})
    if any(a < 0 or b < 0 for a, b, _ in padding):
        grown = tuple((max(a, 0), max(b, 0), c) for a, b, c in padding)
        dims = [n + (n - 1) * c + a + b for n, (a, b, c) in zip(source.dims, grown, strict=True)]
        large = body.make(hlo.pad, tensor_type(term.dtype, dims), (source, value), {"padding": grown}, term)
        cut = tuple((max(-a, 0), n + min(b, 0), 1) for n, (a, b, _) in zip(dims, padding, strict=True))
        return body.become(term, hlo.slice, (large,), {"slice": cut})
    return False


def concatenate(body: Body, term: Term) -> bool:
    """Simplify a concatenation (``HandleConcatenate``)."""
    axis = Concatenate.of(term).axis
    pieces = [p for p in term.operands if p.elements]
    if len(term.operands) == 1 or (pieces and len(pieces) < len(term.operands)):
        if len(pieces) <= 1:
            return body.replace(term, pieces[0] if pieces else term.operands[0])
        return body.replace(term, body.like(term, pieces))
    flat = [q for p in term.operands for q in (p.operands if p.op is hlo.concatenate and Concatenate.of(p).axis == axis else (p,))]
    if len(flat) != len(term.operands):
        return body.replace(term, body.like(term, flat))
    if (merged := _neighbours(body, term, axis)) is not None:
        return body.replace(term, merged[0] if merged[0].dims == term.dims else body.like(term, merged))
    if len(term.operands) == 2:
        return _as_pad(body, term, axis)
    first = term.operands[0]
    if all(p is first for p in term.operands) and first.dims[axis] == 1:
        small = body.reshape(first, [n for d, n in enumerate(first.dims) if d != axis], term)
        return body.become(term, hlo.broadcast, (small,), {"dimensions": tuple(d for d in range(term.rank) if d != axis)})
    return False


def _as_pad(body: Body, term: Term, axis: int) -> bool:
    """A piece beside a scalar that is repeated is a padding."""
    low, high = term.operands
    for value, piece, before in ((low, high, True), (high, low, False)):
        if value.op is hlo.broadcast and not value.operands[0].dims:
            width = value.dims[axis]
            padding = tuple(((width, 0, 0) if before else (0, width, 0)) if d == axis else (0, 0, 0) for d in range(term.rank))
            return body.become(term, hlo.pad, (piece, value.operands[0]), {"padding": padding})
    return False


def _neighbours(body: Body, term: Term, axis: int) -> list[Term] | None:
    """The pieces with slices of one array that follow each other made one; None where none do."""
    made: list[Term] = []
    i = 0
    while i < len(term.operands):
        piece = term.operands[i]
        run = 1
        first = Slice.of(piece).slice if piece.op is hlo.slice else ()
        if first and all(s == 1 for _, _, s in first):
            limit = first[axis][1]
            while i + run < len(term.operands):
                other = term.operands[i + run]
                if other.op is not hlo.slice or other.operands[0] is not piece.operands[0]:
                    break
                second = Slice.of(other).slice
                if any(s != 1 for _, _, s in second) or second[axis][0] != limit or any(
                        a[0] != b[0] for d, (a, b) in enumerate(zip(first, second, strict=True)) if d != axis):
                    break
                limit = second[axis][1]
                run += 1
            if run > 1:
                cut = tuple((a, limit if d == axis else b, 1) for d, (a, b, _) in enumerate(first))
                joined = tensor_type(term.dtype, [b - a for a, b, _ in cut])
                piece = body.make(hlo.slice, joined, (piece.operands[0],), {"slice": cut}, term)
        made.append(piece)
        i += run
    return made if len(made) < len(term.operands) else None


def reverse(body: Body, term: Term) -> bool:
    """Simplify a reversal (``HandleReverse``)."""
    source, turned = term.operands[0], Reverse.of(term).dimensions
    if all(term.dims[d] == 1 for d in turned):
        return body.replace(term, source)
    if source.op is hlo.reverse:
        left = tuple(sorted(set(turned) ^ set(Reverse.of(source).dimensions)))
        if not left:
            return body.replace(term, source.operands[0])
        return body.become(term, hlo.reverse, (source.operands[0],), {"dimensions": left})
    if source.op in ELEMENTWISE and len(source.operands) == 2 and source.op not in (hlo.compare, hlo.rng):
        for i, value in enumerate(source.operands):
            if value.op is hlo.broadcast and not value.operands[0].dims:
                other = body.make(hlo.reverse, source.operands[1 - i].type, (source.operands[1 - i],), {"dimensions": turned}, term)
                return body.replace(term, body.like(source, (value, other) if i == 0 else (other, value)))
        return False
    if source.op is hlo.reshape:
        change = inserted_or_deleted(source.operands[0].dims, source.dims)
        if change is not None and not change[0]:
            left = tuple(d - sum(i < d for i in change[1]) for d in turned if source.dims[d] != 1)
            small = body.make(hlo.reverse, source.operands[0].type, (source.operands[0],), {"dimensions": left}, term)
            return body.become(term, hlo.reshape, (small,))
    return False
