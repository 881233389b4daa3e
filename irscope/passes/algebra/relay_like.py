"""Relay's operators that use only the type of an operand: once the type is known, the operand is dropped.

    zeros_like(%x)     ->     zeros(shape=[3, 4], dtype="float32")
"""
from __future__ import annotations

from irscope.formats.relay.algebra import word_of
from irscope.graph import Node
from irscope.ops.sets import relay
from irscope.passes.algebra.simplifier import RelayRules, Rule, Simplifier, of
from irscope.passes.op_table import OpTable


def filled(name: str) -> Rule:
    """``zeros_like``, ``ones_like`` and ``full_like`` by shape and element type."""
    return lambda s, d: s.make(
        name, d.operands[1:], d.type, {"shape": list(of(d).dims()), "dtype": word_of(of(d).dtype)}) if of(d).is_static else None


def shaped(name: str, attribute: str) -> Rule:
    """The operator on the first operand that takes the shape as an attribute."""
    return lambda s, d: s.make(name, d.operands[:1], d.type, {attribute: list(of(d).dims())}) if of(d).is_static else None


def cast_like(s: Simplifier, d: Node) -> Node | None:
    """``cast_like`` as a cast: the element type is known even if the shape is dynamic."""
    return s.make("cast", d.operands[:1], d.type, {"dtype": word_of(of(d).dtype)})


RULES: RelayRules = OpTable(
    (relay("zeros_like"), (filled("zeros"),)),
    (relay("ones_like"), (filled("ones"),)),
    (relay("full_like"), (filled("full"),)),
    (relay("reshape_like"), (shaped("reshape", "newshape"),)),
    (relay("broadcast_to_like"), (shaped("broadcast_to", "shape"),)),
    (relay("collapse_sum_like"), (shaped("collapse_sum_to", "shape"),)),
    (relay("cast_like"), (cast_like,)),
)
