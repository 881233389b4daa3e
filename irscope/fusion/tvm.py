"""The policy ``tvm``: the groups of Relay's FuseOps (TVM 0.7 to 0.19), and for every edge that is not fused the first rule against it."""
from __future__ import annotations

from itertools import islice

from irscope.formats.relay.dialect import RELAY
from irscope.fusion.plan import EdgeVerdict, Group, Plan, applied_bodies, inputs_of
from irscope.fusion.tvm_kinds import TvmKind
from irscope.fusion.tvm_partition import Member, Partition
from irscope.graph import UNKNOWN, Graph, Module, Node, callees_first
from irscope.ops.sets import hlo, relay

FUNCTIONS = relay("fn global")
NO_OPERATORS = hlo("parameter constant") | FUNCTIONS
"""Nodes that no group holds."""


class Tvm:
    """TVM's FuseOps as a policy."""

    name = "tvm"
    version = "tvm@0.19"
    dialect = RELAY

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for each function that the entry runs, except functions that are kernels already (``Primitive=1``)."""
        applied = applied_bodies(module)
        return [self.plan(g) for g in callees_first(module, module.main())
                if g not in applied and not {"Primitive", "Compiler"} & g.notes.get("attrs", {}).keys()]

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """Where the graph differs from what TVM would see."""
        if module.dialect is not self.dialect:
            return [f"TVM fuses Relay; the kinds of {module.format} operators stand in for those of Relay's"]
        open_ = sum(n.type is UNKNOWN for g in module.graphs.values() for n in g.nodes if n.op not in FUNCTIONS)
        return [f"{open_} values have no type: broadcasts among them are taken for ones that change the shape"] if open_ else []

    def plan(self, graph: Graph) -> Plan:
        """The groups of FuseOps for a Relay function, and a verdict on each edge."""
        partition = Partition(graph)
        groups: dict[Member, list[Node]] = {}
        for node in partition.walk.nodes:
            if node.op not in NO_OPERATORS:
                groups.setdefault(partition.group_of(node), []).append(node)
        made = [self._group(member, nodes) for member, nodes in groups.items()]
        lets = set(graph.notes.get("lets", ()))
        return Plan(graph, made, [self._verdict(partition, o, n, lets) for nodes in groups.values() for n in nodes for o in n.operands
                                  if o.op not in NO_OPERATORS])

    @staticmethod
    def _group(member: Member, nodes: list[Node]) -> Group:
        kind = "contraction" if member.anchor is not None else "whole" if member.kind is TvmKind.OPAQUE else "map"
        return Group(kind, nodes, [member.root_node], inputs_of(nodes), member.anchor)

    @staticmethod
    def _verdict(partition: Partition, producer: Node, consumer: Node, lets: set[Node]) -> EdgeVerdict:
        graph = partition.walk.graph
        if partition.group_of(producer) is partition.group_of(consumer):
            return EdgeVerdict(graph, producer, consumer, "all")
        rule, cause = why_not(partition, producer, consumer, lets)
        return EdgeVerdict(graph, producer, consumer, "none", None, rule, cause)


def why_not(partition: Partition, producer: Node, consumer: Node, lets: set[Node]) -> tuple[str, str]:
    """The first rule that refuses an edge, and its cause. ``lets`` are the nodes that the text binds by let."""
    walk = partition.walk
    at, to = walk.of(producer), walk.of(consumer)
    mine, other = walk.kinds[at], walk.kinds[to]
    dominator = partition.dominators[at]
    for node, kind in ((producer, mine), (consumer, other)):
        if kind is TvmKind.OPAQUE:
            return ("opaque" if node.op.known else "unknown-op"), f"{node.op.name} %{node.name} is opaque: nothing fuses into or out of it"
    if producer in lets:
        return "let", f"%{producer.name} is bound by let, and fusion does not cross it"
    if walk.extern[at]:
        return "output", f"the value of %{producer.name} leaves the function"
    if dominator.parent < 0:
        return "multi-consumer", f"the paths from %{producer.name} never meet again inside the function"
    sink = walk.nodes[dominator.parent]
    if sink is not consumer:
        said = f"%{producer.name} feeds {_consumers(partition, at)}; the paths meet only at %{sink.name} ({sink.op.name})"
        return "multi-consumer", said
    if mine is TvmKind.COMM_REDUCE:
        return "reduce-out", f"%{producer.name} is a reduction, and a reduction ends its group"
    if other is TvmKind.TUPLE:
        return "tuple", "operands of a tuple are not fused into it"
    if mine is TvmKind.OUT_ELEMWISE_FUSABLE:
        if dominator.kind is not TvmKind.ELEMWISE:
            return "complex-into-shape", f"only operators that keep the shape fuse into {producer.op.name}; %{consumer.name} does not"
        return "two-complex", f"the group of %{consumer.name} already has another anchor"
    if other is TvmKind.OUT_ELEMWISE_FUSABLE:
        return "prologue", f"%{producer.name} comes before {consumer.op.name}: TVM fuses what follows it, and nothing into it"
    if other is TvmKind.COMM_REDUCE:
        return "injective-into-reduce", f"{producer.op.name} is injective and does not fuse into the reduction %{consumer.name}"
    held, wanted = partition.group_of(producer), partition.group_of(consumer)
    if held.size + wanted.size > partition.max_depth:
        return "depth", f"the groups hold {held.size} and {wanted.size} operators, together more than {partition.max_depth}"
    if mine is TvmKind.INJECTIVE and wanted.anchor is not None:
        anchor = f"%{wanted.anchor.name} ({wanted.anchor.op.name})"
        return "injective-into-complex", f"{producer.op.name} is injective, and the group of %{consumer.name} has the anchor {anchor}"
    return "path", f"a path from %{producer.name} to %{consumer.name} goes through a group of a kind that does not fuse"


MAX_NAMED = 8
"""Up to this many consumers are named one by one."""


def _consumers(partition: Partition, at: int) -> str:
    """The consumers of a value by name; of many, some and the number of the others."""
    outputs = partition.walk.outputs[at]
    named = ", ".join(f"%{partition.walk.nodes[to].name}" for to, _ in islice(outputs, MAX_NAMED))
    return named + (f" and {len(outputs) - MAX_NAMED} more" if len(outputs) > MAX_NAMED else "")


POLICY = Tvm()
