"""Operators of torch at the edges of their domains: what aten computes there, and what it refuses."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.source import UserError
from tests.expand.torchscript_runs import Array, graph, run

NAN, INF = np.nan, np.inf


def constant(name: str, value: object) -> str:
    """The statement that makes a number, a string, None or a list of ints."""
    if isinstance(value, list):
        items = [constant(f"{name}_{i}", item) for i, item in enumerate(value)]
        return "\n".join([*items, f"%{name} : int[] = prim::ListConstruct({', '.join(f'%{name}_{i}' for i in range(len(value)))})"])
    if value is None:
        return f"%{name} : NoneType = prim::Constant()"
    shown = f'"{value}"' if isinstance(value, str) else repr(int(value) if isinstance(value, bool) else value)
    return f"%{name} : {type(value).__name__} = prim::Constant[value={shown}]()"


def call(text: str, *arrays: Any) -> list[Array]:
    """``name(x, y, 1)``: an operator on the arrays x, y, z and on numbers; its results. ``-> 2`` at the end: their number."""
    text, _, count = text.partition(" -> ")
    name, _, rest = text[:-1].partition("(")
    given: list[Any] = eval(f"[{rest}]", {}, {"x": "%x", "y": "%y", "z": "%z", "inf": INF})  # the literals of this file
    lines = [constant(f"c{i}", value) for i, value in enumerate(given) if value not in ("%x", "%y", "%z")]
    operands = [value if value in ("%x", "%y", "%z") else f"%c{i}" for i, value in enumerate(given)]
    if name == "index":
        lines, operands = [*lines, "%l : Tensor?[] = prim::ListConstruct(%y)"], ["%x", "%l"]
    results = [f"%r{i}" for i in range(int(count or 1))]
    typed = ", ".join(f"{r} : Tensor" for r in results)
    body = "\n".join([*lines, f"{typed} = aten::{name}({', '.join(operands)})", f"return ({', '.join(results)})"])
    named = dict(zip("xyz", arrays))
    with np.errstate(all="ignore"):
        return run(graph(body, ", ".join(f"%{n} : Tensor" for n in named)), **named)


def f32(*values: Any) -> Array:
    return np.array(values, np.float32)


def f16(*values: Any) -> Array:
    return np.array(values, np.float16)


def c64(*values: Any) -> Array:
    return np.array(values, np.complex64)


def s64(*values: Any) -> Array:
    return np.array(values, np.int64)


VALUES: list[tuple[str, tuple[Any, ...], list[Any]]] = [
    ("hypot(x, y)", (f32(1e30, 1e-30, 0, INF, 3), f32(1e30, 0, 0, NAN, 4)), [[1.4142135e30, 1e-30, 0, INF, 5]]),
    ("logcumsumexp(x, 0)", (f32(-200, 0, -INF, INF),), [[-200, 0, 0, INF]]),
    ("logcumsumexp(x, 0)", (f32(-INF, -INF, 1, 1),), [[-INF, -INF, 1, 1.6931472]]),
    ("isfinite(x)", (c64(1 + 1j, complex(INF, 0), complex(0, NAN)),), [[True, False, False]]),
    ("isinf(x)", (c64(1 + 1j, complex(INF, 0), complex(0, -INF)),), [[False, True, True]]),
    ("nan_to_num(x, 0.0, 1.0, -1.0)", (c64(complex(NAN, 1), complex(2, INF)),), [[1j, 2 + 1j]]),
    ("isclose(x, y)", (c64(1 + 2j, 1 + 2j), c64(1 + 5j, 1 + 2j)), [[False, True]]),
    ("isclose(x, y, 0.0, 0.5)", (s64(1 << 24, 7), s64((1 << 24) + 1, 7)), [[False, True]]),
    ("round(x, 1)", (np.array([0.3, 1.25]),), [[0.3, 1.2]]), ("round(x, -1)", (np.array([35.0, 25.0]),), [[40, 20]]),
    ("lerp(x, y, 1.0)", (f32(1e20), f32(1)), [[1]]), ("lerp(x, y, z)", (f32(1e20, 0), f32(1, 4), f32(1, 0.25)), [[1, 1]]),
    ("mean(x, None)", (np.ones(70_000, np.float16),), [1]), ("mean(x, None)", (np.full(2_000, 60, np.float16),), [60]),
    ("var(x)", (np.ones(70_000, np.float16),), [0]), ("linalg_vector_norm(x, 2)", (f16(300, 400),), [500]),
    ("mse_loss(x, y, 1)", (np.ones(70_000, np.float16), np.zeros(70_000, np.float16)), [1]),
    ("rms_norm(x, [2])", (f16(300, 300),), [[1, 1]]), ("avg_pool2d(x, [200, 200])", (np.full((1, 1, 200, 200), 9, np.float16),), [[[[[9]]]]]),
    ("adaptive_avg_pool2d(x, [1, 1])", (np.full((1, 1, 200, 200), 9, np.float16),), [[[[[9]]]]]),
    ("rms_norm(x, [1])", (np.array([1e-6]),), [[1e-6 / np.sqrt(1e-12 + np.finfo(np.float64).eps)]]),
    ("index(x, y)", (f32(1, 2, 3), np.array([1, 0, 1], np.uint8)), [[1, 3]]),
    ("median(x, 0, False) -> 2", (f32(1, NAN, 3),), [NAN, 1]), ("median(x, 0, False) -> 2", (f32(5, 2, 3),), [3, 2]),
    ("quantile(x, y, None, False)", (f32(1, NAN, 3), f32(0.5, 0)), [[NAN, NAN]]),
    ("quantile(x, y, 1, True)", (f32([1, NAN, 3], [1, 2, 3]), f32(0.5)), [[[[NAN], [2]]]]),
    ("nanquantile(x, y, None, False)", (f32(1, NAN, 3), f32(0.5)), [[2]]),
    ("searchsorted(x, y, False, False)", (f32(1, 2, 3), f32(NAN, 2, 5)), [[3, 1, 3]]),
    ("bucketize(x, y, False, True)", (f32(NAN, 2, 5), f32(1, 2, 3)), [[3, 2, 3]]),
    ("cummax(x, 0) -> 2", (f32(1, NAN, 3, NAN, 2),), [[1, NAN, NAN, NAN, NAN], [0, 1, 1, 3, 3]]),
    ("cummin(x, 0) -> 2", (f32(1, NAN, 0),), [[1, NAN, NAN], [0, 1, 1]]),
    ("triu_indices(2, 3, 4611686018427387904)", (), [np.zeros((2, 0))]),
    ("tril_indices(2, 1, -7)", (), [np.zeros((2, 0))]),
]


@pytest.mark.parametrize(("text", "arrays", "expected"), VALUES, ids=[text for text, *_ in VALUES])
def test_an_operator_gives_what_aten_gives(text: str, arrays: tuple[Any, ...], expected: list[Any]) -> None:
    for got, wanted in zip(call(text, *arrays), expected, strict=True):
        assert got.shape == np.shape(wanted)
        np.testing.assert_allclose(got, wanted, rtol=1e-3 if got.dtype == np.float16 else 1e-12 if got.dtype == np.float64 else 1e-6)


X = np.ones((2, 3), np.float32)
REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("expand(x, [-1, 2, 3])", (X,), "a new dimension needs a size"), ("tensor_split(x, 0)", (X,), "sections must be at least 1"),
    ("hsplit(x, 2)", (X,), "cannot be split evenly"), ("t(x)", (np.ones((2, 3, 4), np.float32),), "0 to 2 dimensions"),
    ("repeat(x, [2])", (X,), "0 to 1 dimensions"), ("rot90(x, 1, [0, 0])", (X,), "two different dimensions"),
    ("max(x)", (f32(),), "the extreme of no elements"), ("argmax(x, 0)", (np.ones((0, 2), np.float32),), "the extreme of no elements"),
    ("aminmax(x)", (f32(),), "the extreme of no elements"), ("amin(x, [0])", (f32(),), "the extreme of no elements"),
    ("trace(x)", (np.ones((2, 2, 2), np.float32),), "2 dimensions"), ("cov(x)", (np.ones((2, 2, 2), np.float32),), "0 to 2 dimensions"),
    ("gather(x, 0, y)", (X, np.zeros((1, 5), np.int64)), "does not fit a tensor"),
    ("scatter(x, 0, y, z)", (X, np.zeros((1, 5), np.int64), np.ones((1, 5), np.float32)), "does not fit a tensor"),
    ("take_along_dim(x, y, 0)", (X, s64(0)), "2 dimensions"), ("index(x, y)", (X, f32(1.7)), "an index has integers"),
    ("index_select(x, 0, y)", (X, np.zeros((1, 1), np.int64)), "0 to 1 dimensions"),
    ("embedding(x, y)", (f32(1), s64(0)), "2 dimensions"), ("add(x, y, 0.5)", (s64(1), s64(2)), "alpha is 0.5"),
    ("masked_fill(x, y, inf)", (s64(1), np.array([True])), "does not fit into s64"),
    ("quantile(x, 0.5, 0, False, 'abc')", (X,), "the interpolations of a quantile"),
    ("quantile(x, 0.5, 0, False, 'linear')", (s64(1, 2),), "float32 or float64"),
    ("one_hot(x, 0)", (s64(0),), "the number of classes"), ("one_hot(x, -3)", (s64(0),), "the number of classes"),
    ("one_hot(x, -1)", (s64(),), "the number of classes"), ("one_hot(x, 2)", (f32(0),), "classes as int64"),
    ("diff(x, -1)", (X,), "the order of a difference"), ("histc(x, 0, 0, 0)", (X,), "bins must be at least 1"),
    ("bincount(x, None, -3)", (s64(),), "minlength must be at least 0"), ("bincount(x, y)", (s64(0, 1), f32(1)), "a weight for each"),
    ("bucketize(x, y)", (X, X), "1 dimensions"), ("view(x, [-1, 0])", (np.ones((0, 2), np.float32),), "cannot be viewed"),
    ("unflatten(x, 0, [-1, -1])", (f32(1),), "cannot be unflattened"), ("round(x, 1)", (s64(1),), "it rounds floating point"),
    ("glu(x, 1)", (X,), "has no halves"), ("prelu(x, y)", (np.ones((2, 1, 3), np.float32), f32(1, 2, 3)), "3 weights for 1 channels"),
    ("layer_norm(x, [2])", (X,), "is not normalised over"), ("rms_norm(x, [])", (X,), "is not normalised over"),
    ("max_pool2d(x, [2, 2], [1, 1], [2, 2])", (np.ones((1, 4, 4), np.float32),), "at most half of its size"),
    ("avg_pool2d(x, [2, 2], [1, 1], [0, 0], False, True, 0)", (np.ones((1, 4, 4), np.float32),), "divisor_override must not be 0"),
    ("tril_indices(0, 1099511627776)", (), "more than 268,435,456 elements"),
    ("replication_pad1d(x, [1099511627776, 0])", (X,), "more than 268,435,456 elements"),
    ("linspace(0, 1, 1099511627776)", (), "more than 268,435,456 elements"),
    (f"arange({2 ** 62})", (), "no memory holds it"), (f"linspace(0, {10 ** 400}, 3, 4)", (), "no overload of aten::linspace"),
]


@pytest.mark.parametrize(("text", "arrays", "message"), REFUSED, ids=[text[:60] for text, *_ in REFUSED])
def test_an_operator_refuses_what_aten_refuses(text: str, arrays: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(text, *arrays)


def test_the_length_of_a_range_of_integers_is_exact() -> None:
    first = 1 << 60
    np.testing.assert_array_equal(call(f"arange({first}, {first + 3}, None, None, None, None)")[0], first + np.arange(3))


PRODUCTS: list[tuple[str, tuple[Any, ...], str]] = [
    ("mm(x, y)", (np.ones((2, 2, 3), np.float32), np.ones((3, 2), np.float32)), "2 dimensions"),
    ("bmm(x, y)", (np.ones((1, 2, 3), np.float32), np.ones((2, 3, 2), np.float32)), "1 matrices are multiplied with 2"),
    ("dot(x, y)", (X, f32(1, 1, 1)), "1 dimensions"), ("outer(x, y)", (X, f32(1)), "1 dimensions"),
    ("linear(x, y)", (X, np.ones((2, 2, 3), np.float32)), "1 to 2 dimensions"),
    ("cross(x, y, 1)", (np.ones((2, 4), np.float32), np.ones((2, 4), np.float32)), "vectors of 3 elements"),
    ("arange(0.0, 1e308, 1e-300, None, None, None, None)", (), "no finite length"),
    ("range(-1e308, 1e308, 1.0, None, None, None, None)", (), "no finite length"),
]


@pytest.mark.parametrize(("text", "arrays", "message"), PRODUCTS, ids=[text for text, *_ in PRODUCTS])
def test_a_product_or_a_range_that_is_none_is_refused(text: str, arrays: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(text, *arrays)


@pytest.mark.parametrize(("equation", "shape", "message"), [
    ("ijk", (2, 3), "the subscripts 'ijk' do not fit an operand of 2 dimensions"), ("i->i", (2, 3), "do not fit"),
    ("ijk...->i", (2, 3), "do not fit"), ("ij->k", (2, 3), "the result names k, which no operand has"), ("...->...", (1,) * 11, "an ellipsis stands for 11 dimensions"),
])
def test_an_equation_names_dimensions_of_its_operands(equation: str, shape: tuple[int, ...], message: str) -> None:
    text = graph(f"""
        %e : str = prim::Constant[value="{equation}"]()
        %l : Tensor[] = prim::ListConstruct(%x)
        %n : NoneType = prim::Constant()
        %r : Tensor = aten::einsum(%e, %l, %n)
        return (%r)
    """)
    with pytest.raises(UserError, match=message):
        run(text, x=np.ones(shape, np.float32))


def test_a_cosine_of_half_types_does_not_overflow() -> None:
    assert call("cosine_similarity(x, y, 0)", f16(300, 300), f16(300, 300))[0] == pytest.approx(1, abs=1e-3)


def test_arithmetic_on_known_numbers_keeps_their_types() -> None:
    """Sizes in tensors of int32, bools, quotients of floats, powers that are not real, and ints beyond 53 bits."""
    text = graph("""
        %t : Tensor = prim::Constant[value={5}]()
        %i : int = prim::Constant[value=3]()
        %f : int = prim::Constant[value=15]()
        %no : bool = prim::Constant[value=0]()
        %yes : int = prim::Constant[value=11]()
        %n : NoneType = prim::Constant()
        %1 : int = prim::Constant[value=1]()
        %trunc : str = prim::Constant[value="trunc"]()
        %half : float = prim::Constant[value=0.5]()
        %minus : float = prim::Constant[value=-8.]()
        %big : int = prim::Constant[value=9007199254740993]()
        %narrow : Tensor = aten::to(%t, %i, %no, %no, %n)
        %a : Tensor = aten::add(%narrow, %1, %1)
        %short : Tensor = aten::to(%t, %f, %no, %no, %n)
        %b : Tensor = aten::mul(%short, %1)
        %true : Tensor = aten::to(%t, %yes, %no, %no, %n)
        %c : Tensor = aten::mul(%true, %true)
        %d : Tensor = aten::div(%short, %half, %trunc)
        %e : float = aten::pow(%minus, %half)
        %g : int = aten::__round_to_zero_floordiv(%big, %1)
        return (%a, %b, %c, %d, %e, %g)
    """)
    found = run(text, x=f32(1))
    assert [str(a.dtype) for a in found] == ["int32", "bfloat16", "bool", "bfloat16", "float64", "int64"]
    assert [a.item() for a in found[:4]] == [6, 5, True, 10] and np.isnan(found[4]) and found[5] == 9007199254740993


SHAPES: list[tuple[str, tuple[Any, ...], str]] = [
    ("scaled_dot_product_attention(x, y, z, y, 0.0, True)", (X, X, X), "a mask or is_causal"),
    ("sum(x, [5])", (np.float32(1),), "dimension 5 is out of range"), ("mvlgamma(x, 0)", (X,), "p must be at least 1"),
    ("mvlgamma(x, 1099511627776)", (X,), "more than"), ("adaptive_avg_pool1d(x, [1099511627776])", (np.ones((1, 1, 3), np.float32),), "more than"),
    ("tril(x, 0)", (f32(1, 2),), "2 or more dimensions"), ("diag_embed(x, 0, 1, 1)", (X,), "different ones"),
    ("view_as_complex(x)", (X,), "the last dimension has 3"), ("view_as_real(x)", (X,), "complex numbers, not f32"),
    ("imag(x)", (X,), "complex numbers, not f32"), ("constant_pad_nd(x, [1, 2, 3], 0)", (X,), "in pairs"),
    ("pad(x, [1, 2, 3], 'reflect', None)", (X,), "in pairs"),
    ("istft(x, 4, 0, 4, None, True, False, None, None, False)", (np.ones((3, 5), np.complex64),), "hop_length must be at least 1"),
]


@pytest.mark.parametrize(("text", "arrays", "message"), SHAPES, ids=[text for text, *_ in SHAPES])
def test_a_shape_that_does_not_fit_is_refused(text: str, arrays: tuple[Any, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        call(text, *arrays)


def test_bytes_are_averaged_by_any_factor() -> None:
    """The weights of a filter over 2048 elements have no more bits than ATen's fixed point."""
    image = np.full((1, 1, 1, 2048), 200, np.uint8)
    assert call("_upsample_bilinear2d_aa(x, [1, 1], False, None, None)", image)[0].item() == pytest.approx(200, abs=2)


@pytest.mark.parametrize("again", [False, True])
def test_there_are_no_combinations_of_more_elements_than_there_are(again: bool) -> None:
    x = f32() if again else f32(1, 2)
    assert call(f"combinations(x, 1099511627776, {again})", x)[0].shape == (0, 1 << 40)
