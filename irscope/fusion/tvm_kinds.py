"""The kind of each operator in TVM's fusion (``TOpPattern`` of TVM 0.19): how its result elements depend on its operand elements."""
from __future__ import annotations

from enum import IntEnum

from irscope.graph import Kind, Op
from irscope.ops.sets import relay


class TvmKind(IntEnum):
    """TVM's ``OpPatternKind``; the order is the rule: a group takes the largest kind in it."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


OF_KIND = {
    Kind.ELEMENTWISE: TvmKind.ELEMWISE, Kind.BROADCAST: TvmKind.BROADCAST, Kind.INJECTIVE: TvmKind.INJECTIVE,
    Kind.REDUCTION: TvmKind.COMM_REDUCE, Kind.CONTRACTION: TvmKind.OUT_ELEMWISE_FUSABLE,
}
"""TVM's name for each kind in operator declarations; all other operators are opaque."""

WITHOUT_PATTERN = relay(
    "nn.fast_gelu nn.flatten nn.contrib_conv2d_nchwc contrib.adaptive_avg_pool2d contrib.adaptive_max_pool2d image.resize reverse_reshape "
    "qnn.abs qnn.erf qnn.exp qnn.log qnn.rsqrt qnn.sigmoid qnn.sqrt qnn.tanh")
"""Relay operators without a pattern in TVM 0.19, or that TVM does not have under these names: they are opaque."""


def tvm_kind(op: Op) -> TvmKind:
    """The kind of an operator. Relay's operators declare TVM's kind; other operators take it from their own fusion pattern."""
    return TvmKind.OPAQUE if op in WITHOUT_PATTERN else OF_KIND.get(op.kind, TvmKind.OPAQUE)
