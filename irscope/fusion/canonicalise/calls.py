"""Calls are written out where they stand; tuples and barriers are looked through."""
from __future__ import annotations

from collections.abc import Container, Iterable

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall, GetTupleElement


def inline_calls(rewriter: HloComputation, kept: Container[Node] = ()) -> None:
    """Put what each call computes in its place, calls in calls included (computations never call themselves).

    ``kept`` are the calls that the text forbids to write out.
    """
    def open_calls(instrs: Iterable[HloInstruction]) -> list[HloInstruction]:
        return [t for t in instrs if t.op is hlo.call and len(t.calls) == 1 and len(t.calls[0].params) == len(t.operands)
                and not any(node in kept for node in t.origin[:1])]

    pending = open_calls(rewriter.instructions)
    while pending:
        call = pending.pop()
        called = call.calls[0]
        pending += open_calls(called.instructions)
        move_in(rewriter, call, called, call.operands)


def move_in(rewriter: HloComputation, instr: HloInstruction, called: HloComputation, operands: list[HloInstruction]) -> None:
    """Replace an instruction by the instructions of a computation that only it runs, over other values of its parameters."""
    for param, operand in zip(called.params, operands, strict=True):
        if called.root is param:
            called.root = operand
        for user in list(param.users):
            user.operands = [operand if o is param else o for o in user.operands]
            operand.users.add(user)
        param.replacement = operand
    kept = dict.fromkeys(called.params)
    for inner in called.instructions:
        if inner not in kept:
            inner.origin = (*inner.origin, *instr.origin)
            rewriter.instructions[inner] = None
            rewriter.worklist[inner] = None
    rewriter.of_node.update((n, t) for n, t in called.of_node.items() if n not in rewriter.of_node)
    rewriter.replace(instr, called.root)


SHARDING = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"))
"""Calls that only say where a value lies; on one device they are nothing (``ShardingRemover``)."""


def drop_sharding(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Look through a call that only says where a value lies."""
    return CustomCall.of(instr).custom_call_target in SHARDING and len(instr.operands) == 1 and rewriter.replace(instr, instr.operands[0])


def get_tuple_element(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """A part of a tuple that is put together."""
    source = instr.operands[0]
    return source.op is hlo.tuple and rewriter.replace(instr, source.operands[GetTupleElement.of(instr).index])


def tuple_(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """A tuple that is taken apart and put together as it was."""
    if not instr.operands or instr.operands[0].op is not hlo.get_tuple_element:
        return False
    source = instr.operands[0].operands[0]
    whole = len(list(getattr(source.type, "elements", ()))) == len(instr.operands)
    if whole and all(o.op is hlo.get_tuple_element and o.operands[0] is source and GetTupleElement.of(o).index == i
                     for i, o in enumerate(instr.operands)):
        return rewriter.replace(instr, source)
    return False


def open_barriers(rewriter: HloComputation) -> None:
    """What stands behind a barrier is what stands before it: XLA drops barriers before it fuses."""
    if rewriter.apply(lambda rewriter, instr: rewriter.replace(instr, instr.operands[0]), hlo.opt_barrier):
        for instr in rewriter.post_order():
            if not instr.erased and instr.op in (hlo.get_tuple_element, hlo.tuple):
                (get_tuple_element if instr.op is hlo.get_tuple_element else tuple_)(rewriter, instr)
