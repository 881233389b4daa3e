"""Algebraic simplification: arithmetic without effect is removed, and chains of movement become one step."""
from __future__ import annotations

from irscope.formats.relay.dialect import RELAY
from irscope.graph import Module
from irscope.passes.algebra import (
    arithmetic,
    movement,
    padding,
    relay_arithmetic,
    relay_casts,
    relay_like,
    relay_movement,
    relay_padding,
)
from irscope.passes.algebra.simplifier import RelayRules, Rules, Simplifier, is_static_tensor, simplified
from irscope.passes.base import Pass, rewritten
from irscope.passes.op_table import OpTable

RULES: Rules = {**movement.RULES, **padding.RULES, **arithmetic.RULES}
RELAY_RULES: RelayRules = OpTable(*relay_movement.RULES.rows, *relay_padding.RULES.rows, *relay_like.RULES.rows, *relay_casts.RULES.rows,
                                   *relay_arithmetic.RULES.rows)
ROUNDS = 16
"""How often the inexact rules go over a module at most."""
RELAY_INEXACT: RelayRules = OpTable(*RELAY_RULES.rows, *relay_arithmetic.INEXACT.rows)


class SimplifyAlgebra(Pass):
    """Remove operations that change nothing and merge those that one can do.

        b = f32[1,4] broadcast(one), dimensions={}
        p = f32[1,4] multiply(x, b)                     ->       ROOT r = f32[2,4] broadcast(reshape(x)), dimensions={1}
        q = f32[4] reshape(p)
        ROOT r = f32[2,4] broadcast(q), dimensions={1}

    ``x*1``, ``x+0``, ``x-0``, ``x/1``; division by a power of two becomes a product; ``neg(neg(x))``; conversions there and back that lose
    nothing; chains of reshape, transpose, broadcast and slice; pointwise work on repeated values is done before they are repeated; padding
    goes into the window that reads it. Over Relay also what takes only a type from an operand (``zeros_like``), limits that a type keeps
    anyway, and the order of dequantised values. Results are the same to the last bit, but for the sign of ``-0 + 0`` and for values below
    the least finite padding of a maximum.

    ``inexact`` adds what TVM's SimplifyExpr does to Relay although it rounds differently: constants of sums and products taken together,
    products before sums, and division by a root as multiplication with ``rsqrt``.
    """

    name = "simplify-algebra"
    dialects = (RELAY,)

    def __init__(self, inexact: bool = False) -> None:
        self.inexact = inexact

    def run(self, module: Module) -> Module:
        if not module.is_primitive:
            return super().run(module)
        return rewritten(module, Simplifier(RULES, is_static_tensor, arithmetic.POINTWISE).rule)

    def rewrite(self, module: Module) -> Module:
        if not self.inexact:
            return simplified(module, RELAY_RULES)
        # What has one reader less afterwards may be taken together in the next round.
        for _ in range(ROUNDS):
            before, module = module, simplified(module, RELAY_INEXACT)
            if module is before:
                break
        return module
