"""The policy ``tvm``: Relay's FuseOps (TVM 0.7 to 0.19), decision by decision.

The graph is looked at in the order of a depth-first walk from its result. Each node has a kind; a node fuses into its immediate
post-dominator when the kinds on every way there allow it. Three phases: what follows a convolution, then injective operators, then
what feeds a tuple inside a group. (src/relay/transforms/fuse_ops.cc; ``max_fuse_depth`` 256.)
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from irscope.fusion.plan import EdgeVerdict, Group, Plan
from irscope.fusion.tvm_kinds import KINDS, TvmKind
from irscope.graph import UNKNOWN, Effect, Graph, Kind, Module, NamedType, Node, TensorType, TupleType, Type, callees_first, reachable

MAX_DEPTH = 256
"""Nodes that one group may hold (``relay.FuseOps.max_depth``)."""

SIMPLE_CONSTANTS = frozenset(("s32", "s64", "f32", "f64", "pred"))
"""Element types whose scalars are written into the kernel."""

OTHERS = {
    Kind.ELEMENTWISE: TvmKind.ELEMWISE, Kind.BROADCAST: TvmKind.BROADCAST, Kind.INJECTIVE: TvmKind.INJECTIVE,
    Kind.REDUCTION: TvmKind.COMM_REDUCE, Kind.CONTRACTION: TvmKind.OUT_ELEMWISE_FUSABLE,
}
"""The kind of an operator that is not Relay's, by its own place in fusion."""

APPLIED = frozenset(("reduce", "reduce-window", "scatter", "select-and-scatter", "sort", "map", "all-reduce", "reduce-scatter"))
"""Operators of HLO whose bodies work on scalars."""


@dataclass(slots=True, eq=False)
class Place:
    """A node in the walk: its consumers with the kind of each edge, and whether something outside of fusion needs its value."""

    node: Node
    index: int
    kind: TvmKind
    outputs: list[tuple[int, TvmKind]] = field(default_factory=list)
    extern: bool = False


@dataclass(slots=True, eq=False)
class Member:
    """A node's group, joined to others by ``parent``; ``root_node`` is the node whose value leaves it."""

    kind: TvmKind
    root_node: Node
    anchor: Node | None = None
    parent: Member | None = None
    size: int = 1

    def root(self) -> Member:
        """The group that this one has become part of."""
        top = self
        while top.parent is not None:
            top = top.parent
        while self.parent is not None and self.parent is not top:
            self.parent, self = top, self.parent
        return top


@dataclass(slots=True)
class Dominator:
    """Where all ways from a node meet: the place (-1: nowhere), the depth in the tree, and the largest kind on the ways."""

    parent: int
    depth: int
    kind: TvmKind


