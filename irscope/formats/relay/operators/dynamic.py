"""Operators whose shape is an operand: computed where that operand is a constant, or is computed from constants."""

from __future__ import annotations

from irscope.formats.relay.algebra import Relay, shape_text
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.creation import one_hot
from irscope.formats.relay.operators.image import Resampling, resize_to, upsampled
from irscope.formats.relay.operators.shape import collapsed, new_axes, new_shape, tiled
from irscope.formats.relay.operators.slicing import pad, sliced
from irscope.formats.relay.operators.sorting import top
from irscope.graph import Kind, Node
from irscope.graph.dtypes import F32
from irscope.ops.faults import TypeFault

E, INJ = Kind.ELEMENTWISE, Kind.INJECTIVE


@operator("dyn.reshape(data, newshape: int; newshape=None, allowzero=0)", kind=INJ, values=True)
def reshape(t: Relay, a: Attributes, x: Node, shape: Node) -> Node:
    """``reshape`` to a shape that is an operand."""
    wanted = new_shape(t.shape(x), t.ints(shape, "the shape"), bool(a.allowzero))
    return t.reshape(x, tuple(int(d) for d in wanted if isinstance(d, int)))


@operator("vm.reshape_tensor(data, shape; newshape=None)", values=True)
def reshape_tensor(t: Relay, a: Attributes, x: Node, shape: Node) -> Node:
    """``reshape`` of the virtual machine."""
    return t.reshape(x, tuple(a.newshape or t.ints(shape, "the shape")))


@operator("dyn.broadcast_to(data, shape; shape=None, dtype=None)", kind=Kind.BROADCAST, values=True)
def broadcast_to(t: Relay, a: Attributes, x: Node, shape: Node) -> Node:
    """``broadcast_to`` a shape that is an operand."""
    return t.broadcast_to(x, tuple(t.ints(shape, "the shape")))


@operator("dyn.tile(data, reps; reps=None)", kind=INJ, values=True)
def tile(t: Relay, a: Attributes, x: Node, reps: Node) -> Node:
    """``tile`` by an operand."""
    return tiled(t, x, t.ints(reps, "reps"))


@operator("dyn.zeros(shape; shape=None, dtype=None)", kind=E, values=True)
def zeros(t: Relay, a: Attributes, shape: Node) -> Node:
    """Zeros of a shape that is an operand."""
    return t.full(tuple(t.ints(shape, "the shape")), 0, t.dtype_word(a.dtype, F32))


@operator("dyn.ones(shape; shape=None, dtype=None)", kind=E, values=True)
def ones(t: Relay, a: Attributes, shape: Node) -> Node:
    """Ones of a shape that is an operand."""
    return t.full(tuple(t.ints(shape, "the shape")), 1, t.dtype_word(a.dtype, F32))


@operator("dyn.full(fill_value, shape; shape=None, dtype=None)", kind=E, values=True)
def full(t: Relay, a: Attributes, value: Node, shape: Node) -> Node:
    """One value in a shape that is an operand."""
    dtype = t.dtype_word(a.dtype, t.dtype(value))
    return t.broadcast_to(t.convert(t.reshape(value, ()), dtype), tuple(t.ints(shape, "the shape")))


@operator("dyn.expand_dims(data, axis: int; num_newaxis=1)", kind=INJ, values=True)
def expand_dims(t: Relay, a: Attributes, x: Node, axis: Node) -> Node:
    """``expand_dims`` at an operand."""
    shape = t.shape(x)
    place = t.axis(len(shape) + 1, t.single(axis, "axis"))
    return t.reshape(x, (*shape[:place], *new_axes(a.num_newaxis, len(shape)), *shape[place:]))


@operator("dyn.squeeze(data, axes; axis=None)", kind=INJ, values=True)
def squeeze(t: Relay, a: Attributes, x: Node, axes: Node) -> Node:
    """``squeeze`` of axes that are an operand."""
    gone = [t.axis(x, d) for d in t.ints(axes, "axes")]
    return t.reshape(x, tuple(n for d, n in enumerate(t.shape(x)) if d not in gone))


@operator("dyn.strided_slice(data, begin, end, strides; begin=None, end=None, strides: places=None, slice_mode='end', axes=None)", kind=INJ,
          values=True)
