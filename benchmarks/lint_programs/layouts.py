"""Faults with the order of axes."""
from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from lint_programs.pair import pair


@pair("LAY001", lambda x: jnp.tanh(x) * 2, (2048, 2048))
def transposed_and_back(x):
    """Turned, worked on, and turned back: compilers cancel that."""
    return (jnp.tanh(x.T) * 2).T


@pair("LAY001", lambda x, s: jax.nn.relu(x * s[None, :, None, None]), (8, 64, 56, 56), (64,))
def channels_last_and_back(x, s):
    """To channels last for a scale, and back."""
    return jax.nn.relu(x.transpose(0, 2, 3, 1) * s).transpose(0, 3, 1, 2)


def convolved(x, w, layout=("NHWC", "HWIO", "NHWC")):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout)


FIRST = ("NCHW", "HWIO", "NCHW")


@pair("LAY002", lambda x, w: jax.nn.relu(convolved(x, w)), (4, 56, 56, 64), (3, 3, 64, 64))
def convolution_between_transposes(x, w):
    """A channels-last model turns to channels first for its convolution."""
    return jax.nn.relu(convolved(x.transpose(0, 3, 1, 2), w, FIRST)).transpose(0, 2, 3, 1)


@pair("LAY002", lambda x, w: convolved(x, w), (8, 56, 56, 64), (1, 1, 64, 64))
def pointwise_convolution_between_transposes(x, w):
    """The same around a convolution of 1 x 1."""
    return convolved(x.transpose(0, 3, 1, 2), w, FIRST).transpose(0, 2, 3, 1)


@pair("LAY003", lambda x, w: x @ w, (512, 512), (512, 512), same=False)
def product_of_transposed(x, w):
    """The weights lie the other way round: no fault, products take them so."""
    return jnp.einsum("ik,jk->ij", x, w)


@pair("LAY005", lambda x: jnp.sqrt((x * x).sum(0)), (3, 262144))
def short_last_axis(x):
    """Points as rows of three numbers: sums run along the short axis."""
    y = x.T
    return jnp.sqrt((y * y).sum(-1))
