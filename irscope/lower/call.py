"""The arguments of a kernel under construction: each buffer is declared together with the memory that the launch passes for it."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.fusion.views import Strides
from irscope.graph import Node
from irscope.lower.build import KernelBuilder
from irscope.lower.templates import Arg, KernelOperand, LaunchStage, Packed, Problem
from irscope.lower.tile import Buffer, BufferAccess, Kernel
from irscope.lower.traversal import walk
from irscope.lower.values import buffer_name
from irscope.lower.view import View


class KernelOperands:
    """One kernel's operands. ``views`` holds those declared for a value of the problem in its own storage."""

    def __init__(self, k: KernelBuilder, problem: Problem | None = None) -> None:
        """Declares all inputs and outputs of ``problem``, in order, where it is given."""
        self.k = k
        self.views: dict[Node, View] = {}
        self._args: dict[Buffer, Arg] = {}
        if problem is not None:
            self._declare(problem)

    def _declare(self, problem: Problem) -> None:
        written = {s.slot for s in problem.outs.values()}
        for node, storage in problem.ins.items():
            shared = problem.in_place and storage.slot in written
            self.views[node] = self.bind(problem.operand(node), "inout" if shared else "in", buffer_name(node))
        for node in problem.outs:
            part = problem.group.kind == "update"  # the rest of the result is in memory already
            self.views[node] = self.bind(problem.operand(node), "inout" if part else "out", buffer_name(node))

    def bind(self, operand: KernelOperand, scope: str, name: str) -> View:
        """Declare a buffer for an operand, as the array that it holds: with its own offset and strides."""
        storage = operand.storage
        buffer = self.k.buffer(name, storage.dtype, storage.shape, scope, operand.elements)
        buffer.layout = Strides(storage.shape, storage.strides, operand.first)
        buffer.room = storage.room if operand.around else ()
        self._args[buffer] = operand
        return self.k.view(buffer, storage.shape, storage.strides, operand.first)

    def packed(self, packed: Packed, shape: Sequence[int], name: str) -> View:
        """Declare a buffer for a constant in another order, row-major."""
        buffer = self.k.buffer(name, packed.dtype, shape, "in")
        self._args[buffer] = packed
        return self.k.view(buffer)

    def stage(self, kernel: Kernel) -> LaunchStage:
        """The launch of the finished kernel. Inputs that the kernel does not read are dropped: a packed constant replaces the original."""
        used = {s.buffer for s in walk(kernel.body) if isinstance(s, BufferAccess)}
        kernel.buffers = [b for b in kernel.buffers if b in used or b.scope != "in"]
        return LaunchStage(kernel, [self._args[b] for b in kernel.params()])
