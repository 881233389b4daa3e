"""Call inlining, and forwarding through tuples and barriers."""
from __future__ import annotations

from collections.abc import Container, Iterable

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction
from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall, GetTupleElement


def inline_calls(rewriter: HloComputation, kept: Container[Node] = ()) -> None:
    """Inline every call, including those in the called computations (HLO has no recursion).

    ``kept`` are the calls that the text forbids to inline.
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
    """Replace an instruction by the instructions of a computation that only it calls, with other values for its parameters."""
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
"""Calls that only annotate sharding; on one device they do nothing (``ShardingRemover``)."""


def drop_sharding(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Forward the operand of a call that only annotates sharding."""
    return CustomCall.of(instr).custom_call_target in SHARDING and len(instr.operands) == 1 and rewriter.replace(instr, instr.operands[0])


def get_tuple_element(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Forward an element of a tuple that an instruction of the computation builds."""
    source = instr.operands[0]
    return source.op is hlo.tuple and rewriter.replace(instr, source.operands[GetTupleElement.of(instr).index])


def tuple_(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Forward a tuple that is rebuilt from all of its own elements in order."""
    if not instr.operands or instr.operands[0].op is not hlo.get_tuple_element:
        return False
    source = instr.operands[0].operands[0]
    whole = len(list(getattr(source.type, "elements", ()))) == len(instr.operands)
    if whole and all(o.op is hlo.get_tuple_element and o.operands[0] is source and GetTupleElement.of(o).index == i
                     for i, o in enumerate(instr.operands)):
        return rewriter.replace(instr, source)
    return False


def open_barriers(rewriter: HloComputation) -> None:
    """Replace every barrier by its operand: XLA removes barriers before it fuses."""
    if rewriter.apply(lambda rewriter, instr: rewriter.replace(instr, instr.operands[0]), hlo.opt_barrier):
        for instr in rewriter.post_order():
            if not instr.erased and instr.op in (hlo.get_tuple_element, hlo.tuple):
                (get_tuple_element if instr.op is hlo.get_tuple_element else tuple_)(rewriter, instr)
