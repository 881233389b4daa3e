"""Branches: where the condition is known, one body is run; else both become the bodies of a conditional."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.expand.frames import captures
from irscope.expand.onnx.program import OnnxProgram, Values
from irscope.formats.onnx.operands import described
from irscope.formats.onnx.printer import results_of
from irscope.graph import Node
from irscope.graph.dtypes import PRED
from irscope.ops.faults import TypeFault
from irscope.source import UserError


def truth(program: OnnxProgram, node: Node, value: Any) -> Node:
    """A condition, which is one bool. Raises UserError for anything else."""
    t = program.t
    if isinstance(value, Node) and t.type(value).elements == 1 and t.dtype(value) is PRED:
        return t.reshape(value, ())
    raise program.fault(node, "the condition is one boolean")


def require_form(program: OnnxProgram, node: Node, operands: int, results: int) -> None:
    """Raise UserError where a body of the node does not take so many operands, beside those that it captures, or gives fewer results."""
    for body in node.bodies:
        own = len(body.params) - int(body.notes.get("captures", 0))
        if own != operands:
            raise program.fault(node, f"its body {body.name} takes {own} operands, but gets {operands}")
        if len(results_of(body)) < results:
            raise program.fault(node, f"its body {body.name} gives {len(results_of(body))} results, but {results} are needed")


def require_tensors(values: Sequence[Any], what: str) -> None:
    """Raise TypeFault for a value that is not a tensor; ``what`` is the name of the values."""
    for value in values:
        if not isinstance(value, Node):
            raise TypeFault(f"{what} must be tensors, not {described(value)}")


def own_operands(node: Node) -> int:
    """The number of operands that the node itself has, without those that its bodies capture."""
    return len(node.operands) - sum(int(body.notes.get("captures", 0)) for body in node.bodies)


def branch(program: OnnxProgram, node: Node, values: Values) -> Values:
    """``If``: the operands are the condition and the values that each body captures."""
    if len(node.bodies) != 2 or own_operands(node) != 1:
        raise program.fault(node, "it takes a condition and two bodies")
    require_form(program, node, 0, 0)
    t, condition = program.t, truth(program, node, values[0])
    arguments = captures(node, values[1:])
    known = t.known(condition)
    if known is None:
        made = _conditional(program, node, condition, arguments)
        if made is not None:
            return made
        try:
            known = t.value(condition, "which branch runs")
        except TypeFault as fault:
            raise program.fault(node, f"the branches give other types, and {fault}", "give the inputs by --inputs") from None
    way = 0 if known.item() else 1
    return program.call(node.bodies[way], arguments[way])


def _conditional(program: OnnxProgram, node: Node, condition: Node, arguments: list[list[Any]]) -> Values | None:
    """Both bodies as those of a conditional; None where they give different types, or values that are no tensors."""
    t = program.t
    frames, rows = [], []
    try:
        for way, body in enumerate(node.bodies):
            with t.body(f"{node.name}.{('then', 'else')[way]}") as frame:
                results = program.call(body, arguments[way])
                if not results or not all(isinstance(r, Node) for r in results):
                    return None
                rows.append([t.here(r) for r in results])
            frames.append(frame)
    except UserError:
        return None
    types = [[r.type for r in row] for row in rows]
    if types[0] != types[1]:
        return None
    for frame in frames:
        program.keep(frame.graph)
    return list(t.conditional(t.here(condition), frames, rows))
