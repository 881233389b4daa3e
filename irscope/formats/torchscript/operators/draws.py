"""Random numbers. They come from the state of torch's generator, which no program holds: they have types but no values.

A program with one of them can be shown, checked and planned; running it is refused.
"""
from __future__ import annotations

from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.creation import LIKE, OPTIONS
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node, TensorType
from irscope.graph.dtypes import F32, PRED, S64
from irscope.ops.checked import nonzero

SEEDED = "*, Generator? generator, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
GENERATOR = "*, Generator? generator=None"


def draw(t: Torch, shape: tuple[int, ...], kind: DType, normal: bool = False) -> Node:
    """Random numbers: uniform in [0, 1), or standard normal."""
    wide = kind if kind.is_float else F32
    bounds = (t.array(0, wide), t.array(1, wide))
    distribution = "rng_normal" if normal else "rng_uniform"
    return t.convert(t.emit("rng", bounds, {"distribution": distribution}, type=TensorType(wide, shape)), kind)


def whole(t: Torch, shape: tuple[int, ...], low: Any, high: Any, kind: DType) -> Node:
    """Random integers, uniform in [low, high)."""
    drawn = draw(t, shape, F32)
    return t.convert(t.add(t.unary("floor", t.mul(drawn, t.as_tensor(high - low, F32))), t.as_tensor(low, F32)), kind)


def _filling(name: str, normal: bool) -> None:
    @operator(f"{name}(int[] size, {OPTIONS})", f"{name}.generator(int[] size, {SEEDED})")
    def new(t: Torch, size: list[int], *, dtype: int | None) -> Node:
        return draw(t, tuple(size), t.dtype_number(dtype, F32), normal)

    @operator(f"{name}_like.generator(Tensor self, {SEEDED}, MemoryFormat? memory_format=None)", f"{name}_like(Tensor self, {LIKE})")
    def like(t: Torch, x: Node, *, dtype: int | None) -> Node:
        return draw(t, t.shape(x), t.dtype_number(dtype, t.dtype(x)), normal)


_filling("rand", False)
_filling("randn", True)

INTEGERS = OPTIONS.replace("dtype=None", "dtype=4")
SEEDED_INTEGERS = SEEDED.replace("dtype=None", "dtype=4")


@operator(f"randint(int high, int[] size, {INTEGERS})", f"randint.low(int low, int high, int[] size, {INTEGERS})",
          f"randint.generator(int high, int[] size, {SEEDED_INTEGERS})",
          f"randint.low_generator(int low, int high, int[] size, {SEEDED_INTEGERS})",
          "prims::inductor_randint(int low, int high, int[] size, Tensor seed)")
def randint(t: Torch, *, low: int = 0, high: int, size: list[int], dtype: int | None = None) -> Node:
    return whole(t, tuple(size), low, high, t.dtype_number(dtype, S64))


@operator(f"randint_like(Tensor self, int high, {LIKE})", f"randint_like.low_dtype(Tensor self, int low, int high, {LIKE})", draws=True)
def randint_like(t: Torch, x: Node, *, low: int = 0, high: int, dtype: int | None) -> Node:
    return whole(t, t.shape(x), low, high, t.dtype_number(dtype, t.dtype(x)))


@operator(f"randperm(int n, {INTEGERS})", f"randperm.generator(int n, {SEEDED_INTEGERS})", draws=True)
def randperm(t: Torch, n: int, *, dtype: int | None) -> Node:
    order = t.sort([draw(t, (n,), F32), t.iota((n,), 0, S64)], 0)[1]
    return t.convert(order, t.dtype_number(dtype, S64))


@operator(f"bernoulli(Tensor self, {GENERATOR})", f"bernoulli.p(Tensor self, float p, {GENERATOR})",
          f"bernoulli.float(Tensor self, float p=0.5, {GENERATOR})", f"bernoulli.Tensor(Tensor self, Tensor p, {GENERATOR})")
def bernoulli(t: Torch, x: Node, *, p: object = None) -> Node:
    hit = t.compare("LT", draw(t, t.shape(x), F32), t.as_tensor(x if p is None else p, F32))
    return t.convert(hit, t.dtype(x))


@operator("native_dropout(Tensor input, float p, bool? train)")
def native_dropout(t: Torch, x: Node, p: float, train: bool | None) -> tuple[Node, Node]:
    """The input with elements dropped, and which are kept; in evaluation all of them."""
    if train is False or p == 0:
        return x, t.full(t.shape(x), True, PRED)
    kept = t.compare("GE", draw(t, t.shape(x), F32), t.full(t.shape(x), p, F32))
    scaled = t.scale(x, 1 / (1 - p)) if p < 1 else t.like(x, 0)
    return t.select(kept, scaled, t.like(x, 0)), kept


