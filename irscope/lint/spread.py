"""Broadcasts that the policy's kernels write to memory: what an implicit broadcast costs."""

from __future__ import annotations

from irscope.analysis.values import size, written
from irscope.graph import Node
from irscope.lint.context import Context
from irscope.lint.savings import saving
from irscope.ops import hlo

Stored = dict[Node, dict[Node, float]]
"""Broadcasts that are written to memory with their bytes, by each node of the text that makes or reads them."""


def stored_broadcasts(context: Context) -> Stored | None:
    """Bytes of broadcasts that are written to memory, by each node of the text that makes or reads them; None without a plan.

    A broadcast in registers, as most are, costs nothing.
    """
    inner = context.inner
    if inner.costs.sized is None:
        return None
    found: Stored = {}
    for node, graph in inner.view.primitives(hlo.broadcast):
        if node in inner.costs.stored and node.operands and size(node) > size(node.operands[0]):
            for end in dict.fromkeys(map(written, (node, *inner.view.users(node, graph)))):
                found.setdefault(end, {})[node] = float(size(node))
    return found


def cost_of_broadcasts(stored: Stored | None, *nodes: Node) -> dict[str, float] | None:
    """What some nodes save without the broadcasts that they store: a write, a read and a kernel each; None where that is not known."""
    if stored is None:
        return None
    kept = {wide: bytes for one in nodes for wide, bytes in stored.get(written(one), {}).items()}
    return saving(bytes=2.0 * sum(kept.values()), kernels=float(len(kept)))
