"""The rules of simplify-algebra on Relay's operators as written.

    %0 = multiply(%x, 1f);                                       reshape(%x, newshape=[8])
    %1 = reshape(%0, newshape=[2, 4]);            ->
    reshape(%1, newshape=[8])
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.graph import Builder, Module, Node, TensorType
from irscope.passes.base import rewritten

Rule = Callable[[Builder, Node, Sequence[Node]], Node | None]


def simplified(module: Module) -> Module:
    """The module by these rules."""
    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        found = RULES.get(node.op.name)
        return found(builder, node, operands) if found is not None and isinstance(node.type, TensorType) else None
    # The second walk leaves out what chains have become one step of.
    return rewritten(rewritten(module, rule), lambda builder, node, operands: None)


def _scalar(node: Node) -> float | None:
    """The value of a scalar constant."""
    if node.op.name != "constant" or not isinstance(node.type, TensorType) or node.type.rank or node.attrs["literal"].elided:
        return None
    return float(node.attrs["literal"].value())


def _without(value: float, either: bool) -> Rule:
    """An operation with this scalar does nothing; ``either`` side for those that commute."""
    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        pairs = [(operands[0], operands[1])] + ([(operands[1], operands[0])] if either else [])
        return next((x for x, scalar in pairs if x.type == node.type and _scalar(scalar) == value), None)
    return rule


def _reshape(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    """One that keeps the shape is nothing; of a reshape, it is one."""
    x = operands[0]
    if x.type == node.type:
        return x
    newshape = node.attrs.get("newshape")
    # The codes 0, -2, -3 and -4 speak of the operand's shape, which the one before has made.
    said = isinstance(newshape, list) and all(d == -1 or d > 0 for d in newshape) and not node.attrs.get("allowzero")
    if x.op.name == "reshape" and said:
        return builder.add(node.op, x.operands, node.attrs, node.type, name=node.name)
    return None


def _transpose(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    """One that keeps the order is nothing."""
    axes = node.attrs.get("axes")
    assert isinstance(node.type, TensorType), "looked at before"
    return operands[0] if axes is not None and [a % node.type.rank for a in axes] == list(range(node.type.rank)) else None


def _same_type(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    """What gives its operand's type gives its operand."""
    return operands[0] if operands[0].type == node.type else None


def _negative(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    return operands[0].operands[0] if operands[0].op.name == "negative" else None


def _relu(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
    return operands[0] if operands[0].op.name == "nn.relu" else None


RULES: dict[str, Rule] = {
    "multiply": _without(1, True),
    "divide": _without(1, False),
    "add": _without(0, True),
    "subtract": _without(0, False),
    "reshape": _reshape,
    "transpose": _transpose,
    "cast": _same_type,
    "broadcast_to": _same_type,
    "squeeze": _same_type,
    "negative": _negative,
    "nn.relu": _relu,
    "copy": _same_type,
}
