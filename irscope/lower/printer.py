"""Tile IR and programs as text: what ``--emit loops`` shows.

    kernel gemm(in A: f32[128,64], in B: f32[6,64,16], out C: f32[128,96]) lanes=16
      par i0 in 0..96 step 16:
        for i1 in 0..128:
          reg.vec r0 = 0
          for i2 in 0..64:
            v0 = load.vec B[i0*64 + i2*16]
            s0 = load A[i1*64 + i2]
            r0 := fma(s0, v0, r0)
          store.vec C[i0 + i1*96] = r0

A subexpression that a statement uses twice is named on a line before it (``t0 = exp(s3)``), and so is the middle of a long one.
"""
from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

from irscope.graph import DType
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Step, Switch
from irscope.lower.tidy import expressions
from irscope.lower.tile import Assign, Buffer, Comment, Declare, Expr, For, GatherLoad, If, Kernel, Let, Load, Prefetch, Stmt, Store, While

_INFIX = {"add": ("+", 6), "sub": ("-", 6), "mul": ("*", 7), "floordiv": ("//", 7), "floormod": ("%", 7), "and": ("&", 4), "or": ("|", 2),
          "xor": ("^", 3), "cmp.EQ": ("==", 5), "cmp.NE": ("!=", 5), "cmp.LT": ("<", 5), "cmp.LE": ("<=", 5), "cmp.GT": (">", 5),
          "cmp.GE": (">=", 5)}
_ATOM = 9
_DEEPEST = 9
_PLAIN = frozenset(("const", "var", "reg", "lane", "splat"))


def print_kernel(kernel: Kernel, notes: Iterable[str] = ()) -> str:
    """One kernel; ``notes`` stand below its head as comments."""
    lines = [f"kernel {kernel.name}({', '.join(_buffer(b) for b in kernel.params())}) lanes={kernel.lanes}", *(f"  # {n}" for n in notes)]
    for buffer in kernel.buffers:
        if buffer.scope in ("scratch", "const"):
            lines.append(f"  {_buffer(buffer)}")
    _Printer(kernel.lanes, lines).block(kernel.body, 1)
    return "\n".join(lines) + "\n"


def print_program(program: Program, notes: Callable[[Kernel], Iterable[str]] = lambda kernel: ()) -> str:
    """The steps of a program, then its kernels, with what ``notes`` says of each."""
    lines = [f"program {program.name} arena={program.arena_bytes}"]
    for word, slots in (("input", program.inputs), ("output", program.outputs), ("constant", program.constants), ("temp", program.temps)):
        for slot in slots:
            place = f" at {slot.offset}" if slot.scope == "temp" else ""
            lines.append(f"  {word} {slot.name}: {slot.dtype}[{slot.elements}]{place}{' zeroed' if slot.zeroed else ''}")
    _steps(program.steps, lines, 1)
    return "\n".join(lines) + "\n" + "".join("\n" + print_kernel(k, notes(k)) for k in program.kernels())


def _steps(steps: list[Step], lines: list[str], depth: int) -> None:
    """Loops and switches nest as the program's own do: a few deep."""
    pad = "  " * depth
    for step in steps:
        if isinstance(step, Launch):
            lines.append(f"{pad}{step.kernel.name}({', '.join(_place(s, o) for s, o in step.args)})")
        elif isinstance(step, Copy):
            places = f"{step.source.name}+{step.source_offset} to {step.target.name}+{step.target_offset}"
            lines.append(f"{pad}copy {step.bytes} bytes of {places}")
        elif isinstance(step, Loop):
            lines.append(f"{pad}loop while {step.flag.name} after:")
            _steps(step.condition, lines, depth + 1)
            lines.append(f"{pad}do:")
            _steps(step.body, lines, depth + 1)
        elif isinstance(step, Switch):
            for number, branch in enumerate(step.branches):
                lines.append(f"{pad}{'switch ' + step.selector.name if not number else 'or'} branch {number}:")
                _steps(branch, lines, depth + 1)


def _place(slot: Slot, offset: int) -> str:
    return f"{slot.name}[{offset}:]" if offset else slot.name


def _buffer(buffer: Buffer) -> str:
    extra = f" of {buffer.elements}" if buffer.elements != math.prod(buffer.shape) else ""
    return f"{buffer.scope} {buffer.name}: {buffer.dtype}[{','.join(map(str, buffer.shape))}]{extra}"


