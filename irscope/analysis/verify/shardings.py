"""Invalid shardings: more dimensions than the value, devices that the module lacks, inconsistent loops."""
from __future__ import annotations

import re
from collections.abc import Iterator
from math import prod

from irscope.analysis.verify.faults import GraphFault, devices_of
from irscope.analysis.verify.texts import Texts, inside, split
from irscope.graph import Graph, Module, Node, TensorType, TupleType, Type
from irscope.ops import hlo

TILES = re.compile(r"devices=\[([\d,\s]+)\](?:<=\[([\d,\s]+)\]|((?:\s*-?\d+\s*,?)*))")
NUMBER = re.compile(r"-?\d{1,18}")  # longer runs of digits are not numbers of devices
MOST = 10 ** 18
"""The largest number of devices that is checked."""
LAST = re.compile(r"last_tile_dims=\{([^}]*)\}")
DEVICE = re.compile(r"\bdevice=(-?\d{1,18})")
_STRING = r'"(?:[^"\\]|\\.)*"'
METADATA = re.compile(rf',?\s*metadata=\{{(?:{_STRING}|[^{{}}"]|\{{(?:{_STRING}|[^{{}}"])*\}})*\}}', re.DOTALL)
"""The metadata of a sharding, ``{...}`` or ``{{...}, {...}}``, which is not compared."""

_CARRYING = hlo.named("while conditional")


def check(module: Module) -> Iterator[tuple[Graph, GraphFault]]:
    """Shardings that do not fit the type, the number of devices, or each other."""
    written: dict[int, str] = {}
    _, partitions = devices_of(module)
    for graph, node, text in Texts(module).having("sharding"):
        written[id(node)] = " ".join(METADATA.sub("", text).split())
        yield from ((graph, fault) for fault in _fits(node, node.type, text, partitions))
    if written:
        for graph in module.graphs.values():
            for node in graph.nodes:
                if node.op in _CARRYING and node.bodies:
                    yield from ((graph, fault) for fault in _consistent(node, written))


def _fits(node: Node, t: Type, text: str, partitions: int) -> Iterator[GraphFault]:
    pieces = split(inside(text))
    if pieces and all(p.startswith("{") for p in pieces):
        leaves = list(t.leaves()) if isinstance(t, TupleType) else [t]
        if isinstance(t, TupleType) and len(leaves) == len(pieces):
            for leaf, piece in zip(leaves, pieces, strict=True):
                yield from _fits(node, leaf, piece, partitions)
        elif isinstance(t, TupleType) and len(pieces) != 1:
            yield GraphFault(node, f"%{node.name} has {len(leaves)} values, but its sharding {text} has {len(pieces)} parts")
        return
    device = DEVICE.search(text)
    if device and (int(device[1]) < 0 or (partitions > 1 and int(device[1]) >= partitions)):
        yield GraphFault(node, f"the sharding {text} of %{node.name} names device {device[1]}, which does not exist")
    m = TILES.search(text)
    if not m or not isinstance(t, TensorType):
        return
    tiles = NUMBER.findall(m[1])
    last = LAST.search(text)
    rank = len(tiles) - ("last_tile_dim_replicate" in text) - (len(split(last[1])) if last else 0)
    if rank != t.rank:
        yield GraphFault(node, f"the sharding {text} of %{node.name} has {rank} tile dimensions, but {t} has {t.rank}",
                    "one tile dimension for each dimension of the value, behind them those of subgroups")
    listed = [int(n) for n in NUMBER.findall(m[3] or "")]
    count = min(prod(int(n) for n in NUMBER.findall(m[2])), MOST) if m[2] else len(listed)
    if listed and len(set(listed)) != len(listed):
        yield GraphFault(node, f"the sharding {text} of %{node.name} names a device twice")
    wrong = next((d for d in listed if d < 0 or (partitions > 1 and d >= partitions)), None)
    if wrong is not None:
        yield GraphFault(node, f"the sharding {text} of %{node.name} names device {wrong}, which does not exist")
    elif partitions > 1 and count > partitions:
        yield GraphFault(node, f"the sharding {text} of %{node.name} is for {count} devices, but the module has {partitions}")


def _consistent(node: Node, written: dict[int, str]) -> Iterator[GraphFault]:
    """Check that all places of a loop or branch that state a value's sharding state the same one."""
    places = [node]
    if node.op is hlo.while_:
        places += [p for graph in node.bodies for p in graph.params[:1]]
        if len(node.bodies) > 1 and node.bodies[1].root is not None:
            places.append(node.bodies[1].root)
    else:
        places += [graph.root for graph in node.bodies if graph.root is not None]
    said = [(p, written[id(p)]) for p in places if id(p) in written]
    for place, text in said[1:]:
        if text != said[0][1]:
            first, way = said[0]
            yield GraphFault(node, f"{node.op.name} shards its value in two ways: {way} at %{first.name} and {text} at %{place.name}",
                        "all places of a loop or branch that say how a value is sharded must say the same")
            return
