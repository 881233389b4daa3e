"""Faults with loops."""
from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from lint_programs.pair import pair

BF16 = jnp.bfloat16


def _hoisted(x, w):
    m = w @ w
    return lax.fori_loop(0, 16, lambda i, h: jnp.tanh(h @ m), x)


@pair("CTL003", _hoisted, (16, 256), (256, 256))
def product_inside_a_loop(x, w):
    """A product of weights in every trip of a loop: XLA moves it out, irscope does not."""
    return lax.fori_loop(0, 16, lambda i, h: jnp.tanh(h @ (w @ w)), x)


@pair("CTL003", lambda x, t: (lambda s: lax.fori_loop(0, 32, lambda i, h: h * s + 1, x))(jnp.exp(jnp.sin(t))), (512, 512), (512, 512))
def exponential_inside_a_loop(x, t):
    """The same exponential in every trip."""
    return lax.fori_loop(0, 32, lambda i, h: h * jnp.exp(jnp.sin(t)) + 1, x)


def _scan(x, w):
    return lax.scan(lambda h, t: (jnp.tanh(h @ w + t), None), jnp.zeros((8, 256)), x)[0]


@pair("CTL003", lambda x, w: _scan(x, w.astype(jnp.float32)), (64, 8, 256), (256, 256, BF16))
def weights_widened_in_a_scan(x, w):
    """A recurrent net widens its weights in every step."""
    return lax.scan(lambda h, t: (jnp.tanh(h @ w.astype(jnp.float32) + t), None), jnp.zeros((8, 256)), x)[0]


@pair("CTL002", lambda x: lax.fori_loop(0, 16, lambda i, h: jnp.tanh(h * 1.5) + 1, x), (256, 1024))
def unrolled(x):
    """Sixteen equal stretches in a row: slower to compile, not a fault at run time."""
    for _ in range(16):
        x = jnp.tanh(x * 1.5) + 1
    return x


@pair("SHP004", lambda x: jnp.tanh(x * 3) + 0.5, (1024, 1024))
def loop_of_one_trip(x):
    """A loop that runs once."""
    return lax.fori_loop(0, 1, lambda i, h: jnp.tanh(h * 1.5) + 0.5, x * 2)


@pair("FUS007", lambda x, w: jnp.tanh(x @ w), (512, 256), (256, 256))
def rows_in_a_loop(x, w):
    """Row by row in a loop, where one product takes all."""
    return lax.map(lambda row: jnp.tanh(row @ w), x)


@pair("CTL003", lambda x: (lambda c: lax.fori_loop(0, 64, lambda i, h: h * c, x))(jnp.cos(jnp.log(jnp.abs(x) + 1))), (64, 1024))
def same_cosine_in_a_loop(x):
    """A cosine of what the loop starts from, in every trip."""
    y = x + 0
    return lax.fori_loop(0, 64, lambda i, h: (h[0] * jnp.cos(jnp.log(jnp.abs(h[1]) + 1)), h[1]), (x, y))[0]
