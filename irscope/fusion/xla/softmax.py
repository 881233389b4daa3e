"""XLA's ``SoftmaxRewriterTriton``: turns normalisations into Triton kernels, before ``priority-fusion`` (jaxlib 0.10.2).

The pass looks for *diamonds*: a producer, a reduction of its rows, a broadcast back along them, and an elementwise operation of the
producer with that. Between the four there may be chains of instructions that cost nothing in a tile of whole rows (bitcasts, unary
operations, binary ones of a value with itself or with a splat). Each diamond becomes a kernel; ``priority-fusion`` then joins
consecutive ones.

A reshape or a broadcast that only adds dimensions of one counts as the bitcast that XLA has made of it by then. Whether XLA's cost model
expects a gain is not simulated: XLA takes the diamonds found here if it does.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_rules import splits_rows
from irscope.fusion.xla.instructions import Computation, Instruction, fuse_into
from irscope.fusion.xla.refusal import Refusal, Rule
from irscope.fusion.xla.tiling import REGISTERS, SHARE, WARPS
from irscope.fusion.xla.triton import lacking
from irscope.graph.walk import post_order
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Reduce

MAX_TILE = 1048576
"""Elements of a tensor in Triton (``kMaxTensorNumElements``); each dimension counts as the next power of two."""
AMPERE = 80
"""The compute capability from which on XLA emits Triton kernels."""
NEAR = 64
"""Instructions after a reduction that are searched for the end of its diamond; the composites of a model have at most ten."""

BACK = "the value that is divided, scaled or shifted has to be the first operand, and what is broadcast back the second"
NOT_BINARY = Rule("softmax-root", "Root is not elementwise binary.", "{producer} is a {producer_op}: no diamond ends there",
                  "end the normalisation in one elementwise operation of the value with what is broadcast back")
ROOT_UNSUPPORTED = Rule("softmax-root-unsupported", "Root is not supported for Triton instruction.",
                        "Triton computes no {producer_op} of this type", "compute it in f32")
NO_BROADCAST = Rule("softmax-no-broadcast", "Could not find a trivial connection from root to a broadcast.",
                    "the second operand of {consumer} leads to {producer}, a {producer_op}, before it leads to a broadcast; " + BACK,
                    "swap the operands, or move {producer} before the reduction or after {consumer}")
NO_REDUCTION = Rule("softmax-no-reduction", "Could not find a trivial connection from matched broadcast to a reduction.",
                    "{consumer} reads the result through {producer}, a {producer_op} that is read elsewhere too, or that is no unary "
                    "operation and none with a splat", "compute {producer} once more, or after {consumer}")
LAYOUT = Rule("softmax-layout", "Broadcast or reduce have non-default layouts.", "{producer} is not row-major in memory",
              "reduce along the dimension that is the fastest in memory")
REDUCTION = Rule("softmax-reduction", "", "Triton computes no such reduction as {producer}", "reduce one array along one dimension, in f32")
NOT_ROWS = Rule("softmax-not-rows", "The reductions in the diamond must reduce 1 dimension and that dimension must be the last dimension "
                "of the operand.", "{producer} reduces another dimension than the last",
                "transpose, so that the reduced dimension is the last")
IDENTITY = Rule("softmax-identity", "Reduction identity is not a constant or a supported convert of a constant.",
                "{producer} begins with a value that is computed", "begin {producer} with a constant")
SHARED = Rule("softmax-shared", "More than one use of broadcast or reduce.", "{producer} is read by others beside this normalisation",
              "compute {producer} again for the others")
WRONG_BROADCAST = Rule("softmax-broadcast", "Broadcast is not along the reduction dimension.",
                       "{producer} repeats the result along other dimensions than the one that was reduced",
                       "broadcast along the last dimension")
PRODUCER_LAYOUT = Rule("softmax-producer-layout", "Producer has non-default layout.", "{producer} is not row-major in memory",
                       "normalise along the dimension that is the fastest in memory")
NOT_CONNECTED = Rule("softmax-producer", "Producer is not trivially connected.",
                     "the first operand of {consumer} is not made of {producer}, whose rows are reduced, by steps that cost nothing",
                     "combine what is broadcast back with the value that was reduced")
NOT_TILED = Rule("softmax-not-tiled", "Cannot tile the diamond pattern",
                 "{producer} gives rows another length: a tile of rows has no simple shape there",
                 "reshape before or after the normalisation")
TOO_LONG = Rule("softmax-too-long", "SymbolicTileAnalysis failed: No valid tilings found.",
                "a row of {producer} is more than a tensor of Triton may hold", "normalise shorter rows, or in two steps")
SPILLS = Rule("softmax-spills", "Run time estimate for without applying the custom normalization rewrite is faster.",
              "a kernel holds whole rows, and one of {producer} does not fit into the registers of a block",
              "normalise shorter rows; XLA reduces such rows in separate kernels")

RULES = (NOT_BINARY, ROOT_UNSUPPORTED, NO_BROADCAST, NO_REDUCTION, LAYOUT, REDUCTION, NOT_ROWS, IDENTITY, SHARED, WRONG_BROADCAST,
         PRODUCER_LAYOUT, NOT_CONNECTED, NOT_TILED, TOO_LONG, SPILLS)
"""All rules in test order. XLA's last test of the way from producer to root, ``Unsupported root-producer connection.`` (more than one
reader of the root's first operand), never fails: an operand with other readers has failed the one before."""


