"""One kernel of the tile IR as a module of LLVM text.

A kernel becomes one function, or one for each nest of ``par`` loops in it:

    define void @K(ptr %a0, ..., i64 %first, i64 %last, ptr %scratch)

``first`` and ``last`` bound the units of the nest that this call runs. The text contains neither the kernel's name nor those of its
buffers, so equal kernels have equal texts and are compiled once.
"""
from __future__ import annotations

import math
from dataclasses import dataclass, field

from irscope.backends.llvm_code import Code
from irscope.backends.llvm_statements import StatementEmitter
from irscope.backends.llvm_types import Target
from irscope.backends.llvm_values import ValueEmitter
from irscope.backends.stopping import DECLARED, joined, looking
from irscope.lazy import np
from irscope.lower.tile import Buffer, BufferAccess, Comment, Expr, For, Kernel, Stmt, Store
from irscope.lower.traversal import walk

ENOUGH_UNITS = 64
"""Loops are collapsed into one range of units until there are this many to divide among threads."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A function of a kernel: ``units`` is the size of its range; more than one can be divided among threads."""

    symbol: str
    units: int


@dataclass(slots=True)
class KernelText:
    """``text`` defines functions ``@K...``: replace ``@K`` by the final name. Each call needs ``scratch`` bytes."""

    text: str
    phases: list[Phase]
    scratch: int
    parameters: int


def kernel_text(kernel: Kernel, target: Target, alignments: list[int] | None = None, stops: bool = False) -> KernelText:
    """Emit a kernel for a target. ``alignments`` are what the calls guarantee for each parameter, which may be less than the buffers
    declare. ``stops``: long loops poll for a request to stop."""
    aligned = {b: b.align for b in kernel.buffers}
    aligned |= {b: min(b.align, alignment) for b, alignment in zip(kernel.params(), alignments or ())}
    offsets, scratch = _scratch_places(kernel)
    module = _Module(kernel, target, aligned, offsets, looking(kernel) if stops else {})
    functions, phases = [], []
    groups = _phases(kernel)
    for number, (statements, nest) in enumerate(groups):
        symbol = "@K" if len(groups) == 1 else f"@K.{number}"
        phases.append(Phase(symbol, math.prod(_trips(loop) for loop in nest)))
        functions.append(module.function(symbol, statements, nest))
    parts = [*([DECLARED] if module.looking else []), *(_constant(b, i) for i, b in enumerate(kernel.buffers) if b.scope == "const")]
    parts += module.helpers.values()
    parts += sorted(module.declarations) + functions
    parts += [_ATTRIBUTES.format(width=_vector_width(target)), "!0 = !{i32 1}", "!1 = !{}",
              '!9 = !{!"branch_weights", i32 1, i32 100000}', ""]
    return KernelText("\n".join(parts), phases, scratch, len(kernel.params()))


_ATTRIBUTES = 'attributes #0 = {{ nounwind "no-trapping-math"="true" {width} }}'


def _vector_width(target: Target) -> str:
    return '"prefer-vector-width"="512" "min-legal-vector-width"="512"' if target.avx512 else ""


@dataclass(slots=True)
class _Module:
    """The functions of a kernel share helpers and declarations. ``aligned`` and ``offsets`` are in bytes; ``looking`` is the work of each
    loop body that polls for a request to stop, by its ``id``."""

    kernel: Kernel
    target: Target
    aligned: dict[Buffer, int]
    offsets: dict[Buffer, int]
    looking: dict[int, int]
    helpers: dict[str, str] = field(default_factory=dict)
    declarations: set[str] = field(default_factory=set)

    def function(self, symbol: str, statements: list[Stmt], nest: list[For]) -> str:
        """Emit one function: statements, with the ``par`` loops of a nest divided among threads."""
        code, kernel, target = Code(), self.kernel, self.target
        code.helpers, code.declarations = self.helpers, self.declarations
        values = ValueEmitter(code, target, kernel.precision)
        pointers: dict[Buffer, str] = {}
        header = []
        for i, buffer in enumerate(kernel.params()):
            pointers[buffer] = f"%a{i}"
            only_read = " readonly" if buffer.scope == "in" else ""
            header.append(f"ptr noalias{only_read} align {min(self.aligned[buffer], 64)} %a{i}")
        for i, buffer in enumerate(kernel.buffers):
            if buffer.scope == "const":
                pointers[buffer] = f"@K.data{i}"
            elif buffer.scope == "scratch":
                at = self.offsets[buffer]
                pointers[buffer] = "%scratch" if at == 0 else code.pure(f"getelementptr i8, ptr %scratch, i64 {at}")
        writer = StatementEmitter(code, values, pointers, self.aligned, joined(self.looking, nest))
        if nest:
            for statement in statements:
                if statement is not nest[0]:
                    writer.visit(statement)
            _units(writer, nest)
        else:
            writer.block(statements)
        if target.triple.startswith("x86_64") and any(isinstance(s, Store) and s.nontemporal for s in walk(statements)):
            # Such stores may be reordered after later writes of the thread, even the one that signals completion.
            self.declarations.add("declare void @llvm.x86.sse.sfence()")
            code.effect("call void @llvm.x86.sse.sfence()")
        code.effect("ret void")
        lines = "\n".join(code.text())
        header += ["i64 %first", "i64 %last", "ptr noalias %scratch"]
        return f"define void {symbol}({', '.join(header)}) #0 {{\nentry:\n{lines}\n}}\n"


