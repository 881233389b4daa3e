"""Translation: what a format's compiler makes of a text when it translates it to HLO."""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from irscope.graph import Builder, Effect, Graph, Module, Node, Op, TensorType, rewrite_module
from irscope.graph.contents import contents, is_splat
from irscope.graph.rewrite import Rule, copy_node
from irscope.graph.walk import post_order
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal
from irscope.passes.algebra.simplifier import Simplifier, is_static_tensor
from irscope.passes.algebra.translation import RULES
from irscope.passes.base import Pass, rewritten
from irscope.passes.fold_constants import FoldConstants
from irscope.passes.remove_dead import RemoveDead

USED = Op("used", effect=Effect.CONTROL, known=False)
"""Keeps its operand while rules are applied."""
ROUNDS = 4
"""How often the rules are applied at most."""


class Translate(Pass):
    """Remove what jaxlib removes while it translates StableHLO to HLO: identities, unused operations, operations on constants.

        b = f32[2] broadcast(one), dimensions={}
        p = f32[2] multiply(x, b)                       ->       ROOT n = f32[2] negate(x)
        ROOT n = f32[2] negate(p)

    What is left is what XLA's pipeline begins with, in the post-order in which XLA prints it. Modules in other dialects stay unchanged.
    """

    name = "translate"

    def run(self, module: Module) -> Module:
        if module.dialect.translate is None:
            return module
        module = rewrite_module(module, translation(module.dialect.translate), keep_dead=True)
        for graph in module.graphs.values():
            _use_calls(graph)
        for _ in range(ROUNDS):
            before = sum(len(graph.nodes) for graph in module.graphs.values())
            module = rewritten(module, Simplifier(RULES, _is_operation).rule)
            module = RemoveDead().run(FoldConstants().run(rewrite_module(module, plain_constants())))
            if sum(len(graph.nodes) for graph in module.graphs.values()) == before:
                break
        for graph in module.graphs.values():
            _put_in_post_order(graph)
        return module


def _is_operation(node: Node) -> bool:
    """Whether a node is an operation of the text: jaxlib simplifies those, and translates one into several instructions afterwards.

    The iota in front of a broadcast says what the operation counts.
    """
    return (not node.synthetic or node.op is hlo.iota) and is_static_tensor(node)


def _use_calls(graph: Graph) -> None:
    """Mark calls as used: to jaxlib a called function may have effects, so that calls stay whose results nothing uses."""
    for node in [node for node in graph.nodes if node.op is hlo.call]:
        graph.add(Node(USED, "", node.type, (node,), synthetic=True))


def _put_in_post_order(graph: Graph) -> None:
    """Order nodes as XLA prints computations: from each value that nothing uses, operands first. Marks of calls are dropped."""
    graph.hold([node for node in graph.nodes if node.op is not USED])
    unused = [node for node, users in zip(graph.nodes, graph.users(), strict=True) if not users]
    graph.hold(post_order(unused, lambda node: node.operands))


def translation(translate: Rule) -> Rule:
    """A rule that applies the translation of a dialect, and merges equal constants of a graph, as MLIR's folding does."""
    constants: dict[tuple[Graph, str, Hashable], Node] = {}

    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        literal = Constant.of(node).known if node.op is hlo.constant else None
        if literal is None:
            return translate(builder, node, operands)
        key = builder.graph, str(node.type), contents(np.asarray(literal.value()))
        if key not in constants:
            constants[key] = copy_node(builder, node, operands)
        return constants[key]
    return rule


def plain_constants() -> Rule:
    """A rule that writes a constant of equal elements as a broadcast of a scalar; equal constants share one literal."""
    literals: dict[tuple[str, Hashable], Literal] = {}

    def shared(builder: Builder, values: Any, type: TensorType) -> Node:
        literal = literals.setdefault((str(type), contents(values)), Literal.of(values, type))
        return builder.add(hlo.constant, (), {"literal": literal}, type)

    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        type, literal = node.type, Constant.of(node).known if node.op is hlo.constant else None
        if literal is None or not isinstance(type, TensorType) or not type.is_static:
            return None
        values = np.asarray(literal.value())
        if not type.rank or not values.size or not is_splat(values):
            return shared(builder, values, TensorType(type.dtype, type.shape))
        one = shared(builder, values[(slice(1),) * values.ndim].reshape(()), TensorType(type.dtype, ()))
        return builder.add(hlo.broadcast, (one,), {"dimensions": ()}, type)
    return rule