class Partition:
    """The groups of one graph."""

    def __init__(self, graph: Graph, max_depth: int = MAX_DEPTH) -> None:
        self.graph = graph
        self.max_depth = max_depth
        self.places = self._places(graph)
        self.place_of = {place.node: place for place in self.places}
        self.members = [Member(p.kind, p.node, p.node if p.kind == TvmKind.OUT_ELEMWISE_FUSABLE else None) for p in self.places]
        self.dominators = self._dominators()
        for phase in range(3):
            self._run(phase)

    def group_of(self, node: Node) -> Member:
        """The group that a node ended in."""
        return self.members[self.place_of[node].index].root()

    # ------------------------------------------------------------------ the graph as TVM walks it

    def _places(self, graph: Graph) -> list[Place]:
        order = list(depth_first(graph))
        places = [Place(node, i, self._kind(node)) for i, node in enumerate(order)]
        of = {place.node: place for place in places}
        lets = set(graph.notes.get("lets", ()))
        for place in places:
            node = place.node
            if node.op.name == "parameter" or node in lets:
                place.extern = True
            for operand, kind in self._edges(node, place.kind):
                if operand not in of:
                    continue
                if kind is None:
                    of[operand].extern = True
                else:
                    of[operand].outputs.append((place.index, kind))
        if graph.root is not None:
            of[graph.root].extern = True
        return places

    def _kind(self, node: Node) -> TvmKind:
        name = node.op.name
        if name == "constant":
            type = node.type
            simple = isinstance(type, TensorType) and type.rank == 0 and type.dtype.name in SIMPLE_CONSTANTS
            return TvmKind.ELEMWISE if simple else TvmKind.OPAQUE
        if name == "tuple":
            return TvmKind.TUPLE
        if name == "get-tuple-element":
            return TvmKind.INJECTIVE if self._all_tensors(node.operands[0]) else TvmKind.OPAQUE
        if name.startswith("dyn.") and _is_dynamic(node.type):
            return TvmKind.OPAQUE
        return KINDS.get(name, TvmKind.OPAQUE) if node.op.dialect == "relay" else OTHERS.get(node.op.kind, TvmKind.OPAQUE)

    def _edges(self, node: Node, kind: TvmKind) -> Iterable[tuple[Node, TvmKind | None]]:
        """The operands and the kind of each edge; None: the value is needed outside of fusion."""
        name = node.op.name
        if name in ("fn", "if", "match", "ref", "ref_read", "ref_write", "constructor", "field"):
            return [(operand, None) for operand in node.operands]
        if name == "tuple":
            return [(o, TvmKind.INJECTIVE if not isinstance(o.type, TupleType | NamedType) else None) for o in node.operands]
        if name == "get-tuple-element":
            return [(node.operands[0], TvmKind.INJECTIVE if kind is TvmKind.INJECTIVE else None)]
        if name == "call" and "callee" not in node.attrs and node.operands:
            return [(node.operands[0], None), *((o, TvmKind.OPAQUE) for o in node.operands[1:])]
        return [(o, self._edge(node, o, kind)) for o in node.operands]

    def _edge(self, node: Node, operand: Node, kind: TvmKind) -> TvmKind:
        """A broadcast that leaves this operand's shape as it is, is elementwise for it."""
        mine, its = node.type, operand.type
        same = isinstance(mine, TensorType) and isinstance(its, TensorType) and mine.shape == its.shape
        return TvmKind.ELEMWISE if kind is TvmKind.BROADCAST and same else kind

    def _all_tensors(self, node: Node) -> bool:
        return not isinstance(node.type, TupleType) or not any(isinstance(e, TupleType) for e in node.type.elements)

    # ------------------------------------------------------------------ post-dominators

    def _dominators(self) -> list[Dominator]:
        tree: list[Dominator] = [Dominator(-1, 1, TvmKind.OPAQUE)] * len(self.places)
        for place in reversed(self.places):
            if place.extern:
                tree[place.index] = Dominator(-1, 1, TvmKind.OPAQUE)
                continue
            parent, kind = self._common(place, tree)
            tree[place.index] = Dominator(parent, tree[parent].depth + 1 if parent >= 0 else 1, kind)
        return tree

    @staticmethod
    def _common(place: Place, tree: list[Dominator]) -> tuple[int, TvmKind]:
        """Where the ways over all outputs meet, and the largest kind met."""
        kind = TvmKind.ELEMWISE
        parent = -1
        for number, (at, edge) in enumerate(place.outputs):
            kind = max(kind, edge)
            if number == 0:
                parent = at
                continue
            left, right = parent, at
            while left != right:
                if left < 0 or right < 0:
                    left = right = -1
                elif tree[left].depth < tree[right].depth:
                    kind, right = max(kind, tree[right].kind), tree[right].parent
                elif tree[right].depth < tree[left].depth:
                    kind, left = max(kind, tree[left].kind), tree[left].parent
                else:
                    kind = max(kind, tree[left].kind, tree[right].kind)
                    left, right = tree[left].parent, tree[right].parent
            parent = left
        return parent, kind

    # ------------------------------------------------------------------ phases

    def _run(self, phase: int) -> None:
        for place in self.places:
            member, dominator = self.members[place.index], self.dominators[place.index]
            sink = dominator.parent
            if member.kind is TvmKind.OPAQUE or sink < 0:
                continue
            if self._between(place.index, sink) > self.max_depth:
                continue
            target = self.members[sink]
            if phase == 2:
                if member.kind <= TvmKind.INJECTIVE and target.root().kind is not TvmKind.TUPLE and target.kind is TvmKind.TUPLE:
                    if target.root().kind <= TvmKind.INJECTIVE:
                        self._fuse_if(place, sink, lambda kind, at_sink: kind <= TvmKind.INJECTIVE)
                continue
            if member.root() is target.root() or target.kind is TvmKind.TUPLE:
                continue
            if member.kind is TvmKind.OUT_ELEMWISE_FUSABLE:
                if phase == 0 and dominator.kind is TvmKind.ELEMWISE:
                    self._fuse_if(place, sink, lambda kind, at_sink: kind <= TvmKind.BROADCAST)
            elif member.kind <= TvmKind.BROADCAST:
                if dominator.kind <= TvmKind.INJECTIVE or dominator.kind is TvmKind.COMM_REDUCE:
                    self._fuse_if(place, sink, _into)
            elif member.kind in (TvmKind.INJECTIVE, TvmKind.TUPLE) and phase == 1:
                self._fuse_if(place, sink, lambda kind, at_sink: kind <= TvmKind.INJECTIVE)

    def _fuse_if(self, place: Place, sink: int, allowed: Callable[[TvmKind, bool], bool]) -> None:
        """Join everything between a place and its sink, when every group on the ways is of an allowed kind."""
        ways = self._ways(place.index, sink)
        if all(allowed(self.members[at].root().kind, at == sink) for at in ways):
            for at in (place.index, *ways):
                if at != sink:
                    self._merge(self.members[at].root(), self.members[sink].root())

    def _ways(self, source: int, sink: int) -> list[int]:
        """The places on the ways from behind a source to its sink, the sink included."""
        seen: dict[int, None] = {}
        stack = [at for at, _ in self.places[source].outputs]
        while stack:
            at = stack.pop()
            if at not in seen:
                seen[at] = None
                if at != sink:
                    stack.extend(next_ for next_, _ in self.places[at].outputs)
        return list(seen)

    def _between(self, source: int, sink: int) -> int:
        """How many operators come together when a source is fused into its sink, as TVM counts them; counting ends beyond the limit."""
        count = self.members[sink].root().size
        seen: set[int] = set()
        stack = [source]
        while stack and count <= self.max_depth:
            at = stack.pop()
            if at not in seen and at != sink:
                seen.add(at)
                # A group that has become part of another one still counts with the size it had then.
                count += self.members[at].size
                stack.extend(next_ for next_, _ in self.places[at].outputs)
        return count

    @staticmethod
    def _merge(child: Member, parent: Member) -> None:
        if child is parent:
            return
        parent.size += child.size
        child.parent = parent
        if child.anchor is not None:
            parent.anchor = child.anchor
            parent.kind = max(child.kind, parent.kind)


