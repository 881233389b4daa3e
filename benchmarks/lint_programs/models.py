"""Models of real sizes, written as people write them: what lint says of them is judged by hand in tests/lint/labels. Needs jax.

``python benchmarks/lint_programs/models.py FOLDER`` writes them as HLO before and after XLA's own passes for the CPU.
"""
from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

MODELS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {}
BF16 = jnp.bfloat16


def model(*arguments: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        MODELS[function.__name__] = (function, arguments)
        return function

    return enter


def of(*shape: int, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def norm(x, g, b, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(var + eps) * g + b


def heads(x, n):
    return x.reshape(*x.shape[:-1], n, -1).swapaxes(-2, -3)


@model(of(2, 512, 768), *[of(768, 768)] * 4, of(768, 3072), of(3072, 768), *[of(768)] * 4, of(2, 512, dtype=jnp.bool_))
def encoder_layer(x, q, k, v, o, up, down, g1, b1, g2, b2, mask):
    """BERT's layer with a padding mask."""
    a = heads(x @ q, 12) @ heads(x @ k, 12).swapaxes(-1, -2) / np.sqrt(64)
    a = jnp.where(mask[:, None, None, :], a, -1e9)
    a = jax.nn.softmax(a, -1) @ heads(x @ v, 12)
    x = norm(x + a.swapaxes(1, 2).reshape(x.shape) @ o, g1, b1)
    return norm(x + jax.nn.gelu(x @ up) @ down, g2, b2)


def rope(x, positions):
    half = x.shape[-1] // 2
    frequencies = 1.0 / (10000 ** (jnp.arange(half) / half))
    angles = positions[:, None] * frequencies[None, :]
    sin, cos = jnp.sin(angles), jnp.cos(angles)
    x1, x2 = x[..., :half], x[..., half:]
    return jnp.concatenate([x1 * cos - x2 * sin, x1 * sin + x2 * cos], -1)


@model(of(1, 1024, 2048, dtype=BF16), of(2048, 2048, dtype=BF16), *[of(2048, 512, dtype=BF16)] * 2, of(2048, 2048, dtype=BF16),
       of(2048, 5632, dtype=BF16), of(2048, 5632, dtype=BF16), of(5632, 2048, dtype=BF16), of(2048, dtype=BF16), of(2048, dtype=BF16))
def llama_layer(x, wq, wk, wv, wo, gate, up, down, g1, g2):
    """Llama's layer: RMS norm in float32, grouped queries by repeat, RoPE, SwiGLU."""
    def rms(x, g):
        y = x.astype(jnp.float32)
        y = y * lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-6)
        return y.astype(BF16) * g

    h = rms(x, g1)
    positions = jnp.arange(x.shape[1])
    q = rope(heads(h @ wq, 32), positions).astype(BF16)
    k = rope(heads(h @ wk, 8), positions).astype(BF16)
    v = heads(h @ wv, 8)
    k, v = jnp.repeat(k, 4, axis=1), jnp.repeat(v, 4, axis=1)
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k).astype(jnp.float32) / np.sqrt(64)
    scores = jnp.where(jnp.tril(jnp.ones((1024, 1024), bool)), scores, -jnp.inf)
    a = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1).astype(BF16), v)
    x = x + a.swapaxes(1, 2).reshape(x.shape) @ wo
    h = rms(x, g2)
    return x + (jax.nn.silu(h @ gate) * (h @ up)) @ down


