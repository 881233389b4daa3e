"""Folds scales of the result of a contraction backward into its weights."""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from irscope.formats.relay.attributes import BiasAdd
from irscope.graph import Builder, Graph, Node, TensorType, see_through
from irscope.graph.rewrite import copy_node
from irscope.graph.walk import post_order
from irscope.passes import fold_scale_axes as scales


@dataclass(frozen=True, slots=True)
class ScaleSource:
    """A value that may take a scale along ``axes``: all of it comes from ``source``, a contraction, and it has no other user.

    ``through`` is a function in between that only a positive scale may cross.
    """

    axes: scales.Axes
    source: Node
    through: Node | None = None


class Backward(scales.ScaleMutator):
    """``%2 = multiply(nn.relu(nn.conv2d(%x, %w)), %s)`` becomes ``%2 = nn.relu(nn.conv2d(%x, multiply(%w, %s)))``."""

    def _mutated(self, graph: Graph, became: dict[Graph, Graph]) -> Graph:
        reasons = self._plan(graph)
        # A scale may be computed after the contraction that takes it, from other values.
        wanted = {node.index: scale.value for node, scale in self.takes.items() if scale.value.index > node.index}
        if wanted:
            graph = in_order(graph, wanted)
            reasons = self._plan(graph)
        self.declined += reasons
        return super()._mutated(graph, became) if self.gone or any(old is not new for old, new in became.items()) else graph

    def _plan(self, graph: Graph) -> list[str]:
        """Decide which products to remove and which contractions take their scales. Returns the remarks."""
        uses = Counter(operand.index for node in graph.nodes for operand in node.operands)
        if graph.root is not None:
            uses[graph.root.index] += 1
        early = scales.there_early(graph.nodes)
        self.open: dict[Node, ScaleSource] = {}
        self.channels: dict[Node, scales.Channels] = {}
        for node in graph.nodes:
            if uses[node.index] == 1 and (found := self._opened(node)) is not None:
                self.open[node] = found
        self.takes: dict[Node, scales.Scale] = {}
        self.gone: dict[Node, Node] = {}
        self.scales: dict[Node, Node] = {}
        reasons = []
        for node in reversed(graph.nodes):
            scale = self.takes.get(node)
            if scale is not None:
                for operand in node.operands if node.op in scales.SUMS else node.operands[:1]:
                    if operand in self.open and node not in self.channels:
                        self.takes[operand] = replace(scale, axes=self.open[operand].axes)
            elif node.op in scales.MULTIPLY:
                reasons += self._multiplied(node, early)
        return reasons[::-1]

    def _opened(self, node: Node) -> ScaleSource | None:
        if (found := scales.channels(node)) is not None:
            self.channels[node] = found
            return ScaleSource(found.result, node)
        if node.op in scales.HOMOGENEOUS and (before := self.open.get(node.operands[0])) is not None:
            return replace(before, through=before.through or node)
        if node.op in scales.BIAS and (before := self.open.get(node.operands[0])) is not None:
            return before if before.axes == (BiasAdd.of(node).axis % _rank(node),) else None
        if node.op in scales.SUMS:
            return self._sum(node)
        return None

    def _sum(self, node: Node) -> ScaleSource | None:
        x, y = (o.type for o in node.operands)
        a, b = (self.open.get(o) for o in node.operands)
        if not isinstance(x, TensorType) or not isinstance(y, TensorType):
            return None
        if a is not None and b is not None:
            same = a.axes == b.axes and x.shape == y.shape
            return replace(a, through=a.through or b.through) if same else None
        for one, wide, narrow in ((a, x, y), (b, y, x)):
            if one is not None:
                return one if scales.dropped(wide, narrow, one.axes) is not None else None
        return None

    def _multiplied(self, node: Node, early: list[bool]) -> list[str]:
        """Fold one factor of a product into the other; returns a remark if it looks possible, but is not."""
        for kept, scale in (node.operands, node.operands[::-1]):
            found = self.open.get(kept)
            if found is None or not isinstance(kept.type, TensorType) or not isinstance(scale.type, TensorType):
                continue
            left = scales.dropped(kept.type, scale.type, found.axes)
            if left is None:
                if scale.type.elements >= kept.type.elements:
                    return []
                return [f"left %{node.name} behind %{found.source.name}: %{scale.name} runs along other axes than the channels"]
            if not early[scale.index] or scale.type.dtype is not kept.type.dtype:
                return [f"left %{node.name} behind %{found.source.name}: %{scale.name} is computed from data"]
            if found.through is not None and (known := scales.sign(scale)) is not scales.ScaleSign.POSITIVE:
                why = scales.UNKNOWN if known is scales.ScaleSign.UNKNOWN else "is not positive everywhere"
                return [f"left %{node.name} behind %{found.source.name}: %{scale.name} {why}, and {found.through.op.name} lies between"]
            self.gone[node] = kept
            self.takes[kept] = scales.Scale(node, scale, left, found.axes)
            return []
        return []

    # ------------------------------------------------------------------ rebuilding

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        kept = self.gone.get(node)
        if kept is not None:
            return self.new(kept)
        scale = self.takes.get(node)
        if scale is None or node.op in scales.HOMOGENEOUS:
            return None
        values = [self.new(o) for o in node.operands]
        if node in self.channels:
            weight = node.operands[1]
            values[1] = self.add("multiply", [values[1], self.fitted(scale, weight, self.channels[node].made)], weight.type)
        elif node.op in scales.BIAS:
            values[1] = self.add("multiply", [values[1], self.scale(scale)])
        else:
            for at, operand in enumerate(node.operands):
                if operand not in self.open:
                    values[at] = self.add("multiply", [values[at], self.fitted(scale, node.operands[1 - at], scale.axes)])
        return self.builder.add(node.op, values, node.attrs, node.type, name=node.name)


def _rank(node: Node) -> int:
    return node.type.rank if isinstance(node.type, TensorType) else 1


def in_order(graph: Graph, wanted: Mapping[int, Node]) -> Graph:
    """A copy of a graph in which ``wanted[index]`` precedes the node of that index, with as few changes of order as possible.

    There must be no cycles: the caller ensures that a node's wanted values do not depend on it.
    """
    made = Graph(graph.name, loc=graph.loc, notes=dict(graph.notes))
    builder = Builder(made)
    new: dict[Node, Node] = {}
    for node in post_order(graph.nodes, lambda node: (*node.operands, wanted[node.index]) if node.index in wanted else node.operands):
        new[node] = copy_node(builder, node, [new[o] for o in node.operands])
    made.params = [new[p] for p in graph.params]
    made.root = new[graph.root] if graph.root is not None else None
    return see_through(made, graph)
