"""Branches and loops: executed where the condition is known, else built as conditional and while with bodies."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from irscope.expand.torchscript.structure import flatten, has_tensor, rebuild
from irscope.formats.torchscript.abstract import Scalar, Tensor
from irscope.graph import Graph, Node, TupleType
from irscope.graph.dtypes import F64, PRED, S64
from irscope.source import UserError

if TYPE_CHECKING:
    from irscope.expand.frames import Frame
    from irscope.expand.torchscript.program import Program

MAX_UNROLLED = 256
"""A loop over tensors with more known trips than this stays a loop."""

KINDS = {PRED: "bool", S64: "int", F64: "float"}


class Raise(Exception):
    """The program raises an exception: what it says."""


def branch(program: Program, node: Node, values: list[Any]) -> Any:
    """``prim::If``."""
    condition, captured = values[0], values[1:]
    arguments = _captures(node, captured)
    known = condition.known.item() if isinstance(condition, Tensor) and condition.known is not None else condition
    if not isinstance(known, Scalar | Tensor):
        taken = 0 if known else 1
        return _results(node, program.call(node.bodies[taken], arguments[taken]))
    flag = known.node if isinstance(known, Scalar) else program.t.convert(program.t.reshape(known.get(), ()), PRED)
    return _results(node, _conditional(program, node, flag, arguments))


def raising(program: Program, node: Node, values: list[Any]) -> Any:
    """``prim::RaiseException``: an end of this way through the program."""
    raise Raise(str(values[0]) if values else "an exception")


def loop(program: Program, node: Node, values: list[Any]) -> Any:
    """``prim::Loop(trips, condition, carried...)``."""
    body = node.bodies[0]
    own = body.notes["own"]
    trips, condition, carried = values[0], values[1], values[2:2 + own - 1]
    captured = values[2 + own - 1:]
    if isinstance(trips, Tensor) and trips.known is not None:
        trips = trips.known.item()
    unrolled = 0
    while not isinstance(condition, Scalar | Tensor) and not isinstance(trips, Scalar | Tensor):
        if not condition or unrolled >= trips:
            return _results(node, carried)
        if unrolled == 0 and trips > MAX_UNROLLED and trips < (1 << 62) and has_tensor(carried):
            break
        got = program.call(body, [unrolled, *carried, *captured])
        condition, carried = got[0], got[1:]
        if isinstance(condition, Tensor) and condition.known is not None:
            condition = bool(condition.known.item())
        unrolled += 1
    return _results(node, _rolled(program, node, body, trips, condition, carried, captured, unrolled))


def _captures(node: Node, captured: Sequence[Any]) -> list[list[Any]]:
    """What each body takes from outside."""
    out, at = [], 0
    for body in node.bodies:
        n = body.notes["captures"]
        out.append(list(captured[at:at + n]))
        at += n
    return out


def _results(node: Node, got: Sequence[Any]) -> Any:
    """One value, or the list of several."""
    if node.name.startswith("("):
        return list(got)
    return got[0] if got else None


# ---------------------------------------------------------------------- conditional

class _Way:
    """One branch, run into a body of its own: its results, and what it wrote."""

    def __init__(self, frame: Frame, results: list[Any], written: dict[Tensor, Node]) -> None:
        self.frame = frame
        self.results = results
        self.written = written


def _conditional(program: Program, node: Node, flag: Node, arguments: list[list[Any]]) -> list[Any]:
    t = program.t
    ways: list[_Way | None] = []
    reasons: list[str] = []
    for i, body in enumerate(node.bodies):
        try:
            ways.append(_run_into(program, f"{node.name}.{i}", body, arguments[i]))
        except Raise as reason:
            # The other way is what the program is for; this one would have ended it.
            ways.append(None)
            reasons.append(str(reason))
    first, second = ways
    if first is None or second is None:
        if first is None and second is None:
            raise Raise(reasons[0])
        return program.call(node.bodies[0 if second is None else 1], arguments[0 if second is None else 1])
    touched = list(dict.fromkeys([*first.written, *second.written]))
    shape = first.results
    leaves: list[list[Any]] = [flatten(way.results) for way in (first, second)]
    if len(leaves[0]) != len(leaves[1]):
        raise ValueError("the two branches return different numbers of values, and the condition depends on data")
    plain = [_equal(a, b) for a, b in zip(*leaves, strict=True)]
    results: list[list[Node]] = []
    for way, values in zip((first, second), leaves, strict=True):
        with t.again(way.frame):
            nodes = [t.here(_as_node(program, v)) for v, same in zip(values, plain, strict=True) if not same]
            nodes += [t.here(way.written.get(tensor, tensor.get())) for tensor in touched]
            results.append(nodes)
    _same_types(program, (first, second), results)
    for way, nodes in zip((first, second), results, strict=True):
        with t.again(way.frame):
            way.frame.finish(t.tuple(nodes))
    operands = [t.tuple([t.here(c) for c in way.frame.captured]) for way in (first, second)]
    bodies = [way.frame.graph for way in (first, second)]
    for body in bodies:
        program.made.graphs[program.made.fresh_name(body.name)] = body
    made = t.emit("conditional", (flag, *operands), {}, bodies, bodies[0].result().type)
    parts = [t.part(made, i) for i in range(len(results[0]))]
    for tensor, node_ in zip(touched, parts[len(parts) - len(touched):], strict=True):
        program.write(tensor, node_)
    fresh = iter(parts)
    merged = [v if same else _like(v, next(fresh)) for v, same in zip(leaves[0], plain, strict=True)]
    rebuilt: list[Any] = rebuild(shape, merged)
    return rebuilt


def _run_into(program: Program, name: str, body: Graph, arguments: list[Any]) -> _Way:
    """Run a block into a new body; what it writes outside is taken back afterwards and told."""
    t = program.t
    with t.body(name) as frame:
        journal = t.journals[-1]
        attributes = dict(program.attributes)
        try:
            results = program.call(body, arguments)
            written = {tensor: tensor.get() for tensor in journal if t._owner.get(journal[tensor]) is not frame}
            for leaf in flatten(results):
                if isinstance(leaf, Tensor):
                    leaf.get()
            results = [rebuild(r, [Tensor(leaf.get()) if isinstance(leaf, Tensor) and leaf.known is None else leaf for leaf in flatten(r)])
                       for r in results]
        finally:
            program.attributes = {k: v for k, v in program.attributes.items() if k in attributes or not has_tensor(v)} | attributes
            for tensor, before in journal.items():
                tensor.set(before)
    return _Way(frame, results, written)


def _equal(a: Any, b: Any) -> bool:
    """Whether both branches give the same plain value."""
    if isinstance(a, Tensor | Scalar) or isinstance(b, Tensor | Scalar):
        return False
    return type(a) is type(b) and a == b


def _as_node(program: Program, value: Any) -> Node:
    if isinstance(value, Tensor):
        return value.get()
    if isinstance(value, Scalar):
        return value.node
    if isinstance(value, bool | int | float):
        return program.t.array(value, PRED if isinstance(value, bool) else S64 if isinstance(value, int) else F64)
    raise UserError(f"a value that depends on data is {type(value).__name__}, which no machine code can hold")


def _like(value: Any, node: Node) -> Any:
    """A result of a conditional or loop as the program knows it: a tensor, or a number that depends on data."""
    if isinstance(value, Tensor):
        return Tensor(node)
    kind = value.kind if isinstance(value, Scalar) else "bool" if isinstance(value, bool) else "int" if isinstance(value, int) else "float"
    return Scalar(node, kind)


def _same_types(program: Program, ways: tuple[_Way, _Way], results: list[list[Node]]) -> None:
    """Both ways give values of the same types; element types are promoted, shapes must be equal."""
    t = program.t
    for i, (a, b) in enumerate(zip(*results, strict=True)):
        if t.shape(a) != t.shape(b):
            raise ValueError(f"the branches give {a.type} and {b.type}, and which one is taken depends on data")
        if t.dtype(a) is not t.dtype(b):
            dtype = t.result_type(a, b)
            for way, nodes in zip(ways, results, strict=True):
                with t.again(way.frame):
                    nodes[i] = t.convert(nodes[i], dtype)


# ---------------------------------------------------------------------- while

def _rolled(program: Program, node: Node, body: Graph, trips: Any, condition: Any, carried: list[Any], captured: list[Any],
            done: int) -> list[Any]:
    """A loop whose end depends on data: ``while`` over (i, go, carried..., written..., captured...)."""
    t = program.t
    start = [_as_node(program, v) for v in flatten(carried)]
    if len(start) != len(flatten(carried)):
        raise ValueError("a loop carries values that are no tensors")
    touched: list[Tensor] = []
    kinds = flatten(carried)
    while True:
        before = [tensor.get() for tensor in touched]
        frame, results, found = _loop_body(program, f"{node.name}.body", body, carried, kinds, start, touched, captured)
        new = [tensor for tensor in found if tensor not in touched]
        for tensor, old in zip(touched, before, strict=True):
            tensor.set(old)
        if not new:
            break
        touched += new
    limit = trips.node if isinstance(trips, Scalar) else t.array(min(int(trips), (1 << 63) - 1), S64)
    go = _as_node(program, condition)
    go = t.convert(t.reshape(go, ()), PRED)
    i = t.array(done, S64)
    fixed = [t.here(c) for c in frame.captured]
    state = [i, go, *[t.here(s) for s in start], *[t.here(tensor.get()) for tensor in touched], limit, *fixed]
    with t.again(frame):
        kept = [frame.part(limit.type)]
        t.own(kept[0])
        # The parts that were captured stand behind the limit in the state, whenever they were asked for.
        passed = [p for p in frame.parts if p in frame.captured_parts]
        order = [*frame.state_parts, kept[0], *passed]
        for place, part in enumerate(order):
            part.attrs = {"index": place}
        frame.parts[:] = order
        frame.finish(t.tuple([*results, kept[0], *passed]))
    types = TupleType(tuple(s.type for s in state))
    test = _condition_body(program, f"{node.name}.condition", types, 2 + len(start) + len(touched))
    program.made.graphs[program.made.fresh_name(test.name)] = test
    program.made.graphs[program.made.fresh_name(frame.graph.name)] = frame.graph
    _check_state(node, frame.graph.result(), types)
    made = t.emit("while", (t.tuple(state),), {}, (test, frame.graph), types)
    parts = [t.part(made, k) for k in range(2, 2 + len(start) + len(touched))]
    for tensor, part in zip(touched, parts[len(start):], strict=True):
        program.write(tensor, part)
    rebuilt: list[Any] = rebuild(carried, [_like(v, p) for v, p in zip(kinds, parts[:len(start)], strict=True)])
    return rebuilt


def _loop_body(program: Program, name: str, body: Graph, carried: list[Any], kinds: list[Any], start: list[Node], touched: list[Tensor],
               captured: list[Any]) -> tuple[Frame, list[Node], list[Tensor]]:
    """One run of the body into a frame: the next (i, go, carried..., written...), and which tensors from outside it wrote."""
    t = program.t
    with t.body(name) as frame:
        from irscope.graph import TensorType
        i, go = t.own(frame.part(TensorType(S64, ()))), t.own(frame.part(TensorType(PRED, ())))
        inside = [t.own(frame.part(s.type)) for s in start]
        held = [t.own(frame.part(tensor.get().type)) for tensor in touched]
        frame.state_parts = [i, go, *inside, *held]
        journal = t.journals[-1]
        for tensor, part in zip(touched, held, strict=True):
            journal[tensor] = tensor.get()
            tensor.set(part)
        values = rebuild(carried, [_like(v, p) for v, p in zip(kinds, inside, strict=True)])
        try:
            got = program.call(body, [Scalar(i, "int"), *values, *captured])
            follow = t.convert(t.reshape(t.here(_as_node(program, got[0])), ()), PRED)
            after = [t.here(_as_node(program, v)) for v in flatten(list(got[1:]))]
            after = [t.convert(a, t.dtype(s)) for a, s in zip(after, start, strict=True)]
            found = [tensor for tensor in journal if t._owner.get(journal[tensor]) is not frame]
            results = [t.add(i, t.array(1, S64)), follow, *after, *[t.here(tensor.get()) for tensor in touched]]
        finally:
            for tensor, before in journal.items():
                tensor.set(before)
        frame.captured_parts = [p for p in frame.parts if p not in frame.state_parts]
    return frame, results, found


def _condition_body(program: Program, name: str, types: TupleType, limit_at: int) -> Graph:
    """``go and i < limit``."""
    t = program.t
    with t.body(name) as frame:
        parts = [t.own(frame.part(e)) for e in types.elements]
        frame.finish(t.binary("and", parts[1], t.compare("LT", parts[0], parts[limit_at])))
        return frame.graph


def _check_state(node: Node, root: Node, types: TupleType) -> None:
    """A while loop gives what it takes."""
    assert isinstance(root.type, TupleType)
    for a, b in zip(root.type.elements, types.elements, strict=True):
        if str(a) != str(b):
            raise ValueError(f"a loop whose end depends on data carries {b}, but its body gives {a}")


NODES: dict[str, Callable[[Program, Node, list[Any]], Any]] = {"prim::If": branch, "prim::Loop": loop, "prim::RaiseException": raising}
