"""Attention as torch's kernels return it, with the logarithms of the sums of exponentials, and its gradients."""
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.attention import scaled_dot_product_attention
from irscope.formats.torchscript.operators.shape import repeat_interleave
from irscope.formats.torchscript.operators.wide import summed_to, widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, PRED, S64, U64
from irscope.ops.checked import nonzero

QKV = "Tensor query, Tensor key, Tensor value"
Pair = tuple[Node, Node]


@dataclass(frozen=True, slots=True)
class Masking:
    """What hides keys: a bias that is added to the scores (or a bool mask, true where a key is kept), or the causal order; and the
    factor of the scores."""

    bias: Node | None = None
    causal: bool = False
    scale: float | None = None


def scores(t: Torch, q: Node, k: Node, by: Masking) -> Node:
    """The scaled and masked products of queries and keys, -inf where hidden; half types in float32."""
    factor = 1 / sqrt(nonzero("the size of a query", t.shape(q)[-1])) if by.scale is None else by.scale
    made = t.scale(t.matmul(widened(t, q), t.swap(widened(t, k), -2, -1)), factor)
    hidden = t.array(float("-inf"), t.dtype(made))
    if by.causal:
        shape = t.shape(made)[-2:]
        made = t.select(t.compare("GE", t.iota(shape, 0, S64), t.iota(shape, 1, S64)), made, hidden)
    if by.bias is not None and t.dtype(by.bias) is PRED:
        made = t.select(by.bias, made, hidden)
    elif by.bias is not None:
        made = t.add(made, t.convert(by.bias, t.dtype(made)))
    return made


def attended(t: Torch, q: Node, k: Node, v: Node, p: float, by: Masking) -> Pair:
    """The result, and the logarithm of each row's sum of exponentials, which gradients take."""
    made = scaled_dot_product_attention(t, q, k, v, by.bias, p, by.causal, by.scale)
    s = scores(t, q, k, by)
    last = [t.rank(s) - 1]
    top = t.max(s, last, True)
    sums = t.sum(t.unary("exponential", t.sub(s, top)), last, True)
    return made, t.reshape(t.add(t.unary("log", sums), top), t.shape(s)[:-1])


def gradients(t: Torch, grad: Node, qkv: tuple[Node, Node, Node], made: Node, logs: Node, by: Masking) -> tuple[Node, Node, Node, Node]:
    """The gradients with respect to the queries, the keys, the values, and the scores after scaling and masking."""
    q, k, v = qkv
    factor = 1 / sqrt(nonzero("the size of a query", t.shape(q)[-1])) if by.scale is None else by.scale
    s = scores(t, q, k, by)
    logs = t.slice_dim(logs, t.rank(logs) - 1, 0, t.shape(s)[-2])  # kernels pad the rows
    away = t.sub(s, t.unsqueeze(t.convert(logs, t.dtype(s)), -1))
    weights = t.unary("exponential", t.select(t.compare("EQ", away, away), away, t.like(away, float("-inf"))))
    g, wide_v, o = (widened(t, x) for x in (grad, v, made))
    by_value = t.matmul(t.swap(weights, -2, -1), g)
    delta = t.sum(t.mul(g, o), [t.rank(o) - 1], True)
    by_scores = t.mul(weights, t.sub(t.matmul(g, t.swap(wide_v, -2, -1)), delta))
    by_query = t.scale(t.matmul(by_scores, widened(t, k)), factor)
    by_key = t.scale(t.matmul(t.swap(by_scores, -2, -1), widened(t, q)), factor)
    return t.convert(by_query, t.dtype(q)), t.convert(by_key, t.dtype(k)), t.convert(by_value, t.dtype(v)), by_scores


def _nothing(t: Torch) -> Node:
    return t.full((0,), 0, F32)


def _state(t: Torch) -> Node:
    """The state of a generator that nothing is drawn from."""
    return t.array(0, S64)


# ---------------------------------------------------------------------- processors


@operator(f"_scaled_dot_product_flash_attention_for_cpu({QKV}, float dropout_p=0.0, bool is_causal=False, *, Tensor? attn_mask=None, "
          "float? scale=None)")
def flash_for_cpu(t: Torch, q: Node, k: Node, v: Node, p: float, causal: bool, mask: Node | None, scale: float | None) -> Pair:
    return attended(t, q, k, v, p, Masking(mask, causal, scale))


@operator(f"_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, {QKV}, Tensor out, Tensor logsumexp, float dropout_p, "
          "bool is_causal, *, Tensor? attn_mask=None, float? scale=None)",
          f"_scaled_dot_product_flash_attention_backward(Tensor grad_out, {QKV}, Tensor out, Tensor logsumexp, Tensor? cum_seq_q, "
          "Tensor? cum_seq_k, int max_q, int max_k, float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, "
          "float? scale=None)")
def flash_for_cpu_backward(t: Torch, grad: Node, q: Node, k: Node, v: Node, made: Node, logs: Node, *, is_causal: bool,
                           attn_mask: Node | None = None, scale: float | None) -> tuple[Node, Node, Node]:
    return gradients(t, grad, (q, k, v), made, logs, Masking(attn_mask, is_causal, scale))[:3]


@operator(f"_scaled_dot_product_attention_math({QKV}, Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, "
          "Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False)")
