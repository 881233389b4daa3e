"""Softmax, and attention: a softmax of scores, which a product computes, followed by a product that sums over its axis."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.recognise.parts import Composite, Oddity, Users, axes_text
from irscope.analysis.recognise.softmax import Softmax, odd_shift, softmax
from irscope.analysis.values import SPREADS, cone, dims
from irscope.graph import Kind, Node
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Dot

STEPS = 4
"""The most operators between a softmax and the product that reads it."""
SCORES = 64
"""The most nodes before a softmax that are searched for the product of queries and keys: scales, masks and biases are between."""


def softmaxes(node: Node, users: Users) -> Iterator[Composite]:
    """The softmax that ends in a node, and the attention that reads it."""
    found = softmax(node)
    if found is not None:
        parts = (found.exponential, found.total, found.largest)
        yield Composite("softmax", node, tuple(part for part in parts if part is not None), odd_shift(found))
        yield from _attention(found, users)


def _attention(found: Softmax, users: Users) -> Iterator[Composite]:
    """The attention of a softmax; odd where the product sums over another axis, or the softmax is scaled.

    The softmax of what no product computes is none: ``h @ softmax(w)`` mixes the columns of ``h`` with weights.
    """
    if all(node.op is not hlo.dot for node in cone(found.exponential, SCORES)):
        return
    at, scale = found.result, None
    for _ in range(STEPS):
        if len(users[at.index]) != 1:
            return
        user, = users[at.index]
        if user.op is hlo.dot:
            yield Composite("attention", user, (found.result,), _odd_product(found, at, user, scale))
            return
        if user.op is hlo.multiply and any(behind(o, SPREADS).op.kind is Kind.LEAF for o in user.operands):
            scale = user
        elif user.op is not hlo.convert:
            return
        at = user


def _odd_product(found: Softmax, at: Node, product: Node, scale: Node | None) -> Oddity | None:
    others = ((found.result, "is the softmax"),)
    summed = tuple(sorted(Dot.of(product).contracting_dims[product.operands[0] is not at]))
    if dims(at) == dims(found.result) and len(summed) == 1 and len(found.axes) == 1 and summed != found.axes:
        says = f"the softmax is over {axes_text(found.axes)} and the product sums over {axes_text(summed)}"
        help = "take the softmax over the axis of the keys, which the product with the values sums over"
        return Oddity(product, says, help, True, others)
    if scale is None:
        return None
    return Oddity(scale, f"%{scale.name} scales after the softmax", "scale the queries, or the result", others=others)
