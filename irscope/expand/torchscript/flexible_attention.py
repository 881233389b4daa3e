"""``flex_attention``: attention whose scores one graph changes and another one hides.

    flex_attention(q, k, v, score_graph, (..., mask_graph), scale, options, (score values...), (mask values...))

Both graphs compute one score from its indices (batch, head, row, column). They run once, over tensors of indices that broadcast.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from irscope.expand.torchscript import higher_order
from irscope.expand.torchscript.program import Handlers, TorchProgram
from irscope.formats.torchscript.abstract import FunctionRef, Scalar, Tensor, tensors
from irscope.formats.torchscript.higher_order import FLEX_ATTENTION
from irscope.formats.torchscript.operators.shape import repeat_interleave
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED, S32
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault

NODES = Handlers()


@NODES.taking(FLEX_ATTENTION.name, kinds="tensor tensor tensor any list|tuple|none number any*")
def flex_attention(program: TorchProgram, node: Node, values: list[Any]) -> list[object]:
    """The result; the logarithms of the sums of exponentials, and the largest scores, both to base 2 (math_attention of torch)."""
    t, (q, k, v) = program.t, (x.get() for x in tensors(values[:3]))
    for x in (q, k, v):
        t.shape_of(x, 4, 4)
    changes, hides, scale = values[3], values[4][-1] if values[4] else None, values[5]
    k, v = (_like_heads(t, x, q) for x in (k, v))
    raw = t.matmul(widened(t, q), t.swap(widened(t, k), -2, -1))
    scores = t.scale(raw, scale)
    shape = t.shape(scores)
    indices = [Tensor(t.here(t.reshape(t.iota((n,), 0, S32), tuple(n if i == d else 1 for i in range(4))))) for d, n in enumerate(shape)]
    extra = [list(part) for part in values[7:9] if isinstance(part, list | tuple)] + [[], []]
    if isinstance(changes, FunctionRef):
        scores = t.convert(_over(program, changes, [Tensor(t.here(scores)), *indices, *extra[0]], shape), t.dtype(raw))
    hidden = t.array(float("-inf"), t.dtype(scores))
    if isinstance(hides, FunctionRef):
        scores = t.select(t.convert(_over(program, hides, [*indices, *extra[1]], shape), PRED), scores, hidden)
    top = t.max(scores, [3], True)
    safe = t.select(t.compare("EQ", top, hidden), t.like(top, 0), top)
    e = t.unary("exponential", t.sub(scores, safe))
    total = t.sum(e, [3], True)
    weights = t.select(t.compare("EQ", top, hidden), t.array(0, t.dtype(e)), t.div(e, total))
    made = t.matmul(t.convert(weights, t.dtype(q)), v)
    logs = t.scale(t.reshape(t.add(t.unary("log", total), top), shape[:3]), 1 / log(2))
    return [Tensor(t.here(x)) for x in (made, logs, t.scale(t.reshape(top, shape[:3]), 1 / log(2)))]


def _like_heads(t: Torch, x: Node, q: Node) -> Node:
    """Keys or values for each head and batch of the queries."""
    x = repeat_interleave(t, x, t.shape(q)[1] // nonzero("the number of heads", t.shape(x)[1]), 1, None)
    return t.broadcast_to(x, (t.shape(q)[0], *t.shape(x)[1:]))


def _over(program: TorchProgram, graph: FunctionRef, given: Sequence[object], shape: tuple[int, ...]) -> Node:
    """What a graph of one score gives for all of them. Raises TypeFault where it computes more than scores."""
    found, t = program.call(higher_order.graph_of(program, graph), given), program.t
    if len(found) != 1 or not isinstance(found[0], Tensor | Scalar | bool | int | float):
        raise TypeFault("its graphs return one score each")
    made = found[0].get() if isinstance(found[0], Tensor) else t.as_tensor(found[0])
    return t.broadcast_to(made, shape)
