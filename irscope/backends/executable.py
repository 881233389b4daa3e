"""A compiled program that is called with numpy arrays.

    run = Executable.of(program, inputs, outputs)
    y, = run(x)
    call = run.bind([x])      # checks once
    call()                    # a fraction of a microsecond later the code runs
    call.outputs[0]

Inputs are read in place when they have the right element type and shape and no gaps; nothing is converted silently.
"""
from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from irscope.backends import llvm_compile
from irscope.backends import pool as pools
from irscope.backends.object_code import MAIN, ObjectCode
from irscope.backends.stopping import STOP, Stopper
from irscope.graph import DType
from irscope.lazy import Array, LazyModule, np
from irscope.lower.memory import address, aligned_bytes
from irscope.lower.program import Program, Slot
from irscope.source.budget import require

if TYPE_CHECKING:
    from irscope.backends import compile as compiler
else:
    compiler = LazyModule("irscope.backends.compile")  # a program from the cache needs no compiler


RECORD_WORDS = 4
"""64-bit words of the record of a launch in a profiled program (``RECORD`` in :mod:`irscope.backends.llvm_main`)."""


class InputMismatch(ValueError):
    """Arrays that do not match the program's inputs: their number, an element type, a shape."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of a program; along ``varying`` dimensions an array may be shorter than ``shape``."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    varying: tuple[int, ...] = ()

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether an array of a shape fits."""
        return shape == self.shape or (len(shape) == len(self.shape) and all(
            have == want or (d in self.varying and have < want) for d, (have, want) in enumerate(zip(shape, self.shape, strict=True))))

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{','.join('<=' * (d in self.varying) + str(n) for d, n in enumerate(self.shape))}]"


class Executable:
    """Machine code, its constants and its memory. One call runs at a time; calls from several threads wait for each other.

    ``records`` has a row for each launch where the program is profiled: it adds to them, and the caller clears them.
    """

    def __init__(self, program: Program, inputs: Sequence[Port], outputs: Sequence[Port], compiled: ObjectCode, threads: int) -> None:
        self.name = program.name
        self.inputs, self.outputs = list(inputs), list(outputs)
        _fit(program.inputs, self.inputs)
        _fit(program.outputs, self.outputs)
        self.compiled = compiled
        self.threads = threads
        self._lock = threading.Lock()
        self._stopper = Stopper()
        imports = {"irscope_share": pools.share_address(), STOP: self._stopper.address}
        self._code = llvm_compile.LoadedCode(compiled.objects, [MAIN], imports)
        self._main = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(self._code.addresses[MAIN])
        self._input_types = [(p.dtype.numpy(), p.shape) for p in self.inputs]
        self._output_types = [(p.dtype.numpy(), p.shape) for p in self.outputs]
        self._pointers_in = ctypes.c_void_p * max(1, len(self.inputs))
        self._pointers_out = ctypes.c_void_p * max(1, len(self.outputs))
        self._array_class, self._as_array = np.ndarray, np.asarray
        self._output_bytes = sum(prod(shape) * dtype.itemsize for dtype, shape in self._output_types)
        # Fresh memory becomes resident only when it is written, so the budget is checked once, for the sum of all that is allocated here.
        copies = sum(np.asarray(c.data).nbytes for c in program.constants)
        require(program.arena_bytes + copies + threads * compiled.scratch + self._output_bytes, f"what {self.name} computes on the way")
        self._arena = aligned_bytes(program.arena_bytes, zero=any(t.zeroed for t in program.temps))
        self._scratch = aligned_bytes(compiled.scratch)
        self._constants = [aligned_copy(np.asarray(c.data)) for c in program.constants]
        self._table = np.array([address(c) for c in self._constants] or [0], dtype=np.uint64)
        self._context = np.zeros(8, dtype=np.uint64)
        self._context[1] = address(self._scratch)
        self._context[2] = address(self._table)
        self.records = np.zeros((max(1, len(compiled.records)), RECORD_WORDS), dtype=np.int64)
        self._context[4] = address(self.records)
        self._fixed = address(self._arena), address(self._context)
        self._pool: pools.ThreadPool | None = None
        self._join()

    @staticmethod
    def of(program: Program, inputs: Sequence[Port], outputs: Sequence[Port], threads: int = 1, cpu: str = "",
           use_cache: bool = True) -> Executable:
        """Compile a program for this machine."""
        return Executable(program, inputs, outputs, compiler.compile_program(program, llvm_compile.host(cpu), use_cache), threads)

    @property
    def arena_bytes(self) -> int:
        return int(self._arena.nbytes)

    def __call__(self, *arrays: Array) -> list[Array]:
        """Run once; the outputs are new arrays."""
        _ready, inputs, placed, outputs = self.prepare(arrays)  # these names keep the arrays alive
        self.run(ctypes.addressof(inputs), ctypes.addressof(outputs))
        return [array for array, _ in placed]

    def prepare(self, arrays: Sequence[Array]) -> tuple[list[Array], Any, list[tuple[Array, int]], Any]:
        """Everything before a run: the checked arrays, their pointers, new outputs with their addresses, and the pointers to those."""
        ready = self.check(arrays)
        require(self._output_bytes, f"the result of {self.name}")
        placed = [placed_empty(dtype, shape) for dtype, shape in self._output_types]
        return ready, self._pointers_in(*map(address, ready)), placed, self._pointers_out(*(place for _, place in placed))

    def bind(self, arrays: Sequence[Array], outputs: Sequence[Array] | None = None) -> BoundCall:
        """Check arrays once and prepare a call that reads and writes exactly these arrays. ``outputs`` must be 64-byte aligned."""
        ready = self.check(arrays)
        if outputs is None:
            require(self._output_bytes, f"the result of {self.name}")
            results = [aligned_empty(dtype, shape) for dtype, shape in self._output_types]
        else:
            results = self._check_outputs(outputs, ready)
        return BoundCall(self, ready, results)

    def check(self, arrays: Sequence[Array]) -> list[Array]:
        """The arrays, without gaps. Raises InputMismatch."""
        if len(arrays) != len(self.inputs):
            raise InputMismatch(f"{self.name} takes {len(self.inputs)} arrays ({', '.join(map(str, self.inputs))}), not {len(arrays)}")
        ready = []
        for i, array in enumerate(arrays):
            dtype, shape = self._input_types[i]
            if array.__class__ is not self._array_class:
                array = self._as_array(array)  # np.float32(1) has a dtype and a shape, but no persistent memory
            if array.dtype != dtype or array.shape != shape:
                got = f"{array.dtype}[{','.join(map(str, array.shape))}]"
                raise InputMismatch(f"input {i} of {self.name} is {self.inputs[i]}, not {got}")
            if not array.flags.c_contiguous or not array.flags.aligned:
                array = array.copy(order="C")
            ready.append(array)
        return ready

    def _check_outputs(self, outputs: Sequence[Array], inputs: Sequence[Array]) -> list[Array]:
        if len(outputs) != len(self.outputs):
            raise InputMismatch(f"{self.name} gives {len(self.outputs)} arrays, not {len(outputs)}")
        for i, array in enumerate(outputs):
            dtype, shape = self._output_types[i]
            if array.dtype != dtype or array.shape != shape or not array.flags.c_contiguous or not array.flags.writeable:
                raise InputMismatch(f"output {i} of {self.name} is {self.outputs[i]}, writable and without gaps")
            if address(array) % 64 and array.size:
                raise InputMismatch(f"output {i} of {self.name} does not begin at a multiple of 64 bytes")
            if any(np.may_share_memory(array, other) for other in (*inputs, *outputs[:i])):
                raise InputMismatch(f"output {i} of {self.name} overlaps an input or another output")
        return list(outputs)

    def _join(self) -> None:
        """Connect to the pool; again in a forked process."""
        if self.threads > 1:
            self._pool = pools.pool(self.threads)
            with self._pool.lock:
                self._pool.reserve(self.compiled.scratch)
            self._context[0] = self._pool.address
        self._context[3] = self.threads

    def run(self, inputs: int, outputs: int) -> None:
        """Run on arrays of pointers. An exception raised in this thread interrupts a program that may take long."""
        if self.compiled.stops:
            self._stopper.run(partial(self._run, inputs, outputs), self._pool.workers if self._pool is not None else ())
        else:
            self._run(inputs, outputs)

    def _run(self, inputs: int, outputs: int) -> None:
        arena, context = self._fixed
        if self._pool is None:
            with self._lock:
                self._main(inputs, outputs, arena, context)
            return
        if not self._pool.alive:
            self._lock = threading.Lock()
            self._join()
        with self._lock, self._pool.lock:
            self._main(inputs, outputs, arena, context)


