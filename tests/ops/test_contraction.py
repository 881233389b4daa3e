"""Products of arrays: dot with any dimension numbers and element types, ragged-dot, scaled-dot, convolution with every option."""
from __future__ import annotations

from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ops import TypeFault
from irscope.ops.attrs import Window
from tests.ops.running import check, leaves, read, typed
from tests.ops.test_window import spelled, windows

NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "s8": np.int8, "s32": np.int32, "u8": np.uint8,
         "pred": np.bool_, "c64": np.complex64, "c128": np.complex128, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "s64": np.int64}


def spell(shape: Any) -> str:
    """The inside of the brackets of a type, or of an attribute."""
    return ",".join(map(str, shape))


def some(rng: Any, dtype: str, shape: Any) -> Any:
    """Small numbers, exact in every element type."""
    values = rng.integers(0 if dtype in ("u8", "pred") else -3, 4, shape)
    return (values + 1j * rng.integers(-2, 3, shape) if dtype.startswith("c") else values).astype(NUMPY[dtype])


@st.composite
def dots(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...], dict[str, list[int]]]:
    """Two shapes and the dimension numbers of a dot between them."""
    sizes = [draw(st.lists(st.integers(1, 4), max_size=2)) for _ in range(4)]
    batch, contracting, left, right = sizes
    kinds = ["b"] * len(batch) + ["c"] * len(contracting)
    orders = [draw(st.permutations([*range(len(kinds) + len(free))])) for free in (left, right)]
    shapes, dims = [], {}
    for side, free, order in (("lhs", left, orders[0]), ("rhs", right, orders[1])):
        flat = [*batch, *contracting, *free]
        shapes.append(tuple(flat[i] for i in order))
        dims[f"{side}_batch_dims"] = [order.index(i) for i in range(len(batch))]
        dims[f"{side}_contracting_dims"] = [order.index(len(batch) + i) for i in range(len(contracting))]
    return shapes[0], shapes[1], dims


def dot_text(opcode: str, dims: dict[str, list[int]], result: str, *operands: str) -> str:
    """A module of one contraction."""
    params = "\n".join(f"p{i} = {t} parameter({i})" for i, t in enumerate(operands))
    attrs = ", ".join(f"{name}={{{spell(values)}}}" for name, values in dims.items())
    names = ", ".join(f"p{i}" for i in range(len(operands)))
    return f"ENTRY e {{ {params}\n ROOT r = {result} {opcode}({names}), {attrs} }}"


@settings(max_examples=25, deadline=None)
@given(dots(), st.integers(0, 99))
def test_dot_with_any_dimensions(case: Any, seed: int) -> None:
    left, right, dims = case
    rng = np.random.default_rng(seed)
    x, y = some(rng, "f32", left), some(rng, "f32", right)
    names = iter("abcdefghijkl")
    letters: dict[tuple[str, int], str] = {}
    for what in ("batch", "contracting"):
        for i, j in zip(dims[f"lhs_{what}_dims"], dims[f"rhs_{what}_dims"], strict=True):
            letters["l", i] = letters["r", j] = next(names)
    for side, shape in (("l", left), ("r", right)):
        for d in range(len(shape)):
            if (side, d) not in letters:
                letters[side, d] = next(names)
    lhs, rhs = ("".join(letters[side, d] for d in range(len(shape))) for side, shape in (("l", left), ("r", right)))
    batch = "".join(letters["l", d] for d in dims["lhs_batch_dims"])
    out = batch + "".join(c for c in lhs if c not in rhs) + "".join(c for c in rhs if c not in lhs)
    want = np.einsum(f"{lhs},{rhs}->{out}", x, y)
    found, = check(dot_text("dot", dims, f"f32[{spell(want.shape)}]", f"f32[{spell(left)}]", f"f32[{spell(right)}]"), x, y)
    assert np.array_equal(found, want)


