"""Builds nodes through rewrite rules: every node is simplified as it is built.

    %0 = multiply(%x, 1f);                                       reshape(%x, newshape=[8])
    %1 = reshape(%0, newshape=[2, 4]);            ->
    reshape(%1, newshape=[8])
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.graph import NO_ATTRS, Builder, Effect, Graph, Module, Node, Op, TensorType, Type, callees_first, rewrite, see_through
from irscope.lazy import np
from irscope.ops import TypeFault, get, hlo
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal
from irscope.passes.base import per_graph
from irscope.passes.op_table import OpTable
from irscope.passes.visitor import without_dead

Rule = Callable[["Simplifier", Node], Node | None]
"""What may stand for a node that is not in a graph yet: operator, operands of the new graph, attributes and a tensor type."""
Rules = Mapping[Op, Sequence[Rule]]
RelayRules = OpTable[Sequence[Rule]]


def simplified(module: Module, rules: RelayRules) -> Module:
    """A Relay module rewritten by rules per operator; the same module if none applies."""
    if not any(node.op in rules for graph in callees_first(module) for node in graph.nodes):
        return module
    changed = False

    def change(graph: Graph, became: dict[Graph, Graph]) -> Graph:
        nonlocal changed
        simplifier = Simplifier(rules, is_sound, users=graph.users())
        made = without_dead(see_through(rewrite(graph, simplifier.rule, became), graph))
        changed |= simplifier.changed
        return made

    made = per_graph(module, change)
    return made if changed else module


class Simplifier:
    """Builds the replacements for the nodes of one graph; the rules apply to their own results too.

    ``rules`` are keyed by operator, ``pointwise`` apply to every elementwise one; the rules only see nodes that ``accepts`` admits.
    """

    def __init__(self, rules: Rules | RelayRules, accepts: Callable[[Node], bool], pointwise: Sequence[Rule] = (),
                 users: Sequence[Sequence[Node]] = ()) -> None:
        self.rules, self.accepts, self.pointwise, self.users = rules, accepts, pointwise, users
        self.changed = False

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        """What a node becomes; None for a plain copy of it."""
        rules = self._rules_of(node.op)
        if not rules or not isinstance(node.type, TensorType) or not self.accepts(node):
            return None
        if node.bodies and node.op not in self.rules:
            return None  # pointwise rules do not handle called computations
        self.builder, self.old = builder, node
        found = self._apply(rules, Node(node.op, node.name, node.type, tuple(operands), node.attrs, node.bodies))
        self.changed |= found is not None
        return found

    def make(self, op: Op | str, operands: Sequence[Node], type: Type | None = None, attrs: Mapping[str, Any] = NO_ATTRS,
             bodies: Sequence[Graph] = ()) -> Node:
        """A node, or its replacement by the rules; its type is inferred if none is given. A string names a Relay operator."""
        if isinstance(op, str):
            op = get(op, "relay")
        if isinstance(type, TensorType) and (rules := self._rules_of(op)):
            found = self._apply(rules, Node(op, self.old.name, type, tuple(operands), attrs, tuple(bodies)))
            if found is not None:
                return found
        return self.builder.add(op, operands, attrs, type, bodies, self.old.name)

    def _rules_of(self, op: Op) -> Sequence[Rule]:
        own = self.rules.get(op) or ()
        return (*own, *self.pointwise) if self.pointwise and op.scalar is not None else own

    def _apply(self, rules: Sequence[Rule], node: Node) -> Node | None:
        for rule in rules:
            found = rule(self, node)
            if found is not None:
                return found
        return None

    def again(self, node: Node, operands: Sequence[Node]) -> Node:
        """A node over other operands."""
        return self.make(node.op, operands, node.type, node.attrs)

    def read_once(self, place: int) -> bool:
        """Whether the node that is being replaced is the only user of this operand."""
        return len(self.users[self.old.operands[place].index]) == 1

    # ---- shorthand

    def reshape(self, x: Node, shape: tuple[int, ...]) -> Node:
        return self.make(hlo.reshape, (x,), TensorType(of(x).dtype, shape))

    def broadcast(self, x: Node, dimensions: tuple[int, ...], shape: tuple[int, ...]) -> Node:
        return self.make(hlo.broadcast, (x,), TensorType(of(x).dtype, shape), {"dimensions": dimensions})

    def constant(self, value: Any, like: TensorType) -> Node:
        """A scalar constant of an element type."""
        type = TensorType(like.dtype, ())
        with np.errstate(over="ignore", invalid="ignore"):  # a number beyond the type becomes an infinity, as in the program
            literal = Literal.of(np.asarray(value, like.dtype.numpy()), type)
        return self.builder.add(hlo.constant, (), {"literal": literal}, type, name=self.old.name)


def of(node: Node) -> TensorType:
    """The type of a node that is a tensor."""
    assert isinstance(node.type, TensorType), node
    return node.type


def dims_of(node: Node) -> tuple[int, ...]:
    """The static shape of a node."""
    return of(node).dims()


def scalar_of(node: Node) -> Any:
    """The value of a splat constant, or of a broadcast of one, as a numpy scalar; None for anything else."""
    while node.op is hlo.broadcast or node.op is hlo.reshape:
        node = node.operands[0]
    literal = Constant.of(node).known if node.op is hlo.constant else None
    if literal is None or not isinstance(node.type, TensorType) or node.type.elements != 1:
        return None
    return literal.value().reshape(())[()]


def is_filled(node: Node, value: float) -> bool:
    """Whether every element of a node is known to equal ``value``."""
    return equals(scalar_of(node), value)


def equals(found: object, value: float) -> bool:
    """Whether ``found`` is known (not None) and equals ``value``."""
    return found is not None and bool(found == value)


def is_static(node: Node) -> bool:
    """Whether a node is a tensor of a known shape."""
    return isinstance(node.type, TensorType) and node.type.is_static


def is_static_tensor(node: Node) -> bool:
    """Whether a primitive is pure, without called computations, and returns one tensor of static shape, over operands of static shape too.

    A text may declare a static result over an operand with an open dimension, at either of the two levels that rules read.
    """
    return node.op.effect is Effect.PURE and is_static(node) and not any(
        _is_open(operand) or any(map(_is_open, operand.operands)) for operand in node.operands)


def _is_open(node: Node) -> bool:
    return isinstance(node.type, TensorType) and not node.type.is_static


def is_sound(node: Node) -> bool:
    """Whether a call's operands and attributes are valid for its operator; the type checker reports the others, which stay."""
    if node.op.infer is None:
        return False
    try:
        node.op.infer(node)
    except TypeFault:
        return False
    return True