def _fit(slots: Sequence[Slot], ports: Sequence[Port]) -> None:
    """Check that the ports match the slots: machine code trusts its pointers, and each call checks only the ports."""
    for slot in slots:
        port = ports[slot.number] if 0 <= slot.number < len(ports) else None
        if port is None or port.dtype is not slot.dtype or prod(port.shape) < slot.elements:
            raise ValueError(f"{slot.scope} {slot.number}, {slot.name}, holds {slot.dtype}[{slot.elements}], not {port}")


class BoundCall:
    """A call whose arrays are checked. It keeps them alive."""

    __slots__ = ("_arrays", "_in", "_inputs", "_out", "_outputs", "_run", "outputs")

    def __init__(self, executable: Executable, arrays: list[Array], outputs: list[Array]) -> None:
        self._arrays = arrays
        self.outputs = outputs
        self._inputs = (ctypes.c_void_p * max(1, len(arrays)))(*map(address, arrays))
        self._outputs = (ctypes.c_void_p * max(1, len(outputs)))(*map(address, outputs))
        self._in, self._out = ctypes.addressof(self._inputs), ctypes.addressof(self._outputs)
        self._run = executable.run

    def __call__(self) -> None:
        self._run(self._in, self._out)


def aligned_empty(dtype: object, shape: tuple[int, ...]) -> Array:
    """An uninitialised array aligned to 64 bytes."""
    return placed_empty(dtype, shape)[0]


def placed_empty(dtype: Any, shape: tuple[int, ...]) -> tuple[Array, int]:
    """An uninitialised array aligned to 64 bytes, and the address of its first element."""
    memory = np.empty(dtype.itemsize * prod(shape) + 64, dtype=np.uint8)
    begin = address(memory)
    start = -begin % 64
    return np.ndarray(shape, dtype, memory, start), begin + start


def aligned_copy(array: Array) -> Array:
    """The array itself where it is aligned and contiguous, else a copy that is."""
    if array.flags.c_contiguous and address(array) % 64 == 0:
        return array
    out = aligned_empty(array.dtype, array.shape)
    out[...] = array
    return out
