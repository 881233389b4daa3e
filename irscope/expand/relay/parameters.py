"""The inputs of a Relay program that are model parameters: operators take them as weight, bias or statistics."""

from __future__ import annotations

from irscope.formats.relay.attributes import Callee
from irscope.formats.relay.operators import declared
from irscope.formats.relay.structure import CALL
from irscope.graph import Graph, Module, Node, callees_first
from irscope.ops import hlo
from irscope.ops.sets import relay

ROLES = frozenset(("weight", "kernel", "bias", "gamma", "beta", "moving_mean", "moving_var"))
"""TVM's names of the operands that a model has learned."""
MOVES = relay("cast transpose reshape layout_transform expand_dims squeeze copy")
"""Operators that only move or convert: their result still counts as the parameter."""


def parameter_names(module: Module) -> list[str]:
    """The inputs of the entry that operators read as model parameters, also in the functions that it calls."""
    learned: dict[Graph, set[Node]] = {}
    for graph in callees_first(module, module.main()):
        found = learned.setdefault(graph, set())
        for node in graph.nodes:
            found.update(source for operand in _learned(node, learned) if (source := _source(operand)).op is hlo.parameter)
    return [p.name for p in module.main().params if p in learned[module.main()]]


def _learned(node: Node, learned: dict[Graph, set[Node]]) -> list[Node]:
    """The operands of a node that are model parameters."""
    if node.op is CALL:
        function = node.operands[0] if node.operands and Callee.of(node).callee is None else None
        bodies = node.bodies if function is None else function.bodies
        given = node.operands if function is None else node.operands[1:]
        return [o for body in bodies for p, o in zip(body.params, given) if p in learned.get(body, ())]
    known = declared(node.op.name)
    return [o for role, o in zip(known.operands, node.operands) if role in ROLES] if known is not None else []


def _source(node: Node) -> Node:
    """The source of a parameter, before movement and conversion."""
    while node.op in MOVES:
        node = node.operands[0]
    return node
