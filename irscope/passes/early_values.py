"""Values that are known at compile time, node by node: constants, shapes from static types, and arithmetic on them."""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

from irscope.formats.relay.algebra import Relay
from irscope.formats.relay.inference import built
from irscope.formats.relay.operators import declared
from irscope.graph import Builder, Effect, Graph, Node, TensorType
from irscope.graph.walk import post_order
from irscope.lazy import Array
from irscope.ops import TypeFault, hlo
from irscope.ops.attributes import Constant, GetTupleElement
from irscope.passes.fold_constants import SHAPES, shape_of_type

if TYPE_CHECKING:

    Value = Array | list[Array] | None
    """An array, those of a tuple, or nothing known."""

LARGEST = 1024
"""A value of more elements is no shape."""


class EarlyValues:
    """The known values of the nodes of a Relay graph, each computed once, when first requested."""

    def __init__(self) -> None:
        self._values: dict[Node, Value] = {}
        self._computed: dict[Hashable, Value] = {}

    def of(self, node: Node) -> Value:
        """The value of a node, if it is known."""
        for each in post_order([node], self._needed):
            if each not in self._values:
                self._values[each] = self._worked_out(each)
        return self._values[node]

    def _needed(self, node: Node) -> Sequence[Node]:
        """The operands to evaluate before a node; none if its value is known already, cannot be known, or follows from a type alone."""
        return () if node in self._values or node.op in SHAPES or not self._may_be_known(node) else node.operands

    @staticmethod
    def _may_be_known(node: Node) -> bool:
        """Whether a node is a candidate: small, without side effects or called functions, and not a parameter."""
        leaves = list(node.type.leaves())
        small = all(isinstance(t, TensorType) and t.elements <= LARGEST for t in leaves)
        return small and not node.bodies and node.op.effect is Effect.PURE and node.op is not hlo.parameter

    def _worked_out(self, node: Node) -> Value:
        if not self._may_be_known(node):
            return None
        if node.op is hlo.constant:
            literal = Constant.of(node).known
            return None if literal is None else literal.value()
        if node.op in SHAPES:
            return shape_of_type(node)
        values = [self._values[o] for o in node.operands]
        if any(value is None for value in values):
            return None
        if node.op is hlo.tuple:
            return [value for value in values if value is not None and not isinstance(value, list)]
        if node.op is hlo.get_tuple_element:
            whole = values[0]
            return whole[GetTupleElement.of(node).index] if isinstance(whole, list) else None
        # Layers compute the same shapes again and again.
        key = node.op, repr(node.attrs) if node.attrs else "", *map(_key, values)
        if key not in self._computed:
            self._computed[key] = _expanded(node, values)
        return self._computed[key]


def _key(value: Value) -> Hashable:
    """A key that is equal for equal values."""
    if isinstance(value, list):
        return tuple(map(_key, value))
    return None if value is None else (value.dtype, value.shape, value.tobytes())


def _expanded(node: Node, values: list[Value]) -> Value:
    """The result of a call's expansion for given operand values."""
    operator = None if node.op.is_primitive else declared(node.op.name)
    if operator is None or operator.build is None:
        return None
    t = Relay(Builder(Graph("probe")))

    def taken(value: Value, type: Any) -> Any:
        if isinstance(value, list):
            return [taken(v, element) for v, element in zip(value, type.elements, strict=True)]
        return t.array(value, type.dtype)

    try:
        made = built(operator, t, node.attrs, [taken(v, o.type) for v, o in zip(values, node.operands, strict=True)])
        if isinstance(made, Node):
            return t.known(made)
        assert isinstance(made, list)
        parts = [value for part in made if (value := t.known(part)) is not None]
    except TypeFault:
        return None
    return parts if len(parts) == len(made) else None
