"""The phases of a training step, forward, backward and update, from the scopes that jax leaves in a text."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.analysis.classes import is_step
from irscope.analysis.scopes import Scope, is_backward, is_forward
from irscope.graph import Graph

PHASES = ("forward", "backward", "update")
MISLABELLED = 2
"""A node is of the forward pass when the chain of forward nodes behind it is so many times longer than the chain of backward nodes
before it. A compiler fuses a node of one pass into a kernel of the other and keeps one of the two names."""


def phases_of(graph: Graph, scopes: Sequence[Scope]) -> list[int]:
    """The phase of each node, as an index into :data:`PHASES`; no operand is of a later phase than its user.

    All are 0 where no scope names a backward pass. ``scopes`` are by index. The names of constants and of what only renames a value
    are ignored, because compilers share these between the passes.
    """
    n = len(graph.nodes)
    backward, forward = bytearray(n), bytearray(n)
    for node in graph.nodes:
        if is_step(node):
            backward[node.index] = is_backward(scopes[node.index])
            forward[node.index] = not backward[node.index] and is_forward(scopes[node.index])
    if not any(backward):
        return [0] * n
    before = [0] * n  # the longest chain of backward nodes that ends in a node
    for node in graph.nodes:
        before[node.index] = backward[node.index] + max((before[operand.index] for operand in node.operands), default=0)
    behind = [0] * n  # the longest chain of forward nodes that begins in a node
    is_needed = bytearray(n)
    for node in reversed(graph.nodes):
        i = node.index
        behind[i] += forward[i]
        is_needed[i] |= backward[i] | forward[i]
        for operand in node.operands:
            behind[operand.index] = max(behind[operand.index], behind[i])
            is_needed[operand.index] |= is_needed[i]
    # Each condition holds for the operands of a node for which it holds, so that the phases never decrease along an edge.
    return [0 if behind[i] > MISLABELLED * before[i] else 1 if is_needed[i] else 2 for i in range(n)]
