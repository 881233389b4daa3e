"""Batch normalisation over all dimensions but ``feature_index``: each operator is defined by the primitives that it expands to.

    (y, mean, var) = batch-norm-training(x, scale, offset)     y = (x - mean) * rsqrt(var + epsilon) * scale + offset
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from irscope.graph import Builder, DType, Node, Op, TensorType, TupleType, Type
from irscope.graph.dtypes import F32, F64
from irscope.graph.node import Run
from irscope.lazy import Array, np
from irscope.ops.attributes import BatchNorm
from irscope.ops.building import apply, broadcast, convert, full, sum_over, type_of
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, array, attr, dimension, equal_dims, kind_of, plain
from irscope.ops.numerics import convert as rounded
from irscope.ops.numerics import widen
from irscope.ops.registry import declare, get
from irscope.ops.shapes import fits

Raw = Mapping[str, str]


# ---- types

def _checked(node: Node, names: Sequence[str], whole: Sequence[int] = ()) -> tuple[TensorType, TensorType]:
    """The type of the operand and of a per-feature value; ``names`` are the operands, ``whole`` those as large as the first."""
    arity(node, len(names))
    attr(node, BatchNorm.epsilon)
    x = array(node, 0, names[0])
    kind_of(node, x, ("float",))
    feature = dimension(node, attr(node, BatchNorm.feature_index), x.rank, "feature_index")
    for number, name in enumerate(names[1:], 1):
        t = array(node, number, name)
        kind_of(node, t, ("float",), name)
        if number in whole:
            if not fits(t, x, any_precision=True):
                raise TypeFault(f"{name} of {node.op.name} is {plain(t)}, but the operand is {plain(x)}")
        elif t.rank != 1:
            raise TypeFault(f"{name} of {node.op.name} has one value a feature, but is {plain(t)}")
        else:
            equal_dims(node, t.shape[0], x.shape[feature], f"{name} {plain(t)} and dimension {feature} of {plain(x)}")
    return TensorType(x.dtype, x.shape), TensorType(x.dtype, (x.shape[feature],))


def _infer_training(node: Node) -> Type:
    x, per_feature = _checked(node, ("operand", "scale", "offset"))
    return TupleType((x, per_feature, per_feature))


def _infer_inference(node: Node) -> Type:
    return _checked(node, ("operand", "scale", "offset", "mean", "variance"))[0]


def _infer_grad(node: Node) -> Type:
    x, per_feature = _checked(node, ("operand", "scale", "mean", "variance", "gradient"), whole=(4,))
    return TupleType((x, per_feature, per_feature))


# ---- expansions

class _Features:
    """The shared part of the three expansions: the wide type, and conversions between arrays and per-feature values."""

    def __init__(self, builder: Builder, node: Node, x: Node) -> None:
        self.builder, self.x = builder, x
        self.narrow = type_of(x).dtype
        self.wide: DType = F64 if self.narrow is F64 else F32
        self.feature = int(BatchNorm.of(node).feature_index)
        self.whole = TensorType(self.wide, type_of(x).shape)
        self.others = tuple(d for d in range(self.whole.rank) if d != self.feature)
        self.epsilon = BatchNorm.of(node).epsilon

    def widened(self, *nodes: Node) -> list[Node]:
        return [convert(self.builder, n, self.wide) for n in nodes]

    def narrowed(self, *nodes: Node) -> list[Node]:
        return [convert(self.builder, n, self.narrow) for n in nodes]

    def do(self, name: str, *operands: Node) -> Node:
        return apply(self.builder, name, *operands)

    def spread(self, x: Node) -> Node:
        """Broadcast per-feature values to every element."""
        return broadcast(self.builder, x, self.whole, (self.feature,))

    def sum(self, x: Node) -> Node:
        return sum_over(self.builder, x, self.others)

    def mean(self, x: Node) -> Node:
        total = self.sum(x)
        return self.do("divide", total, self.count(type_of(total)))

    def count(self, like: TensorType) -> Node:
        """The number of elements of each feature, in the shape of ``like``; sizes known only at run time are queried."""
        known = prod(n for d in self.others if isinstance(n := self.whole.shape[d], int))
        made = full(self.builder, known, like)
        for d in self.others:
            if not isinstance(self.whole.shape[d], int):
                size = self.builder.add(get("get-dimension-size"), (self.x,), {"dimensions": (d,)})
                made = self.do("multiply", made, broadcast(self.builder, convert(self.builder, size, like.dtype), like, ()))
        return made

    def inverse_deviation(self, variance: Node) -> Node:
        """``rsqrt(variance + epsilon)``."""
        return self.do("rsqrt", self.do("add", variance, full(self.builder, self.epsilon, type_of(variance))))

    def normalised(self, centred: Node, scale: Node, offset: Node, variance: Node) -> Node:
        factor = self.do("multiply", self.inverse_deviation(variance), scale)
        return self.do("add", self.do("multiply", centred, self.spread(factor)), self.spread(offset))


def _expand_training(builder: Builder, node: Node, operands: Sequence[Node], raw: Raw) -> Node:
    f = _Features(builder, node, operands[0])
    x, scale, offset = f.widened(*operands)
    mean = f.mean(x)
    centred = f.do("subtract", x, f.spread(mean))
    variance = f.mean(f.do("multiply", centred, centred))
    return apply(builder, "tuple", *f.narrowed(f.normalised(centred, scale, offset, variance), mean, variance))


def _expand_inference(builder: Builder, node: Node, operands: Sequence[Node], raw: Raw) -> Node:
    f = _Features(builder, node, operands[0])
    x, scale, offset, mean, variance = f.widened(*operands)
    centred = f.do("subtract", x, f.spread(mean))
    return f.narrowed(f.normalised(centred, scale, offset, variance))[0]


def _expand_grad(builder: Builder, node: Node, operands: Sequence[Node], raw: Raw) -> Node:
    """With d = rsqrt(var + epsilon) and c = x - mean:

        offset' = sum(dy)     scale' = sum(dy * c) * d     x' = scale * d * (dy - mean(dy) - c * mean(dy * c) * d * d)
    """
    f = _Features(builder, node, operands[0])
    x, scale, mean, variance, gradient = f.widened(*operands)
    centred = f.do("subtract", x, f.spread(mean))
    inverse = f.inverse_deviation(variance)
    product = f.do("multiply", gradient, centred)
    to_offset, moment = f.sum(gradient), f.sum(product)
    to_scale = f.do("multiply", moment, inverse)
    count = f.count(type_of(moment))
    slope = f.do("divide", f.do("multiply", moment, f.do("multiply", inverse, inverse)), count)
    level = f.do("divide", to_offset, count)
    inner = f.do("subtract", f.do("subtract", gradient, f.spread(level)), f.do("multiply", centred, f.spread(slope)))
    to_x = f.do("multiply", inner, f.spread(f.do("multiply", scale, inverse)))
    return apply(builder, "tuple", *f.narrowed(to_x, to_scale, to_offset))


# ---- references

def _parts(node: Node, *operands: Array) -> tuple[list[Array], tuple[int, ...], int]:
    """The operands in f64, per-feature values shaped to broadcast; the summed axes; the number of elements along them."""
    feature, x = BatchNorm.of(node).feature_index, operands[0]
    wide = [widen(o).astype(np.float64) for o in operands]
    shape = [-1 if d == feature else 1 for d in range(x.ndim)]
    axes = tuple(d for d in range(x.ndim) if d != feature)
    return [w.reshape(shape) if w.ndim == 1 and (x.ndim > 1) else w for w in wide], axes, prod(x.shape[a] for a in axes)


def _given(node: Node, *values: Array) -> object:
    """The results in their declared element types, per-feature values flattened."""
    leaves = [t for t in node.type.leaves() if isinstance(t, TensorType)]
    done = [rounded(np.reshape(v, t.dims()), t.dtype) for v, t in zip(values, leaves, strict=True)]
    return tuple(done) if isinstance(node.type, TupleType) else done[0]


def _training(run: Run, node: Node, *operands: Array) -> object:
    with np.errstate(all="ignore"):
        (x, scale, offset), axes, count = _parts(node, *operands)
        mean = x.sum(axis=axes, keepdims=True) / count
        variance = ((x - mean) ** 2).sum(axis=axes, keepdims=True) / count
        return _given(node, (x - mean) / np.sqrt(variance + BatchNorm.of(node).epsilon) * scale + offset, mean, variance)


def _inference(run: Run, node: Node, *operands: Array) -> object:
    with np.errstate(all="ignore"):
        (x, scale, offset, mean, variance), _, _ = _parts(node, *operands)
        return _given(node, (x - mean) / np.sqrt(variance + BatchNorm.of(node).epsilon) * scale + offset)


def _grad(run: Run, node: Node, *operands: Array) -> object:
    with np.errstate(all="ignore"):
        (x, scale, mean, variance, gradient), axes, count = _parts(node, *operands)
        inverse, centred = 1 / np.sqrt(variance + BatchNorm.of(node).epsilon), x - mean
        to_offset = gradient.sum(axis=axes, keepdims=True)
        moment = (gradient * centred).sum(axis=axes, keepdims=True)
        to_x = scale * inverse * (gradient - to_offset / count - centred * moment * inverse * inverse / count)
        return _given(node, to_x, moment * inverse, to_offset)


batch_norm_training = declare(Op(
    "batch-norm-training", work="reduction", doc="(y, mean, biased variance) of (x, scale, offset), with the statistics of x itself.",
    infer=_infer_training, reference=_training, expand=_expand_training))
batch_norm_inference = declare(Op(
    "batch-norm-inference", work="reduction", doc="y of (x, scale, offset, mean, variance), with given statistics.",
    infer=_infer_inference, reference=_inference, expand=_expand_inference))
batch_norm_grad = declare(Op(
    "batch-norm-grad", work="reduction", doc="The gradients for (x, scale, offset) from (x, scale, mean, variance, gradient of y).",
    infer=_infer_grad, reference=_grad, expand=_expand_grad))
