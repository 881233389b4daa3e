"""Algebraic simplification: removes identities, and merges chains of data movement."""
from __future__ import annotations

from irscope.formats.relay.dialect import RELAY
from irscope.graph import Module
from irscope.passes.algebra import arithmetic, movement, padding, relay_arithmetic, relay_casts, relay_like, relay_movement, relay_padding
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
    """Remove identity operations, and merge operations that a single one can replace.

        b = f32[1,4] broadcast(one), dimensions={}
        p = f32[1,4] multiply(x, b)                     ->       ROOT r = f32[2,4] broadcast(reshape(x)), dimensions={1}
        q = f32[4] reshape(p)
        ROOT r = f32[2,4] broadcast(q), dimensions={1}

    Removes ``x*1``, ``x+0``, ``x-0``, ``x/1``, ``neg(neg(x))`` and lossless conversions there and back; turns a division by a power of two
    into a product; merges chains of reshape, transpose, broadcast and slice; moves elementwise operators before broadcasts; folds padding
    into the window that reads it. In Relay also simplifies operators that use only the type of an operand (``zeros_like``), clips to limits
    that the type implies, and argmax and argsort of dequantised values. Results are the same to the last bit, except for the sign of
    ``-0 + 0`` and for values below the least finite padding of a maximum.

    ``inexact`` adds rewrites of TVM's SimplifyExpr that round differently (Relay only): reassociated constants of sums and products,
    products distributed over sums, and division by a square root as multiplication by ``rsqrt``.
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
        # A node that lost a user may combine with others in the next round.
        for _ in range(ROUNDS):
            before, module = module, simplified(module, RELAY_INEXACT)
            if module is before:
                break
        return module
