"""The XLA GPU emitter that a kernel would use, and its hero: the instruction that decides it (hlo_fusion_analysis.cc)."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from math import prod

from irscope.fusion.closure import closure
from irscope.fusion.xla.instructions import Instruction
from irscope.fusion.xla.shapes import is_race_free, is_unnested_reduction
from irscope.fusion.xla.transposes import moves_minor, tiled_transpose, transpose_is_bitcast
from irscope.ops import hlo


class KernelEmitter(Enum):
    """The emitters that matter for fusion."""

    LOOP = "loop"
    REDUCTION = "reduction"
    TRANSPOSE = "transpose"
    SCATTER = "scatter"
    CONCATENATE = "concatenate"
    TRITON = "triton"
    CUSTOM = "custom"


class FusedPair:
    """A consumer with (or without) a producer fused, traversed as one kernel."""

    def __init__(self, consumer: Instruction, producer: Instruction | None) -> None:
        self.consumer, self.producer = consumer, producer

    def operand(self, instruction: Instruction, number: int = 0) -> Instruction | None:
        """An operand inside the kernel; None if it is read from memory."""
        operand, consumer, producer = instruction.operands[number], self.consumer, self.producer
        if consumer.body is not None and operand in consumer.body.instructions:
            if operand.op is not hlo.parameter:
                return operand
            operand = consumer.operands[consumer.body.params.index(operand)]
        elif instruction is not consumer or consumer.body is not None:
            inside = producer is not None and producer.body is not None and operand.op is not hlo.parameter
            return operand if inside else None
        if operand is not producer or producer is None:
            return None
        return producer.root

    def users(self, instruction: Instruction) -> Iterable[Instruction]:
        """The users of an instruction inside the kernel."""
        consumer, producer = self.consumer, self.producer
        if producer is None or instruction not in (producer, producer.root):
            return () if instruction in (consumer, consumer.root) else instruction.users
        return (consumer,) if consumer.body is None else consumer.body.params[consumer.operands.index(producer)].users

    def readers(self, source: Instruction) -> Iterable[Instruction]:
        """The users, inside the kernel, of the value that an operand of one of its instructions refers to."""
        outer = self.outer(source)
        for part in (self.producer, self.consumer):
            if part is None or outer not in part.operands:
                continue
            if part.body is None:
                yield part
            else:
                yield from part.body.params[part.operands.index(outer)].users

    def outer(self, source: Instruction) -> Instruction:
        """The value outside of the kernel that a parameter refers to; returns a value from outside as it is."""
        for part in (self.consumer, self.producer):
            if part is not None and part.body is not None and source in part.body.instructions:
                return part.operands[part.body.params.index(source)]
        return source


def _is_intermediate(instruction: Instruction, operands: int = 1) -> bool:
    if not 0 < len(instruction.operands) <= operands:
        return False
    if instruction.op is hlo.transpose:
        return transpose_is_bitcast(instruction)
    return instruction.op in (hlo.bitcast, hlo.reshape) or (instruction.is_elementwise and instruction.op is not hlo.copy)


def _hero(whole: FusedPair, root: Instruction) -> Instruction:
    """The hero of a root: past trivial steps a reduction, transpose or concatenation, else the root."""
    hero = root
    while _is_intermediate(hero):
        below = whole.operand(hero)
        if below is None:
            break
        hero = below
    if hero.op is hlo.reduce:
        return hero
    return _only_below(whole, hero, lambda i: tiled_transpose(i) is not None) \
        or _only_below(whole, hero, lambda i: i.op is hlo.concatenate) or root


def _only_below(whole: FusedPair, start: Instruction, wanted: Callable[[Instruction], bool]) -> Instruction | None:
    """The only wanted instruction that ``start`` reaches through elementwise steps; None for several, or if other steps read it."""
    def below(step: Instruction) -> list[Instruction]:
        numbers = range(len(step.operands)) if _is_intermediate(step, 3) else ()  # what is wanted is no such step, and ends the search
        return [operand for number in numbers if (operand := whole.operand(step, number)) is not None]

    found = [i for i in closure([start], below) if wanted(i)]
    return found[0] if len(found) == 1 and not _leads_through_others(whole, found[0]) else None


def _leads_through_others(whole: FusedPair, hero: Instruction) -> bool:
    """Whether a step that is not elementwise is between a hero and some result of the kernel."""
    return any(i is not hero and i.op is not hlo.tuple and not _is_intermediate(i, 3) for i in closure([hero], whole.users))


def heroes_of(consumer: Instruction, producer: Instruction | None = None) -> list[tuple[Instruction, Instruction]]:
    """Each root of a kernel with its hero, real reduction heroes first."""
    whole = FusedPair(consumer, producer)
    pairs = [(root, _hero(whole, root)) for root in consumer.results]
    return sorted(pairs, key=lambda pair: not is_real_reduction(*pair))


def is_real_reduction(root: Instruction, hero: Instruction) -> bool:
    """XLA's ``IsRealReductionHero``: whether the reduction emitter of the hero computes the root."""
    return is_unnested_reduction(hero) and (root is hero or is_race_free(hero))


def kind_of(consumer: Instruction, producer: Instruction | None = None) -> KernelEmitter:
    """The emitter of a kernel, or of the kernel with ``producer`` fused into it."""
    if consumer.kind == "triton" or (producer is not None and producer.kind == "triton"):
        return KernelEmitter.TRITON
    if consumer.kind == "kCustom" or (producer is not None and producer.kind == "kCustom"):
        return KernelEmitter.CUSTOM
    mine, theirs = traits(consumer), traits(producer) if producer is not None else None
    if mine.plain and (theirs is None or theirs.plain):
        return KernelEmitter.LOOP
    if producer is None and mine.emitter is not None:
        return mine.emitter
    found = _kind_of(consumer, producer)
    if producer is None:
        mine.emitter = found
    return found


