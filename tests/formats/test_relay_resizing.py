"""Images in other sizes: each result pixel is computed by itself here, by the formulas of TVM's ``topi.image.resize``."""
from __future__ import annotations

from itertools import product
from math import ceil, floor
from typing import Any

import numpy as np
import pytest

from tests.formats.relay_numbers import Array, ran

MODES = ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "tf_half_pixel_for_nn")


def place(i: int, have: int, want: int, mode: str) -> float:
    """Where result pixel ``i`` lies in the input."""
    scale = have / want
    if mode == "align_corners":
        return (have - 1) / (want - 1) * i if want > 1 else 0.0
    if mode == "asymmetric":
        return scale * i
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) * scale
    return (i + 0.5) * scale - 0.5 if mode == "half_pixel" or want > 1 else 0.0


def rounded(p: float, how: str) -> int:
    return {"round": floor(abs(p) + 0.5) * (1 if p >= 0 else -1), "floor": floor(p + 1e-5), "ceil": ceil(p - 1e-5),
            "round_prefer_floor": ceil(p - 0.5), "round_prefer_ceil": floor(p + 0.5)}[how]


def weights(p: float, method: str, how: str, alpha: float = -0.5) -> list[tuple[int, float]]:
    """The pixels that a place takes, and how much of each."""
    low, part = floor(p), p - floor(p)
    if method == "nearest_neighbor":
        return [(rounded(p, how), 1.0)]
    if method == "linear":
        return [(low, 1 - part), (low + 1, part)]
    t, t2, t3 = part, part**2, part**3
    spline = [alpha * (t3 - 2 * t2 + t), (alpha + 2) * t3 - (3 + alpha) * t2 + 1,
              -(alpha + 2) * t3 + (3 + 2 * alpha) * t2 - alpha * t, -alpha * t3 + alpha * t2]
    return [(low + k - 1, w) for k, w in enumerate(spline)]


def resized(x: Array, sizes: tuple[int, ...], method: str, mode: str, how: str = "") -> Array:
    """``x`` (N, C, ...) with other spatial sizes. An empty ``how`` is TVM's: to the nearest with aligned corners, else down."""
    how = how or ("round" if mode == "align_corners" else "floor")
    out = np.zeros((*x.shape[:2], *sizes))
    for at in product(*map(range, sizes)):
        taps = [weights(place(i, have, want, mode), method, how) for i, have, want in zip(at, x.shape[2:], sizes, strict=True)]
        for pixel in product(*taps):
            where = tuple(min(max(p, 0), have - 1) for (p, _), have in zip(pixel, x.shape[2:], strict=True))
            here: Any = (slice(None), slice(None), *where)
            there: Any = (slice(None), slice(None), *at)
            out[there] += x[here] * float(np.prod([w for _, w in pixel]))
    return out.astype(np.float32)


