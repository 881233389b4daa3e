"""Attention as one operator."""
from __future__ import annotations

from math import sqrt

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.shape import repeat_interleave
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED, S64
from irscope.ops.checked import nonzero
from irscope.ops.faults import TypeFault


@operator("scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
          "bool is_causal=False, *, float? scale=None, bool enable_gqa=False)",
          "scaled_dot_product_attention.old(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0., "
          "bool is_causal=False, *, float? scale=None)", draws=True)
def scaled_dot_product_attention(t: Torch, q: Node, k: Node, v: Node, mask: Node | None, p: float, causal: bool, scale: float | None,
                                 gqa: bool = False) -> Node:
    """softmax(q k^T * scale + mask) v. A bool mask keeps where it is true; rows without any key give 0, as torch's own kernels do."""
    if p > 0:
        raise TypeFault("dropout in attention draws from torch's generator: call model.eval() before the graph is made")
    if causal and mask is not None:
        raise TypeFault("attention takes a mask or is_causal, not both")
    if gqa:
        heads = t.shape(q)[-3]
        k = repeat_interleave(t, k, heads // nonzero("the number of heads", t.shape(k)[-3]), -3, None)
        v = repeat_interleave(t, v, heads // nonzero("the number of heads", t.shape(v)[-3]), -3, None)
    t.shape_of(k, 2)
    t.shape_of(v, 2)
    t.shape_of(q, 2)
    scale = 1 / sqrt(nonzero("the size of a query", t.shape(q)[-1])) if scale is None else scale
    t.alike(q, k, v)
    kind = t.dtype(q)
    if not kind.is_float and not kind.is_complex:
        raise TypeFault(f"attention is of floating point numbers, not {kind.name}")
    if kind.storage < 4:  # torch multiplies and takes the softmax of half precision in float32: scores of 40 have steps of 1/4 in bfloat16
        q, k, v = (t.convert(x, F32) for x in (q, k, v))
    n = t.rank(k)
    scores = t.scale(t.matmul(q, t.transpose(k, [*range(n - 2), n - 1, n - 2])), scale)
    rows, columns = t.shape(scores)[-2:]
    if causal:
        mask = t.compare("GE", t.iota((rows, columns), 0, S64), t.iota((rows, columns), 1, S64))
    empty = None
    if mask is not None and t.dtype(mask) is PRED:
        scores = t.select(mask, scores, t.array(float("-inf"), t.dtype(scores)))
        if not causal:
            empty = t.unary("not", t.any(mask, [t.rank(mask) - 1], True))
    elif mask is not None:
        hidden = t.compare("EQ", mask, t.like(mask, float("-inf")))
        empty = t.all(hidden, [t.rank(mask) - 1], True)
        scores = t.add(scores, t.convert(mask, t.dtype(scores)))
    last = [t.rank(scores) - 1]
    e = t.unary("exponential", t.sub(scores, t.max(scores, last, True)))
    weights = t.div(e, t.sum(e, last, True))
    if empty is not None:
        weights = t.select(empty, t.array(0, t.dtype(weights)), weights)
    return t.convert(t.matmul(weights, v), kind)