@dataclass(frozen=True, slots=True)
class Diamond:
    """A diamond: ``root`` combines ``producer`` with the ``broadcast`` of its ``reduce``."""

    root: Instruction
    producer: Instruction
    broadcast: Instruction
    reduce: Instruction


@dataclass(frozen=True, slots=True)
class NoDiamond:
    """Why no diamond ends in ``root``: the rule, the instruction at fault, numbers; ``reduce`` is its reduction, if one was found."""

    rule: Rule
    root: Instruction
    at: Instruction
    numbers: str = ""
    reduce: Instruction | None = None
    more: str = ""

    @property
    def words(self) -> str:
        """XLA's words."""
        return self.rule.words + self.more

    @property
    def cause(self) -> str:
        """The cause in a sentence."""
        assert self.at.node is not None and self.root.node is not None
        return Refusal(self.rule, self.numbers).cause(self.at.node, self.root.node)

    @property
    def way_out(self) -> str:
        """The smallest edit."""
        assert self.at.node is not None and self.root.node is not None
        return Refusal(self.rule).way_out(self.at.node, self.root.node)


Decision = Diamond | NoDiamond


def bails_out(device: Device) -> str:
    """The message with which the pass refuses a device; empty if it runs."""
    number = device.capability.removeprefix("sm_")
    if not number.isdecimal() or int(number) >= AMPERE:
        return ""
    return "Triton support is only enabled for Ampere GPUs (compute capability 8.0) and up, but got compute capability " \
        f"{number[:-1]}.{number[-1]}."


class DiamondFinder:
    """Finds the diamonds of one computation. Ends of chains are cached, so that all instructions together take linear time."""

    def __init__(self) -> None:
        self._ends: dict[Instruction, Instruction] = {}

    def decide(self, root: Instruction) -> Decision:
        """Decide whether a diamond ends in an instruction: XLA's tests in order, then whether a tile can hold its rows."""
        if not root.is_elementwise or len(root.operands) != 2:
            return NoDiamond(NOT_BINARY, root, root)
        if lack := lacking(root):
            return NoDiamond(ROOT_UNSUPPORTED, root, root, lack)
        broadcast = self.end(root.operands[1])
        if broadcast.op is not hlo.broadcast:
            return NoDiamond(NO_BROADCAST, root, broadcast)
        reduce = self.end(broadcast.operands[0])
        if reduce.op is not hlo.reduce:
            return NoDiamond(NO_REDUCTION, root, reduce)
        refused = _refused(root, broadcast, reduce)
        if refused is not None:
            return refused
        producer = self.end(reduce.operands[0])
        if not has_default_layout(producer):
            return NoDiamond(PRODUCER_LAYOUT, root, producer, reduce=reduce)
        if not _connected(producer, root.operands[0]):
            return NoDiamond(NOT_CONNECTED, root, producer, reduce=reduce)
        found = Diamond(root, producer, broadcast, reduce)
        return _untiled(found) or found

    def end(self, instruction: Instruction) -> Instruction:
        """The first instruction above (or this one) that is not trivially fusible."""
        ends, way = self._ends, []
        while instruction not in ends and is_trivial(instruction):
            way.append(instruction)
            instruction = next_above(instruction)
        end = ends.get(instruction, instruction)
        for one in way:
            ends[one] = end
        return end


