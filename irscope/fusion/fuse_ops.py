"""The pass fuse-ops: each group of TVM's FuseOps becomes a function with ``Primitive=1``, called on the values from outside.

%0 = add(%x, 1f);                         %2 = fn (%p0: Tensor[(10), float32], Primitive=1) {
%1 = exp(%0);                               %0 = add(%p0, 1f);
%1                                 ->       exp(%0)
                                          };
                                          %2(%x)
"""

from __future__ import annotations

from typing import ClassVar

from irscope.formats.relay import structure
from irscope.fusion.tvm import MAX_DEPTH, Member, Partition, depth_first
from irscope.graph import FunctionType, Graph, Module, Node, callees_first
from irscope.ops import get
from irscope.passes.base import Pass, enter_bodies

UNWRAPPED = frozenset(
    (
        "tuple",
        "get-tuple-element",
        "call",
        "fn",
        "if",
        "match",
        "global",
        "constructor",
        "field",
        "ref",
        "ref_read",
        "ref_write",
        "constant",
        "primfn",
    )
)
"""What never becomes a function of its own."""

BARRIER = "annotation.stop_fusion"


class FuseOps(Pass):
    """Every operator of a Relay module stands in a function that is one kernel; fused are those that TVM fuses.

    Options: ``max-depth`` nodes may be in one group; with ``link-params`` constants stand inside the functions that use them.
    """

    name: ClassVar[str] = "fuse-ops"
    requires = ("infer-types",)

    def __init__(self, max_depth: int = MAX_DEPTH, link_params: bool = False) -> None:
        self.max_depth = max_depth
        self.link_params = link_params

    def run(self, module: Module) -> Module:
        if module.format != "relay":
            return module
        made = module.derived()
        became: dict[Graph, Graph] = {}
        for graph in callees_first(module):
            skip = {"Primitive", "Compiler"} & graph.notes.get("attrs", {}).keys()
            became[graph] = graph if skip else _Fusion(graph, became, self.max_depth, self.link_params).run()
        for name, graph in module.graphs.items():
            made.graphs[name] = became.get(graph, graph)
        return enter_bodies(made)


class _Fusion:
    """One function being rewritten."""

    def __init__(self, graph: Graph, bodies: dict[Graph, Graph], max_depth: int, link_params: bool) -> None:
        self.graph, self.bodies, self.link_params = graph, bodies, link_params
        self.partition = Partition(graph, max_depth)
        notes = {key: value for key, value in graph.notes.items() if key != "lets"}
        self.made = Graph(graph.name, loc=graph.loc, notes=notes)
        self.new: dict[Node, Node] = {}
        self.count = 0

    def run(self) -> Graph:
        for param in self.graph.params:
            self.new[param] = self._append(
                Node(param.op, param.name, param.type, (), param.attrs, (), param.loc, synthetic=param.synthetic)
            )
            self.made.params.append(self.new[param])
        for node in depth_first(self.graph):
            if node not in self.new and self._leaves_group(node):
                self.new[node] = self._emit(node)
        self.made.root = self.new[self.graph.result()]
        kept = [self.new[n] for n in self.graph.notes.get("lets", ()) if n in self.new]
        if kept:
            self.made.notes["lets"] = kept
        return self.made

    def _leaves_group(self, node: Node) -> bool:
        """Whether the node is written in the function itself: the root of its group, or what is in no group."""
        return self.partition.group_of(node).root_node is node or node.op.name in ("fn", "global", "constant")

    def _emit(self, node: Node) -> Node:
        member = self.partition.group_of(node)
        if node.op.name == BARRIER:
            return self.new[node.operands[0]]
        if node.op.name in UNWRAPPED and not self._wraps(node, member):
            operands = [self.new[o] for o in node.operands]
            copied = Node(
                node.op,
                node.name,
                node.type,
                tuple(operands),
                node.attrs,
                tuple(self.bodies.get(b, b) for b in node.bodies),
                node.loc,
                origin=(node,),
                synthetic=node.synthetic,
            )
            return self._append(copied)
        return self._function(node, member)

    def _wraps(self, node: Node, member: Member) -> bool:
        """Whether a projection at the end of a group belongs into its function; one of an opaque operator stays outside."""
        if node.op.name != "get-tuple-element":
            return False
        return self.partition.group_of(node.operands[0]) is member

    def _append(self, node: Node) -> Node:
        return self.made.add(node)

    def _function(self, root: Node, member: Member) -> Node:
        """The function of a group and the call of it; parameters in order of first use."""
        body = Graph(f"{self.graph.name}.fused.{self.count}", loc=root.loc)
        self.count += 1
        inside: dict[Node, Node] = {}
        outer: list[Node] = []
        stack: list[tuple[Node, int]] = [(root, 0)]
        params: dict[Node, Node] = {}
        while stack:
            node, at = stack.pop()
            if node in inside or node in params:
                continue
            if at < len(node.operands):
                stack.append((node, at + 1))
                operand = node.operands[at]
                if operand in inside or operand in params:
                    continue
                if self._is_inside(operand, member):
                    stack.append((operand, 0))
                else:
                    params[operand] = self._parameter(body, operand, len(outer))
                    outer.append(self.new[operand])
                continue
            operands = [inside.get(o) or params[o] for o in node.operands]
            inside[node] = body.add(
                Node(
                    node.op,
                    node.name,
                    node.type,
                    tuple(operands),
                    node.attrs,
                    node.bodies,
                    node.loc,
                    origin=(node,),
                    synthetic=node.synthetic,
                )
            )
        _parameters_first(body)
        body.root = inside[root]
        body.notes["own"] = len(body.params)
        body.notes["attrs"] = {"Primitive": 1}
        type = FunctionType(tuple(p.type for p in body.params), root.type)
        function = self._append(Node(structure.FUNCTION, f"fused.{self.count}", type, (), {"Primitive": 1}, (body,), root.loc))
        return self._append(Node(structure.CALL, root.name, root.type, (function, *outer), {}, (), root.loc, origin=(root,)))

    def _is_inside(self, operand: Node, member: Member) -> bool:
        if self.link_params and operand.op.name == "constant":
            return True
        return operand.op.name != "parameter" and self.partition.group_of(operand) is member and operand.op.name != BARRIER

    def _parameter(self, body: Graph, operand: Node, number: int) -> Node:
        type = operand.type
        node = Node(get("parameter"), f"p{number}", type, (), {"number": number}, (), operand.loc, synthetic=True)
        body.params.append(node)
        return body.add(node)


def _parameters_first(graph: Graph) -> None:
    """Parameters stand before everything else, as the text has them."""
    own = set(graph.params)
    graph.nodes = [*graph.params, *(n for n in graph.nodes if n not in own)]
    for index, node in enumerate(graph.nodes):
        node.index = index
