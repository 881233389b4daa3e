"""Loop-invariant code motion (LICM): hoists values that are the same in every iteration out of a loop."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.graph import Builder, Graph, Module, Node, TensorType, TupleType, Type, bodies_of, live, pure, reachable, rewrite, see_through
from irscope.graph.rewrite import copy_node
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement, Ordering
from irscope.passes.base import Pass, per_graph

CHEAP = hlo.named("parameter constant get-tuple-element tuple iota broadcast reshape bitcast")
"""Operators that are not worth a value that lives through the whole loop."""


class HoistLoopInvariant(Pass):
    """Hoist nodes in the body of an HLO ``while`` that depend only on loop-invariant values to before the loop.

        body { p = (s32[], f32[8]) parameter(0)                 e = f32[8] exponential(w)
               w = f32[8] get-tuple-element(p), index=1   ->    init = (s32[], f32[8], f32[8]) tuple(i, w, e)
               e = f32[8] exponential(w)  ... }                 loop = ... while(init), ...   where the body reads e from its state

    If the loop runs no iteration, the hoisted work is wasted, but the result is the same.
    """

    name = "hoist-loop-invariant"
    opt_level = 2

    def run(self, module: Module) -> Module:
        if not module.is_primitive:
            return module
        made = per_graph(module, _hoisted)
        # Nothing calls the loops' old bodies now.
        called = {made.main(), *(body for graph in made.graphs.values() for body in bodies_of(graph))}
        before = {body for graph in module.graphs.values() for body in bodies_of(graph)}
        made.graphs = {name: graph for name, graph in made.graphs.items() if graph in called or module.graphs[name] not in before}
        for body in [body for graph in made.graphs.values() for body in bodies_of(graph)]:
            if all(body is not g for g in made.graphs.values()):
                body.name = made.fresh_name(body.name)
                made.graphs = {body.name: body, **made.graphs}
        return made


def _hoisted(graph: Graph, became: dict[Graph, Graph]) -> Graph:
    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node.op is not hlo.while_:
            return None
        condition, body = (became.get(b, b) for b in node.bodies)
        return _loop(builder, node, operands[0], condition, body)
    return see_through(rewrite(graph, rule, became), graph)


def _loop(builder: Builder, node: Node, init: Node, condition: Graph, body: Graph) -> Node | None:
    """The loop with its invariant values hoisted before it; None if there are none."""
    invariant = invariant_nodes(body)
    alive = live(body)
    users = body.users()
    outgoing = [n for n in invariant if n.op not in CHEAP and alive[n.index] and any(u not in invariant for u in users[n.index])]
    if not outgoing or not isinstance(init.type, TupleType):
        return None
    parts = {inner for inner in invariant if _is_part_of(inner, body.params[0])}
    needed = reachable(body, outgoing, ends=parts)
    early: dict[Node, Node] = {}
    for inner in invariant:
        if inner in parts and needed[inner.index]:
            early[inner] = part(builder, init, GetTupleElement.of(inner).index)
        elif needed[inner.index]:
            early[inner] = copy_node(builder, inner, [early[o] for o in inner.operands])
    n = len(init.type.elements)
    state = TupleType((*init.type.elements, *(o.type for o in outgoing)))
    first = builder.add(hlo.tuple, [*(part(builder, init, i) for i in range(n)), *(early[o] for o in outgoing)], type=state)
    bodies = (_over(condition, state, {}), _over(body, state, {o: n + i for i, o in enumerate(outgoing)}))
    loop = builder.add(node.op, [first], node.attrs, state, bodies, name=node.name)
    return builder.add(hlo.tuple, [part(builder, loop, i) for i in range(n)], type=init.type)


def invariant_nodes(body: Graph) -> dict[Node, None]:
    """The pure nodes of a loop's body that have the same value in every iteration, in order."""
    root, state = body.result(), body.params[0]
    found: dict[Node, None] = {}
    if root.op is not hlo.tuple:
        return found
    kept = {i for i, o in enumerate(root.operands) if _is_part_of(o, state) and GetTupleElement.of(o).index == i}
    can_move = pure(body)
    for node in body.nodes:
        if _is_part_of(node, state):
            fixed = GetTupleElement.of(node).index in kept
        else:
            movable = can_move[node.index] and not Ordering.of(node).control_predecessors and node.op is not hlo.parameter
            fixed = movable and isinstance(node.type, TensorType) and all(o in found for o in node.operands)
        if fixed:
            found[node] = None
    return found


def _is_part_of(node: Node, state: Node) -> bool:
    """Whether a node is an element of the loop's state, and not one of a tuple inside it."""
    return node.op is hlo.get_tuple_element and node.operands[0] is state


def part(builder: Builder, whole: Node, index: int) -> Node:
    """One element of a tuple."""
    if whole.op is hlo.tuple:
        return whole.operands[index]
    assert isinstance(whole.type, TupleType), "its elements were counted"
    return builder.add(hlo.get_tuple_element, [whole], {"index": index}, whole.type.elements[index])


def _over(graph: Graph, state: Type, read: dict[Node, int]) -> Graph:
    """A body or condition over an extended state: the nodes in ``read`` are its elements; a body passes the new elements on."""
    made = Graph(graph.name, loc=graph.loc, notes=dict(graph.notes))
    builder = Builder(made)
    param = graph.params[0]
    whole = builder.param(param.op, state, param.name)
    assert isinstance(state, TupleType) and isinstance(param.type, TupleType), "the state of a loop with parts is a tuple"
    became: dict[Node, Node] = {param: whole}
    old = None
    for node in graph.nodes:
        if node is param:
            continue
        if node in read:
            became[node] = part(builder, whole, read[node])
        elif node.op is hlo.get_tuple_element and node.operands[0] is param:
            became[node] = copy_node(builder, node, [whole])
        else:
            if param in node.operands and old is None:
                old = builder.add(hlo.tuple, [part(builder, whole, i) for i in range(len(param.type.elements))], type=param.type)
            became[node] = copy_node(builder, node, [old if o is param and old is not None else became[o] for o in node.operands])
    root = became[graph.result()]
    if read:
        rest = [part(builder, whole, i) for i in range(len(param.type.elements), len(state.elements))]
        root = builder.add(hlo.tuple, [*root.operands, *rest], type=state)
    made.root = root
    return see_through(rewrite(made, lambda b, n, o: None), made)
