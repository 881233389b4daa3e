"""Traversal orders and reachability; no recursion, because real graphs are a million nodes deep."""
from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from irscope.graph.module import Module
from irscope.graph.node import Effect, Graph, Node, Op
from irscope.source.budget import require_parts

T = TypeVar("T", bound=Hashable)
I = TypeVar("I", bound="_Instruction")  # noqa: E741
LASTING = (Effect.WRITES, Effect.CONTROL)
"""Effects that keep a node without users alive."""


class Operators(Protocol):
    """A set of operators, of one dialect or of several."""

    def __contains__(self, op: Op, /) -> bool: ...


class _Instruction(Protocol):
    @property
    def op(self) -> Op: ...
    @property
    def operands(self: I) -> Sequence[I]: ...


def behind(instruction: I, ops: Operators) -> I:
    """The first instruction, following first operands, whose operator is not in ``ops``."""
    while instruction.op in ops and instruction.operands:
        instruction = instruction.operands[0]
    return instruction


def reachable(graph: Graph, roots: Iterable[Node], ends: Container[Node] = ()) -> list[bool]:
    """For each node, by index, whether a root needs its value. The nodes ``ends`` count as if they had no operands."""
    seen = [False] * len(graph.nodes)
    stack = list(roots)
    while stack:
        node = stack.pop()
        if not seen[node.index]:
            seen[node.index] = True
            if not ends or node not in ends:
                for operand in node.operands:
                    if not seen[operand.index]:
                        stack.append(operand)
    return seen


def live(graph: Graph, ends: Container[Node] = ()) -> list[bool]:
    """For each node, by index, whether the result or an effect needs it. Parameters are always live; ``ends`` need nothing themselves."""
    roots = [n for n in graph.nodes if n.op.effect in LASTING]
    roots += graph.params
    if graph.root is not None:
        roots.append(graph.root)
    return reachable(graph, roots, ends)


def callees_first(module: Module, entry: Graph | None = None) -> list[Graph]:
    """The graphs that ``entry`` (default: every graph of the module) reaches, each after the graphs it calls."""
    return callees_first_of([entry] if entry else module.graphs.values())


def callees_first_of(graphs: Iterable[Graph], known: Container[Graph] = ()) -> list[Graph]:
    """These graphs and all that they reach, each after the graphs it calls; called graphs that are ``known`` are left out."""
    return post_order(graphs, lambda graph: dict.fromkeys(body for body in bodies_of(graph) if body not in known))


def bodies_of(graph: Graph) -> Iterator[Graph]:
    """The graphs that the nodes of a graph call, in order, with repeats."""
    return (body for node in graph.nodes for body in node.bodies)


def leaves_of(value: object, parts: Callable[[Any], Sequence[Any] | None]) -> list[Any]:
    """The leaves of a nested value, in order: whatever has no ``parts`` (None).

    Raises BudgetExceeded where there are more than in any program: tuples that hold the previous one twice double with each line of text.
    """
    out: list[object] = []
    stack = [value]
    while stack:
        top = stack.pop()
        inside = parts(top)
        if inside is None:
            out.append(top)
            require_parts(len(out))
        else:
            stack.extend(reversed(inside))
            require_parts(len(stack))
    return out


def post_order(starts: Iterable[T], operands: Callable[[T], Iterable[T]]) -> list[T]:
    """The starts and all that they reach, in post-order: each comes after its operands, which are visited in order.

    In a cycle, an operand that the search has already entered may come later.
    """
    done: dict[T, bool] = {}
    order: list[T] = []
    for start in starts:
        stack = [start]
        while stack:
            current = stack[-1]
            state = done.get(current)
            if state is not None:
                stack.pop()
                if not state:
                    done[current] = True
                    order.append(current)
                continue
            before = [o for o in operands(current) if o not in done]
            if before:
                done[current] = False
                before.reverse()
                stack += before
            else:
                done[current] = True
                order.append(current)
                stack.pop()
    return order
