"""Arithmetic in torch's wider type: its kernels compute half types in float32 and round once."""
from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import F32


def widened(t: Torch, x: Node) -> Node:
    """``x``, half types as float32."""
    return t.convert(x, F32) if t.dtype(x).is_float and t.dtype(x).bits < 32 else x


def computed(t: Torch, function: Callable[..., Node], *xs: Node, to: DType | None = None) -> Node:
    """A function of the operands in their common type, half types as float32; the result in that common type (or in ``to``)."""
    kind = t.result_type(*xs)
    made = function(*(widened(t, x) for x in t.promote(*xs, to=kind)))
    return t.convert(made, to or kind)


def rounded_once(function: Callable[..., Node]) -> Callable[..., Node]:
    """Compute a function of one tensor in float32 where the tensor is of a half type."""
    @wraps(function)
    def wide(t: Torch, x: Node, *rest: Any) -> Node:
        return t.convert(function(t, widened(t, x), *rest), t.dtype(x))
    return wide


def summed_to(t: Torch, grad: Node, shape: tuple[int, ...]) -> Node:
    """The gradient of what was broadcast from this shape: summed where it repeats."""
    lead = t.rank(grad) - len(shape)
    dims = [d for d, n in enumerate(t.shape(grad)) if d < lead or (shape[d - lead] == 1 and n != 1)]
    return t.reshape(t.sum(grad, dims), shape)
