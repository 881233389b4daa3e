"""Dot and scaled-dot (ragged-dot: ``ragged.py``). Narrow floats are summed in f32 and rounded once, integers wrap in the result's type."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from irscope.graph import Dim, DType, Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import S32
from irscope.graph.node import Emitter, Index, Read, RegisterHandle, Run, Value
from irscope.lazy import Array, np
from irscope.ops import infer
from irscope.ops.attributes import Dot
from irscope.ops.faults import TypeFault
from irscope.ops.nests import accumulator, loops, zero
from irscope.ops.numerics import convert, flushed
from irscope.ops.registry import declare
from irscope.ops.shapes import higher_precision, merge, same_size, size


@dataclass(frozen=True, slots=True)
class DotDims:
    """The role of each dimension on each side; ``lhs_free`` and ``rhs_free`` are the remaining ones, in order."""

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_free: tuple[int, ...]
    rhs_free: tuple[int, ...]

    @staticmethod
    def of(node: Node) -> DotDims:
        """The dimension numbers of a dot; those that the text omits are empty."""
        attrs = Dot.of(node)
        lb, rb, lc, rc = attrs.lhs_batch_dims, attrs.rhs_batch_dims, attrs.lhs_contracting_dims, attrs.rhs_contracting_dims
        lhs, rhs = infer.array(node, 0, "the left side"), infer.array(node, 1, "the right side")
        return DotDims(lb, rb, lc, rc, tuple(d for d in range(lhs.rank) if d not in (*lb, *lc)),
                       tuple(d for d in range(rhs.rank) if d not in (*rb, *rc)))

    def swapped(self) -> DotDims:
        """Those of the product with its operands exchanged."""
        return DotDims(self.rhs_batch, self.lhs_batch, self.rhs_contracting, self.lhs_contracting, self.rhs_free, self.lhs_free)

    def check(self, node: Node, lhs: TensorType, rhs: TensorType) -> None:
        """Check that every number is in range and occurs once, and that the sizes of pairs are equal."""
        for side, rank, batch, contracting in (("lhs", lhs.rank, self.lhs_batch, self.lhs_contracting),
                                               ("rhs", rhs.rank, self.rhs_batch, self.rhs_contracting)):
            for number in (*batch, *contracting):
                infer.dimension(node, number, rank, f"{side} dimension")
            infer.distinct(node, (*batch, *contracting), f"the batch and contracting dimensions of the {side}")
        for what, mine, other in (("contracting", self.lhs_contracting, self.rhs_contracting), ("batch", self.lhs_batch, self.rhs_batch)):
            if len(mine) != len(other):
                raise TypeFault(f"{node.op.name} has {len(mine)} {what} dimensions on the left, but {len(other)} on the right")
            for i, j in zip(mine, other, strict=True):
                if not same_size(lhs.shape[i], rhs.shape[j]):
                    raise TypeFault(f"{what} dimensions of {node.op.name} differ: dimension {i} of {lhs} is {lhs.shape[i]}, "
                                    f"dimension {j} of {rhs} is {rhs.shape[j]}")

    def result(self, lhs: TensorType, rhs: TensorType) -> tuple[Dim, ...]:
        """The shape of the result: batch, left free, right free dimensions."""
        batch = tuple(merge(lhs.shape[i], rhs.shape[j]) for i, j in zip(self.lhs_batch, self.rhs_batch, strict=True))
        return batch + tuple(lhs.shape[d] for d in self.lhs_free) + tuple(rhs.shape[d] for d in self.rhs_free)

    def places(self, index: Sequence[object], at: Sequence[object]) -> tuple[list[Any], list[Any]]:
        """The operand indices for a result index and an index into the contracting dimensions."""
        batch, free = index[:len(self.lhs_batch)], index[len(self.lhs_batch):]
        lhs = dict(zip((*self.lhs_batch, *self.lhs_free, *self.lhs_contracting), (*batch, *free[:len(self.lhs_free)], *at), strict=True))
        rhs = dict(zip((*self.rhs_batch, *self.rhs_free, *self.rhs_contracting), (*batch, *free[len(self.lhs_free):], *at), strict=True))
        return [lhs[d] for d in range(len(lhs))], [rhs[d] for d in range(len(rhs))]


def contracted_dtype(node: Node, lhs: DType, rhs: DType) -> DType:
    """The element type of the result: the declared one, where there is one that is wide enough; else the wider of the operands'."""
    own = higher_precision(lhs, rhs)
    declared = node.type.dtype if isinstance(node.type, TensorType) else own
    if declared is own:
        return own
    if not own.is_float and declared.bits < own.bits:
        raise TypeFault(f"{node.op.name} of {lhs} and {rhs} gives {declared}, which must not be narrower than {own}")
    return declared


