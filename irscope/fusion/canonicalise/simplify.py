"""The algebraic simplifier: every rule by opcode, applied until none applies."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from irscope.fusion.canonicalise import arithmetic, broadcasts, calls, choices, convolutions, dots, movement, reductions, slices, sorts
from irscope.fusion.canonicalise.terms import Body, Term
from irscope.graph import Op
from irscope.graph.walk import post_order
from irscope.ops import hlo

Rule = Callable[[Body, Term], bool]

RULES: Mapping[Op, Rule] = {
    hlo.abs: arithmetic.abs_, hlo.add: arithmetic.add, hlo.subtract: arithmetic.subtract, hlo.multiply: arithmetic.multiply,
    hlo.divide: arithmetic.divide, hlo.remainder: arithmetic.remainder, hlo.power: arithmetic.power, hlo.negate: arithmetic.twice,
    hlo.not_: arithmetic.twice, hlo.log: arithmetic.log, hlo.exponential: arithmetic.exponential,
    hlo.rsqrt: arithmetic.rsqrt, hlo.sqrt: arithmetic.sqrt,
    hlo.complex: arithmetic.complex_, hlo.real: arithmetic.part, hlo.imag: arithmetic.part,
    hlo.broadcast: broadcasts.broadcast, hlo.iota: broadcasts.iota, hlo.constant: broadcasts.constant,
    hlo.reshape: movement.reshape, hlo.transpose: movement.transpose, hlo.copy: movement.copy,
    hlo.slice: slices.slice_, hlo.dynamic_slice: slices.dynamic_slice, hlo.dynamic_update_slice: slices.dynamic_update_slice,
    hlo.pad: slices.pad, hlo.concatenate: slices.concatenate, hlo.reverse: slices.reverse,
    hlo.compare: choices.compare, hlo.select: choices.select, hlo.and_: choices.and_, hlo.or_: choices.or_, hlo.xor: choices.xor,
    hlo.maximum: choices.extreme, hlo.minimum: choices.extreme, hlo.clamp: choices.clamp, hlo.convert: choices.convert,
    hlo.bitcast_convert: choices.bitcast_convert,
    hlo.reduce: reductions.reduce, hlo.reduce_window: reductions.reduce_window, hlo.sort: sorts.sort, hlo.scatter: reductions.scatter,
    hlo.dot: dots.dot, hlo.convolution: convolutions.convolution, hlo.get_tuple_element: calls.get_tuple_element, hlo.tuple: calls.tuple_,
}
"""One rule an opcode; each says whether it changed something."""

MAX_ROUNDS = 64
"""Rounds after which simplifying ends although rules still apply: two rules that undo each other must not run for ever."""


def simplify(body: Body) -> bool:
    """Apply the rules to every term, operands first, until nothing changes; later rounds look only at what a change may concern."""
    changed = False
    todo = body.post_order()
    for _ in range(MAX_ROUNDS):
        body.worklist.clear()
        for term in todo:
            rule = RULES.get(term.op)
            if rule is not None and not term.erased and rule(body, term):
                changed = True
        if not body.worklist:
            break
        todo = _concerned(body)
    return changed


def _concerned(body: Body) -> list[Term]:
    """What a change may concern: what was touched, what reads it, and what stands a step further; operands first."""
    marked: dict[Term, None] = {}
    for term in body.worklist:
        if term.erased:
            continue
        marked[term] = None
        for user in term.users:
            marked[user] = None
            for further in user.users:
                marked[further] = None
        for operand in term.operands:
            marked[operand] = None
            for user in operand.users:
                marked[user] = None
    if len(marked) * 4 > len(body.instructions):
        return body.post_order()
    return post_order(marked, lambda term: [o for o in term.operands if o in marked])
