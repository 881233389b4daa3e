"""The normal form in which texts of different dialects are compared.

A compiler that translates a dialect into another one simplifies on the way: jaxlib folds constants, drops identities and parts of a loop's
state. Both texts are therefore simplified until they no longer change; what is then the same graph computes the same.
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.diff.identities import RULES
from irscope.diff.states import with_plain_states
from irscope.expand import expand
from irscope.graph import Builder, Module, Node, TensorType, rewrite_module
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Constant
from irscope.ops.attrs import Literal
from irscope.passes import pass_named
from irscope.passes.algebra.arithmetic import POINTWISE
from irscope.passes.algebra.simplifier import Simplifier, is_static_tensor
from irscope.passes.base import rewritten

PASSES = ("fold-constants", "share-equal", "remove-dead")
ROUNDS = 6
"""How often the passes run at most."""


def normal_form(module: Module) -> Module:
    """The module in normal form. Raises UserError for one that cannot be expanded."""
    module = expand(module, outline=True)
    for _ in range(ROUNDS):
        before = sum(len(graph.nodes) for graph in module.graphs.values())
        module = rewritten(module, Simplifier(RULES, is_static_tensor, POINTWISE).rule)
        for name in PASSES:
            module = pass_named(name).run(module)
        module = with_plain_states(rewrite_module(module, _plain_movement))
        if sum(len(graph.nodes) for graph in module.graphs.values()) == before:
            break
    return pass_named("remove-dead").run(pass_named("share-equal").run(module))


def _plain_movement(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    """A constant of one value is a broadcast of a scalar, a broadcast that keeps all elements a reshape, an iota of one element zero."""
    type = node.type
    if not isinstance(type, TensorType) or not type.is_static:
        return None
    if node.op is hlo.constant and type.rank and type.elements > 1:
        literal = Constant.of(node).known
        values = np.asarray(literal.value()) if literal is not None else np.empty(0)
        if values.size and _is_splat(values):
            scalar = TensorType(type.dtype, ())
            one = builder.add(hlo.constant, (), {"literal": Literal.of(values.reshape(-1)[:1].reshape(()), scalar)}, scalar)
            return builder.add(hlo.broadcast, (one,), {"dimensions": ()}, type)
    if node.op is hlo.broadcast and isinstance(operands[0].type, TensorType) and operands[0].type.elements == type.elements:
        dimensions = Broadcast.of(node).dimensions
        if list(dimensions) == sorted(dimensions):
            return builder.add(hlo.reshape, operands, {}, TensorType(type.dtype, type.shape))
    return None


def _is_splat(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> bool:
    """Whether all elements have the same bits."""
    flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8).reshape(values.size, -1)
    return bool((flat == flat[0]).all())
