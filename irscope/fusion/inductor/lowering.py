"""Lowering from primitives to buffers: which values are inlined into their users, and which are realized.

A pointwise value is an expression that every user recomputes, until it is *realized*: because a library call or a concatenation needs
it in memory, because it is read twice and is costly, or because it has grown. The rules are those of ``GraphLowering.run_node`` (graph.py)
and ``StorageBox`` (ir.py) in torch 2.13; :mod:`irscope.fusion.inductor.limits` has their numbers.
"""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.fusion.inductor import operators
from irscope.fusion.inductor.calls import extracted, lower_call
from irscope.fusion.inductor.group_norm import scaled_and_shifted
from irscope.fusion.inductor.limits import Limits
from irscope.fusion.inductor.products import taken_apart
from irscope.fusion.inductor.program import Program, Unit
from irscope.fusion.inductor.rules import RULES, adaptive, copying_view, elementwise, parameter, upsampled, view
from irscope.fusion.inductor.state import State, whole
from irscope.fusion.inductor.strides import CHANNELS_LAST, is_laid_out, ordered_strides, shape_of
from irscope.fusion.inductor.units import is_view
from irscope.fusion.inductor.values import Buffer, Expression, Tensor
from irscope.graph import Kind, Node, TensorType
from irscope.graph.walk import leaves_of
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement


def lowered(program: Program, limits: Limits) -> State:
    """Lower everything in order, then realize the results of the graph."""
    state = State(program, limits)
    for unit in program.units:
        _lower(state, unit)
    if program.graph.root is not None:
        state.results = [_result(state, node) for node in _leaves(program.graph.root)]
    for buffer in state.buffers:
        buffer.freeze()
    return state


def _lower(state: State, unit: Unit) -> None:
    node = unit.nodes[-1]
    op = node.op
    rule = _rule(state, node)
    if unit.call:
        if operators.is_of(node, operators.ADAPTIVE) and isinstance(node.type, TensorType):
            adaptive(state, unit)
        elif operators.elements_read(node):
            upsampled(state, unit)
        elif not taken_apart(state, unit):
            lower_call(state, unit)
            return
        _settle(state, node, state.tensors[node])
    elif op is hlo.get_tuple_element and node.operands[0] in state.parts:
        state.tensors[node] = state.parts[node.operands[0]][GetTupleElement.of(node).index]
    elif op is hlo.get_tuple_element and node.operands[0].op is hlo.tuple:
        state.tensors[node] = state.tensors[node.operands[0].operands[GetTupleElement.of(node).index]]
    elif op in (hlo.tuple, hlo.after_all) or node in state.program.tuples:
        return
    elif is_view(state.program, node):
        tensor = state.tensors[node.operands[0]]
        if operators.is_of(node, operators.AS_STRIDED):
            state.realized(tensor)
        _repeat(state, node, tensor)
        state.tensors[node] = view(node, tensor)
        if node in state.program.given:
            state.realized(state.tensors[node])
    elif op is hlo.get_tuple_element:
        state.tensors[node] = extracted(state, node, state.realized(state.tensors[node.operands[0]]))
    elif op is hlo.parameter:
        state.tensors[node] = _input(state, node)
    elif rule is None:
        lower_call(state, unit)
    else:
        norm = state.program.norms.get(node)
        made = scaled_and_shifted(state, node, norm) if norm is not None else rule(state, node)
        state.tensors[node] = made
        if op is not hlo.constant:
            _settle(state, node, made)


def _rule(state: State, node: Node) -> Callable[[State, Node], Tensor] | None:
    """The lowering rule of a single primitive; None: a library call."""
    if node in state.program.copied:
        return copying_view
    return elementwise if node.op.kind is Kind.ELEMENTWISE else RULES.get(node.op)


def _result(state: State, node: Node) -> Buffer:
    """Realize a result of the graph, with PyTorch's strides if its layout is still open (``require_exact_strides``)."""
    tensor = state.tensors[node]
    buffer = state.realized(tensor)
    strides = ordered_strides(shape_of(node), CHANNELS_LAST) if _is_saved_image(state.program, node) else state.program.strides[node.index]
    if buffer.strides is None and buffer.into is None and tensor.whole():
        buffer.strides = strides
    elif buffer.kind == "extern" and tensor.whole() and not _lies_as(buffer, strides):
        buffer = state.copied(tensor, node)
        buffer.strides = strides
    return buffer