def _units(writer: StatementEmitter, nest: list[For]) -> None:
    """Emit the loops of a nest as one loop over the requested units."""
    values, code = writer.values, writer.code
    outer = nest[0]
    low = outer.low.constant or 0
    for loop in nest:
        writer.multiples[loop.var] = math.gcd(loop.low.constant or 0, loop.step)
    if len(nest) == 1:
        first, last = (code.pure(f"mul i64 {n}, {outer.step}", n) if outer.step != 1 else n for n in ("%first", "%last"))
        if low:
            first, last = (code.pure(f"add i64 {n}, {low}", n) for n in (first, last))
        writer.loop(outer.var, (first, last, outer.step), outer.body, guarded=False)
        return
    inner = nest[-1].body

    def begin(unit: str) -> None:
        rest = unit
        for loop in reversed(nest):
            trips, low = _trips(loop), loop.low.constant or 0
            here = code.pure(f"urem i64 {rest}, {trips}", rest) if loop is not outer else rest
            rest = code.pure(f"udiv i64 {rest}, {trips}", rest) if loop is not outer else rest
            place = code.pure(f"mul i64 {here}, {loop.step}", here) if loop.step != 1 else here
            values.names[loop.var] = code.pure(f"add i64 {place}, {low}", place) if low else place

    writer.loop(None, ("%first", "%last", 1), inner, guarded=False, begin=begin)


def _trips(loop: For) -> int:
    assert loop.trips is not None
    return loop.trips


def _phases(kernel: Kernel) -> list[tuple[list[Stmt], list[For]]]:
    """Groups of statements that each become a function, with the ``par`` nest that can be divided among threads (empty: none).

    Loads of memory that is never written, and values computed from them, are repeated in each function. Where anything else is carried
    from one group to the next (registers, scratch memory), the kernel remains one function.
    """
    groups: list[tuple[list[Stmt], list[For]]] = []
    before: list[Stmt] = []
    serial: list[Stmt] = []
    for statement in kernel.body:
        if isinstance(statement, For) and statement.kind == "par" and (nest := _nest(statement)):
            if serial:
                groups.append(([*before, *serial], []))
                serial = []
            groups.append(([*before, statement], nest))
        elif statement.result is not None:
            if not _is_repeatable(statement):
                return [(kernel.body, [])]
            before.append(statement)
        elif not isinstance(statement, Comment):
            serial.append(statement)
    if serial:
        groups.append(([*before, *serial], []))
    shared = any(nest for _, nest in groups)
    if not shared or (len(groups) > 1 and any(b.scope == "scratch" for b in kernel.buffers)):
        return [(kernel.body, [])]
    return groups


def _is_repeatable(statement: Stmt) -> bool:
    """Whether a statement only defines a value, and does not load from memory that may be written."""
    return isinstance(statement.result, Expr) and (not isinstance(statement, BufferAccess) or statement.buffer.scope in ("in", "const"))


def _nest(loop: For) -> list[For]:
    """The loops to collapse: constant bounds, perfectly nested, until there are enough units."""
    nest: list[For] = []
    units = 1
    at: Stmt = loop
    while isinstance(at, For) and at.kind == "par" and at.low.constant is not None and at.high.constant is not None:
        nest.append(at)
        units *= _trips(at)
        inner = [s for s in at.body if not isinstance(s, Comment)]
        if units >= ENOUGH_UNITS or len(inner) != 1:
            break
        at = inner[0]
    return nest


def _scratch_places(kernel: Kernel) -> tuple[dict[Buffer, int], int]:
    """Offsets in the scratch memory of a thread, staggered to avoid 4 KiB aliasing."""
    places: dict[Buffer, int] = {}
    end = 0
    for buffer in kernel.buffers:
        if buffer.scope == "scratch":
            places[buffer] = end
            size = buffer.elements * buffer.dtype.storage
            end += (size + 63) // 64 * 64 + (17 * 64 if size >= 2048 else 0)
    return places, end


def _constant(buffer: Buffer, number: int) -> str:
    data = np.ascontiguousarray(buffer.data).tobytes()
    text = "\\" + data.hex("\\").upper() if data else ""
    return f'@K.data{number} = internal unnamed_addr constant [{len(data)} x i8] c"{text}", align 64'