def multiply_add(k: Emitter, register: RegisterHandle, x: Value, y: Value) -> None:
    """``register += x * y`` in the register's own element type; on pred, ``or`` of ``and``."""
    have = register.get()
    x, y = k.convert(x, have.dtype), k.convert(y, have.dtype)
    if have.dtype.is_float:
        register.set(k.fma(x, y, have))
    else:
        register.set(k.binary("add", have, k.binary("mul", x, y)))


def _dot_type(node: Node) -> Type:
    infer.arity(node, 2)
    return _pair_type(node)


def _pair_type(node: Node) -> TensorType:
    dims = DotDims.of(node)
    lhs, rhs = infer.array(node, 0), infer.array(node, 1)
    dims.check(node, lhs, rhs)
    return TensorType(contracted_dtype(node, lhs.dtype, rhs.dtype), dims.result(lhs, rhs))


def operand_shapes(node: Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return infer.array(node, 0).dims(), infer.array(node, 1).dims()


def matmul(node: Node, dims: DotDims, lhs: Array, rhs: Array) -> Array:
    """The dot of two arrays, in the element type in which numpy sums products: batch, left free, right free."""
    wide = numpy_sum_type(node)
    x, y = (flushed(convert(a, wide)) for a in (lhs, rhs))
    batch = tuple(lhs.shape[d] for d in dims.lhs_batch)
    depth = prod(lhs.shape[d] for d in dims.lhs_contracting)
    left, right = tuple(lhs.shape[d] for d in dims.lhs_free), tuple(rhs.shape[d] for d in dims.rhs_free)
    x = x.transpose(*dims.lhs_batch, *dims.lhs_free, *dims.lhs_contracting).reshape(prod(batch), prod(left), depth)
    y = y.transpose(*dims.rhs_batch, *dims.rhs_contracting, *dims.rhs_free).reshape(prod(batch), depth, prod(right))
    with np.errstate(all="ignore"):
        return flushed(products(x, y, wide).reshape(batch + left + right))


def products(x: Array, y: Array, wide: DType) -> Array:
    """Products of matrices, summed in an element type.

    BLAS multiplies a complex sum by 1 + 0i, which turns an infinite one into NaN: where not all is finite, the parts are multiplied.
    """
    if not wide.is_complex or (np.isfinite(x).all() and np.isfinite(y).all()):
        total: Array = np.matmul(x, y, dtype=wide.numpy())
        return total
    real = np.matmul(x.real, y.real) - np.matmul(x.imag, y.imag)
    result = np.empty(real.shape, wide.numpy())
    result.real, result.imag = real, np.matmul(x.real, y.imag) + np.matmul(x.imag, y.real)
    return result


def result_dtype(node: Node) -> DType:
    """The element type of the (array) result."""
    return infer.declared_array(node).dtype


def sum_type(node: Node) -> DType:
    """The element type in which a contraction accumulates."""
    return accumulator(result_dtype(node), infer.array(node, 0).dtype, infer.array(node, 1).dtype)


def numpy_sum_type(node: Node) -> DType:
    """The type in which the reference accumulates: numpy does not multiply sub-byte integers, and sums in s32 have the same low bits."""
    wide = sum_type(node)
    return S32 if wide.is_integer and wide.bits < 8 else wide


def _dot_reference(run: Run, node: Node, lhs: Array, rhs: Array) -> Array:
    return convert(matmul(node, DotDims.of(node), lhs, rhs), result_dtype(node))


def dot_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    """One element of a dot: the sum of products over the contracting dimensions, in :func:`sum_type`. ``read`` may scale the operands."""
    dims = DotDims.of(node)
    shape, _ = operand_shapes(node)
    total = k.reg(sum_type(node), zero(k, sum_type(node)))
    with loops(k, [shape[d] for d in dims.lhs_contracting]) as at:
        left, right = dims.places(index, at)
        multiply_add(k, total, read(0, left), read(1, right))
    return k.convert(total.get(), result_dtype(node))


def _depth(node: Node) -> int:
    lhs = infer.array(node, 0)
    return prod(size(lhs.shape[d]) or 1 for d in Dot.of(node).lhs_contracting_dims)


def dot_cost(node: Node) -> float:
    out = infer.declared_array(node)
    return 2.0 * out.elements * _depth(node) * (4 if out.dtype.is_complex else 1)


dot = declare(Op(
    "dot", kind=Kind.CONTRACTION,
    doc="Sums of products over the contracting dimensions: batch, left free, right free. Without contracting dimensions the outer product.",
    infer=_dot_type, reference=_dot_reference, element=dot_element, cost=dot_cost))


# ---------------------------------------------------------------- scaled-dot

def _scaled_dot_type(node: Node) -> Type:
    infer.arity(node, 4)
    result = _pair_type(node)
    scaled = False
    for number, side in ((2, "left"), (3, "right")):
        scale, operand = infer.array(node, number, f"the scale of the {side} side"), infer.array(node, number - 2)
        if scale.rank == 0 and operand.rank:
            continue
        scaled = True
        if scale.rank != operand.rank:
            raise TypeFault(f"the scale of the {side} side of scaled-dot has a different number of dimensions than its operand: "
                            f"{infer.plain(scale)} and {infer.plain(operand)}", "a scalar scale stands for none")
        for d, (n, blocks) in enumerate(zip(operand.shape, scale.shape, strict=True)):
            whole, parts = size(n), size(blocks)
            if whole is not None and parts is not None and (whole % parts if parts else whole):
                raise TypeFault(f"dimension {d} of the scale {infer.plain(scale)} does not divide that of {infer.plain(operand)}")
    if not scaled:
        raise TypeFault("scaled-dot has two scalar scales, but at least one side must be scaled", "write dot instead")
    return result


def _scaled_dot_reference(run: Run, node: Node, lhs: Array, rhs: Array, lhs_scale: Array, rhs_scale: Array) -> Array:
    wide = sum_type(node)

    def scaled(x: Array, scale: Array) -> Array:
        if scale.ndim != x.ndim:
            return convert(x, wide)
        for d, (n, blocks) in enumerate(zip(x.shape, scale.shape, strict=True)):
            scale = np.repeat(scale, n // blocks if blocks else 1, d)
        return convert(x, wide) * convert(scale, wide)
    return convert(matmul(node, DotDims.of(node), scaled(lhs, lhs_scale), scaled(rhs, rhs_scale)), result_dtype(node))


def _scaled_dot_element(k: Emitter, node: Node, index: Sequence[Value], read: Read) -> Value:
    shapes = operand_shapes(node)

    def scaled(number: int, at: Sequence[Index]) -> Value:
        scale = infer.array(node, number + 2)
        x = k.convert(read(number, at), sum_type(node))
        if scale.rank != len(at):
            return x
        if 0 in shapes[number]:
            return x  # never read, and without a block to divide by
        blocks = [i // (n // b) for i, n, b in zip(at, shapes[number], scale.dims(), strict=True)]
        return k.binary("mul", x, k.convert(read(number + 2, blocks), sum_type(node)))
    return dot_element(k, node, index, scaled)


scaled_dot = declare(Op(
    "scaled-dot", kind=Kind.CONTRACTION, infer=_scaled_dot_type, reference=_scaled_dot_reference, element=_scaled_dot_element,
    cost=dot_cost,
    doc="``dot(lhs * lhs_scale, rhs * rhs_scale)``, where one element of a scale applies to a block; a scalar scale means none."))
