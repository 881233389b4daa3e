"""Translation: what a format's compiler makes of a text when it translates it to HLO."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.graph import Builder, Module, Node, TensorType, rewrite_module
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal
from irscope.passes.algebra.simplifier import Simplifier, is_static_tensor
from irscope.passes.algebra.translation import RULES
from irscope.passes.base import Pass, rewritten
from irscope.passes.fold_constants import FoldConstants
from irscope.passes.remove_dead import RemoveDead

ROUNDS = 4
"""How often the rules are applied at most."""


class Translate(Pass):
    """Remove what jaxlib removes while it translates StableHLO to HLO: identities, unused operations, operations on constants.

        b = f32[2] broadcast(one), dimensions={}
        p = f32[2] multiply(x, b)                       ->       ROOT n = f32[2] negate(x)
        ROOT n = f32[2] negate(p)

    What is left is what XLA's pipeline begins with. Modules in other dialects stay unchanged.
    """

    name = "translate"

    def run(self, module: Module) -> Module:
        if module.dialect.translate is None:
            return module
        module = rewrite_module(module, module.dialect.translate)
        for _ in range(ROUNDS):
            before = sum(len(graph.nodes) for graph in module.graphs.values())
            module = rewritten(module, Simplifier(RULES, is_static_tensor).rule)
            module = RemoveDead().run(FoldConstants().run(rewrite_module(module, PlainConstants().rule)))
            if sum(len(graph.nodes) for graph in module.graphs.values()) == before:
                break
        return module


class PlainConstants:
    """Writes a constant of equal elements as a broadcast of a scalar; equal constants share one literal."""

    def __init__(self) -> None:
        self.literals: dict[tuple[str, bytes], Literal] = {}

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        """The plain form of a constant."""
        type = node.type
        if node.op is not hlo.constant or not isinstance(type, TensorType) or not type.is_static:
            return None
        return self._constant(builder, node, type)

    def _constant(self, builder: Builder, node: Node, type: TensorType) -> Node | None:
        literal = Constant.of(node).known
        if literal is None:
            return None
        values = np.asarray(literal.value())
        if not type.rank or not values.size or not _is_splat(values):
            return self._shared(builder, values, TensorType(type.dtype, type.shape))
        one = self._shared(builder, values.reshape(-1)[:1].reshape(()), TensorType(type.dtype, ()))
        return builder.add(hlo.broadcast, (one,), {"dimensions": ()}, type)

    def _shared(self, builder: Builder, values: Any, type: TensorType) -> Node:
        literal = self.literals.setdefault((str(type), values.tobytes()), Literal.of(values, type))
        return builder.add(hlo.constant, (), {"literal": literal}, type)


def _is_splat(values: Any) -> bool:
    """Whether all elements have the same bits."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(values.size, -1)
    return bool((flat == flat[0]).all())
