"""Pooling in every layout, at the edges of images, and with reductions that are no maximum."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from tests.lower.running import check, compiled, entry

REDUCERS = {
    "max": "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }",
    "add": "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }",
    "odd": "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n h = f32[] constant(0.5)\n c = f32[] multiply(a, h)\n ROOT r = f32[] add(c, b) }",
    "constant": "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] constant(3) }",
}


@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize(("x", "out", "window"), [
    ("1,9,11,40", "1,5,6,40", "size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_1x1_1x0_0"),
    ("2,8,6,16", "2,4,3,16", "size=1x2x2x1 stride=1x2x2x1"),
    ("2,8,6,7", "2,7,7,7", "size=1x2x2x1 pad=0_0x0_0x1_1x0_0"),
    ("1,10,10,70", "1,8,8,70", "size=1x2x2x1 rhs_dilate=1x3x3x1 pad=0_0x1_0x0_1x0_0"),
])
def test_channels_last(x: str, out: str, window: str, reducer: str) -> None:
    init = "-inf" if reducer == "max" else "0.25"
    check(entry(f"""
      x = f32[{x}] parameter(0)
      i = f32[] constant({init})
      p = f32[{out}] reduce-window(x, i), window={{{window}}}, to_apply=f
      ROOT n = f32[{out}] negate(p)""", REDUCERS[reducer]), template="window")


def test_between_convolutions_channels_first() -> None:
    check(entry("""
      x = f32[1,5,12,12] parameter(0)
      w = f32[20,5,3,3] parameter(1)
      v = f32[24,20,3,3] parameter(2)
      c = f32[1,20,12,12] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
      i = f32[] constant(-inf)
      p = f32[1,20,6,6] reduce-window(c, i), window={size=1x1x3x3 stride=1x1x2x2 pad=0_0x0_0x1_1x1_1}, to_apply=f
      d = f32[1,24,6,6] convolution(p, v), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
      ROOT n = f32[1,24,6,6] negate(d)""", REDUCERS["max"]), (1, 2), template="window")


@pytest.mark.parametrize("dtype", ["f64", "s32", "bf16"])
def test_element_types(dtype: str) -> None:
    reducer = REDUCERS["max"].replace("f32", dtype)
    init = "-1000" if dtype == "s32" else "-inf"
    check(entry(f"""
      x = {dtype}[1,6,6,20] parameter(0)
      i = {dtype}[] constant({init})
      ROOT p = {dtype}[1,3,3,20] reduce-window(x, i), window={{size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}}, to_apply=f""", reducer))


def test_not_a_number_stays() -> None:
    text = entry("""
      x = f32[1,6,6,20] parameter(0)
      i = f32[] constant(-inf)
      ROOT p = f32[1,3,3,20] reduce-window(x, i), window={size=1x3x3x1 stride=1x2x2x1 pad=0_0x1_0x1_0x0_0}, to_apply=f""", REDUCERS["max"])
    x = np.arange(6 * 6 * 20, dtype=np.float32).reshape(1, 6, 6, 20) - 300
    x[0, 1, 2, 3] = np.nan
    x[0, :, :, 4] = -np.inf
    (expected,) = flatten(evaluate(load(text).module().main(), [x]))
    for precision in ("default", "exact"):
        np.testing.assert_array_equal(compiled(text, precision=precision)[1](x)[0], expected)


def test_pixels_that_a_window_passes_over_leave_no_trace() -> None:
    text = entry("""
      x = f32[1,6,6,20] parameter(0)
      i = f32[] constant(-inf)
      ROOT p = f32[1,6,6,20] reduce-window(x, i), window={size=1x3x3x1 rhs_dilate=1x2x2x1 pad=0_0x2_2x2_2x0_0}, to_apply=f""", REDUCERS["max"])
    x = np.arange(6 * 6 * 20, dtype=np.float32).reshape(1, 6, 6, 20)
    x[0, 0, 0] = np.nan
    (expected,) = flatten(evaluate(load(text).module().main(), [x]))
    np.testing.assert_array_equal(compiled(text)[1](x)[0], expected)


@pytest.mark.parametrize(("x", "out", "window"), [
    ("3,4,1,16", "5,3,1,16", "size=1x2x1x1 pad=1_1x0_0x0_0x0_0"),
    ("1,4,4,16", "1,4,6,16", "size=1x2x2x1 stride=1x2x1x1 pad=0_0x1_3x1_2x0_0"),
    ("1,0,4,16", "1,3,4,16", "size=1x2x1x1 pad=0_0x2_2x0_0x0_0"),
])
def test_windows_that_lie_beside_the_image_give_the_first_value(x: str, out: str, window: str) -> None:
    check(entry(f"""
      x = f32[{x}] parameter(0)
      i = f32[] parameter(1)
      ROOT p = f32[{out}] reduce-window(x, i), window={{{window}}}, to_apply=f""", REDUCERS["max"]))
