"""Faults with broadcasts: written out, summed up again, crossed."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from lint_programs.pair import pair

I32 = np.int32


@pair("BRD001", lambda x, w: jnp.einsum("bik,kj->bij", x, w), (32, 8, 256), (256, 256))
def broadcast_weights(x, w):
    """One matrix is repeated for each batch before a product of batches."""
    return jnp.matmul(x, jnp.broadcast_to(w, (32, 256, 256)))


def _grouped(q, k):
    b, h, s, d = q.shape
    return jnp.einsum("bgisd,bgtd->bgist", q.reshape(b, k.shape[1], -1, s, d), k).reshape(b, h, s, -1)


@pair("BRD001", _grouped, (1, 16, 128, 64), (1, 2, 128, 64))
def repeated_keys(q, k):
    """Grouped queries: each key head is repeated eight times before the product."""
    return jnp.einsum("bhsd,bhtd->bhst", q, jnp.repeat(k, 8, axis=1))


@pair("BRD001", lambda x: jnp.broadcast_to(lax.sort(x), (64, 8192)), (8192,))
def sort_of_broadcast(x):
    """A row is repeated, and every copy is sorted."""
    return lax.sort(jnp.broadcast_to(x, (64, 8192)), dimension=-1)


@pair("BRD001", lambda x, w, v: (x @ w)[:, None, :] + v, (64, 512), (512, 256), (64, 64, 256))
def product_of_repeated_rows(x, w, v):
    """Every row is repeated 64 times, and all copies are multiplied."""
    return jnp.einsum("btk,kj->btj", jnp.broadcast_to(x[:, None, :], (64, 64, 512)), w) + v


@pair("BRD001", lambda x, p, w: (x @ w[:64]) + (p @ w[64:])[None], (64, 256, 64), (256, 64), (128, 64))
def positions_beside_features(x, p, w):
    """Positions are repeated for each example and put beside its features."""
    return jnp.concatenate([x, jnp.broadcast_to(p, (64, 256, 64))], -1) @ w


@pair("BRD001", lambda x, i: jnp.broadcast_to(jnp.take(x, i, axis=0, mode="clip"), (16, 4096, 64)) * 2, (4096, 64), (4096, I32),
      below={1: 4096})
def gather_of_broadcast(x, i):
    """A table is repeated for each head, and rows are taken from each copy."""
    return jnp.take(jnp.broadcast_to(x, (16, 4096, 64)), i, axis=1, mode="clip") * 2


@pair("BRD003", lambda p, t: ((p[:, 0] - t) ** 2).mean(), (2048, 1), (2048,), same=False)
def crossed_loss(p, t):
    """A column minus a vector: the loss sums over all pairs."""
    return ((p - t) ** 2).mean()


@pair("BRD003", lambda p, t, w: (jnp.abs(p[:, 0] - t)).sum(), (1024, 1), (1024,), (1024,), same=False)
def crossed_absolute_loss(p, t, w):
    """The same with absolute values and a weight."""
    return (jnp.abs(p - t) * 0.5).sum()


@pair("BRD004", lambda x: x.sum(0) * 64.0, (64, 4096))
def sum_over_repeats(x):
    """A value is repeated, and the repeats are summed up with the rest."""
    return jnp.broadcast_to(x[None], (64, 64, 4096)).sum((0, 1))


@pair("BRD004", lambda x: x.mean(0), (256, 1024))
def mean_over_repeats(x):
    """The mean over an axis that a broadcast has just made, and another."""
    return jnp.broadcast_to(x[:, None, :], (256, 64, 1024)).mean((0, 1))


@pair("BRD004", lambda x: jnp.exp(x).max(0), (128, 2048))
def maximum_over_repeats(x):
    """A maximum over repeats, behind an exponential of each."""
    return jnp.exp(jnp.broadcast_to(x[:, None, :], (128, 32, 2048))).max((0, 1))


@pair("BRD005", lambda x, s: x * jnp.exp(jnp.tanh(s)), (2048, 1024), ())
def exponential_of_broadcast(x, s):
    """A scalar is stretched first, and its exponential is taken of every copy: compilers turn that round."""
    return x * jnp.exp(jnp.tanh(jnp.broadcast_to(s, x.shape)))


@pair("BRD002", lambda x, b: x + b, (1024, 1024), (1024,))
def bias_by_rank(x, b):
    """A bias of another rank: no fault, both halves are one kernel."""
    return x + jnp.broadcast_to(b[None], x.shape)
