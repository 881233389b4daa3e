"""Nodes of the scheduler: the loops of one buffer, or several joined, with their reads and writes."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

from irscope.fusion.inductor.forms import Form, coordinates, is_indirect
from irscope.fusion.inductor.loops import Access, Nest, access, nest_of
from irscope.fusion.inductor.values import Buffer

Group = tuple[tuple[int, ...], tuple[int, ...]]
"""The loops of a kernel: sizes of the result loops, and of the reduction loops."""


class Star(NamedTuple):
    """A dependence on a whole buffer (StarDep), or only on the order of two operations."""

    buffer: str
    mode: str = ""


Dependence = Access | Star


@dataclass(slots=True, eq=False)
class Loops:
    """The loops of one buffer before any join: ``sizes`` and ``reduced`` without ones; its accesses, the store first.

    ``buffers`` names the buffer of each access; ``counts`` are forms that, like accesses, prevent loops from being merged.
    """

    sizes: tuple[int, ...]
    reduced: tuple[int, ...]
    buffers: tuple[str, ...]
    forms: tuple[Form, ...]
    mode: str = ""
    counts: tuple[Form, ...] = ()

    def nest(self, also: Iterable[Form] = ()) -> Nest:
        """The loops after reordering and merging; ``also`` are forms of another kernel that prevent merging."""
        return nest_of(self.sizes, self.reduced, self.forms, [*self.counts, *also])


@dataclass(slots=True, eq=False)
class Kernel:
    """A node of the scheduler. ``buffers`` are its operations, in order; ``group`` its loops.

    ``reads`` and ``writes`` are in order; ``needs``: reads of results of other operations. ``single``: the loops of the only buffer
    (None for several), ``parts`` the joined kernels of one buffer each. ``outer``: kernels that share only their ``depth`` outer
    loops. ``low`` and ``high``: the first and the last position of the operations in program order.
    """

    buffers: tuple[Buffer, ...]
    group: Group = ((), ())
    reads: dict[Dependence, None] = field(default_factory=dict)
    writes: dict[Dependence, None] = field(default_factory=dict)
    needs: dict[Dependence, None] = field(default_factory=dict)
    single: Loops | None = None
    reduces: bool = False
    extern: bool = False
    outer: tuple[Kernel, ...] = ()
    depth: int = 0
    low: int = 0
    high: int = 0
    names: frozenset[str] = frozenset()
    parts: tuple[Kernel, ...] = ()

    @property
    def label(self) -> str:
        """The name in Inductor's log."""
        return "_".join(f"op{b.number}" for b in self.buffers)

    def touched(self) -> dict[str, None]:
        """The buffers that it reads or writes."""
        return dict.fromkeys(d.buffer for d in (*self.reads, *self.writes))


def loops_of(buffer: Buffer) -> Loops:
    """The loops that compute a buffer, without loops of size one."""
    sizes = buffer.iterated if buffer.iterated is not None else buffer.shape
    where = buffer.where if buffer.where is not None else coordinates(sizes)
    reads = [(read.name, read.flat(at)) for read, at in buffer.expression.loads]
    forms = (buffer.flat(where), *(form for _, form in reads))
    return Loops(tuple(sizes), buffer.reduced, (buffer.name, *(name for name, _ in reads)), forms, buffer.mode,
                 tuple(buffer.expression.counts))


def kernel_of(buffer: Buffer, order: int) -> Kernel:
    """A buffer as a node of the scheduler."""
    kernel = Kernel((buffer,), low=order, high=order, names=frozenset((buffer.name,)))
    if buffer.kind in ("extern", "nop"):
        kernel.extern = True
        kernel.reads = dict.fromkeys(Star(read.name) for read in buffer.reads)
        kernel.writes = {Star(buffer.name): None}
    else:
        kernel.reduces = bool(buffer.reduced)
        kernel.single = loops_of(buffer)
        looped(kernel, kernel.single.nest())
    kernel.needs = dict.fromkeys(d for d in kernel.reads if not d.buffer.startswith("%"))
    return kernel


def looped(kernel: Kernel, nest: Nest) -> None:
    """Set the loops of a kernel of one buffer, and the accesses that follow from them."""
    loops = kernel.single
    assert loops is not None
    buffer = kernel.buffers[0]
    kernel.group = (nest.iterated, nest.reduced)
    sizes = (*nest.iterated, *nest.reduced)
    numbers: dict[object, int] = {}
    made = [access(name, form, sizes, numbers, mode=loops.mode if i == 0 else "")
            for i, (name, form) in enumerate(zip(loops.buffers, nest.accesses))]
    kernel.writes = {made[0]: None}
    kernel.reads = dict.fromkeys(made[1:])
    kernel.reads.update(dict.fromkeys(Star(read.name, loops.mode) for read in buffer.reads))
    kernel.needs = dict.fromkeys(d for d in kernel.reads if not d.buffer.startswith("%"))


def fused(first: Kernel, second: Kernel, outer: tuple[Kernel, ...] = (), depth: int = 0) -> Kernel:
    """Join two kernels into one (FusedSchedulerNode)."""
    buffers = (*first.buffers, *second.buffers)
    writes = {**first.writes, **second.writes}
    reads = {d: None for d in (*first.reads, *second.reads) if d not in writes}
    names = first.names | second.names
    lead = first if first.reduces or not second.reduces else second
    return Kernel(buffers, lead.group, reads, writes, {d: None for d in (*first.needs, *second.needs) if d.buffer not in names},
                  reduces=first.reduces or second.reduces, outer=outer, depth=depth, low=min(first.low, second.low),
                  high=max(first.high, second.high), names=names, parts=(*(first.parts or (first,)), *(second.parts or (second,))))


def size_of(dependence: Dependence, buffers: dict[str, Buffer]) -> int:
    """Bytes that an access moves, as Inductor estimates them."""
    buffer = buffers[dependence.buffer]
    if isinstance(dependence, Star) or is_indirect(dependence.form):
        return prod(buffer.shape) * buffer.itemsize
    return dependence.elements * buffer.itemsize
