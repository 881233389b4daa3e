"""Verifies kernels and programs: types, lanes, scopes, registers, independence of ``par``, bounds, contents.

:mod:`irscope.lower.bounds` proves that every access stays within its buffer, except for indices that are loop-carried or that a kernel
reads back from its own memory. :mod:`irscope.lower.contents` checks, step by step, that every read finds a value.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from irscope.graph import DType
from irscope.graph.dtypes import F32, F64, PRED, S32, S64
from irscope.lower.bounds import ARITHMETIC, unproved
from irscope.lower.contents import verify_contents
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Assign, Buffer, Declare, Expr, For, GatherLoad, If, Kernel, Let, Load, Prefetch, Register, Stmt, Store, While
from irscope.lower.traversal import Visitor, subexpressions, visits, walk
from irscope.ops.vocabulary import BINARY, COMPARE, REDUCE, UNARY

_LEAVES = frozenset(("const", "var", "reg", "lane"))
_SAME_TYPE = (UNARY - {"is_finite", "real", "imag"}) | BINARY | {"fma", "floordiv", "floormod"}


def verify_kernel(kernel: Kernel) -> list[str]:
    """The faults of a kernel, one sentence each."""
    check = _Check(kernel)
    names = [b.name for b in kernel.buffers]
    for name in {n for n in names if names.count(n) > 1}:
        check.say(f"two buffers are called {name}")
    for buffer in kernel.buffers:
        if buffer.scope not in ("in", "out", "inout", "scratch", "const"):
            check.say(f"buffer {buffer.name} has no scope {buffer.scope}")
        if buffer.scope == "const" and buffer.data is None:
            check.say(f"constant buffer {buffer.name} has no data")
    check.block(kernel.body, _Around())
    if check.problems:
        return check.problems
    return [str(found) for found in unproved(kernel) if found.kind == ARITHMETIC]


def verify_program(program: Program) -> list[str]:
    """The faults of a program and its kernels."""
    problems = [f"{kernel.name}: {p}" for kernel in program.kernels() for p in verify_kernel(kernel)]
    known = {*program.inputs, *program.outputs, *program.temps, *program.constants}
    problems += [f"temporary {slot.name} is outside of the arena" for slot in program.temps
                 if slot.offset < 0 or slot.offset + slot.bytes > program.arena_bytes]
    problems += [f"constant {slot.name} has no data" for slot in program.constants if slot.data is None]
    check = _Steps(known)
    for step in walk(program.steps):
        check.visit(step)
    problems += check.problems
    return problems or verify_contents(program)


class _Steps(Visitor):
    """Checks each step by itself."""

    def __init__(self, known: set[Slot]) -> None:
        self.known = known
        self.problems: list[str] = []

    @visits(Launch)
    def launch(self, launch: Launch) -> None:
        name, params = launch.kernel.name, launch.kernel.params()
        if len(params) != len(launch.args):
            self.problems.append(f"{name} takes {len(params)} buffers, not {len(launch.args)}")
            return
        for buffer, (slot, place) in zip(params, launch.args):
            if slot not in self.known:
                self.problems.append(f"{name}: {slot.name} is no slot of the program")
            if slot.dtype is not buffer.dtype:
                self.problems.append(f"{name}: {buffer.name} holds {buffer.dtype}, {slot.name} {slot.dtype}")
            if place < 0 or place + buffer.elements > slot.elements:
                self.problems.append(f"{name}: {buffer.name} needs {buffer.elements} elements, "
                                     f"{slot.name} has {slot.elements - place} from {place}")
            if buffer.scope in ("out", "inout") and slot.scope in ("input", "constant"):
                self.problems.append(f"{name}: writes the {slot.scope} {slot.name}")

    @visits(Copy)
    def copy(self, step: Copy) -> None:
        for slot, place in ((step.source, step.source_offset), (step.target, step.target_offset)):
            if place < 0 or place + step.bytes > slot.bytes:
                self.problems.append(f"a copy of {step.bytes} bytes leaves {slot.name}")

    @visits(Loop)
    def loop(self, step: Loop) -> None:
        if step.flag.dtype is not PRED:
            self.problems.append(f"a loop runs while {step.flag.name}, which is {step.flag.dtype}")

    @visits(Switch)
    def switch(self, step: Switch) -> None:
        if step.selector.dtype is not PRED and not step.selector.dtype.is_integer:
            self.problems.append(f"a switch on {step.selector.name}, which is {step.selector.dtype}")


@dataclass(slots=True)
class _Around:
    """The context of a statement."""

    variables: set[Expr] = field(default_factory=set)
    registers: set[Register] = field(default_factory=set)
    pars: list[Expr] = field(default_factory=list)
    outer_registers: set[Register] = field(default_factory=set)  # declared outside the innermost par
    guards: list[Expr] = field(default_factory=list)
    only_par: bool = True

    def inner(self) -> _Around:
        return _Around(set(self.variables), set(self.registers), list(self.pars), set(self.outer_registers), list(self.guards), False)


class _Check(Visitor):
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.problems: list[str] = []
        self.typed: set[Expr] = set()
        self.defined: set[Expr] = set()
        self.sources: dict[Expr, list[Expr]] = {}  # the expressions that a variable was computed from
        self.writers: dict[Register, list[Expr]] = {}

    def say(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def read(self, s: Stmt, around: _Around) -> None:
        """Check that every variable and register that a statement reads is defined there, and that its expressions are well typed."""
        for x in subexpressions(s.operands()):
            if x.op == "var" and x not in around.variables:
                self.say(f"{x.value} is used outside of where it is defined")
            if x.op == "reg" and x.value not in around.registers:
                self.say(f"register {x.value.name} is read before it is declared")
            if x not in self.typed:
                self.typed.add(x)
                self.expression(x)

    @visits(Declare, Assign)
    def set(self, s: Declare | Assign, around: _Around) -> None:
        self.read(s, around)
        register, (value,) = s.register, s.operands()
        if value.dtype is not register.dtype or value.lanes != register.lanes:
            self.say(f"register {register.name} of {register.dtype}x{register.lanes} takes {value.dtype}x{value.lanes}")
        self.writers.setdefault(register, []).append(value)
        if isinstance(s, Declare):
            around.registers.add(register)
        elif register not in around.registers:
            self.say(f"register {register.name} is set before it is declared")
        elif register in around.outer_registers:
            self.say(f"register {register.name} carries a value from one par iteration to the next")

    @visits(If)
    def if_(self, s: If, around: _Around) -> None:
        self.read(s, around)
        self.condition(s.condition, "if")
        for block in s.blocks():
            inner = around.inner()
            inner.guards.append(s.condition)
            self.block(block, inner)

    @visits(While)
    def while_(self, s: While, around: _Around) -> None:
        head = around.inner()
        self.block(s.head, head)
        self.read(s, head)
        self.condition(s.condition, "while")
        self.block(s.body, head.inner())

    @visits(Prefetch)
    def prefetch(self, s: Prefetch, around: _Around) -> None:
        self.read(s, around)
        self.index(s.index, "prefetch")

    @visits(Let)
    def let(self, s: Let, around: _Around) -> None:
        self.define(s, around)
        if s.value.dtype is not s.var.dtype or s.value.lanes != s.var.lanes:
            self.say(f"{s.var.value} of {s.var.dtype}x{s.var.lanes} names {s.value.dtype}x{s.value.lanes}")

    @visits(Load)
    def load(self, s: Load, around: _Around) -> None:
        self.loaded(s, around)
        self.index(s.index, s.buffer.name)

    @visits(GatherLoad)
    def gather(self, s: GatherLoad, around: _Around) -> None:
        self.loaded(s, around)
        if s.indices.dtype not in (S64, S32) or s.indices.lanes != s.var.lanes:
            self.say(f"{s.var.value} is gathered by {s.indices.dtype}x{s.indices.lanes}")

    def define(self, s: Load | GatherLoad | Let, around: _Around) -> None:
        self.read(s, around)
        self.name(s.var, s)
        around.variables.add(s.var)

    def name(self, var: Expr, s: Stmt) -> None:
        """Record the one definition of a variable."""
        if var in self.defined:
            self.say(f"{var.value} is defined twice")
        self.defined.add(var)
        self.sources[var] = s.operands()

    def loaded(self, s: Load | GatherLoad, around: _Around) -> None:
        self.define(s, around)
        if s.buffer not in self.kernel.buffers:
            self.say(f"{s.buffer.name} is not a buffer of the kernel")
        if s.buffer.dtype is not s.var.dtype:
            self.say(f"{s.var.value} of {s.var.dtype} is loaded from {s.buffer.name}, which holds {s.buffer.dtype}")
        self.mask(s.mask, s.var.lanes, s.buffer)

    @visits(Store)
    def store(self, s: Store, around: _Around) -> None:
        self.read(s, around)
        if s.buffer not in self.kernel.buffers:
            self.say(f"{s.buffer.name} is not a buffer of the kernel")
        if s.buffer.scope in ("in", "const"):
            self.say(f"{s.buffer.name} is only read, and stored to")
        if s.value.dtype is not s.buffer.dtype:
            self.say(f"{s.value.dtype} is stored to {s.buffer.name}, which holds {s.buffer.dtype}")
        self.index(s.index, s.buffer.name)
        self.mask(s.mask, s.value.lanes, s.buffer)
        if s.buffer.scope != "scratch":
            roots = [s.index, *around.guards, *([s.mask] if s.mask is not None else [])]
            for var in around.pars:
                if not self.depends(roots, var):
                    self.say(f"every iteration of par {var.value} stores to the same place of {s.buffer.name}")

    @visits(For)
    def for_(self, s: For, around: _Around) -> None:
        self.read(s, around)
        self.index(s.low, "loop")
        self.index(s.high, "loop")
        if s.step <= 0:
            self.say(f"loop {s.var.value} has step {s.step}")
        if s.kind not in ("for", "par"):
            self.say(f"loop {s.var.value} is of kind {s.kind}")
        self.name(s.var, s)
        inner = around.inner()
        inner.variables.add(s.var)
        if s.kind == "par":
            if not around.only_par:
                self.say(f"par {s.var.value} is nested in a statement that is not par")
            inner.only_par = True
            inner.pars.append(s.var)
            inner.outer_registers = set(around.registers)
        self.block(s.body, inner)

    def depends(self, roots: list[Expr], var: Expr) -> bool:
        """Whether a value could differ with ``var``: through variables, loads, loop bounds and registers."""
        seen: set[Expr | Register] = set()
        stack = list(roots)
        while stack:
            x = stack.pop()
            if x is var:
                return True
            if x in seen:
                continue
            seen.add(x)
            stack.extend(x.args)
            if x.op == "var":
                stack.extend(self.sources.get(x, ()))
            elif x.op == "reg" and x.value not in seen:
                seen.add(x.value)
                stack.extend(self.writers.get(x.value, ()))
        return False

    def index(self, x: Expr, what: str) -> None:
        if x.dtype is not S64 or x.lanes != 1:
            self.say(f"the index of {what} is {x.dtype}x{x.lanes}")

    def condition(self, x: Expr, what: str) -> None:
        if x.dtype is not PRED or x.lanes != 1:
            self.say(f"{what} on {x.dtype}x{x.lanes}")

    def mask(self, x: Expr | None, lanes: int, buffer: Buffer) -> None:
        if x is not None and (x.dtype is not PRED or x.lanes != lanes):
            self.say(f"a mask of {x.dtype}x{x.lanes} for {lanes} lanes of {buffer.name}")

    # ---- expressions

    def expression(self, x: Expr) -> None:
        if x.lanes < 1:
            self.say(f"{x.op} has {x.lanes} lanes")
        problem = _typing(x)
        if problem:
            inputs = ", ".join(f"{a.dtype}x{a.lanes}" for a in x.args)
            self.say(f"{x.op}({inputs}) gives {x.dtype}x{x.lanes}: {problem}")


def _typing(x: Expr) -> str:
    """The type error of an expression; empty where there is none."""
    kind, _, name = x.op.partition(".")
    args = x.args
    if kind in _LEAVES:
        if kind == "const" and x.lanes > 1 and len(x.value) != x.lanes:
            return "as many values as lanes are needed"
        return "a leaf has no operands" if args else ""
    if not args:
        return "operands are missing"
    if kind not in _CHANGES_LANES and any(a.lanes != x.lanes for a in args) and not (kind == "select" and args[0].lanes == 1):
        return "lanes differ"
    if kind in _TYPING:
        fits, needed = _TYPING[kind]
        return "" if fits(x, name) else needed
    if kind not in _SAME_TYPE:
        return "unknown operation"
    if any(a.dtype is not x.dtype for a in args):
        return "types differ"
    return "" if _computes(x.dtype) else "nothing computes in this type"


def _is_shuffle(x: Expr, name: str) -> bool:
    if len(x.args) != 2 or len(x.value) != x.lanes:
        return False
    a, b = x.args
    return a.lanes == b.lanes and a.dtype is b.dtype is x.dtype and all(0 <= i < 2 * a.lanes for i in x.value)


def _is_scaling(x: Expr, name: str) -> bool:
    power = x.args[1].dtype
    return x.dtype in (F32, F64) and power.bits == x.dtype.bits and power.is_integer


def _computes(dtype: DType) -> bool:
    """Whether arithmetic exists for a type."""
    return dtype is PRED or (dtype.is_integer and dtype.bits >= 8) or dtype in (F32, F64)


_CHANGES_LANES = frozenset(("splat", "reduce", "shuffle"))
_TYPING: dict[str, tuple[Callable[[Expr, str], bool], str]] = {
    "splat": (lambda x, _: x.args[0].lanes == 1 and x.args[0].dtype is x.dtype, "one lane of the same type spreads"),
    "reduce": (lambda x, name: name in REDUCE and x.lanes == 1 and x.args[0].dtype is x.dtype, "a vector becomes one lane of its type"),
    "shuffle": (_is_shuffle, "it takes lanes of two equal vectors"),
    "select": (lambda x, _: x.args[0].dtype is PRED and x.args[1].dtype is x.args[2].dtype is x.dtype,
               "a pred chooses between equal types"),
    "cmp": (lambda x, name: name in COMPARE and x.dtype is PRED and x.args[0].dtype is x.args[1].dtype and _computes(x.args[0].dtype),
            "two values of one type compare to pred"),
    "convert": (lambda x, _: not (x.args[0].dtype.is_complex or x.dtype.is_complex or x.dtype is PRED), "the builder takes that apart"),
    "bitcast": (lambda x, _: x.args[0].dtype.storage == x.dtype.storage, "sizes differ"),
    "complex": (lambda x, _: x.args[0].dtype is x.args[1].dtype and x.args[0].dtype in (F32, F64) and x.dtype.is_complex,
                "two floats make it"),
    "real": (lambda x, _: x.args[0].dtype.is_complex, "of complex values only"),
    "imag": (lambda x, _: x.args[0].dtype.is_complex, "of complex values only"),
    "scale2": (_is_scaling, "a float and an integer"),
}
"""Whether the types of an operation's operands fit its own, and what it needs, by the operation (and the part after its dot)."""
