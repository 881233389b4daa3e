"""Programs with several faults, one behind the other: each can be mended alone, so that what it costs can be timed alone."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lint_programs.pair import Function, Shape, arguments

F64, BF16, I32 = jnp.float64, jnp.bfloat16, np.int32


@dataclass(frozen=True)
class Stage:
    """A part of a program, with a fault and without: functions of the value so far and of the stage's own arguments."""

    rule: str
    bad: Function
    fixed: Function
    shapes: tuple[Shape, ...] = ()
    below: int = 100


@dataclass(frozen=True)
class Mix:
    """Stages by name, over rows that go through all of them."""

    name: str
    shape: tuple[int, int]
    stages: dict[str, Stage] = field(default_factory=dict)

    def program(self, mended: str = "") -> Function:
        """The program with all faults, or without that of one stage. Each stage stands in a scope of its name."""

        def run(x: Any, *given: Any) -> Any:
            rest = list(given)
            for name, stage in self.stages.items():
                mine, rest = rest[: len(stage.shapes)], rest[len(stage.shapes) :]
                with jax.named_scope(name):
                    x = (stage.fixed if name == mended else stage.bad)(x, *mine)
            return x

        return run

    def arguments(self) -> list[np.ndarray]:
        """The rows, and what the stages want."""
        shapes = [self.shape]
        below: dict[int, int] = {}
        for stage in self.stages.values():
            below |= {len(shapes) + i: stage.below for i in range(len(stage.shapes))}
            shapes += stage.shapes
        return arguments(tuple(shapes), below)


def repeated_rows(times: int, width: int) -> Stage:
    """A product of rows that are each repeated."""

    def bad(x: Any, w: Any, v: Any) -> Any:
        wide = jnp.broadcast_to(x[:, None, :], (x.shape[0], times, width))
        return jnp.tanh(jnp.einsum("btk,kj->btj", wide, w) * v).max(1)

    def fixed(x: Any, w: Any, v: Any) -> Any:
        return jnp.tanh((x @ w)[:, None, :] * v).max(1)

    return Stage("BRD001", bad, fixed, ((width, width), (times, 1)))


def one_hot(rows: int, table: int, width: int) -> Stage:
    """Embeddings by a product with one-hot rows."""
    return Stage("ALG009", lambda x, i, t: x + jax.nn.one_hot(i, table, dtype=jnp.float32) @ t,
                 lambda x, i, t: x + jnp.take(t, i, axis=0, mode="clip"),
                 ((rows, I32), (table, width)), table)


def double() -> Stage:
    """Arithmetic in float64."""
    return Stage("DTY001", lambda x: jnp.tanh(x * np.full(x.shape[1], 0.5)).astype(jnp.float32), lambda x: jnp.tanh(x * np.float32(0.5)))


def double_product(width: int) -> Stage:
    """A product in float64."""
    return Stage("DTY001", lambda x, w: (x.astype(F64) @ w.astype(F64)).astype(jnp.float32) * 0.05, lambda x, w: (x @ w) * 0.05,
                 ((width, width),))


def pieces(count: int) -> Stage:
    """Blocks of rows put together in the opposite order, then worked on."""

    def bad(x: Any) -> Any:
        step = x.shape[0] // count
        return jnp.sin(jnp.concatenate([x[(count - 1 - i) * step:(count - i) * step] for i in range(count)]))

    def fixed(x: Any) -> Any:
        return jnp.sin(x.reshape(count, -1, x.shape[1])[::-1].reshape(x.shape))

    return Stage("FUS010", bad, fixed)


def summed_repeats(times: int) -> Stage:
    """A sum over repeats and rows."""
    return Stage("BRD004", lambda x: x * 0.5 + jnp.tanh(jnp.broadcast_to(x[:, None], (x.shape[0], times, x.shape[1])).sum((0, 1))),
                 lambda x: x * 0.5 + jnp.tanh(x.sum(0) * times))


def sorted_repeats(rows: int, width: int) -> Stage:
    """Every copy of a row is sorted."""
    return Stage("BRD001", lambda x, v: x + lax.sort(jnp.broadcast_to(v, (rows, width)), dimension=-1), lambda x, v: x + lax.sort(v),
                 ((width,),))


def loop(trips: int, width: int) -> Stage:
    """A product of weights in every trip."""

    def bad(x: Any, w: Any) -> Any:
        return lax.fori_loop(0, trips, lambda i, h: jnp.tanh(h @ (w @ w)), x)

    def fixed(x: Any, w: Any) -> Any:
        square = w @ w
        return lax.fori_loop(0, trips, lambda i, h: jnp.tanh(h @ square), x)

    return Stage("CTL003", bad, fixed, ((width, width),))


