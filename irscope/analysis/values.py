"""Facts about values: sources behind moves, the number that fills a value, its uniform axes, the nodes that it is computed from."""

from __future__ import annotations

import operator
from collections.abc import Callable

from irscope.graph import Graph, Kind, Node, Op, TensorType
from irscope.graph.walk import behind
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Constant, CustomCall
from irscope.ops.bodies import combiner

MOVES = hlo.named("reshape bitcast copy transpose")
"""Operators whose result has the same elements in another shape or order."""

SPREADS = MOVES | hlo.named("broadcast convert opt-barrier")
"""Operators that keep a filled value filled with the same number."""

CASTS_AND_MOVES = MOVES | hlo.named("convert")


FOLDED: dict[Op, Callable[[float, float], float]] = {hlo.add: operator.add, hlo.subtract: operator.sub, hlo.multiply: operator.mul}

LEAVES = hlo.named("parameter constant")
PLUMBING = LEAVES | hlo.named("tuple get-tuple-element")
"""Operators that compute and move nothing."""

ARITHMETIC = hlo.named("add subtract multiply divide")
FILLS = hlo.named("broadcast constant")
CALLS = hlo.named("fusion call")

COPIES = hlo.named("copy convert")
"""Operators whose result element i is operand element i, in another place or type."""

INSTALLED = ("site-packages/", "dist-packages/")
LIBRARIES = ("torch/", "jax/", "flax/", "keras/", "transformers/", "timm/")
"""The beginning of a framework file's path, where the text has truncated it."""


def in_library(line: str) -> bool:
    """Whether a source line belongs to a framework, not to the user."""
    return line.startswith(LIBRARIES) or any(folder in line for folder in INSTALLED)


ANNOTATIONS = ("Sharding", "SPMD", "Shard", "annotate_device", "MoveTo", "xla.sdy")
"""Prefixes of targets of calls that only annotate a placement; XLA removes them before fusion."""


def is_annotation(node: Node) -> bool:
    """Whether a custom call computes nothing, and only annotates the placement of its operand."""
    return node.op is hlo.custom_call and CustomCall.of(node).custom_call_target.startswith(ANNOTATIONS)


def number(node: Node, steps: int = 3) -> float | None:
    """The number that all elements of a value have: a constant of one element, also behind broadcasts; None where it is unknown.

    Folds scalar arithmetic on such numbers, at most ``steps`` operators deep: JAX divides a variance by ``16 - 0``.
    """
    node = behind(node, SPREADS)
    if not isinstance(node.type, TensorType) or node.type.elements != 1:
        return None
    if node.op in FOLDED and steps and len(node.operands) == 2:
        one, two = (number(operand, steps - 1) for operand in node.operands)
        return FOLDED[node.op](one, two) if one is not None and two is not None else None
    literal = Constant.of(node).known if node.op is hlo.constant else None
    if literal is None:
        return None
    if literal.text is None:  # it was created during expansion
        value = literal.value().reshape(()).item()
        return float(value) if isinstance(value, int | float) else None
    try:
        return float(literal.text.strip("{ }"))
    except ValueError:
        return {"true": 1.0, "false": 0.0}.get(literal.text.strip("{ }"))


def written(node: Node) -> Node:
    """The node of the text that a node of a derived graph stands for; the node itself in the text's own graph."""
    while node.origin:
        node = node.origin[0]
    return node


def dims(node: Node) -> tuple[int, ...]:
    """The shape of a tensor; empty for other values and for open dimensions."""
    type = node.type
    return type.shape if isinstance(type, TensorType) and type.is_static else ()  # type: ignore[return-value]


def size(node: Node) -> int:
    """Bytes of a tensor; 0 for other values."""
    return node.type.bytes if isinstance(node.type, TensorType) else 0


def other(node: Node, operand: Node) -> Node:
    """The other operand of a node with two."""
    return node.operands[1] if node.operands[0] is operand else node.operands[0]


def body_operator(node: Node) -> Op | None:
    """The operator that a reducer combines two values with (``add``, ``maximum``); None where there is none."""
    return combiner(node.bodies[0]) if node.bodies else None


def reduces(node: Node, operator: Op) -> bool:
    """Whether the node is a reduction of one tensor by this operator."""
    return node.op is hlo.reduce and len(node.operands) == 2 and body_operator(node) is operator


def uniform_axes(graph: Graph) -> list[frozenset[int]]:
    """For each node, by index, the axes longer than 1 along which all its elements are equal, as far as broadcasts show.

    A scalar broadcast to ``[4,8]`` is uniform along both axes; adding it to a bias ``[8]`` broadcast along axis 1 leaves axis 0.
    """
    none: frozenset[int] = frozenset()
    found: list[frozenset[int]] = []
    for node in graph.nodes:
        axes = none
        if not node.op.is_primitive or not node.operands:
            pass
        elif node.op is hlo.broadcast:
            kept = Broadcast.of(node).dimensions
            axes = frozenset(i for i, d in enumerate(dims(node)) if d > 1 and i not in kept)
        elif node.op.kind is Kind.ELEMENTWISE or node.op in COPIES:
            axes = found[node.operands[0].index]
            for operand in node.operands[1:]:
                if not axes:
                    break
                if dims(operand) or not isinstance(operand.type, TensorType):
                    axes &= found[operand.index]
        found.append(axes)
    return found


def cone(node: Node, limit: int = 64) -> list[Node]:
    """The node and those that it is computed from, nearest first; at most ``limit`` nodes."""
    seen: dict[Node, None] = {node: None}
    todo = [node]
    for at in todo:
        for operand in at.operands:
            if operand not in seen and len(seen) < limit:
                seen[operand] = None
                todo.append(operand)
    return list(seen)
