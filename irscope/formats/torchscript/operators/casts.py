"""Copies, casts and fills. A cast to the type of the tensor returns the tensor itself."""
from __future__ import annotations

from irscope.formats.torchscript.abstract import ITSELF, Copied, Decision, TensorView, Unsure
from irscope.formats.torchscript.operators import alias, operator, view
from irscope.formats.torchscript.strides import PRESERVE_FORMAT, Strided, contiguous, preserved
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import PRED, S64, U8


@view("detach(Tensor(a) self)", "alias(Tensor(a) self)")
def same(t: Torch, x: Node) -> TensorView:
    return TensorView(lambda b: b, lambda b, new: new, lambda at: at)


@alias("cpu(Tensor(a) self)")
@alias("lift_fresh(Tensor(a) self)", "requires_grad_(Tensor(a!) self, bool requires_grad=True)",
       "positive(Tensor(a) self)", traits="view")
def itself(t: Torch, x: Node, at: Strided | None, *rest: object) -> Decision:
    return ITSELF


@operator("clone(Tensor self, *, MemoryFormat? memory_format=None)", "lift_fresh_copy(Tensor self)", "detach_copy(Tensor self)",
          "alias_copy(Tensor self)", work="movement")
def clone(t: Torch, x: Node, memory: object = None) -> Node:
    return x


HOW = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None"


def cast(t: Torch, x: Node, at: Strided | None, dtype: DType, copy: bool = False, memory_format: int | None = None) -> Decision:
    """``to``: the tensor itself where it already has the type and the memory format, unless a copy is requested."""
    kept = memory_format in (None, PRESERVE_FORMAT)
    if not copy and t.dtype(x) is dtype:
        if kept or (at is not None and at.suggested_format() == memory_format):
            return ITSELF
        if at is None:
            return Unsure(x)
    made = converted(t, x, dtype)
    if kept:
        return Copied(made, preserved(at) if at is not None else None)
    return Copied(made, contiguous(t.shape(x), memory_format or 0))


def converted(t: Torch, x: Node, dtype: DType) -> Node:
    """``x`` in another type. A float becomes a byte by way of a signed integer, as in torch: -1.0 is 255."""
    return t.convert(t.convert(x, S64) if dtype is U8 and t.dtype(x).is_float else x, dtype)


@alias(f"to.dtype(Tensor(a) self, ScalarType dtype, {HOW})", f"to.device(Tensor(a) self, Device device, ScalarType dtype, {HOW})",
       f"to.other(Tensor(a) self, Tensor other, {HOW})", "type_as(Tensor(a) self, Tensor other)",
       "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
       f"{HOW})", "to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False)",
       "to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False)", traits="cast")
def to(t: Torch, x: Node, at: Strided | None, *, dtype: int | None = None, other: Node | None = None, copy: bool = False,
       memory_format: int | None = None) -> Decision:
    return cast(t, x, at, t.dtype_number(dtype, t.dtype(x)) if other is None else t.dtype(other), copy, memory_format)


@alias("to_dense(Tensor(a) self, ScalarType? dtype=None, *, bool? masked_grad=None)")
def to_dense(t: Torch, x: Node, at: Strided | None, dtype: int | None, *rest: object) -> Decision:
    """The tensor itself, or a copy of one in oneDNN's layout, which the text does not state."""
    made = cast(t, x, at, t.dtype_number(dtype, t.dtype(x)))
    return Unsure(x) if made is ITSELF else made


@operator("to_mkldnn(Tensor self, ScalarType? dtype=None)",
          "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
          "bool non_blocking=False, MemoryFormat? memory_format=None)")
def to_copy(t: Torch, x: Node, dtype: int | None, *rest: object) -> Node:
    return converted(t, x, t.dtype_number(dtype, t.dtype(x)))


def _cast(name: str, number: int) -> None:
    @alias(f"{name}(Tensor(a) self)", f"_cast_{name.capitalize()}(Tensor(a) self, bool non_blocking=False)")
    def to_named(t: Torch, x: Node, at: Strided | None, *rest: object) -> Decision:
        return cast(t, x, at, t.dtype_number(number, t.dtype(x)))


for _name, _number in (("float", 6), ("double", 7), ("half", 5), ("bfloat16", 15), ("long", 4), ("int", 3), ("bool", 11), ("byte", 0)):
    _cast(_name, _number)


@operator("copy(Tensor self, Tensor src, bool non_blocking=False)", work="movement")
def copy(t: Torch, x: Node, source: Node, non_blocking: bool) -> Node:
    return t.broadcast_to(t.convert(source, t.dtype(x)), t.shape(x))


@operator("fill.Scalar(Tensor self, Scalar value)", "fill.Tensor(Tensor self, Tensor value)")
def fill(t: Torch, x: Node, value: object) -> Node:
    return t.broadcast_to(t.as_tensor(value, t.dtype(x)), t.shape(x))


@operator("zero(Tensor self)")
def zero(t: Torch, x: Node) -> Node:
    return t.like(x, 0)


@operator("fill_diagonal(Tensor self, Scalar fill_value, bool wrap=False)")
def fill_diagonal(t: Torch, x: Node, value: object, wrap: bool) -> Node:
    """A value where all indices are equal; with ``wrap``, a tall matrix has another diagonal one row below the end of the last one."""
    shape = t.shape(x)
    index = [t.iota(shape, d, S64) for d in range(len(shape))]
    if wrap and len(shape) == 2:
        flat = t.add(t.scale(index[0], shape[1]), index[1])
        on = t.compare("EQ", t.binary("remainder", flat, t.like(flat, shape[1] + 1)), t.like(flat, 0))
    else:
        on = t.full(shape, True, PRED)
        for other in index[1:]:
            on = t.binary("and", on, t.compare("EQ", index[0], other))
    return t.select(on, t.like(x, value), x)
