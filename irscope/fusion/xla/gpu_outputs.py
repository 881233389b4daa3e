"""XLA's pass after its GPU fusion pass: joins kernels that share an operand, or a kernel and its producer, into one with several results.

``MultiOutputFusion`` (multi_output_fusion.cc, gpu_fusible.cc). It changes the number of kernels, but no verdict on an edge.
"""
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from irscope.fusion.memo import Memo
from irscope.fusion.xla.above import Above
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_kinds import heroes_of, is_real_reduction, kind_with, members, traits_of_both
from irscope.fusion.xla.gpu_rules import fits_budget, is_full
from irscope.fusion.xla.inplace import in_place_operands
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.joining import join_outputs
from irscope.fusion.xla.loops import for_reader
from irscope.fusion.xla.shapes import is_unnested_reduction
from irscope.fusion.xla.transposes import squeezed, tiled_transpose, transpose_is_bitcast
from irscope.graph import TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Reduce, Slice

SMALL = 1024
"""Bytes below which non-overlapping slices of a shared operand do not prevent a join."""


def join_kernels(computation: Computation, cost: CostModel) -> list[tuple[str, str]]:
    """Join kernels of a computation in place; returns the joined pairs (removed, kept), in order."""
    joiner = _Joiner(computation, cost)
    for producer in reversed(computation.post_order()):
        if producer.op is not hlo.constant and producer.kind not in ("kCustom", "triton") and producer in computation.instructions:
            joiner.join_siblings(producer)
            joiner.join_reader(producer)
    return joiner.joined


class _Joiner:
    """Joins the kernels of one computation. ``above`` holds which kernels depend on which."""

    def __init__(self, computation: Computation, cost: CostModel) -> None:
        self.computation, self.cost = computation, cost
        self.joined: list[tuple[str, str]] = []
        self.loops = Memo(OutputLoop.of)
        self.above = Above(computation)

    def join_siblings(self, parent: Instruction) -> None:
        """Join users of one value. Only kernels over equally many elements can become one, so no others are tried."""
        if parent.elements == 1 and parent.is_array:
            return
        siblings = sorted((user for user in parent.users if _is_sibling(user)), key=_rank, reverse=True)
        if len(siblings) < 2:
            return
        alike: dict[int, list[Instruction]] = {}
        for sibling in siblings:
            alike.setdefault(self.loops[sibling].elements, []).append(sibling)
        for kept in siblings:
            others = alike[self.loops[kept].elements] if kept in self.computation.instructions else []
            if others and others.pop(0).op is hlo.fusion and others:
                others[:] = self._join_alike(kept, others, parent)

    def _join_alike(self, kept: Instruction, others: list[Instruction], parent: Instruction) -> list[Instruction]:
        """Join into one kernel everything that it takes; returns the rest."""
        left: list[Instruction] = []
        for place, other in enumerate(others):
            if is_full(kept):
                return left + others[place:]
            if not self._may_join(kept, other, parent):
                left.append(other)
                continue
            loop, both = self.loops[kept].beside(self.loops[other]), traits_of_both(other, kept)
            self._join(kept, other, "kInput" if "kInput" in (kind(kept), kind(other)) else "kLoop")
            self.loops[kept], kept.traits = loop, both
        return left

    def join_reader(self, producer: Instruction) -> None:
        """Join a value with a user: kernels with several results first, then kernels; of equal ones the first."""
        candidates = [consumer for consumer in producer.users if self._takes(producer, consumer)] if _may_give(producer) else []
        if candidates:
            chosen = max(candidates, key=_rank)
            self._join(chosen, producer, kind_with(chosen, producer))

    def _join(self, kept: Instruction, other: Instruction, kind: str) -> None:
        self.joined.append((other.name, kept.name))
        for changed in (kept, other):
            self.cost.forget(changed)
            self.loops.pop(changed, None)
        self.above.join(kept, other, join_outputs(self.computation, kept, other, kind))

    def _may_join(self, first: Instruction, second: Instruction, parent: Instruction) -> bool:
        """``CanFuseSiblings``."""
        if self.above.are_connected(first, second):
            return False
        if not self.loops[first].takes(self.loops[second]) or not _overlap(first, second, parent):
            return False
        if any(i.body is not None and i.body.root.op is hlo.dynamic_update_slice for i in (first, second)):
            return False
        return fits_budget(first, second, self.cost.device)

    def _takes(self, producer: Instruction, consumer: Instruction) -> bool:
        """``ProducerCandidateIsFusible``."""
        if not is_output_root(consumer) or not self.loops[consumer].takes(self.loops[producer]) \
                or not fits_budget(producer, consumer, self.cost.device) or self.above.has_detour(producer, consumer):
            return False
        apart, joined = self.cost.with_output(producer, consumer)
        return not self.cost.too_large(producer, consumer) and joined <= apart


