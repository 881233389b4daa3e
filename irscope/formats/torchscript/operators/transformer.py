"""The fast paths of torch.nn.MultiheadAttention and TransformerEncoderLayer: whole layers as one operator, in evaluation."""
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.activations import gelu
from irscope.formats.torchscript.operators.linear import linear
from irscope.formats.torchscript.operators.normalization import layer_norm
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import PRED

OF_SCORES, OF_KEYS = 0, 1
"""torch's types of masks: of scores [rows, columns], of keys [batch, columns]; a mask of any other type has all dimensions."""


def _softmax(t: Torch, scores: Node, mask: Node | None, kind: int | None) -> Node:
    """Softmax over the last dimension; a mask is true where a key is ignored."""
    if mask is not None:
        batch, _, rows, columns = t.shape(scores)
        mask = mask if t.dtype(mask) is PRED else t.compare("NE", mask, t.like(mask, 0))
        if kind == OF_SCORES:
            mask = t.reshape(mask, (1, 1, rows, columns))
        elif kind == OF_KEYS:
            mask = t.reshape(mask, (batch, 1, 1, columns))
        scores = t.select(mask, t.array(float("-inf"), t.dtype(scores)), scores)
    top = t.max(scores, [3], True)
    e = t.unary("exponential", t.sub(scores, top))
    return t.div(e, t.sum(e, [3], True))


@dataclass(frozen=True, slots=True)
class HeadsAttention:
    """Multi-head attention: its projections, its mask, and the type of the mask."""

    heads: int
    qkv_weight: Node
    qkv_bias: Node
    out_weight: Node
    out_bias: Node
    mask: Node | None
    kind: int | None


def attention(t: Torch, query: Node, key: Node, value: Node, by: HeadsAttention) -> tuple[Node, Node]:
    """The result [batch, length, features] for a query, a key and a value of that form, and the weights [batch, heads, rows, columns]."""
    n, heads = t.shape(query)[2], by.heads
    parts = []
    for i, x in enumerate((query, key, value)):
        w, b = (t.slice_dim(v, 0, i * n, (i + 1) * n) for v in (by.qkv_weight, by.qkv_bias))
        y = linear(t, x, w, b)
        parts.append(t.transpose(t.reshape(y, (*t.shape(y)[:2], heads, n // heads)), [0, 2, 1, 3]))
    q, k, v = parts
    weights = _softmax(t, t.matmul(t.scale(q, 1 / sqrt(n // heads)), t.swap(k, 2, 3)), by.mask, by.kind)
    mixed = t.transpose(t.matmul(weights, v), [0, 2, 1, 3])
    return linear(t, t.reshape(mixed, (*t.shape(mixed)[:2], n)), by.out_weight, by.out_bias), weights


@operator("_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
          "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
          "bool average_attn_weights=True, int? mask_type=None)")
def native_attention(t: Torch, query: Node, key: Node, value: Node, size: int, heads: int, qkv_weight: Node, qkv_bias: Node,
                     out_weight: Node, out_bias: Node, mask: Node | None, wanted: bool, average: bool,
                     kind: int | None) -> tuple[Node, Node | None]:
    y, weights = attention(t, query, key, value, HeadsAttention(heads, qkv_weight, qkv_bias, out_weight, out_bias, mask, kind))
    if not wanted:
        return y, None
    return y, t.mean(weights, [1]) if average else weights


@operator("_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
          "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, "
          "Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor ffn_bias_2, "
          "Tensor? mask=None, int? mask_type=None)")
def encoder_layer(t: Torch, x: Node, size: int, heads: int, qkv_weight: Node, qkv_bias: Node, out_weight: Node, out_bias: Node,
                  use_gelu: bool, norm_first: bool, eps: float, weight1: Node, bias1: Node, weight2: Node, bias2: Node, up: Node,
                  up_bias: Node, down: Node, down_bias: Node, mask: Node | None, kind: int | None) -> Node:
    heads_of = HeadsAttention(heads, qkv_weight, qkv_bias, out_weight, out_bias, mask, kind)

    def mixed(v: Node) -> Node:
        return t.add(x, attention(t, v, v, v, heads_of)[0])

    def fed(v: Node) -> Node:
        hidden = linear(t, v, up, up_bias)
        hidden = gelu(t, hidden, "none") if use_gelu else t.maximum(hidden, t.like(hidden, 0))
        return linear(t, hidden, down, down_bias)

    def normal(v: Node, weight: Node, bias: Node) -> Node:
        return layer_norm(t, v, [size], weight, bias, eps, False)
    if norm_first:
        y = mixed(normal(x, weight1, bias1))
        return t.add(y, fed(normal(y, weight2, bias2)))
    y = normal(mixed(x), weight1, bias1)
    return normal(t.add(y, fed(y)), weight2, bias2)