@model(of(8, 224, 224, 3), of(16, 16, 3, 768), of(768), of(1, 1, 768), of(1, 197, 768), of(768, 1000), of(1000))
def vit_ends(image, patch, bias, cls, positions, head, head_bias):
    """The two ends of ViT-B/16: patches, the class token, positions; the head."""
    x = lax.conv_general_dilated(image, patch, (16, 16), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")) + bias
    x = x.reshape(8, 196, 768)
    x = jnp.concatenate([jnp.broadcast_to(cls, (8, 1, 768)), x], 1) + positions
    return x[:, 0] @ head + head_bias


def conv(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@model(of(4, 56, 56, 256), of(1, 1, 256, 64), of(3, 3, 64, 64), of(1, 1, 64, 256), *[of(64)] * 8, *[of(256)] * 4)
def resnet_block(x, w1, w2, w3, g1, b1, m1, v1, g2, b2, m2, v2, g3, b3, m3, v3):
    """A bottleneck of ResNet-50 in inference."""
    def bn(x, g, b, m, v):
        return (x - m) / jnp.sqrt(v + 1e-5) * g + b

    y = jax.nn.relu(bn(conv(x, w1), g1, b1, m1, v1))
    y = jax.nn.relu(bn(conv(y, w2), g2, b2, m2, v2))
    return jax.nn.relu(x + bn(conv(y, w3), g3, b3, m3, v3))


@model(of(4, 64, 64, 128), of(3, 3, 128, 128), of(3, 3, 256, 128), of(128), of(128), of(4, 128), of(128, 128))
def unet_step(x, w1, w2, g, b, t, wt):
    """A step of a diffusion UNet: group norm, the time embedding, upsampling and a skip."""
    def group_norm(x):
        y = x.reshape(4, 64, 64, 32, 4)
        y = (y - y.mean((1, 2, 4), keepdims=True)) / jnp.sqrt(y.var((1, 2, 4), keepdims=True) + 1e-5)
        return y.reshape(x.shape) * g + b

    h = conv(jax.nn.silu(group_norm(x)), w1) + (jax.nn.silu(t) @ wt)[:, None, None]
    return conv(jnp.concatenate([h, x], -1), w2).repeat(2, 1).repeat(2, 2)


@model(of(2048, 1024), of(1024, 16), of(16, 1024, 512), of(16, 512, 1024))
def switch_layer(x, router, w1, w2):
    """A mixture of experts with dispatch by one-hot products, as Switch Transformers have it."""
    probabilities = jax.nn.softmax(x @ router)
    expert = probabilities.argmax(-1)
    mask = jax.nn.one_hot(expert, 16)
    position = (jnp.cumsum(mask, 0) - 1) * mask
    keep = (position < 160) * mask
    dispatch = keep[:, :, None] * jax.nn.one_hot(position.sum(-1).astype(jnp.int32), 160)[:, None, :]
    inputs = jnp.einsum("tec,td->ecd", dispatch, x)
    outputs = jnp.einsum("ech,ehd->ecd", jax.nn.relu(jnp.einsum("ecd,edh->ech", inputs, w1)), w2)
    return jnp.einsum("tec,ecd->td", dispatch * probabilities.max(-1)[:, None, None], outputs)


@model(of(4096, dtype=jnp.int32), of(50257, 768), of(1024, 768), of(4096, dtype=jnp.int32))
def language_head_loss(tokens, table, positions, targets):
    """Embedding, the tied head, and the cross entropy by one-hot targets."""
    x = table[tokens] + positions[jnp.arange(4096) % 1024]
    logits = x @ table.T
    return -(jax.nn.log_softmax(logits) * jax.nn.one_hot(targets, 50257)).sum(-1).mean()


@model(of(128, 32, 256), of(512, 1024), of(1024))
def lstm(x, w, b):
    """An LSTM of 256 over 128 steps."""
    def step(carry, t):
        h, c = carry
        i, f, g, o = jnp.split(jnp.concatenate([t, h], -1) @ w + b, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((32, 256))
    return lax.scan(step, (zeros, zeros), x)[1]


@model(of(4096, 64), of(256, 64))
def kmeans_step(points, centres):
    """One step of k-means, with all differences written out."""
    distances = ((points[:, None] - centres[None]) ** 2).sum(-1)
    nearest = distances.argmin(1)
    hot = jax.nn.one_hot(nearest, 256)
    return (hot.T @ points) / jnp.maximum(hot.sum(0)[:, None], 1)


@model(of(20000, 64), of(100000, dtype=jnp.int32), of(100000, dtype=jnp.int32), of(64, 64))
def graph_convolution(x, senders, receivers, w):
    """A graph convolution with mean over neighbours."""
    messages = (x @ w)[senders]
    total = jax.ops.segment_sum(messages, receivers, 20000)
    count = jax.ops.segment_sum(jnp.ones((100000, 1)), receivers, 20000)
    return jax.nn.relu(total / jnp.maximum(count, 1))


@model(of(2048, 26, dtype=jnp.int32), of(26, 1000, 64), of(2048, 13), of(13, 64), of(415, 256), of(256, 1))
def recommender(ids, tables, dense, bottom, w1, w2):
    """DLRM: a table for each feature, all pairwise products, a tower."""
    embedded = [tables[i][ids[:, i]] for i in range(26)]
    x = jax.nn.relu(dense @ bottom)
    features = jnp.stack([x, *embedded], 1)
    products = jnp.einsum("bid,bjd->bij", features, features)
    rows, columns = np.tril_indices(27, -1)
    together = jnp.concatenate([x, products[:, rows, columns]], 1)
    return jax.nn.sigmoid(jax.nn.relu(together @ w1) @ w2)


@model(of(1024, 1024), of(1024, 1024), of(1024, 1024), of(1024, 1024), of())
def adam(w, g, m, v, t):
    """One step of Adam."""
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g ** 2
    return w - 1e-3 * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v


@model(of(64, 784), of(784, 512), of(512), of(512, 10), of(10), of(64, dtype=jnp.int32))
def mnist_train_step(x, w1, b1, w2, b2, y):
    """A training step of a small net by hand-written SGD."""
    def loss(p):
        h = jax.nn.relu(x @ p[0] + p[1])
        return -jnp.take_along_axis(jax.nn.log_softmax(h @ p[2] + p[3]), y[:, None], 1).mean()

    p = (w1, b1, w2, b2)
    return jax.tree.map(lambda a, b: a - 0.1 * b, p, jax.grad(loss)(p))


@model(of(16000 * 10,), of(201, 80))
def log_mel(audio, mel):
    """Log-mel features: frames by gather, a window, an FFT."""
    starts = jnp.arange(0, 160000 - 400, 160)
    frames = audio[starts[:, None] + jnp.arange(400)[None]]
    window = 0.5 - 0.5 * jnp.cos(2 * jnp.pi * jnp.arange(400) / 400)
    power = jnp.abs(jnp.fft.rfft(frames * window)) ** 2
    return jnp.log10(jnp.maximum(power @ mel, 1e-10))


@model(of(512, 512, 3), of(256, 3), of())
def nerf_encoding(rays, w, near):
    """Positional encoding of a NeRF: ten frequencies of each coordinate, side by side."""
    points = rays.reshape(-1, 3)
    parts = [points]
    for i in range(10):
        parts += [jnp.sin(2.0 ** i * points), jnp.cos(2.0 ** i * points)]
    return jnp.concatenate(parts, -1).sum(-1) * near + (points @ w.T).max(-1)


@model(of(32, 128, 64), of(32, 128, 64), of(32, 128, 64))
def linear_attention(q, k, v):
    """Causal linear attention by running sums."""
    q, k = jax.nn.elu(q) + 1, jax.nn.elu(k) + 1
    state = jnp.cumsum(jnp.einsum("btd,bte->btde", k, v), 1)
    z = jnp.cumsum(k, 1)
    return jnp.einsum("btd,btde->bte", q, state) / (jnp.einsum("btd,btd->bt", q, z)[..., None] + 1e-6)


@model(of(8, 1024, 512), of(8, 1024, dtype=jnp.int32))
def masked_mean(x, lengths):
    """The mean over tokens that count, by a float mask."""
    mask = (lengths > 0).astype(x.dtype)
    return (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)


@model(of(256, 3072), of(3072, dtype=jnp.float64), of(3072, dtype=jnp.float64))
def standardised(x, mean, std):
    """Inputs are standardised with statistics of NumPy, in float64."""
    return ((x - mean) / std).astype(jnp.float32)


@model(of(64, 512, 512))
def normalised_adjacency(a):
    """A normalised adjacency matrix with self loops."""
    a = a + jnp.eye(512)
    d = a.sum(-1) ** -0.5
    return d[:, :, None] * a * d[:, None, :]


@model(of(8, 16, 1024, 64), of(8, 16, 1024, 64), of(8, 16, 1024, 64), of(16))
def alibi_attention(q, k, v, slopes):
    """Attention with ALiBi's bias, written out."""
    distance = jnp.arange(1024)[None, :] - jnp.arange(1024)[:, None]
    bias = slopes[:, None, None] * jnp.minimum(distance, 0)[None]
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) * 0.125 + bias
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), v)