@dataclass(frozen=True, slots=True)
class OutputLoop:
    """What decides whether one loop can compute the results of two kernels (``ShapesCompatibleForMultiOutputFusion``).

    ``reduces`` and ``moves`` say how the hero reduces or transposes (None: it does not), ``shape`` and ``layout`` are those of the loop,
    ``parts`` the same of several arrays; ``in_memory`` are the sizes in memory order, without those of 1.
    """

    reduces: Hashable
    moves: Hashable
    shape: tuple[int, ...]
    layout: tuple[int, ...]
    parts: tuple[Hashable, ...]
    in_memory: tuple[int, ...]
    elements: int

    @staticmethod
    def of(kernel: Instruction) -> OutputLoop:
        """The loop of a kernel."""
        hero = hero_of(kernel)
        reduces: Hashable = None
        moves: Hashable = None
        over = hero
        if is_unnested_reduction(hero):
            over = hero.operands[0]
            first = next(leaf for leaf in hero.type.leaves() if isinstance(leaf, TensorType))
            reduces = (first.shape, over.dims, over.minor, Reduce.of(hero).dimensions)
        elif (tiled := tiled_transpose(hero)) is not None:
            over, moves = hero.operands[0], tiled.form
        parts = () if over.is_array else tuple((leaf.shape, leaf.layout) for leaf in over.type.leaves() if isinstance(leaf, TensorType))
        in_memory = tuple(over.dims[d] for d in squeezed(over)) if over.is_array else ()
        return OutputLoop(reduces, moves, over.dims, over.minor, parts, in_memory, over.elements)

    def beside(self, other: OutputLoop) -> OutputLoop:
        """The loop of a kernel with the results of both: that of its first reduction or transpose, else of its first result."""
        return other if self.reduces is None and self.moves is None and (other.reduces, other.moves) != (None, None) else self

    def takes(self, other: OutputLoop) -> bool:
        """Whether both are one loop: they have the same shape, or the same order in memory."""
        if None not in (self.reduces, other.reduces) and self.reduces != other.reduces:
            return False
        if None not in (self.moves, other.moves) and self.moves != other.moves:
            return False
        if (self.moves is not None and other.reduces is not None) or (self.reduces is not None and other.moves is not None):
            return False
        if self.parts or other.parts:
            return self.parts == other.parts
        if (self.shape, self.layout) == (other.shape, other.layout):
            return True
        return (self._is_plain() and other._is_plain() and self.elements == other.elements) or self.in_memory == other.in_memory

    def _is_plain(self) -> bool:
        return self.layout == tuple(range(len(self.shape) - 1, -1, -1))


def _rank(instruction: Instruction) -> int:
    return 2 if has_outputs(instruction) else 1 if instruction.op is hlo.fusion else 0


def has_outputs(instruction: Instruction) -> bool:
    """Whether a kernel has several results."""
    return instruction.body is not None and instruction.body.root.op is hlo.tuple


def kind(instruction: Instruction) -> str:
    """XLA's kind of a kernel, or of an instruction that is no kernel yet."""
    return instruction.kind if instruction.body is not None else kind_with(instruction, None)


