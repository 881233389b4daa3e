"""Assertions and facts about sizes. They compute nothing: inputs that break an assertion make torch raise an exception."""
from __future__ import annotations

from math import prod
from typing import Any, Protocol

from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.strides import contiguous
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Effect, Node
from irscope.graph.dtypes import F32
from irscope.ops.faults import TypeFault


class ProgramBuilder(Protocol):
    """What queries need of the running program: the builder."""

    t: Torch


@operator("_assert_async(Tensor self)", "_assert_async.msg(Tensor self, str assert_msg)", "_assert_scalar(Scalar self, str assert_msg)",
          "sym_constrain_range(Scalar size, *, int? min=None, int? max=None)",
          "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None)",
          "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, Device? device=None, "
          "Layout? layout=None)", style="raw", effect=Effect.CONTROL)
def nothing(program: ProgramBuilder, *rest: object) -> None:
    """Raises an exception in torch where its condition is false."""


@operator("_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token)",
          "_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token)",
          "_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token)",
          "_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token)", style="raw")
def token(program: ProgramBuilder, *rest: object) -> Tensor:
    """The token that it takes: an order of effects, without a value."""
    last = rest[-1]
    assert isinstance(last, Tensor), "the schema ends with a tensor"
    return last


@operator("_make_dep_token(*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
          "MemoryFormat? memory_format=None)", "prims::_make_token()")
def make_token(t: Torch, *rest: object) -> Node:
    return t.full((0,), 0, F32)


@operator("prims::_sink_tokens(Tensor[] tokens)", style="raw")
def sink_tokens(program: ProgramBuilder, tokens: object) -> None:
    """The end of an order of effects."""


# ---------------------------------------------------------------------- sizes and strides


@operator("sym_size(Tensor self)")
def sym_sizes(t: Torch, x: Node) -> object:
    return list(t.shape(x))


@operator("sym_numel(Tensor self)", work="free")
def sym_numel(t: Torch, x: Node) -> object:
    return prod(t.shape(x))


def _layout(program: ProgramBuilder, x: Tensor) -> Any:
    """Sizes and strides; contiguous ones where they are unknown."""
    return x.layout or contiguous(program.t.shape(x.get()))


@operator("stride(Tensor self)", "sym_stride(Tensor self)", style="raw", work="free")
def strides(program: ProgramBuilder, x: Tensor) -> list[int]:
    return list(_layout(program, x).strides)


@operator("stride.int(Tensor self, int dim)", "sym_stride.int(Tensor self, int dim)", style="raw", work="free")
def stride(program: ProgramBuilder, x: Tensor, dim: int) -> int:
    at = _layout(program, x)
    if not at.rank:
        raise TypeFault("a tensor without dimensions has no stride")
    return int(at.strides[program.t.dim(at.rank, dim)])


@operator("storage_offset(Tensor self)", "sym_storage_offset(Tensor self)", style="raw", work="free")
def storage_offset(program: ProgramBuilder, x: Tensor) -> int:
    return _layout(program, x).offset or 0


@operator("sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format)",
          "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format)", "is_contiguous(Tensor self)", style="raw")
def is_contiguous(program: ProgramBuilder, x: Tensor, memory_format: int = 0) -> bool:
    if not isinstance(memory_format, int | None):
        raise TypeFault(f"a memory format is a number, not a value of type {type(memory_format).__name__}")
    return bool(_layout(program, x).is_contiguous(memory_format))
