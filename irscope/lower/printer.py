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

A subexpression that a statement uses twice is named on a line before it (``t0 = exp(s3)``), and so is the middle of a long expression.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from irscope.graph import DType
from irscope.graph.dtypes import F32
from irscope.lower.arithmetic import round_to
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Assign, Buffer, Comment, Declare, Expr, For, GatherLoad, If, Kernel, Let, Load, Prefetch, Stmt, Store, While
from irscope.lower.traversal import Visitor, visits

_INFIX = {"add": ("+", 6), "sub": ("-", 6), "mul": ("*", 7), "floordiv": ("//", 7), "floormod": ("%", 7), "and": ("&", 4), "or": ("|", 2),
          "xor": ("^", 3), "cmp.EQ": ("==", 5), "cmp.NE": ("!=", 5), "cmp.LT": ("<", 5), "cmp.LE": ("<=", 5), "cmp.GT": (">", 5),
          "cmp.GE": (">=", 5)}
_ATOM = 9
_DEEPEST = 9
_PLAIN = frozenset(("const", "var", "reg", "lane", "splat"))


def print_kernel(kernel: Kernel, notes: Iterable[str] = ()) -> str:
    """One kernel; ``notes`` follow its head as comments."""
    lines = [f"kernel {kernel.name}({', '.join(_buffer(b) for b in kernel.params())}) lanes={kernel.lanes}", *(f"  # {n}" for n in notes)]
    lines += [f"  {_buffer(buffer)}" for buffer in kernel.buffers if buffer.scope in ("scratch", "const")]
    _Printer(kernel.lanes, lines).block(kernel.body, "  ")
    return "\n".join(lines) + "\n"


def print_program(program: Program, notes: Callable[[Kernel], Iterable[str]] = lambda kernel: ()) -> str:
    """The steps of a program, then its kernels, each with its ``notes``."""
    lines = [f"program {program.name} arena={program.arena_bytes}"]
    for word, slots in (("input", program.inputs), ("output", program.outputs), ("constant", program.constants), ("temp", program.temps)):
        for slot in slots:
            place = f" at {slot.offset}" if slot.scope == "temp" else ""
            lines.append(f"  {word} {slot.name}: {slot.dtype}[{slot.elements}]{place}{' zeroed' if slot.zeroed else ''}")
    _StepPrinter(lines).block(program.steps, "  ")
    return "\n".join(lines) + "\n" + "".join("\n" + print_kernel(k, notes(k)) for k in program.kernels())