def _kind_of(consumer: Instruction, producer: Instruction | None) -> KernelEmitter:
    pairs = heroes_of(consumer, producer)
    root, hero = pairs[0]
    if is_real_reduction(root, hero):
        size = prod(hero.operands[0].dims)
        if all(is_real_reduction(*pair) or prod(pair[0].dims) == size for pair in pairs):
            return KernelEmitter.REDUCTION
    if any(tiled_transpose(hero) is not None for _, hero in pairs):
        return KernelEmitter.TRANSPOSE
    if root.op is hlo.scatter:
        return KernelEmitter.SCATTER
    if len(pairs) == 1 and hero.op is hlo.concatenate and len(hero.operands) <= MAX_PIECES:
        return KernelEmitter.CONCATENATE
    return KernelEmitter.LOOP


def kind_with(consumer: Instruction, producer: Instruction | None) -> str:
    """``ChooseKind``: ``kInput`` if a reduction, a transpose, a scatter or a concatenation decides the emitter."""
    return "kInput" if kind_of(consumer, producer) is KernelEmitter.CONCATENATE else earlier_kind(consumer, producer)


def earlier_kind(consumer: Instruction, producer: Instruction | None) -> str:
    """``ChooseFusionKind``: the same, except that a concatenation is a loop."""
    return "kInput" if is_input_fusible(consumer) or (producer is not None and is_input_fusible(producer)) else "kLoop"


def is_input_fusible(instruction: Instruction) -> bool:
    """``IsInputFusible``."""
    if not instruction.is_fusible or traits(instruction).plain or instruction.op is hlo.bitcast:
        return False
    if instruction.kind in ("kCustom", "triton"):
        return False
    return instruction.root.op is hlo.scatter or any(
        is_real_reduction(root, hero) or tiled_transpose(hero) is not None for root, hero in heroes_of(instruction))


def members(instruction: Instruction) -> Iterator[Instruction]:
    """The instructions of a kernel."""
    if instruction.body is None:
        yield instruction
    else:
        yield from instruction.body.instructions


MAX_PIECES = 4
"""Pieces of a concatenation up to which each has a separate loop in one kernel (``UseConcatenateFusion``)."""
UNROLLED_NEVER = hlo.named("reduce-window sort dot sine cosine tan power atan2")
MAX_UNROLLED_PIECES = 10


@dataclass(slots=True)
class Traits:
    """Properties of a kernel, cached until something is fused into it.

    ``plain``: nothing that needs a special emitter. ``turns``: a transpose of the minor dimension, which may read a broadcast, so that
    the rest of the kernel matters. ``unroll_stops``: something that XLA does not unroll. ``reductions``: how many need a reduction
    kernel. ``moves_minor``, ``significant``, ``shared_memory``: results of the rules over all parts, cached on first use.
    """

    plain: bool
    turns: bool
    unroll_stops: bool
    reductions: int
    emitter: KernelEmitter | None = None
    moves_minor: bool | None = None
    significant: bool | None = None
    shared_memory: int | None = None


def traits(instruction: Instruction) -> Traits:
    """The traits of a kernel."""
    known: Traits | None = instruction.traits
    if known is not None:
        return known
    plain, turns, stops, reductions = True, False, False, 0
    for member in members(instruction):
        op = member.op
        if op is hlo.reduce:
            reductions += is_unnested_reduction(member)
            stops = stops or not member.is_array
            plain = plain and not reductions
        elif op in (hlo.transpose, hlo.copy):
            turns = turns or moves_minor(member)
            plain = plain and tiled_transpose(member) is None
        elif op is hlo.scatter:
            plain = False
        elif op is hlo.concatenate:
            plain = plain and len(member.operands) > MAX_PIECES
            stops = stops or len(member.operands) > MAX_UNROLLED_PIECES
        elif op in UNROLLED_NEVER:
            stops = True
    found = instruction.traits = Traits(plain, turns, stops, reductions)
    return found


def moves_minor_within(instruction: Instruction) -> bool:
    """Whether a kernel has a transpose, other than of a broadcast, that puts another dimension last."""
    known = traits(instruction)
    if known.moves_minor is None:
        known.moves_minor = known.turns and any(_moves_minor(m) for m in members(instruction) if m.op in (hlo.transpose, hlo.copy))
    return known.moves_minor


def traits_of_both(producer: Instruction, fusion: Instruction) -> Traits:
    """The traits of a kernel with a producer fused."""
    a, b = traits(producer), traits(fusion)
    memory = None if a.shared_memory is None or b.shared_memory is None else a.shared_memory + b.shared_memory
    significant = True if a.significant or b.significant else False if a.significant is b.significant is False else None
    return Traits(a.plain and b.plain, a.turns or b.turns, a.unroll_stops or b.unroll_stops, a.reductions + b.reductions,
                  significant=significant, shared_memory=memory)


def _moves_minor(instruction: Instruction) -> bool:
    """Whether a transpose, other than of a broadcast, puts another dimension last."""
    if not moves_minor(instruction):
        return False
    source = instruction.operands[0]
    while True:
        if source.op in (hlo.broadcast, hlo.iota):
            return False
        if len(source.operands) != 1 or (source.op is not hlo.bitcast and not source.is_elementwise):
            return True
        source = source.operands[0]
