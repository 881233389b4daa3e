"""The normal form in which texts of different dialects are compared.

A compiler that translates a dialect into another one simplifies on the way: jaxlib folds constants, drops identities and parts of a loop's
state. Both texts are therefore simplified until they no longer change; what is then the same graph computes the same.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.diff.identities import RULES
from irscope.diff.states import with_plain_states
from irscope.expand import expand
from irscope.graph import UNKNOWN, Builder, Module, Node, TensorType, rewrite_module
from irscope.lazy import np
from irscope.ops import hlo, infer
from irscope.ops.attributes import Broadcast, Constant
from irscope.ops.attrs import Literal
from irscope.passes import pass_named
from irscope.passes.algebra.arithmetic import POINTWISE
from irscope.passes.algebra.simplifier import Simplifier, is_static_tensor
from irscope.passes.base import rewritten
from irscope.passes.fold_constants import GROWING, KEPT, FoldConstants

PASSES = ("share-equal", "remove-dead")
ROUNDS = 6
"""How often the passes run at most."""


def normal_form(module: Module) -> Module:
    """The module in normal form. Raises UserError for one that cannot be expanded."""
    module = rewrite_module(expand(module, outline=True), _without_layout)
    if module.dialect.translate is not None:
        module = rewrite_module(module, module.dialect.translate)
    plain = _Plain()
    for _ in range(ROUNDS):
        before = sum(len(graph.nodes) for graph in module.graphs.values())
        module = rewritten(module, Simplifier(RULES, is_static_tensor, POINTWISE).rule)
        module = _folded(module)
        for name in PASSES:
            module = pass_named(name).run(module)
        module = with_plain_states(rewrite_module(module, plain.rule))
        if sum(len(graph.nodes) for graph in module.graphs.values()) == before:
            break
    return pass_named("remove-dead").run(pass_named("share-equal").run(module))


def _folded(module: Module) -> Module:
    """Constant folding through broadcasts: which text shows a value as a broadcast and which as a constant is chance."""
    fold = FoldConstants()
    fold.kept = KEPT - GROWING
    return fold.run(module)


def _without_layout(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    """A layout is no part of a value, but of its type: equal values would be two."""
    return builder.copy(node, operands, infer.plain(node.type)) if not node.bodies and node.type is not UNKNOWN else None


class _Plain:
    """The plain forms of constants and broadcasts; equal constants share one literal."""

    def __init__(self) -> None:
        self.literals: dict[tuple[str, bytes], Literal] = {}

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        """A constant of one value is a broadcast of a scalar, a broadcast that keeps all elements a reshape."""
        type = node.type
        if not isinstance(type, TensorType) or not type.is_static:
            return None
        return self._constant(builder, node, type) if node.op is hlo.constant else _reshape(builder, node, operands, type)

    def _constant(self, builder: Builder, node: Node, type: TensorType) -> Node | None:
        literal = Constant.of(node).known
        if literal is None:
            return None
        values = np.asarray(literal.value())
        if type.elements <= 1 or not _is_splat(values):
            return self._shared(builder, values, TensorType(type.dtype, type.shape))
        one = self._shared(builder, values.reshape(-1)[:1].reshape(()), TensorType(type.dtype, ()))
        return builder.add(hlo.broadcast, (one,), {"dimensions": ()}, type)

    def _shared(self, builder: Builder, values: Any, type: TensorType) -> Node:
        literal = self.literals.setdefault((str(type), values.tobytes()), Literal.of(values, type))
        return builder.add(hlo.constant, (), {"literal": literal}, type)


def _reshape(builder: Builder, node: Node, operands: Sequence[Node], type: TensorType) -> Node | None:
    if node.op is hlo.broadcast and isinstance(operands[0].type, TensorType) and operands[0].type.elements == type.elements:
        dimensions = Broadcast.of(node).dimensions
        if list(dimensions) == sorted(dimensions):
            return builder.add(hlo.reshape, operands, {}, TensorType(type.dtype, type.shape))
    return None


def _is_splat(values: Any) -> bool:
    """Whether all elements have the same bits."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(values.size, -1)
    return bool((flat == flat[0]).all())
