"""What XLA's CPU compiler takes for operators: its emitted loops, and the library calls of products and convolutions.

All numbers are additions of 32 bits: nanoseconds of single operators, measured with jaxlib 0.10.2 on one thread of an Intel Xeon (Sapphire
Rapids, about 88 such additions a nanosecond over 64 Ki elements), less the time of moving the elements.
"""

from __future__ import annotations

from math import prod

from irscope.graph import Node, TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Dot, ReduceWindow

TYPES = ("f32", "f64", "bf16", "f16")
WEIGHTS = {
    # additions for one element of f32, f64, bf16, f16; what has no vector form calls the mathematical library for each element
    "divide": (6, 28, 6, 16),
    "sqrt": (10, 56, 8, 60),
    "rsqrt": (151, 140, 175, 180),
    "exponential": (24, 54, 37, 193),
    "exponential-minus-one": (53, 93, 72, 240),
    "log": (30, 334, 44, 210),
    "log-plus-one": (56, 495, 87, 70),
    "logistic": (28, 102, 50, 28),
    "tanh": (16, 54, 32, 24),
    "erf": (14, 848, 25, 20),
    "sine": (462, 645, 480, 545),
    "cosine": (450, 722, 466, 530),
    "power": (365, 820, 400, 420),
}
ROUNDED = 12.0
"""Additions for each result that a loop rounds to bf16 or f16."""
REDUCED = 5.0
"""Additions for each element of a reduction in a loop that computes what it reduces."""
RUNNING = 185.0
"""Additions for each element of a window that covers a whole axis (a running sum): XLA makes a tree of shorter windows of it."""
PACKED = 4.0
"""Additions for each element of an operand that a product packs: it lies as the library wants it."""
STRIDED = 20.0
"""The same where a second operand that few rows meet is contracted over its last axis."""
FEW_ROWS = 32
TRANSPOSED = 88.0
"""The same where batch axes are not the first ones: XLA transposes a copy, an element at a time."""
DEPTHWISE = 110.0
"""Additions for an operation of a convolution with a filter for each channel, for which the library has no kernel."""


def element_weight(node: Node) -> float | None:
    """Additions for one element of an elementwise operator in an emitted loop; None where the operator's own weight holds."""
    if not isinstance(node.type, TensorType):
        return None
    name = node.type.dtype.name
    rounded = ROUNDED if name in ("bf16", "f16") else 0.0
    row = WEIGHTS.get(node.op.name)
    if row is None or name not in TYPES:
        return float(node.op.weight) + rounded if rounded else None
    # The caller doubles what is done in 64 bits.
    return row[TYPES.index(name)] / (2.0 if name == "f64" else 1.0)


def window_work(node: Node) -> float | None:
    """Additions of a window that runs over a whole axis, and has a result for each element of it; None for all others."""
    operand = node.operands[0].type if node.op is hlo.reduce_window and node.operands else None
    result = next(iter(node.type.leaves()), None)
    if not isinstance(operand, TensorType) or not operand.is_static or not isinstance(result, TensorType) or not result.is_static:
        return None
    sizes = zip(ReduceWindow.of(node).window.size, operand.dims(), result.dims(), strict=False)
    long = [(size, length, results) for size, length, results in sizes if size > 1]
    return RUNNING * operand.elements if len(long) == 1 and len(set(long[0])) == 1 else None


def call_work(node: Node) -> float:
    """Additions of a product or convolution beyond its operations: for packing and transposing its operands."""
    if node.op is hlo.convolution:
        return _depthwise(node)
    if node.op is not hlo.dot or len(node.operands) < 2:
        return 0.0
    left, right = (operand.type for operand in node.operands[:2])
    if not isinstance(left, TensorType) or not isinstance(right, TensorType) or not left.is_static or not right.is_static:
        return 0.0
    dot = Dot.of(node)
    total = 0.0
    for type, batch in zip((left, right), dot.batch_dims, strict=True):
        total += type.elements * (PACKED if batch == tuple(range(len(batch))) else TRANSPOSED)
    taken = {*dot.lhs_batch_dims, *dot.lhs_contracting_dims}
    rows = prod(length for axis, length in enumerate(left.dims()) if axis not in taken)
    if 1 < rows < FEW_ROWS and dot.rhs_contracting_dims[-1:] == (right.rank - 1,):
        total += STRIDED * right.elements
    return total


def _depthwise(node: Node) -> float:
    groups = Convolution.of(node).feature_group_count
    filters = node.operands[1].type
    if groups == 1 or node.op.cost is None or not isinstance(filters, TensorType) or not filters.is_static:
        return 0.0
    inputs = filters.dims()[Convolution.of(node).dim_labels.rhs_input]
    return DEPTHWISE * float(node.op.cost(node)) if inputs == 1 else 0.0
