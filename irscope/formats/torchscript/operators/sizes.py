"""What sizes, types and layouts are: answers that are plain values."""
from __future__ import annotations

from math import prod
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import NUMBERS, Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64


@operator("size(Tensor self)", work="free")
def size(t: Torch, x: Node) -> Any:
    return list(t.shape(x))


@operator("size.int(Tensor self, int dim)", "sym_size.int(Tensor self, int dim)")
def size_dim(t: Torch, x: Node, dim: int) -> Any:
    return t.shape(x)[t.dim(x, dim)]


@operator("dim(Tensor self)", work="free")
def dim(t: Torch, x: Node) -> Any:
    return t.rank(x)


@operator("numel(Tensor self)")
def numel(t: Torch, x: Node) -> Any:
    return prod(t.shape(x))


@operator("len.Tensor(Tensor t)", work="free")
def length(t: Torch, x: Node) -> Any:
    return t.shape(x)[0]


@operator("stride(Tensor self)")
def stride(t: Torch, x: Node) -> Any:
    shape = t.shape(x)
    return [prod(shape[i + 1:]) for i in range(len(shape))]


@operator("is_floating_point(Tensor self)")
def is_floating_point(t: Torch, x: Node) -> Any:
    return t.dtype(x).is_float


@operator("is_complex(Tensor self)")
def is_complex(t: Torch, x: Node) -> Any:
    return t.dtype(x).is_complex


@operator("is_contiguous(Tensor self)", "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format)",
          "is_same_size(Tensor self, Tensor other)")
def is_contiguous(t: Torch, x: Node, other: Any = None) -> Any:
    return True if not isinstance(other, Node) else t.shape(x) == t.shape(other)


@operator("is_signed(Tensor self)")
def is_signed(t: Torch, x: Node) -> Any:
    return t.dtype(x).kind not in ("uint", "pred")


@operator("element_size(Tensor self)")
def element_size(t: Torch, x: Node) -> Any:
    return t.dtype(x).storage


@operator("get_device(Tensor self)")
def get_device(t: Torch, x: Node) -> Any:
    """The number of a graphics processor; -1 of the CPU."""
    return -1


@operator("_shape_as_tensor(Tensor self)")
def shape_as_tensor(t: Torch, x: Node) -> Node:
    return t.array(list(t.shape(x)), S64)


@operator("result_type.Tensor(Tensor tensor, Tensor other)", "result_type.Scalar(Tensor tensor, Scalar other)",
          "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor)")
def result_type(t: Torch, x: Any, y: Any) -> Any:
    """torch's number of the common element type."""
    return NUMBERS[t.result_type(x, y).name]
