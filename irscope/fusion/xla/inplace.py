"""Whether a fusion would overwrite a buffer that the producer still reads: XLA's ``ShouldFuseInPlaceOp``."""
from __future__ import annotations

from collections.abc import Callable

from irscope.fusion.closure import closure
from irscope.fusion.xla.instructions import Instruction
from irscope.graph import TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Constant, Slice
from irscope.ops.faults import TypeFault

SAME_BUFFER_TWICE = ("The consumer is an in-place operation that has an additional operand that has the same value as the in-place "
                     "buffer")
SEVERAL_MOVES = "Producer fusion has multiple non-elementwise ops, bailing."
CONSUMER_MOVES = "Non-elementwise ops in consumer lead to inplace conflict after fusion."
SEVERAL_UPDATES = "multiple dus ops, bailing."
SLICE_SHAPE = "Slice op has a different shape than the update shape of the dus op, bailing."
SLICE_INDEX = "DUS and slice index mismatch"
SLICE_SHARED = "Fusing slice into DUS will also fuse another non-elementwise op with shared operand as DUS."
DYNAMIC_SHAPE = "Dynamic slice op has a different shape than the update shape of the dus op, bailing."
DYNAMIC_INDEX = "DUS and DS index mismatch"
DYNAMIC_SHARED = "Fusing DS into DUS will also fuse another non-elementwise op with shared operand as DUS."
UNRECOGNISED = "unrecognized inplace update non-elementwise output pair"

WORDS = (SAME_BUFFER_TWICE, SEVERAL_MOVES, CONSUMER_MOVES, SEVERAL_UPDATES, SLICE_SHAPE, SLICE_INDEX, SLICE_SHARED, DYNAMIC_SHAPE,
         DYNAMIC_INDEX, DYNAMIC_SHARED, UNRECOGNISED)


def in_place_operands(instruction: Instruction) -> list[int]:
    """The operands whose buffers an instruction overwrites with its result."""
    if instruction.op is hlo.dynamic_update_slice:
        return [0]
    if instruction.op is hlo.scatter:
        return list(range((len(instruction.operands) - 1) // 2))
    if instruction.body is None:
        return []
    found = []
    for output in instruction.body.outputs:
        if output.op in (hlo.dynamic_update_slice, hlo.scatter):
            for number in in_place_operands(output):
                source = output.operands[number]
                if source.op is hlo.parameter:
                    found.append(instruction.body.params.index(source))
    return found


def conflict(producer: Instruction, consumer: Instruction) -> str:
    """XLA's reason why fusing breaks an in-place update; empty if it does not."""
    for number in in_place_operands(consumer):
        buffer = consumer.operands[number]
        if any(o is buffer for i, o in enumerate(consumer.operands) if i != number):
            return SAME_BUFFER_TWICE
        if buffer is producer or buffer in producer.operands:
            return _conflict_over(producer, consumer)
    return ""


def _conflict_over(producer: Instruction, consumer: Instruction) -> str:
    """The conflict over the buffer of the first in-place operand that both use; XLA checks no other."""
    moves = extract(producer, _moves)
    if len(moves) > 1:
        return SEVERAL_MOVES
    if not moves:
        return _consumer_conflict(producer, consumer)
    updates = extract(consumer, lambda i: i.op is hlo.dynamic_update_slice)
    if not updates:
        return ""
    if len(updates) > 1:
        return SEVERAL_UPDATES
    update, move = updates[0], moves[0]
    same_shape = move.dims == update.operands[1].dims and move.dtype == update.operands[1].dtype \
        and move.minor == update.operands[1].minor
    indices = [_outer(consumer, o) for o in update.operands[2:]]
    if move.op is hlo.slice:
        if not same_shape:
            return SLICE_SHAPE
        starts = [(start, stride) for start, _, stride in Slice.of(move).slice]
        if any(stride != 1 or _integer(index) != start for index, (start, stride) in zip(indices, starts, strict=False)):
            return SLICE_INDEX
        return SLICE_SHARED if _shares(producer, consumer, update) else ""
    if move.op is hlo.dynamic_slice:
        if not same_shape:
            return DYNAMIC_SHAPE
        for mine, theirs in zip([_outer(producer, o) for o in move.operands[1:]], indices, strict=False):
            a, b = _integer(mine), _integer(theirs)
            if a != b or (a is None and mine is not theirs):
                return DYNAMIC_INDEX
        return DYNAMIC_SHARED if _shares(producer, consumer, update) else ""
    return UNRECOGNISED


def _consumer_conflict(producer: Instruction, consumer: Instruction) -> str:
    """The conflict if an instruction of the consumer that moves elements reads the buffer of an elementwise producer; else empty."""
    if consumer.body is None:
        return ""
    moves = set(extract(consumer, _moves)).difference(consumer.body.outputs)
    start = consumer.body.params[consumer.operands.index(producer)]
    return CONSUMER_MOVES if any(i in moves for i in closure([start], lambda i: i.users)) else ""


def _shares(producer: Instruction, consumer: Instruction, update: Instruction) -> bool:
    """Whether another instruction of the consumer that moves elements reads the producer's result."""
    if consumer.body is None:
        return False
    starts = [consumer.body.params[i] for i, o in enumerate(consumer.operands) if o is producer]
    return any(i is not update and not i.is_elementwise and i.op is not hlo.parameter for i in closure(starts, lambda i: i.users))


def extract(instruction: Instruction, wanted: Callable[[Instruction], bool]) -> list[Instruction]:
    """The instruction itself if it is wanted, else the wanted ones inside a fusion."""
    if wanted(instruction):
        return [instruction]
    return [i for i in instruction.body.instructions if wanted(i)] if instruction.body is not None else []


def _moves(instruction: Instruction) -> bool:
    return instruction.op not in (hlo.fusion, hlo.bitcast, hlo.parameter) and not instruction.is_elementwise


def _outer(fusion: Instruction, operand: Instruction) -> Instruction:
    """The value outside of a fusion that a parameter refers to."""
    if fusion.body is not None and operand.op is hlo.parameter and operand in fusion.body.params:
        return fusion.operands[fusion.body.params.index(operand)]
    return operand


def _integer(instruction: Instruction) -> int | None:
    """The first element of an integer constant; None if it is no such constant, or the text elides it."""
    type = instruction.type
    if instruction.op is not hlo.constant or not isinstance(type, TensorType) or not type.dtype.is_integer or not type.elements:
        return None
    literal = Constant.of(instruction).known
    try:
        return int(literal.value().flat[0]) if literal is not None else None
    except TypeFault:  # the text elides it
        return None
