"""The nets of the side-by-side: each is written once, over operations that numpy-like, jax or torch values give.

Weights and inputs are drawn from the name of each value, so that every process makes the same ones. Runs in irscope's interpreter
and in the peers': it imports numpy alone until an engine is asked for.
"""
from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any
Weights = dict[str, np.ndarray]
Net = Callable[[Any, Callable[..., Array], Array], Array]


def draw(net: str, name: str, shape: tuple[int, ...], kind: str) -> np.ndarray:
    """A weight or an input: normal numbers scaled as ``kind`` says, the same in every process."""
    x = np.random.default_rng(zlib.crc32(f"{net}/{name}".encode())).standard_normal(shape, dtype=np.float32)
    scale, offset = {
        "input": (1.0, 0.0), "dense": (shape[0] ** -0.5, 0.0), "conv": ((1.5 / np.prod(shape[1:])) ** 0.5, 0.0), "bias": (0.02, 0.0),
        "one": (0.1, 1.0), "half": (0.05, 0.4), "mean": (0.1, 0.0), "variance": (0.05, 1.0),
    }[kind]
    return np.asarray(x * np.float32(scale) + np.float32(offset), np.float32)


# ---- the nets -------------------------------------------------------------------------------------------------------------------


def mlp(o: Any, p: Callable[..., Array], x: Array) -> Array:
    """Two dense layers with a ReLU between: 128 -> 256 -> 64."""
    return o.dense(o.relu(o.dense(x, p, "fc1", 128, 256)), p, "fc2", 256, 64)


