"""How Relay's operators adopt a layout: the layouts of operands and results, and the attributes that name axes.

A rule is called twice. First with the layouts as written (``old`` and ``now`` are the same, None if unknown): it returns the layouts that
the operator assumes of its operands. Then with the present layouts of the operands. None means that the operator only works in the layout
as written.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from irscope.formats.relay.operators import declared
from irscope.graph import Kind, Node, TensorType, TupleType, Type
from irscope.ops.sets import relay
from irscope.passes.algebra.relay_arithmetic import BINARY
from irscope.passes.layouts import AxisLayout, layout, types_of
from irscope.passes.op_table import OpTable

Known = Sequence[AxisLayout | None]


@dataclass(frozen=True, slots=True)
class LayoutCall:
    """A call as written; ``types`` are those of its operands, a tuple's fields one by one."""

    node: Node
    types: Sequence[Type]

    def given(self, attrs: Mapping[str, object]) -> SimpleNamespace:
        """Attributes with the defaults filled in."""
        operator = declared(self.node.op.name)
        return operator.bound(attrs) if operator is not None else SimpleNamespace(**attrs)

    def shape(self, at: int) -> tuple[Any, ...] | None:
        """The shape of an operand as written."""
        type = self.types[at]
        return type.shape if isinstance(type, TensorType) else None


@dataclass(frozen=True, slots=True)
class Ruled:
    """The layouts of operands and results (None: as written), and the attributes that match them."""

    inputs: Known
    outputs: Known
    attrs: Mapping[str, Any]


Rule = Callable[[LayoutCall, Known, Known, Mapping[str, Any]], Ruled | None]


def rule_of(node: Node) -> Rule | None:
    """The rule of a call's operator."""
    found = RULES.get(node.op)
    if found is not None:
        return found
    pointwise = node.op.kind is Kind.ELEMENTWISE and len(node.operands) == 1 and not node.op.is_primitive
    return same if pointwise and isinstance(node.type, TensorType) else None


# ---------------------------------------------------------------------- pointwise


