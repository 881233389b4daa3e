"""Nodes whose types do not hold, and a module in which these are opaque, so that whoever reads it may rest on all others.

    s = f32[3] add(x, y)    with f32[2] x    ->    the operator of %s is called add?
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.types import check_graph
from irscope.graph import NO_ATTRS, UNKNOWN, Builder, Effect, Module, Node, Op
from irscope.graph.rewrite import rewrite_module
from irscope.graph.walk import callees_first
from irscope.source import Severity


def unsound(module: Module) -> set[Node]:
    """The nodes that do not fit their operands, and those of whose operands nothing is known because the text has a hole there."""
    found: set[Node] = set()
    for graph in callees_first(module):
        found.update(fault.node for fault in check_graph(graph) if fault.node is not None and fault.severity is Severity.ERROR)
        found.update(node for node in graph.nodes if any(operand.type is UNKNOWN for operand in node.operands))
    return found


def held_together(module: Module) -> Module:
    """The module itself where all types hold, else a copy in which the nodes that do not are opaque, without attributes and bodies."""
    loose = unsound(module)
    if not loose:
        return module
    ops: dict[str, Op] = {}

    def opaque(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node not in loose:
            return None
        name = node.op.name.removesuffix("?") + "?"
        op = ops.setdefault(name, Op(name, node.op.dialect, effect=Effect.CONTROL))
        made = builder.add(op, operands, NO_ATTRS, node.type, (), node.name, node.synthetic)
        made.loc = node.loc
        return made
    return rewrite_module(module, opaque, keep_dead=True)
