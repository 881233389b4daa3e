"""Loops with a known number of trips, for expansions that must go step by step."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.graph import Builder, Graph, Node, TupleType
from irscope.graph.dtypes import S32
from irscope.ops.registry import get
from irscope.ops.tensors import Tensors

Step = Callable[[Tensors, Node, list[Node]], Sequence[Node]]
"""One trip: the algebra of the body, the number of the trip (s32), and the values before -> the values after it."""


def counted(t: Tensors, trips: int, state: Sequence[Node], step: Step, name: str = "loop") -> list[Node]:
    """``state`` after this many trips, as a ``while``; ``notes["trips"]`` of its body is their number.

    A body is closed: the values that a trip reads are part of the state, and it returns those that it does not change. Types do not change.
    """
    start = [t.array(0, S32), *state]
    type = TupleType(tuple(node.type for node in start))

    def inside(which: str) -> tuple[Graph, Tensors, list[Node]]:
        graph = Graph(f"{name}.{which}")
        builder = Builder(graph)
        builder.at = t.builder.at
        whole = builder.param(get("parameter"), type, "state")
        inner = Tensors(builder)
        return graph, inner, [inner.part(whole, i) for i in range(len(start))]
    condition, inner, parts = inside("condition")
    condition.root = inner.compare("LT", parts[0], inner.array(trips, S32))
    body, inner, parts = inside("body")
    made = [inner.plus(parts[0], 1), *step(inner, parts[0], parts[1:])]
    body.root = inner.emit("tuple", made, type=type)
    body.notes["trips"] = trips
    first = t.emit("tuple", start, type=type)
    last = t.emit("while", (first,), {}, (condition, body), type)
    return [t.part(last, i + 1) for i in range(len(state))]