@operator(f"uniform(Tensor self, float from=0., float to=1., {GENERATOR})", draws=True)
def uniform(t: Torch, x: Node, low: float, high: float, generator: object) -> Node:
    return t.plus(t.scale(draw(t, t.shape(x), t.dtype(x)), high - low), low)


@operator(f"normal_functional(Tensor self, float mean=0., float std=1., {GENERATOR})",
          f"normal.in_place(Tensor self, float mean=0., float std=1., {GENERATOR})", draws=True)
def normal(t: Torch, x: Node, mean: float, deviation: float, generator: object) -> Node:
    return t.plus(t.scale(draw(t, t.shape(x), t.dtype(x), True), deviation), mean)


@operator(f"normal.Tensor_float(Tensor mean, float std=1., {GENERATOR})", f"normal.Tensor_Tensor(Tensor mean, Tensor std, {GENERATOR})")
def normal_around(t: Torch, mean: Node, deviation: object, generator: object) -> Node:
    drawn = draw(t, t.shape(mean), t.dtype(mean), True)
    return t.add(t.mul(drawn, t.as_tensor(deviation, t.dtype(mean))), mean)


@operator(f"normal.float_Tensor(float mean, Tensor std, {GENERATOR})")
def normal_spread(t: Torch, mean: float, deviation: Node, generator: object) -> Node:
    return t.plus(t.mul(draw(t, t.shape(deviation), t.dtype(deviation), True), deviation), mean)


@operator(f"normal.float_float(float mean, float std, int[] size, {SEEDED.replace('generator', 'generator=None')})")
def normal_of(t: Torch, mean: float, deviation: float, size: list[int], *, dtype: int | None) -> Node:
    return t.plus(t.scale(draw(t, tuple(size), t.dtype_number(dtype, F32), True), deviation), mean)


@operator(f"exponential(Tensor self, float lambd=1., {GENERATOR})", draws=True)
def exponential(t: Torch, x: Node, rate: float, generator: object) -> Node:
    return t.scale(t.unary("negate", t.unary("log", draw(t, t.shape(x), t.dtype(x)))), 1 / nonzero("lambd", rate))


@operator(f"multinomial(Tensor self, int num_samples, bool replacement=False, {GENERATOR})", draws=True)
def multinomial(t: Torch, weights: Node, n: int, again: bool, generator: object) -> Node:
    """Classes drawn by their weights: those of the largest of random keys."""
    keys = t.div(t.unary("log", draw(t, t.shape(weights), F32)), t.convert(weights, F32))
    at = t.sort([keys, t.iota(t.shape(weights), t.rank(weights) - 1, S64)], t.rank(weights) - 1, True)[1]
    return t.slice_dim(at, t.rank(weights) - 1, 0, n) if not again else whole(t, (*t.shape(weights)[:-1], n), 0, t.shape(weights)[-1], S64)


# ---------------------------------------------------------------------- Inductor's


@operator("prims::inductor_seed(Device device)", draws=True)
def inductor_seed(t: Torch, device: object) -> Node:
    return whole(t, (), 0, 1 << 31, S64)


@operator("prims::inductor_seeds(int count, Device device)", draws=True)
def inductor_seeds(t: Torch, n: int, device: object) -> Node:
    return whole(t, (n,), 0, 1 << 31, S64)


@operator("prims::inductor_lookup_seed(Tensor seeds, int index)")
def inductor_lookup_seed(t: Torch, seeds: Node, index: int) -> Node:
    return t.reshape(t.slice_dim(seeds, 0, index, index + 1), ())


@operator("prims::inductor_random(int[] size, Tensor seed, str mode, *, int offset=0)",
          "prims::inductor_random.align(int[] size, Tensor seed, str mode, *, ScalarType? align_dtype=None)")
def inductor_random(t: Torch, size: list[int], seed: Node, mode: str, other: object) -> Node:
    return draw(t, tuple(size), F32, mode == "randn")


@operator("rngprims::philox_rand(int[] size, Tensor seed, Tensor offset, int[]? stride, Device? device=None, ScalarType? dtype=None)")
def philox_rand(t: Torch, size: list[int], seed: Node, offset: Node, *, dtype: int | None) -> tuple[Node, Node]:
    return draw(t, tuple(size), t.dtype_number(dtype, F32)), offset
