"""A heavy operator and the bias, normalisation, residual sum and activation behind it stand in one function."""
from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from irscope.formats.relay import structure
from irscope.graph import Builder, FunctionType, Graph, Module, Node, TensorType
from irscope.graph.rewrite import copy_node
from irscope.ops import get
from irscope.passes.base import Pass, enter_bodies
from irscope.passes.pattern import Match, Pattern, anything, op
from irscope.passes.visitor import GraphMutator

CORE = op("nn.conv2d", "nn.dense", "nn.batch_matmul", "nn.conv1d", "nn.conv3d", "nn.matmul")(anything(), anything())
ACTIVATIONS = op("nn.relu", "clip", "tanh", "sigmoid", "nn.leaky_relu")


def _norm(x: Pattern) -> Pattern:
    rest = (anything() for _ in range(4))
    return op("get-tuple-element").with_attrs(index=0)(op("nn.batch_norm")(x, *rest))


def _sum(x: Pattern) -> Pattern:
    """A residual sum, or a bias that is written as one: what is added does not make the result larger."""
    left = op("add")(x, anything()).where(lambda node: _keeps_shape(node, 0))
    return left | op("add")(anything(), x).where(lambda node: _keeps_shape(node, 1))


def _keeps_shape(node: Node, of: int) -> bool:
    return isinstance(node.type, TensorType) and node.operands[of].type == node.type


WHOLE = (CORE.optional(lambda x: op("nn.bias_add")(x, anything()))
         .optional(_norm)
         .optional(_sum)
         .optional(lambda x: ACTIVATIONS(x)))


class FusePatterns(Pass):
    """Put a convolution or dense layer and what is commonly computed right behind it into a function that is marked by its name.

        %0 = nn.dense(%x, %w, units=8);              %2 = fn (%p0, %p1, %p2, Composite="dense_bias_add_relu") {
        %1 = nn.bias_add(%0, %b);             ->       %0 = nn.dense(%p0, %p1, units=8);
        nn.relu(%1)                                    nn.relu(nn.bias_add(%0, %p2))
                                                     };
                                                     %2(%x, %w, %b)

    Bias, batch normalisation, residual sum and activation, in this order, each where it is there. A step whose value others need too
    ends the pattern before it.
    """

    name: ClassVar[str] = "fuse-patterns"
    requires = ("infer-types",)

    def run(self, module: Module) -> Module:
        return enter_bodies(_Grouping().run(module)) if module.format == "relay" else module


class _Grouping(GraphMutator):
    def begin(self, graph: Graph) -> None:
        """Find the matches, the last and longest first; a node belongs to one."""
        self.whole: dict[Node, Match] = {}
        taken: set[Node] = set()
        if "Composite" in graph.notes.get("attrs", {}) or "Primitive" in graph.notes.get("attrs", {}):
            return
        for node in reversed(graph.nodes):
            found = WHOLE.match(node) if node not in taken else None
            if found is None or len(found.inside) < 2 or taken & set(found.inside) or found.escapes(graph, self.users):
                continue
            self.whole[node] = found
            taken |= set(found.inside)

    def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
        found = self.whole.get(node)
        if found is None:
            return None
        outer = found.inputs()
        body = Graph(f"{self.graph.name}.{composite_name(found)}", loc=node.loc)
        builder = Builder(body)
        inner = {value: builder.param(get("parameter"), value.type, f"p{i}") for i, value in enumerate(outer)}
        for each in reversed(found.inside):
            inner[each] = copy_node(builder, each, [inner[o] for o in each.operands])
        body.root = inner[node]
        body.notes |= {"own": len(outer), "attrs": {"Composite": composite_name(found)}}
        type = FunctionType(tuple(o.type for o in outer), node.type)
        function = self.builder.add(structure.FUNCTION, (), {"Composite": composite_name(found)}, type, [body], composite_name(found))
        return self.builder.add(structure.CALL, [function, *(self.new(o) for o in outer)], {}, node.type, name=node.name)


def composite_name(found: Match) -> str:
    """``conv2d_bias_add_relu``: the operators in the order in which they run."""
    names = [n.op.name.rpartition(".")[2] for n in reversed(found.inside) if n.op.name != "get-tuple-element"]
    return "_".join(names)
