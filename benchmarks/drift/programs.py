"""The model set: small jax programs of every kind of fusion decision; none of them was used to make a rule.

Run by the interpreter that has the jax to be looked at. Each function is compiled for the shapes of its arguments in ``PROGRAMS``.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, nn

F32, BF16 = np.float32, jnp.bfloat16
NHWC = ("NHWC", "HWIO", "NHWC")


def ones(*shape: int, dtype: Any = F32) -> np.ndarray:
    """An argument of that shape."""
    return np.ones(shape, dtype)


def variance_rows(x):
    mean = x.mean(1, keepdims=True)
    variance = ((x - mean) ** 2).mean(1)
    return variance, jnp.sqrt(variance + 1e-3) * x.max(1)


def softmax_temperature(x, temperature, bias):
    p = nn.softmax((x + bias) / temperature, axis=-1)
    return p, -(p * jnp.log(p + 1e-9)).sum(-1)


def log_softmax_mask(x, mask):
    return nn.log_softmax(jnp.where(mask, x * 2.0, -1e9), axis=-1).mean()


def layer_norm_gelu(x, scale, bias, w):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return nn.gelu(((x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias) @ w, approximate=True)


def cross_attention(q, k, v, bias):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * 0.125 + bias
    return jnp.einsum("bhqk,bkhd->bqhd", nn.softmax(scores, -1), v)


def _rotated(x, cos, sin):
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def grouped_query_rope(q, k, cos, sin):
    return jnp.einsum("qhd,khd->hqk", _rotated(q, cos, sin), jnp.repeat(_rotated(k, cos, sin), 2, axis=1))


def interleaved_rope(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


def scatter_max_gather(table, index, update):
    made = table.at[index].max(jnp.tanh(update))
    return made, made[index] * 2 + update


def sort_pairs(x, y):
    a, b = lax.sort((jnp.abs(x) + 1.0, y * 3.0), num_keys=1)
    return a * b, jnp.cumsum(b)


def top_k_mask(x):
    values, _ = lax.top_k(x * x, 5)
    return nn.relu(values - 0.5), (x > values[:, -1:]).astype(F32) * x


def conv_norm_silu(x, w, scale):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)
    mean = y.mean((1, 2), keepdims=True)
    return nn.silu((y - mean) * lax.rsqrt(y.var((1, 2), keepdims=True) + 1e-5) * scale)


def while_newton(x):
    def step(state):
        i, y = state
        return i + 1, y - (y * y - x) / (2 * y)

    return lax.while_loop(lambda state: (state[0] < 8) & (jnp.abs(state[1] * state[1] - x).max() > 1e-4), step, (0, x + 1))


def matvec_epilogues(a, v, c, w):
    r = a @ v
    return nn.sigmoid(r + c) * r, (w * 0.5 + 1) @ v, jnp.dot(v, v) + 1


def batch_dot_bias(a, b, c):
    return nn.relu(jnp.einsum("bij,bjk->bik", a, b) + c[:, None, :]) ** 2


def bf16_block(x, w, s):
    h = (x @ w).astype(BF16)
    h = jnp.tanh(-h) * s + h
    return h, h.astype(F32).sum(-1), jnp.abs(h)


def bf16_attention(q, k, v):
    scores = jnp.einsum("hqd,hkd->hqk", q, k, preferred_element_type=F32) * 0.25
    return jnp.einsum("hqk,hkd->hqd", nn.softmax(scores).astype(BF16), v) * BF16(2) - jnp.maximum(q, 0)


def integer_hash(i):
    h = i * 26544357 % 1013
    return h // 7 + (h ^ (h >> 3)), 100 // (h + 1), (h % 16).sum()


def train_mlp(p, x, y):
    def loss(p):
        out = jnp.tanh(x @ p[0] + p[1]) @ p[2]
        return ((out - y) ** 2).mean() + 1e-4 * (p[0] ** 2).sum()

    value, grads = jax.value_and_grad(loss)(p)
    return value, jax.tree.map(lambda a, b: a - 0.1 * b / (jnp.abs(b).max() + 1e-6), p, grads)


def train_classifier(w, b, x, t, m, v, n):
    def loss(w, b):
        return -(nn.log_softmax(x @ w + b) * nn.one_hot(t, 16)).sum(-1).mean()

    g = jax.grad(loss)(w, b)
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return w - 0.01 * (m / (1 - 0.9 ** n)) / (jnp.sqrt(v / (1 - 0.99 ** n)) + 1e-8), m, v


def concat_pieces(a, b, c):
    x = jnp.concatenate([a * 2, b + 1, jnp.sin(c)], 1)
    y = jnp.concatenate([a - 1, b * b], 0)
    return nn.relu(x), y.sum(0), jnp.concatenate([a, b], -1) * 3


def scan_gru(x, w, u):
    def cell(h, t):
        r, z, n = jnp.split(t @ w + h @ u, 3, -1)
        r, z = nn.sigmoid(r), nn.sigmoid(z)
        h = (1 - z) * jnp.tanh(n * r) + z * h
        return h, h.sum(-1)

    return lax.scan(cell, jnp.zeros((4, 16)), x)


def barrier_checkpoint(x, w):
    f = jax.checkpoint(lambda x: jnp.sin(x @ w) * jnp.exp(x))
    return jax.grad(lambda x: f(f(x)).sum())(x)


def pool_pad_norm(x):
    p = lax.reduce_window(nn.relu(x * 2 - 1), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.pad(p, ((0, 0), (1, 1), (1, 1), (0, 0))) * 2, p.sum((1, 2)) / 49.0


def cached_decode(q, k, keys, values, v, i):
    keys = lax.dynamic_update_slice(keys, k * 0.5, (i, 0, 0))
    values = lax.dynamic_update_slice(values, v + 1, (i, 0, 0))
    scores = jnp.where(jnp.arange(64) <= i, jnp.einsum("hd,thd->ht", q, keys), -1e30)
    return jnp.einsum("ht,thd->hd", nn.softmax(scores, -1), values), keys, values


def gnn_layer(x, src, dst, w):
    total = jax.ops.segment_sum(nn.relu(x[src] @ w), dst, 50)
    return total / jnp.maximum(jax.ops.segment_sum(jnp.ones(120), dst, 50), 1.0)[:, None]


def moe_gate(x, w, experts):
    values, index = lax.top_k(nn.softmax(x @ w), 2)
    gates = values / values.sum(-1, keepdims=True)
    return (nn.one_hot(index, 8) * gates[..., None]).sum(1) @ experts


def vae_step(x, w1, wm, ws, wd, eps):
    def loss(w1, wd):
        h = nn.elu(x @ w1)
        m, s = h @ wm, h @ ws
        r = nn.sigmoid((m + jnp.exp(0.5 * s) * eps) @ wd)
        return ((r - x) ** 2).sum(-1).mean() - 0.5 * (1 + s - m ** 2 - jnp.exp(s)).sum(-1).mean()

    return jax.grad(loss, argnums=(0, 1))(w1, wd)


def int8_linear(x, w, s):
    q = jnp.clip(jnp.round(x / s), -128, 127).astype(jnp.int8)
    return lax.dot_general(q, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32).astype(F32) * s * 0.01


def fft_filter(x, h):
    return jnp.fft.irfft(jnp.fft.rfft(x) * h).real * 2 + x


def spd_solve(a, b):
    m = a @ a.T + jnp.eye(12) * 3
    return jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(m), b), jnp.linalg.slogdet(m)[1]


def dropout_block(key, x, w):
    kept = jax.random.bernoulli(key, 0.8, x.shape)
    return nn.gelu((x * kept / 0.8) @ w, approximate=False)


def linear_attention(q, k, v):
    def f(t):
        return nn.elu(t) + 1

    kv = jnp.cumsum(jnp.einsum("td,te->tde", f(k), v), 0)
    norm = jnp.einsum("td,td->t", f(q), jnp.cumsum(f(k), 0))
    return jnp.einsum("td,tde->te", f(q), kv) / norm[:, None]


def kmeans_step(x, c):
    d = ((x[:, None] - c[None]) ** 2).sum(-1)
    mine = nn.one_hot(d.argmin(1), 6)
    return (mine.T @ x) / jnp.maximum(mine.sum(0), 1)[:, None], d.min(1).mean()


def embedding_grad(e, i, t):
    return jax.grad(lambda e: ((e[i].mean(1) - t) ** 2).sum())(e)


def grouped_conv(x, w, b):
    return nn.leaky_relu(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC, feature_group_count=4) + b) * 0.5


def upsample_conv(x, w):
    y = jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)
    return jnp.tanh(lax.conv_general_dilated(y, w, (1, 1), [(1, 1), (1, 1)], dimension_numbers=NHWC) + y.mean())


def logsumexp_mixture(x, m, s):
    logs = -0.5 * ((x[:, None] - m) / s) ** 2 - jnp.log(s)
    return jax.scipy.special.logsumexp(logs, axis=1).sum(), nn.softmax(logs, 1)


def contrastive(a, b):
    def unit(t):
        return t / jnp.linalg.norm(t, axis=-1, keepdims=True)

    logits = unit(a) @ unit(b).T / 0.07
    return -jnp.diag(nn.log_softmax(logits)).mean() - jnp.diag(nn.log_softmax(logits.T)).mean()


def contrastive_grad(a, b):
    return jax.grad(contrastive)(a, b)


def batch_norm_train(x, scale, bias, mean, variance):
    m, v = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - m) / jnp.sqrt(v + 1e-5) * scale + bias, 0.9 * mean + 0.1 * m, 0.9 * variance + 0.1 * v


def switch_activation(i, x):
    return lax.switch(i, [nn.relu, jnp.sin, lambda t: t * t - 1], x * 2) + 1


def nested_loops(x):
    def outer(i, c):
        return lax.fori_loop(0, 3, lambda j, d: jnp.sin(d) * 1.1 + d[::-1], c) / (1 + i)

    return lax.fori_loop(0, 4, outer, x)


def masked_stats(x, mask):
    n = mask.sum(0)
    mean = jnp.where(mask, x, 0).sum(0) / n
    return mean, jnp.where(mask, (x - mean) ** 2, 0).sum(0) / n, jnp.where(mask, x, -jnp.inf).max(0)


def pad_reverse_scan(x):
    return lax.associative_scan(jnp.maximum, jnp.pad(x[::-1] * 3, ((2, 1), (0, 0)))), lax.cummax(x, 0) - x


def clip_by_norm(g0, g1, g2):
    norm = jnp.sqrt(sum((g * g).sum() for g in (g0, g1, g2)))
    scale = jnp.minimum(1.0, 1.0 / norm)
    return g0 * scale, g1 * scale, g2 * scale, norm


def counted(n: int, modulus: int) -> np.ndarray:
    """Whole numbers from 0, modulo something."""
    return np.arange(n, dtype=np.int32) % modulus


PROGRAMS: dict[Callable[..., Any], tuple[Any, ...]] = {
    variance_rows: (ones(48, 200),),
    softmax_temperature: (ones(16, 100), ones(), ones(100)),
    log_softmax_mask: (ones(32, 50), ones(32, 50, dtype=bool)),
    layer_norm_gelu: (ones(20, 96), ones(96), ones(96), ones(96, 64)),
    cross_attention: (ones(2, 12, 4, 16), ones(2, 20, 4, 16), ones(2, 20, 4, 16), ones(12, 20)),
    grouped_query_rope: (ones(24, 4, 32), ones(24, 2, 32), ones(24, 1, 16), ones(24, 1, 16)),
    interleaved_rope: (ones(20, 4, 32), ones(20, 1, 16), ones(20, 1, 16)),
    scatter_max_gather: (ones(100, 8), counted(12, 12), ones(12, 8)),
    sort_pairs: (ones(300), ones(300)),
    top_k_mask: (ones(8, 64),),
    conv_norm_silu: (ones(2, 14, 14, 8), ones(3, 3, 8, 24), ones(24)),
    while_newton: (ones(40),),
    matvec_epilogues: (ones(64, 48), ones(48), ones(64), ones(30, 48)),
    batch_dot_bias: (ones(3, 16, 24), ones(3, 24, 20), ones(3, 20)),
    bf16_block: (ones(16, 32, dtype=BF16), ones(32, 64, dtype=BF16), ones(64, dtype=BF16)),
    bf16_attention: (ones(4, 16, 32, dtype=BF16), ones(4, 24, 32, dtype=BF16), ones(4, 24, 32, dtype=BF16)),
    integer_hash: (counted(500, 500),),
    train_mlp: ((ones(12, 40), ones(40), ones(40, 3)), ones(64, 12), ones(64, 3)),
    train_classifier: (ones(32, 16), ones(16), ones(50, 32), counted(50, 16), ones(32, 16), ones(32, 16), ones()),
    concat_pieces: (ones(10, 40), ones(10, 40), ones(10, 20)),
    scan_gru: (ones(6, 4, 10), ones(10, 48), ones(16, 48)),
    barrier_checkpoint: (ones(24, 24), ones(24, 24)),
    pool_pad_norm: (ones(2, 14, 14, 6),),
    cached_decode: (ones(4, 16), ones(1, 4, 16), ones(64, 4, 16), ones(64, 4, 16), ones(1, 4, 16), np.int32(5)),
    gnn_layer: (ones(50, 16), counted(120, 50), counted(120, 50), ones(16, 24)),
    moe_gate: (ones(40, 32), ones(32, 8), ones(8, 32)),
    vae_step: (ones(16, 60), ones(60, 32), ones(32, 8), ones(32, 8), ones(8, 60), ones(16, 8)),
    int8_linear: (ones(32, 64), ones(64, 48, dtype=np.int8), ones()),
    fft_filter: (ones(8, 128), ones(65)),
    spd_solve: (ones(12, 12), ones(12, 3)),
    dropout_block: (np.zeros(2, np.uint32), ones(24, 64), ones(64, 80)),
    linear_attention: (ones(40, 8), ones(40, 8), ones(40, 12)),
    kmeans_step: (ones(200, 5), ones(6, 5)),
    embedding_grad: (ones(80, 24), np.ones((10, 7), np.int32), ones(10, 24)),
    grouped_conv: (ones(2, 12, 12, 16), ones(3, 3, 4, 32), ones(32)),
    upsample_conv: (ones(1, 8, 8, 20), ones(3, 3, 20, 20)),
    logsumexp_mixture: (ones(150), ones(9), ones(9)),
    contrastive: (ones(24, 40), ones(24, 40)),
    contrastive_grad: (ones(24, 40), ones(24, 40)),
    batch_norm_train: (ones(4, 9, 9, 12), ones(12), ones(12), ones(12), ones(12)),
    switch_activation: (np.int32(1), ones(64)),
    nested_loops: (ones(48),),
    masked_stats: (ones(70, 30), ones(70, 30, dtype=bool)),
    pad_reverse_scan: (ones(33, 6),),
    clip_by_norm: (ones(30, 20), ones(64), ones(3, 5, 7)),
}
"""Every program with its arguments."""
