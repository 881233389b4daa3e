"""Calls are written out where they stand; tuples and barriers are looked through."""
from __future__ import annotations

from collections.abc import Container, Iterable

from irscope.fusion.canonicalise.terms import Body, Term
from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall, GetTupleElement


def inline_calls(body: Body, kept: Container[Node] = ()) -> None:
    """Put what each call computes in its place, calls in calls included (computations never call themselves).

    ``kept`` are the calls that the text forbids to write out.
    """
    def open_calls(terms: Iterable[Term]) -> list[Term]:
        return [t for t in terms if t.op is hlo.call and len(t.calls) == 1 and len(t.calls[0].params) == len(t.operands)
                and not any(node in kept for node in t.origin[:1])]

    pending = open_calls(body.instructions)
    while pending:
        call = pending.pop()
        called = call.calls[0]
        pending += open_calls(called.instructions)
        move_in(body, call, called, call.operands)


def move_in(body: Body, term: Term, called: Body, operands: list[Term]) -> None:
    """Replace a term by the terms of a body that only it runs, over other values of its parameters."""
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
            inner.origin = (*inner.origin, *term.origin)
            body.instructions[inner] = None
            body.worklist[inner] = None
    body.of_node.update((n, t) for n, t in called.of_node.items() if n not in body.of_node)
    body.replace(term, called.root)


SHARDING = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "xla.sdy.FuncResultSharding"))
"""Calls that only say where a value lies; on one device they are nothing (``ShardingRemover``)."""


def drop_shardings(body: Body) -> None:
    """Look through what only says where a value lies."""
    for term in [t for t in body.instructions
                 if t.op is hlo.custom_call and CustomCall.of(t).custom_call_target in SHARDING and len(t.operands) == 1]:
        body.replace(term, term.operands[0])


def get_tuple_element(body: Body, term: Term) -> bool:
    """A part of a tuple that is put together."""
    source = term.operands[0]
    return source.op is hlo.tuple and body.replace(term, source.operands[GetTupleElement.of(term).index])


def tuple_(body: Body, term: Term) -> bool:
    """A tuple that is taken apart and put together as it was."""
    if not term.operands or term.operands[0].op is not hlo.get_tuple_element:
        return False
    source = term.operands[0].operands[0]
    whole = len(list(getattr(source.type, "elements", ()))) == len(term.operands)
    if whole and all(o.op is hlo.get_tuple_element and o.operands[0] is source and GetTupleElement.of(o).index == i
                     for i, o in enumerate(term.operands)):
        return body.replace(term, source)
    return False


def open_barriers(body: Body) -> bool:
    """What stands behind a barrier is what stands before it: XLA drops barriers before it fuses."""
    barriers = [t for t in body.instructions if t.op is hlo.opt_barrier]
    for term in barriers:
        body.replace(term, term.operands[0])
    if barriers:
        for term in body.post_order():
            if not term.erased and term.op in (hlo.get_tuple_element, hlo.tuple):
                (get_tuple_element if term.op is hlo.get_tuple_element else tuple_)(body, term)
    return bool(barriers)
