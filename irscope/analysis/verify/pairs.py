"""Work that begins and ends: every start has its done, and both ends of a transfer agree."""
from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import Fault
from irscope.analysis.verify.texts import Texts, fields, inside, split
from irscope.graph import Graph, Module, Node

USERS = {
    "async-start": ("async-update", "async-done"), "async-update": ("async-update", "async-done"),
    "all-reduce-start": ("all-reduce-done",), "copy-start": ("copy-done",), "collective-permute-start": ("collective-permute-done",),
    "send": ("send-done", "tuple"), "recv": ("recv-done", "tuple"),
}
"""The one consumer that each must have."""

OPERANDS = {
    "async-update": ("async-start", "async-update"), "async-done": ("async-start", "async-update"),
    "all-reduce-done": ("all-reduce-start",), "copy-done": ("copy-start",), "collective-permute-done": ("collective-permute-start",),
    "send-done": ("send", "get-tuple-element"), "recv-done": ("recv", "get-tuple-element"),
}
"""What each must take."""

TRANSFERS = frozenset(("send", "recv", "send-done", "recv-done"))
PAIRS = "_xla_send_recv_source_target_pairs"


def check(module: Module) -> Iterator[tuple[Graph, Fault]]:
    """Starts without exactly one done, dones of nothing, ends of a channel that disagree."""
    asynchronous = {id(n.bodies[0]) for g in module.graphs.values() for n in g.nodes if n.op.name == "async-start" and n.bodies}
    channels: dict[int, list[tuple[Graph, Node]]] = {}
    for graph in module.graphs.values():
        if any(n.op.name in USERS or n.op.name in OPERANDS for n in graph.nodes):
            yield from ((graph, fault) for fault in _ends(graph, id(graph) in asynchronous))
        for node in graph.nodes:
            if node.attrs.get("channel_id"):
                channels.setdefault(node.attrs["channel_id"], []).append((graph, node))
        if id(graph) in asynchronous:
            yield from ((graph, fault) for fault in _trivial(graph))
    yield from _channels(module, channels)


def _ends(graph: Graph, asynchronous: bool) -> Iterator[Fault]:
    users = graph.users()
    for node in graph.nodes:
        wanted = USERS.get(node.op.name)
        # Alone at the root of an asynchronous computation, send and recv end elsewhere.
        if wanted and not (asynchronous and node is graph.root):
            mine = users[node.index]
            if len(mine) != 1:
                yield Fault(node, f"{node.op.name} needs one consumer, but %{node.name} has {len(mine)}",
                            f"give it one {' or '.join(wanted)}")
            elif mine[0].op.name not in wanted:
                yield Fault(node, f"the consumer of {node.op.name} must be {' or '.join(wanted)}, but %{mine[0].name} is {mine[0].op.name}")
        sources = OPERANDS.get(node.op.name)
        if sources and node.operands and node.operands[0].op.name not in sources and node.operands[0].op.name != "parameter":
            operand = node.operands[0]
            yield Fault(node, f"the operand of {node.op.name} must be {' or '.join(sources)}, but %{operand.name} is {operand.op.name}")


def _trivial(graph: Graph) -> Iterator[Fault]:
    """What runs asynchronously is one instruction, or a group of transfers."""
    work = [n for n in graph.nodes if n.op.name != "parameter"]
    if len(work) > 1 and not all(n.op.name in TRANSFERS or n.op.name in ("tuple", "after-all") for n in work):
        yield Fault(work[0], f"the asynchronous computation {graph.name} has {len(work)} instructions beside its parameters, "
                             "but may have its root alone")


def _channels(module: Module, channels: dict[int, list[tuple[Graph, Node]]]) -> Iterator[tuple[Graph, Fault]]:
    texts = Texts(module)
    frontend = {id(n): fields(v) for _, n, v in texts.having("frontend_attributes")} if channels else {}
    scheduled = bool(module.attrs.get("is_scheduled"))
    for channel, members in channels.items():
        transfers = [(g, n) for g, n in members if n.op.name in TRANSFERS]
        if not transfers:
            continue
        if len(transfers) != len(members):
            graph, node = next(m for m in members if m[1].op.name not in TRANSFERS)
            yield graph, Fault(node, f"channel {channel} is used by {transfers[0][1].op.name} and by {node.op.name}",
                               "give each kind of communication a channel of its own")
        yield from _host(channel, transfers, frontend)
        if scheduled:
            yield from _partners(channel, transfers, frontend)


def _host(channel: int, transfers: list[tuple[Graph, Node]], frontend: dict[int, dict[str, str]]) -> Iterator[tuple[Graph, Fault]]:
    """Transfers to the host by one channel are the same transfer."""
    for name in ("send", "recv"):
        same = [(g, n) for g, n in transfers if n.op.name == name and n.attrs.get("is_host_transfer")]
        for graph, node in same[1:]:
            first = same[0][1]
            if str(node.type) != str(first.type):
                yield graph, Fault(node, f"transfers by channel {channel} to the host must agree, but %{first.name} is {first.type} "
                                         f"and %{node.name} is {node.type}")
            elif frontend.get(id(node), {}) != frontend.get(id(first), {}):
                yield graph, Fault(node, f"transfers by channel {channel} to the host must have the same frontend_attributes, "
                                         f"but those of %{first.name} and %{node.name} differ")


def _partners(channel: int, transfers: list[tuple[Graph, Node]], frontend: dict[int, dict[str, str]]) -> Iterator[tuple[Graph, Fault]]:
    """Between devices, sends and receives of a scheduled module wait for each other: pairs that differ never meet."""
    ends = {name: [(g, n, frontend.get(id(n), {}).get(PAIRS)) for g, n in transfers if n.op.name == name] for name in ("send", "recv")}
    written = {name: [e for e in ends[name] if e[2]] for name in ends}
    for graph, node, pairs in written["recv"]:
        if not ends["send"]:
            yield graph, Fault(node, f"%{node.name} receives by channel {channel}, but nothing sends by it: it waits for ever",
                               "a receive needs a send with the same channel and the same pairs")
        elif written["send"] and pairs != written["send"][0][2]:
            yield graph, Fault(node, f"send and recv by channel {channel} must name the same pairs, but %{written['send'][0][1].name} has "
                                     f"{written['send'][0][2]} and %{node.name} has {pairs}")
    for graph, node, text in [*written["send"], *written["recv"]]:
        pairs_of = [tuple(split(inside(p))) for p in split(inside(text or ""))]
        for end, what in enumerate(("source", "target")):
            seen = [p[end] for p in pairs_of if len(p) == 2]
            twice = next((s for s in seen if seen.count(s) > 1), None)
            if twice is not None:
                yield graph, Fault(node, f"{what} {twice} stands twice in the pairs {text} of %{node.name}")
