"""A graph with its fusions and calls opened: what an alignment sees, so that a node has the same neighbours in a fusion and outside.

    fused { p = parameter(0), ROOT t = tanh(p) }
    main  { x = parameter(0), ROOT f = fusion(x), calls=fused }        ->        x = parameter(0), ROOT t = tanh(x)

A fusion, the parameters of its body, and an element that is taken out of a tuple of the same graph are other names of a value that has a
place already.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.graph import Graph, Node, live
from irscope.graph.walk import LASTING, callees_first_of
from irscope.ops import hlo, sets
from irscope.ops.attributes import GetTupleElement

OPENED = sets.hlo("fusion call")
"""Operators whose body runs once, in place of the node."""
GROWTH = 4
"""A graph with all its calls opened has at most so many times the nodes of its module; otherwise only what is called once is opened."""
SPARE = 10_000


@dataclass(slots=True, eq=False)
class Flat:
    """Places, operands before users. ``operands[i]`` are places, ``users[i]`` pairs of a place and the number of its operand.

    ``frames[i]`` numbers the opened body that a place is in, 0 the graph itself; ``callers`` has the node of each frame, and ``inside`` the
    frame that it is in. ``aliases`` are nodes without a place of their own: (node, frame, the place of the value).
    """

    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    users: list[list[tuple[int, int]]] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    callers: list[Node | None] = field(default_factory=lambda: [None])
    inside: list[int] = field(default_factory=lambda: [-1])
    aliases: list[tuple[Node, int, int]] = field(default_factory=list)
    params: list[int] = field(default_factory=list)
    alive: list[bool] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    root: int = -1

    def add(self, node: Node, operands: tuple[int, ...], frame: int) -> int:
        """A place for a node."""
        self.nodes.append(node)
        self.operands.append(operands)
        self.frames.append(frame)
        return len(self.nodes) - 1

    def graph_of(self, frame: int) -> Graph:
        """The graph whose nodes are in a frame."""
        caller = self.callers[frame]
        return self.graph if caller is None else caller.bodies[0]


def sizes(graphs: Iterable[Graph]) -> dict[Graph, int]:
    """The number of nodes of each graph with all that it calls in place opened. The graphs are in order, callees first."""
    found: dict[Graph, int] = {}
    for graph in graphs:
        found[graph] = len(graph.nodes) + sum(found.get(body, 0) for node in graph.nodes if node.bodies and node.op in OPENED
                                              for body in node.bodies)
    return found


def closed_graphs(graphs: Iterable[Graph]) -> set[Graph]:
    """The graphs that are called more than once, if opening all calls would exceed :data:`GROWTH`; otherwise none."""
    order = callees_first_of(graphs)
    total = sum(len(graph.nodes) for graph in order)
    if max(sizes(order).values(), default=0) <= GROWTH * total + SPARE:
        return set()
    calls = Counter(body for graph in order for node in graph.nodes for body in node.bodies)
    return {graph for graph, times in calls.items() if times > 1}


def flatten(graph: Graph, closed: set[Graph]) -> Flat:
    """The graph with its fusions and calls opened, but for those of ``closed`` graphs."""
    flat = Flat(graph)
    lives = {graph: live(graph)}
    values: list[dict[Node, int]] = [{}]
    stack: list[tuple[Graph, int, int]] = [(graph, 0, 0)]  # a graph, its frame, and the next node
    while stack:
        current, frame, start = stack.pop()
        mine, alive = values[frame], lives[current]
        for index in range(start, len(current.nodes)):
            node = current.nodes[index]
            if not alive[index] or node in mine:
                continue
            operands = tuple([mine[o] for o in node.operands])
            if len(node.bodies) == 1 and node.op in OPENED and _opens(node, closed):
                stack.append((current, frame, index + 1))
                stack.append((_enter(flat, node, frame, operands, values, lives), len(flat.callers) - 1, 0))
                break
            mine[node] = _value(flat, node, operands, frame)
        else:
            _leave(flat, current, frame, values)
    flat.params = [values[0][param] for param in graph.params]
    flat.root = values[0][graph.root] if graph.root is not None else -1
    _link(flat)
    return flat


def _opens(node: Node, closed: set[Graph]) -> bool:
    body = node.bodies[0]
    return body not in closed and body.root is not None and len(body.params) == len(node.operands)


def _enter(flat: Flat, node: Node, frame: int, operands: tuple[int, ...], values: list[dict[Node, int]],
           lives: dict[Graph, list[bool]]) -> Graph:
    """Begin a frame, in which the parameters are the operands."""
    body = node.bodies[0]
    inner = len(flat.callers)
    flat.callers.append(node)
    flat.inside.append(frame)
    values.append(dict(zip(body.params, operands, strict=True)))
    flat.aliases += [(param, inner, place) for param, place in zip(body.params, operands, strict=True)]
    if body not in lives:
        lives[body] = live(body)
    return body


def _leave(flat: Flat, graph: Graph, frame: int, values: list[dict[Node, int]]) -> None:
    """The value of a caller is that of the root of its body."""
    caller = flat.callers[frame]
    if caller is not None:
        place = values[frame][graph.result()]
        values[flat.inside[frame]][caller] = place
        flat.aliases.append((caller, flat.inside[frame], place))
    if frame:
        values[frame] = {}


def _value(flat: Flat, node: Node, operands: tuple[int, ...], frame: int) -> int:
    """The place of a node: an element of a tuple of this graph is the operand of the tuple, and a barrier is its operand."""
    place = -1
    if node.op is hlo.opt_barrier and len(operands) == 1:
        place = operands[0]
    elif node.op is hlo.get_tuple_element and flat.nodes[operands[0]].op is hlo.tuple:
        index = GetTupleElement.of(node).index
        place = flat.operands[operands[0]][index] if 0 <= index < len(flat.operands[operands[0]]) else -1
    if place < 0:
        return flat.add(node, operands, frame)
    flat.aliases.append((node, frame, place))
    return place


def _link(flat: Flat) -> None:
    """Users, liveness, and the rank of each place in the post-order from the results."""
    n = len(flat.nodes)
    flat.users = [[] for _ in range(n)]
    starts = ([flat.root] if flat.root >= 0 else []) + [i for i in range(n) if flat.nodes[i].op.effect in LASTING] + flat.params
    starts += [i for i in reversed(range(n)) if flat.nodes[i].op is not hlo.tuple]  # a fusion may take what its body does not use
    flat.alive, flat.rank = [False] * n, [0] * n
    order = 0
    seen = [False] * n
    for start in starts:
        stack = [start]
        while stack:
            place = stack[-1]
            if flat.alive[place]:
                stack.pop()
                continue
            todo = [o for o in reversed(flat.operands[place]) if not seen[o]] if not seen[place] else []
            seen[place] = True
            if todo:
                stack += todo
                continue
            stack.pop()
            flat.alive[place], flat.rank[place] = True, order
            order += 1
    for place in range(n):
        if flat.alive[place]:
            for number, operand in enumerate(flat.operands[place]):
                flat.users[operand].append((place, number))
        else:
            flat.aliases.append((flat.nodes[place], flat.frames[place], -1))
