"""Making nodes through rules: whatever is built is simplified while it is built."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from irscope.graph import NO_ATTRS, Builder, Effect, Graph, Node, Op, TensorType, Type
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal

Rule = Callable[["Simplifier", "Draft"], "Node | None"]
Rules = Mapping[Op, Sequence[Rule]]


class Draft:
    """A node that is about to be: operands, attributes and type, before a rule took them."""

    __slots__ = ("attrs", "bodies", "op", "operands", "type")

    def __init__(self, op: Op, operands: Sequence[Node], attrs: Mapping[str, Any], type: Type, bodies: Sequence[Graph] = ()) -> None:
        self.op = op
        self.operands = operands
        self.attrs = attrs
        self.type = type
        self.bodies = bodies

    @property
    def tensor(self) -> TensorType:
        assert isinstance(self.type, TensorType)
        return self.type


class Simplifier:
    """Builds what stands for one node of the graph before; ``rules`` go by operator, ``pointwise`` are for every elementwise one."""

    def __init__(self, builder: Builder, rules: Rules, pointwise: Sequence[Rule], node: Node) -> None:
        self.builder = builder
        self.rules = rules
        self.pointwise = pointwise
        self.name = node.name

    def node(self, node: Node, operands: Sequence[Node]) -> Node | None:
        """What a node becomes; None for a plain copy of it."""
        if node.bodies and node.op not in self.rules:
            return None
        if node.op.effect is not Effect.PURE or not isinstance(node.type, TensorType) or not node.type.is_static:
            return None
        return self._ruled(Draft(node.op, operands, node.attrs, node.type, node.bodies))

    def make(self, op: Op, operands: Sequence[Node], type: TensorType, attrs: Mapping[str, Any] = NO_ATTRS,
             bodies: Sequence[Graph] = ()) -> Node:
        """A node, or what the rules have in its place."""
        found = self._ruled(Draft(op, operands, attrs, type, bodies))
        return found if found is not None else self.builder.add(op, operands, attrs, type, bodies, self.name)

    def _ruled(self, draft: Draft) -> Node | None:
        for rule in (*self.rules.get(draft.op, ()), *(self.pointwise if draft.op.scalar is not None else ())):
            found = rule(self, draft)
            if found is not None:
                return found
        return None

    # ---- shorthand

    def reshape(self, x: Node, shape: tuple[int, ...]) -> Node:
        return self.make(hlo.reshape, (x,), TensorType(of(x).dtype, shape))

    def broadcast(self, x: Node, dimensions: tuple[int, ...], shape: tuple[int, ...]) -> Node:
        return self.make(hlo.broadcast, (x,), TensorType(of(x).dtype, shape), {"dimensions": dimensions})

    def constant(self, value: Any, like: TensorType) -> Node:
        """A scalar constant of an element type."""
        type = TensorType(like.dtype, ())
        literal = Literal.of(np.asarray(value, like.dtype.numpy()), type)
        return self.builder.add(hlo.constant, (), {"literal": literal}, type, name=self.name)


def of(node: Node) -> TensorType:
    """The type of a node that is a tensor."""
    assert isinstance(node.type, TensorType), node
    return node.type


def dims_of(node: Node) -> tuple[int, ...]:
    """The static shape of a node."""
    return of(node).dims()


def scalar_of(node: Node) -> Any:
    """The one value of a constant that holds only one, or of a broadcast of it, as a numpy scalar; None for anything else."""
    while node.op is hlo.broadcast or node.op is hlo.reshape:
        node = node.operands[0]
    literal = Constant.of(node).known if node.op is hlo.constant else None
    if literal is None or not isinstance(node.type, TensorType) or node.type.elements != 1:
        return None
    return literal.value().reshape(())[()]


def is_static(node: Node) -> bool:
    """Whether a node is a tensor of a known shape."""
    return isinstance(node.type, TensorType) and node.type.is_static
