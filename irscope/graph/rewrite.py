"""Copies a graph while changing it: passes return new graphs, and the old one stays available."""
from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence

from irscope.graph.builder import Builder
from irscope.graph.effects import kept
from irscope.graph.module import Module
from irscope.graph.node import Graph, Node
from irscope.graph.walk import callees_first

PREDECESSORS = "control_predecessors"
Rule = Callable[[Builder, Node, Sequence[Node]], Node | None]


class Replacements(dict[Graph, Graph]):
    """What each graph of a module has become; ``lasting`` keeps which of those before have effects that last, for all that call them."""

    def __init__(self) -> None:
        super().__init__()
        self.lasting: dict[Graph, bool] = {}


def copy_node(builder: Builder, node: Node, operands: Sequence[Node], bodies: Sequence[Graph] | None = None) -> Node:
    """Append a copy of ``node`` over new operands; it keeps name, type, attributes and place."""
    made = builder.copy(node, operands, bodies=bodies)
    made.origin = (node,)
    return made


def rewrite(
    graph: Graph, rule: Rule, bodies: dict[Graph, Graph] | None = None, keep_dead: bool = False, ends: Container[Node] = ()
) -> Graph:
    """A new graph in which ``rule(builder, node, new_operands)`` decides what each node becomes (None: a copy).

    ``bodies`` maps old callees to new ones. Dead nodes are dropped unless ``keep_dead``; parameters always stay. For the nodes ``ends``
    the rule gets no operands, and nodes that only they use are dead.
    Whatever the rule builds takes the node's loc and origin.
    """
    made = Graph(graph.name, loc=graph.loc, notes=dict(graph.notes))
    builder = Builder(made)
    alive = [True] * len(graph.nodes) if keep_dead else kept(graph, ends, bodies.lasting if isinstance(bodies, Replacements) else None)
    new: list[Node | None] = [None] * len(graph.nodes)
    params: dict[int, Node] = {}
    is_param = {p.index for p in graph.params}
    for node in graph.nodes:
        if not alive[node.index]:
            continue
        operands = [] if ends and node in ends else [_known(new[o.index]) for o in node.operands]
        builder.at = (node,)
        became = None if node.index in is_param else rule(builder, node, operands)
        if became is None:
            became = copy_node(builder, node, operands, [bodies.get(b, b) for b in node.bodies] if bodies else None)
        new[node.index] = became
        if node.index in is_param:
            params[node.index] = became
    made.params = [params[p.index] for p in graph.params]
    made.root = _known(new[graph.root.index]) if graph.root is not None else None
    keep_order(made, graph.nodes)
    return made


def keep_order(made: Graph, before: Iterable[Node]) -> None:
    """Let ``control-predecessors`` name only nodes that are left, in place: for a removed node, those that it had to follow itself.

        a = f32[2] negate(x), control-predecessors={p}
        b = f32[2] abs(x), control-predecessors={a}         ->     b = f32[2] abs(x), control-predecessors={p}
    """
    ordered = [node for node in made.nodes if PREDECESSORS in node.attrs]
    if not ordered:
        return
    places = {node.name: node.index for node in made.nodes}
    followed: dict[str, tuple[str, ...]] = {}
    for node in before:
        earlier = node.attrs.get(PREDECESSORS, ())
        if earlier and node.name not in places:  # of removed nodes there may be long chains: those that are left stand for them
            earlier = tuple(dict.fromkeys(each for name in earlier for each in ((name,) if name in places else followed.get(name, ()))))
        followed[node.name] = earlier
    for node in ordered:
        names = dict.fromkeys(node.attrs[PREDECESSORS])
        todo = [name for name in names if places.get(name, node.index) >= node.index]
        for name in todo:
            more = [other for other in followed.get(name, ()) if other not in names]
            names.update(dict.fromkeys(more))
            todo += [other for other in more if places.get(other, node.index) >= node.index]
        if todo:
            left = tuple(name for name in names if places.get(name, node.index) < node.index)
            node.attrs = {**node.attrs, PREDECESSORS: left} if left else {k: v for k, v in node.attrs.items() if k != PREDECESSORS}


def rewrite_module(module: Module, rule: Rule, keep_dead: bool = False) -> Module:
    """Every graph of a module rewritten by one rule, callees first; shared graphs stay shared."""
    made = module.derived()
    became = Replacements()
    for graph in callees_first(module):
        became[graph] = rewrite(graph, rule, became, keep_dead)
    rejoin(became)
    made.graphs = {name: became[g] for name, g in module.graphs.items()}
    return made


def rejoin(became: dict[Graph, Graph]) -> None:
    """Point calls at the replacements of their callees: a recursive function was copied before its replacement existed."""
    for before, after in became.items():
        for node in after.nodes if after is not before else ():
            if node.bodies and any(body in became for body in node.bodies):
                node.bodies = tuple(became.get(body, body) for body in node.bodies)


def see_through(made: Graph, before: Graph) -> Graph:
    """Replace each origin in ``made`` that is a node of ``before`` (which it was rewritten from) by the origins of that node.

    A chain of passes then keeps the first graph alive, and none of the intermediate ones.
    """
    nodes, n = before.nodes, len(before.nodes)
    for node in made.nodes:
        origin = node.origin
        if len(origin) == 1:  # nearly all have one, and it is in the graph before
            only = origin[0]
            if only.origin and 0 <= only.index < n and nodes[only.index] is only:
                node.origin = only.origin
        elif origin:
            deeper = [o.origin if o.origin and 0 <= o.index < n and nodes[o.index] is o else (o,) for o in origin]
            node.origin = tuple(dict.fromkeys(each for some in deeper for each in some))
    return made


def _known(node: Node | None) -> Node:
    assert node is not None, "operands stand before their users"
    return node