@pytest.mark.parametrize(("left", "right", "result"), [
    ("bf16", "bf16", "bf16"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("s8", "s8", "s32"), ("s8", "s8", "s8"), ("s32", "s32", "s32"),
    ("pred", "pred", "pred"), ("c64", "c64", "c64"), ("c128", "c128", "c128"), ("f64", "f64", "f64"), ("f32", "f32", "f64"),
    ("f8e4m3fn", "f8e4m3fn", "f32"), ("f32", "bf16", "f32"), ("bf16", "bf16", "s32"), ("u8", "u8", "s32"), ("s64", "s64", "s64"),
])
def test_dot_of_any_element_type(left: str, right: str, result: str) -> None:
    rng = np.random.default_rng(7)
    x, y = some(rng, left, (5, 40)), some(rng, right, (40, 3))
    found, = check(dot_text("dot", {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0]}, f"{result}[5,3]", f"{left}[5,40]", f"{right}[40,3]"), x, y)
    wide = np.complex128 if result.startswith("c") else np.bool_ if result == "pred" else np.int64 if result in ("s8", "s32", "s64") else np.float64
    want = (x.astype(wide) @ y.astype(wide)).astype(NUMPY[result])
    assert np.array_equal(found, want)


def test_sums_of_bf16_are_rounded_once() -> None:
    x = np.full((1, 300), 1, ml_dtypes.bfloat16)
    found, = check(dot_text("dot", {"lhs_contracting_dims": [1], "rhs_contracting_dims": [1]}, "bf16[1,1]", "bf16[1,300]", "bf16[1,300]"), x, x)
    assert found[0, 0] == 300


RAGGED = {"free": ((6, 4), (3, 4, 5), (6, 5), {"lhs_contracting_dims": [1], "rhs_contracting_dims": [1], "lhs_ragged_dims": [0], "rhs_group_dims": [0]}),
          "contracting": ((4, 6), (6, 5), (3, 4, 5), {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0], "lhs_ragged_dims": [1]}),
          "batch": ((6, 2, 4), (6, 4, 5), (6, 2, 5), {"lhs_batch_dims": [0], "rhs_batch_dims": [0], "lhs_contracting_dims": [2],
                                                      "rhs_contracting_dims": [1], "lhs_ragged_dims": [0]})}


@pytest.mark.parametrize("role", RAGGED)
@pytest.mark.parametrize("sizes", [(2, 3, 1), (0, 6, 0), (1, 2, 0), (4, 4, 4)])
def test_ragged_dot(role: str, sizes: tuple[int, ...]) -> None:
    left, right, out, dims = RAGGED[role]
    rng = np.random.default_rng(1)
    x, y, groups = some(rng, "f32", left), some(rng, "f32", right), np.array(sizes, np.int32)
    text = dot_text("ragged-dot", dims, f"f32[{spell(out)}]", f"f32[{spell(left)}]", f"f32[{spell(right)}]", "s32[3]")
    found, = check(text, x, y, groups)
    ends = np.minimum(np.cumsum(groups), 6)
    starts = np.concatenate([[0], ends[:-1]])
    want = np.zeros(out, np.float32)
    for g, (low, high) in enumerate(zip(starts, ends, strict=True)):
        if role == "free":
            want[low:high] = x[low:high] @ y[g]
        elif role == "contracting":
            want[g] = x[:, low:high] @ y[low:high]
    assert np.array_equal(found, np.matmul(x, y) if role == "batch" else want)


@pytest.mark.parametrize(("right", "out", "dims"), [
    ((0, 4, 5), (6, 5), RAGGED["free"][3]), ((4, 5), (0, 6, 5), {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0], "lhs_ragged_dims": [1]})])
