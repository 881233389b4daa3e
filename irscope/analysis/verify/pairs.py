"""Asynchronous pairs: every start has its done, and both ends of a transfer agree."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import GraphFault
from irscope.analysis.verify.texts import Texts, fields, inside, split
from irscope.graph import Graph, Module, Node, Op
from irscope.ops import hlo
from irscope.ops.attributes import Transfer
from irscope.ops.module_attributes import HloModule

_STARTS, _UPDATES = (hlo.async_start, hlo.async_update), (hlo.async_update, hlo.async_done)
USERS: dict[Op, tuple[Op, ...]] = {
    hlo.async_start: _UPDATES, hlo.async_update: _UPDATES, hlo.all_reduce_start: (hlo.all_reduce_done,), hlo.copy_start: (hlo.copy_done,),
    hlo.collective_permute_start: (hlo.collective_permute_done,), hlo.send: (hlo.send_done, hlo.tuple),
    hlo.recv: (hlo.recv_done, hlo.tuple),
}
"""The required single consumer of each."""

OPERANDS: dict[Op, tuple[Op, ...]] = {
    hlo.async_update: _STARTS, hlo.async_done: _STARTS, hlo.all_reduce_done: (hlo.all_reduce_start,), hlo.copy_done: (hlo.copy_start,),
    hlo.collective_permute_done: (hlo.collective_permute_start,), hlo.send_done: (hlo.send, hlo.get_tuple_element),
    hlo.recv_done: (hlo.recv, hlo.get_tuple_element),
}
"""The required operand of each."""

TRANSFERS = hlo.named("send recv send-done recv-done")
_GROUPING = TRANSFERS | hlo.named("tuple after-all")
PAIRS = "_xla_send_recv_source_target_pairs"


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Starts without exactly one done, dones without a start, ends of a channel that disagree."""
    asynchronous = {id(n.bodies[0]) for g in module.graphs.values() for n in g.nodes if n.op is hlo.async_start and n.bodies}
    channels: dict[int, list[tuple[Graph, Node]]] = {}
    for graph in module.graphs.values():
        if any(n.op in USERS or n.op in OPERANDS for n in graph.nodes):
            yield from ((graph, fault) for fault in _ends(graph, id(graph) in asynchronous))
        for node in graph.nodes:
            if channel := Transfer.of(node).channel_id:
                channels.setdefault(channel, []).append((graph, node))
        if id(graph) in asynchronous:
            yield from ((graph, fault) for fault in _trivial(graph))
    yield from _channels(module, channels)


def _ends(graph: Graph, asynchronous: bool) -> Iterator[GraphFault]:
    users = graph.users()
    for node in graph.nodes:
        wanted = USERS.get(node.op)
        # Alone at the root of an asynchronous computation, send and recv complete elsewhere.
        if wanted and not (asynchronous and node is graph.root):
            mine = users[node.index]
            if len(mine) != 1:
                yield GraphFault(node, f"{node.op.name} needs one consumer, but %{node.name} has {len(mine)}",
                            f"give it one {_either(wanted)}")
            elif mine[0].op not in wanted:
                yield GraphFault(node, f"the consumer of {node.op.name} must be {_either(wanted)}, but %{mine[0].name} is "
                                       f"{mine[0].op.name}")
        sources = OPERANDS.get(node.op)
        operand = node.operands[0] if node.operands else None
        if sources and operand is not None and operand.op not in sources and operand.op is not hlo.parameter:
            yield GraphFault(node, f"the operand of {node.op.name} must be {_either(sources)}, but %{operand.name} is {operand.op.name}")


def _either(ops: tuple[Op, ...]) -> str:
    return " or ".join(op.name for op in ops)


def _trivial(graph: Graph) -> Iterator[GraphFault]:
    """An asynchronous computation must be one instruction, or a group of transfers."""
    work = [n for n in graph.nodes if n.op is not hlo.parameter]
    if len(work) > 1 and not all(n.op in _GROUPING for n in work):
        yield GraphFault(work[0], f"the asynchronous computation {graph.name} has {len(work)} instructions beside its parameters, "
                             "but may have its root alone")


def _channels(module: Module, channels: dict[int, list[tuple[Graph, Node]]]) -> Iterator[tuple[Graph, GraphFault]]:
    texts = Texts(module)
    frontend = {id(n): fields(v) for _, n, v in texts.having("frontend_attributes")} if channels else {}
    scheduled = HloModule.of(module).is_scheduled
    for channel, members in channels.items():
        transfers = [(g, n) for g, n in members if n.op in TRANSFERS]
        if not transfers:
            continue
        if len(transfers) != len(members):
            graph, node = next(m for m in members if m[1].op not in TRANSFERS)
            yield graph, GraphFault(node, f"channel {channel} is used by {transfers[0][1].op.name} and by {node.op.name}",
                               "give each kind of communication a channel of its own")
        yield from _host(channel, transfers, frontend)
        if scheduled:
            yield from _partners(channel, transfers, frontend)


def _host(channel: int, transfers: list[tuple[Graph, Node]], frontend: dict[int, dict[str, str]]) -> Iterator[tuple[Graph, GraphFault]]:
    """Transfers to the host by one channel must be the same transfer."""
    for op in (hlo.send, hlo.recv):
        same = [(g, n) for g, n in transfers if n.op is op and Transfer.of(n).is_host_transfer]
        for graph, node in same[1:]:
            first = same[0][1]
            if str(node.type) != str(first.type):
                yield graph, GraphFault(node, f"transfers by channel {channel} to the host must agree, but %{first.name} is {first.type} "
                                         f"and %{node.name} is {node.type}")
            elif frontend.get(id(node), {}) != frontend.get(id(first), {}):
                yield graph, GraphFault(node, f"transfers by channel {channel} to the host must have the same frontend_attributes, "
                                         f"but those of %{first.name} and %{node.name} differ")


def _partners(channel: int, transfers: list[tuple[Graph, Node]], frontend: dict[int, dict[str, str]]) -> Iterator[tuple[Graph, GraphFault]]:
    """Between devices, sends and receives of a scheduled module wait for each other: pairs that differ never meet."""
    ends = [[(g, n, frontend.get(id(n), {}).get(PAIRS)) for g, n in transfers if n.op is op] for op in (hlo.send, hlo.recv)]
    sends, receives = ([end for end in of_one if end[2]] for of_one in ends)
    for graph, node, pairs in receives:
        if not ends[0]:
            yield graph, GraphFault(node, f"%{node.name} receives by channel {channel}, but nothing sends by it: it waits forever",
                               "a receive needs a send with the same channel and the same pairs")
        elif sends and pairs != sends[0][2]:
            yield graph, GraphFault(node, f"send and recv by channel {channel} must name the same pairs, but %{sends[0][1].name} has "
                                     f"{sends[0][2]} and %{node.name} has {pairs}")
    for graph, node, text in [*sends, *receives]:
        pairs_of = [tuple(split(inside(p))) for p in split(inside(text or ""))]
        for end, what in enumerate(("source", "target")):
            seen = [p[end] for p in pairs_of if len(p) == 2]
            twice = next((s for s in seen if seen.count(s) > 1), None)
            if twice is not None:
                yield graph, GraphFault(node, f"{what} {twice} is listed twice in the pairs {text} of %{node.name}")
