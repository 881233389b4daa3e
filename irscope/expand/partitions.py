"""Simulates a program of several devices in one: the values of every device side by side, combined by the collectives.

    r = f32[4] all-reduce(x), to_apply=add          ->      r@0 = r@1 = add(x@0, x@1)

The text is what each device runs (single program, multiple data). Each parameter becomes one per device, ``x@0``, ``x@1``; its results
follow in the order of the devices. Loops and branches whose bodies communicate run in lockstep, by the condition of the first device.
A text that describes whole arrays and cuts them into shards itself (:mod:`irscope.expand.manual`) keeps its parameters and results.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.expand import manual
from irscope.expand.expand import inline
from irscope.expand.values import synthetic_part
from irscope.graph import Builder, Graph, Kind, Module, Node, TensorType, TupleType, callees_first
from irscope.graph.dtypes import U32
from irscope.ops import get, hlo
from irscope.ops.attributes import Collective
from irscope.ops.collective import replica_groups
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain
from irscope.ops.tensors import Tensors
from irscope.source import UserError

COLLECTIVE = hlo.named("all-reduce all-gather reduce-scatter all-to-all collective-permute collective-broadcast")
TOGETHER = frozenset(op.name for op in COLLECTIVE)
WHO = hlo.named("partition-id replica-id")
REFUSED = hlo.named("ragged-all-to-all send recv send-done recv-done infeed outfeed")
COMMUNICATE = COLLECTIVE | WHO | REFUSED


def partitioned(module: Module, devices: int) -> Module:
    """The module as run by ``devices`` devices at once. Raises UserError for communication that is not simulated."""
    inlined = inline(module)
    graphs = callees_first(inlined, inlined.main())
    joined: set[Graph] = set()
    for graph in graphs:
        if any(n.op in COMMUNICATE or manual.is_boundary(n) or any(b in joined for b in n.bodies) for n in graph.nodes):
            joined.add(graph)
    global_ = manual.boundary(graphs) is not None
    made = inlined.derived()
    became: dict[Graph, Graph] = {}
    setting = _Setting(inlined, devices, became, joined)
    for graph in graphs:
        whole = graph is inlined.main()
        run = whole or graph in joined
        became[graph] = _Devices(setting, graph, whole, whole and global_).run() if run else graph
    for graph in callees_first(made, became[inlined.main()]):
        made.graphs[made.fresh_name(graph.name)] = graph
    made.entry = became[inlined.main()].name
    if not global_:
        made.attrs |= {"partitions": devices}
    return made


@dataclass(frozen=True, slots=True)
class _Setting:
    """State shared by all graphs of a module: ``joined`` are those that communicate, ``became`` maps graphs to their simulations."""

    module: Module
    devices: int
    became: dict[Graph, Graph]
    joined: set[Graph]


class _Devices:
    """One graph, run by all devices: each node becomes one per device."""

    def __init__(self, setting: _Setting, graph: Graph, entry: bool, global_: bool = False) -> None:
        self.setting, self.graph, self.entry, self.global_ = setting, graph, entry, global_
        self.module, self.devices = setting.module, setting.devices
        self.made = Graph(f"{graph.name}.{setting.devices}", loc=graph.loc, notes=dict(graph.notes))
        self.builder = Builder(self.made)
        self.t = Tensors(self.builder)
        self.values: dict[Node, list[Node]] = {}

    def run(self) -> Graph:
        for param in self.graph.params:
            self.builder.at = (param,)
            self.values[param] = self._parameters(param)
        for node in self.graph.nodes:
            if node not in self.values:
                self.builder.at = node.origin or (node,)
                try:
                    self.values[node] = self._node(node, [self.values[o] for o in node.operands])
                except TypeFault as fault:  # groups of several sizes leave devices with arrays of several shapes
                    raise UserError(f"%{node.name}, run by {self.devices} devices: {fault.message}", fault.help) from None
        root = self.values[self.graph.result()]
        self.made.root = root[0] if self.global_ else self._tuple(root)
        return self.made

    def _parameters(self, param: Node) -> list[Node]:
        """One per device; a body takes them as one tuple parameter."""
        op = hlo.parameter
        if self.global_:
            return [self.builder.param(op, param.type, param.name)] * self.devices
        if self.entry:
            return [self.builder.param(op, param.type, f"{param.name}@{d}") for d in range(self.devices)]
        state = self.builder.param(op, TupleType((param.type,) * self.devices), param.name)
        return [synthetic_part(self.builder, state, d) for d in range(self.devices)]

    def _tuple(self, parts: Sequence[Node]) -> Node:
        return self.builder.add(hlo.tuple, parts, type=TupleType(tuple(p.type for p in parts)))

    def _node(self, node: Node, operands: list[list[Node]]) -> list[Node]:
        op = node.op
        if op in REFUSED:
            raise UserError(f"%{node.name} is {op}, which irscope does not simulate on several partitions", "run it without --partitions")
        if op in WHO:
            return [self.t.array(d, U32) for d in range(self.devices)]
        if op in COLLECTIVE:
            return self._together(node, operands)
        if manual.is_boundary(node):
            return self._at_boundary(node, operands)
        if op is hlo.while_ and any(b in self.setting.joined for b in node.bodies):
            return self._while(node, operands[0])
        if op is hlo.conditional and any(b in self.setting.joined for b in node.bodies):
            return self._conditional(node, operands)
        return [self._copy(node, [o[d] for o in operands], d) for d in range(self.devices)]

    def _copy(self, node: Node, operands: list[Node], device: int) -> Node:
        made = self.builder.add(node.op, operands, node.attrs, node.type, node.bodies, f"{node.name}@{device}")
        made.loc, made.synthetic = node.loc, node.synthetic
        return made

    def _at_boundary(self, node: Node, operands: list[list[Node]]) -> list[Node]:
        """Cut whole values into shards, one per device, or join shards into a value that all devices share."""
        shards = manual.shards_of(self.module, node)
        written_for = len(shards[0].places)
        if written_for != self.devices:
            raise UserError(f"%{node.name} is written for {written_for} devices, but there are {self.devices} partitions",
                            f"--partitions {written_for} runs as many")
        if manual.cuts(node):
            made = [[manual.cut(self.t, o[d], s, d) for o, s in zip(operands, shards, strict=True)] for d in range(self.devices)]
        else:
            made = [[manual.joined(self.t, s, o) for o, s in zip(operands, shards, strict=True)]] * self.devices
        for value, t in zip(made[0], manual.parts(node.type), strict=False):
            if not isinstance(t, TensorType) or self.t.shape(value) != t.shape:
                raise UserError(f"%{node.name}: its sharding gives {plain(value.type)}, but it is declared {plain(t)}")
        return [self._tuple(values) if isinstance(node.type, TupleType) else values[0] for values in made]

    # ------------------------------------------------------------------ in step

    def _merged(self, body: Graph) -> Graph:
        """A body for all devices, communicating or not."""
        if body in self.setting.joined:
            return self.setting.became[body]
        return _Devices(self.setting, body, False).run()

    def _while(self, node: Node, states: list[Node]) -> list[Node]:
        condition, body = (self._merged(b) for b in node.bodies)
        first = Graph(condition.name + ".first", list(condition.nodes), list(condition.params), None, condition.loc)
        first.root = condition.result().operands[0]
        state = self._tuple(states)
        made = self.builder.add(node.op, (state,), node.attrs, state.type, (first, body), node.name)
        return [synthetic_part(self.builder, made, d) for d in range(self.devices)]

    def _conditional(self, node: Node, operands: list[list[Node]]) -> list[Node]:
        bodies = [self._merged(b) for b in node.bodies]
        given = [self._tuple(o) for o in operands[1:]]
        made = self.builder.add(node.op, (operands[0][0], *given), node.attrs, TupleType((node.type,) * self.devices), bodies, node.name)
        return [synthetic_part(self.builder, made, d) for d in range(self.devices)]

    # ------------------------------------------------------------------ collectives

    def _groups(self, node: Node) -> list[tuple[int, ...]]:
        """The replica groups; an empty list means one group of all devices."""
        try:
            listed = [g for g in replica_groups(node) if g]
        except TypeFault as fault:
            raise UserError(f"%{node.name}: {fault.message}") from None
        groups = listed or [tuple(range(self.devices))]
        if any(d >= self.devices for g in groups for d in g):
            most = max(d for g in groups for d in g) + 1
            raise UserError(f"%{node.name} ({node.op.name}) names device {most - 1}, but there are {self.devices} partitions",
                            f"--partitions {most} runs as many as the text names")
        left = [d for d in range(self.devices) if not any(d in g for g in groups)]
        return groups + [(d,) for d in left]

    def _together(self, node: Node, operands: list[list[Node]]) -> list[Node]:
        results: list[Node | None] = [None] * self.devices
        if node.op is hlo.collective_permute:
            return self._permuted(node, operands)
        for group in self._groups(node):
            for place, device in enumerate(group):
                parts = [self._collective(node, [o[d] for d in group], place) for o in operands]
                if node.op is hlo.all_to_all and isinstance(node.type, TupleType):
                    # The form with one operand per member: operand j of member i goes to member j.
                    parts = [operands[place][d] for d in group]
                results[device] = parts[0] if not isinstance(node.type, TupleType) else self._tuple(parts)
        return [r for r in results if r is not None]

    def _collective(self, node: Node, members: list[Node], place: int) -> Node:
        """The result of the member at ``place`` of a group, given the operands of all members in order."""
        op, t = node.op, self.t
        if op is hlo.all_reduce:
            return self._reduced(node, members)
        if op is hlo.collective_broadcast:
            return members[0]
        along = next(iter(Collective.of(node).dimensions), 0)
        if op is hlo.all_gather:
            return t.concat(members, along)
        n = len(members)
        if op is hlo.reduce_scatter:
            total = self._reduced(node, members)
            size = t.shape(total)[along] // n
            return t.slice_dim(total, along, place * size, (place + 1) * size)
        size = t.shape(members[0])[along] // n
        return t.concat([t.slice_dim(m, along, place * size, (place + 1) * size) for m in members], along)

    def _reduced(self, node: Node, members: list[Node]) -> Node:
        """Combine all members by the scalar body, from first to last."""
        body = node.bodies[0]
        total = members[0]
        simple = (body.root is not None and len(body.nodes) == 3 and list(body.root.operands) == body.params
                  and body.root.op.kind is Kind.ELEMENTWISE and not body.root.attrs)
        for member in members[1:]:
            if simple and body.root is not None:
                total = self.t.emit(body.root.op.name, (total, member))
            else:
                assert isinstance(total.type, TensorType)
                dims = tuple(range(total.type.rank))
                total = self.builder.add(get("map"), (total, member), {"dimensions": dims}, total.type, (body,))
        return total

    def _permuted(self, node: Node, operands: list[list[Node]]) -> list[Node]:
        """The value of the source device; zeros for a device without one."""
        source = {to: frm for frm, to in Collective.of(node).source_target_pairs}
        out = []
        for d in range(self.devices):
            parts = []
            for operand in operands:
                frm = source.get(d)
                if frm is not None and frm >= self.devices:
                    raise UserError(f"%{node.name} names device {frm}, but there are {self.devices} partitions", f"--partitions {frm + 1}")
                parts.append(operand[frm] if frm is not None else self.t.like(operand[d], 0))
            out.append(parts[0] if not isinstance(node.type, TupleType) else self._tuple(parts))
        return out
