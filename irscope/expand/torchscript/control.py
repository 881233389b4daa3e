"""Branches and loops: executed where the condition is known, else built as ``conditional`` and ``while``."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from irscope.expand.frames import captures
from irscope.expand.torchscript.branches import Raise, conditional
from irscope.expand.torchscript.loops import Rolled, roll
from irscope.expand.torchscript.program import Program
from irscope.expand.torchscript.structure import has_tensor
from irscope.formats.torchscript.abstract import Scalar, Tensor
from irscope.graph import Node
from irscope.graph.dtypes import PRED

MAX_UNROLLED = 256
"""A loop over tensors with more known trips than this stays a loop."""


def branch(program: Program, node: Node, values: list[Any]) -> Any:
    """``prim::If``."""
    condition, captured = values[0], values[1:]
    arguments = captures(node, captured)
    known = condition.known.item() if isinstance(condition, Tensor) and condition.known is not None else condition
    if not isinstance(known, Scalar | Tensor):
        taken = 0 if known else 1
        return _results(node, program.call(node.bodies[taken], arguments[taken]))
    flag = known.node if isinstance(known, Scalar) else program.t.convert(program.t.reshape(known.get(), ()), PRED)
    return _results(node, conditional(program, node, flag, arguments))


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
    return _results(node, roll(program, Rolled(node, body, trips, condition, carried, captured, unrolled)))


def _results(node: Node, got: Sequence[Any]) -> Any:
    """One value, or the list of several."""
    if node.name.startswith("("):
        return list(got)
    return got[0] if got else None


NODES: dict[str, Callable[[Program, Node, list[Any]], Any]] = {"prim::If": branch, "prim::Loop": loop, "prim::RaiseException": raising}
