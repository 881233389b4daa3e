"""Attention that is written as matrix products and a softmax, which PyTorch replaces by one call (fx_passes/fuse_attention.py).

The patterns that torch 2.13 matches on a CPU, on tensors (batch, heads, length, size): the scores divided by a number, perhaps with a mask
added afterwards; or multiplied by a number; and, if queries, keys and values are all transposed from (batch, length, heads, size), also
scores without a scale, perhaps with a mask added. Each pattern was tried. Masks that fill or select, scaled queries, tensors of three
dimensions, and values with other users do not match.
"""
from __future__ import annotations

from irscope.analysis.recognise.softmax import Softmax, softmax
from irscope.fusion.closure import closure
from irscope.fusion.inductor import operators
from irscope.fusion.inductor.program import Program, Unit, is_number
from irscope.fusion.inductor.strides import shape_of, viewed
from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.attributes import Dot, Reduce, Transpose

TURNED = (0, 2, 1, 3)
"""The permutation from (batch, length, heads, size) to (batch, heads, length, size)."""


def written_out(program: Program, nodes: list[Node], alive: list[bool]) -> list[Unit]:
    """The attentions of a program, each as a unit: from the product of queries and keys to the product with the values."""
    return [unit for node in nodes if node.op is hlo.dot and (unit := _attention(program, node, alive)) is not None]


def _attention(program: Program, last: Node, alive: list[bool]) -> Unit | None:
    """The attention that ends in the product ``last``; None if it is none."""
    chance = last.operands[0]
    if not _is_product(last, 2) or chance.op is not hlo.divide or not operators.is_of(chance, operators.SOFTMAX):
        return None
    inside = _same_operator(chance)
    found = softmax(chance)
    if found is None or found.difference is None or not _is_over_last(found) or not _only_read_in(program, inside, (last,), alive):
        return None
    scores = found.difference.operands[0]
    nodes = [last, *inside]
    masked = scores.op is hlo.add and operators.is_of(scores, operators.ADDITION)
    if masked:
        nodes.append(scores)
        scores = scores.operands[0]
    scaled = scores.op if scores.op in (hlo.divide, hlo.multiply) and is_number(scores.operands[1]) else None
    if scaled is not None:
        nodes.append(scores)
        scores = scores.operands[0]
    nodes.append(scores)
    if not _is_product(scores, 3) or not _only_read_in(program, nodes[len(inside) + 1:], nodes, alive):
        return None
    form = _laid_out(program, (scores.operands[0], scores.operands[1], last.operands[1]))
    known = form and (scaled is hlo.divide or (scaled is hlo.multiply and not masked) or (scaled is None and form == "turned"))
    return Unit(sorted(nodes, key=lambda n: n.index), call=True, attention=True) if known else None


def _is_product(node: Node, contracted: int) -> bool:
    """Whether a node is a ``matmul`` of (batch, heads, ...) matrices over dimension ``contracted`` of the untransposed second operand."""
    if node.op is not hlo.dot or not operators.is_of(node, operators.PRODUCTS) or len(shape_of(node)) != 4:
        return False
    if 1 in shape_of(node)[2:]:
        return False  # decompositions.py has turned it into a multiplication and a sum before
    batches, sums = Dot.of(node).batch_dims, Dot.of(node).contracting_dims
    turned = contracted == 3 and node.operands[1].op is not hlo.transpose
    return batches == ((0, 1), (0, 1)) and sums == ((3,), (3 if turned else 2,))


def _same_operator(node: Node) -> list[Node]:
    """A node and the primitives of the same source operator that it is computed from, without constants."""
    def operands(inner: Node) -> list[Node]:
        return [o for o in inner.operands if o.origin and o.origin[0] is node.origin[0] and o.op is not hlo.constant]

    return list(closure([node], operands))


def _is_over_last(found: Softmax) -> bool:
    """Whether a softmax of four dimensions is over the last one."""
    return found.largest is not None and Reduce.of(found.largest).dimensions == Reduce.of(found.total).dimensions == (3,)


def _only_read_in(program: Program, nodes: list[Node], readers: tuple[Node, ...] | list[Node], alive: list[bool]) -> bool:
    """Whether these nodes have no other users and none is a result; the first user may have both."""
    known = {*nodes, *readers}
    if (known - {readers[0]}) & program.given:
        return False
    return all(user in known for node in nodes for user in program.users[node.index] if alive[user.index])


def _laid_out(program: Program, matrices: tuple[Node, Node, Node]) -> str:
    """``turned``: queries, keys and values are all transposed; ``plain``: none needs a copy to be a batch of matrices; else empty."""
    queries, keys, values = matrices
    keys = keys.operands[0] if keys.op is hlo.transpose and Transpose.of(keys).dimensions == (0, 1, 3, 2) else keys
    if all(m.op is hlo.transpose and Transpose.of(m).dimensions == TURNED for m in (queries, keys, values)):
        return "turned"
    for matrix in (queries, keys, values):
        batch, heads, length, size = shape_of(matrix)
        if viewed(shape_of(matrix), program.strides[matrix.index], (batch * heads, length, size)) is None:
            return ""
    return "plain"
