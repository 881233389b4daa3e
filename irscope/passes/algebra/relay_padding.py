"""Folds Relay's ``nn.pad`` into the padding of the convolution or pooling that reads it.

    %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);    ->    nn.conv2d(%x, %w, padding=[1, 1, 1, 1])
    nn.conv2d(%0, %w)
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from irscope.formats.relay.algebra import each, layout_axes, paddings
from irscope.formats.relay.attributes import Pad
from irscope.graph import Node, TensorType
from irscope.ops.sets import relay
from irscope.passes.algebra.relay_arithmetic import filled_with
from irscope.passes.algebra.simplifier import RelayRules, Simplifier, of
from irscope.passes.op_table import OpTable
from irscope.passes.simplify_inference import bound_attrs

PAD = relay("nn.pad")
LEAST = float("-3.40282e+38")
"""The least finite float32 in the six digits that TVM prints of it; a maximum over such padding is one over minus infinity."""


def pad(s: Simplifier, d: Node) -> Node | None:
    """A pad by nothing."""
    return d.operands[0] if d.operands[0].type == d.type and all(not any(side) for side in _sides(d)) else None


def convolution(s: Simplifier, d: Node) -> Node | None:
    """A convolution of an image that was padded with zeros."""
    return _merged(s, d, "data_layout") if _padded_with(d.operands[0]) == 0 else None


def quantised_convolution(s: Simplifier, d: Node) -> Node | None:
    """A quantised convolution of an image that was padded with its zero point."""
    value, zero = _padded_with(d.operands[0]), filled_with(d.operands[2])
    return _merged(s, d, "data_layout") if value is not None and zero is not None and value == zero else None


def max_pool(s: Simplifier, d: Node) -> Node | None:
    """A max pooling of an image that was padded with the smallest value, if every window overlaps the image."""
    value, dtype = _padded_with(d.operands[0]), of(d).dtype
    if value is None or not value <= (LEAST if dtype.name == "f32" else dtype.lowest):
        return None
    given = bound_attrs(d.op.name, d.attrs)
    widths, x = _widths(d.operands[0], given["layout"]), d.operands[0].operands[0].type
    if widths is None or given["out_layout"] not in ("", given["layout"]) or not isinstance(x, TensorType) or not x.is_static:
        return None
    n = len(widths)
    places = [place for place, (letter, _) in enumerate(layout_axes(given["layout"])) if letter in "DHW"]
    rows = zip(places, widths, paddings(given["padding"], n), each(given["pool_size"], n), each(given["dilation"], n),
               each(given["strides"], n), strict=True)
    for place, (low, _), (own, _), size, step, stride in rows:
        first, have = -low - own, x.dims()[place]
        last = first + (of(d).dims()[place] - 1) * stride
        # A window that begins before the image must reach it without stepping over it; one after its end would be empty.
        if first + (size - 1) * step < 0 or step > have or last >= have:
            return None
    return _merged(s, d, "layout")


def average_pool(s: Simplifier, d: Node) -> Node | None:
    """An average pooling of an image that was padded with zeros, which then count as elements."""
    given = bound_attrs(d.op.name, d.attrs)
    if _padded_with(d.operands[0]) != 0:
        return None
    if given["count_include_pad"]:
        return _merged(s, d, "layout")
    if given["ceil_mode"] or any(given["padding"]):
        return None
    return _merged(s, d, "layout", {"count_include_pad": True})


def _padded_with(node: Node) -> Any:
    """The value that an ``nn.pad`` fills in; None for anything else."""
    if node.op not in PAD or Pad.of(node).pad_mode != "constant":
        return None
    return filled_with(node.operands[1]) if len(node.operands) > 1 else Pad.of(node).pad_value


def _merged(s: Simplifier, d: Node, layout: str, more: Mapping[str, Any] | None = None) -> Node | None:
    """The same operator over the unpadded image; None if the pad also extends other than spatial dimensions."""
    padded = d.operands[0]
    given = bound_attrs(d.op.name, d.attrs)
    widths = _widths(padded, given[layout])
    if widths is None:
        return None
    both = [(low + p, high + q) for (low, high), (p, q) in zip(widths, paddings(given["padding"], len(widths)), strict=True)]
    padding = [low for low, _ in both] + [high for _, high in both]
    return s.make(d.op, [padded.operands[0], *d.operands[1:]], d.type, {**d.attrs, "padding": padding, **(more or {})})


def _widths(padded: Node, layout: str) -> list[tuple[int, int]] | None:
    """The padding of the spatial dimensions of a layout; None if other dimensions were padded, or the pad is negative."""
    axes, sides = layout_axes(layout), _sides(padded)
    if len(axes) != len(sides) or not isinstance(padded.type, TensorType) or of(padded).rank != len(axes):
        return None
    widths = []
    for (letter, size), (low, high) in zip(axes, sides, strict=True):
        if letter in "DHW" and not size and low >= 0 and high >= 0:
            widths.append((low, high))
        elif low or high:
            return None
    return widths


def _sides(d: Node) -> Sequence[Sequence[int]]:
    width = Pad.of(d).pad_width
    if isinstance(width, list) and all(isinstance(side, list) and len(side) == 2 for side in width):
        return width
    return [[1, 1]]


RULES: RelayRules = OpTable(
    (PAD, (pad,)),
    (relay("nn.conv1d nn.conv2d nn.conv3d nn.conv2d_relu nn.contrib_conv2d_NCHWc"), (convolution,)),
    (relay("qnn.conv2d"), (quantised_convolution,)),
    (relay("nn.max_pool1d nn.max_pool2d nn.max_pool3d"), (max_pool,)),
    (relay("nn.avg_pool1d nn.avg_pool2d nn.avg_pool3d"), (average_pool,)),
)
