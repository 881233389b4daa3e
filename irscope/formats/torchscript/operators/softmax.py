"""Softmax and its relatives."""
from __future__ import annotations

from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32, PRED
from irscope.ops.faults import TypeFault


@operator("softmax.int(Tensor self, int dim, ScalarType? dtype=None)", "_softmax(Tensor self, int dim, bool half_to_float)",
          "special_softmax(Tensor self, int dim, ScalarType? dtype=None)")
def softmax(t: Torch, x: Node, dim: int, dtype: object) -> Node:
    x = _cast(t, x, dtype)
    d = t.dims(x, dim)
    e = t.unary("exponential", t.sub(x, t.max(x, d, True)))
    return t.div(e, t.sum(e, d, True))


@operator("log_softmax.int(Tensor self, int dim, ScalarType? dtype=None)", "_log_softmax(Tensor self, int dim, bool half_to_float)",
          "special_log_softmax(Tensor self, int dim, ScalarType? dtype=None)")
def log_softmax(t: Torch, x: Node, dim: int, dtype: object) -> Node:
    x = _cast(t, x, dtype)
    d = t.dims(x, dim)
    away = t.sub(x, t.max(x, d, True))
    return t.sub(away, t.unary("log", t.sum(t.unary("exponential", away), d, True)))


@operator("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None)")
def safe_softmax(t: Torch, x: Node, dim: int, dtype: object) -> Node:
    """Softmax where rows of only -inf become 0."""
    y = softmax(t, x, dim, dtype)
    d = t.dims(x, dim)
    hidden = t.all(t.compare("EQ", x, t.like(x, float("-inf"))), d, True)
    return t.select(hidden, t.like(y, 0), y)


@operator("softmin.int(Tensor self, int dim, ScalarType? dtype=None)")
def softmin(t: Torch, x: Node, dim: int, dtype: object) -> Node:
    return softmax(t, t.unary("negate", x), dim, dtype)


def _cast(t: Torch, x: Node, dtype: Any) -> Node:
    if isinstance(dtype, bool) or dtype is None:
        if t.dtype(x).is_integer or t.dtype(x) is PRED:
            raise TypeFault(f"the softmax of {t.dtype(x).name} needs dtype=")
        return t.convert(x, F32) if dtype is True else t.floating(x)
    kind: DType = t.dtype_number(dtype, F32)
    return t.convert(x, kind)
