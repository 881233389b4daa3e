"""Sliding windows: reduce-window (pooling, running sums) and select-and-scatter (the gradient of max pooling)."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from irscope.graph import Kind, Node, Op, TensorType, TupleType, Type
from irscope.graph.dtypes import PRED, S64
from irscope.graph.node import ArrayView, Emitter, Read, RegisterHandle, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Windowed
from irscope.ops.attrs import Window
from irscope.ops.bodies import accumulate, combine, combiner, over_arrays, scalar_results
from irscope.ops.costs import body_flops
from irscope.ops.elementwise import add, maximum, minimum, multiply
from irscope.ops.faults import TypeFault
from irscope.ops.nests import below, both, flat, fold_type, guard, independent, loops, not_below, split
from irscope.ops.numerics import flushed, rounded
from irscope.ops.registry import declare
from irscope.ops.shapes import fits, same_sizes, size
from irscope.source.budget import SIZE_BITS


def window_of(node: Node, rank: int) -> Window:
    """The window attribute, with every dimension checked."""
    # XLA omits the window of a scalar, which has no dimensions.
    window = (infer.attr(node, Windowed.window) if rank else None) or stated_window(node)
    if len(window.size) != rank:
        raise TypeFault(f"the window of {node.op.name} has {len(window.size)} dimensions, but rank {rank} is needed")
    for d, (n, stride, lhs, rhs) in enumerate(zip(window.size, window.stride, window.lhs_dilate, window.rhs_dilate, strict=True)):
        for what, value, least in (("size", n, 0), ("stride", stride, 1), ("lhs_dilate", lhs, 1), ("rhs_dilate", rhs, 1)):
            if value < least:
                raise TypeFault(f"the window of {node.op.name} has {what} {value} in dimension {d}, which must be at least {least}")
            if value >= 1 << 63:
                raise TypeFault(f"the window of {node.op.name} has {what} {value} in dimension {d}, which does not fit in 64 bits")
    for what, values in (("size", window.size), ("lhs_dilate", window.lhs_dilate)):  # costs multiply them
        if prod(values).bit_length() > SIZE_BITS:
            raise TypeFault(f"the window of {node.op.name} has a {what} of more than 2**{SIZE_BITS} elements in all")
    return window


def stated_window(node: Node) -> Window:
    """The window of a node; a window without dimensions where the node has none."""
    return Windowed.of(node).window or Window.make(())


def windowed(t: TensorType, window: Window) -> TensorType:
    """The type with one element per window: open dimensions stay open."""
    sizes = [d if (n := size(d)) is None else window.output_size(i, n) for i, d in enumerate(t.shape)]
    return TensorType(t.dtype, tuple(sizes))


def operand_place(k: Emitter, window: Window, d: int, places: tuple[Value, Value], lengths: tuple[int, int]) -> tuple[Value, Value | None]:
    """The position of element ``at`` of window ``out`` (``places`` is (out, at)) in dimension ``d`` of the operand, and the condition that
    it is in bounds.

    ``lengths`` are those of the operand and of the result in that dimension. The condition is None where it always is.
    """
    (out, at), (length, out_length) = places, lengths
    stride, dilate, low, hole = window.stride[d], window.rhs_dilate[d], window.pad_low[d], window.lhs_dilate[d]
    reach = out * stride + at * dilate          # from the first element of the padding
    dilated = (length - 1) * hole + 1 if length else 0
    last = (out_length - 1) * stride + (window.size[d] - 1) * dilate - low
    condition = not_below(k, reach, low) if low > 0 else None
    if last >= dilated:
        condition = both(k, condition, below(k, reach, low + dilated))
    if hole == 1:
        return reach - low, condition
    blocks = -(-max(low, 0) // hole)            # multiples of the dilation that make the dividend non-negative
    shifted = reach + (blocks * hole - low)
    return shifted // hole - blocks, both(k, condition, k.compare("EQ", shifted % hole, k.index(0)))


def _places(k: Emitter, window: Window, out: Sequence[Value], at: Sequence[Value], shape: Sequence[int],
            out_shape: Sequence[int]) -> tuple[list[Value], Value | None]:
    found = [operand_place(k, window, d, (o, a), (shape[d], out_shape[d])) for d, (o, a) in enumerate(zip(out, at, strict=True))]
    return [p for p, _ in found], both(k, *(c for _, c in found))


def meeting(window: Window, at: Sequence[int], shape: Sequence[int], out_shape: Sequence[int]) -> tuple[Any, Any]:
    """The windows whose element ``at`` is inside the operand, and its positions there, as index grids of numpy."""
    found = [_valid(window, d, a, shape[d], out_shape[d]) for d, a in enumerate(at)]
    return (np.ix_(*(to for to, _ in found)), np.ix_(*(whence for _, whence in found))) if found else ((), ())


def _valid(window: Window, d: int, at: int, length: int, out_length: int) -> tuple[Array, Array]:
    """The windows of dimension ``d`` whose element ``at`` is inside the operand, and its positions."""
    out = np.arange(out_length)
    place = out * window.stride[d] + at * window.rhs_dilate[d] - window.pad_low[d]
    hole = window.lhs_dilate[d]
    out = out[(place >= 0) & (place % hole == 0) & (place // hole < length)]
    return out, (out * window.stride[d] + at * window.rhs_dilate[d] - window.pad_low[d]) // hole


# ---------------------------------------------------------------- reduce-window

def _reduce_window_type(node: Node) -> Type:
    n = len(node.operands) // 2
    if not n or len(node.operands) % 2:
        raise TypeFault(f"{node.op.name} takes operands and as many init values, but has {len(node.operands)} operands")
    operands = [infer.array(node, i) for i in range(n)]
    inits = [infer.scalar(node, n + i, "the init value") for i in range(n)]
    for t in operands[1:]:
        if not same_sizes(t.shape, operands[0].shape):
            raise TypeFault(f"the operands of {node.op.name} must have equal dimensions, but are {operands[0]} and {t}")
    window = window_of(node, operands[0].rank)
    body = infer.body(node, 0, "reducer")
    infer.reducer(node, body, inits, [t.dtype for t in operands])
    results = [windowed(t.with_dtype(init.dtype), window) for t, init in zip(operands, inits, strict=True)]
    return TupleType(tuple(results)) if isinstance(body.result().type, TupleType) else results[0]


def running_dimension(node: Node) -> int | None:
    """The dimension along which a reduce-window is a running reduction (cumsum): its window covers all elements before, or after."""
    window, t = stated_window(node), infer.array(node, 0)
    wide = [d for d, n in enumerate(window.size) if n != 1]
    if len(wide) != 1:
        return None
    d, length = wide[0], t.dims()[wide[0]]
    ones = (window.stride, window.lhs_dilate, window.rhs_dilate)
    narrow = all(low == high == 0 for i, (low, high) in enumerate(zip(window.pad_low, window.pad_high, strict=True)) if i != d)
    pads = (window.pad_low[d], window.pad_high[d])
    if all(set(values) <= {1} for values in ones) and narrow and window.size[d] == length and pads in ((length - 1, 0), (0, length - 1)):
        return d
    return None


def _reduce_window_reference(run: Run, node: Node, *arrays: Array) -> Any:
    with np.errstate(all="ignore"):
        return _reduced_windows(run, node, *arrays)


def _reduced_windows(run: Run, node: Node, *arrays: Array) -> Any:
    window = stated_window(node)
    n, body = len(arrays) // 2, node.bodies[0]
    xs, inits = arrays[:n], arrays[n:]
    shape = xs[0].shape
    out_shape = tuple(window.output_size(d, length) for d, length in enumerate(shape))
    op = combiner(body) if n == 1 else None
    dtypes = [init.dtype for init in inits]
    wide = [fold_type(infer.array(node, n).dtype, op, prod(window.size)).numpy()] if op else dtypes
    d = running_dimension(node)
    if d is not None and op in _RUNNING:
        along = np.flip(xs[0], d) if window.pad_low[d] == 0 else xs[0]
        # ml_dtypes has no maximum and minimum of integers below 8 bits.
        step = np.dtype(np.int8) if op in (maximum, minimum) and infer.array(node, n).dtype.bits < 8 else wide[0]
        total = getattr(np, op.name).accumulate(flushed(along.astype(step)), axis=d, dtype=step).astype(wide[0])
        total = flushed(combine(op)(total, flushed(inits[0].astype(wide[0]))))
        return (np.flip(total, d) if window.pad_low[d] == 0 else total).astype(dtypes[0])
    fold = over_arrays(run, body)
    out = [np.full(out_shape, flushed(init.astype(t)) if op else init, t) for init, t in zip(inits, wide, strict=True)]
    for at in np.ndindex(*window.size):
        to, source = meeting(window, at, shape, out_shape)
        given, have = [x[source] for x in xs], [o[to] for o in out]
        if not have[0].size:
            continue
        new = [flushed(combine(op)(have[0], flushed(given[0].astype(wide[0]))))] if op else scalar_results(node, fold([*have, *given]))
        for o, value in zip(out, new, strict=True):
            o[to] = value
    done = [o.astype(t) for o, t in zip(out, dtypes, strict=True)]
    return tuple(done) if isinstance(node.type, TupleType) else done[0]


_RUNNING = (add, multiply, maximum, minimum)


def _registers(k: Emitter, inits: Sequence[Value], op: Op | None, terms: int) -> list[RegisterHandle]:
    """Accumulators that start from the init values and take ``terms`` elements each."""
    dtypes = [fold_type(init.dtype, op, terms) for init in inits]
    return [k.reg(dtype, k.convert(init, dtype)) for dtype, init in zip(dtypes, inits, strict=True)]


def _reduce_window_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value | list[Value]:
    window = stated_window(node)
    n = len(node.operands) // 2
    shape = infer.array(node, 0).dims()
    out_shape = [window.output_size(d, length) for d, length in enumerate(shape)]
    op = combiner(node.bodies[0]) if n == 1 else None
    inits = [read(n + i, ()) for i in range(n)]
    registers = _registers(k, inits, op, prod(window.size))
    with loops(k, window.size) as at:
        places, inside = _places(k, window, index, at, shape, out_shape)
        with guard(k, inside):
            accumulate(k, node.bodies[0], registers, [read(i, places) for i in range(n)], op)
    results = [k.convert(r.get(), init.dtype) for r, init in zip(registers, inits, strict=True)]
    return results if isinstance(node.type, TupleType) else results[0]


def _running_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    """A running reduction: one step per element, instead of one per pair of window and element."""
    d = running_dimension(node)
    assert d is not None, "asked for only where the window runs"
    n = len(outs)
    op = combiner(node.bodies[0]) if n == 1 else None
    shape = ins[0].shape
    reverse = stated_window(node).pad_low[d] == 0
    inits = [ins[n + i].load(()) for i in range(n)]
    with independent(k, [1 if i == d else length for i, length in enumerate(shape)]) as at:
        registers = _registers(k, inits, op, shape[d])
        with k.loop(0, shape[d]) as step:
            here = [*at[:d], (shape[d] - 1) - step if reverse else step, *at[d + 1:]]
            accumulate(k, node.bodies[0], registers, [view.load(here) for view in ins[:n]], op)
            for view, register in zip(outs, registers, strict=True):
                view.store(here, k.convert(register.get(), view.dtype))


def _reduce_window_cost(node: Node) -> float:
    out = next((t.elements for t in node.type.leaves() if isinstance(t, TensorType)), 0)
    work = body_flops(node.bodies[0]) if node.bodies else 1.0
    return float(out * max(0, prod(stated_window(node).size) - 1)) * work


reduce_window = declare(Op(
    "reduce-window", kind=Kind.REDUCTION, infer=_reduce_window_type, reference=_reduce_window_reference, element=_reduce_window_element,
    nest=_running_nest, whole=lambda node: running_dimension(node) is not None, cost=_reduce_window_cost,
    doc="Every window of the operand reduced to one element. Each starts from the init value; padding and dilation holes are skipped."))


# ---------------------------------------------------------------- select-and-scatter

def _select_and_scatter_type(node: Node) -> Type:
    infer.arity(node, 3)
    operand, source = infer.array(node, 0, "the operand"), infer.array(node, 1, "the source")
    init = infer.scalar(node, 2, "the init value")
    select, scatter = infer.body(node, 0, "select"), infer.body(node, 1, "scatter")
    infer.takes(node, select, 2)
    result = infer.results(select)
    if len(result) != 1 or not isinstance(result[0], TensorType) or result[0].dtype is not PRED or result[0].rank:
        raise TypeFault(f"the select computation {select.name} of {node.op.name} must give pred[], but gives {select.result().type}")
    for number, parameter in enumerate(select.params):
        if not fits(parameter.type, TensorType(operand.dtype, ()), any_precision=True):
            raise TypeFault(f"parameter {number} of the select computation {select.name} is {parameter.type}, "
                            f"but the operand of {node.op.name} has elements {operand.dtype}[]")
    infer.reducer(node, scatter, [init], [source.dtype])
    expected = windowed(operand, window_of(node, operand.rank))
    if not fits(expected, source, any_precision=True):
        raise TypeFault(f"the source of {node.op.name} is {source}, but its windows give {expected}", "the source has one element a window")
    return infer.plain(operand)


def _select_and_scatter_reference(run: Run, node: Node, operand: Array, source: Array, init: Array) -> Array:
    window = stated_window(node)
    select, scatter = node.bodies
    shape, out_shape = operand.shape, source.shape
    flat_places = np.arange(operand.size).reshape(shape)
    best, place = np.zeros(out_shape, operand.dtype), np.full(out_shape, -1)
    stays = over_arrays(run, select)
    for at in np.ndindex(*window.size):
        to, whence = meeting(window, at, shape, out_shape)
        candidate, have = operand[whence], best[to]
        if candidate.size:
            keep = (place[to] >= 0) & scalar_results(node, stays([have, candidate]))[0]
            best[to] = np.where(keep, have, candidate)
            place[to] = np.where(keep, place[to], flat_places[whence])
    result = np.full(operand.size, rounded(init, infer.array(node, 0).dtype))
    combined = over_arrays(run, scatter)
    for i, value in zip(place.reshape(-1), source.reshape(-1), strict=True):
        if i >= 0:
            result[i] = scalar_results(node, combined([np.asarray(result[i]), np.asarray(value)]))[0]
    return result.reshape(shape)


def _select_and_scatter_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    window = stated_window(node)
    select, scatter = node.bodies
    operand, source, out = ins[0], ins[1], outs[0]
    init = ins[2].load(())
    apart = all(stride > (n - 1) * dilate for n, stride, dilate in zip(window.size, window.stride, window.rhs_dilate, strict=True))
    with independent(k, out.shape) as at:
        out.store(at, k.convert(init, out.dtype))
    with independent(k, source.shape) if apart else loops(k, source.shape) as at:
        found = k.reg(PRED, k.const(False, PRED))
        best = k.reg(operand.dtype, k.const(0, operand.dtype))
        best_place = k.reg(S64, k.index(0))
        with loops(k, window.size) as step:
            places, inside = _places(k, window, at, step, operand.shape, source.shape)
            with guard(k, inside):
                candidate = operand.load(places)
                [keep] = k.inline(select, [best.get(), candidate])
                taken = k.binary("or", k.unary("not", found.get()), k.unary("not", keep))
                best.set(k.select(taken, candidate, best.get()))
                best_place.set(k.select(taken, flat(places, operand.shape) + k.index(0), best_place.get()))
                found.set(k.const(True, PRED))
        with k.when(found.get()):
            target = split(best_place.get(), operand.shape)
            out.store(target, k.convert(k.inline(scatter, [out.load(target), source.load(at)])[0], out.dtype))


def _select_and_scatter_cost(node: Node) -> float:
    source = node.operands[1].type
    count = source.elements if isinstance(source, TensorType) else 0
    select, scatter = (body_flops(b) for b in node.bodies)
    windows: float = max(0, prod(stated_window(node).size) - 1)
    return count * (windows * select + scatter)


select_and_scatter = declare(Op(
    "select-and-scatter", work="reduction", infer=_select_and_scatter_type, reference=_select_and_scatter_reference,
    nest=_select_and_scatter_nest, cost=_select_and_scatter_cost,
    doc="In every window one element is selected (the current one stays while select is true); the source is combined into its place."))
