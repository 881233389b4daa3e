"""A layered layout of boxes, so that a drawing needs no graphviz: rows by dependence, few crossings, straight long lines."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

SWEEPS = 8
GAP_X = 28.0
GAP_Y = 44.0
DUMMY_WIDTH = 8.0
MAX_DUMMIES = 30_000
"""Dummies of one drawing. Where all edges together need more, the longest are drawn straight: a thousand long ones cross a million rows."""


@dataclass(slots=True)
class Placed:
    """Centres of the boxes, the points that each edge passes between its ends, and the size of it all."""

    x: list[float]
    y: list[float]
    bends: list[list[tuple[float, float]]]
    width: float = 0.0
    height: float = 0.0


@dataclass(slots=True)
class _Graph:
    """Boxes and the dummies that hold the place of long edges; ``up`` and ``down`` are neighbours in the rows above and below."""

    widths: list[float]
    rank: list[int]
    up: list[list[int]] = field(default_factory=list)
    down: list[list[int]] = field(default_factory=list)


def layered(widths: Sequence[float], heights: Sequence[float], edges: Sequence[tuple[int, int]]) -> Placed:
    """Place boxes of the given sizes, sources above targets. Edges of a cycle that would point up are reversed for the layout only.

    >>> placed = layered([10, 10], [5, 5], [(0, 1)])
    >>> placed.y[0] < placed.y[1]
    True
    """
    n = len(widths)
    if n == 0:
        return Placed([], [], [])
    forward = _acyclic(n, edges)
    rank = _ranks(n, forward)
    graph = _Graph(list(widths), rank, [[] for _ in range(n)], [[] for _ in range(n)])
    longest = _longest([rank[b] - rank[a] for a, b in forward])
    chains = [_chain(graph, a, b, longest) for a, b in forward]
    rows = _rows(graph)
    _order(graph, rows)
    x = _columns(graph, rows)
    row_height = [max([heights[i] for i in row if i < n], default=0.0) for row in rows]
    tops = [0.0]
    for height in row_height:
        tops.append(tops[-1] + height + GAP_Y)
    y = [tops[graph.rank[i]] + row_height[graph.rank[i]] / 2 for i in range(len(graph.widths))]
    left = min(x[i] - graph.widths[i] / 2 for i in range(len(x)))
    x = [value - left for value in x]
    bends = []
    for (a, b), (c, _), chain in zip(edges, forward, chains, strict=True):
        points = [(x[i], y[i]) for i in chain]
        bends.append(points if a in (c, b) else points[::-1])
    width = max(x[i] + graph.widths[i] / 2 for i in range(len(x)))
    return Placed(x[:n], y[:n], bends, width, tops[-1] - GAP_Y)


def rows_crossed(n: int, edges: Sequence[tuple[int, int]]) -> int:
    """The rows between the two ends of an edge, summed over all edges: what the time of a layout depends on most."""
    forward = _acyclic(n, edges)
    rank = _ranks(n, forward)
    return sum(max(0, rank[b] - rank[a] - 1) for a, b in forward)


def _longest(spans: Sequence[int]) -> int:
    """The length up to which edges get dummies, so that they need at most :data:`MAX_DUMMIES` together."""
    left, longest = MAX_DUMMIES, 1
    for span, times in sorted(Counter(spans).items()):
        left -= max(0, span - 1) * times
        if left < 0:
            break
        longest = span
    return longest


def _acyclic(n: int, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges; those that close a cycle in a depth-first search from the first box on are reversed."""
    out: list[list[int]] = [[] for _ in range(n)]
    for number, (a, _) in enumerate(edges):
        out[a].append(number)
    state = [0] * n
    result = list(edges)
    for start in range(n):
        if state[start]:
            continue
        state[start] = 1
        stack = [(start, 0)]
        while stack:
            node, at = stack.pop()
            if at == len(out[node]):
                state[node] = 2
                continue
            stack.append((node, at + 1))
            number = out[node][at]
            target = edges[number][1]
            if state[target] == 1:
                result[number] = (target, node)
            elif state[target] == 0:
                state[target] = 1
                stack.append((target, 0))
    return result


