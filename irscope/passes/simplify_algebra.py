"""Arithmetic that does nothing is gone, and chains of movement are one step."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irscope.graph import Builder, Module, Node
from irscope.passes.algebra import arithmetic, movement, padding, relay
from irscope.passes.algebra.simplifier import Rules, Simplifier
from irscope.passes.base import Pass, is_primitive, rewritten

RULES: Rules = {**movement.RULES, **padding.RULES, **arithmetic.RULES}
POINTWISE = arithmetic.POINTWISE


class SimplifyAlgebra(Pass):
    """Remove operations that change nothing and merge those that one can do.

        b = f32[1,4] broadcast(one), dimensions={}
        p = f32[1,4] multiply(x, b)                     ->       ROOT r = f32[2,4] broadcast(reshape(x)), dimensions={1}
        q = f32[4] reshape(p)
        ROOT r = f32[2,4] broadcast(q), dimensions={1}

    ``x*1``, ``x+0``, ``x-0``, ``x/1``; division by a power of two becomes a product; ``neg(neg(x))``; conversions there and back that lose
    nothing; chains of reshape, transpose, broadcast and slice; pointwise work on repeated values is done before they are repeated; padding
    goes into the window that reads it. Results are the same to the last bit, but for the sign of ``-0 + 0``.
    """

    name: ClassVar[str] = "simplify-algebra"

    def run(self, module: Module) -> Module:
        if not is_primitive(module):
            return relay.simplified(module) if module.format == "relay" else module

        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            return Simplifier(builder, RULES, POINTWISE, node).node(node, operands)
        return rewritten(module, rule)
