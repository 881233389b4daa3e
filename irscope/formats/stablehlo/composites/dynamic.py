"""Operators whose sizes are operands: once these are constants, each is a static primitive.

    dynamic-reshape(x, constant({2, 3}))    ->    f32[2,3] reshape(x)
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from irscope.graph import Builder, Kind, Node, Op, TensorType, Type
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Constant, Convolution
from irscope.ops.attrs import Window
from irscope.ops.faults import TypeFault
from irscope.ops.infer import array, declared_array, plain
from irscope.ops.registry import declare

Ints = tuple[int, ...]
Static = Callable[[Builder, Node, Sequence[Node], list[Ints]], Node]


def numbers_of(node: Node) -> Ints | None:
    """The numbers of a constant; None where the node is none."""
    literal = Constant.of(node).known if node.op is hlo.constant else None
    return None if literal is None else tuple(int(n) for n in np.asarray(literal.value()).reshape(-1).tolist())


def _declare(name: str, doc: str, first: int, static: Static) -> Op:
    """``first`` is the number of the first operand that holds sizes; all after it do, too."""
    def infer(node: Node) -> Type:
        for number in range(first, len(node.operands)):
            if not array(node, number).dtype.is_integer:
                raise TypeFault(f"operand {number} of {node.op.name} must be of integers, but is {array(node, number)}")
        return plain(declared_array(node))

    def expand(builder: Builder, node: Node, operands: Sequence[Node], raw: Mapping[str, str]) -> Node | None:
        sizes = [numbers_of(operand) for operand in operands[first:]]
        known = [size for size in sizes if size is not None]
        if len(known) != len(sizes) or not all(isinstance(o.type, TensorType) and o.type.is_static for o in operands[:first]):
            return None
        return static(builder, node, operands, known)
    return declare(Op(name, "stablehlo", doc, Kind.INJECTIVE, infer=infer, expand=expand))


def _typed(node: Node, shape: Sequence[int]) -> TensorType:
    if any(size < 0 for size in shape):
        raise TypeFault(f"%{node.name}: {node.op.name} gets the sizes {list(shape)}")
    return TensorType(declared_array(node).dtype, tuple(shape))


def _reshape(builder: Builder, node: Node, operands: Sequence[Node], sizes: list[Ints]) -> Node:
    shape = list(sizes[0])
    operand = operands[0].type
    assert isinstance(operand, TensorType)
    if shape.count(-1) == 1:
        known = int(np.prod([s for s in shape if s != -1], dtype=np.int64))
        shape[shape.index(-1)] = operand.elements // known if known else 0
    made = builder.add(hlo.reshape, operands[:1], {}, _typed(node, shape))
    if operand.elements != _typed(node, shape).elements:
        raise TypeFault(f"%{node.name} reshapes {operand} to {made.type}")
    return made


def _broadcast(builder: Builder, node: Node, operands: Sequence[Node], sizes: list[Ints]) -> Node:
    return stretch(builder, operands[0], _typed(node, sizes[0]), Broadcast.of(node).dimensions)


def stretch(builder: Builder, x: Node, result: TensorType, dimensions: Ints) -> Node:
    """A broadcast that may repeat dimensions of size 1."""
    operand = x.type
    assert isinstance(operand, TensorType)
    if len(dimensions) != operand.rank or not all(0 <= d < result.rank for d in dimensions):
        raise TypeFault(f"dimensions {list(dimensions)} of a broadcast do not fit {operand} and {result}")
    kept = [i for i, d in enumerate(dimensions) if operand.shape[i] == result.shape[d]]
    if len(kept) != operand.rank:
        if any(operand.shape[i] != 1 for i in range(operand.rank) if i not in kept):
            raise TypeFault(f"{operand} does not broadcast to {result}")
        x = builder.add(hlo.reshape, (x,), {}, operand.with_shape(tuple(operand.shape[i] for i in kept)))
    return builder.add(hlo.broadcast, (x,), {"dimensions": tuple(dimensions[i] for i in kept)}, result)


def _iota(builder: Builder, node: Node, operands: Sequence[Node], sizes: list[Ints]) -> Node:
    return builder.add(hlo.iota, (), node.attrs, _typed(node, sizes[0]))


def _check_rank(node: Node, operand: Node, sizes: list[Ints]) -> None:
    """Raise TypeFault where one of the lists has another length than the rank of an operand."""
    type = operand.type
    assert isinstance(type, TensorType)
    for each in sizes:
        if len(each) != type.rank:
            raise TypeFault(f"%{node.name}: {node.op.name} of {type} needs {type.rank} numbers in each operand, but has {len(each)}")


def _slice(builder: Builder, node: Node, operands: Sequence[Node], sizes: list[Ints]) -> Node:
    _check_rank(node, operands[0], sizes)
    starts, limits, strides = sizes
    return builder.add(hlo.slice, operands[:1], {"slice": tuple(zip(starts, limits, strides, strict=True))})


def _pad(builder: Builder, node: Node, operands: Sequence[Node], sizes: list[Ints]) -> Node:
    _check_rank(node, operands[0], sizes)
    return builder.add(hlo.pad, operands[:2], {"padding": tuple(zip(*sizes, strict=True))})


def _gather(builder: Builder, node: Node, operands: Sequence[Node], sizes: list[Ints]) -> Node:
    return builder.add(hlo.gather, operands[:2], {**node.attrs, "slice_sizes": sizes[0]})


def _convolution(builder: Builder, node: Node, operands: Sequence[Node], sizes: list[Ints]) -> Node:
    dims, window, kernel = Convolution.of(node).dim_labels, Convolution.of(node).window, operands[1].type
    assert isinstance(kernel, TensorType) and isinstance(window, Window)
    flat = sizes[0]
    if len(flat) != 2 * len(dims.rhs_spatial):
        raise TypeFault(f"%{node.name}: {node.op.name} needs {2 * len(dims.rhs_spatial)} numbers of padding, but has {len(flat)}")
    window = replace(window, size=tuple(kernel.dims()[i] for i in dims.rhs_spatial), pad_low=flat[::2], pad_high=flat[1::2])
    attrs: dict[str, Any] = {**node.attrs, "window": window}
    made = builder.add(hlo.convolution, operands[:2], attrs)
    assert isinstance(made.type, TensorType)
    made.type = made.type.with_dtype(declared_array(node).dtype)
    return made


RESHAPE = _declare("dynamic-reshape-to", "A reshape to sizes that are an operand.", 1, _reshape)
BROADCAST = _declare("dynamic-broadcast-in-dim", "A broadcast to sizes that are an operand.", 1, _broadcast)
IOTA = _declare("dynamic-iota", "An iota of sizes that are an operand.", 0, _iota)
SLICE = _declare("real-dynamic-slice", "A slice whose starts, limits and strides are operands.", 1, _slice)
PAD = _declare("dynamic-pad", "A pad whose widths are operands.", 2, _pad)
GATHER = _declare("dynamic-gather", "A gather whose slice sizes are an operand.", 2, _gather)
CONVOLUTION = _declare("dynamic-conv", "A convolution whose padding is an operand.", 2, _convolution)
