"""Relay's arithmetic: identities, splat arrays, and reassociation of constants."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.graph import Node, TensorType
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal
from irscope.ops.sets import relay
from irscope.passes.algebra.simplifier import RelayRules, Rule, Simplifier, equals, of, scalar_of
from irscope.passes.op_table import OpTable

BINARY = relay(
    "add subtract multiply divide power mod floor_divide floor_mod trunc_divide trunc_mod maximum minimum left_shift right_shift "
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor equal not_equal less less_equal greater greater_equal"
)
"""Operators of two operands that broadcast as numpy does."""

FILLED = OpTable((relay("zeros zeros_like"), 0), (relay("ones ones_like"), 1))
FULL, ADD, SQRT = relay("full"), relay("add"), relay("sqrt")


def filled_with(node: Node) -> Any:
    """The value of a one-element constant or of a splat array; None for anything else."""
    if (value := FILLED.get(node.op)) is not None:
        return value
    return scalar_of(node.operands[0] if node.op in FULL else node)


def without(value: int, either: bool) -> Rule:
    """Removes an operation with this neutral value; ``either`` side if the operator commutes."""
    def rule(s: Simplifier, d: Node) -> Node | None:
        x, y = d.operands
        if x.type == d.type and _is_number(of(d)) and equals(filled_with(y), value):
            return x
        return y if either and y.type == d.type and _is_number(of(d)) and equals(filled_with(x), value) else None
    return rule


def scalar_for_array(s: Simplifier, d: Node) -> Node | None:
    """Replaces a splat array by a scalar, if the other operand already has the shape of the result.

        add(%x, zeros(shape=[10], dtype="float32"))     ->     add(%x, 0f)
    """
    for place, other in ((0, 1), (1, 0)):
        x, array = d.operands[other].type, d.operands[place]
        if (array.op not in FILLED and array.op not in FULL) or not isinstance(x, TensorType) or x.shape != of(d).shape:
            continue
        value, type = filled_with(array), array.type
        if value is not None and isinstance(type, TensorType):
            operands = list(d.operands)
            operands[place] = s.constant(value, type)
            return s.again(d, operands)
    return None


def twice(s: Simplifier, d: Node) -> Node | None:
    """``x + x`` is ``x * 2``."""
    x, y = d.operands
    return s.make("multiply", [x, s.constant(2, of(d))], d.type) if x is y and _is_number(of(d)) else None


def same_type(s: Simplifier, d: Node) -> Node | None:
    """Removes an operator whose result has its operand's type."""
    return d.operands[0] if d.operands[0].type == d.type else None


def undone(s: Simplifier, d: Node) -> Node | None:
    """Removes two applications of an operator that is its own inverse."""
    return d.operands[0].operands[0] if d.operands[0].op is d.op else None


def settled(s: Simplifier, d: Node) -> Node | None:
    """Removes the second application of an idempotent operator."""
    return d.operands[0] if d.operands[0].op is d.op else None


# ---- rules that round differently: options enable them


def root_below(s: Simplifier, d: Node) -> Node | None:
    """``a / sqrt(x)`` is ``a * rsqrt(x)``."""
    a, root = d.operands
    if root.op not in SQRT:
        return None
    return s.make("multiply", [a, s.make("rsqrt", root.operands, root.type)], d.type)


def constants_together(s: Simplifier, d: Node) -> Node | None:
    """``(x + c) + d`` is ``x + (c + d)``, and the same of products."""
    found = _with_constant(d.operands, of(d))
    inner = _with_constant(found[0].operands, of(d)) if found is not None and found[0].op is d.op else None
    if found is None or inner is None:
        return None
    both = _folded(s, d.op in ADD, inner[1], found[1])
    return None if both is None else s.make(d.op, [inner[0], both], d.type)


def product_first(s: Simplifier, d: Node) -> Node | None:
    """``(x + c) * d`` is ``x * d + c * d``, if the sum has no other user: the scale can then fold into weights."""
    found = _with_constant(d.operands, of(d))
    inner = _with_constant(found[0].operands, of(d)) if found is not None and found[0].op in ADD else None
    if found is None or inner is None or inner[0].type != d.type or not s.read_once(list(d.operands).index(found[0])):
        return None
    both = _folded(s, False, inner[1], found[1])
    if both is None:
        return None
    return s.make("add", [s.make("multiply", [inner[0], found[1]], d.type), both], d.type)


def _with_constant(operands: Sequence[Node], result: TensorType) -> tuple[Node, Node] | None:
    """The variable and the constant operand, which has the result's element type; None if both are constants, or neither is."""
    if len(operands) != 2:
        return None
    x, y = operands
    if _has_value(x, result):
        x, y = y, x
    return (x, y) if _has_value(y, result) and x.op is not hlo.constant else None


def _has_value(node: Node, result: TensorType) -> bool:
    if node.op is not hlo.constant or not isinstance(node.type, TensorType):
        return False
    return node.type.dtype is result.dtype and Constant.of(node).known is not None


def _folded(s: Simplifier, sum: bool, x: Node, y: Node) -> Node | None:
    """The sum or product of two constants as a constant, if it is no larger than they are."""
    a, b = (Constant.of(n).literal.value() for n in (x, y))
    with np.errstate(all="ignore"):
        value = np.add(a, b) if sum else np.multiply(a, b)
    if value.size > max(a.size, b.size):
        return None
    type = TensorType(of(x).dtype, value.shape)
    return s.builder.add(hlo.constant, (), {"literal": Literal.of(value.astype(a.dtype), type)}, type, name=s.old.name)


def _is_number(type: TensorType) -> bool:
    return type.dtype.kind in ("int", "uint", "float", "complex")


EXACT_PRODUCT: tuple[Rule, ...] = (without(1, True), scalar_for_array)
EXACT_QUOTIENT: tuple[Rule, ...] = (without(1, False), scalar_for_array)
EXACT_SUM: tuple[Rule, ...] = (without(0, True), twice, scalar_for_array)
RULES: RelayRules = OpTable(
    (BINARY, (scalar_for_array,)),
    (relay("multiply"), EXACT_PRODUCT),
    (relay("divide"), EXACT_QUOTIENT),
    (ADD, EXACT_SUM),
    (relay("subtract"), (without(0, False), scalar_for_array)),
    (relay("negative"), (undone,)),
    (relay("nn.relu abs"), (settled,)),
    (relay("copy"), (same_type,)),
)
INEXACT: RelayRules = OpTable(
    (relay("multiply"), (*EXACT_PRODUCT, constants_together, product_first)),
    (relay("divide"), (*EXACT_QUOTIENT, root_below)),
    (ADD, (*EXACT_SUM, constants_together)),
)
"""Rows that replace those of :data:`RULES`, with rules that round differently."""