def image(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def check(call: str, x: Array, wanted: Array) -> None:
    np.testing.assert_allclose(ran(call, x)[0], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize(("method", "plain"), [("nearest_neighbor", "nearest_neighbor"), ("bilinear", "linear"), ("bicubic", "cubic")])
@pytest.mark.parametrize("scales", [(2.0, 2.0), (1.5, 3.0)])
def test_upsampling_is_asymmetric_unless_corners_are_aligned(scales: tuple[float, float], method: str, plain: str, align: bool) -> None:
    x = image(1, 2, 4, 5)
    sizes = (floor(4 * scales[0] + 0.5), floor(5 * scales[1] + 0.5))
    wanted = resized(x, sizes, plain, "align_corners" if align else "asymmetric")
    tail = f'method="{method}", align_corners={align})'
    check(f"nn.upsampling(%x0, scale_h={scales[0]}f, scale_w={scales[1]}f, {tail}", x, wanted)
    check(f"dyn.nn.upsampling(%x0, {scales[0]}f, {scales[1]}f, {tail}", x, wanted)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize(("method", "plain"), [("nearest_neighbor", "nearest_neighbor"), ("trilinear", "linear")])
def test_upsampling_of_volumes(method: str, plain: str, mode: str) -> None:
    x = image(1, 2, 2, 3, 4)
    wanted = resized(x, (4, 6, 8), plain, mode)
    tail = f'method="{method}", coordinate_transformation_mode="{mode}")'
    check(f"nn.upsampling3d(%x0, scale_d=2f, scale_h=2f, scale_w=2f, {tail}", x, wanted)
    check(f"dyn.nn.upsampling3d(%x0, 2f, 2f, 2f, {tail}", x, wanted)
    if mode == "half_pixel":  # the default
        check(f'nn.upsampling3d(%x0, scale_d=2f, scale_h=2f, scale_w=2f, method="{method}")', x, wanted)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("method", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [(8, 7), (3, 10), (1, 5)])
def test_resize_between_pixels(sizes: tuple[int, int], method: str, mode: str) -> None:
    if mode == "align_corners" and 1 in sizes:
        return  # TVM divides 0 by 0
    x = image(1, 2, 4, 5)
    check(f'image.resize2d(%x0, size=[{sizes[0]}, {sizes[1]}], method="{method}", coordinate_transformation_mode="{mode}")', x,
          resized(x, sizes, method, mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", ["", "round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_resize_to_the_nearest_pixel(how: str, mode: str) -> None:
    x = image(1, 2, 4, 5)
    told = f'method="nearest_neighbor", coordinate_transformation_mode="{mode}", rounding_method="{how}")'
    check(f"image.resize2d(%x0, size=[7, 3], {told}", x, resized(x, (7, 3), "nearest_neighbor", mode, how))
    flat = image(1, 2, 5)
    check(f"image.resize1d(%x0, size=[9], {told}", flat, resized(flat, (9,), "nearest_neighbor", mode, how))
    cube = image(1, 1, 2, 3, 2)
    check(f"image.resize3d(%x0, size=[3, 5, 4], {told}", cube, resized(cube, (3, 5, 4), "nearest_neighbor", mode, how))


def test_what_is_not_said_rounds_to_the_nearest_but_whole_factors_in_two_dimensions_divide() -> None:
    plane, line = image(1, 1, 4, 5), image(1, 1, 5)
    told = 'method="nearest_neighbor", coordinate_transformation_mode="asymmetric")'
    check(f"image.resize2d(%x0, size=[8, 15], {told}", plane, resized(plane, (8, 15), "nearest_neighbor", "asymmetric", "floor"))
    check(f"image.resize1d(%x0, size=[15], {told}", line, resized(line, (15,), "nearest_neighbor", "asymmetric", "round"))
    check('image.resize2d(%x0, size=[8, 7], method="nearest_neighbor")', plane, resized(plane, (8, 7), "nearest_neighbor", "half_pixel", "round"))
    check('image.resize(%x0, size=[8, 7], method="nearest_neighbor")', plane, resized(plane, (8, 7), "nearest_neighbor", "half_pixel", "floor"))


def test_a_region_is_cut_out_and_what_lies_outside_has_one_value() -> None:
    x = image(1, 1, 4, 5)
    roi = (0.25, -0.5, 1.25, 1.0)

    def at(i: int, have: int, want: int, start: float, end: float) -> float:
        return start * (have - 1) + i * (end - start) * (have - 1) / (want - 1)

    wanted = np.full((1, 1, 3, 4), 7.0, np.float32)
    for i, j in product(range(3), range(4)):
        y, z = at(i, 4, 3, roi[0], roi[2]), at(j, 5, 4, roi[1], roi[3])
        if 0 <= y <= 3 and 0 <= z <= 4:
            rows, columns = weights(y, "linear", ""), weights(z, "linear", "")
            wanted[0, 0, i, j] = sum(x[0, 0, min(p, 3), min(q, 4)] * v * w for (p, v), (q, w) in product(rows, columns))
    told = 'coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7f)'
    check(f"image.resize2d(%x0, size=[3, 4], roi=[0.25f, -0.5f, 1.25f, 1f], {told}", x, wanted)
    check(f"dyn.image.resize2d(%x0, [3, 4], [0.25, -0.5, 1.25, 1.0], {told}", x, wanted)


def test_layouts_and_narrow_types() -> None:
    x = image(1, 2, 4, 5)
    wanted = resized(x, (8, 10), "linear", "asymmetric")
    check('nn.upsampling(%x0, scale_h=2f, scale_w=2f, layout="NHWC", method="bilinear")', np.ascontiguousarray(x.transpose(0, 2, 3, 1)),
          wanted.transpose(0, 2, 3, 1))
    half = x.astype(np.float16)
    [got] = ran('nn.upsampling(%x0, scale_h=2f, scale_w=2f, method="bilinear")', half, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(got, resized(half.astype(np.float32), (8, 10), "linear", "asymmetric").astype(np.float16))


def test_cropped_boxes_round_halves_away_from_zero_and_keep_the_type_of_the_data() -> None:
    x = np.arange(25, dtype=np.int32).reshape(1, 1, 5, 5)
    boxes = np.array([[0.125, 0.125, 0.625, 0.625]], np.float32)  # places 0.5 and 2.5
    [got] = ran('image.crop_and_resize(%x0, %x1, %x2, crop_size=[2, 2], method="nearest_neighbor")', x, boxes, np.zeros(1, np.int32))
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got[0, 0], [[6, 8], [16, 18]])


@pytest.mark.parametrize(("n", "want"), [(7, 3), (6, 4), (5, 5), (3, 7)])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_adaptive_windows_reach_from_the_floor_to_the_ceiling(kind: str, n: int, want: int) -> None:
    x = image(1, 2, n)
    take: Any = np.max if kind == "max" else np.mean
    wanted = np.stack([take(x[..., o * n // want : -(-(o + 1) * n // want)], axis=-1) for o in range(want)], -1)
    check(f"nn.adaptive_{kind}_pool1d(%x0, output_size=[{want}])", x, wanted)