def _refused(root: Instruction, broadcast: Instruction, reduce: Instruction) -> NoDiamond | None:
    """The rule that the broadcast or the reduction of a diamond violates."""
    for one in (broadcast, reduce):
        if not has_default_layout(one):
            return NoDiamond(LAYOUT, root, one, reduce=reduce)
    if lack := lacking(reduce):
        return NoDiamond(REDUCTION, root, reduce, reduce=reduce, more=lack)
    source, reduced = reduce.operands[0], Reduce.of(reduce).dimensions
    if reduced != (len(source.dims) - 1,):
        return NoDiamond(NOT_ROWS, root, reduce, f"dimension {reduced[0]} of {len(source.dims)}", reduce)
    identity = reduce.operands[1]
    converted = identity.op is hlo.convert and identity.operands[0].op is hlo.constant and not lacking(identity)
    if identity.op is not hlo.constant and not converted:
        return NoDiamond(IDENTITY, root, reduce, f"%{identity.name}", reduce)
    for one in (broadcast, reduce):
        if len(one.users) != 1:
            return NoDiamond(SHARED, root, one, f"{len(one.users)} readers", reduce)
    if len(broadcast.dims) - 1 in Broadcast.of(broadcast).dimensions:
        return NoDiamond(WRONG_BROADCAST, root, broadcast, reduce=reduce)
    return None


def _untiled(diamond: Diamond) -> NoDiamond | None:
    """Why no tile can hold whole rows of a diamond."""
    source = diamond.reduce.operands[0]
    for instruction in members(diamond):
        wide = instruction.op in (hlo.bitcast, hlo.reshape) and instruction.elements == source.elements
        if wide and splits_rows(instruction):
            numbers = f"{list(instruction.operands[0].dims)} to {list(instruction.dims)}"
            return NoDiamond(NOT_TILED, diamond.root, instruction, numbers, diamond.reduce)
    tile = padded(source.dims[-1])
    if tile > MAX_TILE:
        return NoDiamond(TOO_LONG, diamond.root, source, f"{tile} > {MAX_TILE} elements", diamond.reduce)
    if tile > SHARE * REGISTERS:
        return NoDiamond(SPILLS, diamond.root, source, f"{tile} > {int(SHARE * REGISTERS)} elements", diamond.reduce)
    return None


def padded(size: int) -> int:
    """The next power of two."""
    return 1 << max(0, size - 1).bit_length()


def has_default_layout(instruction: Instruction) -> bool:
    """Whether an array has the row-major layout; a text without layouts means that."""
    return instruction.is_array and instruction.minor == tuple(range(len(instruction.dims) - 1, -1, -1))


def is_splat(instruction: Instruction) -> bool:
    """Whether an instruction is a broadcast of a number or of a parameter."""
    if instruction.op is not hlo.broadcast:
        return False
    source = instruction.operands[0]
    return source.op is hlo.parameter or (source.op is hlo.constant and source.dims == ())


def _is_unary(instruction: Instruction) -> bool:
    return instruction.is_elementwise and len(instruction.operands) == 1


def is_view(instruction: Instruction) -> bool:
    """Whether an instruction is a bitcast, or what XLA has turned into one by then: a reshape, a broadcast that repeats nothing."""
    if instruction.op is hlo.bitcast:
        return True
    source = instruction.operands[0] if instruction.operands else None
    if source is None or not has_default_layout(source):
        return False
    dimensions = Broadcast.of(instruction).dimensions
    return instruction.op is hlo.reshape or (
        instruction.op is hlo.broadcast and instruction.elements == source.elements and source.dims != ()
        and dimensions == tuple(sorted(dimensions)))


def is_trivial(instruction: Instruction) -> bool:
    """XLA's ``IsTriviallyFusible``: it makes a kernel of whole rows neither read nor write more."""
    operands = instruction.operands
    if len(instruction.users) > 1 or not has_default_layout(instruction):
        return False
    if is_view(instruction):
        return True
    if not instruction.is_elementwise or instruction.op is hlo.fusion or not 1 <= len(operands) <= 2:
        return False
    if len(operands) == 2 and operands[0] is not operands[1] and is_splat(operands[0]) == is_splat(operands[1]):
        return False
    return not lacking(instruction)


