"""Statements of the tile IR as LLVM text: memory, and control flow with registers carried as phis."""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from irscope.backends import llvm_masked
from irscope.backends.llvm_code import Code, CodeRegion, InsertionPoint, Lines
from irscope.backends.llvm_integer import cut
from irscope.backends.llvm_masked import LaneRun
from irscope.backends.llvm_types import register, scalar, splat_text, vector
from irscope.backends.llvm_values import Name, ValueEmitter
from irscope.backends.stopping import look
from irscope.lower.tile import Assign, Buffer, Declare, Expr, For, GatherLoad, If, Let, Load, Prefetch, Register, Stmt, Store, While
from irscope.lower.traversal import Visitor, assigned, visits


class StatementEmitter(Visitor):
    """Emits statements into a function."""

    def __init__(self, code: Code, values: ValueEmitter, pointers: dict[Buffer, str], aligned: dict[Buffer, int],
                 looking: Mapping[int, int] | None = None) -> None:
        self.code = code
        self.looking = looking or {}  # bodies of loops, by id, that poll for a request to stop
        self.aligned = aligned
        self.values = values
        self.pointers = pointers
        self.multiples: dict[Expr, int] = {}  # the known divisor of each loop variable

    @visits(Let)
    def let(self, s: Let) -> None:
        self.values.names[s.var] = self.values.value(s.value)

    @visits(Declare, Assign)
    def set(self, s: Declare | Assign) -> None:
        for value in s.operands():
            self.values.registers[s.register] = self.values.one(value)

    @visits(Prefetch)
    def prefetch(self, s: Prefetch) -> None:
        pointer, _ = self.address(s.buffer, s.index)
        self.code.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.code.effect(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    # ---- memory

    def address(self, buffer: Buffer, index: Expr) -> tuple[str, int]:
        """The pointer to an element, and its alignment. Terms are added outermost first, the constant last, so that loop-invariant
        terms are hoisted and the rest becomes an addressing mode."""
        kind, size = _cell(buffer)
        pointer, alignment = self.pointers[buffer], self.aligned[buffer]
        for term in _terms(index):
            constant = term.constant
            if constant is not None:
                alignment = math.gcd(alignment, constant * size)
                pointer = self.code.pure(f"getelementptr {kind}, ptr {pointer}, i64 {constant}", pointer) if constant else pointer
                continue
            alignment = math.gcd(alignment, self._multiple(term) * size)
            place = self.values.one(term)
            pointer = self.code.pure(f"getelementptr {kind}, ptr {pointer}, i64 {place}", pointer, place)
        return pointer, alignment

    def _multiple(self, term: Expr) -> int:
        factor = 1
        if term.op == "mul" and term.args[1].constant is not None:
            factor, term = term.args[1].constant, term.args[0]
        return abs(factor) * self.multiples.get(term, 1)

    @visits(Load)
    def load(self, s: Load) -> None:
        self.values.names[s.var] = self._load(s)

    def _load(self, s: Load) -> Name:
        pointer, alignment = self.address(s.buffer, s.index)
        dtype, lanes = s.buffer.dtype, s.var.lanes
        fixed = ", !invariant.load !1" if s.buffer.scope in ("in", "const") else ""
        if dtype.is_complex:
            return self._load_complex(s, pointer, alignment, fixed)
        element = _memory(s.buffer)
        if s.mask is None:
            out = self.code.result(f"load {vector(element, lanes)}, ptr {pointer}, align {min(alignment, 64)}{fixed}")
        else:
            out = llvm_masked.load(self.code, LaneRun(element, lanes, pointer, alignment), self.values.one(s.mask))
        return self._to_register(out, s.buffer, lanes)

    def _load_complex(self, s: Load, pointer: str, alignment: int, fixed: str) -> Name:
        element, lanes = scalar(s.buffer.dtype), s.var.lanes
        kind = vector(element, 2 * lanes)
        if s.mask is None:
            both = self.code.result(f"load {kind}, ptr {pointer}, align {alignment}{fixed}")
        else:
            both = llvm_masked.load(self.code, LaneRun(element, 2 * lanes, pointer, alignment), self._doubled(s.mask, lanes))
        return self._part(both, element, lanes, 0), self._part(both, element, lanes, 1)

    def _part(self, both: str, element: str, lanes: int, which: int) -> str:
        kind = vector(element, 2 * lanes)
        if lanes == 1:
            return self.code.pure(f"extractelement {kind} {both}, i64 {which}", both)
        take = ", ".join(f"i32 {2 * i + which}" for i in range(lanes))
        return self.code.pure(f"shufflevector {kind} {both}, {kind} poison, <{lanes} x i32> <{take}>", both)

    def _interleaved(self, re: str, im: str, element: str, lanes: int) -> str:
        if lanes == 1:
            first = self.code.pure(f"insertelement <2 x {element}> poison, {element} {re}, i64 0", re)
            return self.code.pure(f"insertelement <2 x {element}> {first}, {element} {im}, i64 1", first, im)
        take = ", ".join(f"i32 {i}, i32 {i + lanes}" for i in range(lanes))
        kind = vector(element, lanes)
        return self.code.pure(f"shufflevector {kind} {re}, {kind} {im}, <{2 * lanes} x i32> <{take}>", re, im)

    def _doubled(self, of: Expr, lanes: int) -> str:
        """A mask for both parts of each complex lane."""
        held, mask = _held(of), self.values.one(of)
        if held is not None:
            return llvm_masked.constant([lane for lane in held for _ in (0, 1)])
        if lanes == 1:
            first = self.code.pure(f"insertelement <2 x i1> poison, i1 {mask}, i64 0", mask)
            return self.code.pure(f"shufflevector <2 x i1> {first}, <2 x i1> poison, <2 x i32> zeroinitializer", first)
        take = ", ".join(f"i32 {i}, i32 {i}" for i in range(lanes))
        return self.code.pure(f"shufflevector <{lanes} x i1> {mask}, <{lanes} x i1> poison, <{2 * lanes} x i32> <{take}>", mask)

    def _to_register(self, name: str, buffer: Buffer, lanes: int) -> str:
        if buffer.dtype.kind != "pred":
            # The caller may have left the upper bits of sub-byte integers undefined.
            return cut(self.code, name, buffer.dtype, lanes)
        return self.code.pure(f"icmp ne {vector('i8', lanes)} {name}, {'0' if lanes == 1 else 'zeroinitializer'}", name)

    @visits(GatherLoad)
    def gather(self, s: GatherLoad) -> None:
        self.values.names[s.var] = self._gather(s)

    def _gather(self, s: GatherLoad) -> Name:
        lanes = s.var.lanes
        indices = self.values.one(s.indices)
        index_kind = register(s.indices.dtype, lanes)
        mask = self.values.one(s.mask) if s.mask is not None else "splat (i1 true)"
        kind, _ = _cell(s.buffer)
        base = self.pointers[s.buffer]
        if not s.buffer.dtype.is_complex:
            pointers = self.code.pure(f"getelementptr {kind}, ptr {base}, {index_kind} {indices}", base, indices)
            return self._to_register(llvm_masked.gather(self.code, _memory(s.buffer), lanes, pointers, mask), s.buffer, lanes)
        parts = []
        for part in (0, 1):
            pointers = self.code.pure(f"getelementptr {kind}, ptr {base}, {index_kind} {indices}, i32 {part}", base, indices)
            parts.append(llvm_masked.gather(self.code, scalar(s.buffer.dtype), lanes, pointers, mask))
        return parts[0], parts[1]

    @visits(Store)
    def store(self, s: Store) -> None:
        pointer, alignment = self.address(s.buffer, s.index)
        dtype, lanes = s.buffer.dtype, s.value.lanes
        value = self.values.value(s.value)
        mask = None if s.mask is None else self.values.one(s.mask)
        element = _memory(s.buffer)
        if isinstance(value, tuple):
            element = scalar(dtype)
            value = self._interleaved(value[0], value[1], element, lanes)
            mask = None if s.mask is None else self._doubled(s.mask, lanes)
            lanes *= 2
        elif dtype.kind == "pred":
            value = self.code.pure(f"zext {vector('i1', lanes)} {value} to {vector('i8', lanes)}", value)
        elif dtype.kind == "int" and dtype.bits < 8:
            # In memory the upper bits are 0, as ml_dtypes keeps them.
            own = splat_text(str((1 << dtype.bits) - 1), "i8", lanes)
            value = self.code.pure(f"and {vector('i8', lanes)} {value}, {own}", value)
        if s.mask is not None and mask is not None:
            llvm_masked.store(self.code, LaneRun(element, lanes, pointer, alignment), value, mask, _held(s.mask))
            return
        size = lanes * (s.buffer.dtype.storage // (2 if dtype.is_complex else 1))
        # LLVM would split an unaligned nontemporal store into single elements.
        temporal = ", !nontemporal !0" if s.nontemporal and alignment % size == 0 else ""
        self.code.effect(f"store {vector(element, lanes)} {value}, ptr {pointer}, align {min(alignment, 64)}{temporal}")

    # ---- control flow

    @visits(For)
    def for_(self, s: For) -> None:
        low, high = s.low.constant, s.high.constant
        guarded = low is None or high is None or low >= high
        self.multiples[s.var] = math.gcd(low, s.step) if low is not None else 1
        self.loop(s.var, (self.values.one(s.low), self.values.one(s.high), s.step), s.body, guarded)

    def loop(self, var: Expr | None, bounds: tuple[str, str, int], body: list[Stmt], guarded: bool,
             begin: Callable[[str], None] | None = None) -> None:
        """``for var = low; var < high; var += step``; without ``guarded`` there is at least one iteration."""
        code, values, (low, high, step) = self.code, self.values, bounds
        carried = [r for r in assigned(body) if r in values.registers]
        first = [values.registers[r] for r in carried]
        head, leave = code.label(), code.label()
        condition = code.pure(f"icmp slt i64 {low}, {high}", low, high) if guarded else ""
        with self._region(False, head) as inner:
            iv, names, phis = self._phis(carried)
            if var is not None:
                values.names[var] = iv
            if id(body) in self.looking:
                self._stop_if_asked(self.looking[id(body)])
            if begin is not None:
                begin(iv)
            self.block(body)
            following = code.result(f"add nsw i64 {iv}, {step}")
            again = code.result(f"icmp slt i64 {following}, {high}")
            code.effect(f"br i1 {again}, label %{head}, label %{leave}")
            last = [values.registers[r] for r in carried]
        before, end = _ahead(inner.before), inner.place.label
        place = code.regions[-1].place
        place.lines.append(f"  br i1 {condition}, label %{head}, label %{leave}" if guarded else f"  br label %{head}")
        place.lines += [f"{head}:", inner.place.lines, f"{leave}:"]
        phis.append(f"  {iv} = phi i64 [ {low}, %{before} ], [ {following}, %{end} ]")
        for r, name, one, two in zip(carried, names, first, last):
            phis.append(f"  {name} = phi {register(r.dtype, r.lanes)} [ {one}, %{before} ], [ {two}, %{end} ]")
        place.label = leave
        for r, one, two in zip(carried, first, last):
            if guarded:
                values.registers[r] = code.result(f"phi {register(r.dtype, r.lanes)} [ {one}, %{before} ], [ {two}, %{end} ]")
            else:
                self._settle(r, two)

    def _stop_if_asked(self, work: int) -> None:
        """Emit a return where a stop is requested."""
        code = self.code
        out, on = code.label(), code.label()
        lines, asked = look(code.name, work)
        for line in lines:
            code.effect(line)
        place = code.regions[-1].place
        place.lines += [f"  br i1 {asked}, label %{out}, label %{on}, !prof !9", f"{out}:", "  ret void", f"{on}:"]
        place.label = on

    @contextmanager
    def _region(self, conditional: bool, label: str) -> Iterator[CodeRegion]:
        """Open a region, and close it at the end of the ``with`` block. The names of values computed in it are dropped there."""
        self.code.enter(conditional, label)
        self.values.enter()
        yield self.code.regions[-1]
        self.code.leave()
        self.values.leave()

    def _phis(self, carried: list[Register]) -> tuple[str, list[str], Lines]:
        """Begin a loop. Returns the name of its variable, the names of the registers that it carries, and the lines for their phis,
        which the caller fills at the end."""
        code, values = self.code, self.values
        phis: Lines = []
        code.regions[-1].place.lines.append(phis)
        iv = code.name()
        names = [code.name() for _ in carried]
        for name in (iv, *names):
            code.level[name] = code.depth
        for r, name in zip(carried, names):
            values.registers[r] = name
        return iv, names, phis

    def _settle(self, r: Register, name: str) -> None:
        """After a loop, move a register's value to the enclosing code."""
        self.values.registers[r] = name
        if self.code.level.get(name, 0) > self.code.depth:
            self.code.level[name] = self.code.depth

    @visits(While)
    def while_(self, s: While) -> None:
        code, values = self.code, self.values
        carried = [r for r in assigned([s]) if r in values.registers]
        first = [values.registers[r] for r in carried]
        head, body, leave = code.label(), code.label(), code.label()
        with self._region(False, head) as inner:
            _, names, phis = self._phis(carried)
            self.block(s.head)
            condition = values.one(s.condition)
            at_exit = [values.registers[r] for r in carried]
            with self._region(True, body) as arm:
                self.block(s.body)
                code.effect(f"br label %{head}")
                last = [values.registers[r] for r in carried]
            inner.place.lines += [f"  br i1 {condition}, label %{body}, label %{leave}", f"{body}:", arm.place.lines]
        before = _ahead(inner.before)
        for r, name, one, two in zip(carried, names, first, last):
            phis.append(f"  {name} = phi {register(r.dtype, r.lanes)} [ {one}, %{before} ], [ {two}, %{arm.place.label} ]")
        outer = code.regions[-1].place
        outer.lines += [f"  br label %{head}", f"{head}:", inner.place.lines, f"{leave}:"]
        outer.label = leave
        for r, name in zip(carried, at_exit):
            self._settle(r, name)

    @visits(If)
    def if_(self, s: If) -> None:
        code, values = self.code, self.values
        condition = values.one(s.condition)
        changed = [r for r in assigned([s]) if r in values.registers]
        before = [values.registers[r] for r in changed]
        join = code.label()
        arms: list[tuple[str, InsertionPoint, list[str]]] = []
        for statements in (s.then, s.otherwise):
            if not statements:
                continue
            label = code.label()
            with self._region(True, label) as arm:
                self.block(statements)
                code.effect(f"br label %{join}")
                after = [values.registers[r] for r in changed]
            arms.append((label, arm.place, after))
            for r, name in zip(changed, before):
                values.registers[r] = name
        place = code.regions[-1].place
        direct = place.label
        labels = [label for label, _, _ in arms]
        yes = labels[0] if s.then else join
        no = (labels[-1] if s.otherwise else join)
        place.lines.append(f"  br i1 {condition}, label %{yes}, label %{no}")
        for label, end, _ in arms:
            place.lines += [f"{label}:", end.lines]
        place.lines.append(f"{join}:")
        place.label = join
        ways = [(end.label, after) for _, end, after in arms]
        if len(ways) == 1:
            ways.append((direct, before))
        for i, r in enumerate(changed):
            choices = ", ".join(f"[ {after[i]}, %{label} ]" for label, after in ways)
            values.registers[r] = code.result(f"phi {register(r.dtype, r.lanes)} {choices}")


def _ahead(place: InsertionPoint | None) -> str:
    assert place is not None
    return place.label


def _terms(index: Expr) -> list[Expr]:
    """The terms of a sum, in order."""
    found = []
    while index.op == "add":
        found.append(index.args[1])
        index = index.args[0]
    found.append(index)
    return found[::-1]


def _held(mask: Expr) -> tuple[bool, ...] | None:
    """The lanes of a constant mask; None for a computed mask."""
    return mask.value if mask.op == "const" and isinstance(mask.value, tuple) else None


def _memory(buffer: Buffer) -> str:
    """The type of one element in memory."""
    return "i8" if buffer.dtype.kind == "pred" else scalar(buffer.dtype)


def _cell(buffer: Buffer) -> tuple[str, int]:
    """The type that addresses count in, and its size in bytes."""
    element = _memory(buffer)
    return (f"{{ {element}, {element} }}" if buffer.dtype.is_complex else element), buffer.dtype.storage
