"""Folds a pad into the padding of the convolution or window reduction that reads it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from irscope.graph import Node, Op
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Pad, Windowed
from irscope.ops.attrs import Window
from irscope.ops.bodies import combiner, identity
from irscope.passes.algebra.simplifier import Rules, Simplifier, dims_of, of, scalar_of


def pad(s: Simplifier, d: Node) -> Node | None:
    """A pad by nothing."""
    return d.operands[0] if all(p == (0, 0, 0) for p in Pad.of(d).padding) else None


def convolution(s: Simplifier, d: Node) -> Node | None:
    """A convolution of an image that was padded with zeros along its spatial dimensions."""
    x, w = d.operands
    if x.op is not hlo.pad or scalar_of(x.operands[1]) != 0:
        return None
    spatial, padding = Convolution.of(d).dim_labels.lhs_spatial, Pad.of(x).padding
    if any(p != (0, 0, 0) for n, p in enumerate(padding) if n not in spatial):
        return None
    window = _padded(Convolution.of(d).window, [padding[n] for n in spatial])
    return None if window is None else s.make(hlo.convolution, (x.operands[0], w), of(d), {**d.attrs, "window": window})


def reduce_window(s: Simplifier, d: Node) -> Node | None:
    """A window reduction of an array that was padded with the initial value, if that value is neutral (0 for a sum)."""
    if len(d.operands) != 2 or len(d.bodies) != 1:
        return None
    x, init = d.operands
    if x.op is not hlo.pad:
        return None
    value, first = scalar_of(x.operands[1]), scalar_of(init)
    if value is None or first is None or not _is_neutral(combiner(d.bodies[0]), value) or not _is_neutral(combiner(d.bodies[0]), first):
        return None
    window = _padded(Windowed.of(d).window, Pad.of(x).padding)
    if window is None or dims_of(x.operands[0]) == ():
        return None
    return s.make(hlo.reduce_window, (x.operands[0], init), of(d), {**d.attrs, "window": window}, d.bodies)


def _padded(window: Window | None, padding: Sequence[Sequence[int]]) -> Window | None:
    """A window with more padding; ``padding`` is (low, high, interior) for each of its dimensions.

    None if the window cannot express it: interior or negative padding, or padding of a dilated base.
    """
    if window is None or any(p[2] or min(p) < 0 for p in padding) or any(n != 1 for n in window.lhs_dilate):
        return None
    low = tuple(a + p[0] for a, p in zip(window.pad_low, padding))
    return replace(window, pad_low=low, pad_high=tuple(a + p[1] for a, p in zip(window.pad_high, padding)))


def _is_neutral(op: Op | None, value: Any) -> bool:
    """Whether a value is the neutral element of the reduction."""
    return op is not None and bool(value == identity(op, value.dtype))


RULES: Rules = {hlo.pad: (pad,), hlo.convolution: (convolution,), hlo.reduce_window: (reduce_window,)}