@model(of(4, 32, 32, 256), of(256, 256))
def squeeze_excite(x, w):
    """Squeeze and excite over channels first, in a channels-last model."""
    y = x.transpose(0, 3, 1, 2)
    s = jax.nn.sigmoid(y.mean((2, 3)) @ w)
    return (y * s[:, :, None, None]).transpose(0, 2, 3, 1)


@model(of(128, 128), of(128,))
def power_iteration(a, x):
    """Fifty steps of a power iteration on a matrix times its transpose."""
    return lax.fori_loop(0, 50, lambda i, x: (lambda y: y / jnp.linalg.norm(y))(a.T @ (a @ x)), x)


@model(of(1024, 128), of(1024, 128))
def contrastive_loss(a, b):
    """CLIP's loss."""
    a, b = a / jnp.linalg.norm(a, axis=1, keepdims=True), b / jnp.linalg.norm(b, axis=1, keepdims=True)
    logits = a @ b.T / 0.07
    labels = jnp.arange(1024)
    rows = -jax.nn.log_softmax(logits, 1)[labels, labels].mean()
    columns = -jax.nn.log_softmax(logits, 0)[labels, labels].mean()
    return (rows + columns) / 2


@model(of(512, 512), of(512, 512))
def sinkhorn(cost, noise):
    """Twenty rounds of Sinkhorn in the log domain."""
    def step(i, f):
        g = -jax.nn.logsumexp(-cost / 0.1 + f[:, None], axis=0)
        return -jax.nn.logsumexp(-cost / 0.1 + g[None, :], axis=1)

    f = lax.fori_loop(0, 20, step, jnp.zeros(512))
    return jnp.exp(f[:, None] - cost / 0.1) + noise


@model(of(32, 2048, dtype=BF16), of(2048, 8192, dtype=jnp.int8), of(8192), of(8192, 2048, dtype=jnp.int8), of(2048))
def quantised_mlp(x, w1, s1, w2, s2):
    """A layer with weights of 8 bits, widened before the products."""
    h = jax.nn.gelu(x @ (w1.astype(BF16) * s1.astype(BF16)))
    return h @ (w2.astype(BF16) * s2.astype(BF16))


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, (function, arguments) in MODELS.items():
        with jax.enable_x64(name == "standardised"):
            lowered = jax.jit(function, keep_unused=True).lower(*arguments)
            for text, kind in ((lowered.as_text(dialect="hlo", debug_info=True), "pre"), (lowered.compile().as_text(), "opt")):
                text = re.sub(r"\n\nFileNames\n.*?\nStackFrames\n.*?\n\n", "\n\n", text, flags=re.S)
                (folder / f"{name}.{kind}.hlo").write_text(re.sub(r" ?stack_frame_id=\d+", "", text))


if __name__ == "__main__":
    main()