def _is_saved_image(program: Program, node: Node) -> bool:
    """Whether a forward graph saves a value for gradients of convolutions: it is channels-last then (``run_node`` of graph.py)."""
    return node in program.saved and node in program.pixels and len(shape_of(node)) == 4


def _input(state: State, node: Node) -> Tensor:
    """An input; a saved image or filter is copied into the layout in which it is saved, and read from there."""
    given = parameter(state, node)
    if not _is_saved_image(state.program, node):
        return given
    strides = ordered_strides(shape_of(node), CHANNELS_LAST)
    if _lies_as(state.realized(given), strides):
        return given
    copy = state.copied(given, node)
    copy.strides = strides
    return whole(copy)


def _lies_as(buffer: Buffer, strides: tuple[int, ...]) -> bool:
    """Whether a buffer has these strides, dimensions of size one ignored, or still has an open layout."""
    return buffer.strides is None or is_laid_out(buffer.shape, buffer.strides, strides)


def _repeat(state: State, node: Node, tensor: Tensor) -> None:
    """Realize a costly value before it is broadcast (``expand`` of lowering.py)."""
    expression = tensor.storage.expression
    if node.op is not hlo.broadcast or expression is None or prod(shape_of(node)) < 2 * max(1, prod(tensor.shape)):
        return
    if expression.operations() > state.limits.operations or is_heavy(expression, state.limits):
        state.realized(tensor)


def is_heavy(expression: Expression, limits: Limits) -> bool:
    """Whether the expression has an operation that Inductor does not recompute on a CPU."""
    return any(not isinstance(step, str) and step.op in limits.heavy for step, _ in expression.steps)


def _settle(state: State, node: Node, made: Tensor) -> None:
    """Realize a value that is still an expression, if Inductor would."""
    expression = made.storage.expression
    if expression is None or _is_inside(state.program, node):
        return
    if node in state.program.given and made.shape:
        _result(state, node)
    elif _is_needed(state, node, expression):
        state.realized(made)
    elif _is_costly(state, node, expression):
        buffer = state.realized(made)
        if node in state.program.pixels and len(buffer.shape) == 4:
            buffer.strides = ordered_strides(buffer.shape, CHANNELS_LAST)


def _is_inside(program: Program, node: Node) -> bool:
    """Whether the value is only a step within an operator that Inductor lowers as a whole."""
    users = program.users[node.index]
    return operators.is_of(node, operators.AT_ONCE) and bool(users) and all(u.origin and u.origin[0] is node.origin[0] for u in users)


def _is_needed(state: State, node: Node, expression: Expression) -> bool:
    """Whether a user needs the value in memory."""
    program = state.program
    if node in program.means and not operators.is_of(node, operators.DEVIATIONS):
        return True
    again = program.uses[node.index] > 1
    return again and ((node in program.given and bool(expression.loads)) or (node in program.called and expression.moving() > 1))


def _is_costly(state: State, node: Node, expression: Expression) -> bool:
    """Whether inlining the value would be too expensive: it has several users, or too many operations."""
    limits = state.limits
    operations, reads = expression.operations(), len(expression.loads)
    large = operations > limits.operations or is_shared_widely(state.program, node, operations, limits)
    if state.program.uses[node.index] > 1 and (large or reads > limits.reads or is_heavy(expression, limits)):
        return True
    return ((large or reads > limits.accumulated) and expression.moving() > 1) or operations > limits.most_operations


def is_shared_widely(program: Program, node: Node, operations: int, limits: Limits) -> bool:
    """Whether so many operators read a value that fewer operations make it large (``realize_opusers_threshold``)."""
    many = program.release.many_users
    return 0 < many < program.uses[node.index] and operations > limits.operations - 2


def _leaves(root: Node) -> list[Node]:
    """The arrays in a result."""
    leaves = leaves_of(root, lambda node: node.operands if node.op is hlo.tuple else None)
    return [leaf for leaf in leaves if isinstance(leaf.type, TensorType)]