def bert_layer(o: Any, p: Callable[..., Array], x: Array) -> Array:
    """One encoder layer of BERT-base over 128 tokens."""
    width, heads, tokens = 768, 12, 128

    def split(name: str) -> Array:
        return o.transpose(o.reshape(o.dense(x, p, name, width, width), (1, tokens, heads, width // heads)), (0, 2, 1, 3))

    attended = o.attention(split("q"), split("k"), split("v"), (width // heads) ** -0.5)
    attended = o.dense(o.reshape(o.transpose(attended, (0, 2, 1, 3)), (1, tokens, width)), p, "out", width, width)
    y = o.layer_norm(x + attended, p("ln1.g", (width,), "one"), p("ln1.b", (width,), "bias"), 1e-12)
    up = o.gelu(o.dense(y, p, "up", width, 4 * width))
    return o.layer_norm(y + o.dense(up, p, "down", 4 * width, width), p("ln2.g", (width,), "one"), p("ln2.b", (width,), "bias"), 1e-12)


def _unit(o: Any, p: Callable[..., Array], x: Array, name: str, sizes: tuple[int, int, int], stride: int = 1, groups: int = 1,
          act: str = "relu", gamma: str = "one") -> Array:
    """Convolution, batch normalisation, activation."""
    inputs, outputs, window = sizes
    y = o.conv(x, p(name + ".w", (outputs, inputs // groups, window, window), "conv"), stride, window // 2, groups)
    y = o.batch_norm(y, *(p(f"{name}.{part}", (outputs,), kind)
                          for part, kind in (("g", gamma), ("beta", "bias"), ("mean", "mean"), ("var", "variance"))), 1e-5)
    return {"relu": o.relu, "relu6": o.relu6, "none": lambda v: v}[act](y)


def resnet50(o: Any, p: Callable[..., Array], x: Array) -> Array:
    """ResNet-50, batch normalisation as it is trained (nothing folded by hand)."""
    x = o.max_pool(_unit(o, p, o.image(x), "stem", (3, 64, 7), 2), 3, 2, 1)
    channels = 64
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            name = f"s{stage}.{block}"
            y = _unit(o, p, x, name + ".a", (channels, width, 1))
            y = _unit(o, p, y, name + ".b", (width, width, 3), stride)
            y = _unit(o, p, y, name + ".c", (width, 4 * width, 1), act="none", gamma="half")
            if block == 0:
                x = _unit(o, p, x, name + ".d", (channels, 4 * width, 1), stride, act="none")
            x, channels = o.relu(y + x), 4 * width
    return o.dense(o.reshape(o.mean_pixels(x), (1, channels)), p, "fc", channels, 1000)


def mobilenet_v2(o: Any, p: Callable[..., Array], x: Array) -> Array:
    """MobileNetV2: inverted residuals around depthwise convolutions."""
    x, channels, number = _unit(o, p, o.image(x), "stem", (3, 32, 3), 2, act="relu6"), 32, 0
    for expand, outputs, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                                           (6, 320, 1, 1)):
        for block in range(blocks):
            stride, hidden, name, y = first if block == 0 else 1, channels * expand, f"b{number}", x
            if expand != 1:
                y = _unit(o, p, y, name + ".e", (channels, hidden, 1), act="relu6")
            y = _unit(o, p, y, name + ".d", (hidden, hidden, 3), stride, hidden, "relu6")
            y = _unit(o, p, y, name + ".p", (hidden, outputs, 1), act="none")
            x = x + y if stride == 1 and channels == outputs else y
            channels, number = outputs, number + 1
    x = o.mean_pixels(_unit(o, p, x, "head", (320, 1280, 1), act="relu6"))
    return o.dense(o.reshape(x, (1, 1280)), p, "fc", 1280, 1000)


NETS: dict[str, tuple[Net, tuple[int, ...]]] = {
    "mlp": (mlp, (32, 128)),
    "bert_layer": (bert_layer, (1, 128, 768)),
    "resnet50": (resnet50, (1, 3, 224, 224)),
    "mobilenet_v2": (mobilenet_v2, (1, 3, 224, 224)),
}


class _Anything:
    """Stands for every value and every operation while the names of the weights are collected."""

    def __getattr__(self, name: str) -> Any:
        if name == "dense":
            return self._dense
        return lambda *args: self

    def _dense(self, x: Any, p: Callable[..., Array], name: str, inputs: int, outputs: int) -> Any:
        p(name + ".w", (inputs, outputs), "dense")
        p(name + ".b", (outputs,), "bias")
        return self

    def __add__(self, other: Any) -> Any:
        return self


def weights(name: str) -> Weights:
    """The weights of a net, in the order of their names (which is the order of a jax dict)."""
    found: Weights = {}

    def note(weight: str, shape: tuple[int, ...], kind: str) -> Any:
        if weight not in found:
            found[weight] = draw(name, weight, shape, kind)
        return _Anything()

    NETS[name][0](_Anything(), note, _Anything())
    return dict(sorted(found.items()))


def inputs(name: str) -> np.ndarray:
    """The net's one input."""
    return draw(name, "x", NETS[name][1], "input")


# ---- the operations, in jax and in torch -----------------------------------------------------------------------------------------


def jax_operations(channels_last: bool) -> Any:
    """The operations on jax arrays, images as NHWC or as NCHW."""
    import jax.numpy as jnp
    from jax import lax, nn

    pixels = (1, 2) if channels_last else (2, 3)

    def channel(v: Array) -> Array:
        return v if channels_last else v[:, None, None]

    class Operations:
        relu = staticmethod(lambda x: jnp.maximum(x, 0))
        relu6 = staticmethod(lambda x: jnp.clip(x, 0, 6))
        gelu = staticmethod(lambda x: nn.gelu(x, approximate=False))
        reshape = staticmethod(lambda x, shape: x.reshape(shape))
        transpose = staticmethod(lambda x, order: x.transpose(order))
        image = staticmethod(lambda x: x.transpose(0, 2, 3, 1) if channels_last else x)
        mean_pixels = staticmethod(lambda x: x.mean(pixels))

        @staticmethod
        def dense(x: Array, p: Any, name: str, inputs: int, outputs: int) -> Array:
            return x @ p(name + ".w", (inputs, outputs), "dense") + p(name + ".b", (outputs,), "bias")

        @staticmethod
        def attention(q: Array, k: Array, v: Array, scale: float) -> Array:
            return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k) * scale, -1), v)

        @staticmethod
        def layer_norm(x: Array, g: Array, b: Array, epsilon: float) -> Array:
            centred = x - x.mean(-1, keepdims=True)
            return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + epsilon) * g + b

        @staticmethod
        def conv(x: Array, w: Array, stride: int, pad: int, groups: int) -> Array:
            numbers = ("NHWC", "HWIO", "NHWC") if channels_last else ("NCHW", "OIHW", "NCHW")
            return lax.conv_general_dilated(x, w.transpose(2, 3, 1, 0) if channels_last else w, (stride, stride), [(pad, pad)] * 2,
                                            feature_group_count=groups, dimension_numbers=numbers)

        @staticmethod
        def batch_norm(x: Array, g: Array, b: Array, mean: Array, variance: Array, epsilon: float) -> Array:
            return (x - channel(mean)) * channel(g * lax.rsqrt(variance + epsilon)) + channel(b)

        @staticmethod
        def max_pool(x: Array, window: int, stride: int, pad: int) -> Array:
            def spread(one: Any, pixel: Any) -> list[Any]:
                return [one, pixel, pixel, one] if channels_last else [one, one, pixel, pixel]
            return lax.reduce_window(x, -jnp.inf, lax.max, spread(1, window), spread(1, stride), spread((0, 0), (pad, pad)))

    return Operations


def torch_operations() -> Any:
    """The operations on torch tensors; dense weights come transposed, as torch keeps them."""
    import torch
    import torch.nn.functional as F

    class Operations:
        relu = staticmethod(F.relu)
        relu6 = staticmethod(F.relu6)
        gelu = staticmethod(F.gelu)
        reshape = staticmethod(torch.reshape)
        transpose = staticmethod(torch.permute)
        image = staticmethod(lambda x: x)
        mean_pixels = staticmethod(lambda x: F.adaptive_avg_pool2d(x, 1))
        max_pool = staticmethod(F.max_pool2d)

        @staticmethod
        def dense(x: Array, p: Any, name: str, inputs: int, outputs: int) -> Array:
            return F.linear(x, p(name + ".w", (inputs, outputs), "dense"), p(name + ".b", (outputs,), "bias"))

        @staticmethod
        def attention(q: Array, k: Array, v: Array, scale: float) -> Array:
            return F.scaled_dot_product_attention(q, k, v, scale=scale)

        @staticmethod
        def layer_norm(x: Array, g: Array, b: Array, epsilon: float) -> Array:
            return F.layer_norm(x, g.shape, g, b, epsilon)

        @staticmethod
        def conv(x: Array, w: Array, stride: int, pad: int, groups: int) -> Array:
            return F.conv2d(x, w, None, stride, pad, 1, groups)

        @staticmethod
        def batch_norm(x: Array, g: Array, b: Array, mean: Array, variance: Array, epsilon: float) -> Array:
            return F.batch_norm(x, mean, variance, g, b, False, 0.1, epsilon)

    return Operations
