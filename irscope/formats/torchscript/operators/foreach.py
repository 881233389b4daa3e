"""``_foreach_`` operators, which apply one operator to each of a list of tensors."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irscope.formats.torchscript.operators import arithmetic, casts, function_of, norms, operator
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.ops.checked import in_step

UNARY = ("abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid "
         "sign sin sinh sqrt tan tanh trunc zero clone").split()
"""Operators of one tensor."""
BINARY = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "clamp_max": "minimum", "clamp_min": "maximum", "maximum": "maximum",
          "minimum": "minimum", "pow": "pow"}
"""Operators of two tensors, or of a tensor and a number: torch's name for each pair."""
SCALED = ("add", "sub")
"""Those that multiply the second operand by ``alpha``."""
HOME = ("arithmetic", "unary", "logic", "special", "casts", "reduction", "activations")
"""The families that declare them."""


def _each_one(name: str) -> None:
    function = function_of(f"aten::{name}", *HOME)
    extra = ", *, MemoryFormat? memory_format=None" if name == "clone" else ""

    @operator(f"_foreach_{name}(Tensor[] self{extra})")
    def each(t: Torch, xs: list[Node], *rest: object) -> list[Node]:
        return [function(t, x) for x in xs]


def _each_pair(name: str, of: str) -> None:
    function = function_of(f"aten::{of}", *HOME)
    alpha = ", *, Scalar alpha=1" if name in SCALED else ""
    word, numbers = ("exponent", "exponent") if name == "pow" else ("other", "scalars")
    scalar = "exponent" if name == "pow" else "scalar"

    def pair(t: Torch, x: Node, y: object, factor: Any = 1) -> Node:
        if of in ("maximum", "minimum"):
            x, y = t.promote(x, y)
            return function(t, x, y)  # type: ignore[no-any-return]
        return function(t, x, y, factor) if of in SCALED else function(t, x, y)  # type: ignore[no-any-return]

    @operator(f"_foreach_{name}.List(Tensor[] self, Tensor[] {word}{alpha})",
              f"_foreach_{name}.ScalarList(Tensor[] self, Scalar[] {numbers})")
    def each(t: Torch, xs: list[Node], ys: list[Any], factor: Any = 1) -> list[Node]:
        return [pair(t, x, y, factor) for x, y in in_step("the lists", xs, ys)]

    tensor = [f"_foreach_{name}.Tensor(Tensor[] self, Tensor other{alpha})"] if name in ("add", "mul", "div") else []

    @operator(f"_foreach_{name}.Scalar(Tensor[] self, Scalar {scalar})", *tensor)
    def every(t: Torch, xs: list[Node], y: object, factor: object = 1) -> list[Node]:
        return [pair(t, x, y, factor) for x in xs]


for _name in UNARY:
    _each_one(_name)
for _name, _of in BINARY.items():
    _each_pair(_name, _of)


@operator("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent)")
def powers(t: Torch, base: object, xs: list[Node]) -> list[Node]:
    power: Callable[..., Node] = function_of("aten::pow", *HOME)
    return [power(t, base, x) for x in xs]


def _each_product(name: str) -> None:
    function = function_of(f"aten::{name}", *HOME)

    @operator(f"_foreach_{name}.Scalar(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1)")
    def every(t: Torch, xs: list[Node], a: list[Node], b: list[Node], value: Any) -> list[Node]:
        return [function(t, x, y, z, value) for x, y, z in in_step("the lists", xs, a, b)]

    @operator(f"_foreach_{name}.Tensor(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars)")
    def by_tensor(t: Torch, xs: list[Node], a: list[Node], b: list[Node], values: Node) -> list[Node]:
        numbers = [t.reshape(t.slice_dim(values, 0, i, i + 1), ()) for i in range(len(xs))]
        scaled = [t.mul(*t.promote(y, number)) for y, number in in_step("the lists", a, numbers)]
        return [function(t, x, y, z, 1) for x, y, z in in_step("the lists", xs, scaled, b)]

    @operator(f"_foreach_{name}.ScalarList(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars)")
    def each(t: Torch, xs: list[Node], a: list[Node], b: list[Node], values: list[Any]) -> list[Node]:
        return [function(t, x, y, z, value) for x, y, z, value in in_step("the lists", xs, a, b, values)]


for _name in ("addcmul", "addcdiv"):
    _each_product(_name)


@operator("_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight)")
def lerps(t: Torch, xs: list[Node], ys: list[Node], weight: object) -> list[Node]:
    return [arithmetic.lerp(t, x, y, weight) for x, y in in_step("the lists", xs, ys)]


@operator("_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights)",
          "_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight)")
def lerps_each(t: Torch, xs: list[Node], ys: list[Node], weights: list[object]) -> list[Node]:
    return [arithmetic.lerp(t, x, y, w) for x, y, w in in_step("the lists", xs, ys, weights)]


@operator("_foreach_copy(Tensor[] self, Tensor[] src, bool non_blocking=False)")
def copies(t: Torch, xs: list[Node], sources: list[Node], non_blocking: bool) -> list[Node]:
    return [casts.copy(t, x, source, non_blocking) for x, source in in_step("the lists", xs, sources)]


@operator("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None)")
def vector_norms(t: Torch, xs: list[Node], order: Any, dtype: int | None) -> list[Node]:
    return [norms.linalg_vector_norm(t, x, order, None, False, dtype) for x in xs]


@operator("_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None)")
def power_sums(t: Torch, xs: list[Node], order: object, dtype: int | None) -> list[Node]:
    sums = []
    for x in xs:
        size = t.unary("abs", t.convert(x, t.dtype_number(dtype, t.dtype(x))))
        sums.append(t.sum(t.binary("power", size, t.like(size, order)), list(range(t.rank(x)))))
    return sums


@operator("_foreach_max(Tensor[] self)")
def largest(t: Torch, xs: list[Node]) -> list[Node]:
    return [t.max(x, list(range(t.rank(x)))) for x in xs]


@operator("_foreach_mm(Tensor[] self, Tensor[] mat2)")
def products(t: Torch, xs: list[Node], ys: list[Node]) -> list[Node]:
    return [t.matmul(x, y) for x, y in in_step("the lists", xs, ys)]
