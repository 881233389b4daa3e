"""Faults of algebra: work twice, for nothing, or by the dearer operator."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from lint_programs.layouts import convolved
from lint_programs.pair import pair

I32 = np.int32


@pair("ALG002", lambda x: (lambda t: t.max(-1) * t.min(-1))(jnp.tanh(x)), (1024, 1024))
def computed_twice(x):
    """tanh of the same value, twice: compilers share it."""
    return jnp.tanh(x).max(-1) * jnp.tanh(x).min(-1)


@pair("ALG002", lambda x, w: (lambda h: h + jax.nn.relu(h))(x @ w), (512, 512), (512, 512))
def product_twice(x, w):
    """The same matrix product, twice: compilers share it."""
    return x @ w + jax.nn.relu(x @ w)


@pair("ALG003", lambda x, w: jnp.tanh(x).sum(-1), (512, 512), (512, 512))
def unused_product(x, w):
    """A product whose result nobody uses: tracing leaves it out."""
    _ = x @ w
    return jnp.tanh(x).sum(-1)


@pair("ALG004", lambda x, w, s, b: convolved(x, w * s) + b, (4, 56, 56, 64), (3, 3, 64, 64), (64,), (64,))
def scaled_convolution(x, w, s, b):
    """A convolution is scaled channel by channel: an epilogue, which is free."""
    return convolved(x, w) * s + b


@pair("ALG005", lambda x: jnp.tanh(x), (1024, 1024))
def plus_nothing(x):
    """Times one, plus zero, a pad by nothing."""
    return jnp.pad(jnp.tanh(x * 1.0 + 0.0), 0)


@pair("ALG006", lambda x: jax.nn.softmax(x), (1024, 1024))
def softmax_without_maximum(x):
    """A softmax without the maximum: not slower, and wrong for large logits."""
    e = jnp.exp(x)
    return e / e.sum(-1, keepdims=True)


@pair("ALG007", lambda x: x * np.float32(1 / 3), (1024, 4096))
def division_by_three(x):
    """A division by a constant in a kernel that memory bounds: nothing to gain."""
    return x / 3.0


@pair("ALG009", lambda i, t: jnp.take(t, i, axis=0, mode="clip"), (512, I32), (4096, 128), below={0: 4096})
def one_hot_product(i, t):
    """Rows of a table by a product with one-hot rows."""
    return jax.nn.one_hot(i, 4096) @ t


@pair("ALG009", lambda i, t: jnp.take(t, i, axis=0, mode="clip"), (8, 32, I32), (512, 256), below={0: 512})
def one_hot_positions(i, t):
    """Positions of 512, embedded by a product."""
    return jnp.einsum("bsn,nd->bsd", jax.nn.one_hot(i, 512), t)


@pair("SHP002", lambda x, w: (x @ jnp.pad(w, ((0, 0), (0, 23))))[:, :1001], (64, 768), (768, 1001))
def width_of_1001(x, w):
    """1001 columns; padded at run time that does not pay."""
    return x @ w
