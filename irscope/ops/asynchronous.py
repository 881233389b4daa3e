"""Work that begins at one place and ends at another: asynchronous calls and copies, and transfers to other devices and the host.

On one device, an operation that is started completes at once. An operation that waits for another program (recv, infeed) cannot run.
"""
from __future__ import annotations

from typing import Any, NoReturn

from irscope.graph import TOKEN, Effect, Kind, Node, Op, TensorType, TupleType, Type
from irscope.graph.dtypes import U32
from irscope.graph.node import Run
from irscope.lazy import Array, np
from irscope.ops.attributes import Outfeed, Transfer
from irscope.ops.control import Steps
from irscope.ops.costs import calls_cost, no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, body, passes_first, plain, token
from irscope.ops.registry import declare
from irscope.ops.shapes import fits
from irscope.source import UserError

CONTEXT = TensorType(U32, ())


def blank(t: Type) -> object:
    """A value that nothing reads: zeros, or nothing for a token."""
    if isinstance(t, TupleType):
        return tuple(map(blank, t.elements))
    return np.zeros(t.dims(), t.dtype.numpy()) if isinstance(t, TensorType) else None


# ---- asynchronous calls

def async_parts(node: Node, t: Type, what: str) -> tuple[TupleType, Type]:
    """The operand types and the result type in the type of an asynchronous value: ((operands), result, context...)."""
    if not isinstance(t, TupleType) or len(t.elements) < 2:
        raise TypeFault(f"{node.op.name}: {what} must be a tuple of at least two elements, but is {plain(t)}")
    operands = t.elements[0]
    if not isinstance(operands, TupleType):
        raise TypeFault(f"{node.op.name}: element 0 of {what} must be the tuple of the operand types, but is {plain(operands)}")
    return operands, t.elements[1]


def start_of(node: Node) -> Node | None:
    """The async-start at the beginning of a chain of updates."""
    while node.op in (async_update, async_done) and node.operands:
        node = node.operands[0]
    return node if node.op is async_start else None


def _is_beginning(t: Type, whole: Type) -> bool:
    """Whether the results bound so far are a prefix of all: the same type, no results yet, or the first of a tuple."""
    if fits(t, whole):
        return True
    if not isinstance(t, TupleType):
        return False
    wanted = whole.elements if isinstance(whole, TupleType) else ()
    return (len(t.elements) <= len(wanted) and all(map(fits, t.elements, wanted))) or not t.elements


def _check_bound(node: Node, start: Node | None, operands: TupleType, result: Type) -> None:
    """Check that the operands and results bound so far are a prefix of the computation's: they may be bound step by step."""
    if start is None or not start.bodies:
        return
    graph = body(start, 0, "calls")
    if len(operands.elements) > len(graph.params):
        raise TypeFault(f"{node.op.name} binds {len(operands.elements)} operands, but {graph.name} takes {len(graph.params)}")
    passes_first(node, graph, operands.elements)
    if not _is_beginning(result, graph.result().type):
        raise TypeFault(f"the computation {graph.name} gives {plain(graph.result().type)}, "
                        f"but element 1 of the result of {node.op.name} is {plain(result)}")


def _check_listed(node: Node, listed: TupleType, given: list[Type]) -> None:
    if len(given) != len(listed.elements):
        raise TypeFault(f"{node.op.name} has {len(given)} operands bound, but its result lists {len(listed.elements)}: {plain(listed)}")
    for number, (t, wanted) in enumerate(zip(given, listed.elements, strict=True)):
        if not fits(t, wanted):
            raise TypeFault(f"operand {number} bound by {node.op.name} is {plain(t)}, but element 0 of its result says {plain(wanted)}")


def _infer_async_start(node: Node) -> Type:
    operands, result = async_parts(node, node.type, "the result")
    _check_listed(node, operands, [o.type for o in node.operands])
    _check_bound(node, node, operands, result)
    return plain(node.type)


def _async_start(run: Run, node: Node, *operands: Array) -> Steps:
    assert isinstance(node.type, TupleType)
    bound = len(operands) == len(node.bodies[0].params)
    result = (yield node.bodies[0], operands) if bound else None
    return (tuple(operands), result, *map(blank, node.type.elements[2:]))


async_start = declare(Op(
    "async-start", work="control", doc="Begins a computation whose value async-done gives.", infer=_infer_async_start,
    reference=_async_start, cost=calls_cost))


def _infer_async_update(node: Node) -> Type:
    if not node.operands:
        raise TypeFault("async-update continues an async-start, but has no operand")
    before, was = async_parts(node, node.operands[0].type, "the operand")
    if fits(node.type, node.operands[0].type):
        return plain(node.operands[0].type)
    if not isinstance(node.type, TupleType):
        return plain(node.operands[0].type)
    operands, result = async_parts(node, node.type, "the result")
    _check_listed(node, operands, [*before.elements, *(o.type for o in node.operands[1:])])
    _check_bound(node, start_of(node), operands, result)
    if not _is_beginning(was, result):
        raise TypeFault(f"async-update goes on from the result {plain(was)} to {plain(result)}, which does not begin with it")
    return plain(node.type)


async_update = declare(Op(
    "async-update", doc="The same asynchronous computation, some steps later; may bind operands and results that are still open.",
    kind=Kind.TUPLE, work="control", infer=_infer_async_update, reference=lambda run, node, x, *more: ((*x[0], *more), *x[1:]),
    cost=no_cost))


