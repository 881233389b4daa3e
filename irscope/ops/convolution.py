"""Convolution with all options of HLO: strides, padding of either sign, dilation on both sides, reversal, feature and batch groups."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import TypeVar

from irscope.graph import Dim, Kind, Node, Op, TensorType, Type
from irscope.graph.node import Emitter, Index, Read, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Convolution
from irscope.ops.attrs import ConvDims, Window
from irscope.ops.contraction import contracted_dtype, multiply_add, numpy_sum_type, products, result_dtype, sum_type
from irscope.ops.faults import TypeFault
from irscope.ops.nests import both, guard, loops, zero
from irscope.ops.numerics import convert, flushed
from irscope.ops.registry import declare
from irscope.ops.shapes import size
from irscope.ops.window import meeting, operand_place, stated_window, window_of

MAX_TAPS = 1 << 10
"""Window elements along a dimension up to which pairs are counted exactly: more than those of any network."""
MEASURED = 256
"""Counts that are kept: a network repeats few convolutions."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Conv:
    """A convolution in one canonical order: operand [batch, *spatial, feature], kernel [*spatial, in, out], result as the operand.

    ``features`` is the number of input features that one kernel sees, ``outputs`` all output features.
    """

    dims: ConvDims
    window: Window
    feature_groups: int
    batch_groups: int
    batch: int
    spatial: tuple[int, ...]
    out_spatial: tuple[int, ...]
    features: int
    outputs: int

    @staticmethod
    def of(node: Node) -> Conv:
        """The convolution of a node with checked types and known dimensions."""
        dims, window = _dims(node), stated_window(node)
        lhs, rhs = infer.array(node, 0).dims(), infer.array(node, 1).dims()
        spatial = tuple(lhs[d] for d in dims.lhs_spatial)
        out_spatial = tuple(window.output_size(i, n) for i, n in enumerate(spatial))
        return Conv(dims, window, *_groups(node), lhs[dims.lhs_batch], spatial, out_spatial, rhs[dims.rhs_input], rhs[dims.rhs_output])

    def result_index(self, index: Sequence[T]) -> tuple[T, list[T], T]:
        """Batch, spatial and feature part of an index into the result."""
        return index[self.dims.out_batch], [index[d] for d in self.dims.out_spatial], index[self.dims.out_feature]

    def lhs_index(self, batch: T, spatial: Sequence[T], feature: T) -> list[T]:
        """The index of an operand element."""
        return _ordered((self.dims.lhs_batch, *self.dims.lhs_spatial, self.dims.lhs_feature), (batch, *spatial, feature))

    def rhs_index(self, spatial: Sequence[Index], feature: Index, output: Index) -> list[Index]:
        """The index of a kernel element; ``spatial`` counts in the direction of the operand; this function applies reversal."""
        turned = [n - 1 - i if reverse else i for i, n, reverse in zip(spatial, self.window.size, self.window.rhs_reversal, strict=True)]
        return _ordered((*self.dims.rhs_spatial, self.dims.rhs_input, self.dims.rhs_output), (*turned, feature, output))


def _ordered(dimensions: Sequence[int], values: Sequence[T]) -> list[T]:
    return [value for _, value in sorted(zip(dimensions, values, strict=True), key=lambda pair: pair[0])]


def _dims(node: Node) -> ConvDims:
    dims: object = infer.attr(node, Convolution.dim_labels)
    if not isinstance(dims, ConvDims):  # kept as text: it has unknown dimensions (?)
        raise TypeFault(f"dim_labels={dims} does not say every dimension of a convolution")
    return dims


def _groups(node: Node) -> tuple[int, int]:
    return Convolution.of(node).feature_group_count, Convolution.of(node).batch_group_count


