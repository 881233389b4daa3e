"""Common-subexpression elimination: keeps one of several equal instructions (XLA's ``HloCSE``)."""
from __future__ import annotations

from typing import Any

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, has_effect
from irscope.fusion.canonicalise.values import scalar_of
from irscope.graph.numbering import Equality, Numbering
from irscope.ops import hlo
from irscope.ops.attributes import Constant, Iota

NEVER = hlo.named("parameter rng rng-bit-generator rng-get-and-update-state infeed outfeed send recv while conditional custom-call")
"""Operators whose instructions XLA never merges."""
_EQUALITY = Equality(frozenset(("control_predecessors", "operand_precision")))


def share(rewriter: HloComputation) -> bool:
    """Common-subexpression elimination: keep the first of each set of equal instructions."""
    known: dict[Any, HloInstruction] = {}
    numbering = Numbering(_EQUALITY)
    changed = False
    for instr in rewriter.post_order():
        if instr.erased or instr.op in NEVER or instr.calls or has_effect(instr) or (not instr.operands and instr.op is not hlo.constant):
            continue
        key = _key(instr, numbering)
        if key is None:
            continue
        first = known.setdefault(key, instr)
        if first is not instr:
            rewriter.replace(instr, first)
            changed = True
    return changed


def _key(instr: HloInstruction, numbering: Numbering) -> Any:
    if instr.op is hlo.constant:
        value = scalar_of(instr)
        if value is None or value != value:
            return ("constant", id(Constant.of(instr).literal))
        return ("constant", instr.type, repr(value))
    operands, bodies = tuple(map(_same, instr.operands)), tuple(map(numbering.graph, instr.bodies))
    return (instr.op, instr.type, operands, numbering.attrs(instr.attrs), bodies)


def _same(operand: HloInstruction) -> Any:
    """The key of an operand: equal iotas are not merged themselves, but their users are."""
    return (operand.type, Iota.of(operand).iota_dimension) if operand.op is hlo.iota else id(operand)
