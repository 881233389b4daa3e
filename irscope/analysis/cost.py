"""The cost of each node: FLOPs, bytes read, bytes written; and that of the whole module.

The bytes are those that a separate kernel moves: each distinct operand once, the result once. Where an operator reads only a part of an
operand (slice, gather, an update in place), that part counts. A fusion counts as one kernel: its operands, its result, and the
FLOPs of its body. An operator that only renames a value (tuple, bitcast, parameter) costs nothing.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from irscope.analysis.calls import BodyUse, Calls, body_use, is_fusion
from irscope.analysis.classes import is_view
from irscope.graph import UNKNOWN, Graph, Kind, Node, Op, TensorType, Type, bytes_of
from irscope.graph.walk import leaves_of
from irscope.ops import hlo, sets
from irscope.ops.costs import MOST
from irscope.ops.infer import fits_operands

_FREE = sets.hlo(
    "opt-barrier add-dependency after-all partition-id replica-id domain while call conditional async-start async-update "
    "async-done copy-done all-reduce-done all-gather-done collective-permute-done send-done recv-done") | sets.relay("call")
"""Operators that move no data themselves: they name a value, or their bodies do the work."""

_SLICES = sets.hlo("slice dynamic-slice gather") | sets.relay("gather") | sets.torchscript("embedding index_select gather")
_LISTS = sets.torchscript("prim::ListConstruct prim::TupleConstruct")


def _is_open(type: Type) -> bool:
    """Whether the size of a type is unknown. Of the types that are no arrays, only ``?`` and ``Tensor`` are open."""
    return not type.is_static if isinstance(type, TensorType) else type is UNKNOWN or str(type) == "Tensor"


def is_unsized(type: Type) -> bool:
    """Whether a type has no size: an array with a dimension that is open and not bounded, or a value of unknown type."""
    return any(any(not isinstance(size, int) and size.bound is None for size in leaf.shape) if isinstance(leaf, TensorType)
               else leaf is UNKNOWN or str(leaf) == "Tensor" for leaf in type.leaves())


def is_kernel(node: Node) -> bool:
    """Whether a node does work itself: it is a fusion, or an operation that is neither free nor only calls bodies."""
    if is_fusion(node):
        return True
    if node.bodies and body_use(node) is not BodyUse.ELEMENT:
        return False
    return not is_free(node)


def is_free(node: Node) -> bool:
    """Whether a node moves no data itself."""
    return _moves_nothing(node.op) or is_view(node)


@lru_cache(maxsize=4096)
def _moves_nothing(op: Op) -> bool:
    return op.kind in (Kind.LEAF, Kind.TUPLE) or op.work in ("constant", "free") or op in _FREE


# A processor does about this many FLOPs while it moves one byte. Computing and moving overlap: the longer of the two hides the other.
FLOPS_PER_BYTE = 16.0


def estimate(flops: float, bytes: float) -> float:
    """The estimated time of some work, in units of the time that moving one byte takes: the larger of computing and moving.

    Computing takes :data:`FLOPS_PER_BYTE` FLOPs in each unit.
    """
    return max(flops / FLOPS_PER_BYTE, bytes)


@dataclass(slots=True)
class GraphCost:
    """Costs of the nodes of a graph, by index; :attr:`flops` includes called bodies only for a fusion."""

    flops: list[float]
    read: list[float]
    written: list[float]
    is_open: bytearray
    """Whether the work or the traffic of a node is not known, because a size or its operator is not; the figures are then too low."""


@dataclass(slots=True)
class Totals:
    """Sums over one run of a graph and all that it calls: loops by their trips, only the costliest branch.

    ``kernels`` counts the nodes that do work themselves; nodes inside a fusion belong to the fusion's one kernel.
    """

    flops: float = 0.0
    read: float = 0.0
    written: float = 0.0
    kernels: float = 0.0
    fusions: float = 0.0
    is_open: bool = False
    """Whether a part of the work or traffic is not known."""

    @property
    def bytes(self) -> float:
        return self.read + self.written

    def add(self, other: Totals, times: float = 1.0) -> None:
        self.flops = min(self.flops + other.flops * times, float(MOST))
        self.read = min(self.read + other.read * times, float(MOST))
        self.written = min(self.written + other.written * times, float(MOST))
        self.kernels = min(self.kernels + other.kernels * times, float(MOST))
        self.fusions = min(self.fusions + other.fusions * times, float(MOST))
        self.is_open |= other.is_open


@dataclass(frozen=True, slots=True)
class Known:
    """The results of an abstract run, by node of the text: FLOPs of one run of each, types of weights that the text leaves open.

    ``reason`` is why there are none, where the program could not be run.
    """

    flops: Mapping[Node, float]
    types: Mapping[Node, Type]
    reason: str = ""


WIDE = 8
"""From so many operands on the bytes of a node are computed once."""


class Traffic:
    """The bytes that a node reads and writes in one run of it, computed on demand.

    ``known`` has the results of an abstract run, for a program whose operators have no declared cost.
    """

    def __init__(self, known: Known | None = None) -> None:
        self.known = known
        self._sizes: dict[int, tuple[int, int, bool]] = {}
        self._wide: dict[Node, tuple[float, float]] = {}
        """The bytes of nodes with many operands: each kernel of a concatenation asks for those of all its operands."""

    def of(self, node: Node) -> tuple[float, float]:
        """The bytes that a node moves itself: none where it only names a value or only runs its bodies."""
        if node.bodies and body_use(node) is not BodyUse.ELEMENT:
            return self._fusion_traffic(node) if is_fusion(node) else (0.0, 0.0)
        if is_free(node):
            return 0.0, 0.0
        if len(node.operands) < WIDE:
            return self._traffic(node)
        known = self._wide.get(node)
        if known is None:
            known = self._wide[node] = self._traffic(node)
        return known

    def size(self, type: Type) -> int:
        """Bytes of a type; computed once per type object, because readers share them."""
        return self._size(type)[0]

    def is_open_size(self, type: Type) -> bool:
        """Whether the size of a type is open, bounded or not."""
        return self._size(type)[2]

    def _traffic(self, node: Node) -> tuple[float, float]:
        operands, result = node.operands, self._size(node.type)[0]
        if self.known is not None:
            read = sum(self._given(o) for o in dict.fromkeys(operands))
            return (result + sum(self._given(o) for o in operands[1:]), result) if node.op in _SLICES else (read, result)
        if node.op in _SLICES and operands:
            return result + sum(self._size(o.type)[0] for o in operands[1:]), result
        if node.op is hlo.dynamic_update_slice and len(operands) > 1:
            update = self._size(operands[1].type)[0]
            return update + sum(self._size(o.type)[0] for o in operands[2:]), update
        if len(operands) == 1:
            return self._size(operands[0].type)[0], result
        return sum(self._size(o.type)[0] for o in dict.fromkeys(operands)), result

    def _given(self, node: Node) -> int:
        """Bytes of an operand of a program: of all elements of a list, and of a weight whose type only the run shows."""
        assert self.known is not None
        types = self.known.types
        return sum(self._size(types.get(part, part.type))[0] for part in leaves_of(node, _parts))

    def _fusion_traffic(self, node: Node) -> tuple[float, float]:
        """Operands that the body only slices count by those slices; a root that updates in place writes only the update."""
        body = node.bodies[0]
        used = self._part_used(body)
        read = 0.0
        for i, operand in enumerate(node.operands):
            whole = self._size(operand.type)[0]
            read += min(whole, used[i]) if i < len(used) else whole
        root = body.root
        if root is None:
            return read, self._size(node.type)[0]
        results = root.operands if root.op is hlo.tuple else (root,)
        return read, float(sum(self._written_by(result) for result in results))

    def _written_by(self, root: Node) -> int:
        while root.op is hlo.bitcast and root.operands:
            root = root.operands[0]
        if root.op is hlo.dynamic_update_slice and len(root.operands) > 1:
            return self._size(root.operands[1].type)[0]
        return self._size(root.type)[0]

    def _part_used(self, body: Graph) -> list[float]:
        """For each parameter of a fused body, how many bytes of it the body reads; infinity for all of it."""
        numbers = {p.index: i for i, p in enumerate(body.params)}
        parts = [0.0] * len(body.params)
        for node in body.nodes:
            for place, operand in enumerate(node.operands):
                number = numbers.get(operand.index)
                if number is None:
                    continue
                if place == 0 and node.op in _SLICES:
                    parts[number] += self._size(node.type)[0]
                elif not (place == 0 and node.op is hlo.dynamic_update_slice):
                    parts[number] = inf
        if body.root is not None and body.root.index in numbers:
            parts[numbers[body.root.index]] = inf
        return parts

    def _size(self, type: Type) -> tuple[int, int, bool]:
        """Bytes and elements of a type, and whether they are open. Keyed by identity: the graph outlives this object."""
        known = self._sizes.get(id(type))
        if known is None:
            leaves = list(type.leaves())
            elements = sum(leaf.elements for leaf in leaves if isinstance(leaf, TensorType))
            known = min(bytes_of(type), MOST), min(elements, MOST), any(map(_is_open, leaves))
            self._sizes[id(type)] = known
        return known


class ModuleCosts(Traffic):
    """Costs of all nodes that the entry of a module reaches; each graph is analysed once.

    ``known`` has the results of an abstract run, for a program whose operators have no declared cost.
    """

    def __init__(self, calls: Calls, known: Known | None = None) -> None:
        super().__init__(known)
        self.calls = calls
        self.graphs: dict[Graph, GraphCost] = {}
        self.totals: dict[Graph, Totals] = {}
        for graph in calls.order:
            self._measure(graph)

    def flops(self, node: Node, graph: Graph) -> float:
        """FLOPs of one run of a node, bodies included."""
        own = float(self.graphs[graph].flops[node.index])
        return own if is_fusion(node) else own + self._called(node).flops

    def traffic(self, node: Node, graph: Graph) -> float:
        """Bytes read and written by one run of a node, bodies included where they are separate kernels."""
        cost = self.graphs[graph]
        own = float(cost.read[node.index] + cost.written[node.index])
        return own if is_fusion(node) else own + self._called(node).bytes

    def is_open(self, node: Node, graph: Graph) -> bool:
        """Whether a part of the work or traffic of a node and its bodies is not known."""
        own = bool(self.graphs[graph].is_open[node.index])
        return own if is_fusion(node) else own or self._called(node).is_open

    def _measure(self, graph: Graph) -> None:
        n = len(graph.nodes)
        cost = GraphCost([0.0] * n, [0.0] * n, [0.0] * n, bytearray(n))
        total = Totals()
        flops, read, written = cost.flops, cost.read, cost.written
        sum_flops = sum_read = sum_written = 0.0
        kernels = fusions = 0
        for i, node in enumerate(graph.nodes):
            if node.bodies and body_use(node) is not BodyUse.ELEMENT:
                if is_fusion(node):
                    cost.is_open[i] = any(self.totals[body].is_open for body in node.bodies)
                    flops[i] = sum(self.totals[body].flops for body in node.bodies)
                    read[i], written[i] = self._fusion_traffic(node)
                    kernels += 1
                    fusions += 1
                else:
                    total.add(self._called(node))
                    continue
            elif is_free(node):
                continue
            else:
                flops[i] = self._flops(node)
                read[i], written[i] = self._traffic(node)
                cost.is_open[i] = self._is_open(node)
                kernels += 1
            sum_flops += flops[i]
            sum_read += read[i]
            sum_written += written[i]
        total.add(Totals(sum_flops, sum_read, sum_written, kernels, fusions, any(cost.is_open)))
        self.graphs[graph] = cost
        self.totals[graph] = total

    def _called(self, node: Node) -> Totals:
        """The cost of a node's bodies in one run of the node: of a loop, all trips; of a conditional, the costliest branch."""
        total = Totals()
        if not node.bodies or (use := body_use(node)) is BodyUse.ELEMENT:
            return total
        wholes = [self.totals.get(body) or Totals() for body in node.bodies]  # a recursive function counts once
        if use is BodyUse.BRANCH:
            wholes = [max(wholes, key=lambda t: (t.flops, t.bytes))]
        times = self.calls.trips.get(node, 1) if use is BodyUse.LOOP else 1
        for whole in wholes:
            total.add(whole, times)
        return total

    def _is_open(self, node: Node) -> bool:
        """Whether the work or the traffic of an operator is not known."""
        if self.known is not None and not node.op.is_primitive:
            return bool(self.known.reason) or any(self._size(self.known.types.get(o, o.type))[2] for o in (*node.operands, node))
        if not node.op.known or (node.op.cost is not None and not fits_operands(node)):
            return True
        return self._size(node.type)[2] or any(self._size(operand.type)[2] for operand in node.operands)

    def _flops(self, node: Node) -> float:
        if self.known is not None and not node.op.is_primitive:
            return self.known.flops.get(node, 0.0)
        if node.op.cost is not None:
            known = fits_operands(node) and all(map(_is_sized, (node, *node.operands)))
            return float(min(node.op.cost(node), MOST)) if known else 0.0  # otherwise it is unknown
        kind = node.op.kind
        if kind is Kind.ELEMENTWISE:
            return float(self._size(node.type)[1])
        if kind is Kind.REDUCTION and node.operands:
            return float(self._size(node.operands[0].type)[1])
        return 0.0


def _is_sized(node: Node) -> bool:
    """Whether every array of a node's type has a known or a bounded size."""
    return all(isinstance(size, int) or size.bound is not None
               for leaf in node.type.leaves() if isinstance(leaf, TensorType) for size in leaf.shape)


def _parts(node: Node) -> list[Node] | None:
    """The distinct elements of a list or tuple that a program builds; None for any other value."""
    return list(dict.fromkeys(node.operands)) if node.op in _LISTS else None