def _ranks(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The longest path to each box; sources are then pulled down to just above their first target."""
    out: list[list[int]] = [[] for _ in range(n)]
    degree = [0] * n
    for a, b in edges:
        if a != b:
            out[a].append(b)
            degree[b] += 1
    rank = [0] * n
    sources = [i for i in range(n) if degree[i] == 0]
    ready = list(sources)
    while ready:
        node = ready.pop()
        for target in out[node]:
            rank[target] = max(rank[target], rank[node] + 1)
            degree[target] -= 1
            if degree[target] == 0:
                ready.append(target)
    for node in sources:
        if out[node]:
            rank[node] = min(rank[t] for t in out[node]) - 1
    return rank


def _chain(graph: _Graph, a: int, b: int, longest: int) -> list[int]:
    """Connect two boxes through dummies, one in each row between them, or without any if they are more than ``longest`` rows apart."""
    if a == b:
        return []
    dummies: list[int] = []
    before = a
    between = range(graph.rank[a] + 1, graph.rank[b])
    for rank in between if len(between) < longest else ():
        dummy = len(graph.widths)
        graph.widths.append(DUMMY_WIDTH)
        graph.rank.append(rank)
        graph.up.append([])
        graph.down.append([])
        graph.down[before].append(dummy)
        graph.up[dummy].append(before)
        dummies.append(dummy)
        before = dummy
    graph.down[before].append(b)
    graph.up[b].append(before)
    return dummies


def _rows(graph: _Graph) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max(graph.rank) + 1)]
    for i, rank in enumerate(graph.rank):
        rows[rank].append(i)
    return rows


def _order(graph: _Graph, rows: list[list[int]]) -> None:
    """Order each row by the mean place of its neighbours in the row before, down and up in turn."""
    place = [0.0] * len(graph.widths)
    for row in rows:
        for i, node in enumerate(row):
            place[node] = float(i)
    for row, means in _sweeps(graph, rows, SWEEPS, place):
        row.sort(key=means.__getitem__)
        for i, node in enumerate(row):
            place[node] = float(i)


def _sweeps(graph: _Graph, rows: list[list[int]], sweeps: int, at: list[float]) -> Iterator[tuple[list[int], dict[int, float]]]:
    """Each row, in sweeps down and up, with the mean place of each node's neighbours in the row before. ``at`` changes in between."""
    for sweep in range(sweeps):
        down = sweep % 2 == 0
        near = graph.up if down else graph.down
        for row in rows if down else rows[::-1]:
            yield row, {node: sum(at[o] for o in near[node]) / len(near[node]) if near[node] else at[node] for node in row}


def _columns(graph: _Graph, rows: list[list[int]]) -> list[float]:
    """Places across: each box as near as its row allows to the mean of its neighbours; dummies pull hardest, so long lines are straight."""
    x = [0.0] * len(graph.widths)
    for row in rows:
        at = 0.0
        for node in row:
            x[node] = at + graph.widths[node] / 2
            at += graph.widths[node] + GAP_X
    for row, wanted in _sweeps(graph, rows, 2 * SWEEPS, x):
        _settle(row, wanted, graph.widths, x)
    return x


def _settle(row: list[int], wanted: dict[int, float], widths: list[float], x: list[float]) -> None:
    """Put a row where it wants to be, in its order and without overlap: neighbours that collide form a block, which moves as one."""
    blocks: list[tuple[float, float, list[int]]] = []
    for node in row:
        # A block is (sum of wanted left ends, width so far, members); its best left end is the mean.
        total, width, members = wanted[node] - widths[node] / 2, widths[node], [node]
        while blocks:
            before_total, before_width, before = blocks[-1]
            if before_total / len(before) + before_width + GAP_X <= total / len(members):
                break
            blocks.pop()
            shift = before_width + GAP_X
            total, width, members = before_total + total - shift * len(members), shift + width, before + members
        blocks.append((total, width, members))
    for total, _, members in blocks:
        at = total / len(members)
        for node in members:
            x[node] = at + widths[node] / 2
            at += widths[node] + GAP_X
