"""Calls that aten refuses at run time, and edges of operators that choose: scalars, masks, empty lists, padding, factors."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.source import UserError
from tests.expand.test_torchscript_edges import call, f16, f32, s64
from tests.expand.torchscript_runs import graph, run

NAN, INF = np.nan, np.inf
X = np.arange(12, dtype=np.float32).reshape(3, 4)
D = X.astype(np.float64)
SCALAR = np.array(2.5, np.float32)
PREDICTIONS = np.log(np.array([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], np.float32))

RANGE = "is out of range for 0 dimensions"
REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    *((f"{name}(x, {d}{rest})", (SCALAR,), RANGE) for d in (1, -2) for name, rest in (
        ("sort", ", False"), ("argsort", ", False"), ("cumsum", ""), ("cumprod", ""), ("cummax", ""), ("cummin", ""), ("logcumsumexp", ""),
        ("softmax", ", None"), ("log_softmax", ", None"), ("argmax", ", False"), ("max", ", False"), ("median", ", False"),
        ("nanmedian", ", False"), ("mode", ", False"), ("flatten", ", 0"), ("transpose", ", 0"))),
    ("gather(x, 1, y)", (SCALAR, s64(0)), RANGE), ("index_select(x, 1, y)", (SCALAR, s64(0)), RANGE),
    ("index_fill(x, 1, y, 2)", (SCALAR, s64(0)), RANGE), ("topk(x, 1, 1)", (SCALAR,), RANGE),
    ("topk(x, 2)", (SCALAR,), "k is 2, and the dimension has 1"), ("kthvalue(x, 0)", (SCALAR,), "k is 0"),
    ("flatten(x, 1, 0)", (X,), "comes after dimension 0"),
    ("scatter(x, 0, y, z)", (X, s64([0, 1]), D), "different element types"), ("scatter_add(x, 0, y, z)", (X, s64([0, 1]), D), "different element"),
    ("scatter_reduce(x, 0, y, z, 'sum')", (X, s64([0, 1]), D), "different element types"),
    ("index_copy(x, 0, y, z)", (X, s64(2, 0, 1), D), "different element types"), ("index_add(x, 0, y, z)", (X, s64(2, 0, 1), D), "different"),
    ("masked_scatter(x, y, z)", (X, X > 3, D), "different element types"), ("index_copy(x, 0, y, z)", (X, s64(2, 0, 1), X[:, :2]), "sizes"),
    ("index_reduce(x, 0, y, z, 'sum')", (X, s64(2, 0, 1), X), "prod, amax, amin and mean"),
    ("masked_fill(x, y, 2.5)", (X, X), "a mask has bools, not f32"), ("masked_fill(x, y, 2.5)", (X, X.astype(np.uint8)), "not u8"),
    ("masked_fill(x, y, z)", (X, X > 3, f32(1)), "0 dimensions"), ("index_fill(x, 0, y, z)", (X, s64(0), f32(1)), "0 dimensions"),
    ("index(x, y)", (X, np.array([True, False])), "does not fit the sizes"),
    ("histc(x, 4, 1, -1)", (X,), "the bins reach from 1 to -1"), ("histc(x, 4, 0.0, inf)", (X,), "the ends of the bins must be finite"),
    ("histc(x, 4, 0, 1)", (s64(1),), "it counts floating point"), ("linalg_vector_norm(x, inf)", (f32(),), "the inf-norm of no elements"),
    ("nll_loss(x, y, None, 1, -100)", (PREDICTIONS, s64(0)), "do not fit predictions"),
    ("nll_loss(x, y, z, 1, -100)", (PREDICTIONS, s64(0, 1), f32(1, 2)), "3 classes have weights"),
    ("scaled_dot_product_attention(x, x, x)", (X.astype(np.int64),), "floating point numbers, not s64"),
    ("scaled_dot_product_attention(x, y, x)", (X, D), "different element types"),
    ("add_(x, 1)", (X > 3,), "which a tensor of pred does not hold"), ("mul_(x, 2.5)", (s64(1),), "which a tensor of s64 does not hold"),
    ("sqrt_(x)", (s64(1),), "which a tensor of s64 does not hold"), ("add_(x, y)", (f32(1), np.ones(1, np.complex64)), "c64, which"),
    *((f"{name}(x{rest})", (X > 3,), f"aten computes no {name} of pred") for name, rest in (
        ("sub", ", 1"), ("rsub", ", 1"), ("relu", ""), ("abs", ""), ("round", ""), ("argmax", ""), ("topk", ", 1"), ("kthvalue", ", 1"),
        ("trace", ""), ("frac", ""))),
    *((f"{name}(x{rest})", (s64(1, 2),), f"aten computes no {name} of s64") for name, rest in (
        ("frac", ""), ("lerp", ", x, 0.5"), ("var_mean", ""), ("std_mean", ""))),
    *((f"{name}(x{rest})", (np.ones(2, np.complex64),), f"aten computes no {name} of c64") for name, rest in (
        ("sign", ""), ("floor", ""), ("atan2", ", x"), ("xlogy", ", x"), ("nansum", ""), ("logit", ""), ("lcm", ", x"))),
    ("lcm(x, x)", (f32(1),), "aten computes no lcm of f32"), ("softmax(x, 0, None)", (s64(1, 2),), "softmax of s64 needs dtype="),
    ("log_softmax(x, 0, None)", (np.array([True]),), "softmax of pred needs dtype="),
    ("div_(x, 2)", (s64(1),), "which a tensor of s64"),
]


@pytest.mark.parametrize(("text", "arrays", "message"), REFUSED, ids=[text for text, *_ in REFUSED])
def test_what_aten_refuses_is_not_computed(text: str, arrays: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(text, *arrays)


LOWEST = np.full((1, 1, 3, 3), -INF, np.float32)
SIGNAL = np.arange(6, dtype=np.float32).reshape(1, 1, 6)
VALUES: list[tuple[str, tuple[Any, ...], list[Any]]] = [
    ("flip(x, [0])", (SCALAR,), [2.5]), ("sort(x, -1, False) -> 2", (SCALAR,), [2.5, 0]), ("median(x)", (f32(),), [NAN]),
    ("nanmedian(x)", (f32(),), [NAN]), ("all(x, [], False)", (np.array([True, False]),), [[True, False]]),
    ("any(x, [], False)", (np.array([True, False]),), [[True, False]]), ("mul_(x, 2)", (f16(3),), [[6]]), ("add_(x, y)", (f32(1), f16(2)), [[3]]),
    ("max_pool2d_with_indices(x, [2, 2], [2, 2], [1, 1]) -> 2", (LOWEST,), [[[[[-INF] * 2] * 2]], [[[[0, 1], [3, 4]]]]]),
    ("erfc(x)", (f16(1.5, 2),), [[0.033905029296875, 0.00467681884765625]]), ("round(x, 2)", (f16(1000),), [[1000]]),
    ("kl_div(x, y, 0)", (f32(-1, 2, 3), f32(0, -1, 0.5)), [[0, NAN, -1.8465736]]),
    ("scaled_dot_product_attention(x, x, x, y)", (X[:2], f32([0, -INF], [-INF, -INF])), [[[0, 1, 2, 3], [0, 0, 0, 0]]]),
    # torch 2.13's own: a factor that does not change the size, or doubles it, is ignored where the nearest element is taken.
    ("upsample_nearest1d(x, [6], 1.1)", (SIGNAL,), [[[[0, 1, 2, 3, 4, 5]]]]),
    ("upsample_nearest1d(x, [12], 2.08)", (SIGNAL,), [[[[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]]]]),
    ("upsample_linear1d(x, [6], False, 1.1)", (SIGNAL,), [[[[0, 1, 2, 3, 4, 5]]]]),
    ("grid_sampler(x, y, 0, 1, False)", (np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), np.array([[[[NAN, 0.5]]]], np.float32)), [[[[[2]]]]]),
    ("grid_sampler(x, y, 1, 0, False)", (np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), np.array([[[[NAN, 0.5]]]], np.float32)), [[[[[0]]]]]),
]


@pytest.mark.parametrize(("text", "arrays", "expected"), VALUES, ids=[text for text, *_ in VALUES])
def test_an_edge_gives_what_aten_gives(text: str, arrays: tuple[Any, ...], expected: list[Any]) -> None:
    for got, wanted in zip(call(text, *arrays), expected, strict=True):
        assert got.shape == np.shape(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_values_are_put_at_indices_in_their_own_type() -> None:
    text = graph("""
        %no : bool = prim::Constant[value=0]()
        %l : Tensor?[] = prim::ListConstruct(%y)
        %r : Tensor = aten::index_put(%x, %l, %z, %no)
        return (%r)
    """, "%x : Tensor, %y : Tensor, %z : Tensor")
    with pytest.raises(UserError, match="different element types"):
        run(text, x=X, y=s64(0), z=np.ones((1, 4)))
    assert run(text, x=X, y=s64(0), z=-X[:1])[0][0].tolist() == [0, -1, -2, -3]