def _into(kind: TvmKind, at_sink: bool) -> bool:
    """What elementwise and broadcasting operators may go into, and over."""
    if not at_sink:
        return kind <= TvmKind.INJECTIVE
    return kind <= TvmKind.OUT_ELEMWISE_FUSABLE


def _is_dynamic(type: Type) -> bool:
    return isinstance(type, TensorType) and not type.is_static


def depth_first(graph: Graph) -> Iterable[Node]:
    """Operands before users, as a walk from the result finds them; parameters first, and before the result what acts without being read."""
    done: set[Node] = set(graph.params)
    yield from graph.params
    if graph.root is None:
        return
    read = reachable(graph, [graph.root])
    acting = [n for n in graph.nodes if n.op.effect in (Effect.WRITES, Effect.CONTROL) and not read[n.index]]
    stack: list[tuple[Node, int]] = [(node, 0) for node in (graph.root, *reversed(acting)) if node not in done]
    while stack:
        node, at = stack.pop()
        if node in done:
            continue
        while at < len(node.operands) and node.operands[at] in done:
            at += 1
        if at < len(node.operands):
            stack.append((node, at + 1))
            stack.append((node.operands[at], 0))
            continue
        done.add(node)
        yield node


class Tvm:
    """TVM's FuseOps as a policy."""

    name = "tvm"
    version = "tvm@0.19"

    reads = ("relay", "hlo")

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for each function that the entry runs; one that is a kernel already (``Primitive=1``) has none."""
        applied = [n for g in module.graphs.values() for n in g.nodes if n.op.name in APPLIED and n.op.dialect == "hlo"]
        scalar = {id(b) for n in applied for b in n.bodies}
        return [self.plan(g) for g in callees_first(module, module.main())
                if id(g) not in scalar and not {"Primitive", "Compiler"} & g.notes.get("attrs", {}).keys()]

    def remarks(self, module: Module) -> list[str]:
        """What is not as TVM would see it."""
        if module.format != "relay":
            return [f"TVM fuses Relay; the kinds of {module.format} operators stand in for those of Relay's"]
        open_ = sum(n.type is UNKNOWN for g in module.graphs.values() for n in g.nodes if n.op.name not in ("fn", "global"))
        return [f"{open_} values have no type: broadcasts among them are taken for ones that change the shape"] if open_ else []

    def plan(self, graph: Graph) -> Plan:
        """The groups that FuseOps makes of a Relay function, and a verdict on each edge."""
        partition = Partition(graph)
        groups: dict[Member, list[Node]] = {}
        for place in partition.places:
            if place.node.op.name not in ("parameter", "constant", "fn", "global"):
                groups.setdefault(partition.group_of(place.node), []).append(place.node)
        made = [self._group(member, nodes) for member, nodes in groups.items()]
        return Plan(graph, made, [self._verdict(graph, partition, o, n) for nodes in groups.values() for n in nodes for o in n.operands
                                  if o.op.name not in ("parameter", "constant", "fn", "global")])

    @staticmethod
    def _group(member: Member, nodes: list[Node]) -> Group:
        inside = set(nodes)
        inputs = list(dict.fromkeys(o for n in nodes for o in n.operands if o not in inside))
        kind = "contraction" if member.anchor is not None else "whole" if member.kind is TvmKind.OPAQUE else "map"
        return Group(kind, nodes, [member.root_node], inputs, member.anchor)

    def _verdict(self, graph: Graph, partition: Partition, producer: Node, consumer: Node) -> EdgeVerdict:
        if partition.group_of(producer) is partition.group_of(consumer):
            return EdgeVerdict(graph.name, producer.name, consumer.name, "all")
        rule, cause = why_not(partition, producer, consumer)
        return EdgeVerdict(graph.name, producer.name, consumer.name, "none", None, rule, cause)


def graph_lets(partition: Partition) -> list[Node]:
    """The nodes that the text binds by let."""
    return list(partition.graph.notes.get("lets", ()))


def why_not(partition: Partition, producer: Node, consumer: Node) -> tuple[str, str]:
    """The first rule that keeps two nodes apart, and what it met."""
    place, other = partition.place_of[producer], partition.place_of[consumer]
    dominator = partition.dominators[place.index]
    for node, at in ((producer, place), (consumer, other)):
        if at.kind is TvmKind.OPAQUE:
            known = node.op.known or node.op.name in KINDS
            return ("opaque" if known else "unknown-op"), f"{node.op.name} %{node.name} is opaque: nothing fuses into or out of it"
    if producer in graph_lets(partition):
        return "let", f"%{producer.name} is bound by let, and fusion does not cross it"
    if place.extern:
        return "output", f"the value of %{producer.name} leaves the function"
    if dominator.parent < 0:
        return "multi-consumer", f"the ways from %{producer.name} never meet again inside the function"
    sink = partition.places[dominator.parent].node
    if sink is not consumer:
        users = ", ".join(f"%{partition.places[at].node.name}" for at, _ in place.outputs)
        return "multi-consumer", f"%{producer.name} feeds {users}; the ways meet at %{sink.name} ({sink.op.name}) only"
    if place.kind is TvmKind.COMM_REDUCE:
        return "reduce-out", f"%{producer.name} is a reduction, and a reduction ends its group"
    if other.kind is TvmKind.TUPLE:
        return "tuple", "results that are gathered in a tuple are not fused"
    if place.kind is TvmKind.OUT_ELEMWISE_FUSABLE:
        if dominator.kind is not TvmKind.ELEMWISE:
            return "complex-into-shape", f"behind {producer.op.name} only operators that keep the shape fuse; %{consumer.name} does not"
        return "two-complex", f"the group of %{consumer.name} is built on another anchor already"
    if other.kind is TvmKind.OUT_ELEMWISE_FUSABLE:
        return "prologue", f"%{producer.name} comes before {consumer.op.name}: TVM fuses what follows it, and nothing into it"
    if other.kind is TvmKind.COMM_REDUCE:
        return "injective-into-reduce", f"{producer.op.name} is injective and does not fuse into the reduction %{consumer.name}"
    held, wanted = partition.group_of(producer), partition.group_of(consumer)
    if held.size + wanted.size > partition.max_depth:
        return "depth", f"the groups hold {held.size} and {wanted.size} operators, together more than {partition.max_depth}"
    if place.kind is TvmKind.INJECTIVE and wanted.anchor is not None:
        anchor = f"%{wanted.anchor.name} ({wanted.anchor.op.name})"
        return "injective-into-complex", f"{producer.op.name} is injective, and the group of %{consumer.name} is built on {anchor}"
    return "path", f"on the ways from %{producer.name} to %{consumer.name} stands a group of another kind"


POLICY = Tvm()
