"""Faults that keep work from being one kernel."""
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from lint_programs.pair import pair


@pair("FUS003", lambda x, w: jax.nn.gelu(x @ w).reshape(8, 128, 8, 64).transpose(0, 2, 1, 3), (1024, 512), (512, 512))
def transposed_before_gelu(x, w):
    """Heads are split off between a product and its activation."""
    return jax.nn.gelu((x @ w).reshape(8, 128, 8, 64).transpose(0, 2, 1, 3))


@pair("FUS010", lambda x: jnp.tanh(x)[::-1], (10, 65536))
def slices_put_together(x):
    """Ten slices in the opposite order, then worked on."""
    return jnp.tanh(jnp.concatenate([x[9 - i:10 - i] for i in range(10)]))


@pair("FUS010", lambda x: jnp.exp(jnp.roll(x, 1, 0)), (16, 65536))
def sixteen_pieces(x):
    """Sixteen slices in place of one roll."""
    return jnp.exp(jnp.concatenate([x[(i - 1) % 16:(i - 1) % 16 + 1] for i in range(16)]))


@pair("FUS010", lambda x: jax.nn.relu(x.reshape(16, 2, 16, 2, 64)[:, :, :, ::-1].reshape(16, 2, 32, 64)), (32, 32, 64))
def swapped_rows(x):
    """Neighbouring rows change places, slice by slice."""
    return jax.nn.relu(jnp.concatenate([x[:, i ^ 1:(i ^ 1) + 1] for i in range(32)], 1)).reshape(16, 2, 32, 64)


@pair("FUS012", lambda x: x.sum((0, 1)), (64, 64, 1024))
def sum_of_sums(x):
    """Two sums, one after the other."""
    return x.sum(0).sum(0)


@pair("FUS016", lambda x: jax.nn.softmax(x, axis=-1), (1024, 1024), same=False)
def softmax_over_the_wrong_axis(x):
    """The maximum of a softmax is taken over another axis than its sum."""
    e = jnp.exp(x - x.max(0, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pair("FUS017", lambda x: jnp.tanh(x) * 2 + 1, (1024, 2048))
def barrier(x):
    """A barrier between two elementwise operators: XLA's CPU compiler drops it."""
    return lax.optimization_barrier(jnp.tanh(x)) * 2 + 1


@pair("FUS020", lambda *p: jnp.concatenate(p) * 0.9, *[(64,)] * 64)
def many_small_kernels(*p):
    """64 small parameters, each updated by itself."""
    return tuple(q * 0.9 for q in p)
