"""Queries of sizes, types and layouts, which return plain values."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.torch import NUMBERS, Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64

ANSWERS: dict[str, Callable[[Torch, Node], object]] = {
    "size(Tensor self)": lambda t, x: list(t.shape(x)),
    "dim(Tensor self)": lambda t, x: t.rank(x),
    "len.Tensor(Tensor t)": lambda t, x: t.shape(x)[0],
    "numel(Tensor self)": lambda t, x: prod(t.shape(x)),
    "is_floating_point(Tensor self)": lambda t, x: t.dtype(x).is_float,
    "is_complex(Tensor self)": lambda t, x: t.dtype(x).is_complex,
    "is_signed(Tensor self)": lambda t, x: t.dtype(x).kind not in ("uint", "pred"),
    "element_size(Tensor self)": lambda t, x: t.dtype(x).storage,
}
"""What follows from the type of a tensor."""
for _schema, _answer in ANSWERS.items():
    operator(_schema, work="free" if _schema.startswith(("size", "dim", "len")) else "")(_answer)


@operator("size.int(Tensor self, int dim)", "sym_size.int(Tensor self, int dim)")
def size_dim(t: Torch, x: Node, dim: int) -> object:
    return t.shape(x)[t.dim(x, dim)]


@operator("is_same_size(Tensor self, Tensor other)")
def is_same_size(t: Torch, x: Node, other: Node) -> object:
    return t.shape(x) == t.shape(other)


@operator("get_device(Tensor self)")
def get_device(t: Torch, x: Node) -> object:
    """The number of a graphics processor; -1 of the CPU."""
    return -1


@operator("_shape_as_tensor(Tensor self)")
def shape_as_tensor(t: Torch, x: Node) -> Node:
    return t.array(list(t.shape(x)), S64)


@operator("result_type.Tensor(Tensor tensor, Tensor other)", "result_type.Scalar(Tensor tensor, Scalar other)",
          "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor)")
def result_type(t: Torch, x: object, y: object) -> object:
    """torch's number of the common element type."""
    return NUMBERS[t.result_type(x, y).name]