def looped_cosine(trips: int, width: int) -> Stage:
    """The same cosines in every trip."""

    def bad(x: Any, t: Any) -> Any:
        return lax.fori_loop(0, trips, lambda i, h: h * jnp.cos(jnp.log(jnp.abs(t) + 1)) + 0.1, x)

    def fixed(x: Any, t: Any) -> Any:
        scale = jnp.cos(jnp.log(jnp.abs(t) + 1))
        return lax.fori_loop(0, trips, lambda i, h: h * scale + 0.1, x)

    return Stage("CTL003", bad, fixed, ((512, width),))


def repeated_keys(heads: int, groups: int, length: int) -> Stage:
    """Keys are repeated for each query head."""

    def bad(x: Any, k: Any) -> Any:
        q = x.reshape(length, heads, -1).transpose(1, 0, 2)
        scores = jnp.einsum("hsd,htd->hst", q, jnp.repeat(k, heads // groups, axis=0))
        return x + jnp.tanh(scores.sum(0)).sum(-1, keepdims=True)

    def fixed(x: Any, k: Any) -> Any:
        q = x.reshape(length, groups, heads // groups, -1).transpose(1, 2, 0, 3)
        scores = jnp.einsum("gisd,gtd->gist", q, k)
        return x + jnp.tanh(scores.sum((0, 1))).sum(-1, keepdims=True)

    return Stage("BRD001", bad, fixed, ((groups, length, 512 // heads),))


def crossed() -> Stage:
    """A column minus a vector."""
    return Stage("BRD003", lambda x, c, t: x * ((c - t) ** 2).mean(), lambda x, c, t: x * ((c[:, 0] - t) ** 2).mean(), ((2048, 1), (2048,)))


def rounded() -> Stage:
    """bfloat16 and back."""
    return Stage("DTY003", lambda x: lax.sort(x.astype(BF16).astype(jnp.float32), dimension=0), lambda x: lax.sort(x, dimension=0))


def turned_convolution() -> Stage:
    """A convolution of channels first between transposes."""

    def bad(x: Any, w: Any) -> Any:
        image = x.reshape(1, 64, 64, 64).transpose(0, 3, 1, 2)
        y = lax.conv_general_dilated(image, w, (1, 1), "SAME", dimension_numbers=("NCHW", "HWIO", "NCHW"))
        return y.transpose(0, 2, 3, 1).reshape(x.shape)

    def fixed(x: Any, w: Any) -> Any:
        y = lax.conv_general_dilated(x.reshape(1, 64, 64, 64), w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return y.reshape(x.shape)

    return Stage("LAY002", bad, fixed, ((1, 1, 64, 64),))


ROWS = (512, 512)
MIXES = [
    Mix("embedding_net", ROWS, {
        "embed": one_hot(512, 2048, 512), "scale": double(), "order": pieces(16), "pool": summed_repeats(16),
    }),
    Mix("pair_net", ROWS, {"pairs": repeated_rows(16, 512), "loss": crossed(), "order": pieces(16), "scale": double()}),
    Mix("grouped_attention", ROWS, {
        "keys": repeated_keys(8, 2, 512), "project": double_product(512), "order": pieces(32), "ranks": rounded(),
    }),
    Mix("recurrent", ROWS, {
        "steps": loop(8, 512), "wave": looped_cosine(16, 512), "embed": one_hot(512, 1024, 512), "order": pieces(16),
    }),
    Mix("sorting", ROWS, {
        "ranks": sorted_repeats(512, 512), "pool": summed_repeats(32), "scale": double(), "pairs": repeated_rows(4, 512),
    }),
    Mix("convolution", ROWS, {
        "turned": turned_convolution(), "scale": double(), "order": pieces(16), "embed": one_hot(512, 256, 512),
    }),
    Mix("double_everything", ROWS, {"project": double_product(512), "scale": double(), "loss": crossed(), "pool": summed_repeats(8)}),
    Mix("small_faults", ROWS, {
        "order": pieces(16), "scale": double(), "keys": repeated_keys(8, 4, 512), "turned": turned_convolution(),
    }),
    Mix("repeats", ROWS, {
        "pairs": repeated_rows(8, 512), "pool": summed_repeats(64), "keys": repeated_keys(16, 2, 512), "order": pieces(16),
    }),
    Mix("tables", ROWS, {
        "first": one_hot(512, 512, 512), "second": one_hot(512, 4096, 512), "ranks": sorted_repeats(512, 512), "order": pieces(16),
    }),
    Mix("loops", ROWS, {"wave": looped_cosine(32, 512), "steps": loop(4, 512), "scale": double(), "loss": crossed()}),
    Mix("all_kinds", ROWS, {
        "pairs": repeated_rows(4, 512), "embed": one_hot(512, 1024, 512), "project": double_product(512), "order": pieces(16),
        "pool": summed_repeats(16), "steps": loop(4, 512),
    }),
]
