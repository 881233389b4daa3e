"""The estimated time of kernels on a machine: the launch, plus the longer of memory traffic and arithmetic."""

from __future__ import annotations

from math import log2

from irscope.analysis.calls import is_fusion
from irscope.analysis.cost import is_free
from irscope.fusion import compiler_of
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint.machine import Machine
from irscope.lint.xla_cpu_work import REDUCED, call_work, element_weight, window_work
from irscope.ops.sets import hlo, relay

SORTS = hlo("sort topk") | relay("sort topk")
GATHERS = hlo("gather") | relay("gather")
SCATTERS = hlo("scatter select-and-scatter") | relay("scatter")
COMPARED = 1750.0
"""Additions that one comparison of a sort costs, at the rate of the ``cpu`` table: 12 ns. It branches on data, and no vector unit helps.
XLA's CPU sort took 82 ms for 64 rows of 8192, 12 ns for each of the 13 comparisons of an element; on a Xeon with half the rate, 11.4 ns."""
COMPARED_US = 0.012
"""The same in microseconds, where the host waits for its kernels: cores differ less in branches than in vectors."""
SCATTERED = 4.0
"""Bytes that are moved for each byte that a gather or scatter wants: a line of the cache holds sixteen numbers, and neighbours help."""


class Works:
    """The time of nodes' arithmetic on one machine, in microseconds; each node is computed once.

    Under ``xla-cpu`` operators take what XLA's loops and library calls take (:mod:`irscope.lint.xla_cpu_work`).
    """

    def __init__(self, machine: Machine, policy: str = "") -> None:
        self.machine, self.by_xla = machine, compiler_of(policy) == "xla-cpu"
        self._bodies: dict[Graph, float] = {}
        self._nodes: dict[Node, float] = {}

    def us(self, node: Node) -> float:
        """The time of one node's arithmetic, without reading its operands."""
        known = self._nodes.get(node)
        if known is None:
            known = self._nodes[node] = self._of(node)
        return known

    def _of(self, node: Node) -> float:
        if is_fusion(node) and node.bodies:
            return self._body(node.bodies[0])
        if is_free(node):
            return 0.0
        return self._own(node)

    def _body(self, body: Graph) -> float:
        if body not in self._bodies:
            self._bodies[body] = sum(self.us(node) for node in body.nodes if not is_fusion(node))
        return self._bodies[body]

    def _own(self, node: Node) -> float:
        first = node.operands[0].type if node.operands else node.type
        of = first if isinstance(first, TensorType) else None
        if node.op.work == "contraction" and node.op.cost is not None:
            us = self.machine.product_us(float(node.op.cost(node)), of.dtype.name if of is not None else "f32")
            return us + (self.machine.vector_us(call_work(node)) if self.by_xla else 0.0)
        elements = _elements(node)
        bits = of.dtype.bits if of is not None else 32
        if node.op in SORTS:
            # Indices that are moved along are not compared.
            keys = max((leaf.elements for leaf in node.type.leaves() if isinstance(leaf, TensorType)), default=0)
            compared = keys * max(1.0, log2(max(2, _longest(of))))
            if self.machine.overlaps:
                return self.machine.vector_us(compared * COMPARED, bits)
            return compared * COMPARED_US * max(1.0, bits / 32)
        window = window_work(node) if self.by_xla else None
        if window is not None:
            return self.machine.vector_us(window, bits)
        if node.op.kind in (Kind.ELEMENTWISE, Kind.REDUCTION) or node.op.cost is not None:
            flops = float(node.op.cost(node)) if node.op.cost is not None and node.op.kind is not Kind.ELEMENTWISE else elements
            return self.machine.vector_us(flops * (self._weight(node) if self.by_xla else node.op.weight), bits)
        return 0.0

    def _weight(self, node: Node) -> float:
        """Additions for one element in a loop that XLA emits."""
        known = element_weight(node) if node.op.kind is Kind.ELEMENTWISE else REDUCED if node.op.kind is Kind.REDUCTION else None
        return float(node.op.weight) if known is None else known


def scattered(node: Node) -> float:
    """Bytes that a node moves beyond those that it needs, because it gathers or scatters single elements."""
    if node.op not in GATHERS and node.op not in SCATTERS:
        return 0.0
    wanted = node.type if node.op in GATHERS or len(node.operands) < 3 else node.operands[2].type
    return (SCATTERED - 1) * wanted.bytes if isinstance(wanted, TensorType) else 0.0


def _elements(node: Node) -> float:
    """Elements of the result, or of what a reduction reads."""
    type = node.operands[0].type if node.op.kind is Kind.REDUCTION and node.operands else node.type
    if isinstance(type, TensorType):
        return float(type.elements)
    return float(sum(leaf.elements for leaf in type.leaves() if isinstance(leaf, TensorType)))


def _longest(type: TensorType | None) -> int:
    return max(type.dims(), default=1) if type is not None and type.is_static else 1