def _check_groups(node: Node, lhs: TensorType, rhs: TensorType) -> None:
    dims, (feature_groups, batch_groups) = _dims(node), _groups(node)
    for what, count in (("feature_group_count", feature_groups), ("batch_group_count", batch_groups)):
        if count < 1:
            raise TypeFault(f"{what} of convolution must be at least 1, but is {count}")
    if feature_groups > 1 and batch_groups > 1:
        raise TypeFault(f"convolution has feature_group_count={feature_groups} and batch_group_count={batch_groups}: one must be 1")
    features, batch = size(lhs.shape[dims.lhs_feature]), size(lhs.shape[dims.lhs_batch])
    inputs, outputs = size(rhs.shape[dims.rhs_input]), size(rhs.shape[dims.rhs_output])
    if features is not None and inputs is not None and features != inputs * feature_groups:
        raise TypeFault(f"the operand {lhs} of convolution has {features} features, but the kernel {rhs} takes {inputs} "
                        f"in {feature_groups} group{'s' * (feature_groups != 1)}",
                        "the features of the operand are those of the kernel times feature_group_count")
    for what, total, groups in (("output features", outputs, feature_groups), ("output features", outputs, batch_groups),
                                ("elements in the batch", batch, batch_groups)):
        if total is not None and total % groups:
            raise TypeFault(f"convolution has {total} {what}, which {groups} groups do not divide: {lhs} and {rhs}")


def _convolution_type(node: Node) -> Type:
    infer.arity(node, 2)
    lhs, rhs = infer.array(node, 0, "the operand"), infer.array(node, 1, "the kernel")
    dims = _dims(node)
    rank = len(dims.lhs_spatial) + 2
    for role, t in (("operand", lhs), ("kernel", rhs)):
        if t.rank != rank:
            raise TypeFault(f"the {role} of convolution is {t}, but dim_labels={dims} needs rank {rank}")
    window = window_of(node, rank - 2) if rank > 2 or Convolution.window.given(node) is not None else stated_window(node)
    _check_groups(node, lhs, rhs)
    for i, d in enumerate(dims.rhs_spatial):
        infer.equal_dims(node, rhs.shape[d], window.size[i], f"dimension {d} of the kernel {rhs} and size {i} of the window")
    shape: list[Dim] = [0] * rank
    batch = lhs.shape[dims.lhs_batch]
    groups = _groups(node)[1]
    shape[dims.out_batch] = batch // groups if isinstance(batch, int) else batch
    shape[dims.out_feature] = rhs.shape[dims.rhs_output]
    for i, (source, target) in enumerate(zip(dims.lhs_spatial, dims.out_spatial, strict=True)):
        length = size(lhs.shape[source])
        shape[target] = lhs.shape[source] if length is None else window.output_size(i, length)
    return TensorType(contracted_dtype(node, lhs.dtype, rhs.dtype), tuple(shape))


