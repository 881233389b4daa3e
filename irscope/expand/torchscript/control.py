"""Branches and loops: executed where the condition is known, else built as ``conditional`` and ``while``."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from irscope.expand.frames import captures
from irscope.expand.torchscript.branches import Body, Raise, conditional
from irscope.expand.torchscript.loops import RolledLoop, roll
from irscope.expand.torchscript.program import Handler, TorchProgram
from irscope.expand.torchscript.structure import has_tensor
from irscope.formats.torchscript.abstract import Scalar, Tensor
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S64
from irscope.ops.faults import TypeFault

MAX_UNROLLED = 256
"""A loop over tensors with more known trips than this stays a loop."""
NO_LIMIT = 1 << 62
"""As many trips as a text writes for a loop that has only a condition."""


def branch(program: TorchProgram, node: Node, values: list[object]) -> Any:
    """``prim::If``."""
    if not values or len(node.bodies) != 2:
        raise TypeFault("it takes a condition and two bodies")
    condition, captured = values[0], values[1:]
    bodies = [partial(program.call, body, arguments) for body, arguments in zip(node.bodies, captures(node, captured), strict=True)]
    return _results(node, chosen(program, node, condition, bodies, captured))


def chosen(program: TorchProgram, node: Node, condition: object, bodies: Sequence[Body], captured: Sequence[object]) -> list[Any]:
    """The results of the first body where the condition holds, else of the second."""
    known = _known(condition)
    if not isinstance(known, Scalar | Tensor):
        return bodies[0 if known else 1]()
    flag = known.node if isinstance(known, Scalar) else program.t.convert(program.t.reshape(known.get(), ()), PRED)
    return conditional(program, node, flag, bodies, captured)


def raising(program: TorchProgram, node: Node, values: list[object]) -> object:
    """``prim::RaiseException``: an end of this way through the program."""
    raise Raise(str(values[0]) if values else "an exception")


def loop(program: TorchProgram, node: Node, values: list[Any]) -> Any:
    """``prim::Loop(trips, condition, carried...)``."""
    if len(values) < 2 or len(node.bodies) != 1:
        raise TypeFault("it takes a number of trips, a condition and a body")
    body = node.bodies[0]
    own = body.notes.get("own")
    if not own:
        raise TypeFault("its body is a block that takes the number of the trip")
    trips, condition, carried = values[0], values[1], values[2:2 + own - 1]
    captured = values[2 + own - 1:]
    def step(number: Any, values: list[Any]) -> list[Any]:
        return program.call(body, [number, *values, *captured])
    return _results(node, repeated(program, RolledLoop(node, step, trips, condition, carried, captured)))


def repeated(program: TorchProgram, loop: RolledLoop) -> list[Any]:
    """The values after a loop: unrolled as long as its condition is known, then rolled."""
    trips, condition, carried = _known(loop.trips), _known(loop.condition), loop.carried
    if not isinstance(trips, bool | int | float | Scalar | Tensor):
        raise TypeFault(f"the number of trips is of type {type(trips).__name__}")
    if isinstance(trips, float) and not trips.is_integer():
        raise TypeFault(f"the number of trips is {trips}")
    if isinstance(trips, Scalar | Tensor):
        trips = _counted(program, trips)
    done = 0
    while not isinstance(condition, Scalar | Tensor) and not isinstance(trips, Scalar | Tensor):
        if not condition or done >= trips:
            return carried
        if done == 0 and trips > MAX_UNROLLED and trips < NO_LIMIT and has_tensor(carried):
            break
        program.step(loop.node)  # its body may be empty
        got = loop.step(done, carried)
        if not got:
            raise TypeFault("its body does not return a condition")
        condition, carried = _known(got[0]), got[1:]
        done += 1
    return roll(program, replace(loop, trips=trips, condition=condition, carried=carried, done=done))


def _counted(program: TorchProgram, trips: Scalar | Tensor) -> Scalar:
    """A number of trips that only data tell, as an int. Raises TypeFault where it is of another type, or of several elements."""
    t = program.t
    number = trips.node if isinstance(trips, Scalar) else trips.get()
    if t.dtype(number).kind not in ("int", "uint", "pred"):
        raise TypeFault(f"the number of trips is of type {t.dtype(number)}")
    return Scalar(t.convert(t.reshape(number, ()), S64), "int")


def _known(value: Any) -> Any:
    """The number of a tensor that is one."""
    return value.known.item() if isinstance(value, Tensor) and value.known is not None else value


def _results(node: Node, got: Sequence[object]) -> object:
    """One value, or the list of several."""
    if node.name.startswith("("):
        return list(got)
    return got[0] if got else None


NODES: dict[str, Handler] = {"prim::If": branch, "prim::Loop": loop, "prim::RaiseException": raising}
