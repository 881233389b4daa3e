"""XLA's analysis of GPU kernels: what each reads, writes and computes, and the size of its code (gpu_hlo_cost_analysis.cc)."""
from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from irscope.fusion.memo import Memo
from irscope.fusion.xla.gpu_cycles import cycles
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.shapes import WARP, window_reductions
from irscope.graph import Graph, TensorType
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate

MAX_IR = 10000
"""``kMaxIRSize``. (jaxlib 0.10.2 does not count basic-block splits: its binary has no such strings, and its test expects such a fusion.)"""
EVEN_CONCATENATION = 6.0
"""The cost of an element of a concatenation: a comparison and a branch ..."""
UNEVEN_CONCATENATION = 400.0
"""... and if it is not along the first dimension and the first piece is no multiple of a warp: both branches are taken
(``GpuHloCostAnalysis::HandleConcatenate``)."""


MOST = 1e60
"""The most times that a kernel computes one value, as far as they are counted: a body that reads a value at two indices doubles them, and a
thousand such steps would be more than a float holds."""


@dataclass(slots=True)
class Facts:
    """Cost analysis of one instruction: per operand the number of uses and the bytes read; operations; code size.

    For a fusion, ``share`` and ``times`` say how often it computes an element, and how often it contains the code, of what is read at
    separate indices: its root and other instructions, each by a key. ``roots`` has the keys of those at whose indices each operand is
    read. ``exact``: all of it in integers.
    """

    flops: float
    used: list[float]
    read: list[float]
    written: float
    code: float = 1.0
    emitted: tuple[float, ...] = ()
    roots: tuple[frozenset[object], ...] = ()
    share: dict[object, float] | None = None
    times: dict[object, float] | None = None
    exact: bool = False


@dataclass(slots=True)
class Before:
    """A producer and the kernel that is about to take it: facts and operands of both, and the operand number of the producer.

    ``root`` is the root of a producer that is a fusion; ``elements`` are the sizes of the operands of a producer that reads them at
    separate indices, and None for one that reads them at its own.
    """

    producer: Facts
    fusion: Facts
    operands: list[Instruction]
    theirs: list[Instruction]
    number: int
    root: Instruction | None
    elements: list[int] | None


