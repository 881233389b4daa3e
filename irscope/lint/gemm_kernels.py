"""Which neighbours of a product XLA's GemmFusion fuses with it, under the policy ``xla-gpu``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from irscope.fusion import policy_named
from irscope.fusion.xla.gpu_device import device_named
from irscope.fusion.xla.multiplied import ProductEdge, products_of
from irscope.graph import Graph, Node
from irscope.lint.context import Context


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the kernel of a product computes the node in question, and the pass's explanation."""

    is_inside: bool
    says: str
    help: str


NEAR = 64
"""The largest number of nodes above an operand that are searched for the node in question."""


def _above(operand: Node, first: Node) -> list[Node]:
    """The nodes that an operand is computed from, back to ``first``."""
    found = {operand: None}
    for node in (pending := [operand]):
        for above in node.operands if node is not first and len(found) < NEAR else ():
            if above not in found:
                found[above] = None
                pending.append(above)
    return list(found)


class Kernels:
    """The decisions of the pass for a module. The pass runs once, when the first product is queried."""

    def __init__(self, context: Context) -> None:
        latest = context.settings.compiler == "xla-gpu" and policy_named(context.settings.policy) is policy_named("xla-gpu")
        self._applies = latest and context.module.dialect.primitive
        self._context = context

    def answer(self, first: Node, operand: Node, product: Node, graph: Graph) -> Answer | None:
        """Whether the kernel of ``product`` computes ``first``, from which its ``operand`` is computed. None under other policies, for text
        that XLA has already fused, and if the pass does not consider the node.
        """
        if not self._applies:
            return None
        dot, start = (self._context.view.original(node, graph) for node in (product, first))
        edges = self._edges.get(dot, []) if dot is not None else []
        way = {self._context.view.original(node, graph) for node in _above(operand, first)}
        left = next((edge for edge in edges if edge.no is not None and edge.producer in way), None)
        if left is not None:
            return Answer(False, left.cause, left.way_out)
        inside = next((edge for edge in edges if edge.no is None and edge.producer is start), None)
        return None if inside is None else Answer(True, inside.cause, "")

    @cached_property
    def _edges(self) -> dict[Node, list[ProductEdge]]:
        found: dict[Node, list[ProductEdge]] = {}
        for edge in products_of(self._context.module, device_named(self._context.settings.device)).edges:
            found.setdefault(edge.dot, []).append(edge)
        return found