def same(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """Elementwise operators adopt any layout; other operands are scalars."""
    if now[0] is None or any(t.rank != len(now[0]) for t in types_of(call.node.type) if old is now and isinstance(t, TensorType)):
        return None
    return Ruled([now[0], *[None] * (len(now) - 1)], [now[0]] * len(types_of(call.node.type)), attrs)


def broadcast(count: int) -> Rule:
    """The first ``count`` operands broadcast together; others are scalars."""
    def rule(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
        shapes = [call.shape(i) for i in range(count)]
        known = [layout for layout in now[:count] if layout is not None]
        if not known or any(shape is None for shape in shapes):
            return None
        widest = max(known, key=lambda layout: len(layout.wholes))
        was = next(o for o, n in zip(old, now, strict=True) if n is widest)
        if was is None or any(len(shape) > len(was) for shape in shapes if shape is not None):
            return None  # the layout of the widest operand is unknown
        inputs = [_beside(widest, o, n, shape or ()) for o, n, shape in zip(old[:count], now[:count], shapes, strict=True)]
        return Ruled([*inputs, *[None] * (len(now) - count)], [widest], attrs)
    return rule


def _beside(widest: AxisLayout, old: AxisLayout | None, now: AxisLayout | None, shape: tuple[object, ...]) -> AxisLayout:
    """The layout of an operand relative to the widest one: its last axes, or all of them if the ranks agree.

    If it broadcasts along a split axis, its part has size 1.
    """
    if old is None or now is None:
        return widest.tail(len(shape))
    tail = widest.tail(len(old.wholes))
    if now is tail and not widest.is_packed:
        return now
    if not widest.is_packed:
        return widest
    have = dict.fromkeys(widest.wholes, 1)
    for (name, _), size in zip(old.axes, shape, strict=True):
        have[name.upper()] *= size if isinstance(size, int) else 0
    fits = {name: widest.factor(name) if have[name] and have[name] % widest.factor(name) == 0 else 1 for name in widest.wholes}
    return widest.stretched(fits)


# ---------------------------------------------------------------------- one axis, several axes


def moved(axis: int, old: AxisLayout, now: AxisLayout) -> int | None:
    """The new position of an axis; None if it is split in either layout."""
    letter = old.letter(axis % len(old))
    place = now.place(letter) if letter is not None else -1
    return place if letter is not None and place >= 0 and not now.parts(letter) else None


def along(results: str = "same", batch: bool = False) -> Rule:
    """Operators that work along an attribute ``axis``; with ``batch`` they treat the first axis differently too.

    ``results`` is ``first`` if the other results are vectors along the axis.
    """
    def rule(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
        was, here = old[0], now[0]
        axis = call.given(attrs).axis
        if was is None or here is None or not isinstance(axis, int) or here.is_packed or not -len(was) <= axis < len(was):
            return None
        place = moved(axis, was, here)
        if place is None or (batch and was.letter(0) != here.letter(0)):
            return None
        n = len(types_of(call.node.type))
        outputs = [here, *[None if results == "first" else here] * (n - 1)]
        return Ruled([here, *[None] * (len(now) - 1)], outputs, {**attrs, "axis": place})
    return rule


def over_axes(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """``nn.l2_normalize`` and ``reverse``: axes in the order as written."""
    was, here, axis = old[0], now[0], call.given(attrs).axis
    if was is None or here is None or here.is_packed or axis is None:
        return None
    places = [moved(a, was, here) for a in (axis if isinstance(axis, list | tuple) else [axis])]
    if None in places:
        return None
    return Ruled([here], [here], {**attrs, "axis": places if isinstance(axis, list | tuple) else places[0]})


def reduced(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """Reductions: the result has the remaining axes. A part is reduced with its whole axis."""
    was, here, given = old[0], now[0], call.given(attrs)
    if was is None or here is None or was.is_packed:
        return None
    axis = given.axis if isinstance(given.axis, list | tuple) else [] if given.axis is None else [given.axis]
    named = {was.letter(a % len(was)) for a in axis}
    gone = [w for w in was.wholes if (w in named) != bool(given.exclude)] if axis or given.exclude else list(was.wholes)
    others = [None] * (len(now) - 1)
    if not gone:
        return Ruled([here, *others], [here], attrs) if not given.exclude or len(named) == len(was) else None
    if given.keepdims:
        if any(here.parts(letter) for letter in gone):
            return None
        left = here
    else:
        left = here.only([letter for letter in here.wholes if letter not in gone])
    if len(gone) == len(was) and given.axis is None:
        return Ruled([here, *others], [left if left.axes else None], attrs)
    kept = {key: value for key, value in attrs.items() if key != "exclude"}
    places = sorted(i for i, (name, _) in enumerate(here.axes) if name.upper() in gone)
    return Ruled([here, *others], [left if left.axes else None], {**kept, "axis": places} if here is not was else attrs)


def arg_reduced(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """``argmax`` and ``argmin`` return positions: over one axis these stay the same, over several they would change."""
    given = call.given(attrs)
    axis = given.axis if isinstance(given.axis, list | tuple) else [given.axis]
    if given.exclude or len(axis) != 1 or axis[0] is None or (now[0] is not None and now[0].is_packed):
        return None
    return reduced(call, old, now, attrs)


# ---------------------------------------------------------------------- shape


def concatenated(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """All fields adopt the layout of the first field whose layout is known."""
    # The quantised one has a scale and a zero point for each field, and for the result.
    fields = (len(now) - 2) // 3 if call.node.op in QUANTISED_CONCATENATE else len(now)
    here = next((n for n in now[:fields] if n is not None), None)
    was = next((o for o, n in zip(old, now, strict=True) if n is here and n is not None), None)
    if was is None or here is None or any(len(call.shape(i) or ()) != len(was) for i in range(fields)):
        return None
    axis = int(call.given(attrs).axis)
    letter = was.letter(axis % len(was))
    if letter is None:
        return None
    made = {**attrs, "axis": here.place(letter)} if here is not was else attrs
    return Ruled([here] * fields + [None] * (len(now) - fields), [here], made)


def split(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """Along an axis that the layout splits, the pieces must begin at multiples of the part."""
    was, here, given = old[0], now[0], call.given(attrs)
    if was is None or here is None or not isinstance(call.node.type, TupleType):
        return None
    letter = was.letter(int(given.axis) % len(was))
    if letter is None:
        return None
    n, cuts, factor = len(types_of(call.node.type)), given.indices_or_sections, here.factor(letter)
    made = {**attrs, "axis": here.place(letter)}
    if isinstance(cuts, list | tuple):
        if any(cut % factor for cut in cuts):
            return None
        made["indices_or_sections"] = [cut // factor for cut in cuts]
    return Ruled([here], [here] * n, made)


def squeezed(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """Removes axes of size 1, which must not be split."""
    was, here, axis, shape = old[0], now[0], call.given(attrs).axis, call.shape(0)
    if was is None or here is None or was.is_packed or shape is None:
        return None
    if axis is None:
        if not all(isinstance(size, int) for size in shape):
            return None
        axis = [d for d, size in enumerate(shape) if size == 1]
    gone = [was.letter(a % len(was)) for a in (axis if isinstance(axis, list | tuple) else [axis])]
    if any(letter is None or here.parts(letter) for letter in gone):
        return None
    left = here.only([letter for letter in here.wholes if letter not in gone])
    return Ruled([here], [left if left.axes else None], {**attrs, "axis": sorted(here.place(letter or "") for letter in gone)})


def transposed(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """The result keeps its layout: only the ``axes`` attribute changes."""
    was, here, axes = old[0], now[0], call.given(attrs).axes
    if was is None or here is None or was.is_packed or here.is_packed:
        return None
    order = [a % len(was) for a in axes] if axes else list(reversed(range(len(was))))
    letters = [was.wholes[a] for a in order]
    return Ruled([here], [layout("".join(letters))], {**attrs, "axes": [here.place(letter) for letter in letters]})


def padded(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """Padded axes must not be split."""
    was, here, widths = old[0], now[0], call.given(attrs).pad_width
    if was is None or here is None or was.is_packed or len(widths) != len(was):
        return None
    by_letter = dict(zip(was.wholes, widths, strict=True))
    if any(any(by_letter[letter]) and here.parts(letter) for letter in here.wholes):
        return None
    made = [list(by_letter[name]) if not size else [0, 0] for name, size in here.axes]
    return Ruled([here, *[None] * (len(now) - 1)], [here], {**attrs, "pad_width": made})


def sliced(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """Slices with explicit axes keep their ranges; others get a range for every axis."""
    was, here, given, shape = old[0], now[0], call.given(attrs), call.shape(0)
    if was is None or here is None or here.is_packed or shape is None:
        return None
    if given.axes:
        places = [moved(a, was, here) for a in given.axes]
        return Ruled([here], [here], {**attrs, "axes": places}) if None not in places else None
    if given.slice_mode != "end":
        stop: list[object] = [-1] * len(shape)
    else:
        stop = list(shape)
    n, strides = len(given.begin), list(given.strides or [1])
    strides = strides * n if len(strides) == 1 else strides
    rows = [(given.begin[d] if d < n else 0, given.end[d] if d < len(given.end) else stop[d], strides[d] if d < len(strides) else 1)
            for d in range(len(shape))]
    if not all(isinstance(v, int) for row in rows for v in row):
        return None
    begin, end, steps = zip(*(rows[was.place(name)] for name, _ in here.axes), strict=True)
    return Ruled([here], [here], {**attrs, "begin": list(begin), "end": list(end), "strides": list(steps)})


# ---------------------------------------------------------------------- layouts as attributes


def convolved(data: int) -> Rule:
    """Convolutions declare their layouts: the first ``data`` operands have the data layout, the next one the kernel layout."""
    def rule(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
        given = call.given(attrs)
        x, w = layout(str(given.data_layout)), layout(str(given.kernel_layout))
        return Ruled([*[x] * data, w, *[None] * (len(now) - data - 1)], [layout(str(given.out_layout or given.data_layout))], attrs)
    return rule


def windowed(packed: bool = True) -> Rule:
    """Pooling and resizing adopt the layout of their data, unless they declare one for the result. Spatial axes must not be split."""
    def rule(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
        given = call.given(attrs)
        said, here = layout(str(given.layout)), now[0]
        result = str(getattr(given, "out_layout", ""))
        if result and result != said.text:
            return None
        others = [None] * (len(now) - 1)
        if result or here is None or here is said or (old[0] is not None and set(here.wholes) != set(said.wholes)):
            return Ruled([said, *others], [said], attrs)
        if old[0] is not said or any(here.parts(letter) for letter in here.wholes if letter in "DHW") or (here.is_packed and not packed):
            return Ruled([said, *others], [said], attrs)
        return Ruled([here, *others], [here], {**attrs, "layout": here.text})
    return rule


def placed(call: LayoutCall, old: Known, now: Known, attrs: Mapping[str, object]) -> Ruled | None:
    """Operators that change their layout only on request."""
    said = layout(str(call.given(attrs).layout))
    return Ruled([said, *[None] * (len(now) - 1)], [said], attrs)


QUANTISED_CONCATENATE = relay("qnn.concatenate")

RULES: OpTable[Rule] = OpTable(
    (BINARY | relay("qnn.add qnn.subtract qnn.mul"), broadcast(2)),
    (relay("where"), broadcast(3)),
    (relay("copy nn.dropout clip cast_like annotation.stop_fusion qnn.leaky_relu qnn.hardswish"), same),
    (relay("nn.layer_norm nn.bias_add nn.prelu nn.lrn nn.softmax nn.log_softmax nn.fast_softmax qnn.softmax topk argsort sort cumsum "
           "cumprod qnn.requantize qnn.quantize qnn.dequantize"), along()),
    (relay("nn.batch_norm"), along("first")),
    (relay("nn.instance_norm nn.group_norm"), along(batch=True)),
    (relay("nn.l2_normalize reverse"), over_axes),
    (relay("sum mean max min prod all any"), reduced),
    (relay("argmax argmin"), arg_reduced),
    (relay("concatenate") | QUANTISED_CONCATENATE, concatenated),
    (relay("split"), split),
    (relay("squeeze"), squeezed),
    (relay("transpose"), transposed),
    (relay("nn.pad nn.mirror_pad"), padded),
    (relay("strided_slice"), sliced),
    (relay("nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose nn.conv2d_relu qnn.conv2d "
           "qnn.conv2d_transpose nn.contrib_conv2d_NCHWc nn.contrib_conv2d_nchwc nn.contrib_depthwise_conv2d_NCHWc"), convolved(1)),
    (relay("nn.deformable_conv2d"), convolved(2)),
    (relay(" ".join(f"nn.{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3)))
     | relay("nn.global_max_pool2d nn.global_avg_pool2d contrib.adaptive_avg_pool2d contrib.adaptive_max_pool2d qnn.avg_pool2d"),
     windowed()),
    (relay("image.resize1d image.resize2d image.resize3d nn.upsampling nn.upsampling3d"), windowed(packed=False)),
    (relay("vision.roi_pool vision.roi_align nn.depth_to_space nn.space_to_depth"), placed),
)
"""The rule of each operator that can follow; pointwise operators of one operand need none."""
