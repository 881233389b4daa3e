"""Operators that call whole graphs, and operators that only keep an order: call, fusion, while, conditional, barriers and tokens.

Their references are generators: ``value = yield graph, arguments`` requests the run of a graph, so that calls may nest to any
depth. They have no meaning for code generation: ``expand`` removes all but ``while`` and ``conditional``, which become steps
of the compiled program.
"""
from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from irscope.graph import TOKEN, Graph, Kind, Node, Op, TensorType, Type
from irscope.graph.dtypes import PRED, S32
from irscope.graph.node import Run
from irscope.lazy import Array
from irscope.ops.costs import body_flops, calls_cost, no_cost
from irscope.ops.faults import TypeFault
from irscope.ops.infer import arity, array, body, passes, passes_first, plain, same, token
from irscope.ops.registry import declare
from irscope.ops.shapes import fits

Steps = Generator[tuple[Graph, Sequence[Any]], Any, Any]


# ---- calls

def _infer_call(node: Node) -> Type:
    graph = body(node, 0, "to_apply")
    passes(node, graph, [o.type for o in node.operands])
    return plain(graph.result().type)


def _call(run: Run, node: Node, *operands: Array) -> Steps:
    return (yield node.bodies[0], operands)


call = declare(Op(
    "call", work="control", doc="The value of a computation for these operands.", infer=_infer_call, reference=_call, cost=calls_cost))


def _infer_fusion(node: Node) -> Type:
    graph = body(node, 0, "calls")
    if len(graph.params) > len(node.operands):
        raise TypeFault(f"the fused computation {graph.name} takes {len(graph.params)} parameters, "
                        f"greater than the number of operands of the fusion, {len(node.operands)}")
    passes_first(node, graph, [o.type for o in node.operands])
    return plain(graph.result().type)


def _fusion(run: Run, node: Node, *operands: Array) -> Steps:
    return (yield node.bodies[0], operands[:len(node.bodies[0].params)])


fusion = declare(Op(
    "fusion", work="fusion", doc="A computation that the compiler runs as one kernel; the value is that of a call.", infer=_infer_fusion,
    reference=_fusion, cost=calls_cost))


# ---- while, conditional

def _infer_while(node: Node) -> Type:
    arity(node, 1)
    condition, loop = body(node, 0, "condition"), body(node, 1, "body")
    state = node.operands[0].type
    passes(node, condition, [state])
    passes(node, loop, [state])
    answer = condition.result().type
    if not fits(answer, TensorType(PRED, ())):
        raise TypeFault(f"the condition {condition.name} of while must give pred[], but gives {plain(answer)}")
    if not fits(loop.result().type, state):
        raise TypeFault(f"the body {loop.name} of while takes {plain(state)}, but gives {plain(loop.result().type)}",
                        "the state of a loop keeps its type")
    return plain(loop.result().type)


def _while(run: Run, node: Node, state: Array) -> Steps:
    condition, loop = node.bodies
    while (yield condition, (state,)):
        state = yield loop, (state,)
    return state


while_ = declare(Op(
    "while", work="control", doc="The body, applied to the state as long as the condition of the state holds.", infer=_infer_while,
    reference=_while, cost=calls_cost))


def _infer_conditional(node: Node) -> Type:
    chooser = array(node, 0, "the first operand")
    if chooser.rank or chooser.dtype not in (PRED, S32):
        raise TypeFault(f"the first operand of conditional must be a scalar pred or s32, but %{node.operands[0].name} is {plain(chooser)}")
    if not node.bodies:
        raise TypeFault("conditional needs branches")
    if chooser.dtype is PRED and len(node.bodies) != 2:
        raise TypeFault(f"conditional on a pred has a true and a false branch, but has {len(node.bodies)} branches")
    arity(node, len(node.bodies) + 1)
    first = body(node, 0, "first branch").result().type
    for number in range(len(node.bodies)):
        branch = body(node, number, "branch")
        passes(node, branch, [node.operands[number + 1].type])
        if not fits(branch.result().type, first):
            raise TypeFault(f"branches of conditional give {plain(first)} ({node.bodies[0].name}) and "
                            f"{plain(branch.result().type)} ({branch.name})", "all branches give one type")
    return plain(first)


def _conditional(run: Run, node: Node, chooser: Array, *operands: Array) -> Steps:
    if node.operands[0].type.dtype is PRED:  # type: ignore[attr-defined]  # inference has seen that it is an array
        number = 0 if chooser else 1
    else:
        number = int(chooser) if 0 <= int(chooser) < len(operands) else len(operands) - 1
    return (yield node.bodies[number], (operands[number],))


conditional = declare(Op(
    "conditional", work="control", doc="One branch, chosen by a pred (true first) or by number; a number out of range chooses the last.",
    infer=_infer_conditional, reference=_conditional, cost=lambda node: max(map(body_flops, node.bodies), default=0.0)))


# ---- order without work

def _infer_add_dependency(node: Node) -> Type:
    arity(node, 2)
    token(node, 1)
    return plain(node.operands[0].type)


opt_barrier = declare(Op(
    "opt-barrier", work="control", doc="The value itself; the compiler moves nothing across.", kind=Kind.TUPLE, infer=same,
    reference=lambda run, node, x: x, cost=no_cost))
domain = declare(Op(
    "domain", doc="The value itself; marks a change of its sharding.", kind=Kind.TUPLE, infer=same,
    reference=lambda run, node, x: x, cost=no_cost))
add_dependency = declare(Op(
    "add-dependency", work="control", doc="The first operand, after what the token waits for.", kind=Kind.TUPLE,
    infer=_infer_add_dependency, reference=lambda run, node, x, _: x, cost=no_cost))
after_all = declare(Op(
    "after-all", work="control", doc="A token that waits for all of its operands.", kind=Kind.TUPLE, infer=lambda node: TOKEN,
    reference=lambda run, node, *tokens: None, cost=no_cost))