class CostAnalysis:
    """The facts of the instructions of a computation, for one device. They are cached until :meth:`forget`."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self._facts = Memo(self._analysed)
        self._bodies = Memo(self._body_cycles)
        self._plain: dict[object, Facts] = {}

    def forget(self, instruction: Instruction) -> None:
        """Invalidate what is cached of an instruction that changes or is removed."""
        self._facts.pop(instruction, None)

    def facts(self, instruction: Instruction) -> Facts:
        """The cost analysis of one instruction."""
        return self._facts[instruction]

    def _analysed(self, instruction: Instruction) -> Facts:
        """The cost analysis of an instruction; that of the fusions inside it comes first, without recursion: a text may nest thousands."""
        for inner in post_order([instruction], _inner_fusions)[:-1]:
            key = inner.node or inner
            if key not in self._plain:
                self._plain[key] = self._of_fusion(inner)
        return self._of_fusion(instruction) if instruction.body is not None else self._of_plain(instruction)

    def before(self, producer: Instruction, fusion: Instruction) -> Before | None:
        """A kernel and its producer before fusion, for :meth:`after`; None if the fused kernel must be analysed again as a whole.

        This is the case if some cost is not an integer.
        """
        if fusion.kind == "triton" or producer.kind == "triton":
            return None
        a, b = self.facts(producer), self.facts(fusion)
        if not b.exact or (producer.body is not None and not a.exact):
            return None
        through = producer.body is not None or producer.is_elementwise or producer.op in (hlo.tuple, hlo.get_tuple_element)
        return Before(a, b, list(producer.operands), list(fusion.operands), fusion.operands.index(producer),
                      producer.body.root if producer.body is not None else None,
                      None if through else [o.elements for o in producer.operands])

    def after(self, fusion: Instruction, before: Before) -> None:
        """Update the facts of a kernel with a fused producer from those of both, so that long chains are not walked again at each step."""
        a, b, number = before.producer, before.fusion, before.number
        assert b.share is not None and b.times is not None
        usage, copies = b.used[number], b.emitted[number]
        share, times, added = _reads_of(before, b.share, b.times)
        known = {operand: i for i, operand in enumerate(before.theirs) if i != number}
        code = b.code - copies + copies * (a.code - sum(a.emitted) if before.root is not None else 1.0)
        used, emitted, roots = [], [], []
        for operand in fusion.operands:
            place, more = known.get(operand), added.get(operand)
            if place is not None and more is None:
                used.append(b.used[place])
                emitted.append(b.emitted[place])
                roots.append(b.roots[place])
                continue
            both = frozenset(more or ()) | (b.roots[place] if place is not None else frozenset())
            used.append(min(sum(share[r] for r in both), MOST))
            emitted.append(min(sum(times[r] for r in both), MOST))
            roots.append(both)
            code += emitted[-1] - (b.emitted[place] if place is not None else 0.0)
        self._facts[fusion] = Facts(
            b.flops + usage * a.flops, used, [o.size * u for o, u in zip(fusion.operands, used, strict=True)], b.written, code,
            tuple(emitted), tuple(roots), share, times, not any(u % 1 for u in used))

    def too_large(self, producer: Instruction, consumer: Instruction) -> str:
        """Why the code of both would be too large, in numbers; empty if it would not be."""
        a, b = self.facts(producer), self.facts(consumer)
        times = b.emitted[consumer.positions()[producer][0]] if consumer.body is not None else 1.0
        code = a.code * times + b.code
        return f"{code:.0f} instructions of IR > {MAX_IR}" if code > MAX_IR else ""

    def _of_plain(self, instruction: Instruction) -> Facts:
        op, out = instruction.op, instruction.elements
        sizes = [o.size for o in instruction.operands]
        counts = [o.elements for o in instruction.operands]
        used = [1.0] * len(sizes)
        read = list(map(float, sizes))
        written = float(instruction.size)
        flops = 0.0
        if op is hlo.map:
            flops = float(self._body(instruction) * out)
        elif instruction.is_elementwise and op not in (hlo.copy, hlo.constant):
            flops = float(cycles(self.device.capability, op, instruction.dtype) * out)
        elif op is hlo.bitcast:
            read[0] = written = 0.0
        elif op in (hlo.broadcast, hlo.slice, hlo.dynamic_slice, hlo.gather) and sizes:
            used[0] = out / max(1, counts[0])
            read[0] = written
        elif op is hlo.dynamic_update_slice:
            # Users of the result do not see how much of the buffer was overwritten.
            used[0], read[0] = 1 - counts[1] / max(1, out), 0.0
            written = float(sizes[1])
        elif op is hlo.scatter:
            results = len(sizes) // 2
            for i in range(results):
                read[i] = float(sizes[results + 1 + i])
            written = float(sum(sizes[results + 1:]))
            flops = float(self._body(instruction) * counts[results + 1])
        elif op is hlo.concatenate:
            axis = Concatenate.of(instruction).axis
            even = not axis or instruction.operands[0].dims[axis] % WARP == 0
            flops = (EVEN_CONCATENATION if even else UNEVEN_CONCATENATION) * out
        elif op is hlo.reduce:
            each = out // max(1, _parts(instruction))
            flops = float(self._body(instruction) * (counts[0] - each))
            for i in range(len(sizes) // 2, len(sizes)):
                used[i], read[i] = float(each), float(sizes[i] * each)
        elif op is hlo.reduce_window:
            each = out // max(1, _parts(instruction))
            window, times = window_reductions(instruction, each)
            flops = float(self._body(instruction) * times)
            used[0] = each * window / max(1, counts[0])
            read[0] = float(each * window * sizes[0] // max(1, counts[0]))
        return Facts(flops, used, read, written)

    def _of_fusion(self, fusion: Instruction) -> Facts:
        body = fusion.fused_body
        root = body.root
        share: dict[object, float] = {root: 1.0}
        times: dict[object, float] = {root: 1.0}
        roots: dict[Instruction, set[object]] = {root: {root}}
        flops = code = 0.0
        exact = True
        used: dict[Instruction, float] = {}
        emitted: dict[Instruction, float] = {}
        for instruction in reversed(body.post_order()):
            mine = roots.setdefault(instruction, set())
            usage = min(sum(share[r] for r in mine), MOST)
            copies = min(sum(times[r] for r in mine), MOST)
            used[instruction], emitted[instruction] = usage, copies
            exact = exact and usage % 1 == 0
            code += copies
            if instruction.op is hlo.parameter:
                continue
            key = instruction.node or instruction
            facts = self._plain.get(key)
            if facts is None:
                facts = self._plain[key] = self._of_fusion(instruction) if instruction.body is not None else self._of_plain(instruction)
            flops = min(flops + usage * facts.flops, MOST * MOST)
            through = instruction.is_elementwise or instruction.op in (hlo.tuple, hlo.get_tuple_element)
            for number, operand in enumerate(instruction.operands):
                theirs = roots.setdefault(operand, set())
                if through:
                    theirs |= mine
                    continue
                theirs.add(operand)
                count = operand.elements
                share[operand] = share.get(operand, 0.0) + (ceil(usage * facts.used[number] * count - 1e-6) / count if count else 0.0)
                times[operand] = times.get(operand, 0.0) + copies
        written = sum(float((o.operands[1] if o.op is hlo.dynamic_update_slice else o).size) for o in body.outputs)
        return Facts(flops, [used[p] for p in body.params], [p.size * used[p] for p in body.params], written, code,
                     tuple(emitted[p] for p in body.params), tuple(frozenset(roots[p]) for p in body.params), share, times, exact)

    def _body(self, instruction: Instruction) -> float:
        """The operations of a reduction's computation for one element."""
        if not instruction.bodies:
            return float(cycles(self.device.capability, hlo.add, instruction.dtype))
        return self._bodies[instruction.bodies[0]]

    def _body_cycles(self, graph: Graph) -> float:
        return float(sum(cycles(self.device.capability, node.op, node.type.dtype.name) for node in graph.nodes
                         if node.operands and isinstance(node.type, TensorType) and node.op.scalar is not None))


