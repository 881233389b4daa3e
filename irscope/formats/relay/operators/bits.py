"""Numbers of a few bits, packed into words: packing, and products of such numbers."""

from __future__ import annotations

from irscope.formats.relay.algebra import Relay, each, paddings
from irscope.formats.relay.operators import Attributes, operator
from irscope.graph import Kind, Node
from irscope.graph.dtypes import S16, S32, U32, U64
from irscope.lazy import np
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.faults import TypeFault

C = Kind.CONTRACTION


@operator("nn.bitpack(data; bits=1, pack_axis=1, bit_axis=-1, pack_type=None, name='BitPack')", kind=Kind.INJECTIVE)
def bitpack(t: Relay, a: Attributes, x: Node) -> Node:
    """Pack the bits of neighbours along an axis into one word, the first highest; a new axis separates the bits of different weight."""
    dtype = t.dtype_word(a.pack_type, U32)
    axis, rank = t.axis(x, int(a.pack_axis)), t.rank(x)
    bit_axis = int(a.bit_axis) if int(a.bit_axis) >= 0 else rank + 1 + int(a.bit_axis)
    size = t.shape(x)[axis]
    if size % dtype.bits:
        raise TypeFault(f"axis {axis} is {size}, no multiple of the {dtype.bits} bits of a word")
    shape = t.shape(x)
    wide = t.convert(x, U64 if dtype is U64 else U32)
    wide_bits = t.dtype(wide).bits
    wide = t.reshape(wide, (*shape[:axis], size // dtype.bits, dtype.bits, *shape[axis + 1 :]))
    spread = [1] * t.rank(wide)
    spread[axis + 1] = dtype.bits
    turn = t.array(np.arange(dtype.bits)[::-1].reshape(spread), t.dtype(wide))
    planes = []
    if int(a.bits) > wide_bits:
        raise TypeFault(f"{a.bits} bits do not fit into {wide_bits}")
    for bit in range(int(a.bits)):
        mine = t.binary("and", t.binary("shift-right-logical", wide, t.like(wide, bit)), t.like(wide, 1))
        words = t.sum(t.binary("shift-left", mine, t.broadcast_to(turn, t.shape(mine))), [axis + 1])
        planes.append(t.reshape(t.convert(words, dtype), _with(t.shape(words), bit_axis, 1)))
    return t.concat(planes, bit_axis)


def _with(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis:])


def _lowest_bits(t: Relay, x: Node, bits: int) -> Node:
    if bits > 31:
        raise TypeFault(f"{bits} bits do not fit into int32")
    wide = t.convert(x, S32)
    return t.binary("and", wide, t.like(wide, (1 << bits) - 1))


def _unpacked(t: Relay, x: Node, axis: int) -> Node:
    """Undo ``bitpack`` along an axis, with the bits in the last one: the numbers (s32)."""
    *shape, bits = t.shape(x)
    if bits > 31:
        raise TypeFault(f"{bits} bits do not fit into int32")
    width = t.dtype(x).bits
    wide = t.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :], bits))
    spread = [1] * t.rank(wide)
    spread[axis + 1] = width
    turn = t.array(np.arange(width)[::-1].reshape(spread), t.dtype(x))
    whole = _with((*shape, bits), axis + 1, width)
    single = t.binary("shift-right-logical", t.broadcast_to(wide, whole), t.broadcast_to(turn, whole))
    single = t.convert(t.binary("and", single, t.like(single, 1)), S32)
    weight = t.array(2 ** np.arange(bits).reshape(*[1] * (t.rank(single) - 1), bits), S32)
    numbers = t.sum(t.mul(single, weight), [t.rank(single) - 1])
    return t.reshape(numbers, (*shape[:axis], shape[axis] * width, *shape[axis + 1 :]))


def _signed(t: Relay, w: Node, bits: int, unipolar: bool) -> Node:
    """In unipolar mode a zero bit of a weight counts as -1."""
    if bits > 31:
        raise TypeFault(f"{bits} bits do not fit into int32")
    return t.plus(t.scale(w, 2), -((1 << bits) - 1)) if unipolar else w


@operator("nn.bitserial_dense(data: 1d+, weight: 2-3d; units=None, data_bits=1, weight_bits=1, pack_dtype=None, out_dtype=None, "
          "unipolar=True)", kind=C)
def bitserial_dense(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
    """A dense layer of numbers of a few bits; a weight of three axes is packed."""
    left = _lowest_bits(t, x, int(a.data_bits))
    packed = t.rank(w) == 3
    right = _unpacked(t, t.transpose(w, (0, 2, 1)), 1) if packed else _lowest_bits(t, w, int(a.weight_bits))
    right = _signed(t, right, int(a.weight_bits), bool(a.unipolar))
    if t.shape(left)[-1] != t.shape(right)[1]:
        raise TypeFault(f"data axis -1 is {t.shape(left)[-1]}, weight axis 1 is {t.shape(right)[1]}")
    made = t.dot(left, right, ([t.rank(left) - 1], [1]))
    return t.convert(made, t.dtype_word(a.out_dtype, t.dtype(x)))


@operator("nn.bitserial_conv2d(data: 4d, weight: 4-5d; strides=[1, 1], padding=[0, 0], kernel_size=[3, 3], channels=None, "
          "activation_bits=1, weight_bits=1, data_layout='NCHW', kernel_layout='OIHW', pack_dtype=None, out_dtype=None, unipolar=True)",
          kind=C)
def bitserial_conv2d(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
    """A convolution of numbers of a few bits; a weight of five axes is packed along its inputs."""
    layout = str(a.data_layout)
    if layout not in ("NCHW", "NHWC"):
        raise TypeFault(f"a bit-serial convolution works on NCHW or NHWC, not on {layout}")
    first = layout == "NCHW"
    right = _unpacked(t, w, 1 if first else 2) if t.rank(w) == 5 else _lowest_bits(t, w, int(a.weight_bits))
    right = _signed(t, right, int(a.weight_bits), bool(a.unipolar))
    left = _lowest_bits(t, x, int(a.activation_bits))
    dims = ConvDims(0, 1, (2, 3), 1, 0, (2, 3), 0, 1, (2, 3)) if first else ConvDims(0, 3, (1, 2), 2, 3, (0, 1), 0, 3, (1, 2))
    size = tuple(t.shape(right)[d] for d in dims.rhs_spatial)
    if t.shape(left)[dims.lhs_feature] != t.shape(right)[dims.rhs_input]:
        raise TypeFault(f"data has {t.shape(left)[dims.lhs_feature]} channels, the weight {t.shape(right)[dims.rhs_input]}")
    made = t.conv(left, right, dims, Window.make(size, each(a.strides, 2), tuple(paddings(a.padding, 2))))
    return t.convert(made, t.dtype_word(a.out_dtype, S16))