def one_loop(first: Instruction, second: Instruction) -> bool:
    """``ShapesCompatibleForMultiOutputFusion``: whether one loop can compute the results of both."""
    return OutputLoop.of(first).takes(OutputLoop.of(second))


def is_input_reduction(kernel: Instruction) -> bool:
    """``IsInputFusibleReduction``: whether a kernel uses the reduction emitter."""
    return any(is_real_reduction(root, hero) for root, hero in heroes_of(kernel))


def is_output_root(instruction: Instruction) -> bool:
    """``IsFusibleAsMultiOutputFusionRoot``: loops, reductions, tiled transposes and elementwise instructions."""
    if not instruction.is_fusible or instruction.kind in ("kCustom", "triton"):
        return False
    if instruction.op is hlo.fusion and kind(instruction) == "kLoop":
        return True
    return instruction.is_elementwise or any(_is_decisive(root, hero) for root, hero in heroes_of(instruction))


def _is_sibling(instruction: Instruction) -> bool:
    """``IsSiblingFusionCandidate``."""
    if not instruction.users or not is_output_root(instruction) or is_nested_variadic(instruction):
        return False
    return not has_outputs(instruction) or all(user.op is hlo.get_tuple_element for user in instruction.users)


def is_nested_variadic(instruction: Instruction) -> bool:
    """``IsNestableVariadicReduction``: a variadic reduction that a loop computes."""
    if instruction.is_array:
        return False
    if instruction.op is hlo.reduce:
        return not is_unnested_reduction(instruction)
    return instruction.body is not None and kind(instruction) == "kLoop" and instruction.body.root.op is hlo.reduce


def _is_decisive(root: Instruction, hero: Instruction) -> bool:
    """Whether a root uses the emitter of its hero: a real reduction, a tiled transpose."""
    return is_real_reduction(root, hero) or tiled_transpose(hero) is not None


def hero_of(kernel: Instruction) -> Instruction:
    """``GetRealHeroForMultiOutputFusion``."""
    if kernel.body is None:
        return kernel
    found = next((hero for root, hero in heroes_of(kernel) if _is_decisive(root, hero)), None)
    return found if found is not None else kernel.results[0]


def _overlap(first: Instruction, second: Instruction, parent: Instruction) -> bool:
    """Whether two users of a large array read overlapping parts, as far as their slices show."""
    if not parent.is_array or parent.size < SMALL:
        return True
    a, b = _slice_of(parent, first), _slice_of(parent, second)
    if a is None or b is None:
        return True
    return all(x[0] < y[1] and y[0] < x[1] for x, y in zip(a, b, strict=True))


def _slice_of(parent: Instruction, reader: Instruction) -> tuple[tuple[int, int, int], ...] | None:
    """The only slice through which an instruction reads a value; None if it also reads it in another way."""
    while reader.body is not None:
        places = [i for i, o in enumerate(reader.operands) if o is parent]
        if len(places) != 1:
            return None
        parent = reader.body.params[places[0]]
        if len(parent.users) != 1:
            return None
        reader = next(iter(parent.users))
    return Slice.of(reader).slice if reader.op is hlo.slice else None


def _may_give(producer: Instruction) -> bool:
    """Whether a user may compute a value that is also stored: the value has several users (a single one has refused it already)."""
    if not producer.users or producer.op is hlo.bitcast:
        return False
    if len(producer.users) == 1 and not has_outputs(next(iter(producer.users))):
        return False
    return can_give(producer)


def can_give(producer: Instruction) -> bool:
    """``IsProducerMultiOutputFusible``: a loop with one result that transposes nothing and writes nothing in place."""
    if has_outputs(producer) or not producer.is_fusible or in_place_operands(producer):
        return False
    loops = kind(producer) == "kLoop" if producer.body is not None else producer.op is not hlo.constant and for_reader(producer)
    return loops and not is_turning(producer)


def is_turning(kernel: Instruction) -> bool:
    """``IsPhysicallyTransposing``: a copy, or a transpose that moves data."""
    return any(m.op is hlo.copy or (m.op is hlo.transpose and not transpose_is_bitcast(m)) for m in members(kernel))
