"""Running sums: windows that begin where the array begins are added in tiles of the last dimension (XLA's ``ReduceWindowRewriter``)."""
from __future__ import annotations

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.ops import hlo
from irscope.ops.attributes import ReduceWindow, Windowed
from irscope.ops.attrs import Window

BASE = 16
"""Elements of a tile (``xla_reduce_window_rewrite_base_length``)."""


def rewrite_windows(body: Body) -> None:
    """Rewrite the running sums of one body, and give windows over vectors a second dimension."""
    pending = [t for t in body.instructions if t.op is hlo.reduce_window]
    while pending:
        term = pending.pop()
        if len(term.operands) != 2 or not term.is_array or not term.rank or Windowed.of(term).window is None:
            continue
        axis = _axis(term)
        if axis is not None and axis != term.rank - 1:
            pending.append(_turned(body, term, axis))
        elif axis is not None:
            pending.append(_tiled(body, term, axis))
        elif term.rank == 1:
            _widen(body, term)


def _axis(term: Term) -> int | None:
    """The dimension along which a window runs from one end of the array; None where it does not, or the array is short."""
    window = ReduceWindow.of(term).window
    source = term.operands[0]
    wide = [d for d, n in enumerate(window.size) if n > 1]
    if len(wide) != 1 or any(s != 1 for s in (*window.stride, *window.lhs_dilate, *window.rhs_dilate)):
        return None
    axis = wide[0]
    length = source.dims[axis]
    pads = [(window.pad_low[d], window.pad_high[d]) for d in range(source.rank)]
    if any(pad != (0, 0) for d, pad in enumerate(pads) if d != axis) or window.size[axis] != length or length <= BASE:
        return None
    return axis if pads[axis] in ((length - 1, 0), (0, length - 1), (length, 0), (0, length)) else None


def _turned(body: Body, term: Term, axis: int) -> Term:
    """A sum along another dimension than the last changes places with it, and back. Returns the window along the last."""
    order = list(range(term.rank))
    order[axis], order[-1] = order[-1], order[axis]
    window = ReduceWindow.of(term).window
    source, init = term.operands
    pads = list(zip(window.pad_low, window.pad_high, strict=True))
    turned = Window.make(tuple(window.size[d] for d in order), None, tuple(pads[d] for d in order))
    made = body.make(hlo.reduce_window, tensor_type(term.dtype, [term.dims[d] for d in order]), (body.transpose(source, order, term), init),
                     {**term.attrs, "window": turned}, term, term.bodies)
    body.replace(term, body.transpose(made, order, term))
    return made


def _tiled(body: Body, term: Term, axis: int) -> Term:
    """Sums within tiles, then sums of whole tiles, both added. Returns the window over the whole tiles."""
    source, init = term.operands
    window = ReduceWindow.of(term).window
    forward, length = window.pad_low[axis] > 0, source.dims[axis]
    exclusive = max(window.pad_low[axis], window.pad_high[axis]) == length
    columns = -(-length // BASE)
    dims = list(source.dims)

    def with_axis(*sizes: int) -> list[int]:
        return [*dims[:axis], *sizes, *dims[axis + 1:]]

    def cut(array: Term, start: int, stop: int, along: int) -> Term:
        parts = tuple((start, stop, 1) if d == along else (0, n, 1) for d, n in enumerate(array.dims))
        sizes = [stop - start if d == along else n for d, n in enumerate(array.dims)]
        return body.make(hlo.slice, tensor_type(array.dtype, sizes), (array,), {"slice": parts}, term)

    def summed(array: Term, along: int, low: int, high: int) -> Term:
        n = array.dims[along]
        size = tuple(n if d == along else 1 for d in range(array.rank))
        pads = tuple((low, high) if d == along else (0, 0) for d in range(array.rank))
        sizes = [k + low + high - n + 1 if d == along else k for d, k in enumerate(array.dims)]
        made = Window.make(size, None, pads)
        return body.make(hlo.reduce_window, tensor_type(array.dtype, sizes), (array, init), {"window": made}, term, term.bodies)

    padded = source if columns * BASE == length else _padded(body, source, init, axis, (0, columns * BASE - length), term)
    tiles = body.reshape(padded, with_axis(columns, BASE), term)
    inner = summed(tiles, axis + 1, *((BASE - 1, 0) if forward else (0, BASE - 1)))
    last = cut(inner, BASE - 1, BASE, axis + 1) if forward else cut(inner, 0, 1, axis + 1)
    outer = summed(body.reshape(last, with_axis(columns), term), axis, *((columns, 0) if forward else (0, columns)))
    before = cut(outer, 0, columns, axis) if forward else cut(outer, 1, columns + 1, axis)
    spread = body.broadcast(before, inner.dims, [d for d in range(inner.rank) if d != axis + 1], term)
    total = body.make(hlo.map, inner.type, (inner, spread), {"dimensions": tuple(range(inner.rank))}, term, term.bodies)
    flat = body.reshape(total, with_axis(columns * BASE), term)
    result = flat if columns * BASE == length else cut(flat, 0, length, axis)
    if exclusive:
        result = _padded(body, result, init, axis, (1, 0) if forward else (0, 1), term)
    body.replace(term, result)
    return outer


def _padded(body: Body, array: Term, value: Term, axis: int, around: tuple[int, int], at: Term) -> Term:
    """``array`` with so much in front and behind along one dimension."""
    dims = [n + sum(around) if d == axis else n for d, n in enumerate(array.dims)]
    padding = tuple((*around, 0) if d == axis else (0, 0, 0) for d in range(array.rank))
    return body.make(hlo.pad, tensor_type(array.dtype, dims), (array, value), {"padding": padding}, at)


def _widen(body: Body, term: Term) -> None:
    """A window over a vector becomes one over a matrix of one column."""
    source, init = term.operands
    window = ReduceWindow.of(term).window

    made = Window.make((*window.size, 1), (*window.stride, 1), ((window.pad_low[0], window.pad_high[0]), (0, 0)),
                       (*window.lhs_dilate, 1), (*window.rhs_dilate, 1), (*window.rhs_reversal, False))
    wide = body.make(hlo.reduce_window, tensor_type(term.dtype, (*term.dims, 1)), (body.reshape(source, (*source.dims, 1), term), init),
                     {**term.attrs, "window": made}, term, term.bodies)
    body.replace(term, body.reshape(wide, term.dims, term))
