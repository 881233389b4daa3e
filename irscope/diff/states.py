"""Loops and branches whose state is written differently: what they carry, and in which order, is no part of what they compute.

    while((x, 0, n)) of which x stays as it is, and n is read by nothing    ->    while((0, x))

A part that nothing reads is dropped. A constant that a loop carries unchanged moves into the loop. Of several parts that carry one value
unchanged, the first stays. The remaining parts are in the order in which the results need them.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from irscope.graph import Builder, Graph, Module, Node, TupleType, callees_first, live, rewrite, see_through
from irscope.graph.rewrite import copy_node
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement

Order = list[int]
"""The parts of a state that stay, by their old numbers, in their new order."""


def with_plain_states(module: Module) -> Module:
    """The module with the states of its loops and the operands of its branches in the one order that their use defines."""
    made = module.derived()
    became: dict[Graph, Graph] = {}
    for graph in callees_first(module, module.main()):
        became[graph] = see_through(rewrite(graph, _States(graph, became).rule, became), graph)
    for old, new in became.items():
        made.graphs[new.name if new.name not in made.graphs else made.fresh_name(new.name)] = new
        if old is module.main():
            made.entry = new.name
    return made


class _States:
    """Rewrites the loops and branches of one graph."""

    def __init__(self, graph: Graph, became: dict[Graph, Graph]) -> None:
        self.graph, self.became = graph, became
        self.orders: dict[Node, Order] = {}
        self.results = _results(graph)

    def rule(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        """The node with a plain state; None where it has none."""
        if node.op is hlo.get_tuple_element and node.operands[0] in self.orders:
            order = self.orders[node.operands[0]]
            return builder.add(hlo.get_tuple_element, operands, {"index": order.index(GetTupleElement.of(node).index)}, node.type)
        if node.op is hlo.while_ and not isinstance(node.type, TupleType):
            return self._single(builder, node, operands[0])
        if node.op is hlo.while_ and node in self.results:
            return self._loop(builder, node, operands[0])
        if node.op is hlo.conditional:
            return self._branches(builder, node, operands)
        return None

    def _loop(self, builder: Builder, node: Node, state: Node) -> Node | None:
        condition, body = (_shared(self.became[graph], state, self.became[node.bodies[1]]) for graph in node.bodies)
        if any(_reads_whole(graph) for graph in (condition, body)) or body.result().op is not hlo.tuple:
            return None
        constants = {i: part for i, part in _constants(state).items() if _is_kept(body, i)}
        order = [i for i in _needed(condition, body, self.results[node]) if i not in constants or i in self.results[node]]
        self.orders[node] = order
        bodies = [_narrowed(graph, order, constants, graph is body) for graph in (condition, body)]
        picked = _picked(builder, state, order)
        return builder.add(hlo.while_, (picked,), {}, picked.type, bodies, node.name)

    def _single(self, builder: Builder, node: Node, state: Node) -> Node:
        """A loop over one value carries a tuple of it."""
        condition, body = (_wrapped(self.became[graph]) for graph in node.bodies)
        root = Builder(body).add(hlo.tuple, (body.result(),), {}, TupleType((body.result().type,)))
        body.root = root
        whole = builder.add(hlo.tuple, (state,), {}, root.type)
        loop = builder.add(hlo.while_, (whole,), {}, whole.type, (condition, body), node.name)
        return builder.add(hlo.get_tuple_element, (loop,), {"index": 0}, node.type)

    def _branches(self, builder: Builder, node: Node, operands: Sequence[Node]) -> Node:
        given, bodies = [operands[0]], []
        for operand, body in zip(operands[1:], (self.became[graph] for graph in node.bodies), strict=True):
            if not isinstance(operand.type, TupleType) or _reads_whole(body):
                given.append(builder.add(hlo.tuple, (operand,), {}, TupleType((operand.type,))))
                bodies.append(_wrapped(body))
                continue
            constants = _constants(operand)
            order = [i for i in _reads(body, [body.result()], set()) if i not in constants]
            given.append(_picked(builder, operand, order))
            bodies.append(_narrowed(body, order, constants, False))
        return builder.add(hlo.conditional, given, {}, node.type, bodies, node.name)


def _results(graph: Graph) -> dict[Node, Order]:
    """The parts of each loop that the result of a graph needs, in the order in which it needs them, without loops whose state is used as a
    whole."""
    found: dict[Node, Order] = {node: [] for node in graph.nodes if node.op is hlo.while_}
    whole = {graph.root}
    for node in _in_order([graph.result()], set()):
        for operand in node.operands:
            if operand.op is hlo.while_:
                if node.op is hlo.get_tuple_element:
                    index = GetTupleElement.of(node).index
                    found[operand] += [index] if index not in found[operand] else []
                else:
                    whole.add(operand)
    return {node: order for node, order in found.items() if node not in whole}


def _in_order(starts: Iterable[Node], seen: set[Node]) -> Iterable[Node]:
    """The nodes that some nodes need, in depth-first pre-order, operands in their order."""
    for start in starts:
        stack = [start]
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            yield node
            stack.extend(reversed(node.operands))


def _reads(graph: Graph, starts: Iterable[Node], seen: set[Node]) -> Order:
    """The parts of the one parameter that some nodes need, in order."""
    found = [GetTupleElement.of(node).index for node in _in_order(starts, seen)
             if node.op is hlo.get_tuple_element and node.operands[0] is graph.params[0]]
    return list(dict.fromkeys(found))


def _needed(condition: Graph, body: Graph, results: Order) -> Order:
    """The parts of a state that the condition or the results need, directly or through other parts that are needed."""
    order = dict.fromkeys([*_reads(condition, [condition.result()], set()), *results])
    todo, seen = list(order), set[Node]()
    while todo:
        for part in _reads(body, [body.result().operands[todo.pop(0)]], seen):
            if part not in order:
                order[part] = None
                todo.append(part)
    return list(order)


def _reads_whole(graph: Graph) -> bool:
    """Whether a graph uses its parameter other than by its parts."""
    param = graph.params[0]
    alive = live(graph)
    return graph.root is param or any(param in node.operands and node.op is not hlo.get_tuple_element for node in graph.nodes
                                      if alive[node.index])


def _is_kept(body: Graph, index: int) -> bool:
    """Whether the body of a loop returns a part of its state as it came."""
    part = body.result().operands[index]
    return part.op is hlo.get_tuple_element and part.operands[0] is body.params[0] and GetTupleElement.of(part).index == index


def _shared(graph: Graph, state: Node, body: Graph) -> Graph:
    """A graph that reads the first of the parts of its state that a loop over ``body`` carries unchanged from one value."""
    if state.op is not hlo.tuple or body.result().op is not hlo.tuple:
        return graph
    first: dict[Node, int] = {}
    same = {i: first.setdefault(part, i) for i, part in enumerate(state.operands) if _is_kept(body, i)}
    if all(i == j for i, j in same.items()):
        return graph
    param = graph.params[0]

    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node.op is not hlo.get_tuple_element or node.operands[0] is not param:
            return None
        index = GetTupleElement.of(node).index
        return builder.add(hlo.get_tuple_element, operands, {"index": same.get(index, index)}, node.type)
    return see_through(rewrite(graph, rule), graph)


def _picked(builder: Builder, state: Node, order: Order) -> Node:
    """A tuple of some parts of a tuple."""
    assert isinstance(state.type, TupleType)
    types = state.type.elements
    parts = [state.operands[i] if state.op is hlo.tuple else builder.add(hlo.get_tuple_element, (state,), {"index": i}, types[i])
             for i in order]
    return builder.add(hlo.tuple, parts, {}, TupleType(tuple(part.type for part in parts)))


def _narrowed(graph: Graph, order: Order, constants: dict[int, Node], is_body: bool) -> Graph:
    """A graph that takes only the parts ``order`` of its state, with the constants inside; a body also returns only those parts."""
    param = graph.params[0]
    assert isinstance(param.type, TupleType)
    type = TupleType(tuple(param.type.elements[i] for i in order))

    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node.op is hlo.get_tuple_element and node.operands[0] is param:
            index = GetTupleElement.of(node).index
            if index in constants:
                return _copied(builder, constants[index])
            if index not in order:
                return builder.add(hlo.tuple, (), {}, TupleType(()))  # nothing needs it
            return builder.add(hlo.get_tuple_element, operands, {"index": order.index(index)}, node.type)
        if is_body and node is graph.root:
            return builder.add(hlo.tuple, [operands[i] for i in order], {}, TupleType(tuple(operands[i].type for i in order)))
        return None
    made = see_through(rewrite(graph, rule), graph)
    made.params[0].type = type
    return made


def _constants(state: Node) -> dict[int, Node]:
    """The parts of a tuple that are constants, or broadcasts of them."""
    parts = enumerate(state.operands) if state.op is hlo.tuple else ()
    return {i: part for i, part in parts if (part.operands[0] if part.op is hlo.broadcast else part).op is hlo.constant}


def _copied(builder: Builder, constant: Node) -> Node:
    """A constant, or the broadcast of one, in another graph."""
    operands = [_copied(builder, operand) for operand in constant.operands]
    return builder.add(constant.op, operands, constant.attrs, constant.type)


def _wrapped(graph: Graph) -> Graph:
    """A graph whose one parameter is in a tuple."""
    made = Graph(graph.name, loc=graph.loc)
    builder = Builder(made)
    new: list[Node] = []
    for node in graph.nodes:
        if node is graph.params[0]:
            whole = builder.param(hlo.parameter, TupleType((node.type,)), node.name)
            new.append(builder.add(hlo.get_tuple_element, (whole,), {"index": 0}, node.type))
        else:
            new.append(copy_node(builder, node, [new[o.index] for o in node.operands]))
    made.root = new[graph.result().index]
    return made