def test_ragged_dot_without_groups(right: tuple[int, ...], out: tuple[int, ...], dims: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    text = dot_text("ragged-dot", dims, f"f32[{spell(out)}]", "f32[6,4]", f"f32[{spell(right)}]", "s32[0]")
    found, = check(text, some(rng, "f32", (6, 4)), some(rng, "f32", right), np.zeros(0, np.int32))
    assert found.shape == out and not found.any()


def test_ragged_dot_with_sizes_for_every_batch() -> None:
    rng = np.random.default_rng(2)
    x, y, groups = some(rng, "f32", (2, 6, 4)), some(rng, "f32", (3, 4, 5)), np.array([[2, 3, 1], [1, 1, 1]], np.int64)
    dims = {"lhs_contracting_dims": [2], "rhs_contracting_dims": [1], "lhs_ragged_dims": [1], "rhs_group_dims": [0]}
    found, = check(dot_text("ragged-dot", dims, "f32[2,6,5]", "f32[2,6,4]", "f32[3,4,5]", "s64[2,3]"), x, y, groups)
    want = np.zeros((2, 6, 5), np.float32)
    for b in range(2):
        row = 0
        for g in range(3):
            want[b, row:row + groups[b, g]] = x[b, row:row + groups[b, g]] @ y[g]
            row += groups[b, g]
    assert np.array_equal(found, want)


def test_scaled_dot() -> None:
    rng = np.random.default_rng(3)
    x, y = some(rng, "f8e4m3fn", (4, 8)), some(rng, "f8e4m3fn", (3, 8))
    scales = np.array([0.5, 2, 4, 8, 1, 1, 0.25, 2], np.float32).reshape(4, 2).astype(ml_dtypes.float8_e8m0fnu)
    dims = {"lhs_contracting_dims": [1], "rhs_contracting_dims": [1]}
    found, = check(dot_text("scaled-dot", dims, "f32[4,3]", "f8e4m3fn[4,8]", "f8e4m3fn[3,8]", "f8e8m0fnu[4,2]", "f32[]"), x, y, scales, np.float32(1))
    assert np.array_equal(found, (x.astype("f") * np.repeat(scales.astype("f"), 4, 1)) @ y.astype("f").T)


# ---------------------------------------------------------------- convolution


def convolved(x: Any, w: Any, window: Window, out_spatial: tuple[int, ...], groups: int, batch_groups: int) -> Any:
    """The definition, over [batch, feature, *spatial] and [out, in, *spatial]."""
    batch, outputs, inputs = x.shape[0] // batch_groups, w.shape[0], w.shape[1]
    out = np.zeros((batch, outputs, *out_spatial))
    for o in np.ndindex(*out_spatial):
        for at in np.ndindex(*window.size):
            places = [i * s + j * d - p for i, s, j, d, p in zip(o, window.stride, at, window.rhs_dilate, window.pad_low, strict=True)]
            if not all(p >= 0 and p % h == 0 and p // h < n for p, h, n in zip(places, window.lhs_dilate, x.shape[2:], strict=True)):
                continue
            place = tuple(p // h for p, h in zip(places, window.lhs_dilate, strict=True))
            turned = tuple(n - 1 - a if r else a for a, n, r in zip(at, window.size, window.rhs_reversal, strict=True))
            for f in range(outputs):
                g, b = f // (outputs // groups), f // (outputs // batch_groups)
                seen = x[(slice(b * batch, (b + 1) * batch), slice(g * inputs, (g + 1) * inputs), *place)]
                out[(slice(None), f, *o)] += seen @ w[(f, slice(None), *turned)]
    return out


LABELS = {1: ("b0f_0io->b0f", "bf0_oi0->bf0", "f0b_i0o->0fb"), 2: ("b01f_01io->b01f", "bf01_oi01->bf01", "f01b_i10o->10bf", "01fb_o0i1->bf10")}


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 2), st.sampled_from(((1, 1), (2, 1), (1, 2), (3, 1))), st.integers(0, 99))
def test_convolution(data: Any, rank: int, groups: tuple[int, int], seed: int) -> None:
    shape, window = data.draw(windows(rank, reversal=True))
    labels = data.draw(st.sampled_from(LABELS[rank]))
    out_spatial = tuple(window.output_size(d, n) for d, n in enumerate(shape))
    rng = np.random.default_rng(seed)
    features, inputs, outputs = 2 * groups[0], 2, 2 * groups[0] * groups[1]
    x, w = some(rng, "f32", (2 * groups[1], features, *shape)), some(rng, "f32", (outputs, inputs, *window.size))
    left, rest = labels.split("_")
    right, out = rest.split("->")

    def arranged(array: Any, letters: str, order: str) -> Any:
        return array.transpose([letters.index(c) for c in order]).copy()
    numbers = "01"[:rank]
    a, b = arranged(x, "bf" + numbers, left), arranged(w, "oi" + numbers, right)
    want = arranged(convolved(x, w, window, out_spatial, *groups), "bf" + numbers, out).astype(np.float32)
    if not prod(want.shape):
        return
    found, = check(f"ENTRY e {{ x = f32[{spell(a.shape)}] parameter(0)\n w = f32[{spell(b.shape)}] parameter(1)\n ROOT r = f32[{spell(want.shape)}] "
                   f"convolution(x, w), window={spelled(window)}, dim_labels={labels}, feature_group_count={groups[0]}, "
                   f"batch_group_count={groups[1]} }}", a, b)
    assert np.array_equal(found, want)


@pytest.mark.parametrize(("operand", "result"), [("bf16", "bf16"), ("bf16", "f32"), ("s8", "s32"), ("s8", "s8"), ("c64", "c64"), ("f64", "f64")])
def test_convolution_of_any_element_type(operand: str, result: str) -> None:
    rng = np.random.default_rng(5)
    x, w = some(rng, operand, (1, 9, 20)), some(rng, operand, (3, 20, 2))
    wide = np.complex128 if result == "c64" else np.float64 if result in ("f32", "f64", "bf16") else np.int64
    want = sum(x[:, k:k + 7].astype(wide) @ w[k].astype(wide) for k in range(3)).astype(NUMPY[result])
    found, = check(f"ENTRY e {{ x = {operand}[1,9,20] parameter(0)\n w = {operand}[3,20,2] parameter(1)\n "
                   f"ROOT r = {result}[1,7,2] convolution(x, w), window={{size=3}}, dim_labels=b0f_0io->b0f }}", x, w)
    assert np.array_equal(found, want)


def test_padding_is_not_multiplied() -> None:
    x, w = np.ones((1, 3, 1), np.float32), np.full((3, 1, 1), np.inf, np.float32)
    found, = check("ENTRY e { x = f32[1,3,1] parameter(0)\n w = f32[3,1,1] parameter(1)\n ROOT r = f32[1,3,1] convolution(x, w), "
                   "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f }", x, w)
    assert np.isposinf(found).all()


def test_a_convolution_without_spatial_dimensions() -> None:
    rng = np.random.default_rng(6)
    x, w = some(rng, "f32", (4, 3)), some(rng, "f32", (3, 5))
    found, = check("ENTRY e { x = f32[4,3] parameter(0)\n w = f32[3,5] parameter(1)\n "
                   "ROOT r = f32[4,5] convolution(x, w), window={}, dim_labels=bf_io->bf }", x, w)
    assert np.array_equal(found, x @ w)


# ---------------------------------------------------------------- what does not fit, and what it costs

@pytest.mark.parametrize(("text", "words"), [
    (dot_text("dot", {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0]}, "f32[2,4]", "f32[2,3]", "f32[5,4]"), "f32[2,3]"),
    (dot_text("dot", {"lhs_contracting_dims": [2], "rhs_contracting_dims": [0]}, "f32[2,4]", "f32[2,3]", "f32[3,4]"), "out of range"),
    (dot_text("dot", {"lhs_contracting_dims": [1, 1], "rhs_contracting_dims": [0, 0]}, "f32[2]", "f32[2,3]", "f32[3]"), "twice"),
    (dot_text("dot", {"lhs_contracting_dims": [0], "rhs_contracting_dims": [0]}, "s8[]", "s32[2]", "s32[2]"), "narrower"),
    (dot_text("scaled-dot", {"lhs_contracting_dims": [1], "rhs_contracting_dims": [1]}, "f32[2,2]", "f32[2,8]", "f32[2,8]", "f32[2,3]", "f32[]"),
     "does not divide"),
    ("ENTRY e { x = f32[1,5,4] parameter(0)\n w = f32[3,3,2] parameter(1)\n "
     "ROOT r = f32[1,3,2] convolution(x, w), window={size=3}, dim_labels=b0f_0io->b0f }", "4 features"),
    ("ENTRY e { x = f32[1,5,4] parameter(0)\n w = f32[3,4,2] parameter(1)\n "
     "ROOT r = f32[1,3,2] convolution(x, w), window={size=2}, dim_labels=b0f_0io->b0f }", "window"),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message


def test_cost() -> None:
    dot = read(dot_text("dot", {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0]}, "f32[8,5]", "f32[8,7]", "f32[7,5]")).main().result()
    assert dot.op.cost is not None and dot.op.cost(dot) == 2 * 8 * 7 * 5
    conv = read("ENTRY e { x = f32[2,6,3] parameter(0)\n w = f32[3,3,4] parameter(1)\n ROOT r = f32[2,6,4] convolution(x, w), "
                "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f }").main().result()
    # The first and the last window have one element in the padding, as XLA counts too.
    assert conv.op.cost is not None and conv.op.cost(conv) == 2 * (3 * 6 - 2) * 2 * 3 * 4
    assert leaves(conv)[0].elements == 2 * 6 * 4


def test_an_infinite_complex_product_has_no_nan() -> None:
    x = np.array([[1 + 1j, complex(2, -np.inf)]], np.complex64)
    y = np.array([[-3 + 2j], [-1 - 1j]], np.complex64)
    found, = check(dot_text("dot", {"lhs_contracting_dims": [1], "rhs_contracting_dims": [0]}, "c64[1,1]", "c64[1,2]", "c64[2,1]"), x, y)
    assert (found.real, found.imag) == (-np.inf, np.inf)
