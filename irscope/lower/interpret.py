"""A slow and obvious interpreter of the tile IR, for tests: it executes each statement as tile.py defines it, in numpy, in order.

It checks what compiled code does not: an index outside its buffer, a read of uninitialised memory or of an uninitialised register.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irscope.lazy import Array, np
from irscope.lower import scalar_ops
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Assign, Buffer, Declare, Expr, For, GatherLoad, If, Kernel, Let, Load, Prefetch, Register, Stmt, Store, While
from irscope.lower.traversal import Visitor, fold, visits
from irscope.ops.vocabulary import UNARY


class Misstep(Exception):
    """A kernel violates the rules of the tile IR."""


def interpret_kernel(kernel: Kernel, arrays: Sequence[Array]) -> None:
    """Run a kernel on flat arrays, one for each of its parameters, in place."""
    _Run(kernel, arrays).block(kernel.body)


def interpret_program(program: Program, inputs: Sequence[Array]) -> list[Array]:
    """Run a program; inputs and outputs are flat arrays."""
    arena = np.zeros(program.arena_bytes, np.uint8)
    memory: dict[Slot, Array] = {slot: np.zeros(slot.bytes, np.uint8) for slot in program.outputs}
    memory |= {slot: np.ascontiguousarray(inputs[slot.number]).reshape(-1).view(np.uint8).copy() for slot in program.inputs}
    memory |= {slot: np.ascontiguousarray(slot.data).reshape(-1).view(np.uint8) for slot in program.constants}
    memory |= {slot: arena[slot.offset:slot.offset + slot.bytes] for slot in program.temps}
    _Steps(memory).block(program.steps)
    count = max((s.number for s in program.outputs), default=-1) + 1
    results: list[Array] = [np.zeros(0)] * count
    for slot in program.outputs:
        results[slot.number] = memory[slot].view(slot.dtype.numpy())
    return results


class _Steps(Visitor):
    """Runs the steps; the recursion is as deep as the loops and branches nest."""

    def __init__(self, memory: Mapping[Slot, Array]) -> None:
        self.memory = memory

    @visits(Launch)
    def launch(self, step: Launch) -> None:
        arrays = []
        for buffer, (slot, place) in zip(step.kernel.params(), step.args, strict=True):
            start = place * slot.dtype.storage
            arrays.append(self.memory[slot][start:start + buffer.elements * buffer.dtype.storage].view(buffer.dtype.numpy()))
        interpret_kernel(step.kernel, arrays)

    @visits(Copy)
    def copy(self, step: Copy) -> None:
        source = self.memory[step.source][step.source_offset:step.source_offset + step.bytes]
        self.memory[step.target][step.target_offset:step.target_offset + step.bytes] = source.copy()

    @visits(Loop)
    def loop(self, step: Loop) -> None:
        self.block(step.condition)
        while self.memory[step.flag][0]:
            self.block(step.body)
            self.block(step.condition)

    @visits(Switch)
    def switch(self, step: Switch) -> None:
        self.block(step.branches[_chosen(step, self.memory)])


def _chosen(step: Switch, memory: Mapping[Slot, Array]) -> int:
    """The branch that a selector chooses."""
    value = int(memory[step.selector].view(step.selector.dtype.numpy())[0])
    if step.selector.dtype.kind == "pred":
        return 0 if value else len(step.branches) - 1
    return value if 0 <= value < len(step.branches) else len(step.branches) - 1


class _Run(Visitor):
    def __init__(self, kernel: Kernel, arrays: Sequence[Array]) -> None:
        self.name = kernel.name
        params = kernel.params()
        if len(arrays) != len(params):
            raise ValueError(f"kernel {kernel.name} takes {len(params)} buffers, not {len(arrays)}")
        self.memory: dict[Buffer, Array] = dict(zip(params, arrays))
        self.unwritten: dict[Buffer, Array] = {}
        for buffer in kernel.buffers:
            if buffer.scope == "scratch":
                self.memory[buffer] = np.zeros(buffer.elements, buffer.dtype.numpy())
                self.unwritten[buffer] = np.ones(buffer.elements, bool)
            elif buffer.scope == "const":
                self.memory[buffer] = np.ascontiguousarray(buffer.data).reshape(-1)
        for buffer, array in self.memory.items():
            if array.ndim != 1 or array.size < buffer.elements or array.dtype != buffer.dtype.numpy():
                raise ValueError(f"{buffer.name} is {array.dtype}{list(array.shape)}, not {buffer.dtype}[{buffer.elements}]")
        self.variables: dict[Expr, Array] = {}
        self.registers: dict[Register, Array] = {}

    # ---- statements

    @visits(Load)
    def load(self, s: Load) -> None:
        self.variables[s.var] = self.read(s.buffer, self.consecutive(s.index, s.var.lanes), s.mask, s.var)

    @visits(GatherLoad)
    def gather(self, s: GatherLoad) -> None:
        self.variables[s.var] = self.read(s.buffer, [int(i) for i in self.value(s.indices)], s.mask, s.var)

    @visits(Let)
    def let(self, s: Let) -> None:
        self.variables[s.var] = self.value(s.value)

    @visits(Declare)
    def declare(self, s: Declare) -> None:
        self.registers[s.register] = self.value(s.init)

    @visits(Assign)
    def assign(self, s: Assign) -> None:
        if s.register not in self.registers:
            raise Misstep(f"{self.name}: {s.register.name} is set before it is declared")
        self.registers[s.register] = self.value(s.value)

    @visits(For)
    def for_(self, s: For) -> None:
        for i in range(self.integer(s.low), self.integer(s.high), s.step):
            self.variables[s.var] = scalar_ops.wrapped([i], s.var.dtype)
            self.block(s.body)

    @visits(While)
    def while_(self, s: While) -> None:
        self.block(s.head)
        while bool(self.value(s.condition)[0]):
            self.block(s.body)
            self.block(s.head)

    @visits(If)
    def if_(self, s: If) -> None:
        self.block(s.then if bool(self.value(s.condition)[0]) else s.otherwise)

    @visits(Prefetch)
    def nothing(self, s: Stmt) -> None:
        """Computes nothing."""

    def integer(self, x: Expr) -> int:
        return int(self.value(x)[0])

    def consecutive(self, index: Expr, lanes: int) -> list[int]:
        first = self.integer(index)
        return list(range(first, first + lanes))

    def allowed(self, buffer: Buffer, places: list[int], mask: Expr | None) -> list[bool]:
        """The enabled lanes; all of them must be inside the buffer."""
        taking = [True] * len(places) if mask is None else [bool(m) for m in self.value(mask)]
        for place, takes in zip(places, taking, strict=True):
            if takes and not 0 <= place < buffer.elements:
                raise Misstep(f"{self.name}: {buffer.name}[{place}] is outside of {buffer.elements} elements")
        return taking

    def read(self, buffer: Buffer, places: list[int], mask: Expr | None, var: Expr) -> Array:
        taking = self.allowed(buffer, places, mask)
        unwritten = self.unwritten.get(buffer)
        if unwritten is not None and any(unwritten[p] for p, takes in zip(places, taking) if takes):
            raise Misstep(f"{self.name}: {buffer.name} is read where nothing was written")
        out = np.zeros(len(places), buffer.dtype.numpy())
        for lane, (place, takes) in enumerate(zip(places, taking)):
            if takes:
                out[lane] = self.memory[buffer][place]
        return out.astype(scalar_ops.register_type(buffer.dtype))

    @visits(Store)
    def write(self, s: Store) -> None:
        if s.buffer.scope in ("in", "const"):
            raise Misstep(f"{self.name}: {s.buffer.name} is only read")
        value = self.value(s.value)
        places = self.consecutive(s.index, s.value.lanes)
        for lane, (place, takes) in enumerate(zip(places, self.allowed(s.buffer, places, s.mask))):
            if takes:
                self.memory[s.buffer][place] = value[lane]
                if s.buffer in self.unwritten:
                    self.unwritten[s.buffer][place] = False

    # ---- expressions

    def value(self, root: Expr) -> Array:
        """The value as an array with one element per lane."""
        return fold(root, {}, self.one)

    def one(self, x: Expr, args: list[Array]) -> Array:
        if x.op == "var":
            if x not in self.variables:
                raise Misstep(f"{self.name}: {x.value} is used before it is known")
            return self.variables[x]
        if x.op == "reg":
            if x.value not in self.registers:
                raise Misstep(f"{self.name}: {x.value.name} is read before it is declared")
            return self.registers[x.value]
        kind, _, name = x.op.partition(".")
        rule = _RULES.get(kind)
        if rule is not None:
            return rule(x, *args)
        if kind == "cmp":
            return scalar_ops.compare(name, *args)
        if kind == "reduce":
            total = args[0][:1]
            for lane in range(1, len(args[0])):
                total = scalar_ops.binary(name, total, args[0][lane:lane + 1], x.dtype)
            return total
        return scalar_ops.unary(kind, args[0], x.dtype) if kind in UNARY else scalar_ops.binary(kind, args[0], args[1], x.dtype)


def _constant(x: Expr) -> Array:
    values = list(x.value) if x.lanes > 1 else [x.value]
    return scalar_ops.wrapped(values, x.dtype) if x.dtype.is_integer else np.array(values).astype(x.dtype.numpy())


def _fma(x: Expr, a: Array, b: Array, c: Array) -> Array:
    wide = np.longdouble if x.dtype.bits == 64 else np.float64
    with np.errstate(all="ignore"):
        return np.asarray(a.astype(wide) * b.astype(wide) + c.astype(wide)).astype(x.dtype.numpy())


def _complex(x: Expr, real: Array, imag: Array) -> Array:
    out = np.zeros(x.lanes, x.dtype.numpy())
    out.real, out.imag = real, imag
    return out


def _scale2(x: Expr, value: Array, power: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.ldexp(value, np.clip(power, -10_000, 10_000).astype(np.int32))


def _bits(expr: Expr, x: Array) -> Array:
    to = expr.dtype
    same = x.view(scalar_ops.register_type(to)) if x.dtype.itemsize == scalar_ops.register_type(to).itemsize else x
    return scalar_ops.wrapped([int(v) for v in same], to) if to.is_integer and to.bits < 8 else np.asarray(same)


_RULES: dict[str, Callable[..., Array]] = {
    "const": _constant, "fma": _fma, "complex": _complex, "scale2": _scale2, "bitcast": _bits,
    "lane": lambda x: np.arange(x.lanes).astype(scalar_ops.register_type(x.dtype)),
    "splat": lambda x, value: np.repeat(value, x.lanes),
    "select": lambda x, condition, yes, no: np.asarray(np.where(condition, yes, no)),
    "convert": lambda x, value: scalar_ops.convert(value, x.args[0].dtype, x.dtype),
    "real": lambda x, value: value.real.copy(),
    "imag": lambda x, value: value.imag.copy(),
    "shuffle": lambda x, *values: np.concatenate(values)[list(x.value)],
}
"""The results of operations that are not arithmetic, by the expression and its operands."""
