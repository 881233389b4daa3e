"""The rules of simplify-algebra on Relay's operators as written.

    %0 = multiply(%x, 1f);                                       reshape(%x, newshape=[8])
    %1 = reshape(%0, newshape=[2, 4]);            ->
    reshape(%1, newshape=[8])
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.graph import NO_ATTRS, Builder, Graph, Module, Node, TensorType, Type, callees_first, rewrite, see_through
from irscope.ops import TypeFault, get
from irscope.ops.building import constant
from irscope.passes.algebra.simplifier import Draft
from irscope.passes.base import per_graph
from irscope.passes.op_table import OpTable
from irscope.passes.visitor import without_dead

Rule = Callable[["RelaySimplifier", Draft], "Node | None"]
Rules = OpTable[Sequence[Rule]]


def simplified(module: Module, rules: Rules) -> Module:
    """The module by rules that go by operator; the same module where none applies."""
    if not any(node.op in rules for graph in callees_first(module) for node in graph.nodes):
        return module
    changed = False

    def change(graph: Graph, became: dict[Graph, Graph]) -> Graph:
        nonlocal changed
        simplifier = RelaySimplifier(rules, graph.users())
        made = without_dead(see_through(rewrite(graph, simplifier.rule, became), graph))
        changed |= simplifier.changed
        return made

    made = per_graph(module, change)
    return made if changed else module


class RelaySimplifier:
    """Builds what stands for the nodes of one graph; what a rule makes goes through the rules itself."""

    def __init__(self, rules: Rules, users: Sequence[Sequence[Node]]) -> None:
        self.rules = rules
        self.users = users
        self.changed = False

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        """What a node becomes; None for a plain copy of it."""
        rules = self.rules.get(node.op)
        if rules is None or not isinstance(node.type, TensorType) or not is_sound(node):
            return None  # of a call that is not as declared the checker tells, and the node stays
        self.builder, self.old = builder, node
        found = self._ruled(rules, Draft(node.op, operands, node.attrs, node.type))
        if found is not None:
            self.changed = True
        return found

    def make(self, name: str, operands: Sequence[Node], attrs: Mapping[str, Any] = NO_ATTRS, type: Type | None = None) -> Node:
        """A node by its operator's name, or what the rules have in its place; its type is inferred where none is given."""
        op = get(name, "relay")
        rules = self.rules.get(op)
        if rules is not None and isinstance(type, TensorType):
            found = self._ruled(rules, Draft(op, operands, attrs, type))
            if found is not None:
                return found
        return self.builder.add(op, operands, attrs, type, name=self.old.name)

    def again(self, draft: Draft, operands: Sequence[Node]) -> Node:
        """A draft over other operands."""
        return self.make(draft.op.name, operands, draft.attrs, draft.type)

    def scalar(self, value: Any, like: TensorType) -> Node:
        """A scalar constant of an element type."""
        return constant(self.builder, value, like.dtype)

    def read_once(self, place: int) -> bool:
        """Whether nobody but the node that is being replaced reads its operand in this place."""
        return len(self.users[self.old.operands[place].index]) == 1

    def _ruled(self, rules: Sequence[Rule], draft: Draft) -> Node | None:
        for rule in rules:
            found = rule(self, draft)
            if found is not None:
                return found
        return None


def is_sound(node: Node) -> bool:
    """Whether a call's operands and attributes are such as its operator takes."""
    if node.op.infer is None:
        return False
    try:
        node.op.infer(node)
    except TypeFault:
        return False
    return True
