"""Folds scales of the input of a contraction forward into its weights."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from irscope.formats.relay.attributes import BiasAdd
from irscope.graph import Graph, Node, TensorType
from irscope.passes import fold_scale_axes as scales


@dataclass(frozen=True, slots=True)
class ScaleSink:
    """All users of a value can take a scale along ``axes``; ``sink`` is one of the contractions that it folds into.

    ``through`` is a function in between that only a positive scale may cross, ``divided`` an addition whose other operand is divided by
    the scale.
    """

    axes: scales.Axes
    sink: Node
    through: Node | None = None
    divided: Node | None = None

    def and_also(self, other: ScaleSink | None) -> ScaleSink | None:
        """The requirement of two users combined."""
        if other is None or other.axes != self.axes:
            return None
        return replace(self, through=self.through or other.through, divided=self.divided or other.divided)


class Forward(scales.ScaleMutator):
    """``nn.conv2d(nn.relu(multiply(%x, %s)), %w)`` becomes ``nn.conv2d(nn.relu(%x), multiply(%w, %s))``."""

    def _mutated(self, graph: Graph, became: dict[Graph, Graph]) -> Graph:
        self._plan(graph)
        return super()._mutated(graph, became) if self.kept or any(old is not new for old, new in became.items()) else graph

    def _plan(self, graph: Graph) -> None:
        """Decide which products to remove: requirements propagate against the data flow, scales along it."""
        self.scales: dict[Node, Node] = {}
        self.channels: dict[Node, scales.Channels] = {}
        self.kept: dict[Node, Node] = {}
        self.scaled: dict[Node, scales.Scale] = {}
        wants: dict[Node, ScaleSink | None] = {} if graph.root is None else {graph.root: None}
        for node in reversed(graph.nodes):
            for operand, want in zip(node.operands, self._wanted_of_operands(node, wants.get(node)), strict=True):
                wants[operand] = want and want.and_also(wants[operand]) if operand in wants else want
        early = scales.there_early(graph.nodes)
        for node in graph.nodes:
            want = wants.get(node)
            if want is None:
                continue
            if node.op in scales.MULTIPLY:
                self._multiplied(node, want, early)
            else:
                # A user of a scaled value has requested the scale, so the value is not a weight or the other operand of an addition.
                found = next((self.scaled[o] for o in node.operands if o in self.scaled), None)
                if found is not None and node not in self.channels:
                    self.scaled[node] = found

    def _wanted_of_operands(self, node: Node, want: ScaleSink | None) -> Sequence[ScaleSink | None]:
        """What a node requires of its operands, if its own users require ``want``."""
        nothing: list[ScaleSink | None] = [None] * len(node.operands)
        if (found := scales.channels(node)) is not None and found.read is not None:
            self.channels[node] = found
            return [ScaleSink(found.data, node), None]
        if want is None:
            return nothing
        if node.op in scales.HOMOGENEOUS:
            return [replace(want, through=want.through or node)]
        if node.op in scales.BIAS and isinstance(node.type, TensorType) and want.axes == (BiasAdd.of(node).axis % node.type.rank,):
            return [replace(want, divided=want.divided or node), None]
        if node.op in scales.SUMS:
            x, y = (o.type for o in node.operands)
            if isinstance(x, TensorType) and isinstance(y, TensorType):
                divided = replace(want, divided=want.divided or node)
                if scales.dropped(x, y, want.axes) is not None:
                    return [divided, None]
                if scales.dropped(y, x, want.axes) is not None:
                    return [None, divided]
        return nothing

    def _multiplied(self, node: Node, want: ScaleSink, early: list[bool]) -> None:
        for kept, scale in (node.operands, node.operands[::-1]):
            if not isinstance(kept.type, TensorType) or not isinstance(scale.type, TensorType):
                return
            left = scales.dropped(kept.type, scale.type, want.axes)
            if left is None or not early[scale.index] or kept.type != node.type:
                continue
            why = _forbidden(scale, want)
            if why:
                self.declined.append(f"left %{node.name} in front of %{want.sink.name}: %{scale.name} {why}")
                return
            self.kept[node] = kept
            self.scaled[node] = scales.Scale(node, scale, left, want.axes)
            return

    # ------------------------------------------------------------------ rebuilding

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        if node in self.kept:
            return self.new(self.kept[node])
        scaled = [self.scaled.get(o) for o in node.operands]
        if not any(scaled) or node.op in scales.HOMOGENEOUS:
            return None
        at = next(i for i, s in enumerate(scaled) if s is not None)
        scale, values = scaled[at], list(operands)
        assert scale is not None
        if node in self.channels:
            weight, read = node.operands[1], self.channels[node].read
            assert read is not None, "its channels are known"
            values[1] = self.add("multiply", [values[1], self.fitted(scale, weight, read)], weight.type)
        elif node.op in scales.BIAS:
            values[1] = self.add("divide", [values[1], self.scale(scale)])
        else:
            values[1 - at] = self.add("divide", [values[1 - at], self.fitted(scale, node.operands[at], scale.axes)])
        return self.builder.add(node.op, values, node.attrs, node.type, name=node.name)


def _forbidden(scale: Node, want: ScaleSink) -> str:
    """Why a scale may not move to the contraction; empty if it may."""
    if want.through is None and want.divided is None:
        return ""
    known = scales.sign(scale)
    if known is scales.ScaleSign.POSITIVE or (known is scales.ScaleSign.NO_ZERO and want.through is None):
        return ""
    if known is scales.ScaleSign.UNKNOWN:
        between = want.through or want.divided
        assert between is not None, "one of them is there"
        return f"{scales.UNKNOWN}, and {between.op.name} lies between"
    if want.through is not None:
        return f"is not positive everywhere, and {want.through.op.name} lies between"
    assert want.divided is not None
    return f"is 0 somewhere, and {want.divided.op.name} would divide by it"
