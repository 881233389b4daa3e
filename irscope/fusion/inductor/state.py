"""The state of lowering: a tensor for each node, and the buffers in order of creation."""
from __future__ import annotations

from irscope.fusion.inductor.forms import Form, coordinates
from irscope.fusion.inductor.limits import Limits
from irscope.fusion.inductor.program import Program
from irscope.fusion.inductor.strides import shape_of
from irscope.fusion.inductor.values import Buffer, Expression, Storage, Tensor
from irscope.fusion.views import row_major
from irscope.graph import Node, TensorType


class State:
    """Buffers and tensors of a program that is being lowered. ``buffers`` are operations, in order; ``results`` are those of the graph;
    ``parts``: the several results of one reduction."""

    def __init__(self, program: Program, limits: Limits) -> None:
        self.program = program
        self.limits = limits
        self.buffers: list[Buffer] = []
        self.tensors: dict[Node, Tensor] = {}
        self.results: list[Buffer] = []
        self.parts: dict[Node, list[Tensor]] = {}

    def realized(self, tensor: Tensor) -> Buffer:
        """The buffer of a tensor's storage; creates it if there is none."""
        storage = tensor.storage
        if storage.buffer is None:
            assert storage.expression is not None
            storage.buffer = self.stored(storage.node, storage.shape, storage.expression, itemsize=storage.itemsize)
            storage.expression = None
        return storage.buffer

    def stored(self, node: Node, shape: tuple[int, ...], expression: Expression, reduced: tuple[int, ...] = (),
               itemsize: int = 0) -> Buffer:
        """Create a buffer that loops compute."""
        kind = "reduction" if reduced else "pointwise"
        return self.add(Buffer("", kind, node, shape, itemsize or itemsize_of(node), expression=expression, reduced=reduced,
                               members=dict(expression.members)))

    def add(self, buffer: Buffer) -> Buffer:
        """Add a buffer as the next operation."""
        buffer.number = len(self.buffers)
        buffer.name = f"buf{buffer.number}"
        self.buffers.append(buffer)
        return buffer

    def computed(self, node: Node, expression: Expression, value: Form | None = None, shape: tuple[int, ...] | None = None) -> Tensor:
        """A tensor that is an expression so far."""
        shape = shape_of(node) if shape is None else shape
        return Tensor(Storage(node, shape, itemsize_of(node), expression=expression), coordinates(shape), shape, value)

    def given(self, node: Node, strides: tuple[int, ...] | None = None) -> Tensor:
        """A tensor that is in memory from the start."""
        shape = shape_of(node)
        return whole(Buffer(f"%{node.name}", "input", node, shape, itemsize_of(node), strides=strides or row_major(shape)))

    def copied(self, tensor: Tensor, node: Node) -> Buffer:
        """A new buffer with the elements of a tensor."""
        return self.stored(node, tensor.shape, tensor.read(coordinates(tensor.shape)), itemsize=tensor.storage.itemsize)


def whole(buffer: Buffer) -> Tensor:
    """The tensor that covers a whole buffer."""
    return Tensor(Storage(buffer.node, buffer.shape, buffer.itemsize, buffer=buffer), coordinates(buffer.shape), buffer.shape)


def itemsize_of(node: Node) -> int:
    """The size of one element of a value, in bytes."""
    type = node.type
    return max(1, type.dtype.bits // 8) if isinstance(type, TensorType) else 4
