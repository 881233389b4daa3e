"""What the tests of the backends share: a function of values, run on arrays by the interpreter of the tile IR and as machine code."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irscope.backends.executable import Executable, Port
from irscope.graph import DType, dtype_of
from irscope.lower.build import KernelBuilder
from irscope.lower.interpret import interpret_kernel
from irscope.lower.program import Launch, Program, Slot
from irscope.lower.tile import Expr, Kernel
from irscope.lower.verify import verify_kernel, verify_program

Array = np.ndarray[Any, Any]
Make = Callable[..., Sequence[Expr]]


def elementwise(make: Make, inputs: Sequence[Array], outputs: Sequence[DType], lanes: int = 1,
                precision: str = "default") -> Kernel:
    """A kernel that applies ``make(k, *values)`` to each element, ``lanes`` at a time and the rest one by one."""
    count = inputs[0].size
    k = KernelBuilder("elementwise", lanes, precision=precision)
    ins = [k.buffer(f"x{i}", dtype_of(a.dtype), (count,), "in") for i, a in enumerate(inputs)]
    outs = [k.buffer(f"y{i}", dtype, (count,), "out") for i, dtype in enumerate(outputs)]

    def body(at: Any, width: int) -> None:
        values = make(k, *(k.load(b, at, width) for b in ins))
        for out, value in zip(outs, values, strict=True):
            k.store(out, at, k.splat(value, width))

    whole = count // lanes * lanes
    with k.par(0, whole, lanes) as i:
        body(i, lanes)
    with k.loop(whole, count) as i:
        body(i, 1)
    return k.finish()


def program_of(kernel: Kernel) -> Program:
    """A program of one launch: the kernel's parameters are the program's inputs and outputs."""
    ins = [Slot(b.name, b.dtype, b.elements, "input", i) for i, b in enumerate(p for p in kernel.params() if p.scope == "in")]
    outs = [Slot(b.name, b.dtype, b.elements, "output", i) for i, b in enumerate(p for p in kernel.params() if p.scope != "in")]
    by_name = {s.name: s for s in [*ins, *outs]}
    return Program("test", ins, outs, steps=[Launch(kernel, [(by_name[b.name], 0) for b in kernel.params()])])


def executable(program: Program, threads: int = 1, cpu: str = "") -> Executable:
    """Machine code of a verified program."""
    assert verify_program(program) == []
    ports = [[Port(s.name, s.dtype, (s.elements,)) for s in slots] for slots in (program.inputs, program.outputs)]
    return Executable.of(program, ports[0], ports[1], threads=threads, cpu=cpu)


def interpreted(kernel: Kernel, inputs: Sequence[Array]) -> list[Array]:
    """The kernel's outputs by the interpreter."""
    assert verify_kernel(kernel) == []
    given = iter(inputs)
    arrays = [next(given).copy() if b.scope == "in" else np.zeros(b.elements, b.dtype.numpy()) for b in kernel.params()]
    interpret_kernel(kernel, arrays)
    return [a for a, b in zip(arrays, kernel.params()) if b.scope != "in"]


def compiled(kernel: Kernel, inputs: Sequence[Array], cpu: str = "") -> list[Array]:
    """The kernel's outputs by machine code."""
    return executable(program_of(kernel), cpu=cpu)(*inputs)


def both(make: Make, inputs: Sequence[Array], outputs: Sequence[DType], lanes: int = 1, precision: str = "default",
         cpu: str = "") -> tuple[list[Array], list[Array]]:
    """(machine code, interpreter) of a function of values."""
    kernel = elementwise(make, inputs, outputs, lanes, precision)
    return compiled(kernel, inputs, cpu), interpreted(kernel, inputs)


def bits(array: Array) -> Array:
    """The bits of an array, with all NaNs made one."""
    if array.dtype.kind in "biu" or dtype_of(array.dtype).is_integer:
        return array.view(np.uint8) if array.dtype.kind == "V" else array
    if array.dtype.kind == "c":
        return np.stack([bits(array.real.copy()), bits(array.imag.copy())])
    plain = array.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize]).copy()
    with np.errstate(all="ignore"):
        plain[np.isnan(array.astype(np.float64))] = 0x7E if array.dtype.itemsize == 1 else 0x7E00
    return plain


def assert_same(got: Array, want: Array, *context: Array) -> None:
    """Equal bit by bit, NaNs apart; says where not."""
    assert got.dtype == want.dtype
    differ = np.flatnonzero((bits(got) != bits(want)).reshape(-1, got.size).any(0))
    assert differ.size == 0, [(*(c[i] for c in context), got[i], want[i]) for i in differ[:5]]


def grid(values: Sequence[Any], dtype: DType) -> tuple[Array, Array]:
    """Every pair of some values."""
    with np.errstate(all="ignore"):
        one = np.array(values).astype(dtype.numpy())
    return np.repeat(one, one.size), np.tile(one, one.size)
