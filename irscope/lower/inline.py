"""Evaluates a body graph on values during code generation: reducers, comparators, the functions of map and scatter."""
from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import cast

from irscope.graph import Graph, Node, TensorType, TupleType
from irscope.graph.node import Emitter
from irscope.graph.walk import callees_first_of
from irscope.lower.arithmetic import Arithmetic
from irscope.lower.tile import Expr
from irscope.lower.values import scalar_value
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement
from irscope.ops.bodies import require_shallow
from irscope.source.budget import require_nodes

_SAME = hlo.named("reshape copy bitcast broadcast transpose opt-barrier domain add-dependency")
_CALLS = hlo.named("call fusion map")
Values = list[Expr]
MOST_NODES = 1 << 17
"""Nodes that one scalar body may become: LLVM takes seconds for as many."""


class NoScalarMeaning(Exception):
    """A body uses an operator that has no meaning on single values."""

    def __init__(self, graph: Graph, node: Node, why: str) -> None:
        super().__init__(f"{graph.name}: %{node.name} = {node.type} {node.op.name}(...) {why}")
        self.graph, self.node, self.why = graph, node, why


def evaluate(k: Arithmetic, graph: Graph, args: Sequence[Expr]) -> Values:
    """The leaves of a body's result. ``args`` are the leaves of its parameters, in order.

    Results, constants too, have the lanes of the arguments. A reducer may be written in another float precision than its operands: the
    arguments are converted to the parameters' types.
    """
    lanes = max((arg.lanes for arg in args), default=1)
    return [k.splat(leaf, lanes) for leaf in _called(k, graph, list(args))]


def _called(k: Arithmetic, graph: Graph, args: Values) -> Values:
    """Evaluate a body and those that it calls, with a stack of their own: they may nest in thousands."""
    _check_size(graph)
    require_shallow(graph)
    stack, given = [_run(k, graph, args)], None
    while True:
        try:
            stack.append(_run(k, *stack[-1].send(given)))
            given = None
        except StopIteration as done:
            stack.pop()
            given = cast(Values, done.value)
            if not stack:
                return given


def _check_size(graph: Graph) -> None:
    """Raise BudgetExceeded where calls within calls would double the nodes too often."""
    count: dict[Graph, int] = {}
    for callee in callees_first_of([graph]):
        count[callee] = sum(1 + sum(count.get(body, 0) for body in node.bodies) for node in callee.nodes)
        require_nodes(count[callee], f"evaluating the calls of {callee.name}", MOST_NODES)


def _run(k: Arithmetic, graph: Graph, args: Values) -> Generator[tuple[Graph, Values], Values | None, Values]:
    """Evaluate a body; yields each call, and is sent its result."""
    held: list[Values] = [[] for _ in graph.nodes]
    taken = 0
    for param in graph.params:
        leaves = list(param.type.leaves())
        held[param.index] = [k.convert(arg, leaf.dtype) if isinstance(leaf, TensorType) else arg for arg, leaf in zip(args[taken:], leaves)]
        taken += len(leaves)
    if taken != len(args):
        raise ValueError(f"{graph.name} takes {taken} values, not {len(args)}")
    for node in _needed(graph):
        if node.op in _CALLS:
            held[node.index] = (yield node.bodies[0], [leaf for o in node.operands for leaf in held[o.index]]) or []
        elif node.op is not hlo.parameter:
            held[node.index] = _node(k, graph, node, [held[o.index] for o in node.operands])
    return held[graph.result().index]


def _node(k: Arithmetic, graph: Graph, node: Node, operands: list[Values]) -> Values:
    op = node.op
    if op is hlo.tuple:
        return [leaf for operand in operands for leaf in operand]
    if op is hlo.get_tuple_element:
        source = node.operands[0].type
        if not isinstance(source, TupleType):
            raise NoScalarMeaning(graph, node, "takes an element of a value that is not a tuple")
        sizes = [sum(1 for _ in t.leaves()) for t in source.elements]
        index = GetTupleElement.of(node).index
        begin = sum(sizes[:index])
        return operands[0][begin:begin + sizes[index]]
    if not isinstance(node.type, TensorType) or node.type.elements != 1:
        raise NoScalarMeaning(graph, node, "is not a single value")
    dtype = node.type.dtype
    if op is hlo.constant:
        return [k.const(scalar_value(node), dtype)]
    if op is hlo.iota:
        return [k.const(0, dtype)]
    if node.op.scalar is not None:
        return [cast(Expr, node.op.scalar(k, node, *(operand[0] for operand in operands)))]
    if node.op.element is not None and all(len(operand) == 1 for operand in operands):
        return [cast(Expr, node.op.element(cast(Emitter, k), node, [k.index(0)] * node.type.rank, lambda i, index: operands[i][0]))]
    if op in _SAME:
        return [operands[0][0]]
    raise NoScalarMeaning(graph, node, "has no meaning on single values")


def _needed(graph: Graph) -> list[Node]:
    """The nodes that the result depends on, in order."""
    seen = {graph.result().index}
    stack = [graph.result()]
    while stack:
        for operand in stack.pop().operands:
            if operand.index not in seen:
                seen.add(operand.index)
                stack.append(operand)
    return [node for node in graph.nodes if node.index in seen]
