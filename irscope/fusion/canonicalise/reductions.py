"""Reductions: over less, over what was not moved, and split in two where XLA's CPU compiler splits them."""
from __future__ import annotations

from collections.abc import Callable

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.canonicalise.values import combiner, is_all, is_floating, scalar_of
from irscope.fusion.dimensions import is_sorted, unmodified, without
from irscope.graph import Op
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Concatenate, Pad, Reduce, Transpose, Windowed
from irscope.ops.attrs import Window

TREE_WINDOW = 32
"""Elements that XLA's ``TreeReductionRewriter`` adds in the first of two steps."""

ASSOCIATIVE = hlo.named("add multiply and or maximum minimum")
"""What combines the results of two reductions as it combines elements."""


def reduce(body: Body, term: Term) -> bool:
    """Simplify a reduction (``HandleReduce``)."""
    if len(term.operands) == 2:
        return term.is_array and _reduce(body, term)
    source = term.operands[0]
    count = len(term.operands) // 2
    results = list(term.type.leaves())
    if not source.elements or not source.is_array:
        return False
    first = results[0]
    if getattr(first, "elements", 0) != source.elements:
        return False
    dims = tuple(first.dims())  # type: ignore[attr-defined]
    return body.replace(term, body.make(hlo.tuple, term.type, [body.reshape(o, dims, term) for o in term.operands[:count]], {}, term))


def _reduce(body: Body, term: Term) -> bool:
    source, init = term.operands
    if not source.elements or not term.elements:
        return body.replace(term, body.broadcast(init, term.dims, (), term))
    if source.elements == term.elements:
        return body.become(term, hlo.reshape, (source,))
    op = combiner(term.bodies[0] if term.bodies else None)
    dimensions = Reduce.of(term).dimensions
    if source.op is hlo.negate and op is hlo.add and is_floating(term.dtype) and is_all(init, 0):
        small = body.make(hlo.reduce, term.type, (source.operands[0], init), term.attrs, term, term.bodies)
        return body.become(term, hlo.negate, (small,))
    if source.op is hlo.transpose and (term.rank < 2 or len(source.users) == 1 or all(u.op is hlo.reduce for u in source.users)):
        return _of_transpose(body, term, dimensions)
    if source.op is hlo.reduce and len(source.operands) == 2 and _same_value(init, source.operands[1]) and op in ASSOCIATIVE \
            and op is combiner(source.bodies[0] if source.bodies else None):
        inner = Reduce.of(source).dimensions
        left = [d for d in range(source.operands[0].rank) if d not in inner]
        merged = tuple(sorted([*inner, *(left[d] for d in dimensions)]))
        return _over(body, term, source.operands[0], merged)
    if source.op is hlo.reshape and _of_reshape(body, term, dimensions):
        return True
    if source.op is hlo.concatenate and Concatenate.of(source).axis in dimensions and op and (
            not body.on_gpu or not term.dims or all(p.dims == source.operands[0].dims for p in source.operands)):
        parts = [body.make(hlo.reduce, term.type, (p, init), term.attrs, term, term.bodies) for p in source.operands]
        total = parts[0]
        for part in parts[1:]:
            total = body.elementwise(op, (total, part), term)
        return body.replace(term, total)
    return op is not None and source.op is hlo.broadcast and _of_broadcast(body, term, dimensions, op)


def _of_transpose(body: Body, term: Term, dimensions: tuple[int, ...]) -> bool:
    """What is transposed and then reduced is reduced, and the rest transposed."""
    source = term.operands[0]
    order = Transpose.of(source).dimensions
    gone = tuple(order[d] for d in dimensions)
    small = body.make(hlo.reduce, tensor_type(term.dtype, without(source.operands[0].dims, gone)), (source.operands[0], term.operands[1]),
                      {**term.attrs, "dimensions": gone}, term, term.bodies)
    kept = [d for d in order if d not in gone]
    if is_sorted(kept):
        return body.replace(term, small)
    return body.become(term, hlo.transpose, (small,), {"dimensions": tuple(d - sum(g < d for g in gone) for d in kept)})


def _of_reshape(body: Body, term: Term, dimensions: tuple[int, ...]) -> bool:
    """A reshape of what is reduced away is not needed; one of what is kept comes after."""
    source = term.operands[0]
    inner = source.operands[0]
    pairs = unmodified(inner.dims, source.dims)
    same = {after: before for before, after in pairs}
    if all(d in same for d in range(source.rank) if d not in dimensions):
        kept = {before for before, after in pairs if after not in dimensions}
        return _over(body, term, inner, tuple(d for d in range(inner.rank) if d not in kept))
    if len(source.users) == 1 and all(d in same for d in dimensions):
        gone = tuple(same[d] for d in dimensions)
        small = body.make(hlo.reduce, tensor_type(term.dtype, without(inner.dims, gone)), (inner, term.operands[1]),
                          {**term.attrs, "dimensions": gone}, term, term.bodies)
        return body.become(term, hlo.reshape, (small,))
    return False


