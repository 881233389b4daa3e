"""Islands: connected operators that run in another floating type than the rest of a program."""

from __future__ import annotations

from irscope.formats.torchscript.names import functional
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint.context import Context
from irscope.ops import hlo, sets

HALF = frozenset(("f16", "bf16"))
CASTS = sets.hlo("convert") | sets.relay("cast") | sets.torchscript("to type_as float half _to_copy bfloat16")
ACCUMULATE = (
    sets.hlo("reduce reduce-window all-reduce")
    | sets.relay("nn.softmax nn.log_softmax nn.layer_norm nn.batch_norm nn.group_norm nn.instance_norm sum mean nn.nll_loss cumsum")
    | sets.torchscript(
        "softmax log_softmax _softmax _log_softmax layer_norm native_layer_norm batch_norm group_norm instance_norm rms_norm norm sum mean "
        "var std logsumexp cross_entropy_loss nll_loss mse_loss cumsum"
    )
)
"""Operators that hold wide accumulators by design: normalisations, sums, losses."""


def float_type(node: Node) -> str:
    """The element type of a result; empty where it is no tensor."""
    return node.type.dtype.name if isinstance(node.type, TensorType) else ""


def is_odd(node: Node, expected: str) -> bool:
    """Whether a node works in a floating type that is not the expected one. Leaves and single numbers do not count."""
    if not isinstance(node.type, TensorType) or node.op.kind is Kind.LEAF:
        return False
    if expected == "int8":
        taken = [operand.type.dtype for operand in node.operands[:2] if isinstance(operand.type, TensorType)]
        return node.op.work == "contraction" and any(dtype.is_float for dtype in taken)
    return node.type.dtype.is_float and bool(node.type.shape) and node.type.dtype.name != expected


def islands_of(odd: list[Node]) -> list[list[Node]]:
    """Sets of nodes that are joined by operands."""
    head = {id(node): node for node in odd}
    group: dict[int, int] = {key: key for key in head}

    def top(key: int) -> int:
        while group[key] != key:
            group[key] = group[group[key]]
            key = group[key]
        return key

    for node in odd:
        for operand in node.operands:
            if id(operand) in head:
                group[top(id(node))] = top(id(operand))
    found: dict[int, list[Node]] = {}
    for node in odd:
        found.setdefault(top(id(node)), []).append(node)
    return list(found.values())


def is_accumulator(island: list[Node], graph: Graph, expected: str, context: Context) -> bool:
    """Whether an island is an accumulator: wide around a reduction, or a product whose result is converted back at once."""
    if graph in context.view.inlined and any(node is graph.root for node in island):
        return True  # the fusion that runs this body is reported, or not, in its own graph
    if expected not in HALF or any(float_type(node) != "f32" for node in island):
        return False
    working = [node for node in island if node.op not in CASTS]
    products = [node for node in working if node.op.work == "contraction"]
    if products:
        narrow = all(float_type(o) == expected for node in products for o in node.operands[:2])
        if not narrow or len(working) != len(products):
            return False
        inside = set(island)
        return all(user.op in CASTS for node in island for user in context.view.users(node, graph) if user not in inside)
    sums = any(functional(node.op) in ACCUMULATE for node in working)
    called = dict.fromkeys(body for node in working for body in node.bodies)
    reduces = any(body in context.view.inlined and any(node.op is hlo.reduce for node in body.nodes) for body in called)
    return sums or reduces or not working


def results_bytes(island: list[Node]) -> int:
    """Bytes of the results of some nodes."""
    return sum(node.type.bytes for node in island if isinstance(node.type, TensorType))
