"""Padding that a window reads right after is the window's own padding."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

from irscope.graph import Node, Op
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.bodies import combiner, identity
from irscope.passes.algebra.simplifier import Draft, Rules, Simplifier, dims_of, scalar_of


def pad(s: Simplifier, d: Draft) -> Node | None:
    """By nothing."""
    return d.operands[0] if all(p == (0, 0, 0) for p in d.attrs["padding"]) else None


def convolution(s: Simplifier, d: Draft) -> Node | None:
    """Of an image that was padded with zeros along its spatial dimensions."""
    x, w = d.operands
    if x.op.name != "pad" or scalar_of(x.operands[1]) != 0:
        return None
    window, dims, padding = d.attrs["window"], d.attrs["dim_labels"], x.attrs["padding"]
    assert isinstance(window, Window) and isinstance(dims, ConvDims)
    spatial = dims.lhs_spatial
    if any(p != (0, 0, 0) for n, p in enumerate(padding) if n not in spatial) or any(padding[n][2] or min(padding[n]) < 0 for n in spatial):
        return None
    if any(n != 1 for n in window.lhs_dilate):
        return None
    low = tuple(a + padding[n][0] for a, n in zip(window.pad_low, spatial))
    high = tuple(a + padding[n][1] for a, n in zip(window.pad_high, spatial))
    return s.make("convolution", (x.operands[0], w), d.tensor, {**d.attrs, "window": replace(window, pad_low=low, pad_high=high)})


def reduce_window(s: Simplifier, d: Draft) -> Node | None:
    """Of an array that was padded with the value that the windows begin with, where that value changes nothing (0 of a sum)."""
    if len(d.operands) != 2 or len(d.bodies) != 1:
        return None
    x, init = d.operands
    if x.op.name != "pad":
        return None
    value, first = scalar_of(x.operands[1]), scalar_of(init)
    if value is None or first is None or not _is_neutral(combiner(d.bodies[0]), value) or not _is_neutral(combiner(d.bodies[0]), first):
        return None
    window, padding = d.attrs["window"], x.attrs["padding"]
    if any(p[2] or min(p) < 0 for p in padding) or any(n != 1 for n in window.lhs_dilate):
        return None
    low = tuple(a + p[0] for a, p in zip(window.pad_low, padding))
    high = tuple(a + p[1] for a, p in zip(window.pad_high, padding))
    attrs = {**d.attrs, "window": replace(window, pad_low=low, pad_high=high)}
    if dims_of(x.operands[0]) == ():
        return None
    return s.make("reduce-window", (x.operands[0], init), d.tensor, attrs, d.bodies)


def _is_neutral(op: Op | None, value: Any) -> bool:
    """Whether combining with a value changes nothing."""
    return op is not None and bool(value == identity(op, value.dtype))


RULES: Rules = {"pad": (pad,), "convolution": (convolution,), "reduce-window": (reduce_window,)}