def _of_broadcast(body: Body, term: Term, dimensions: tuple[int, ...], op: Op) -> bool:
    """The sum of what is repeated is a product; its extreme is itself."""
    source, init = term.operands
    inner, spread = source.operands[0], Broadcast.of(source).dimensions
    if op in (hlo.maximum, hlo.minimum, hlo.and_, hlo.or_) and not inner.dims and len(dimensions) == source.rank:
        return body.become(term, op, (inner, init))
    if op is hlo.add and not any(d in spread for d in dimensions):
        count = 1
        for d in dimensions:
            count *= source.dims[d]
        product = body.elementwise(hlo.multiply, (inner, body.full(count, inner, term)), term)
        start = init if not inner.dims else body.broadcast(init, inner.dims, (), term)
        total = body.elementwise(hlo.add, (start, product), term)
        places = tuple(d - sum(g < d for g in dimensions) for d in spread)
        return body.become(term, hlo.broadcast, (total,), {"dimensions": places})
    return False


def _over(body: Body, term: Term, source: Term, dimensions: tuple[int, ...]) -> bool:
    return body.replace(term, body.make(hlo.reduce, term.type, (source, term.operands[1]), {**term.attrs, "dimensions": dimensions}, term,
                                        term.bodies))


def _same_value(a: Term, b: Term) -> bool:
    if a is b:
        return True
    x, y = scalar_of(a), scalar_of(b)
    return x is not None and x == y and a.dtype == b.dtype


def reduce_window(body: Body, term: Term) -> bool:
    """Windows that see all of a dimension are reductions, paddings go into windows (``HandleReduceWindow``)."""
    window = Windowed.of(term).window
    if len(term.operands) != 2 or not term.is_array or window is None:
        return False
    source, init = term.operands
    plain = all(s == 1 for s in (*window.stride, *window.lhs_dilate, *window.rhs_dilate))
    padded = any((*window.pad_low, *window.pad_high))
    op = combiner(term.bodies[0] if term.bodies else None)
    if plain and all(s == 1 for s in window.size) and op in (hlo.add, hlo.minimum, hlo.maximum):
        start = init if not source.dims else body.broadcast(init, source.dims, (), term)
        made = body.elementwise(op, (source, start), term)
        if padded:
            return body.become(term, hlo.pad, (made, init),
                               {"padding": tuple((a, b, 0) for a, b in zip(window.pad_low, window.pad_high, strict=True))})
        return body.replace(term, made)
    if plain and not padded:
        gone = tuple(d for d, s in enumerate(window.size) if s != 1)
        if gone and all(term.dims[d] == 1 for d in gone):
            small = body.make(hlo.reduce, tensor_type(term.dtype, without(term.dims, gone)), (source, init), {"dimensions": gone}, term,
                              term.bodies)
            return body.become(term, hlo.reshape, (small,))
    if source.op is hlo.pad:
        return _fold_pad(body, term, window)
    return False


def _fold_pad(body: Body, term: Term, window: Window) -> bool:
    pad, init = term.operands
    inner, value = pad.operands
    if not _same_value(value, init):
        return False
    padding = Pad.of(pad).padding
    if any(c for _, _, c in padding) and any(s != 1 for s in window.lhs_dilate):
        return False
    made = Window(window.size, window.stride,
                  tuple(w + d * a for w, d, (a, _, _) in zip(window.pad_low, window.lhs_dilate, padding, strict=True)),
                  tuple(w + d * b for w, d, (_, b, _) in zip(window.pad_high, window.lhs_dilate, padding, strict=True)),
                  tuple(1 + c if c else d for d, (_, _, c) in zip(window.lhs_dilate, padding, strict=True)),
                  window.rhs_dilate, window.rhs_reversal)
    return body.replace(term, body.make(hlo.reduce_window, term.type, (inner, init), {**term.attrs, "window": made}, term, term.bodies))


def split_reductions(body: Body, left_alone: Callable[[Term], bool]) -> bool:
    """Reductions of more than 32 elements add 32 at a time first: XLA's ``TreeReductionRewriter``.

    ``left_alone(term)`` says which reductions a library computes instead.
    """
    changed = False
    for term in body.post_order():
        if term.op is not hlo.reduce or not term.is_array or len(term.operands) != 2 or term.erased or left_alone(term):
            continue
        source, init = term.operands
        dimensions = Reduce.of(term).dimensions
        if not any(source.dims[d] > TREE_WINDOW for d in dimensions):
            continue
        size = tuple(min(n, TREE_WINDOW) if d in dimensions else 1 for d, n in enumerate(source.dims))
        low, high, dims = [], [], []
        for n, s in zip(source.dims, size, strict=True):
            count = -(-n // s)
            missing = count * s - n
            low.append(missing // 2)
            high.append(missing - missing // 2)
            dims.append(count)
        window = Window.make(size, size, tuple(zip(low, high, strict=True)))
        first = body.make(hlo.reduce_window, tensor_type(term.dtype, dims), (source, init), {"window": window}, term, term.bodies)
        body.replace(term, body.make(hlo.reduce, term.type, (first, init), term.attrs, term, term.bodies))
        changed = True
    return changed


def scatter(body: Body, term: Term) -> bool:
    """An update with nothing."""
    count = (len(term.operands) - 1) // 2
    return count == 1 and not term.operands[2].elements and body.replace(term, term.operands[0])

