"""A topological order of a graph that keeps related nodes together.

A compiler's schedule interleaves the layers of a network: it prepares the parameters of all layers first, and computes gradients where
memory allows. For a reader, the nodes of one layer belong together.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush

from irscope.graph import Graph, Node


def clustered(graph: Graph, phases: Sequence[int], keys: Sequence[Hashable]) -> list[Node]:
    """The nodes of a graph in a topological order: by ``phases``, and within a phase with nodes of equal ``keys`` together.

    Both are given by index; no node may have an operand of a later phase. This is list scheduling from the results backwards: of the
    ready nodes the latest one of the current key is next, else the latest of all.
    """
    nodes = graph.nodes
    waiting = [0] * len(nodes)
    for node in nodes:
        for operand in dict.fromkeys(node.operands):
            waiting[operand.index] += 1
    times = _latest_times(graph, phases)
    by_key: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    by_phase: dict[int, list[tuple[int, int]]] = {phase: [] for phase in sorted(set(phases), reverse=True)}

    def add(index: int) -> None:
        place = -times[index], -index
        heappush(by_key[keys[index]], place)
        heappush(by_phase[phases[index]], place)

    for node in nodes:
        if not waiting[node.index]:
            add(node.index)
    is_done = [False] * len(nodes)
    order: list[Node] = []
    for ready in by_phase.values():
        key: Hashable = None
        index = -1
        while ready or by_key[key]:
            if index < 0:
                index = -heappop(by_key[key] or ready)[1]
            last, index = index, -1
            if is_done[last]:
                continue
            is_done[last] = True
            order.append(nodes[last])
            key = keys[last]
            for operand in dict.fromkeys(nodes[last].operands):
                waiting[operand.index] -= 1
                if not waiting[operand.index]:
                    add(operand.index)
                    # A chain is followed to its begin: the parts of one expression stay together.
                    if times[operand.index] == times[last] - 1 and keys[operand.index] == key:
                        index = operand.index
            if index < 0 and not _has(by_key[key], is_done):
                index = max((operand.index for operand in nodes[last].operands if not waiting[operand.index] and not is_done[operand.index]
                             and phases[operand.index] == phases[last] and times[operand.index] == times[last] - 1), default=-1)
    order.reverse()
    return order


def _has(heap: list[tuple[int, int]], is_done: list[bool]) -> bool:
    """Whether a heap has a node that is not done; drops those that are."""
    while heap and is_done[-heap[0][1]]:
        heappop(heap)
    return bool(heap)


def _latest_times(graph: Graph, phases: Sequence[int]) -> list[int]:
    """For each node, the latest step in which it can be computed without delaying another of its phase, if each takes one step.

    A weight is prepared directly before its use, and what no other node of the phase reads is computed at once.
    """
    depth = [0] * len(graph.nodes)
    for node in graph.nodes:
        depth[node.index] = 1 + max((depth[operand.index] for operand in node.operands), default=0)
    latest = [0] * len(graph.nodes)  # 0: not known; the first step is 1
    for node in reversed(graph.nodes):
        at = latest[node.index] = latest[node.index] or depth[node.index]
        for operand in node.operands:
            if phases[operand.index] == phases[node.index]:
                latest[operand.index] = min(latest[operand.index] or at - 1, at - 1)
    return latest
