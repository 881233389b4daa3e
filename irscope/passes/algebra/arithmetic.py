"""Elementwise arithmetic: identities, strength reduction, and arithmetic moved before broadcasts."""
from __future__ import annotations

from collections.abc import Sequence
from math import frexp, isfinite

from irscope.analysis.identities import IDENTITIES, PRED, REALS, Predicates
from irscope.graph import DType, Node, TensorType
from irscope.ops import get, hlo
from irscope.ops.attributes import Broadcast
from irscope.passes.algebra.movement import unit_reshape
from irscope.passes.algebra.simplifier import Rule, Rules, Simplifier, dims_of, is_filled, is_static, of, scalar_of


class NodeMaker:
    """Builds a replacement: nodes of one type."""

    def __init__(self, s: Simplifier, type: TensorType) -> None:
        self.s, self.type = s, type

    def build(self, op: str, operands: Sequence[Node]) -> Node:
        """A node, itself simplified."""
        return self.s.make(get(op), operands, self.type)

    def full(self, value: float) -> Node:
        """An array of one value."""
        return self.s.broadcast(self.s.constant(value, self.type), (), self.type.dims())


def row(name: str, kinds: frozenset[str] | None = None, predicates: Predicates | None = None) -> Rule:
    """A row of the table of identities as a rule, for element types of these kinds (None: those of the table)."""
    identity = IDENTITIES[name]
    of_kinds = identity.kinds if kinds is None else kinds

    def rule(s: Simplifier, d: Node) -> Node | None:
        bound = identity.match(d, is_filled, predicates or {}) if of(d).dtype.kind in of_kinds else None
        found: Node | None = None if bound is None else identity.build(bound, NodeMaker(s, of(d)))
        return found
    return rule


def divide(s: Simplifier, d: Node) -> Node | None:
    """``x / 8`` is ``x * 0.125`` to the last bit."""
    x, y = d.operands
    value = scalar_of(y)
    if value is None or of(d).dtype.kind != "float" or of(d).dtype.bits < 16:
        return None
    number = float(value)
    # Powers of two whose inverse is far from the ends of the range, of every type down to f16.
    if not isfinite(number) or number == 0 or abs(frexp(number)[0]) != 0.5 or not -12 <= frexp(number)[1] <= 12:
        return None
    inverse = s.broadcast(s.constant(1 / number, of(d)), (), of(d).dims())
    return s.make(hlo.multiply, (x, inverse), of(d))


def negate(s: Simplifier, d: Node) -> Node | None:
    """``-(-x)``, of types that have negative values."""
    x = d.operands[0]
    return x.operands[0] if x.op is hlo.negate and of(d).dtype.has_negation else None


def convert(s: Simplifier, d: Node) -> Node | None:
    """A conversion to the same type, or of a lossless conversion."""
    x = d.operands[0]
    if of(x).dtype is of(d).dtype:
        return x
    if x.op is hlo.convert and passes_through(of(x.operands[0]).dtype, of(x).dtype, of(d).dtype):
        return s.make(hlo.convert, (x.operands[0],), of(d))
    return None


def before_repeating(s: Simplifier, d: Node) -> Node | None:
    """Moves arithmetic on operands that are all broadcast in the same way before the broadcast.

        b = f32[8] broadcast(eps), dimensions={}     ->     c = f32[] rsqrt(eps)
        r = f32[8] rsqrt(b)                                 r = f32[8] broadcast(c), dimensions={}
    """
    if not d.operands or not all(o.op is hlo.broadcast and is_static(o) and dims_of(o) == of(d).dims() for o in d.operands):
        return None
    shapes = {(tuple(Broadcast.of(o).dimensions), dims_of(o.operands[0])) for o in d.operands}
    wide = {shape for shape in shapes if shape[1]}
    if len(wide) > 1:
        return None
    dimensions, shape = next(iter(wide or shapes))
    smalls = [o.operands[0] if dims_of(o.operands[0]) == shape else s.broadcast(o.operands[0], (), shape) for o in d.operands]
    if d.op is hlo.select and any(dims_of(x) != shape for x in smalls):
        return None
    return s.broadcast(s.make(d.op, smalls, TensorType(of(d).dtype, shape), d.attrs), dimensions, of(d).dims())


def before_reshaping(s: Simplifier, d: Node) -> Node | None:
    """Moves arithmetic before reshapes that only add dimensions of size 1."""
    before = {unit_reshape(o) for o in d.operands} - {None}
    if len(before) != 1 or any(dims_of(o) != of(d).dims() for o in d.operands):
        return None
    shape = next(iter(before))
    assert shape is not None
    smalls = []
    for operand in d.operands:
        if unit_reshape(operand) is not None:
            smalls.append(operand.operands[0])
        elif operand.op is hlo.broadcast and dims_of(operand.operands[0]) == ():
            smalls.append(s.broadcast(operand.operands[0], (), shape))
        else:
            return None
    return s.reshape(s.make(d.op, smalls, TensorType(of(d).dtype, shape), d.attrs), of(d).dims())


def passes_through(source: DType, middle: DType, target: DType) -> bool:
    """Whether a conversion through ``middle`` gives the same result as the direct conversion.

    The first step must be lossless; and integers out of the range of ``target`` wrap in a direct conversion, but saturate in one from a
    float.
    """
    if not middle.holds(source) or source.significand == 1:  # 2**-127 of f8e8m0fnu is a denormal f32, which may count as zero on the way
        return False
    return source.is_float or middle.is_integer or not target.is_integer or target.holds(source)


# An infinite complex number times 1+0i has a part that is NaN: infinity times zero.
RULES: Rules = {
    hlo.add: (row("add-zero"),), hlo.subtract: (row("subtract-zero"),), hlo.multiply: (row("multiply-one", REALS | PRED),),
    hlo.divide: (row("divide-one", REALS), divide), hlo.negate: (negate,), hlo.convert: (convert,),
    hlo.select: (row("select-same"), row("select-true"), row("select-false")),
}
POINTWISE = (before_repeating, before_reshaping)
