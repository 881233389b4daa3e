"""The pass fuse-ops: turns each group of TVM's FuseOps into a function with ``Primitive=1`` and a call of it.

%0 = add(%x, 1f);                         %2 = fn (%p0: Tensor[(10), float32], Primitive=1) {
%1 = exp(%0);                               %0 = add(%p0, 1f);
%1                                 ->       exp(%0)
                                          };
                                          %2(%x)
"""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.soundness import Use
from irscope.formats.relay import structure
from irscope.formats.relay.dialect import RELAY
from irscope.fusion.tvm_partition import MAX_DEPTH, Member, Partition
from irscope.graph import FunctionType, Graph, Module, Node, callees_first
from irscope.graph.collector import collector_paused
from irscope.graph.rewrite import rejoin
from irscope.ops import hlo
from irscope.ops.sets import hlo as hlo_set
from irscope.ops.sets import relay
from irscope.passes.base import Pass, enter_bodies

ALONE = hlo_set("constant") | relay("fn global")
"""Nodes that stay in the outer function, even if a group reads them."""

UNWRAPPED = ALONE | hlo_set("tuple get-tuple-element") | relay("call if match constructor field ref ref_read ref_write primfn")
"""Nodes that never become a function."""

BARRIERS = relay("annotation.stop_fusion")


class FuseOps(Pass):
    """Puts every operator of a Relay module into a function that is one kernel, with the operators that TVM fuses in the same one.

    Options: ``max-depth`` limits the nodes of one group; with ``link-params``, constants are inside the functions that use them.
    """

    name = "fuse-ops"
    needs = Use.GROUPING
    requires = ("infer-types",)
    dialects = (RELAY,)

    def __init__(self, max_depth: int = MAX_DEPTH, link_params: bool = False) -> None:
        self.max_depth = max_depth
        self.link_params = link_params

    def run(self, module: Module) -> Module:
        if module.dialect not in self.dialects:
            return module
        made = module.derived()
        became: dict[Graph, Graph] = {}
        with collector_paused():
            for graph in callees_first(module):
                skip = {"Primitive", "Compiler"} & graph.notes.get("attrs", {}).keys()
                became[graph] = graph if skip else _Fusion(graph, became, self.max_depth, self.link_params).run()
            rejoin(became)
            for name, graph in module.graphs.items():
                made.graphs[name] = became.get(graph, graph)
            return enter_bodies(made)


class _Fusion:
    """Rewrites one function. ``groups`` holds the groups and ``new`` the new nodes, both by the old nodes' index."""

    def __init__(self, graph: Graph, bodies: dict[Graph, Graph], max_depth: int, link_params: bool) -> None:
        self.graph, self.bodies, self.link_params = graph, bodies, link_params
        partition = Partition(graph, max_depth)
        self.order = partition.walk.nodes
        self.groups: list[Member | None] = [None] * len(graph.nodes)
        for node, member in zip(self.order, partition.members, strict=True):
            self.groups[node.index] = member.root()
        self.made = Graph(graph.name, loc=graph.loc, notes={key: value for key, value in graph.notes.items() if key != "lets"})
        self.new: dict[Node, Node] = {}
        self.count = 0

    def run(self) -> Graph:
        for param in self.graph.params:
            new = Node(param.op, param.name, param.type, (), param.attrs, (), param.loc, synthetic=param.synthetic)
            self.new[param] = self.made.add(new)
            self.made.params.append(new)
        for node in self.order:
            if node not in self.new and self._leaves_group(node) and node.op is not hlo.constant:
                self.new[node] = self._emit(node)
        self.made.root = self._outer(self.graph.result())
        kept = [self.new[n] for n in self.graph.notes.get("lets", ()) if n in self.new]
        if kept:
            self.made.notes["lets"] = kept
        return self.made

    def _outer(self, node: Node) -> Node:
        """The node in the outer function; creates a constant there if a user outside its group reads it."""
        made = self.new.get(node)
        if made is None:
            made = self.new[node] = self._copied(node)
        return made

    def _leaves_group(self, node: Node) -> bool:
        """Whether the outer function holds the node: it is the root of its group, or in no group."""
        member = self.groups[node.index]
        return (member is not None and member.root_node is node) or node.op in ALONE

    def _emit(self, node: Node) -> Node:
        if node.op in BARRIERS:
            return self._outer(node.operands[0])
        if node.op not in UNWRAPPED or (node.op is hlo.get_tuple_element and self._ends_group(node)):
            return self._function(node)
        return self._copied(node)

    def _copied(self, node: Node) -> Node:
        operands = tuple([self._outer(o) for o in node.operands])
        bodies = tuple(self.bodies.get(b, b) for b in node.bodies)
        return self.made.add(
            Node(node.op, node.name, node.type, operands, node.attrs, bodies, node.loc, origin=(node,), synthetic=node.synthetic)
        )

    def _ends_group(self, projection: Node) -> bool:
        """Whether a projection at the end of a group belongs in its function; a projection of an opaque operator stays outside."""
        return self.groups[projection.operands[0].index] is self.groups[projection.index]

    def _function(self, root: Node) -> Node:
        """Emit the function of a group and its call; parameters are in order of first use."""
        body = Graph(f"{self.graph.name}.fused.{self.count}", loc=root.loc)
        self.count += 1
        member = self.groups[root.index]
        outer: list[Node] = []
        inside: dict[Node, Node] = {}
        steps: list[Node] = []
        stack: list[tuple[Node, Iterator[Node]]] = [(root, iter(root.operands))]
        while stack:
            node, operands = stack[-1]
            for operand in operands:
                if operand in inside:
                    continue
                if self._is_inside(operand, member, node):
                    stack.append((operand, iter(operand.operands)))
                    break
                inside[operand] = self._parameter(body, operand)
                outer.append(self._outer(operand))
            else:
                stack.pop()
                taken = tuple([inside[o] for o in node.operands])
                made = Node(node.op, node.name, node.type, taken, node.attrs, node.bodies, node.loc, -1, (node,), node.synthetic)
                inside[node] = made
                steps.append(made)
        for made in (*body.params, *steps):
            body.add(made)
        body.root = inside[root]
        body.notes = {"own": len(outer), "attrs": {"Primitive": 1}}
        type = FunctionType(tuple([p.type for p in body.params]), root.type)
        function = self.made.add(Node(structure.FUNCTION, f"fused.{self.count}", type, (), {"Primitive": 1}, (body,), root.loc))
        return self.made.add(Node(structure.CALL, root.name, root.type, (function, *outer), {}, (), root.loc, origin=(root,)))

    def _is_inside(self, operand: Node, member: Member | None, user: Node) -> bool:
        if operand.op is hlo.constant and (self.link_params or "reads-values" in user.op.traits):
            return True
        return self.groups[operand.index] is member and operand.op is not hlo.parameter and operand.op not in BARRIERS

    def _parameter(self, body: Graph, operand: Node) -> Node:
        number = len(body.params)
        node = Node(hlo.parameter, f"p{number}", operand.type, (), {"number": number}, (), operand.loc, synthetic=True)
        body.params.append(node)
        return node
