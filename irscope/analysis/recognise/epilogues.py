"""Common epilogues of products: bias and GELU after a matrix product, batch normalisation and ReLU after a convolution."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.recognise.gelu import gelus
from irscope.analysis.recognise.parts import Composite, Oddity, Users, find, is_filled, moves_behind, patterns, product_behind
from irscope.analysis.values import ARITHMETIC, CASTS_AND_MOVES, COPIES, dims, number, other
from irscope.graph import Node
from irscope.graph.pattern import Bindings, Pattern
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Convolution, Transpose

LONGEST = 10
"""The most operators between a convolution and its ReLU: normalisation in primitives takes four to six."""
TURNS = hlo.named("convert transpose")
BETWEEN = TURNS | hlo.named("reshape copy")
BIASED = Pattern("add(value, bias:broadcast(vector))", COPIES)
RELU = patterns("maximum(value, 0)", through=())


def biased_gelus(node: Node, users: Users) -> Iterator[Composite]:
    """The product with a bias whose GELU a node is; odd where another operator is in between, or the bias is along another axis."""
    for gelu in gelus(node, users):
        add = behind(gelu.nodes[1], CASTS_AND_MOVES)
        found = BIASED.match(add, is_filled, _is_bias)
        product = None if found is None else product_behind(found["value"])
        if found is not None and product is not None:
            odd = _odd_bias(product, add, found["bias"], [*moves_behind(found["value"]), *moves_behind(gelu.nodes[1])])
            yield Composite("product with bias and GELU", gelu.result, (product, add, gelu.nodes[0]), odd)


def _is_bias(found: Bindings) -> bool:
    """Whether one vector is added to a product."""
    return product_behind(found["value"]) is not None and len(Broadcast.of(found["bias"]).dimensions) == 1


def _odd_bias(product: Node, add: Node, bias: Node, between: list[Node]) -> Oddity | None:
    axis = Broadcast.of(bias).dimensions[0]
    last = len(dims(add)) - 1
    others = ((product, "is the product"),)
    if axis != last and dims(add)[axis] == dims(add)[last]:
        says = f"the bias is along axis {axis} instead of the last one, the columns of the product"
        return Oddity(bias, says, "add the bias to the last axis", others=others)
    odd = next((node for node in between if node.op in TURNS), None)
    if odd is None:
        return None
    return Oddity(odd, f"%{odd.name} ({odd.op.name}) is between the product and the bias", f"{odd.op.name} the result", others=others)


def normalised_convolutions(conv: Node, users: Users) -> Iterator[Composite]:
    """A convolution whose result is scaled and shifted channel by channel, and clamped at zero."""
    channel = Convolution.of(conv).dim_labels.out_feature
    at, affine, odd = conv, 0, None
    for _ in range(LONGEST):
        if len(users[at.index]) != 1:
            return
        user, = users[at.index]
        if find(user, RELU):
            if affine:
                yield Composite("convolution, batch normalisation and ReLU", user, (conv,), odd)
            return
        if user.op in ARITHMETIC and len(user.operands) == 2:
            given = other(user, at)
            along = _along(given)
            if along is None and number(given) is None:
                return  # a residual, or something else
            if along is not None and along != channel and dims(user)[along] > 1:
                odd = odd or _between(user, conv, f"%{user.name} works along axis {along}, and the channels are axis {channel}")
            affine += 1
        elif user.op in BETWEEN:
            odd = odd or _between(user, conv, f"%{user.name} ({user.op.name}) is between them")
            if user.op is hlo.transpose:
                order = Transpose.of(user).dimensions
                channel = order.index(channel) if channel in order else channel
            elif user.op is hlo.reshape and dims(user) != dims(at):
                return
        else:
            return
        at = user


def _between(node: Node, conv: Node, says: str) -> Oddity:
    others = ((conv, "is the convolution"),)
    return Oddity(node, says, "leave nothing between a convolution, its scale and shift, and the activation", others=others)


def _along(node: Node) -> int | None:
    """The axis of a broadcast vector; None for anything else."""
    node = behind(node, COPIES)
    if node.op is not hlo.broadcast or not node.operands:
        return None
    long = [axis for axis, size in zip(Broadcast.of(node).dimensions, dims(node.operands[0]), strict=False) if size > 1]
    return long[0] if len(long) == 1 else None
