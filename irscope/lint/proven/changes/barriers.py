"""Changes that take an optimisation barrier out of the way."""

from __future__ import annotations

from irscope.graph import Node
from irscope.lint.edits import Edit, Site
from irscope.lint.proven.site import RefusedEdge
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement


def without_barrier(edge: RefusedEdge) -> Edit | None:
    """The consumer reads what the barrier between it and the producer passes on."""
    for barrier in (edge.producer, edge.consumer):
        if barrier.op is hlo.opt_barrier and len(barrier.operands) == 1 and barrier.operands[0].op is not hlo.tuple:
            return Edit.use(barrier, barrier.operands[0])
    return _through_tuple(edge)


def _through_tuple(edge: RefusedEdge) -> Edit | None:
    """The same for a barrier over several values: each is read through ``get-tuple-element``."""
    fence = next((node for node in (edge.producer, edge.consumer) if node.op is hlo.opt_barrier), None)
    if fence is None or fence.operands[0].op is not hlo.tuple:
        return None
    parts = fence.operands[0].operands
    elements = [user for user in edge.users[fence.index] if user.op is hlo.get_tuple_element]
    if len(elements) != len(edge.users[fence.index]) or fence is edge.graph.root:
        return None

    def passed(element: Node, site: Site) -> Node:
        return site.new(parts[GetTupleElement.of(element).index])

    return Edit({element: lambda site, element=element: passed(element, site) for element in elements}, tuple(parts))  # type: ignore[misc]