def _infer_async_done(node: Node) -> Type:
    arity(node, 1)
    operands, result = async_parts(node, node.operands[0].type, "the operand")
    start = start_of(node)
    if start is not None and start.bodies:
        graph = body(start, 0, "calls")
        if len(operands.elements) != len(graph.params):
            raise TypeFault(f"async-done waits for {graph.name}, which takes {len(graph.params)} parameters, "
                            f"but {len(operands.elements)} are bound")
        if result == TupleType(()):
            return plain(graph.result().type)
        if not fits(result, graph.result().type):
            raise TypeFault(f"async-done waits for {graph.name}, which gives {plain(graph.result().type)}, but bound is {plain(result)}")
    return plain(result)


def _async_done(run: Run, node: Node, begun: Array) -> object:
    start = start_of(node)
    if start is None or len(start.operands) == len(start.bodies[0].params):
        return begun[1]
    return _late(start, begun[0])


def _late(start: Node, operands: Any) -> Steps:
    """Run a computation whose last operands are bound after its start, as soon as they are there."""
    return (yield start.bodies[0], operands)


async_done = declare(Op(
    "async-done", work="control", doc="The value of an asynchronous computation.", kind=Kind.TUPLE, infer=_infer_async_done,
    reference=_async_done, cost=no_cost))


# ---- copies

def _infer_copy_start(node: Node) -> Type:
    arity(node, 1)
    t = plain(node.operands[0].type)
    return TupleType((t, t, CONTEXT))


copy_start = declare(Op(
    "copy-start", work="movement", doc="Begins a copy: (target, source, context).", kind=Kind.TUPLE, infer=_infer_copy_start,
    reference=lambda run, node, x: (x, x, blank(CONTEXT)), cost=no_cost))


def _infer_copy_done(node: Node) -> Type:
    arity(node, 1)
    started = node.operands[0].type
    if not isinstance(started, TupleType) or len(started.elements) < 2:
        raise TypeFault(f"copy-done takes what copy-start gives, but %{node.operands[0].name} is {plain(started)}")
    if not fits(started.elements[0], started.elements[1]):
        raise TypeFault(f"copy-done: source and target must have one type, but are {plain(started.elements[1])} and "
                        f"{plain(started.elements[0])}")
    return plain(started.elements[0])


copy_done = declare(Op(
    "copy-done", work="movement", doc="The copy that copy-start began.", kind=Kind.TUPLE, infer=_infer_copy_done,
    reference=lambda run, node, x: x[0], cost=no_cost))


# ---- other devices, the host

def _unable(run: Run, node: Node, *operands: Array) -> NoReturn:
    whom = "the host" if node.op is infeed or Transfer.of(node).is_host_transfer else "another device"
    raise UserError(f"%{node.name} = {node.op.name}(...) waits for data from {whom}, which is not there",
                    "cut the program before it, or make its value a parameter")


def _infer_send(node: Node) -> Type:
    arity(node, 2)
    token(node, 1)
    return TupleType((plain(node.operands[0].type), CONTEXT, TOKEN))


send = declare(Op(
    "send", work="collective", doc="Begins to send a value to another device or the host.", effect=Effect.CONTROL, infer=_infer_send,
    reference=lambda run, node, x, _: (x, blank(CONTEXT), None), cost=no_cost))


def _infer_send_done(node: Node) -> Type:
    arity(node, 1)
    return TOKEN


send_done = declare(Op(
    "send-done", work="collective", doc="A token for the time when the value was sent.", effect=Effect.CONTROL, infer=_infer_send_done,
    reference=lambda run, node, x: None, cost=no_cost))


def _infer_recv(node: Node) -> Type:
    arity(node, 1)
    token(node, 0)
    if not isinstance(node.type, TupleType) or not node.type.elements:
        raise TypeFault(f"recv gives (value, u32[], token[]), but is declared {plain(node.type)}")
    return TupleType((plain(node.type.elements[0]), CONTEXT, TOKEN))


recv = declare(Op(
    "recv", work="collective", doc="Begins to receive a value from another device or the host.", effect=Effect.CONTROL, infer=_infer_recv,
    reference=_unable, cost=no_cost))


def _infer_recv_done(node: Node) -> Type:
    arity(node, 1)
    begun = node.operands[0].type
    if not isinstance(begun, TupleType) or not begun.elements:
        raise TypeFault(f"recv-done takes what recv gives, but %{node.operands[0].name} is {plain(begun)}")
    return TupleType((plain(begun.elements[0]), TOKEN))


recv_done = declare(Op(
    "recv-done", work="collective", doc="The value that was received, and a token.", effect=Effect.CONTROL, infer=_infer_recv_done,
    reference=_unable, cost=no_cost))


def _infer_infeed(node: Node) -> Type:
    arity(node, 1)
    token(node, 0)
    if not isinstance(node.type, TupleType) or len(node.type.elements) != 2 or node.type.elements[1] != TOKEN:
        raise TypeFault(f"infeed gives (value, token[]), but is declared {plain(node.type)}")
    return plain(node.type)


infeed = declare(Op(
    "infeed", work="collective", doc="A value from the host, and a token.", effect=Effect.CONTROL, infer=_infer_infeed, reference=_unable,
    cost=no_cost))


def _infer_outfeed(node: Node) -> Type:
    arity(node, 2)
    token(node, 1)
    shape = Outfeed.of(node).outfeed_shape
    if isinstance(shape, Type) and not fits(shape, node.operands[0].type):
        raise TypeFault(f"outfeed_shape is {plain(shape)}, but the operand of outfeed is {plain(node.operands[0].type)}")
    return TOKEN


outfeed = declare(Op(
    "outfeed", work="collective", doc="Gives a value to the host.", effect=Effect.CONTROL, infer=_infer_outfeed,
    reference=lambda run, node, *_: None, cost=no_cost))
