"""Loops of a known or computed number of steps, for expansions that must go step by step."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from irscope.graph import Builder, Graph, Node, TupleType
from irscope.graph.dtypes import S32, S64
from irscope.ops.registry import get
from irscope.ops.tensors import Tensors

Step = Callable[[Tensors, Node, list[Node]], Sequence[Node]]
"""One step: the algebra of the body, the number of the step (from 0), and the values before it -> the values after it.

A body captures nothing: the values that a step reads are part of the state, and it returns those that it does not change. It must not
change their types.
"""


def counted(t: Tensors, trips: int, state: Sequence[Node], step: Step, name: str = "loop") -> list[Node]:
    """``state`` after ``trips`` steps. They are counted in s32; ``notes["trips"]`` of the body is their number."""
    def test(inner: Tensors, parts: list[Node]) -> Node:
        return inner.compare("LT", parts[0], inner.array(trips, S32))

    def body(inner: Tensors, parts: list[Node]) -> list[Node]:
        return [inner.plus(parts[0], 1), *step(inner, parts[0], parts[1:])]
    made = _while(t, [t.array(0, S32), *state], f"{name}.", test, body)
    made.bodies[1].notes["trips"] = trips
    return [t.part(made, i + 1) for i in range(len(state))]


def repeat(t: Tensors, count: Node, state: Sequence[Node], step: Step) -> list[Node]:
    """``state`` after ``count`` steps. ``count`` is an s64 scalar, and steps are counted in s64."""
    def test(inner: Tensors, parts: list[Node]) -> Node:
        return inner.compare("LT", parts[0], parts[1])

    def body(inner: Tensors, parts: list[Node]) -> list[Node]:
        return [inner.plus(parts[0], 1), parts[1], *step(inner, parts[0], parts[2:])]
    made = _while(t, [t.array(0, S64), count, *state], "", test, body)
    return [t.part(made, i + 2) for i in range(len(state))]


def _while(t: Tensors, start: Sequence[Node], prefix: str, test: Callable[[Tensors, list[Node]], Node],
           step: Callable[[Tensors, list[Node]], list[Node]]) -> Node:
    """Emit a ``while`` over a tuple. The nodes of its bodies have the same origin as the loop."""
    type = TupleType(tuple(x.type for x in start))
    bodies = []
    for name in ("condition", "body"):
        graph = Graph(prefix + name)
        inner = Tensors(Builder(graph))
        inner.builder.at = t.builder.at
        whole = inner.builder.param(get("parameter"), type, "state")
        parts = [inner.part(whole, i) for i in range(len(start))]
        graph.root = test(inner, parts) if name == "condition" else inner.emit("tuple", step(inner, parts), type=type)
        bodies.append(graph)
    return t.emit("while", (t.emit("tuple", start, type=type),), {}, bodies, type)
