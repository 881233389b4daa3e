"""Loops of a known or computed number of steps, for expansions that cannot be unrolled."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.graph import Builder, Graph, Node, TensorType, TupleType
from irscope.graph.dtypes import S64
from irscope.ops.registry import get
from irscope.ops.tensors import Tensors

Step = Callable[[Tensors, Node, list[Node]], Sequence[Node]]


def repeat(t: Tensors, count: Node, state: Sequence[Node], step: Step) -> list[Node]:
    """``state`` after ``count`` (an s64 scalar) steps: ``step(t, i, state)`` builds the next state in the body of a ``while``.

    A step is closed: the values that it reads are part of the state, and may be passed on unchanged.
    """
    index = TensorType(S64, ())
    types = TupleType((index, index, *(x.type for x in state)))
    condition, inner, parts = _body(t, "condition", types)
    condition.root = inner.compare("LT", parts[0], parts[1])
    body, inner, parts = _body(t, "body", types)
    after = [inner.plus(parts[0], 1), parts[1], *step(inner, parts[0], parts[2:])]
    body.root = inner.emit("tuple", after, type=types)
    start = t.emit("tuple", (t.array(0, S64), count, *state), type=types)
    made = t.emit("while", (start,), {}, (condition, body), types)
    return [t.part(made, i + 2) for i in range(len(state))]


def _body(outer: Tensors, name: str, type: TupleType) -> tuple[Graph, Tensors, list[Node]]:
    """A body over one tuple, and its parts; what is computed in it stands for the nodes that the loop stands for."""
    graph = Graph(name)
    builder = Builder(graph)
    builder.at = outer.builder.at
    t = Tensors(builder)
    state = builder.param(get("parameter"), type, "state")
    return graph, t, [t.part(state, i) for i in range(len(type.elements))]
