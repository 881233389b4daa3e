"""Tail-recursive functions: unrolled while the condition is known, else a ``while``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irscope.expand.frames import captures
from irscope.expand.relay.choices import tensors, truth
from irscope.expand.relay.program import RelayProgram, Run
from irscope.expand.relay.values import Closure, rebuilt, unlike
from irscope.formats.relay import structure
from irscope.formats.relay.attributes import Callee
from irscope.graph import Graph, Node, Type
from irscope.source import UserError

MAX_TRIPS = 1000
"""A loop with more known trips than this stays a loop."""


@dataclass(frozen=True, slots=True)
class TailLoop:
    """A tail-recursive function: its result is an ``if``, and one branch ends by calling the function.

    ``again`` is the index of that branch, ``call`` its last node.
    """

    branch: Node
    again: int
    call: Node


def tail_loop(function: Closure) -> TailLoop | None:
    """The loop of a tail-recursive function; None for any other function.

    Raises UserError where it calls itself unconditionally.
    """
    graph = function.graph
    calls = self_calls(function)
    if not calls:
        return None
    for node in graph.nodes:
        if node in calls:
            raise UserError(f"@{graph.name} calls itself in front of any choice, so it never ends",
                            "a function `if (go) { @f(next...) } else { result }` becomes a loop")
    root = graph.root
    if root is not None and root.op is structure.IF and len(calls) == 1:
        for i, body in enumerate(root.bodies):
            if body.root is calls[0]:
                return TailLoop(root, i, calls[0])
    return None


def self_calls(function: Closure) -> list[Node]:
    """The calls of a function inside itself, in its blocks too: by its global name, or by the value that it captured of itself."""
    graph = function.graph
    own = graph.notes.get("own", len(graph.params))
    itself = {p for p, value in zip(graph.params[own:], function.captured, strict=True) if value is function}
    found: list[Node] = []
    stack: list[tuple[Graph, set[Node]]] = [(graph, itself)]
    seen: set[Graph] = set()
    while stack:
        top, names = stack.pop()
        if top in seen:
            continue
        seen.add(top)
        for node in top.nodes:
            if node.op is structure.CALL:
                if graph in node.bodies or (Callee.of(node).callee is None and node.operands[0] in names):
                    found.append(node)
                continue
            at = len(node.operands) - sum(_taken(body, node) for body in node.bodies)
            for body in node.bodies:
                n = _taken(body, node)
                given = node.operands[at : at + n]
                at += n
                params = body.params[len(body.params) - n :] if n else []
                stack.append((body, {p for p, o in zip(params, given, strict=True) if o in names}))
    return found


def _taken(body: Graph, node: Node) -> int:
    """The number of values that a block captures."""
    return len(node.operands) if node.op is structure.FUNCTION else int(body.notes.get("captures", 0))


def run_loop(program: RelayProgram, node: Node, function: Closure, loop: TailLoop, arguments: list[object]) -> Run:
    """Unroll iterations while the condition is known; the rest becomes a ``while``."""
    state = list(arguments)
    for _ in range(MAX_TRIPS):
        step = _Step(program, function, loop, state)
        yield from step.begin()
        known = program.t.known(step.condition)
        if known is None:
            break
        if bool(known.item()) != (loop.again == 0):
            return (yield step.outside())
        state = yield from step.next()
    return (yield from _rolled(program, node, function, loop, state))


class _Step:
    """One iteration: everything before the ``if``, then one of its branches."""

    def __init__(self, program: RelayProgram, function: Closure, loop: TailLoop, state: list[object]) -> None:
        self.program, self.graph, self.loop = program, function.graph, loop
        own = self.graph.notes.get("own", len(self.graph.params))
        if len(state) != own:
            raise UserError(f"@{self.graph.name} takes {own} arguments, and gets {len(state)}")
        self.values: dict[Node, Any] = dict(zip(self.graph.params, [*state, *function.captured], strict=True))

    def begin(self) -> Run:
        """Compute what the ``if`` needs."""
        yield from self.program.fill(self.graph, self.values, _needed(self.loop.branch))

    @property
    def condition(self) -> Node:
        return truth(self.program, self.loop.branch, self.values[self.loop.branch.operands[0]])

    def _arguments(self, way: int) -> list[object]:
        return captures(self.loop.branch, [self.values[o] for o in self.loop.branch.operands[1:]])[way]

    def outside(self) -> Run:
        """The result when the loop ends with this iteration."""
        way = 1 - self.loop.again
        return self.program.call(self.loop.branch.bodies[way], self._arguments(way))

    def next(self) -> Run:
        """The arguments of the next iteration."""
        body = self.loop.branch.bodies[self.loop.again]
        values: dict[Node, object] = dict(zip(body.params, self._arguments(self.loop.again), strict=True))
        yield from self.program.fill(body, values, set(body.nodes) - {self.loop.call})
        operands = self.loop.call.operands
        return [values[o] for o in (operands if Callee.of(self.loop.call).callee is not None else operands[1:])]


def _needed(branch: Node) -> set[Node]:
    """The operands of the branch (its condition and its captures), and everything that they depend on."""
    found: set[Node] = set()
    stack = list(branch.operands)
    while stack:
        top = stack.pop()
        if top not in found:
            found.add(top)
            stack.extend(top.operands)
    return found


def _rolled(program: RelayProgram, node: Node, function: Closure, loop: TailLoop, state: list[Any]) -> Run:
    """``while`` over the arguments; the result is computed after it, from the final ones."""
    t = program.t
    program.at(node)
    start = [t.here(leaf) for leaf in tensors(program, node, state)]
    name = f"{function.graph.name}.loop"
    types = [s.type for s in start]
    with program.nested(node), program.journal() as journal:
        with t.body(f"{name}.body") as body:
            parts = [t.own(body.part(ty)) for ty in types]
            step = _Step(program, function, loop, rebuilt(state, parts))
            yield from step.begin()
            after = yield from step.next()
            program.at(node)
            results = [t.here(leaf) for leaf in tensors(program, node, after)]
        with t.body(f"{name}.condition") as test:
            own = [t.own(test.part(ty)) for ty in types]
            asked = _Step(program, function, loop, rebuilt(state, own))
            yield from asked.begin()
            program.at(node)
            go = t.here(asked.condition)
            test.graph.root = t.unary("not", go) if loop.again == 1 else go
    _check(f"the loop @{function.graph.name} carries", program.where(node), (state, types), (after, [r.type for r in results]))
    if journal.undo():
        raise UserError(f"the loop @{function.graph.name} writes a reference from around it{program.where(node)}",
                        "hand the value from trip to trip as an argument")
    for frame in (test, body):
        program.keep(frame.graph)
    made = t.loop(body, test, start, results)
    last = _Step(program, function, loop, rebuilt(state, [t.part(made, i) for i in range(len(types))]))
    yield from last.begin()
    return (yield last.outside())


def _check(subject: str, where: str, before: tuple[object, list[Type]], after: tuple[object, list[Type]]) -> None:
    """Check that an iteration passes on the structure that it received: the same lists and data, with tensors of the same types."""
    other = unlike(before[0], after[0])
    if other is not None:
        raise UserError(f"{subject} {other[0]}, and its next trip {other[1]}{where}",
                        "the number of iterations depends on data: each must pass on values of the same constructors")
    carried, later = (", ".join(map(str, types)) for _, types in (before, after))
    if carried != later:
        raise UserError(f"{subject} {carried}, and its next trip {later}{where}")
