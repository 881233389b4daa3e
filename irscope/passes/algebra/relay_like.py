"""Relay's operators that take only a type from an operand: once the type is known, they need it no more.

    zeros_like(%x)     ->     zeros(shape=[3, 4], dtype="float32")
"""
from __future__ import annotations

from irscope.formats.relay.algebra import word_of
from irscope.graph import Node
from irscope.ops.sets import relay
from irscope.passes.algebra.relay import RelaySimplifier, Rule, Rules
from irscope.passes.algebra.simplifier import Draft
from irscope.passes.op_table import OpTable


def filled(name: str) -> Rule:
    """``zeros_like``, ``ones_like`` and ``full_like`` by shape and element type."""
    def rule(s: RelaySimplifier, d: Draft) -> Node | None:
        if not d.tensor.is_static:
            return None
        return s.make(name, d.operands[1:], {"shape": list(d.tensor.dims()), "dtype": word_of(d.tensor.dtype)}, d.type)
    return rule


def shaped(name: str, attribute: str) -> Rule:
    """An operator on the first operand that says the shape in an attribute."""
    return lambda s, d: s.make(name, d.operands[:1], {attribute: list(d.tensor.dims())}, d.type) if d.tensor.is_static else None


def cast_like(s: RelaySimplifier, d: Draft) -> Node | None:
    """The element type is known also where the shape is open."""
    return s.make("cast", d.operands[:1], {"dtype": word_of(d.tensor.dtype)}, d.type)


RULES: Rules = OpTable(
    (relay("zeros_like"), (filled("zeros"),)),
    (relay("ones_like"), (filled("ones"),)),
    (relay("full_like"), (filled("full"),)),
    (relay("reshape_like"), (shaped("reshape", "newshape"),)),
    (relay("broadcast_to_like"), (shaped("broadcast_to", "shape"),)),
    (relay("collapse_sum_like"), (shaped("collapse_sum_to", "shape"),)),
    (relay("cast_like"), (cast_like,)),
)