class _Printer:
    def __init__(self, lanes: int, lines: list[str]) -> None:
        self.lanes = lanes
        self.lines = lines
        self.named: dict[Expr, str] = {}
        self.count = 0

    def block(self, body: list[Stmt], depth: int) -> None:
        """Statements at a depth; as deep as the loops of the kernel nest."""
        pad = "  " * depth
        for statement in body:
            if not isinstance(statement, While):
                self.share(statement, pad)
            if isinstance(statement, For):
                step = f" step {statement.step}" if statement.step != 1 else ""
                self.lines.append(f"{pad}{statement.kind} {statement.var.value} in {self.text(statement.low, _ATOM)}.."
                                  f"{self.text(statement.high, _ATOM)}{step}:")
                self.block(statement.body, depth + 1)
            elif isinstance(statement, If):
                self.lines.append(f"{pad}if {self.text(statement.condition)}:")
                self.block(statement.then, depth + 1)
                if statement.otherwise:
                    self.lines.append(f"{pad}else:")
                    self.block(statement.otherwise, depth + 1)
            elif isinstance(statement, While):
                self.lines.append(f"{pad}while:")
                self.block(statement.head, depth + 1)
                self.share(statement, pad + "  ")
                self.lines.append(f"{pad}  {self.text(statement.condition)} do:")
                self.block(statement.body, depth + 2)
            else:
                self.lines.append(pad + self.statement(statement))
            self.named = {}

    def statement(self, s: Stmt) -> str:
        if isinstance(s, Load):
            return f"{s.var.value} = load{self.width(s.var.lanes)} {s.buffer.name}[{self.text(s.index)}]{self.mask(s.mask)}"
        if isinstance(s, GatherLoad):
            return f"{s.var.value} = gather{self.width(s.var.lanes)} {s.buffer.name}[{self.text(s.indices)}]{self.mask(s.mask)}"
        if isinstance(s, Let):
            return f"{s.var.value} = {self.text(s.value)}"
        if isinstance(s, Store):
            how = ".nt" if s.nontemporal else ""
            place = f"{s.buffer.name}[{self.text(s.index)}]"
            return f"store{self.width(s.value.lanes)}{how} {place} = {self.text(s.value)}{self.mask(s.mask)}"
        if isinstance(s, Declare):
            dtype = "" if s.register.dtype.name == "f32" else f": {s.register.dtype}"
            return f"reg{self.width(s.register.lanes)} {s.register.name}{dtype} = {self.text(s.init)}"
        if isinstance(s, Assign):
            return f"{s.register.name} := {self.text(s.value)}"
        if isinstance(s, Prefetch):
            return f"prefetch {s.buffer.name}[{self.text(s.index)}]"
        if isinstance(s, Comment):
            return f"# {s.text}"
        raise TypeError(f"no text for {type(s).__name__}")

    def width(self, lanes: int) -> str:
        return "" if lanes == 1 else ".vec" if lanes == self.lanes else f".{lanes}"

    def mask(self, mask: Expr | None) -> str:
        return "" if mask is None else f" where {self.text(mask)}"

    def share(self, statement: Stmt, pad: str) -> None:
        """Name the subexpressions that the statement uses more than once, and the middles of long ones, operands first."""
        self.named = {}
        roots = set(expressions(statement))
        uses: dict[Expr, int] = {}
        order: list[Expr] = []
        stack = list(expressions(statement))
        while stack:
            x = stack.pop()
            uses[x] = uses.get(x, 0) + 1
            if uses[x] == 1:
                order.append(x)
                stack.extend(x.args)
        depth: dict[Expr, int] = {}
        for x in sorted(order, key=lambda x: x.number):
            depth[x] = 1 + max((depth[a] for a in x.args), default=0)
            if _is_small(x) or (uses[x] == 1 and (depth[x] < _DEEPEST or x in roots)):
                continue
            depth[x] = 0
            text = self.text(x)
            self.lines.append(f"{pad}t{self.count} = {text}")
            self.named[x] = f"t{self.count}"
            self.count += 1

    def text(self, x: Expr, outer: int = 0) -> str:
        """An expression; parentheses where what stands around it binds as tightly. Deep chains are rare, since sharing names them."""
        name = self.named.get(x)
        if name is not None:
            return name
        if x.op == "const":
            return _constant(x.value, x.dtype) if x.lanes == 1 else "<" + ", ".join(_constant(v, x.dtype) for v in x.value) + ">"
        if x.op == "var":
            return str(x.value)
        if x.op == "reg":
            return str(x.value.name)
        if x.op == "lane":
            return "lane"
        if x.op == "splat":
            return self.text(x.args[0], outer)
        if x.op in _INFIX:
            sign, strength = _INFIX[x.op]
            left, right = x.args
            tight = "" if sign in ("*",) and x.dtype.is_integer else " "
            after = strength + (sign in ("-", "//", "%") or strength == 5)
            text = self.text(left, strength) + tight + sign + tight + self.text(right, after)
            return f"({text})" if strength < outer else text
        name = x.dtype.name if x.op == "convert" else f"bits.{x.dtype}" if x.op == "bitcast" else x.op
        extra = "" if x.op != "shuffle" else ", [" + " ".join(map(str, x.value)) + "]"
        return f"{name}({', '.join(self.text(a) for a in x.args)}{extra})"


def _is_small(x: Expr) -> bool:
    """Not worth a name: a leaf, a splat of one, or an index sum of two terms."""
    if x.op in _PLAIN:
        return x.op != "splat" or _is_small(x.args[0])
    return x.dtype.is_integer and x.lanes == 1 and x.op in ("add", "mul") and all(a.op in _PLAIN or a.op == "mul" for a in x.args)


def _constant(value: Any, dtype: DType) -> str:
    if dtype.kind == "pred":
        return "true" if value else "false"
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return repr(value)
    if dtype.bits == 64:
        text = repr(value)
    else:
        text = next(t for t in (f"{value:.{n}g}" for n in range(1, 18)) if _f32(float(t)) == value)
    return text.removesuffix(".0")


def _f32(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.inf
