"""Operators that irscope knows only by name and type: shows and lints them, and refuses to run them with a clear message.

The text does not define them: the layout of another library, a schedule's index map, virtual machine instructions around
lowered functions, a function of another framework.
"""

from __future__ import annotations

from irscope.formats.relay.operators import Attributes, opaque
from irscope.formats.relay.types import dtype_named
from irscope.graph import Effect, FunctionType, Kind, NamedType, TensorType, TupleType, Type

STORAGE = NamedType("Storage")
"""Memory that tensors are laid into."""
NNPACK_TILE = 8
"""NNPACK transforms kernels of 3 x 3 into tiles of 8 x 8."""


def _nnpack_type(a: Attributes, weight: Type) -> Type | None:
    if not isinstance(weight, TensorType) or weight.rank != 4:
        return None
    return TensorType(dtype_named(str(a.out_dtype)) or weight.dtype, (*weight.shape[:2], NNPACK_TILE, NNPACK_TILE))


def _tensor_in_storage(a: Attributes, *operands: Type) -> Type | None:
    shape, dtype = a.assert_shape or a.const_shape, dtype_named(str(a.dtype))
    if not isinstance(shape, list | tuple) or not all(isinstance(n, int) for n in shape) or dtype is None:
        return None
    return TensorType(dtype, tuple(shape))


def _result_of(a: Attributes, function: Type, arguments: Type) -> Type | None:
    return function.result if isinstance(function, FunctionType) else None


opaque("nn.contrib_conv2d_winograd_nnpack_weight_transform(weight; convolution_algorithm!, out_dtype=None)", infer=_nnpack_type)
opaque("meta_schedule_layout_transform(data; index_map!)", kind=Kind.INJECTIVE)
opaque("memory.alloc_storage(size, shape, alignment?; virtual_device=None, dtype=None, device_id=None, device_type=None)",
       effect=Effect.CONTROL, infer=lambda a, *operands: STORAGE)
opaque("memory.alloc_tensor(storage, offset, shape; const_shape=None, assert_shape=None, dtype=None)", effect=Effect.CONTROL,
       infer=_tensor_in_storage)
opaque("memory.kill(to_free)", "vm.invoke_tvm_op(op, ins, outs)", effect=Effect.CONTROL, infer=lambda a, *operands: TupleType(()))
opaque("call_lowered(func, call_args; metadata=None)", effect=Effect.CONTROL, infer=_result_of)
opaque("torch_op(inputs?; serialized_function='', len=-1)", effect=Effect.CONTROL)
