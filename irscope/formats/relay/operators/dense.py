"""Products of matrices."""

from __future__ import annotations

from typing import Any

from irscope.formats.relay.algebra import Relay, shape_text
from irscope.formats.relay.operators import Attributes, operator
from irscope.formats.relay.operators.broadcasting import common
from irscope.formats.relay.types import dtype_named
from irscope.graph import DType, Kind, Node, TensorType, Type
from irscope.ops.faults import TypeFault

C = Kind.CONTRACTION


def product(t: Relay, x: Node, y: Node, contracting: Any, dtype: DType, batch: Any = ((), ())) -> Node:
    """``dot`` in another element type, to which the operands are converted."""
    return t.dot(t.convert(x, dtype), t.convert(y, dtype), contracting, batch)


def _dense_type(a: Attributes, x: Type, w: Type) -> Type | None:
    """Open dimensions pass; the units come from the weight, or from ``units``."""
    if not (isinstance(x, TensorType) and isinstance(w, TensorType)) or (x.is_static and w.is_static):
        return None
    k, n = x.shape[-1], w.shape[1]
    if isinstance(k, int) and isinstance(n, int) and k != n:
        raise TypeFault(f"nn.dense: data axis -1 is {k}, weight axis 1 is {n}")
    return TensorType(dtype_named(str(a.out_dtype)) or x.dtype, (*x.shape[:-1], w.shape[0]))


@operator("nn.dense(data: 1d+, weight: 2d; units=None, out_dtype=None)", kind=C, infer=_dense_type)
def dense(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
    """The last axis of the data times each row of the weight."""
    if t.shape(x)[-1] != t.shape(w)[1]:
        raise TypeFault(f"data axis -1 is {t.shape(x)[-1]}, weight axis 1 is {t.shape(w)[1]}")
    if isinstance(a.units, int) and a.units != t.shape(w)[0]:
        raise TypeFault(f"units is {a.units}, weight axis 0 is {t.shape(w)[0]}")
    return product(t, x, w, ([t.rank(x) - 1], [1]), t.dtype_word(a.out_dtype, t.dtype(x)))


@operator("nn.contrib_dense_pack(data: 1d+, weight: 3d; units=None, out_dtype=None, weight_layout='NK8n')", kind=C)
def dense_pack(t: Relay, a: Attributes, x: Node, w: Node) -> Node:
    """``nn.dense`` with a packed weight: its last axis holds several units."""
    n, k, part = t.shape(w)
    flat = t.reshape(t.transpose(w, (0, 2, 1)), (n * part, k))
    return product(t, x, flat, ([t.rank(x) - 1], [1]), t.dtype_word(a.out_dtype, t.dtype(x)))


@operator("nn.matmul(tensor_a: 1d+, tensor_b: 2d; units=None, out_dtype=None, transpose_a=False, transpose_b=False)", kind=C)
def matmul(t: Relay, a: Attributes, x: Node, y: Node) -> Node:
    """A product of matrices, each of which may be transposed."""
    if a.transpose_a and t.rank(x) > 1:
        x = t.transpose(x, [*range(t.rank(x) - 2), t.rank(x) - 1, t.rank(x) - 2])
    k = 1 if a.transpose_b else 0
    if t.shape(x)[-1] != t.shape(y)[k]:
        raise TypeFault(f"tensor_a axis {-2 if a.transpose_a else -1} is {t.shape(x)[-1]}, tensor_b axis {k} is {t.shape(y)[k]}")
    return product(t, x, y, ([t.rank(x) - 1], [k]), t.dtype_word(a.out_dtype, t.dtype(x)))


def _batch_type(a: Attributes, x: Type, y: Type) -> Type | None:
    if not (isinstance(x, TensorType) and isinstance(y, TensorType)) or (x.is_static and y.is_static) or x.rank < 3 or x.rank != y.rank:
        return None
    m, n = (x.shape[-1] if a.transpose_a else x.shape[-2]), (y.shape[-2] if a.transpose_b else y.shape[-1])
    return TensorType(dtype_named(str(a.out_dtype)) or x.dtype, (*common(x.shape[:-2], y.shape[:-2]), m, n))


@operator("nn.batch_matmul(tensor_a, tensor_b; out_dtype=None, transpose_a=False, transpose_b=False)", kind=C, infer=_batch_type)
def batch_matmul(t: Relay, a: Attributes, x: Node, y: Node) -> Node:
    """A product of matrices for each batch. Texts up to 0.7 transpose the second one implicitly: the shapes decide."""
    xs, ys = t.shape(x), t.shape(y)
    if len(xs) < 3 or len(xs) != len(ys):
        raise TypeFault(f"two stacks of matrices are needed, got {shape_text(xs)} and {shape_text(ys)}")
    flip_x, flip_y = bool(a.transpose_a), bool(a.transpose_b)
    k = xs[-2] if flip_x else xs[-1]
    if not (flip_x or flip_y) and ys[-2] != k and ys[-1] == k:
        flip_y = True
    n = ys[-1] if flip_y else ys[-2]
    if k != n:
        raise TypeFault(f"tensor_a axis {-2 if flip_x else -1} is {k}, tensor_b axis {-1 if flip_y else -2} is {n}")
    lead = t.broadcast_two(xs[:-2], ys[:-2])
    x, y = t.broadcast_to(x, lead + xs[-2:]), t.broadcast_to(y, lead + ys[-2:])
    d = len(lead)
    return product(t, x, y, ([d + (not flip_x)], [d + flip_y]), t.dtype_word(a.out_dtype, t.dtype(x)), (list(range(d)), list(range(d))))


@operator("nn.bias_add(data: 1d+, bias; axis=1)", kind=Kind.BROADCAST, work="elementwise")
def bias_add(t: Relay, a: Attributes, x: Node, bias: Node) -> Node:
    """Adds a number per channel."""
    t.same_dtype(x, bias)
    d = t.axis(x, a.axis)
    if t.rank(bias) != 1 or t.shape(bias)[0] != t.shape(x)[d]:
        raise TypeFault(f"data axis {a.axis} is {t.shape(x)[d]}, bias is {shape_text(t.shape(bias))}")
    return t.add(x, t.along(bias, x, d))


