"""Branches and functions that call themselves: executed where the condition is known, else conditional and while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irscope.expand.relay.values import Function, nodes_of, rebuilt
from irscope.graph import Graph, Node, TupleType
from irscope.graph.dtypes import PRED
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.expand.relay.program import Program

MAX_TRIPS = 1000
"""A loop with more known trips than this stays a loop."""


def branch(program: Program, node: Node, values: list[Any]) -> Any:
    """``if``: operands are the condition and what each branch takes from outside."""
    arguments = _captures(node, values[1:])
    known = program.t.known(values[0])
    if known is not None:
        taken = 0 if known.item() else 1
        return program.call(node.bodies[taken], arguments[taken])
    return _conditional(program, node, values[0], arguments)


def _captures(node: Node, captured: list[Any]) -> list[list[Any]]:
    out, at = [], 0
    for body in node.bodies:
        n = body.notes.get("captures", 0)
        out.append(captured[at : at + n])
        at += n
    return out


def _tensors(program: Program, node: Node, value: Any) -> list[Node]:
    try:
        return nodes_of(value)
    except ValueError as fault:
        raise UserError(f"{fault}{program.where(node)}", "run each of the choices as a program of its own") from None


def _conditional(program: Program, node: Node, condition: Node, arguments: list[list[Any]]) -> Any:
    t = program.t
    frames, shapes = [], []
    for i, body in enumerate(node.bodies):
        with t.body(program.made.fresh_name(f"{node.name}.{('then', 'else')[i]}")) as frame:
            value = program.call(body, arguments[i])
            results = [t.here(leaf) for leaf in _tensors(program, node, value)]
            frame.finish(t.tuple(results))
        program.made.graphs[frame.graph.name] = frame.graph
        frames.append(frame)
        shapes.append(value)
    types = [frame.graph.result().type for frame in frames]
    if str(types[0]) != str(types[1]):
        raise UserError(f"the branches give {types[0]} and {types[1]}{program.where(node)}")
    flag = t.convert(t.reshape(condition, ()), PRED)
    operands = [t.tuple([t.here(c) for c in frame.captured]) for frame in frames]
    made = t.emit("conditional", (flag, *operands), {}, [f.graph for f in frames], types[0])
    assert isinstance(types[0], TupleType)
    return rebuilt(shapes[0], [t.part(made, i) for i in range(len(types[0].elements))])


# ---------------------------------------------------------------------- functions that call themselves


@dataclass(frozen=True, slots=True)
class TailLoop:
    """A function whose result is an ``if``, one branch of which ends by calling the function again.

    ``again`` is the number of that branch, ``call`` its last node.
    """

    branch: Node
    again: int
    call: Node


def tail_loop(function: Function) -> TailLoop | None:
    """How a function is a loop; None when it does not call itself. Raises UserError when it does so in any other way."""
    graph = function.graph
    calls = self_calls(function)
    if not calls:
        return None
    root = graph.root
    if root is not None and root.op.name == "if" and len(calls) == 1:
        for i, body in enumerate(root.bodies):
            if body.root is calls[0]:
                return TailLoop(root, i, calls[0])
    raise UserError(
        f"{graph.name} calls itself, and not only as the last thing it does",
        "a function `if (go) { @f(next...) } else { result }` becomes a loop; other recursions are not compiled",
    )


def self_calls(function: Function) -> list[Node]:
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
            if node.op.name == "call":
                if graph in node.bodies or ("callee" not in node.attrs and node.operands[0] in names):
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
    """How many values a block takes from around it."""
    return len(node.operands) if node.op.name == "fn" else int(body.notes.get("captures", 0))


def run_loop(program: Program, node: Node, function: Function, loop: TailLoop, arguments: list[Any]) -> Any:
    """Trips while the condition is known; what is left, a ``while``."""
    state = list(arguments)
    for _ in range(MAX_TRIPS):
        step = _Step(program, function, loop, state)
        known = program.t.known(step.condition)
        if known is None:
            return _rolled(program, node, function, loop, state)
        if bool(known.item()) != (loop.again == 0):
            return step.outside()
        state = step.next()
    return _rolled(program, node, function, loop, state)


class _Step:
    """One trip: everything in front of the ``if``, then one of its branches."""

    def __init__(self, program: Program, function: Function, loop: TailLoop, state: list[Any]) -> None:
        self.program, self.loop = program, loop
        graph = function.graph
        own = graph.notes.get("own", len(graph.params))
        if len(state) != own:
            raise UserError(f"@{graph.name} takes {own} arguments, and gets {len(state)}")
        self.values: dict[Node, Any] = dict(zip(graph.params, [*state, *function.captured], strict=True))
        needed = _needed(loop.branch)
        for inner in graph.nodes:
            if inner is not loop.branch and inner not in self.values and inner in needed:
                self.values[inner] = program.value(inner, [self.values[o] for o in inner.operands])
        self.condition: Node = self.values[loop.branch.operands[0]]

    def _arguments(self, way: int) -> list[Any]:
        return _captures(self.loop.branch, [self.values[o] for o in self.loop.branch.operands[1:]])[way]

    def outside(self) -> Any:
        """The result, when the loop ends here."""
        way = 1 - self.loop.again
        return self.program.call(self.loop.branch.bodies[way], self._arguments(way))

    def next(self) -> list[Any]:
        """The arguments of the next trip."""
        body = self.loop.branch.bodies[self.loop.again]
        values: dict[Node, Any] = dict(zip(body.params, self._arguments(self.loop.again), strict=True))
        for inner in body.nodes:
            if inner not in values and inner is not self.loop.call:
                values[inner] = self.program.value(inner, [values[o] for o in inner.operands])
        operands = self.loop.call.operands
        return [values[o] for o in (operands if "callee" in self.loop.call.attrs else operands[1:])]


def _needed(branch: Node) -> set[Node]:
    """What the branch takes, and all that this depends on."""
    found: set[Node] = set()
    stack = list(branch.operands)
    while stack:
        top = stack.pop()
        if top not in found:
            found.add(top)
            stack.extend(top.operands)
    return found


def _rolled(program: Program, node: Node, function: Function, loop: TailLoop, state: list[Any]) -> Any:
    """``while`` over the arguments; the result is computed behind it, from the last ones."""
    t = program.t
    start = [t.here(leaf) for leaf in _tensors(program, node, state)]
    name = program.made.fresh_name(f"{function.graph.name}.loop")
    types = [s.type for s in start]
    with t.body(f"{name}.body") as body:
        parts = [t.own(body.part(ty)) for ty in types]
        step = _Step(program, function, loop, rebuilt(state, parts))
        results = [t.here(leaf) for leaf in _tensors(program, node, step.next())]
        inside = [p for p in body.parts if p not in parts]
    given = [str(r.type) for r in results]
    if given != [str(ty) for ty in types]:
        raise UserError(f"the loop @{function.graph.name} carries {', '.join(map(str, types))}, and its next trip {', '.join(given)}")
    with t.body(f"{name}.condition") as test:
        own = [t.own(test.part(ty)) for ty in types]
        asked = _Step(program, function, loop, rebuilt(state, own))
        go = t.convert(t.reshape(t.here(asked.condition), ()), PRED)
        if loop.again == 1:
            go = t.unary("not", go)
        passed = [p for p in test.parts if p not in own]
    captured = list(dict.fromkeys([*body.captured, *test.captured]))
    whole = TupleType((*types, *(c.type for c in captured)))
    for frame, theirs in ((body, inside), (test, passed)):
        order = {c: len(types) + i for i, c in enumerate(captured)}
        for part, source in zip(theirs, frame.captured, strict=True):
            part.attrs = {"index": order[source]}
        frame.graph.params[0].type = whole
    test.graph.root = go
    with t.again(body):
        rest = []
        for i, c in enumerate(captured):
            known = dict(zip(body.captured, inside, strict=True)).get(c)
            rest.append(known if known is not None else _state_part(program, body, len(types) + i, c))
        body.graph.root = t.tuple([*results, *rest])
    for frame in (test, body):
        program.made.graphs[program.made.fresh_name(frame.graph.name)] = frame.graph
    made = t.emit("while", (t.tuple([*start, *[t.here(c) for c in captured]]),), {}, (test.graph, body.graph), whole)
    last = rebuilt(state, [t.part(made, i) for i in range(len(types))])
    return _Step(program, function, loop, last).outside()


def _state_part(program: Program, frame: Any, index: int, node: Node) -> Node:
    """A value that the body only hands on."""
    from irscope.ops import get

    made = frame.builder.add(get("get-tuple-element"), (frame.graph.params[0],), {"index": index}, node.type, synthetic=True)
    return program.t.own(made)