def next_above(instruction: Instruction) -> Instruction:
    """The operand that a chain continues with: the first that is no splat."""
    operands = instruction.operands
    return operands[1] if len(operands) > 1 and is_splat(operands[0]) else operands[0]


def _connected(producer: Instruction, consumer: Instruction) -> bool:
    """XLA's ``IsTriviallyConnectedProducerOf``: at an instruction with the producer's opcode it continues with the first operand."""
    while consumer is not producer:
        if not is_trivial(consumer):
            return False
        consumer = consumer.operands[0] if consumer.op == producer.op else next_above(consumer)
    return True


def members(diamond: Diamond) -> list[Instruction]:
    """The instructions in the kernel of a diamond, each after its users: everything above the root up to the producer and parameters."""
    def operands_inside(instruction: Instruction) -> list[Instruction]:
        return [o for o in reversed(instruction.operands) if o is not diamond.producer and o.op is not hlo.parameter]

    return post_order((diamond.root,), operands_inside)[::-1]


def diamonds(computation: Computation) -> list[Diamond]:
    """The diamonds of a computation that XLA would turn into kernels, in post-order."""
    finder = DiamondFinder()
    return [found for i in computation.post_order() if isinstance(found := finder.decide(i), Diamond)]


def rewrite(computation: Computation, device: Device) -> list[Instruction]:
    """Replace each diamond by a Triton kernel, the last first, as XLA does; returns the kernels."""
    made: list[Instruction] = []
    for diamond in reversed(diamonds(computation) if not bails_out(device) else ()):
        if diamond.root not in computation.instructions:
            continue
        inside = members(diamond)
        kernel = computation.wrap(diamond.root, "triton")
        for instruction in inside[1:]:
            fuse_into(kernel, instruction)
            if not instruction.users and instruction is not computation.root:
                computation.remove(instruction)
        row = diamond.reduce.operands[0].dims[-1]
        kernel.tile = tuple(row if i == len(kernel.dims) - 1 else 1 for i in range(len(kernel.dims)))
        kernel.warps = next(warps for size, warps in WARPS if padded(row) <= size)
        made.append(kernel)
    return made


def of_reductions(computation: Computation) -> dict[Instruction, Decision]:
    """For each reduction that is broadcast back, the diamond that takes it, or the refusal that came closest."""
    finder = DiamondFinder()
    decided: dict[Instruction, Decision] = {}
    for reduce in computation.post_order():
        if reduce.op is not hlo.reduce:
            continue
        best: tuple[int, Decision] | None = None
        for root in _roots(reduce):
            found = finder.decide(root)
            if isinstance(found, Diamond):
                if found.reduce is reduce:
                    best = len(RULES), found
                    break
                continue
            if found.reduce in (None, reduce) and (best is None or RULES.index(found.rule) > best[0]):
                best = RULES.index(found.rule), found
        if best is not None:
            decided[reduce] = best[1]
    return decided


def _roots(reduce: Instruction) -> Iterator[Instruction]:
    """Candidate roots: the first operations of two operands after the broadcast of a reduction."""
    pending: list[tuple[Instruction, bool]] = [(reduce, False)]
    seen: set[Instruction] = set()
    for instruction, wide in pending:
        for user in instruction.users:
            if user in seen or len(seen) >= NEAR:
                continue
            seen.add(user)
            if is_view(user) or _is_unary(user):
                pending.append((user, wide))
            elif user.op is hlo.broadcast:
                pending.append((user, True))
            elif user.is_elementwise and wide:
                yield user
            elif user.is_elementwise:
                pending.append((user, False))


def chains(found: Sequence[Diamond]) -> list[list[Diamond]]:
    """Diamonds that follow each other, in post-order: the producer of one is the root of another, or follows from it by unary operations.

    XLA makes a kernel of each; ``priority-fusion`` then joins the kernels of a chain if that saves time.
    """
    by_root: dict[Instruction, list[Diamond]] = {}
    made: list[list[Diamond]] = []
    for diamond in found:
        source = diamond.producer
        for _ in range(NEAR):
            if source in by_root or not (is_view(source) or _is_unary(source)):
                break
            source = source.operands[0]
        chain = by_root.get(source)
        if chain is None or chain[-1].root is not source:
            chain = []
            made.append(chain)
        chain.append(diamond)
        by_root[diamond.root] = chain
    return made
