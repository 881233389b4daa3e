"""Sorting: sort, with any comparator over any number of arrays, and topk. Both are stable."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, log2

from irscope.graph import DType, Node, Op, TensorType, TupleType, Type
from irscope.graph.dtypes import F32, F64, PRED, S32, S64
from irscope.graph.node import ArrayView, Emitter, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Sort, TopK
from irscope.ops.bodies import over_arrays, scalar_results
from irscope.ops.costs import operand_elements
from irscope.ops.faults import TypeFault
from irscope.ops.nests import below, independent, loops, not_below
from irscope.ops.numerics import convert, total_order
from irscope.ops.registry import declare
from irscope.ops.shapes import fits, resized, same_sizes, size

Load = Callable[[Value], Value]
Before = Callable[[Sequence[Value], Sequence[Value]], Value]
"""Whether one element (all its values) must come before another."""


def merge_sort(k: Emitter, length: int, dtypes: Sequence[DType]) -> Callable[[Callable[[Value], Sequence[Value]], Before], Sequence[Load]]:
    """Scratch memory for sorting rows of ``length`` elements, and the sort itself, to be called inside the loop over rows.

    The sort takes ``load(j)``, which returns the values of element j, and ``before``. It returns functions that load the j-th element in
    order, one for each of ``dtypes``.
    """
    buffers = [k.scratch(dtype, (2 * length,)) for dtype in dtypes]

    def sort(load: Callable[[Value], Sequence[Value]], before: Before) -> Sequence[Load]:
        with loops(k, [length]) as [j]:
            for buffer, value in zip(buffers, load(j), strict=True):
                buffer.store([j], value)
        source, width = k.reg(S64, k.index(0)), k.reg(S64, k.index(1))
        with k.while_(lambda: below(k, width.get(), length)):
            low = k.reg(S64, k.index(0))
            target = k.index(length) - source.get()
            with k.while_(lambda: below(k, low.get(), length)):
                middle = k.binary("min", low.get() + width.get(), k.index(length))
                high = k.binary("min", middle + width.get(), k.index(length))
                _merge(k, buffers, before, (source.get(), target), (low.get(), middle, high))
                low.set(high)
            source.set(target)
            width.set(width.get() * 2)
        base = source.get()
        return [partial(_from, buffer, base) for buffer in buffers]
    return sort


def _from(buffer: ArrayView, base: Value, j: Value) -> Value:
    return buffer.load([base + j])


def _merge(k: Emitter, buffers: Sequence[ArrayView], before: Before, halves: tuple[Value, Value], runs: tuple[Value, Value, Value]) -> None:
    """Merge the sorted runs low..middle and middle..high of one half of the buffers into the other half."""
    (source, target), (low, middle, high) = halves, runs
    length = buffers[0].shape[0] // 2
    left, right = k.reg(S64, low), k.reg(S64, middle)
    with k.loop(low, high) as place:
        # Past its end a run is read at a valid index, and the value is discarded.
        mine = [b.load([source + k.binary("min", left.get(), k.index(length - 1))]) for b in buffers]
        other = [b.load([source + k.binary("min", right.get(), k.index(length - 1))]) for b in buffers]
        gone = not_below(k, left.get(), middle)
        take_right = k.binary("and", below(k, right.get(), high), k.binary("or", gone, before(other, mine)))
        for buffer, x, y in zip(buffers, mine, other, strict=True):
            buffer.store([target + place], k.select(take_right, y, x))
        step = k.convert(take_right, S64)
        right.set(right.get() + step)
        left.set(left.get() + (k.index(1) - step))


# ---------------------------------------------------------------- sort

def _sort_type(node: Node) -> Type:
    operands = infer.arrays(node)
    if not operands:
        raise TypeFault("sort needs an operand")
    for t in operands[1:]:
        if not same_sizes(t.shape, operands[0].shape):
            raise TypeFault(f"the operands of sort must have equal dimensions, but are {infer.plain(operands[0])} and {infer.plain(t)}")
    dimensions: tuple[int, ...] = Sort.dimensions.given(node) or ()
    if len(dimensions) != 1 and (dimensions or operands[0].rank > 1):
        raise TypeFault(f"sort takes one dimension, but has {len(dimensions)}")
    if operands[0].rank:
        infer.dimension(node, _dimension(node), operands[0].rank, "dimension")
    body = infer.body(node, 0, "comparator")
    infer.takes(node, body, 2 * len(operands))
    for i, parameter in enumerate(body.params):
        wanted = TensorType(operands[i // 2].dtype, ())
        if not fits(parameter.type, wanted):
            raise TypeFault(f"parameter {i} of the comparator {body.name} is {infer.plain(parameter.type)}, but sort passes {wanted}")
    answers = infer.results(body)
    if len(answers) != 1 or not fits(answers[0], TensorType(PRED, ())):
        raise TypeFault(f"the comparator {body.name} of sort must give pred[], but gives {infer.plain(body.result().type)}")
    plain = tuple(infer.plain(t) for t in operands)
    return TupleType(plain) if len(plain) > 1 else plain[0]


def _dimension(node: Node) -> int:
    dimensions: tuple[int, ...] = Sort.dimensions.given(node) or ()
    return dimensions[0] if dimensions else 0


def _sort_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    shape = outs[0].shape
    if not shape:
        for source, out in zip(ins, outs, strict=True):
            out.store((), source.load(()))
        return
    d, body = _dimension(node), node.bodies[0]
    sort = merge_sort(k, shape[d], [view.dtype for view in ins])

    def before(x: Sequence[Value], y: Sequence[Value]) -> Value:
        return k.inline(body, [value for pair in zip(x, y, strict=True) for value in pair])[0]
    with independent(k, [1 if i == d else n for i, n in enumerate(shape)]) as row:
        def at(j: Value) -> list[Value]:
            return [*row[:d], j, *row[d + 1:]]
        ordered = sort(lambda j: [view.load(at(j)) for view in ins], before)
        with loops(k, [shape[d]]) as [j]:
            for out, load in zip(outs, ordered, strict=True):
                out.store(at(j), load(j))


def _sort_reference(run: Run, node: Node, *arrays: Array) -> object:
    if not arrays[0].ndim or not arrays[0].size:
        return arrays[0] if len(arrays) == 1 else tuple(arrays)
    d = _dimension(node)
    rows = [np.moveaxis(a, d, -1) for a in arrays]
    flat = [r.reshape(-1, r.shape[-1]) for r in rows]
    compare = over_arrays(run, node.bodies[0])

    def before(x: Sequence[Array], y: Sequence[Array]) -> Array:
        return np.asarray(scalar_results(node, compare([value for pair in zip(x, y, strict=True) for value in pair]))[0])
    order = merged_order(flat, before)
    done = [np.moveaxis(np.take_along_axis(f, order, -1).reshape(r.shape), -1, d) for f, r in zip(flat, rows, strict=True)]
    return done[0] if len(done) == 1 else tuple(done)


def merged_order(rows: Sequence[Array], before: Callable[[Sequence[Array], Sequence[Array]], Array]) -> Array:
    """The stable order of every row: a merge sort whose merges find all positions at once, by binary search in the other run."""
    count, length = rows[0].shape
    line = np.arange(count)[:, None]
    order = np.broadcast_to(np.arange(length), (count, length))
    place = np.arange(length)[None, :]
    width = 1
    while width < length:
        start = place // (2 * width) * (2 * width)
        middle, end = np.minimum(start + width, length), np.minimum(start + 2 * width, length)
        is_left = place < middle
        first = np.where(is_left, middle, start)
        low, high = np.broadcast_to(first, order.shape), np.broadcast_to(np.where(is_left, end, middle), order.shape)
        while (open_ := low < high).any():
            probe = (low + high) // 2
            other = order[line, np.minimum(probe, length - 1)]
            # Of equal elements the left one goes first: a left element passes what is before it, a right one all that it is not before.
            x, y = np.where(is_left, other, order), np.where(is_left, order, other)
            passes = before([r[line, x] for r in rows], [r[line, y] for r in rows]) == is_left
            low = np.where(open_ & passes, probe + 1, low)
            high = np.where(open_ & ~passes, probe, high)
        target = place - np.where(is_left, start, middle) + (low - first) + start
        # An inconsistent comparator (NaN under a plain "less") yields duplicate positions: ranking them keeps every element.
        order = np.take_along_axis(order, np.argsort(target, -1, kind="stable"), -1)
        width *= 2
    return order


def _sort_cost(node: Node) -> float:
    first = infer.array(node, 0).elements
    return float(first * ceil(log2(first))) if first > 1 else 0.0


sort = declare(Op(
    "sort", work="reduction", infer=_sort_type, reference=_sort_reference, nest=_sort_nest, cost=_sort_cost,
    doc="The operands in the order of a comparator, which decides whether a comes before b; several operands are permuted together."))


# ---------------------------------------------------------------- topk

def _topk_type(node: Node) -> Type:
    infer.arity(node, 1)
    operand = infer.array(node, 0)
    infer.kind_of(node, operand, ("pred", "int", "uint", "float"))
    count: int = infer.attr(node, TopK.k)
    if not operand.rank:
        raise TypeFault(f"topk needs an operand with a dimension, but got {infer.plain(operand)}")
    last = size(operand.shape[-1])
    if count < 0 or (last is not None and count > last):
        raise TypeFault(f"topk asks for k={count} of the {operand.shape[-1]} elements in the last dimension of {infer.plain(operand)}")
    shape = (*operand.shape[:-1], count if last is not None else resized(operand.shape[-1], count))
    return TupleType((TensorType(operand.dtype, shape), TensorType(S32, shape)))


def _key(k: Emitter, x: Value) -> Value:
    """An integer that orders elements: floats in total order, so that NaN is above infinity and -0 below 0."""
    if not x.dtype.is_float:
        return k.convert(x, S32) if x.dtype is PRED else x
    wide, word = (F64, S64) if x.dtype is F64 else (F32, S32)
    bits = k.bitcast(k.convert(x, wide), word)
    top = k.const((1 << word.bits - 1) - 1, word)
    return k.select(k.compare("LT", bits, k.const(0, word)), k.binary("xor", bits, top), bits)


def _topk_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    source, count = ins[0], outs[0].shape[-1]
    length = source.shape[-1]
    if not count:
        return
    direction = "GT" if TopK.of(node).largest else "LT"
    pick = _by_insertion if count <= 64 and 4 * count <= length else _by_sorting
    key_dtype = source.dtype
    if source.dtype.is_float or source.dtype is PRED:
        key_dtype = S64 if source.dtype is F64 else S32
    chosen = pick(k, key_dtype, length, count, direction)
    with independent(k, source.shape[:-1]) as row:
        place_of = chosen(lambda j: _key(k, source.load([*row, j])))
        with loops(k, [count]) as [j]:
            place = place_of(j)
            outs[0].store([*row, j], source.load([*row, place]))
            outs[1].store([*row, j], k.convert(place, S32))


Chosen = Callable[[Load], Load]


def _by_sorting(k: Emitter, dtype: DType, length: int, count: int, direction: str) -> Chosen:
    sort = merge_sort(k, length, [dtype, S64])

    def chosen(key: Load) -> Load:
        loads = sort(lambda j: [key(j), j], lambda x, y: k.compare(direction, x[0], y[0]))
        return loads[1]
    return chosen


def _by_insertion(k: Emitter, dtype: DType, length: int, count: int, direction: str) -> Chosen:
    """One pass over the row that keeps the best elements so far in order: most elements are compared once, with the worst of them."""
    keys, places = k.scratch(dtype, (count,)), k.scratch(S64, (count,))

    def chosen(key: Load) -> Load:
        with loops(k, [count]) as [j]:
            keys.store([j], k.const(0, dtype))
        with loops(k, [length]) as [j]:
            mine = key(j)
            last = k.binary("min", j, k.index(count - 1))
            wanted = k.binary("or", below(k, j, count), k.compare(direction, mine, keys.load([last])))
            with k.when(wanted):
                at = k.reg(S64, last)

                def worse_before() -> Value:
                    earlier = keys.load([k.binary("max", at.get() - 1, k.index(0))])
                    return k.binary("and", not_below(k, at.get(), 1), k.compare(direction, mine, earlier))
                with k.while_(worse_before):
                    keys.store([at.get()], keys.load([at.get() - 1]))
                    places.store([at.get()], places.load([at.get() - 1]))
                    at.set(at.get() - 1)
                keys.store([at.get()], mine)
                places.store([at.get()], j)
        return lambda j: places.load([j])
    return chosen


def _topk_reference(run: Run, node: Node, operand: Array) -> object:
    t = infer.array(node, 0)
    if t.dtype.is_float:
        keys = total_order(convert(operand, F64 if t.dtype is F64 else F32))
    else:
        keys = operand.astype(np.int32) if operand.dtype.kind not in "iu" or t.dtype.bits < 8 else operand
    # ~x reverses the order of integers without overflow.
    order = np.argsort(~keys if TopK.of(node).largest else keys, axis=-1, kind="stable")[..., :TopK.of(node).k]
    return np.take_along_axis(operand, order, -1), order.astype(np.int32)


topk = declare(Op(
    "topk", work="reduction", infer=_topk_type, reference=_topk_reference, nest=_topk_nest, cost=operand_elements,
    doc="The k largest (or smallest) elements of every row, best first, and their places; ties in order of place, NaN above infinity."))
