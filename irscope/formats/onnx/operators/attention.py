"""Operators that the standard defines by functions of others: attention, losses, and what is new."""
from __future__ import annotations

from irscope.formats.onnx.operators import defined

defined("Attention(Q, K, V, attn_mask?, past_key?, past_value?, nonpad_kv_seqlen?; is_causal=0, kv_num_heads: int=None, "
        "left_window_size: int=None, q_num_heads: int=None, qk_matmul_output_mode=0, right_window_size: int=None, scale: float=None, "
        "softcap=0.0, softmax_precision: int=None)",
        "RotaryEmbedding(X, cos_cache, sin_cache, position_ids?; interleaved=0, num_heads=0, rotary_embedding_dim=0)",
        "LinearAttention(query, key, value, past_state?, decay?, beta?; chunk_size: int=None, kv_num_heads: int!, q_num_heads: int!, "
        "scale: float=None, update_rule: str=None)",
        "CausalConvWithState(input, weight, bias?, past_state?; activation: str=None)", "SwiGLU(A, B; alpha: float=None)",
        "AffineGrid(theta, size; align_corners=0)", family="attention")
defined("NegativeLogLikelihoodLoss(input, target, weight?; ignore_index: int=None, reduction='mean')",
        "SoftmaxCrossEntropyLoss(scores, labels, weights?; ignore_index: int=None, reduction='mean')", family="loss")
