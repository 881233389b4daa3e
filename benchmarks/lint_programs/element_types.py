"""Faults with element types: too wide, too narrow, there and back."""
from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lint_programs.pair import pair

F16, BF16 = jnp.float16, jnp.bfloat16
I32, I8 = np.int32, np.int8


@pair("DTY001", lambda x, w: jnp.tanh(x @ w * np.float32(0.125)).sum(-1), (256, 512), (512, 512), x64=True)
def float64_scale(x, w):
    """A NumPy scalar of 64 bits widens everything behind it."""
    return jnp.tanh((x @ w) * jnp.asarray(np.float64(0.125))[None, None]).sum(-1).astype(jnp.float32)


@pair("DTY001", lambda x: jnp.exp(-x * x / np.float32(2)).mean(0), (1024, 1024), x64=True)
def float64_table(x):
    """A constant of NumPy is float64."""
    return jnp.exp(-x * x / np.full(1024, 2.0)).mean(0).astype(jnp.float32)


@pair("DTY001", lambda x, w: jax.nn.relu(x @ w), (128, 512), (512, 512), x64=True)
def float64_product(x, w):
    """A product in float64 where float32 goes in and comes out."""
    return jax.nn.relu(x.astype(jnp.float64) @ w.astype(jnp.float64)).astype(jnp.float32)


@pair("DTY001", lambda x: jax.nn.softmax(x * np.float32(0.5), -1), (512, 1024), x64=True)
def float64_softmax(x):
    """A softmax in float64, because of its temperature."""
    return jax.nn.softmax(x * np.asarray([0.5]), -1).astype(jnp.float32)


@pair("DTY001", lambda x: x + jnp.sin(jnp.arange(1024, dtype=jnp.float32))[None], (1024, 1024), x64=True)
def float64_positions(x):
    """Positions counted in float64."""
    return (x + jnp.sin(jnp.arange(1024, dtype=jnp.float64))[None]).astype(jnp.float32)


@pair("DTY003", lambda x, w, v: jax.nn.relu(x @ w) @ v, (512, 512), (512, 512), (512, 512))
def rounded_between_products(x, w, v):
    """bfloat16 and back between two products that run in float32."""
    return jax.nn.relu((x @ w).astype(BF16).astype(jnp.float32)) @ v


@pair("DTY003", lambda x: jnp.tanh(x) * 2, (2048, 2048, BF16))
def widened_for_nothing(x):
    """bfloat16 to float32 and back, with nothing between but a change of shape."""
    y = x.astype(jnp.float32).reshape(1024, 4096).astype(BF16)
    return jnp.tanh(y).reshape(2048, 2048) * 2


@pair("DTY003", lambda x, w: x @ w, (8, 2048), (2048, 2048))
def rounded_weights(x, w):
    """Weights are rounded to bfloat16 and widened in every run."""
    return x @ w.astype(BF16).astype(jnp.float32)


@pair("DTY003", lambda x: x.transpose(1, 0) + 1, (2048, 1024, F16))
def cast_around_transpose(x):
    """float16 to float32, transposed, and back: one kernel in any case."""
    return x.astype(jnp.float32).transpose(1, 0).astype(F16) + 1


@pair("DTY004", lambda x: x.astype(jnp.float32).sum(-1).astype(F16), (1024, 4096, F16))
def half_sum(x):
    """4096 numbers are summed up in float16."""
    return lax.reduce(x, F16(0), lax.add, (1,))


@pair("DTY004", lambda x: x.astype(jnp.float32).sum(0).astype(BF16), (4096, 512, BF16))
def bfloat16_gradient(x):
    """A gradient of a bias is summed up over 4096 rows in bfloat16."""
    return lax.reduce(x, BF16(0), lax.add, (0,))


def _whole(x, q, s):
    return lax.dot_general(x.astype(I8), q, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32).astype(jnp.float32) * s


@pair("DTY005", _whole, (8, 1024), (1024, 1024, I8), (1024,), same=False)
def scaled_weights(x, q, s):
    """Weights of 8 bits are scaled before a product of a few rows."""
    return x @ (q.astype(jnp.float32) * s)


@pair("DTY005", _whole, (256, 512), (512, 512, I8), (512,), same=False)
def scaled_weights_of_many_rows(x, q, s):
    """The same for many rows: the arithmetic counts, and nothing is claimed."""
    return x @ (q.astype(jnp.float32) * s)


@pair("DTY007", lambda x, i: jnp.take(x, i, axis=0, mode="clip"), (4096, 64), (65536, I32), x64=True, below={1: 4096})
def wide_indices(x, i):
    """Indices are widened to 64 bits before rows are taken."""
    return jnp.take(x, i.astype(jnp.int64), axis=0, mode="clip")


@pair("DTY008", lambda x, m: jnp.where(m > 0, x, 0), (1024, 4096), (1024, 4096))
def mask_as_floats(x, m):
    """A mask becomes floats and is multiplied in: wrong for infinities, not slow."""
    return x * (m > 0).astype(jnp.float32)