def attention_math(t: Torch, q: Node, k: Node, v: Node, mask: Node | None, p: float, causal: bool, dropped: Node | None,
                   scale: float | None, gqa: bool) -> Pair:
    """The result, and the weights."""
    if gqa:
        heads = t.shape(q)[-3]
        k, v = (repeat_interleave(t, x, heads // nonzero("the number of heads", t.shape(x)[-3]), -3, None) for x in (k, v))
    made = scaled_dot_product_attention(t, q, k, v, mask, p, causal, scale)
    s = scores(t, q, k, Masking(mask, causal, scale))
    last = [t.rank(s) - 1]
    top = t.max(s, last, True)
    e = t.unary("exponential", t.sub(s, top))
    weights = t.div(e, t.sum(e, last, True))
    weights = t.select(t.compare("EQ", top, t.like(top, float("-inf"))), t.array(0, t.dtype(weights)), weights)
    return made, t.convert(weights, t.dtype(q))


# ---------------------------------------------------------------------- accelerators


@operator(f"_scaled_dot_product_flash_attention({QKV}, float dropout_p=0.0, bool is_causal=False, bool return_debug_mask=False, *, "
          "float? scale=None)")
def flash(t: Torch, q: Node, k: Node, v: Node, p: float, causal: bool, debug: bool, scale: float | None) -> tuple[object, ...]:
    made, logs = attended(t, q, k, v, p, Masking(None, causal, scale))
    state = t.full((2,), 0, U64)
    return made, t.convert(logs, F32), None, None, t.shape(q)[-2], t.shape(k)[-2], state, t.full((), 0, U64), t.full((0,), 0, t.dtype(q))


@operator(f"_scaled_dot_product_efficient_attention({QKV}, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, "
          "bool is_causal=False, *, float? scale=None)")
def efficient(t: Torch, q: Node, k: Node, v: Node, bias: Node | None, wanted: bool, p: float, causal: bool,
              scale: float | None) -> tuple[Node, Node, Node, Node]:
    """The logarithms are padded to whole blocks of 32 rows."""
    made, logs = attended(t, q, k, v, p, Masking(bias, causal, scale))
    lead, rows = t.shape(logs)[:-1], t.shape(logs)[-1]
    if wanted:
        high = [0] * len(lead) + [-rows % 32]
        logs = t.pad(t.convert(logs, F32), t.array(float("inf"), F32), [0] * (len(lead) + 1), high)
    else:
        logs = t.full((*lead, 0), 0, F32)
    return made, logs, _state(t), _state(t)


@operator(f"_scaled_dot_product_efficient_attention_backward(Tensor grad_out_, {QKV}, Tensor? attn_bias, Tensor out, Tensor logsumexp, "
          "Tensor philox_seed, Tensor philox_offset, float dropout_p, bool[4] grad_input_mask, bool is_causal=False, *, "
          "float? scale=None)",
          f"_scaled_dot_product_fused_attention_overrideable_backward(Tensor grad_out, {QKV}, Tensor? attn_bias, "
          "bool[4] grad_input_mask, Tensor out, Tensor logsumexp, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k, "
          "float dropout_p, bool is_causal, Tensor philox_seed, Tensor philox_offset, *, float? scale=None)")
def efficient_backward(t: Torch, grad: Node, q: Node, k: Node, v: Node, bias: Node | None, *, out: Node, logsumexp: Node,
                       grad_input_mask: list[bool], is_causal: bool, scale: float | None) -> tuple[Node | None, ...]:
    *by_qkv, by_scores = gradients(t, grad, (q, k, v), out, logsumexp, Masking(bias, is_causal, scale))
    by_bias = t.convert(summed_to(t, by_scores, t.shape(bias)), t.dtype(bias)) if bias is not None and grad_input_mask[3] else None
    return (*(g if on else None for g, on in zip(by_qkv, grad_input_mask, strict=False)), by_bias)


@operator(f"_scaled_dot_product_cudnn_attention({QKV}, Tensor? attn_bias, bool compute_log_sumexp, float dropout_p=0.0, "
          "bool is_causal=False, bool return_debug_mask=False, *, float? scale=None)")
def cudnn(t: Torch, q: Node, k: Node, v: Node, bias: Node | None, wanted: bool, p: float, causal: bool, debug: bool,
          scale: float | None) -> tuple[object, ...]:
    made, logs = attended(t, q, k, v, p, Masking(bias, causal, scale))
    sizes = (None, None, t.shape(q)[-2], t.shape(k)[-2])
    return made, t.unsqueeze(t.convert(logs, F32), -1), *sizes, _state(t), _state(t), _nothing(t)


@operator(f"_scaled_dot_product_cudnn_attention_backward(Tensor grad_out, {QKV}, Tensor out, Tensor logsumexp, Tensor philox_seed, "
          "Tensor philox_offset, Tensor attn_bias, Tensor? cum_seq_q, Tensor? cum_seq_k, int max_q, int max_k, float dropout_p, "
          "bool is_causal, *, float? scale=None)")
def cudnn_backward(t: Torch, grad: Node, q: Node, k: Node, v: Node, made: Node, logs: Node, *, attn_bias: Node | None, is_causal: bool,
                   scale: float | None) -> tuple[Node, Node, Node]:
    logs = t.reshape(logs, t.shape(logs)[:-1]) if t.rank(logs) == t.rank(q) else logs
    return gradients(t, grad, (q, k, v), made, logs, Masking(attn_bias, is_causal, scale))[:3]


@operator(f"_scaled_dot_product_fused_attention_overrideable({QKV}, Tensor? attn_bias=None, float dropout_p=0.0, bool is_causal=False, "
          "bool return_debug_mask=False, *, float? scale=None)")
def overrideable(t: Torch, q: Node, k: Node, v: Node, bias: Node | None, p: float, causal: bool, debug: bool,
                 scale: float | None) -> tuple[object, ...]:
    made, logs = attended(t, q, k, v, p, Masking(bias, causal, scale))
    sizes = (None, None, t.shape(q)[-2], t.shape(k)[-2])
    return made, t.convert(logs, F32), *sizes, _state(t), _state(t), _nothing(t)
