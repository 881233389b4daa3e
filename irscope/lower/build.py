"""The builder of kernels, through which operators and kernel templates emit tile IR.

    k = KernelBuilder("scale")
    x, y = k.buffer("x", F32, (n,), "in"), k.buffer("y", F32, (n,), "out")
    with k.par(0, n, 16) as i:
        k.store(y, i, k.binary("mul", k.load(x, i, 16), 2.0))
    kernel = k.finish()

It is the :class:`irscope.graph.node.Emitter`: values come from :mod:`irscope.lower.arithmetic`, statements from
:mod:`irscope.lower.statements`.
Unrolling and tails are Python loops of the caller. A loop with constant bounds and one trip is emitted without the loop, one without trips
not at all; conditions that are known fold in the same way. Loads are reused as long as no store can intervene, and loads from memory that
is never written are hoisted out of the loops that they do not depend on.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from irscope.fusion.views import row_major
from irscope.graph import DType, Graph
from irscope.lazy import Array, np
from irscope.lower.inline import evaluate
from irscope.lower.register import ComplexReg, Reg
from irscope.lower.statements import StatementBuilder
from irscope.lower.tidy import tidy
from irscope.lower.tile import Buffer, Declare, Expr, Kernel, Register, Schedule
from irscope.lower.view import View


class KernelBuilder(StatementBuilder):
    """Writes one kernel."""

    def finish(self, flops: float = 0.0, bytes: float = 0.0, origin: tuple[str, ...] = (), schedule: Schedule | None = None) -> Kernel:
        """The kernel, without the statements whose results are unused."""
        if len(self._scopes) != 1:
            raise ValueError(f"kernel {self.kernel.name} is finished inside a loop")
        kernel = self.kernel
        kernel.flops, kernel.bytes, kernel.origin = flops, bytes, origin
        kernel.schedule.update(schedule or {})
        tidy(kernel, self)
        return kernel

    # ---- buffers

    def buffer(self, name: str, dtype: DType, shape: Sequence[int], scope: str, elements: int | None = None,
               data: Array | None = None) -> Buffer:
        """Declare memory; ``elements`` exceeds the shape where there are halos or padding. The name is made unique."""
        shape = tuple(shape)
        buffer = Buffer(self._fresh(name), dtype, shape, scope, prod(shape) if elements is None else elements, data=data)
        self.kernel.buffers.append(buffer)
        return buffer

    def view(self, buffer: Buffer, shape: Sequence[int] | None = None, strides: Sequence[int] | None = None, offset: int = 0) -> View:
        """An array view of a buffer, by default with the buffer's shape and row-major strides."""
        shape = tuple(buffer.shape if shape is None else shape)
        return View(self, buffer, shape, row_major(shape) if strides is None else tuple(strides), offset)

    def scratch(self, dtype: DType, shape: Sequence[int]) -> View:
        """Memory private to the kernel, one copy for each chunk of ``par`` iterations, uninitialised."""
        return self.view(self.buffer("scratch", dtype, shape, "scratch"))

    def table(self, values: Array | Sequence[complex], dtype: DType) -> View:
        """Constant data that is stored with the kernel."""
        array = np.ascontiguousarray(np.asarray(values, dtype=dtype.numpy()))
        return self.view(self.buffer("table", dtype, array.shape, "const", data=array))

    # ---- registers and bodies

    def reg(self, dtype: DType, init: Expr | complex, lanes: int | None = None) -> Reg | ComplexReg:
        """A variable with ``get()`` and ``set(value)``; it has as many lanes as its first value."""
        first = init if isinstance(init, Expr) else self.const(init, dtype)
        if first.dtype is not dtype:
            raise TypeError(f"a register of {dtype} begins with {first.dtype}")
        if lanes is not None:
            first = self.splat(first, lanes)
        if dtype.is_complex:
            re, im = self.real(first), self.imag(first)
            return ComplexReg(self, self._reg(re), self._reg(im))
        return self._reg(first)

    def _reg(self, first: Expr) -> Reg:
        register = Register(self._fresh("r"), first.dtype, first.lanes)
        self.emit(Declare(register, first))
        return Reg(self, register)

    def inline(self, graph: Graph, args: Sequence[Expr]) -> list[Expr]:
        """Evaluate a body on scalars (or on lanes): its result, or the leaves of its result tuple."""
        return evaluate(self, graph, args)