def _convolution_reference(run: Run, node: Node, lhs: Array, rhs: Array) -> Array:
    conv, wide = Conv.of(node), numpy_sum_type(node)
    dims, window, n = conv.dims, conv.window, len(conv.spatial)
    x = flushed(convert(lhs, wide)).transpose(dims.lhs_batch, *dims.lhs_spatial, dims.lhs_feature)
    w = flushed(convert(rhs, wide)).transpose(*dims.rhs_spatial, dims.rhs_input, dims.rhs_output)
    w = np.flip(w, tuple(i for i in range(n) if window.rhs_reversal[i]))
    batch = conv.batch // conv.batch_groups
    out = np.zeros((batch, *conv.out_spatial, conv.outputs), wide.numpy())
    groups = max(conv.feature_groups, conv.batch_groups)
    with np.errstate(all="ignore"):
        for at in np.ndindex(*window.size):
            to, whence = meeting(window, at, conv.spatial, conv.out_spatial)
            seen = _at(x, whence)
            for g in range(groups):
                mine = slice(g * conv.outputs // groups, (g + 1) * conv.outputs // groups)
                block = seen[..., g * conv.features:(g + 1) * conv.features] if conv.feature_groups > 1 else seen
                block = block[g * batch:(g + 1) * batch] if conv.batch_groups > 1 else block
                part = products(block.reshape(prod(block.shape[:-1]), conv.features), w[at][:, mine], wide)
                out[_grid(to, batch, mine)] += part.reshape(*block.shape[:-1], mine.stop - mine.start)
    inverse = _ordered((dims.out_batch, *dims.out_spatial, dims.out_feature), range(n + 2))
    return convert(flushed(out.transpose(inverse)), result_dtype(node))


def _at(x: Array, places: tuple[Array, ...]) -> Array:
    """The elements at a grid of spatial positions, for the whole batch and all features."""
    for d, p in enumerate(places):
        x = np.take(x, p.reshape(-1), d + 1)
    return x


def _grid(places: tuple[Array, ...], batch: int, outputs: slice) -> tuple[Array, ...]:
    """An open grid over batch, spatial places and output features."""
    return tuple(np.ix_(np.arange(batch), *(p.reshape(-1) for p in places), np.arange(outputs.start, outputs.stop)))


def _convolution_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    conv = Conv.of(node)
    batch, out, output = conv.result_index(index)
    if conv.batch_groups > 1:
        batch = batch + output // (conv.outputs // conv.batch_groups) * (conv.batch // conv.batch_groups)
    first = output // (conv.outputs // conv.feature_groups) * conv.features if conv.feature_groups > 1 else 0
    total = k.reg(sum_type(node), zero(k, sum_type(node)))
    with loops(k, conv.window.size) as at:
        found = [operand_place(k, conv.window, d, (out[d], at[d]), (n, conv.out_spatial[d])) for d, n in enumerate(conv.spatial)]
        with guard(k, both(k, *(inside for _, inside in found))), loops(k, [conv.features]) as [feature]:
            x = read(0, conv.lhs_index(batch, [p for p, _ in found], feature + first))
            multiply_add(k, total, x, read(1, conv.rhs_index(at, feature, output)))
    return k.convert(total.get(), result_dtype(node))


def valid_positions(conv: Conv) -> int:
    """The number of pairs of window and window element that hit the operand, over all spatial dimensions."""
    return prod(_pairs(conv, d) if length else 0 for d, length in enumerate(conv.spatial))


def _pairs(conv: Conv, d: int) -> int:
    """The same along one dimension; for an unrealistically large window, estimated from some of its elements."""
    window = conv.window
    return _counted((window.size[d], window.rhs_dilate[d], window.pad_low[d]), conv.out_spatial[d], window.stride[d], window.lhs_dilate[d],
                    conv.spatial[d])


@lru_cache(MEASURED)
def _counted(taps: tuple[int, int, int], out: int, stride: int, hole: int, length: int) -> int:
    """The sum of :func:`meeting_windows` over the elements of a window, of which ``taps`` are number, dilation and low padding."""
    size, step, low = taps
    each = max(1, size // MAX_TAPS)
    some = range(0, size, each)
    count = sum(meeting_windows(at * step - low, out, stride, hole, length) for at in some)
    return count if each == 1 else count * size // len(some)


def meeting_windows(shift: int, out: int, stride: int, hole: int, length: int) -> int:
    """The number of windows o < ``out`` with o * stride + shift on one of ``length`` elements that are ``hole`` apart."""
    first, last = max(0, -(shift // stride)), min(out - 1, ((length - 1) * hole - shift) // stride)
    common = gcd(stride, hole)
    if shift % common:
        return 0
    apart = hole // common
    first += (-shift // common * pow(stride // common, -1, apart) - first) % apart
    return max(0, (last - first) // apart + 1)


def _convolution_cost(node: Node) -> float:
    conv = Conv.of(node)
    work = conv.features * conv.outputs * (conv.batch // conv.batch_groups) * valid_positions(conv)
    return 2.0 * work * (4 if result_dtype(node).is_complex else 1)


convolution = declare(Op(
    "convolution", kind=Kind.CONTRACTION, infer=_convolution_type, reference=_convolution_reference, element=_convolution_element,
    cost=_convolution_cost,
    doc="Sums of products of a kernel placed over the operand at every position of a window (a correlation: the kernel is not reversed)."))
