"""The axes of a scale: what folding a scale into weights needs to know about layouts and shapes.

A scale is stored in the form in which it is used: with one dimension for each of its axes (the channels, or the outer and inner channel
axes of a packed layout), or with none, as a scalar.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import cache
from math import isfinite, prod

from irscope.formats.relay.algebra import layout_axes
from irscope.graph import Kind, Node, TensorType
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.sets import relay
from irscope.passes.algebra.simplifier import of
from irscope.passes.simplify_inference import bound
from irscope.passes.visitor import GraphMutator

CONVOLUTIONS = relay("nn.conv1d nn.conv2d nn.conv3d nn.contrib_conv2d_NCHWc nn.contrib_conv2d_nchwc")
DENSE = relay("nn.dense")
CONTRACTIONS = CONVOLUTIONS | DENSE | relay("nn.matmul")
"""What has weights that a scale can go into."""

HOMOGENEOUS = relay("nn.relu nn.leaky_relu")
"""Functions with ``f(s * x) == s * f(x)`` for every positive ``s``."""

SUMS, MULTIPLY, BIAS = relay("add subtract"), relay("multiply"), relay("nn.bias_add")

RESHAPED = relay("expand_dims reshape squeeze transpose layout_transform broadcast_to repeat")
"""Operators that move numbers and change none."""

INPUTS = hlo.named("parameter constant")

SMALLEST = {"f16": 2.0 ** -7, "bf16": 2.0 ** -63, "f32": 2.0 ** -63, "f64": 2.0 ** -511}
"""The square root of the smallest normal number of an element type: 2^-14, 2^-126 and 2^-1022 (IEEE 754; bfloat16 has float32's exponents).

A scale below it counts as 0: what is divided by it may be infinite.
"""

Axes = tuple[int, ...]


UNKNOWN = "has numbers that the text does not tell"
"""What is said of a scale whose sign matters and is not known: an input, or a constant that the text leaves out."""


class ScaleSign(Enum):
    """What is known of the elements of a scale: all positive, none 0, some 0 (or not finite), or nothing."""

    POSITIVE = auto()
    NO_ZERO = auto()
    SOME_ZERO = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Channels:
    """The channel axes of a contraction: in its data, in its result, and the input and output channels of its weight.

    ``read`` is None for a grouped convolution, whose weight has the channels of all groups on one axis.
    """

    data: Axes
    result: Axes
    read: Axes | None
    made: Axes


def channels(node: Node) -> Channels | None:
    """The channels of a contraction; None if no scale can follow them (weights packed differently, a channel multiplier)."""
    if node.op not in CONTRACTIONS or len(node.operands) != 2:
        return None
    data, weight, result = node.operands[0].type, node.operands[1].type, node.type
    if not (isinstance(data, TensorType) and isinstance(weight, TensorType) and isinstance(result, TensorType)):
        return None
    if not (data.dtype.is_float and data.dtype is weight.dtype is result.dtype and weight.is_static):
        return None
    found = _of_convolution(node, weight) if node.op in CONVOLUTIONS else _of_product(node, data, result)
    if found is None:
        return None
    reads = found.read is None or _size(data, found.data) == _size(weight, found.read)
    return found if reads and _size(result, found.result) == _size(weight, found.made) else None


def _of_product(node: Node, data: TensorType, result: TensorType) -> Channels | None:
    if node.op in DENSE:
        return Channels((data.rank - 1,), (result.rank - 1,), (1,), (0,))
    given = bound(node)
    if data.rank != 2 or given["transpose_a"]:
        return None
    return Channels((1,), (1,), (1,), (0,)) if given["transpose_b"] else Channels((1,), (1,), (0,), (1,))


def _of_convolution(node: Node, weight: TensorType) -> Channels | None:
    given = bound(node)
    data, kernel = str(given["data_layout"]), str(given["kernel_layout"])
    found, rank = _of_layouts(data, kernel, str(given["out_layout"] or data))
    if found is None or rank != weight.rank:
        return None
    groups = int(given["groups"])
    if groups == 1 or found.read is None:
        return found
    # Depthwise: each channel has its own kernel, along the axis of the output channels.
    depthwise = _size(weight, found.read) == 1 and _size(weight, found.made) == groups
    return replace(found, read=found.made if depthwise else None)


@cache
def _of_layouts(data: str, kernel: str, result: str) -> tuple[Channels | None, int]:
    """The channels of a convolution with one group in these layouts, all of them packed or none; and how many axes the weight has."""
    axes = layout_axes(kernel)
    places = [_places(layout_axes(data), "C"), _places(layout_axes(result), "C"), _places(axes, "I"), _places(axes, "O")]
    in_data, in_result, read, made = places
    if in_data is None or in_result is None or read is None or made is None or len({len(p) for p in places if p is not None}) != 1:
        return None, len(axes)
    return Channels(in_data, in_result, read, made), len(axes)


def _places(layout: Sequence[tuple[str, int]], letter: str) -> Axes | None:
    """The axis of a letter, followed by that of its inner part if the layout is packed."""
    letters = [name for name, _ in layout]
    if letter not in letters or letters.count(letter.lower()) > 1:
        return None
    whole = letters.index(letter)
    if letter.lower() not in letters:
        return (whole,)
    inner = letters.index(letter.lower())
    return (whole, inner) if whole < inner else None


def _size(type: TensorType, axes: Axes) -> int:
    """The product of the sizes of some axes; -1 if one of them is dynamic, which is equal to no static size."""
    sizes = [type.shape[axis] for axis in axes]
    return prod(size for size in sizes if isinstance(size, int)) if all(isinstance(size, int) for size in sizes) else -1


def dropped(wide: TensorType, narrow: TensorType, axes: Axes) -> Axes | None:
    """If ``narrow`` broadcasts to ``wide`` and varies only along ``axes``: its other dimensions, which all have size 1.

    A scalar varies along no axis and fits: it has nothing to drop. None if it does not fit.
    """
    if narrow.rank > wide.rank:
        return None
    if narrow.rank == 0:
        return ()
    base = wide.rank - narrow.rank
    left = []
    for d, size in enumerate(wide.shape):
        if d in axes:
            if d < base or narrow.shape[d - base] != size:
                return None
        elif d >= base:
            if narrow.shape[d - base] != 1:
                return None
            left.append(d - base)
    return tuple(left)


@dataclass(frozen=True, slots=True)
class Scale:
    """The scale of a product: ``value`` without the dimensions in ``dropped``; the node that takes it needs it along ``axes``."""

    product: Node
    value: Node
    dropped: Axes
    axes: Axes


class ScaleMutator(GraphMutator):
    """Rebuilds graphs with the scales moved."""

    scales: dict[Node, Node]

    def scale(self, scale: Scale) -> Node:
        """The scale of a product in the new graph, without its dropped dimensions; built once."""
        if scale.product not in self.scales:
            value = self.new(scale.value)
            left = of(value).with_shape(tuple(size for d, size in enumerate(of(value).shape) if d not in scale.dropped))
            self.scales[scale.product] = self.add("squeeze", [value], left, axis=list(scale.dropped)) if scale.dropped else value
        return self.scales[scale.product]

    def fitted(self, scale: Scale, like: Node, axes: Axes) -> Node:
        """The scale of a product as it broadcasts along ``axes`` of a node; it has one dimension for each of them, or none."""
        value = self.scale(scale)
        have, type = of(value), of(like)
        if have.rank == 0:
            return value
        if len(axes) > 1:
            shape = [size if d in axes else 1 for d, size in enumerate(type.shape)]
            return self.add("reshape", [value], have.with_shape(tuple(shape)), newshape=shape)
        behind = type.rank - axes[0] - 1
        if not behind:
            return value
        return self.add("expand_dims", [value], have.with_shape((*have.shape, *(1,) * behind)), axis=1, num_newaxis=behind)


def sign(node: Node) -> ScaleSign:
    """What is known of a scale's elements, through data movement."""
    node = behind(node, RESHAPED)
    literal = Constant.of(node).known if node.op is hlo.constant else None
    if literal is None:
        return ScaleSign.UNKNOWN
    value = literal.value()
    least, most = float(value.min(initial=1)), float(value.max(initial=1))
    if not (isfinite(least) and isfinite(most)):
        return ScaleSign.SOME_ZERO
    # Half of the exponent range remains for the dividend: a bias of 1 / SMALLEST fits too.
    small = SMALLEST.get(of(node).dtype.name, 1e-19)
    if least >= small:
        return ScaleSign.POSITIVE
    return ScaleSign.NO_ZERO if float(abs(value).min(initial=1)) >= small else ScaleSign.SOME_ZERO


def there_early(nodes: Sequence[Node]) -> list[bool]:
    """By index, whether a node is cheap and available early: parameters, constants, and elementwise operators and movement on them.

    A scale that reductions compute (squeeze and excite) stays with the data: otherwise every run would multiply the weights.
    """
    cheap = (Kind.ELEMENTWISE, Kind.BROADCAST, Kind.INJECTIVE)
    early = [False] * len(nodes)
    for node in nodes:
        if node.op in INPUTS:
            early[node.index] = True
        elif node.op.kind in cheap and node.operands and not node.bodies:
            early[node.index] = all(early[o.index] for o in node.operands)
    return early
