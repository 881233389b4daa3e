"""Loops whose end depends on data: ``while`` over (i, go, carried..., contents of containers..., written..., limit, captured...)."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.expand.frames import Frame
from irscope.expand.torchscript import aliases
from irscope.expand.torchscript.branches import like, node_of_leaf
from irscope.expand.torchscript.containers import Contents, Place
from irscope.expand.torchscript.merging import MISSING, filled, slots, unified
from irscope.expand.torchscript.program import TorchProgram
from irscope.expand.torchscript.structure import describe, flatten, rebuild
from irscope.formats.torchscript.abstract import Maybe, Scalar, Tensor, TensorStorage, Uninitialized
from irscope.graph import Node, TensorType, Type
from irscope.graph.dtypes import PRED, S64
from irscope.ops.faults import TypeFault

MOST_RUNS = 50
"""The most runs of a body. It is run again while it writes, changes or omits values that the state of the loop does not have yet."""


STEPS = 256
"""What the body of a loop costs, in runs of a node: it has parts for all that the loop carries, and those inside it run again with it."""


class Wider(Exception):
    """An iteration sets a value that the state has no place for: it was None or unset before."""


class LoopState:
    """What an iteration passes to the next: the carried values, contents of containers, and storages that the body writes.

    ``doubts`` has the outer storages whose values are unknown after an iteration, and why: a later iteration must not read them.
    """

    def __init__(self, carried: list[object], held: dict[Place, object], touched: list[TensorStorage],
                 doubts: dict[TensorStorage, str]) -> None:
        self.carried = carried
        self.held = held
        self.touched = touched
        self.doubts = doubts

    @property
    def values(self) -> list[Any]:
        return [self.carried, list(self.held.values())]


@dataclass(frozen=True, slots=True)
class RolledLoop:
    """A loop of at most ``trips`` iterations, after ``done`` unrolled ones.

    ``step(number, carried)`` runs an iteration, and returns whether there is another one, and what it carries. ``captured`` are the other
    values that it reads.
    """

    node: Node
    step: Callable[[Any, list[Any]], list[Any]]
    trips: Any
    condition: Any
    carried: list[Any]
    captured: Sequence[Any]
    done: int = 0


class Trip:
    """One run of the body into a frame. ``wider`` is the state that it needs, None where the state was sufficient: then ``results`` are the
    parts of the next state, (i, go, values..., written...), and ``leaving`` the values. Storages from outside have a serial below
    ``first``.
    """

    def __init__(self, program: TorchProgram, loop: RolledLoop, state: LoopState, types: list[Any], contents: Contents, first: int) -> None:
        t, node = program.t, loop.node
        self.wider: LoopState | None = None
        after: list[Any] = []
        with t.body(f"{node.name}.body") as self.frame:
            frame, leaves = self.frame, _leaves(state.values)
            i, _ = (t.own(frame.part(TensorType(dtype, ()))) for dtype in (S64, PRED))
            inside = [t.own(frame.part(type)) for type in types]
            held = [t.own(frame.part(storage.last().type)) for storage in state.touched]
            journal = t.journals[-1]
            for storage, part in zip(state.touched, held, strict=True):
                journal[storage] = storage.last()
                storage.set(part)
            entering = [like(v, p) for v, p in zip(leaves, inside, strict=True)]
            aliases.join(program, node, entering, (leaves,))
            carried, contained = _with_leaves(state.values, entering)
            for place, value in zip(state.held, contained, strict=True):
                contents.put(place, value)
            for storage, why in state.doubts.items():
                t.doubt(storage, why)
            try:
                got = loop.step(Scalar(i, "int"), carried)
                if not got:
                    raise TypeFault("its body does not return a condition")
                changed = contents.changed()
                found = [storage for storage in journal if storage not in state.touched]
                doubts = {storage: why for storage, why in t.doubts[-1].items() if storage.serial < first}
                places = {p: contents.before(p) for p in changed if p not in state.held}
                after = [list(got[1:]), [changed.get(p, value) for p, value in zip(state.held, contained, strict=True)]]
                follow = t.convert(t.reshape(t.here(node_of_leaf(program, got[0])), ()), PRED)
                fits = True
                try:
                    self.leaving = _fitted(state.values, after)
                except Wider:
                    fits = False
                right = fits and not found and not places and doubts.keys() <= state.doubts.keys()
                if right:
                    self.results = [t.add(i, t.array(1, S64)), follow]
                    for end, part in zip(self.leaving, inside, strict=True):
                        value = t.full(t.shape(part), 0, t.dtype(part)) if end is MISSING else t.here(node_of_leaf(program, end))
                        self.results.append(t.convert(value, t.dtype(part)))
                    self.results += [t.here(storage.last()) for storage in state.touched]
                    aliases.check_carried(entering, self.leaving, journal)
                else:
                    for leaf in _leaves(after):
                        if isinstance(leaf, Tensor):
                            leaf.get()
            finally:
                contents.restore()
                self.doubts = t.doubts[-1]
                for storage, before in journal.items():
                    storage.set(before)
        if not fits:
            state = _widened(program, state, after)
        if not right:
            self.wider = LoopState(state.carried, {**state.held, **places}, [*state.touched, *found], {**state.doubts, **doubts})


def _leaves(value: object) -> list[Any]:
    """The parts of a value that compiled code carries."""
    return [leaf for leaf in flatten(value) if isinstance(leaf, Tensor | Scalar | bool | int | float)]


def _with_leaves(value: object, leaves: Sequence[object]) -> Any:
    """The inverse of :func:`_leaves`: the value with other leaves. Strings and objects stay."""
    remaining = iter(leaves)
    return rebuild(value, [next(remaining) if isinstance(leaf, Tensor | Scalar | bool | int | float) else leaf for leaf in flatten(value)])


def _fitted(state: object, after: object) -> list[Any]:
    """The leaves after an iteration, fitted to the state. Raises Wider, or TypeFault where no state fits both."""
    if isinstance(after, Uninitialized):
        return [MISSING for _ in _leaves(state)]
    if isinstance(state, Maybe):
        if after is None:
            return [False, *(MISSING for _ in _leaves(state.value))]
        present, value = (after.present, after.value) if isinstance(after, Maybe) else (True, after)
        return [*_fitted(state.present, present), *_fitted(state.value, value)]
    if state is None and after is None:
        return []
    if state is None or after is None or isinstance(state, Uninitialized) or isinstance(after, Maybe):
        raise Wider
    if isinstance(state, list | tuple) and type(state) is type(after) and len(state) == len(after):
        return [leaf for a, b in zip(state, after, strict=True) for leaf in _fitted(a, b)]
    if isinstance(state, dict) and isinstance(after, dict) and list(state) == list(after):
        return [leaf for key in state for leaf in _fitted(state[key], after[key])]
    if _leaves(state) == [state] and _leaves(after) == [after]:
        return [after]
    if type(state) is type(after) and not isinstance(state, list | tuple | dict) and state == after:
        return []
    raise TypeFault(f"a loop whose end depends on data carries {describe(state)}, and a trip makes {describe(after)} of it")


def _widened(program: TorchProgram, state: LoopState, after: list[Any]) -> LoopState:
    """The state before the loop, extended for what an iteration sets."""
    t = program.t
    both = unified(state.values, after)
    starts: list[Any] = []
    for gap in slots(both):
        if gap.first is not MISSING:
            starts.append(gap.first)
        elif isinstance(gap.second, Tensor | Scalar):
            type = t.type(gap.second.get() if isinstance(gap.second, Tensor) else gap.second.node)
            starts.append(like(gap.second, t.full(type.dims(), 0, type.dtype)))
    carried, held = filled(both, starts)
    return LoopState(carried, dict(zip(state.held, held, strict=True)), state.touched, state.doubts)


def roll(program: TorchProgram, loop: RolledLoop) -> list[Any]:
    """The values after a loop on data."""
    t, node = program.t, loop.node
    contents = Contents(program, [*loop.carried, *loop.captured])
    state = LoopState(list(loop.carried), {}, [], {})
    first = TensorStorage().serial
    for _ in range(MOST_RUNS):
        start = [node_of_leaf(program, v) for v in _leaves(state.values)]
        program.step(node, STEPS)
        trip = Trip(program, loop, state, [s.type for s in start], contents, first)
        if trip.wider is None:
            break
        state = trip.wider
    else:
        raise TypeFault("a loop whose end depends on data changes what it carries with every iteration")
    frame, kinds = trip.frame, _leaves(state.values)
    limit = loop.trips.node if isinstance(loop.trips, Scalar) else t.array(min(int(loop.trips), (1 << 63) - 1), S64)
    go = t.convert(t.reshape(node_of_leaf(program, loop.condition), ()), PRED)
    written = [t.here(storage.last()) for storage in state.touched]
    parts = [t.array(loop.done, S64), go, *[t.here(s) for s in start], *written, limit]
    with t.again(frame):
        results = [*trip.results, t.own(frame.part(limit.type))]
    _check_state(parts, results)
    test = _condition_body(program, f"{node.name}.condition", [part.type for part in (*parts, *frame.captured)], len(parts) - 1)
    program.keep(test.graph)
    program.keep(frame.graph)
    made = t.loop(frame, test, parts, results)
    n = len(start) + len(written)
    ends = [t.part(made, k) for k in range(2, 2 + n)]
    for storage, part in zip(state.touched, ends[len(start):], strict=True):
        aliases.announce(program, storage)
        storage.set(part)
    for storage, why in trip.doubts.items():
        t.doubt(storage, why)
    given = [like(v, p) for v, p in zip(kinds, ends[:len(start)], strict=True)]
    aliases.join(program, node, given, (kinds, trip.leaving))
    values, held = _with_leaves(state.values, given)
    for place, value in zip(state.held, held, strict=True):
        contents.put(place, value)
    carried: list[Any] = values
    return carried


def _condition_body(program: TorchProgram, name: str, types: Sequence[Type], limit_at: int) -> Frame:
    """The frame of the condition, ``go and i < limit``: its parameter has parts of these types."""
    t = program.t
    with t.body(name) as frame:
        parts = [t.own(frame.part(type)) for type in types]
        frame.graph.root = t.binary("and", parts[1], t.compare("LT", parts[0], parts[limit_at]))
        return frame


def _check_state(before: Sequence[Node], after: Sequence[Node]) -> None:
    """Check that the body of a loop returns the types of the state that it takes. Raises TypeFault for another type."""
    for a, b in zip(after, before, strict=True):
        if str(a.type) != str(b.type):
            raise TypeFault(f"a loop whose end depends on data carries {b.type}, but its body returns {a.type}")
