"""Loops: unrolled where the number of trips is known and small, or sequences are carried; else a ``while``.

    y, ys = Loop(m, c, x) { y_out = ..., s = ... }        ys has a row for each trip: m rows are made, and those that ran are kept
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.expand.frames import captures
from irscope.expand.onnx.control import own_operands, require_form, require_tensors, truth
from irscope.expand.onnx.program import OnnxProgram, Values
from irscope.formats.onnx.inference import NEWEST
from irscope.formats.onnx.printer import results_of
from irscope.graph import Node, TensorType, TupleType, Type
from irscope.graph.dtypes import PRED, S64
from irscope.ops.faults import TypeFault
from irscope.source import UserError

UNROLLED = 16
"""Loops of at most this many trips are unrolled."""
MAX_UNROLLED = 4096
"""The most trips of a loop that must be unrolled because of the values that it carries."""
Trip = Callable[[Node, list[Node]], tuple[Node | None, list[Node], list[Node]]]
"""The number of the trip and the state -> whether to go on (None: yes), the next state, and a row of each stacked result."""

Run = Callable[[Node, Sequence[Any]], tuple[Node, Values, Values]]
"""The same for a body that may carry sequences."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """A ``while``: ``trips`` bounds the number of trips, ``go`` is the first condition."""

    name: str
    trips: int
    go: Node | None
    state: list[Node]


def loop(program: OnnxProgram, node: Node, values: Values) -> Values:
    """``Loop``. Without a first condition, that of the body is ignored, as the standard says (ONNX Runtime obeys it)."""
    own = own_operands(node)
    if len(node.bodies) != 1 or own < 2:
        raise program.fault(node, "it takes a number of trips, a condition and a body")
    t, body = program.t, node.bodies[0]
    (captured,) = captures(node, values[own:])
    most, go, state = values[0], values[1], list(values[2:own])
    require_form(program, node, own, own - 1)
    if most is None and go is None:
        raise program.fault(node, "it has neither a number of trips nor a condition: it does not end, because the condition that its body "
                            "returns is ignored")
    trips = None if most is None else _number(program, node, most)
    first = None if go is None else truth(program, node, go)

    def run(number: Node, now: Sequence[Any]) -> tuple[Node, Values, Values]:
        start = first if first is not None else t.array(True, PRED)
        results = program.call(body, [number, start, *now, *captured])
        more = truth(program, node, results[0])
        return start if first is None else more, results[1:1 + len(state)], results[1 + len(state):]
    long = trips is not None and trips > UNROLLED and _holds(program, first)
    if (long or trips is None) and all(isinstance(s, Node) for s in state):
        made = _attempt(program, node, Rolled(node.name, -1 if trips is None else trips, first, state), run)
        if made is not None:
            return made
    return _unrolled(program, node, trips, first, state, run)


def _number(program: OnnxProgram, node: Node, most: Any) -> int | None:
    """The largest number of trips; None where it depends on data that are not given."""
    try:
        require_tensors([most], "the number of trips")
        return max(0, program.t.single(most, "the number of trips"))
    except TypeFault as fault:
        raise program.fault(node, str(fault)) from None


def _attempt(program: OnnxProgram, node: Node, rolled: Rolled, run: Run) -> Values | None:
    """The loop as a ``while``; None where the types of what it carries change, or it stacks results without a bound."""
    t = program.t

    def trip(number: Node, now: list[Node]) -> tuple[Node | None, list[Node], list[Node]]:
        go, after, rows = run(number, now)
        require_tensors([*after, *rows], "the values that a loop carries")
        known = t.known(go)
        return None if known is not None and bool(known) else go, after, rows
    try:
        made = while_loop(program, rolled, trip)
    except (TypeFault, UserError):
        return None
    if made is None:
        return None
    state, stacks, count = made
    if stacks and count is not None:
        try:
            kept = int(t.value(count, "the number of trips").item())
        except TypeFault as fault:
            raise program.fault(node, str(fault)) from None
        stacks = [t.slice_dim(s, 0, 0, kept) for s in stacks]
    return [*state, *stacks]


def _unrolled(program: OnnxProgram, node: Node, trips: int | None, first: Node | None, state: list[Any],
              run: Run) -> Values:
    """Trip by trip. A condition that depends on data is computed from the inputs, at each trip."""
    t, rows, at = program.t, [], 0
    go = first
    while trips is None or at < trips:
        try:
            if go is not None and not bool(t.value(go, "whether the loop goes on")):
                break
        except TypeFault as fault:
            raise program.fault(node, str(fault)) from None
        if at >= MAX_UNROLLED:
            raise program.fault(node, f"it takes more than {MAX_UNROLLED} trips, and what it carries changes its type or is a sequence")
        go, state, row = run(t.array(at, S64), state)
        rows.append(row)
        at += 1
    return [*state, *_stacked(program, node, rows, len(results_of(node.bodies[0])) - 1 - len(state))]


def _stacked(program: OnnxProgram, node: Node, rows: list[Values], count: int) -> Values:
    """The rows of each stacked result as one tensor; without any trip, one of the type that the body states."""
    t = program.t
    require_tensors([value for row in rows for value in row[:count]], "the stacked results")
    if rows:
        return [t.concat([t.reshape(row[i], (1, *t.shape(row[i]))) for row in rows], 0) for i in range(count)]
    made: Values = []
    results = results_of(node.bodies[0])
    for result in results[len(results) - count:]:
        if not isinstance(result.type, TensorType):
            raise program.fault(node, "no trip runs, and the model does not state the type of its stacked results")
        made.append(t.full((0, *(n if isinstance(n, int) else 0 for n in result.type.shape)), 0, result.type.dtype))
    return made


# ---------------------------------------------------------------------- while


def while_loop(program: OnnxProgram, rolled: Rolled, trip: Trip) -> tuple[list[Node], list[Node], Node | None] | None:
    """The final state, the stacked results with ``trips`` rows, and the number of trips that ran (None: all of them).

    None where the types of the state change from trip to trip, or results are stacked without a bound.
    """
    t = program.t
    state = [t.here(s) for s in rolled.state]
    index, go = t.array(0, S64), rolled.go if rolled.go is not None else t.array(True, PRED)
    types: list[Type] = [index.type, go.type, *(s.type for s in state)]
    n = len(types)
    with t.body(f"{rolled.name}.body") as body:
        parts = [t.own(body.part(type)) for type in types]
        more, after, rows = trip(parts[0], parts[2:])
        if [v.type for v in after] != types[2:] or (rows and rolled.trips < 0):
            return None
        stacks = [TensorType(t.dtype(row), (rolled.trips, *t.shape(row))) for row in rows]
        held = [t.own(body.part(type)) for type in stacks]
        zero = t.array(0, S64)
        written = [t.update_slice(h, t.reshape(row, (1, *t.shape(row))), (parts[0], *[zero] * t.rank(row)))
                   for h, row in zip(held, rows, strict=True)]
        results = [t.here(v) for v in (t.plus(parts[0], 1), t.array(True, PRED) if more is None else more, *after, *written)]
    is_counted = more is None and _holds(program, rolled.go)
    with t.body(f"{rolled.name}.condition") as test:
        asked = [t.own(test.part(types[0])), t.own(test.part(types[1]))]
        test.graph.root = asked[1]
        if rolled.trips >= 0:
            inside_bound = t.compare("LT", asked[0], t.array(rolled.trips, S64))
            test.graph.root = inside_bound if is_counted else t.binary("and", inside_bound, asked[1])
    for frame in (test, body):
        program.keep(frame.graph)
    made = t.loop(body, test, [index, t.here(go), *state, *(t.full(s.dims(), 0, s.dtype) for s in stacks)], results)
    final = [t.part(made, i) for i in range(n + len(stacks))]
    return final[2:n], final[n:], None if is_counted and rolled.trips >= 0 else final[0]


def _holds(program: OnnxProgram, go: Node | None) -> bool:
    """Whether the first condition is known to be true."""
    known = True if go is None else program.t.known(go)
    return known is not None and bool(known)


# ---------------------------------------------------------------------- scan


def scan(program: OnnxProgram, node: Node, values: Values) -> Values:
    """``Scan``: the operands are the initial state, then the tensors that are scanned. Version 8 has a batch dimension, and is refused."""
    own = own_operands(node)
    if int(node.attrs.get("opset", NEWEST)) < 9:
        raise program.fault(node, "Scan of version 8 is not supported", "convert the model to a newer version of the operators")
    inputs = node.attrs.get("num_scan_inputs")
    if len(node.bodies) != 1 or not isinstance(inputs, int) or not 0 < inputs <= own:
        raise program.fault(node, "it takes num_scan_inputs and a body")
    t, body, states = program.t, node.bodies[0], own - inputs
    (captured,) = captures(node, values[own:])
    state, scanned = list(values[:states]), list(values[states:own])
    require_form(program, node, own, states)
    require_tensors([*state, *scanned], "the operands")
    axes = _listed(program, node, "scan_input_axes", inputs)
    places = [t.axis(x, d) for x, d in zip(scanned, axes, strict=True)]
    scanned = [t.transpose(x, [d, *(i for i in range(t.rank(x)) if i != d)]) for x, d in zip(scanned, places, strict=True)]
    back = _listed(program, node, "scan_input_directions", inputs)
    scanned = [t.reverse(x, [0]) if b else x for x, b in zip(scanned, back, strict=True)]
    lengths = {t.shape(x)[0] for x in scanned}
    if len(lengths) != 1:
        raise program.fault(node, f"the tensors have {sorted(lengths)} slices")
    (trips,) = lengths

    def trip(number: Node, now: list[Node]) -> tuple[Node | None, list[Node], list[Node]]:
        zero = t.array(0, S64)
        rows = [t.reshape(t.dynamic_slice(x, (number, *[zero] * (t.rank(x) - 1)), (1, *t.shape(x)[1:])), t.shape(x)[1:]) for x in scanned]
        results = program.call(body, [*now, *rows, *captured])
        require_tensors(results, "the results of the body")
        return None, results[:states], results[states:]
    made = None
    if trips > UNROLLED:
        made = while_loop(program, Rolled(node.name, trips, None, state), trip)
    if made is not None:
        state, stacks = made[0], made[1]
    else:
        rows = []
        for i in range(trips):
            parts = [t.reshape(t.slice_dim(x, 0, i, i + 1), t.shape(x)[1:]) for x in scanned]
            results = program.call(body, [*state, *parts, *captured])
            state = results[:states]
            rows.append(results[states:])
        stacks = _stacked(program, node, rows, len(results_of(body)) - states)
    return [*state, *_placed(program, node, stacks)]


def _listed(program: OnnxProgram, node: Node, name: str, count: int) -> list[int]:
    given = node.attrs.get(name) or [0] * count
    if not isinstance(given, list) or len(given) != count or not all(isinstance(v, int) for v in given):
        raise program.fault(node, f"{name} has {count} integers")
    return given


def _placed(program: OnnxProgram, node: Node, stacks: list[Node]) -> list[Node]:
    """Stacked results in their directions, along their axes."""
    t = program.t
    back, axes = (_listed(program, node, name, len(stacks)) for name in ("scan_output_directions", "scan_output_axes"))
    made = [t.reverse(x, [0]) if b else x for x, b in zip(stacks, back, strict=True)]
    places = [t.axis(x, d) for x, d in zip(made, axes, strict=True)]
    return [t.transpose(x, [*range(1, d + 1), 0, *range(d + 1, t.rank(x))]) for x, d in zip(made, places, strict=True)]


def sequence_map(program: OnnxProgram, node: Node, values: Values) -> Values:
    """``SequenceMap``: the body for each element of the first sequence; other sequences go along, tensors stay."""
    own = own_operands(node)
    if len(node.bodies) != 1 or own < 1:
        raise program.fault(node, "it takes a sequence and a body")
    (captured,) = captures(node, values[own:])
    first, others = values[0], values[1:own]
    if not isinstance(first, list):
        raise program.fault(node, "its first operand is a sequence")
    count = len(node.type.elements) if isinstance(node.type, TupleType) else 1
    require_form(program, node, own, count)
    if any(len(o) != len(first) for o in others if isinstance(o, list)):
        raise program.fault(node, f"its sequences must have equal lengths, not {[len(o) for o in values[:own] if isinstance(o, list)]}")
    rows = []
    for i, x in enumerate(first):
        beside = [o[i] if isinstance(o, list) else o for o in others]
        rows.append(program.call(node.bodies[0], [x, *beside, *captured]))
    return [[row[i] for row in rows] for i in range(count)]
