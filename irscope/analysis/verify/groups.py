"""The participants of a collective: groups that name each device once, as many as the module runs on."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault, devices_of
from irscope.graph import Graph, Module, Node, TensorType, TupleType
from irscope.ops import hlo
from irscope.ops.attributes import Collective
from irscope.ops.collective import replica_groups
from irscope.ops.faults import TypeFault

UNEVEN = hlo.named("all-reduce all-reduce-start")
BY_FLAG = hlo.named("all-gather all-gather-start reduce-scatter") | UNEVEN
GROUPED = hlo.named("all-to-all ragged-all-to-all collective-broadcast") | BY_FLAG
PERMUTES = hlo.named("collective-permute collective-permute-start")


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Groups and pairs that are invalid for any set of devices."""
    constrained: dict[bool, tuple[Graph, Node]] = {}
    for graph in module.graphs.values():
        for node in graph.nodes:
            if node.op in GROUPED:
                yield from ((graph, f) for f in _groups(module, node))
                if node.op in UNEVEN:
                    constrained.setdefault(Collective.of(node).constrain_layout, (graph, node))
                    channel = Collective.of(node).channel_id
                    if channel is not None and channel <= 0:
                        yield graph, GraphFault(node, f"the channel_id of {node.op.name} must be positive, but is {channel}")
            elif node.op in PERMUTES:
                yield from ((graph, f) for f in _pairs(module, node))
    if len(constrained) == 2:
        graph, node = constrained[True]
        yield graph, GraphFault(node, f"%{node.name} has constrain_layout=true, but %{constrained[False][1].name} has not",
                           "constrain the layout of all all-reduces of a module, or of none")


def devices(module: Module, node: Node) -> tuple[int, str]:
    """How many numbers the groups of a collective contain, and what they count; 1 where the module does not state it.

    Without a channel replicas communicate, with one partitions; ``use_global_device_ids`` numbers both together.
    """
    replicas, partitions = devices_of(module)
    attrs = Collective.of(node)
    if not attrs.channel_id:
        return replicas, "replicas"
    if node.op not in BY_FLAG:
        return partitions, "partitions"
    return (replicas * partitions, "devices") if attrs.use_global_device_ids else (replicas, "replicas")


def _groups(module: Module, node: Node) -> Iterator[GraphFault]:
    name = node.op.name
    try:
        groups = replica_groups(node)
    except TypeFault as fault:
        yield GraphFault(node, fault.message)
        return
    if not groups:
        if Collective.of(node).use_global_device_ids and node.op in BY_FLAG:
            yield GraphFault(node, f"{name} with use_global_device_ids=true needs replica_groups")
        return
    seen: set[int] = set()
    for group in groups:
        if not group:
            yield GraphFault(node, f"a group of {name} is empty")
        for member in group:
            if member in seen:
                yield GraphFault(node, f"{member} is listed twice in the replica_groups of {name}")
                return
            seen.add(member)
    missing = next((i for i in range(len(seen)) if i not in seen), None)
    if missing is not None:
        yield GraphFault(node, f"the replica_groups of {name} name {len(seen)} devices, but not device {missing}")
        return
    wanted, what = devices(module, node)
    if wanted not in (1, len(seen)):
        yield GraphFault(node, f"the replica_groups of {name} name {len(seen)} {what}, but the module has {wanted}")
    if node.op not in UNEVEN and len({len(group) for group in groups}) > 1:
        yield GraphFault(node, f"the replica_groups of {name} must be of one size, but are of {', '.join(str(len(g)) for g in groups[:6])}")


def _pairs(module: Module, node: Node) -> Iterator[GraphFault]:
    pairs = [p for p in Collective.of(node).source_target_pairs if len(p) == 2]
    replicas, partitions = devices_of(module)
    key, limit = ("num_partitions", partitions) if Collective.of(node).channel_id else ("replica_count", replicas)
    often = _times(node)
    for end, what in enumerate(("source", "target")):
        count: dict[int, int] = {}
        for pair in pairs:
            device = pair[end]
            if device < 0 or (limit > 1 and device >= limit):
                bound = "at least 0" if device < 0 else f"below {limit}, the {key}"
                yield GraphFault(node, f"{what} {device} of {node.op.name} must be {bound}")
                return
            count[device] = count.get(device, 0) + 1
            if count[device] > often:
                yield GraphFault(node, f"{what} {device} appears more than {'once' if often == 1 else f'{often} times'} "
                                  f"in the source_target_pairs of {node.op.name}")
                return


def _times(node: Node) -> int:
    """How often a device may appear: once per slice sent."""
    if len(node.operands) != 4:
        return 1
    offsets = node.operands[2].type
    if isinstance(offsets, TupleType) and not isinstance(node.operands[0].type, TensorType):
        offsets = offsets.elements[0] if offsets.elements else offsets
    return max(1, len(offsets.elements)) if isinstance(offsets, TupleType) else 1