def strided_slice(t: Relay, a: Attributes, x: Node, begin: Node, end: Node, strides: Node) -> Node:
    """``strided_slice`` by operands."""
    return sliced(t, x, a, t.ints(begin, "begin"), t.ints(end, "end"), t.ints(strides, "strides"))


@operator("dyn.topk(data, k; k=None, axis=-1, ret_type='both', is_ascend=False, dtype='int32')", values=True)
def topk(t: Relay, a: Attributes, x: Node, k: Node) -> object:
    """``topk`` with k as an operand."""
    return top(t, x, t.single(k, "k"), a)


@operator("dyn.one_hot(indices: int, on_value, off_value, depth; depth=None, axis=-1, dtype=None)", kind=Kind.CONTRACTION, values=True)
def dyn_one_hot(t: Relay, a: Attributes, indices: Node, on: Node, off: Node, depth: Node) -> Node:
    """``one_hot`` with the depth as an operand."""
    return one_hot(t, Attributes(depth=t.single(depth, "depth"), axis=a.axis, dtype=a.dtype), indices, on, off)


@operator("dyn.nn.pad(data, pad_width, pad_value; pad_width=None, pad_mode='constant')", kind=INJ, values=True)
def dyn_pad(t: Relay, a: Attributes, x: Node, width: Node, value: Node) -> Node:
    """``nn.pad`` by an operand."""
    flat = t.ints(width, "pad_width")
    pairs = [flat[2 * i : 2 * i + 2] for i in range(len(flat) // 2)]
    return pad(t, Attributes(pad_width=pairs, pad_mode=a.pad_mode, pad_value=0.0), x, value)


@operator("dyn.nn.upsampling(data, scale_h, scale_w; scale_h=None, scale_w=None, layout='NCHW', method='nearest_neighbor', "
          "align_corners=False)", kind=INJ, values=True)
def upsampling(t: Relay, a: Attributes, x: Node, h: Node, w: Node) -> Node:
    """``nn.upsampling`` by operands."""
    return upsampled(t, a, x, [_number(t, h), _number(t, w)], "align_corners" if a.align_corners else "asymmetric")


@operator("dyn.nn.upsampling3d(data, scale_d, scale_h, scale_w; scale_d=None, scale_h=None, scale_w=None, layout='NCDHW', "
          "method='nearest_neighbor', coordinate_transformation_mode='half_pixel')", kind=INJ, values=True)
def upsampling3d(t: Relay, a: Attributes, x: Node, d: Node, h: Node, w: Node) -> Node:
    """``nn.upsampling3d`` by operands."""
    return upsampled(t, a, x, [_number(t, d), _number(t, h), _number(t, w)], str(a.coordinate_transformation_mode))


def _number(t: Relay, x: Node) -> float:
    value = t.known(x)
    if value is None:
        raise TypeFault("the scale depends on data: irscope compiles programs whose shapes are known")
    if value.size != 1:
        raise TypeFault(f"the scale is one number, got {shape_text(t.shape(x))}")
    return float(value.item())


@operator("dyn.image.resize2d(data, size, roi; size=None, roi=None, layout='NCHW', method='linear', "
          "coordinate_transformation_mode='half_pixel', rounding_method='round', cubic_alpha=-0.5, cubic_exclude=0, "
          "extrapolation_value=0.0, out_dtype=None)", kind=INJ, values=True)
def resize2d(t: Relay, a: Attributes, x: Node, size: Node, roi: Node) -> Node:
    """``image.resize2d`` to a size and a region that are operands."""
    box = t.known(roi)
    if box is None and a.coordinate_transformation_mode == "tf_crop_and_resize":
        raise TypeFault("roi depends on data: irscope compiles programs where the region is known")
    sizes = t.ints(size, "size")
    if len(sizes) != 2:
        raise TypeFault(f"size is two numbers, got {len(sizes)}")
    how = Resampling.of(a, 2, roi=[] if box is None else box.reshape(-1).tolist())
    return resize_to(t, a, x, sizes, how)


@operator("collapse_sum_to(data, shape?; shape=None, dtype=None)", kind=Kind.REDUCTION, values=True)
def collapse_sum_to(t: Relay, a: Attributes, x: Node, shape: Node | None = None) -> Node:
    """The sums that undo a broadcast from a shape."""
    if shape is None and a.shape is None:
        raise TypeFault("the shape is missing")
    return collapsed(t, x, tuple(a.shape) if shape is None else tuple(t.ints(shape, "the shape")))