class _StepPrinter(Visitor):
    """Prints steps; loops and switches nest only a few deep."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    @visits(Launch)
    def launch(self, step: Launch, pad: str) -> None:
        self.lines.append(f"{pad}{step.kernel.name}({', '.join(_place(s, o) for s, o in step.args)})")

    @visits(Copy)
    def copy(self, step: Copy, pad: str) -> None:
        places = f"{step.source.name}+{step.source_offset} to {step.target.name}+{step.target_offset}"
        self.lines.append(f"{pad}copy {step.bytes} bytes of {places}")

    @visits(Loop)
    def loop(self, step: Loop, pad: str) -> None:
        self.lines.append(f"{pad}loop while {step.flag.name} after:")
        self.block(step.condition, pad + "  ")
        self.lines.append(f"{pad}do:")
        self.block(step.body, pad + "  ")

    @visits(Switch)
    def switch(self, step: Switch, pad: str) -> None:
        for number, branch in enumerate(step.branches):
            self.lines.append(f"{pad}{'switch ' + step.selector.name if not number else 'or'} branch {number}:")
            self.block(branch, pad + "  ")


def _place(slot: Slot, offset: int) -> str:
    return f"{slot.name}[{offset}:]" if offset else slot.name


def _buffer(buffer: Buffer) -> str:
    extra = f" of {buffer.elements}" if buffer.elements != math.prod(buffer.shape) else ""
    return f"{buffer.scope} {buffer.name}: {buffer.dtype}[{','.join(map(str, buffer.shape))}]{extra}"


class _Printer(Visitor):
    def __init__(self, lanes: int, lines: list[str]) -> None:
        self.lanes = lanes
        self.lines = lines
        self.named: dict[Expr, str] = {}
        self.count = 0

    # ---- statements, indented by ``pad``

    def line(self, s: Stmt, pad: str, text: Callable[[], str]) -> None:
        """One line of a statement, after the lines that name its shared subexpressions."""
        self.share(s, pad)
        self.lines.append(pad + text())
        self.named = {}

    @visits(For)
    def for_(self, s: For, pad: str) -> None:
        step = f" step {s.step}" if s.step != 1 else ""
        self.line(s, pad, lambda: f"{s.kind} {s.var.value} in {self.text(s.low, _ATOM)}..{self.text(s.high, _ATOM)}{step}:")
        self.block(s.body, pad + "  ")

    @visits(If)
    def if_(self, s: If, pad: str) -> None:
        self.line(s, pad, lambda: f"if {self.text(s.condition)}:")
        self.block(s.then, pad + "  ")
        if s.otherwise:
            self.lines.append(f"{pad}else:")
            self.block(s.otherwise, pad + "  ")

    @visits(While)
    def while_(self, s: While, pad: str) -> None:
        self.lines.append(f"{pad}while:")
        self.block(s.head, pad + "  ")
        self.line(s, pad + "  ", lambda: f"{self.text(s.condition)} do:")
        self.block(s.body, pad + "    ")

    @visits(Load)
    def load(self, s: Load, pad: str) -> None:
        self.line(s, pad, lambda: f"{s.var.value} = load{self.width(s.var.lanes)} {s.buffer.name}[{self.text(s.index)}]{self.mask(s.mask)}")

    @visits(GatherLoad)
    def gather(self, s: GatherLoad, pad: str) -> None:
        self.line(s, pad,
                  lambda: f"{s.var.value} = gather{self.width(s.var.lanes)} {s.buffer.name}[{self.text(s.indices)}]{self.mask(s.mask)}")

    @visits(Let)
    def let(self, s: Let, pad: str) -> None:
        self.line(s, pad, lambda: f"{s.var.value} = {self.text(s.value)}")

    @visits(Store)
    def store(self, s: Store, pad: str) -> None:
        how = self.width(s.value.lanes) + (".nt" if s.nontemporal else "")
        self.line(s, pad, lambda: f"store{how} {s.buffer.name}[{self.text(s.index)}] = {self.text(s.value)}{self.mask(s.mask)}")

    @visits(Declare)
    def declare(self, s: Declare, pad: str) -> None:
        dtype = "" if s.register.dtype is F32 else f": {s.register.dtype}"
        self.line(s, pad, lambda: f"reg{self.width(s.register.lanes)} {s.register.name}{dtype} = {self.text(s.init)}")

    @visits(Assign)
    def assign(self, s: Assign, pad: str) -> None:
        self.line(s, pad, lambda: f"{s.register.name} := {self.text(s.value)}")

    @visits(Prefetch)
    def prefetch(self, s: Prefetch, pad: str) -> None:
        self.line(s, pad, lambda: f"prefetch {s.buffer.name}[{self.text(s.index)}]")

    @visits(Comment)
    def comment(self, s: Comment, pad: str) -> None:
        self.line(s, pad, lambda: f"# {s.text}")

    # ---- expressions

    def width(self, lanes: int) -> str:
        return "" if lanes == 1 else ".vec" if lanes == self.lanes else f".{lanes}"

    def mask(self, mask: Expr | None) -> str:
        return "" if mask is None else f" where {self.text(mask)}"

    def share(self, statement: Stmt, pad: str) -> None:
        """Name the subexpressions that the statement uses more than once, and the middles of long ones, operands first."""
        self.named = {}
        roots = set(statement.operands())
        uses: dict[Expr, int] = {}
        order: list[Expr] = []
        stack = statement.operands()
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
        """An expression; in parentheses where the context binds as tightly. Deep chains are rare, since sharing names them."""
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
    """Whether an expression is not worth a name: a leaf, a splat of one, or an index sum of two terms."""
    if x.op in _PLAIN:
        return x.op != "splat" or _is_small(x.args[0])
    return x.dtype.is_integer and x.lanes == 1 and x.op in ("add", "mul") and all(a.op in _PLAIN or a.op == "mul" for a in x.args)


def _constant(value: object, dtype: DType) -> str:
    if dtype.kind == "pred":
        return "true" if value else "false"
    if not isinstance(value, float):
        return str(value)
    if not math.isfinite(value):
        return repr(value)
    if dtype.bits == 64:
        text = repr(value)
    else:
        text = next(t for t in (f"{value:.{n}g}" for n in range(1, 18)) if round_to(float(t), F32) == value)
    return text.removesuffix(".0")
