"""Prints eight optimised programs of several kinds for ``first_view.py``: ``python first_view_programs.py FOLDER [NAME]``.

It needs jax (CPU). Each program is written the way its users write it: some keep names, most do not, several hold a dtype leak or a copy.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
F32, BF16 = jnp.float32, jnp.bfloat16
Program = tuple[Callable[..., Any], tuple[Any, ...]]


def arrays(**shapes: tuple[int, ...]) -> dict[str, jax.ShapeDtypeStruct]:
    return {name: jax.ShapeDtypeStruct(shape, F32) for name, shape in shapes.items()}


def norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    wide = x.astype(F32)
    return (wide * lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * scale).astype(x.dtype)


def decoder() -> Program:
    """One Adam step of a decoder of six layers in bfloat16, written as one function without scopes."""
    layers, width, heads, tokens, vocabulary = 6, 256, 8, 128, 1000
    layer = arrays(qkv=(width, 3 * width), out=(width, width), up=(width, 4 * width), down=(4 * width, width), n1=(width,), n2=(width,))
    params = {"embed": jax.ShapeDtypeStruct((vocabulary, width), F32), "layers": [dict(layer) for _ in range(layers)]}

    def attention(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
        q, k, v = jnp.split(x @ p["qkv"].astype(BF16), 3, -1)
        q, k, v = (a.reshape(*a.shape[:2], heads, -1).transpose(0, 2, 1, 3) for a in (q, k, v))
        scores = jnp.einsum("bhqd,bhkd->bhqk", q, k).astype(F32) / np.sqrt(width // heads)
        scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9)
        mixed = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores).astype(BF16), v)
        return mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"].astype(BF16)

    def loss(p: Any, ids: jax.Array) -> jax.Array:
        x = p["embed"][ids].astype(BF16)
        for each in p["layers"]:
            x = x + attention(norm(x, each["n1"]), each)
            x = x + jax.nn.gelu(norm(x, each["n2"]) @ each["up"].astype(BF16)) @ each["down"].astype(BF16)
        logits = (x @ p["embed"].T.astype(BF16)).astype(F32)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), ids[..., None], -1))

    def step(p: Any, m: Any, v: Any, ids: jax.Array) -> Any:
        value, g = jax.value_and_grad(loss)(p, ids)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.999 * a + 0.001 * b * b, v, g)
        return value, jax.tree.map(lambda a, b, c: a - 1e-3 * b / (jnp.sqrt(c) + 1e-8), p, m, v), m, v

    return step, (params, params, params, jax.ShapeDtypeStruct((4, tokens), jnp.int32))


def convnet() -> Program:
    """One step with momentum of a small residual net with batch normalisation."""
    widths = (32, 64, 128)
    params: dict[str, Any] = {"stem": jax.ShapeDtypeStruct((3, 3, 3, 32), F32), "head": jax.ShapeDtypeStruct((128, 10), F32)}
    for stage, width in enumerate(widths):
        for block in range(3):
            before = widths[max(stage - 1, 0)] if block == 0 else width
            params[f"stage{stage}_block{block}"] = arrays(a=(3, 3, before, width), b=(3, 3, width, width), ga=(width,), gb=(width,),
                                                          skip=(1, 1, before, width))

    def conv(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
        return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    def batch_norm(x: jax.Array, g: jax.Array) -> jax.Array:
        return (x - x.mean((0, 1, 2))) * lax.rsqrt(x.var((0, 1, 2)) + 1e-5) * g

    def loss(p: dict[str, Any], x: jax.Array, y: jax.Array) -> jax.Array:
        x = jax.nn.relu(conv(x, p["stem"]))
        for stage in range(3):
            for block in range(3):
                w = p[f"stage{stage}_block{block}"]
                stride = 2 if stage and not block else 1
                with jax.named_scope(f"stage{stage}_block{block}"):
                    h = jax.nn.relu(batch_norm(conv(x, w["a"], stride), w["ga"]))
                    h = batch_norm(conv(h, w["b"]), w["gb"])
                    x = jax.nn.relu(h + (conv(x, w["skip"], stride) if not block else x))
        logits = x.mean((1, 2)) @ p["head"]
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * jax.nn.one_hot(y, 10), -1))

    def step(p: Any, m: Any, x: jax.Array, y: jax.Array) -> Any:
        value, g = jax.value_and_grad(loss)(p, x, y)
        m = jax.tree.map(lambda a, b: 0.9 * a + b, m, g)
        return value, jax.tree.map(lambda a, b: a - 0.1 * b, p, m), m

    return step, (params, params, jax.ShapeDtypeStruct((16, 32, 32, 3), F32), jax.ShapeDtypeStruct((16,), jnp.int32))


def diffusion() -> Program:
    """A U-Net block for denoising: group norm, convolutions, attention over pixels, cross-attention, a guided step."""
    c = 64
    block = arrays(a=(3, 3, c, c), b=(3, 3, c, c), t=(128, c), q=(c, c), k=(c, c), v=(c, c), o=(c, c), kc=(96, c), vc=(96, c), qc=(c, c))
    params = {f"down{i}": dict(block) for i in range(2)} | {f"up{i}": dict(block) for i in range(2)} | {"mid": dict(block)}

    def group_norm(x: jax.Array) -> jax.Array:
        g = x.reshape(*x.shape[:3], 8, -1)
        g = (g - g.mean((1, 2, 4), keepdims=True)) / jnp.sqrt(g.var((1, 2, 4), keepdims=True) + 1e-5)
        return g.reshape(x.shape)

    def attend(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        # The scale is a float64 scalar of numpy: the softmax runs in float64.
        return (jax.nn.softmax(q @ k.swapaxes(-1, -2) * jnp.asarray(c ** -0.5, jnp.float64)) @ v).astype(F32)

    def unit(x: jax.Array, w: dict[str, jax.Array], t: jax.Array, text: jax.Array) -> jax.Array:
        h = lax.conv_general_dilated(jax.nn.silu(group_norm(x)), w["a"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        h = h + (jax.nn.silu(t) @ w["t"])[:, None, None]
        h = x + lax.conv_general_dilated(jax.nn.silu(group_norm(h)), w["b"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        flat = group_norm(h).reshape(h.shape[0], -1, c)
        flat = flat + attend(flat @ w["q"], flat @ w["k"], flat @ w["v"]) @ w["o"]
        flat = flat + attend(flat @ w["qc"], text @ w["kc"], text @ w["vc"]) @ w["o"]
        return flat.reshape(h.shape)

    def step(p: Any, x: jax.Array, time: jax.Array, text: jax.Array) -> jax.Array:
        angles = time[:, None] * jnp.exp(-jnp.arange(64, dtype=F32) / 64 * 9.2)
        t = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)
        kept, h = [], x
        for i in range(2):
            h = unit(h, p[f"down{i}"], t, text)
            kept.append(h)
            h = lax.reduce_window(h, jnp.array(0, F32), lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        h = unit(h, p["mid"], t, text)
        for i in range(2):
            h = jax.image.resize(h, (h.shape[0], h.shape[1] * 2, h.shape[2] * 2, c), "nearest") + kept.pop()
            h = unit(h, p[f"up{i}"], t, text)
        with_text, without = jnp.split(h, 2)
        return (x[:2] - 0.1 * (without + 7.5 * (with_text - without))).transpose(0, 3, 1, 2)

    return step, (params, jax.ShapeDtypeStruct((4, 32, 32, c), F32), jax.ShapeDtypeStruct((4,), F32),
                  jax.ShapeDtypeStruct((4, 20, 96), F32))


def graph_net() -> Program:
    """The gradient of a message-passing net of five rounds: gathers, segment sums, scatters."""
    nodes, edges, width = 2000, 10000, 64
    params = [arrays(m1=(2 * width, width), m2=(width, width), u=(2 * width, width)) for _ in range(5)]

    def loss(p: Any, x: jax.Array, sources: jax.Array, targets: jax.Array, y: jax.Array) -> jax.Array:
        for w in p:
            message = jax.nn.relu(jnp.concatenate([x[sources], x[targets]], -1) @ w["m1"]) @ w["m2"]
            pooled = jax.ops.segment_sum(message, targets, nodes) / 1.0e1
            x = jnp.tanh(jnp.concatenate([x, pooled], -1) @ w["u"]) + x
        return jnp.mean((x.sum(-1) - y) ** 2)

    shape = jax.ShapeDtypeStruct
    edge = shape((edges,), jnp.int32)
    return jax.grad(loss), (params, shape((nodes, width), F32), edge, edge, shape((nodes,), F32))


def recurrent() -> Program:
    """One step of plain gradient descent of two LSTM layers under scan."""
    width, steps = 128, 64
    params = {f"lstm{i}": arrays(x=(width, 4 * width), h=(width, 4 * width), b=(4 * width,)) for i in range(2)} | arrays(out=(width, 50))

    def lstm(w: dict[str, jax.Array], xs: jax.Array) -> jax.Array:
        def cell(carry: Any, x: jax.Array) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(x @ w["x"] + h @ w["h"] + w["b"], 4, -1)
            c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h
        zeros = jnp.zeros((xs.shape[1], width), F32)
        return lax.scan(cell, (zeros, zeros), xs)[1]

    def loss(p: Any, xs: jax.Array, ys: jax.Array) -> jax.Array:
        h = xs.transpose(1, 0, 2)
        for i in range(2):
            h = lstm(p[f"lstm{i}"], h)
        logits = h.transpose(1, 0, 2) @ p["out"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), ys[..., None], -1))

    def step(p: Any, xs: jax.Array, ys: jax.Array) -> Any:
        g = jax.grad(loss)(p, xs, ys)
        size = jnp.sqrt(sum(jnp.sum(a * a) for a in jax.tree.leaves(g)))
        return jax.tree.map(lambda a, b: a - 0.1 * b * jnp.minimum(1.0, 1 / size), p, g)

    return step, (params, jax.ShapeDtypeStruct((16, steps, width), F32), jax.ShapeDtypeStruct((16, steps), jnp.int32))


def experts() -> Program:
    """The gradient of four layers of a mixture of eight experts, two for each token, in float16."""
    width, n, tokens = 128, 8, 256
    params = [arrays(gate=(width, n), up=(n, width, 4 * width), down=(n, 4 * width, width), scale=(width,)) for _ in range(4)]

    def layer(w: dict[str, jax.Array], x: jax.Array) -> jax.Array:
        h = norm(x, w["scale"])
        share, chosen = lax.top_k(jax.nn.softmax(h.astype(F32) @ w["gate"]), 2)
        share = share / share.sum(-1, keepdims=True)
        one = jax.nn.one_hot(chosen, n, dtype=F32)
        place = (jnp.cumsum(one.reshape(-1, n), 0) * one.reshape(-1, n)).reshape(tokens, 2, n) - 1
        dispatch = jax.nn.one_hot(jnp.sum(place * one, -1).astype(jnp.int32), 80, dtype=F32)[:, :, None, :] * one[..., None]
        into = jnp.einsum("tknc,td->ncd", dispatch, h.astype(F32)).astype(jnp.float16)
        hidden = jax.nn.silu(jnp.einsum("ncd,ndf->ncf", into, w["up"].astype(jnp.float16)))
        back = jnp.einsum("ncf,nfd->ncd", hidden, w["down"].astype(jnp.float16))
        return x + jnp.einsum("tknc,ncd,tk->td", dispatch, back.astype(F32), share).astype(jnp.float16)

    def loss(p: Any, x: jax.Array) -> jax.Array:
        h = x.astype(jnp.float16)
        for w in p:
            h = layer(w, h)
        return jnp.mean(h.astype(F32) ** 2)

    return jax.value_and_grad(loss), (params, jax.ShapeDtypeStruct((tokens, width), F32))


def physics() -> Program:
    """A step of a shallow-water model with a spectral filter and a pressure solve by conjugate gradients."""
    n = 256

    def slope(a: jax.Array, axis: int) -> jax.Array:
        return (jnp.roll(a, -1, axis) - jnp.roll(a, 1, axis)) / 2

    def laplace(a: jax.Array) -> jax.Array:
        return sum(jnp.roll(a, s, d) for s in (-1, 1) for d in (0, 1)) - 4 * a

    def tendency(h: jax.Array, u: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        turn = 0.1 + 1e-3 * jnp.arange(n, dtype=F32)[:, None]
        return (-slope(h * u, 0) - slope(h * v, 1) + 0.01 * laplace(h), -u * slope(u, 0) - v * slope(u, 1) + turn * v - 9.8 * slope(h, 0),
                -u * slope(v, 0) - v * slope(v, 1) - turn * u - 9.8 * slope(h, 1))

    def step(h: jax.Array, u: jax.Array, v: jax.Array) -> Any:
        dt = 0.01
        state = (h, u, v)
        ks: list[tuple[jax.Array, ...]] = []
        for weight in (0.0, 0.5, 0.5, 1.0):
            ks.append(tendency(*(a + weight * dt * ks[-1][i] if ks else a for i, a in enumerate(state))))
        h, u, v = (a + dt / 6 * (ks[0][i] + 2 * ks[1][i] + 2 * ks[2][i] + ks[3][i]) for i, a in enumerate(state))
        k = jnp.fft.fftfreq(n)
        keep = (jnp.abs(k)[:, None] < 0.33) & (jnp.abs(jnp.fft.rfftfreq(n))[None] < 0.33)
        u, v = (jnp.fft.irfft2(jnp.fft.rfft2(a) * keep) for a in (u, v))
        divergence = (slope(u, 0) + slope(v, 1)).T
        pressure = jax.scipy.sparse.linalg.cg(lambda a: a - laplace(a), divergence, maxiter=10)[0].T
        u, v = u - slope(pressure, 0), v - slope(pressure, 1)
        energy = jnp.sum(h.astype(jnp.float64) * (u * u + v * v))
        return h, u.astype(F32), v.astype(F32), energy

    return step, tuple(jax.ShapeDtypeStruct((n, n), F32) for _ in range(3))


def optimizer() -> Program:
    """An update alone: Muon (Newton-Schulz) for twelve matrices, AdamW for twelve vectors, clipped by the global norm."""
    params = {f"w{i}": jax.ShapeDtypeStruct((256, 128 if i % 2 else 256), F32) for i in range(12)}
    params |= {f"b{i}": jax.ShapeDtypeStruct((256,), F32) for i in range(12)}

    def orthogonal(g: jax.Array) -> jax.Array:
        x = (g / (jnp.linalg.norm(g) + 1e-7)).astype(BF16)
        for _ in range(5):
            a = x.T @ x
            x = 3.4445 * x + x @ (-4.7750 * a + 2.0315 * a @ a)
        return x.astype(F32)

    def step(p: dict[str, jax.Array], m: dict[str, jax.Array], v: dict[str, jax.Array], g: dict[str, jax.Array]) -> Any:
        size = jnp.sqrt(sum(jnp.sum(jnp.square(a)) for a in g.values()))
        g = {key: a * jnp.minimum(1.0, 1.0 / size) for key, a in g.items()}
        out_p, out_m, out_v = {}, {}, {}
        for key, a in p.items():
            out_m[key] = 0.95 * m[key] + g[key]
            out_v[key] = 0.99 * v[key] + 0.01 * g[key] ** 2
            by = orthogonal(out_m[key]) if a.ndim == 2 else out_m[key] / (jnp.sqrt(out_v[key]) + 1e-8)
            out_p[key] = a * (1 - 1e-4) - 1e-2 * by
        return out_p, out_m, out_v

    return step, (params,) * 4


PROGRAMS = (decoder, convnet, diffusion, graph_net, recurrent, experts, physics, optimizer)


def main(folder: str, only: str = "") -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    for program in PROGRAMS:
        if only in ("", program.__name__):
            f, args = program()
            text = jax.jit(f).lower(*args).compile().as_text()
            Path(folder, f"{program.__name__}.opt.hlo").write_text(text)
            print(program.__name__, text.count("\n"), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
