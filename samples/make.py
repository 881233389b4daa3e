"""Writes the sample dumps of this folder anew. Needs jax: ``pip install jax==0.10.2 && python samples/make.py``."""
import re
from pathlib import Path

import jax
import jax.numpy as jnp

FOLDER = Path(__file__).resolve().parent
# The dumps quote source lines; without this they would name a folder of the machine that made them.
jax.config.update("jax_hlo_source_file_canonicalization_regex", re.escape(f"{FOLDER.parent}/"))


def shaped(*shape, dtype=jnp.float32):
    """A stand-in for an array; only its shape and dtype go into a dump."""
    return jax.ShapeDtypeStruct(shape, dtype)


def mlp(x, w1, b1, w2, b2):
    """Linear(128, 256), ReLU, Linear(256, 64)."""
    with jax.named_scope("fc1"):
        h = x @ w1 + b1
    with jax.named_scope("relu"):
        h = jnp.maximum(h, 0)
    with jax.named_scope("fc2"):
        return h @ w2 + b2


def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def transformer(x, layers):
    """Encoder layers with four heads, pre-norm, GELU."""
    for number, p in enumerate(layers):
        with jax.named_scope(f"layer_{number}"):
            with jax.named_scope("attention"):
                h = layer_norm(x, p["s1"], p["t1"])
                q, k, v = (jnp.reshape(h @ p[n], (*h.shape[:2], 4, -1)).transpose(0, 2, 1, 3) for n in ("q", "k", "v"))
                scores = jax.nn.softmax(q @ k.swapaxes(-1, -2) / jnp.sqrt(q.shape[-1] * 1.0), -1)
                x = x + (scores @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ p["o"]
            with jax.named_scope("mlp"):
                h = layer_norm(x, p["s2"], p["t2"])
                x = x + jax.nn.gelu(h @ p["up"]) @ p["down"]
    return x


def residual(x, w1, scale, shift, w2):
    """Convolution, batch norm of inference, ReLU, convolution, and the input added (NHWC)."""
    def convolve(x, w):
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    h = jax.nn.relu(convolve(x, w1) * scale + shift)
    return jax.nn.relu(x + convolve(h, w2))


def wasteful(x, w, bias):
    """What a linter should object to: a float64 that leaked in, a cast there and back, a sum in half precision, tanh computed twice."""
    h = x @ w
    h = h.astype(jnp.bfloat16).astype(jnp.float32) + bias
    scale = jnp.float64(0.5)
    leaked = (h.astype(jnp.float64) * scale).sum(-1)
    norm = jax.lax.reduce(h.astype(jnp.float16), jnp.float16(0), jax.lax.add, (1,))
    return leaked.astype(jnp.float32) + norm.astype(jnp.float32) + jnp.tanh(h).max(-1) * jnp.tanh(h).min(-1)


def newton(x):
    """A loop whose trips depend on the data, and a branch: square roots by Newton's method."""
    x = jnp.abs(x) + 0.01

    def step(state):
        guess, _, steps = state
        better = 0.5 * (guess + x / guess)
        return better, jnp.abs(better - guess).max(), steps + 1

    start = jnp.ones_like(x), jnp.float32(1), jnp.int32(0)
    root, error, _ = jax.lax.while_loop(lambda state: (state[1] > 1e-5) & (state[2] < 100), step, start)
    return jax.lax.cond(error <= 1e-5, lambda r: r, lambda r: jnp.full_like(r, jnp.nan), root)


def dump(name, function, *arguments, optimized=True):
    lowered = jax.jit(function).lower(*arguments)
    (FOLDER / f"{name}.pre.hlo").write_text(lowered.as_text(dialect="hlo"))
    if optimized:
        (FOLDER / f"{name}.opt.hlo").write_text(lowered.compile().as_text())


def main():
    dump("mlp", mlp, shaped(32, 128), shaped(128, 256), shaped(256), shaped(256, 64), shaped(64))
    width = 64
    layer = {n: shaped(width, width) for n in "qkvo"} | {n: shaped(width) for n in ("s1", "t1", "s2", "t2")}
    layer |= {"up": shaped(width, 4 * width), "down": shaped(4 * width, width)}
    dump("transformer", transformer, shaped(2, 16, width), [layer] * 3)
    dump("residual", residual, shaped(1, 28, 28, 32), shaped(3, 3, 32, 32), shaped(32), shaped(32), shaped(3, 3, 32, 32))
    dump("newton", newton, shaped(1024))
    with jax.enable_x64(True):
        dump("wasteful", wasteful, shaped(8, 512), shaped(512, 2048), shaped(2048), optimized=False)


if __name__ == "__main__":
    main()
