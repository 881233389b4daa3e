"""The same elements again: copies, casts, fills."""
from __future__ import annotations

from typing import Any

from irscope.formats.torchscript.operators import ReadWrite, operator, view
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node


@view("detach(Tensor(a) self)", "alias(Tensor(a) self)", "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format)",
      "lift_fresh(Tensor(a) self)", "cpu(Tensor(a) self)", "requires_grad_(Tensor(a!) self, bool requires_grad=True)",
      "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None)", "to_mkldnn(Tensor self, ScalarType? dtype=None)")
def same(t: Torch, x: Node, *rest: Any) -> ReadWrite:
    return lambda b: b, lambda b, new: new


@operator("clone(Tensor self, *, MemoryFormat? memory_format=None)", "lift_fresh_copy(Tensor self)", "detach_copy(Tensor self)")
def clone(t: Torch, x: Node, memory: Any = None) -> Node:
    return x


@operator("to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)")
def to_dtype(t: Torch, x: Node, dtype: int, *rest: Any) -> Node:
    return t.convert(x, t.dtype_number(dtype, t.dtype(x)))


@operator("to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
          "MemoryFormat? memory_format=None)")
def to_device(t: Torch, x: Node, device: Any, dtype: int, *rest: Any) -> Node:
    return t.convert(x, t.dtype_number(dtype, t.dtype(x)))


@operator("to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)",
          "type_as(Tensor self, Tensor other)")
def to_other(t: Torch, x: Node, other: Node, *rest: Any) -> Node:
    return t.convert(x, t.dtype(other))


@operator("to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
          "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None)",
          "to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False)")
def to_layout(t: Torch, x: Node, *rest: Any) -> Node:
    dtype = rest[0] if isinstance(rest[0], int) or rest[0] is None else rest[1]
    return t.convert(x, t.dtype_number(dtype, t.dtype(x)))


def _cast(name: str, number: int) -> None:
    @operator(f"{name}(Tensor self)", f"_cast_{name.capitalize()}(Tensor self, bool non_blocking=False)")
    def cast(t: Torch, x: Node, *rest: Any) -> Node:
        return t.convert(x, t.dtype_number(number, t.dtype(x)))


for _name, _number in (("float", 6), ("double", 7), ("half", 5), ("bfloat16", 15), ("long", 4), ("int", 3), ("bool", 11), ("byte", 0)):
    _cast(_name, _number)


@operator("copy(Tensor self, Tensor src, bool non_blocking=False)")
def copy(t: Torch, x: Node, source: Node, non_blocking: bool) -> Node:
    return t.broadcast_to(t.convert(source, t.dtype(x)), t.shape(x))


@operator("fill.Scalar(Tensor self, Scalar value)", "fill.Tensor(Tensor self, Tensor value)")
def fill(t: Torch, x: Node, value: Any) -> Node:
    return t.broadcast_to(t.as_tensor(value, t.dtype(x)), t.shape(x))


@operator("zero(Tensor self)")
def zero(t: Torch, x: Node) -> Node:
    return t.like(x, 0)
