"""The algebraic simplifier: every rule by opcode, applied until none applies."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from irscope.fusion.canonicalise import arithmetic, broadcasts, calls, choices, convolutions, dots, movement, reductions, slices, sorts
from irscope.fusion.canonicalise.terms import Body, Term
from irscope.graph.walk import post_order

Rule = Callable[[Body, Term], bool]

RULES: Mapping[str, Rule] = {
    "abs": arithmetic.abs_, "add": arithmetic.add, "subtract": arithmetic.subtract, "multiply": arithmetic.multiply,
    "divide": arithmetic.divide, "remainder": arithmetic.remainder, "power": arithmetic.power, "negate": arithmetic.twice,
    "not": arithmetic.twice, "log": arithmetic.log, "exponential": arithmetic.exponential,
    "rsqrt": arithmetic.rsqrt, "sqrt": arithmetic.sqrt,
    "complex": arithmetic.complex_, "real": arithmetic.part, "imag": arithmetic.part,
    "broadcast": broadcasts.broadcast, "iota": broadcasts.iota, "constant": broadcasts.constant,
    "reshape": movement.reshape, "transpose": movement.transpose, "copy": movement.copy,
    "slice": slices.slice_, "dynamic-slice": slices.dynamic_slice, "dynamic-update-slice": slices.dynamic_update_slice,
    "pad": slices.pad, "concatenate": slices.concatenate, "reverse": slices.reverse,
    "compare": choices.compare, "select": choices.select, "and": choices.and_, "or": choices.or_, "xor": choices.xor,
    "maximum": choices.extreme, "minimum": choices.extreme, "clamp": choices.clamp, "convert": choices.convert,
    "bitcast-convert": choices.bitcast_convert,
    "reduce": reductions.reduce, "reduce-window": reductions.reduce_window, "sort": sorts.sort, "scatter": reductions.scatter,
    "dot": dots.dot, "convolution": convolutions.convolution, "get-tuple-element": calls.get_tuple_element, "tuple": calls.tuple_,
}
"""One rule an opcode; each says whether it changed something."""

MAX_ROUNDS = 64
"""Rounds after which simplifying ends although rules still apply: two rules that undo each other must not run for ever."""


def simplify(body: Body) -> bool:
    """Apply the rules to every term, operands first, until nothing changes; later rounds look only at what a change may concern."""
    changed = False
    todo = body.post_order()
    for _ in range(MAX_ROUNDS):
        body.touched.clear()
        for term in todo:
            rule = RULES.get(term.op)
            if rule is not None and not term.gone and rule(body, term):
                changed = True
        if not body.touched:
            break
        todo = _concerned(body)
    return changed


def _concerned(body: Body) -> list[Term]:
    """What a change may concern: what was touched, what reads it, and what stands a step further; operands first."""
    marked: dict[Term, None] = {}
    for term in body.touched:
        if term.gone:
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
    if len(marked) * 4 > len(body.terms):
        return body.post_order()
    return post_order(marked, lambda term: [o for o in term.operands if o in marked])
