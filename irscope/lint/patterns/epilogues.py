"""What follows a product in nets: bias and GELU behind a matrix product, batch normalisation and ReLU behind a convolution."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Node
from irscope.lint.patterns.composite import Composite, Odd
from irscope.lint.patterns.gates import gelus
from irscope.lint.patterns.parts import other, product_behind
from irscope.lint.values import ARITHMETIC, CASTS_AND_MOVES, COPIES, MOVES, behind, dims, number
from irscope.lint.view import ModuleView
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Convolution, Transpose

LONGEST = 10
"""Operators between a convolution and its ReLU, at most: normalisation in primitives is four to six."""
TURNS = hlo.named("convert transpose")
BETWEEN = TURNS | hlo.named("reshape copy")


def found(view: ModuleView) -> Iterator[Composite]:
    """Products with bias and GELU, convolutions with a scale, a shift and a ReLU."""
    for gelu in gelus(view):
        if gelu.graph not in view.inlined:
            yield from _biased(gelu)
    for node, graph in view.primitives(hlo.convolution):
        if graph not in view.inlined:
            yield from _normalised(view, graph, node)


def _biased(gelu: Composite) -> Iterator[Composite]:
    """A GELU of a product and a bias."""
    add = behind(gelu.nodes[1], COPIES)
    outer, inner = _movement(gelu.nodes[1]), add
    if add.op in MOVES:
        inner = behind(add, CASTS_AND_MOVES)
    if inner.op is not hlo.add or len(inner.operands) != 2:
        return
    for value, bias in (inner.operands, inner.operands[::-1]):
        product, between = product_behind(value)
        if product is None:
            continue
        stretched = behind(bias, COPIES)
        if stretched.op is not hlo.broadcast or len(Broadcast.of(stretched).dimensions) != 1:
            return
        odd = _odd_bias(product, inner, stretched, [*between, *outer])
        yield Composite("product with bias and GELU", gelu.graph, gelu.result, (product, inner, gelu.nodes[0]), odd)
        return


def _movement(node: Node) -> list[Node]:
    """The movement and casts that a value stands behind."""
    found_ = []
    while node.op in CASTS_AND_MOVES:
        found_.append(node)
        if not node.operands:
            break
        node = node.operands[0]
    return found_


def _odd_bias(product: Node, add: Node, bias: Node, between: list[Node]) -> Odd | None:
    axis = Broadcast.of(bias).dimensions[0]
    last = len(dims(add)) - 1
    if axis != last and dims(add)[axis] == dims(add)[last]:
        says = f"the bias lies along axis {axis} and not along the last one, which the product's columns are"
        return Odd(bias, says, "add the bias to the last axis", others=((product, "is the product"),))
    odd = next((node for node in between if node.op in TURNS), None)
    if odd is None:
        return None
    says = f"%{odd.name} ({odd.op.name}) stands between the product and the bias"
    return Odd(odd, says, f"{odd.op.name} the result", others=((product, "is the product"),))


def _normalised(view: ModuleView, graph: Graph, conv: Node) -> Iterator[Composite]:
    """A convolution whose result, scaled and shifted channel by channel, is cut off at zero."""
    channel = Convolution.of(conv).dim_labels.out_feature
    at, affine, odd = conv, 0, None
    for _ in range(LONGEST):
        user = view.only_user(at, graph)
        if user is None:
            return
        if user.op is hlo.maximum and any(number(o) == 0 for o in user.operands):
            if affine:
                yield Composite("convolution, batch normalisation and ReLU", graph, user, (conv,), odd)
            return
        if user.op in ARITHMETIC and len(user.operands) == 2:
            given = other(user, at)
            along = _along(given)
            if along is None and number(given) is None:
                return  # a residual, or something of its own
            if along is not None and along != channel and dims(user)[along] > 1:
                odd = odd or _stands(user, conv, f"%{user.name} works along axis {along}, and the channels are axis {channel}")
            affine += 1
        elif user.op in BETWEEN:
            odd = odd or _stands(user, conv, f"%{user.name} ({user.op.name}) stands between them")
            if user.op is hlo.transpose:
                order = Transpose.of(user).dimensions
                channel = order.index(channel) if channel in order else channel
            elif user.op is hlo.reshape and dims(user) != dims(at):
                return
        else:
            return
        at = user


def _stands(node: Node, conv: Node, says: str) -> Odd:
    others = ((conv, "is the convolution"),)
    return Odd(node, says, "leave nothing between a convolution, its scale and shift, and the activation", others=others)


def _along(node: Node) -> int | None:
    """The axis along which a broadcast vector lies; None for anything else."""
    node = behind(node, COPIES)
    if node.op is not hlo.broadcast or not node.operands:
        return None
    long = [axis for axis, size in zip(Broadcast.of(node).dimensions, dims(node.operands[0]), strict=False) if size > 1]
    return long[0] if len(long) == 1 else None