def _reads_of(before: Before, share: dict[object, float], times: dict[object, float]) \
        -> tuple[dict[object, float], dict[object, float], dict[Instruction, set[object]]]:
    """``share`` and ``times`` of a kernel with a fused producer, and the keys at whose indices it reads the operands of the producer.

    The producer is computed at the indices at which the kernel read its result; what it reads at others gets keys of its own.
    """
    a, b, number = before.producer, before.fusion, before.number
    usage, copies, mine = b.used[number], b.emitted[number], b.roots[number]
    added: dict[Instruction, set[object]] = {operand: set() for operand in before.operands}
    if before.elements is not None:
        share, times = dict(share), dict(times)
        for operand, count, used in zip(before.operands, before.elements, a.used, strict=True):
            key = object()
            share[key] = ceil(usage * used * count - 1e-6) / count if count else 0.0
            times[key] = copies
            added[operand].add(key)
    elif before.root is None:
        for operand in before.operands:
            added[operand] |= mine
    else:
        assert a.share is not None and a.times is not None
        keys = {inner: object() for inner in a.share if inner is not before.root}
        if keys:
            share = share | {key: usage * a.share[inner] for inner, key in keys.items()}
            times = times | {key: copies * a.times[inner] for inner, key in keys.items()}
        for operand, roots in zip(before.operands, a.roots, strict=True):
            added[operand] |= {keys[root] for root in roots if root is not before.root} | (mine if before.root in roots else set())
    return share, times, added


def _inner_fusions(instruction: Instruction) -> list[Instruction]:
    """The fusions in the body of a fusion."""
    return [inner for inner in instruction.body.instructions if inner.body is not None] if instruction.body is not None else []


def _parts(instruction: Instruction) -> int:
    return sum(1 for _ in instruction.type.leaves())
