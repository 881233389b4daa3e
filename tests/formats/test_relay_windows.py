"""Convolutions in Winograd's domain and at places of their own, correlations, pooled regions: held against plain loops."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from irscope.formats.relay.operators.winograd import matrices
from tests.formats.relay_numbers import ran, types

Array = np.ndarray[Any, Any]


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def convolved(x: Array, w: Array, pad: int) -> Array:
    """N C ... with O I ..., strides of 1, over any number of dimensions."""
    n = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(pad, pad)] * n])
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=tuple(range(2, 2 + n)))
    return np.moveaxis(np.tensordot(windows, w, ([1, *range(2 + n, 2 + 2 * n)], [1, *range(2, 2 + n)])), -1, 1)


@pytest.mark.parametrize(("tile", "kernel"), [(2, 3), (4, 3), (6, 3), (2, 5), (4, 5), (8, 3), (2, 7)])
def test_the_matrices_of_a_tile_give_its_convolution(tile: int, kernel: int) -> None:
    a, b, g = matrices(tile, kernel)
    rng = np.random.default_rng(tile * 10 + kernel)
    data, weight = rng.standard_normal(tile + kernel - 1), rng.standard_normal(kernel)
    np.testing.assert_allclose(a.T @ ((g @ weight) * (b.T @ data)), np.convolve(data, weight[::-1], "valid"), rtol=1e-9, atol=1e-9)


def test_the_matrices_are_those_of_the_points_0_and_both_ones() -> None:
    """F(2, 3) of Lavin and Gray, but for the order of the points and the signs that go with it."""
    _, _, g = matrices(2, 3)
    np.testing.assert_allclose(g, np.array([[1, 0, 0], [0.5, -0.5, 0.5], [0.5, 0.5, 0.5], [0, 0, 1]]))


def test_a_size_that_nobody_transforms_is_refused() -> None:
    with pytest.raises(ValueError, match="tiles of 2 to 8"):
        matrices(9, 3)


@pytest.mark.parametrize(("tile", "layout"), [(2, "co_ci"), (4, "ci_co"), (4, "arm"), (4, "nhwc")])
def test_a_convolution_over_a_transformed_kernel(tile: int, layout: str) -> None:
    x, w = drawn(1, 2, 3, 9, 7), drawn(2, 4, 3, 3, 3)
    (u,) = ran(f"nn.contrib_conv2d_winograd_weight_transform(%x0, tile_size={tile})", w)
    assert u.shape == (tile + 2, tile + 2, 4, 3)
    data, lies = x, ""
    if layout == "ci_co":
        u = np.ascontiguousarray(u.transpose(0, 1, 3, 2))
    elif layout == "arm":
        u = np.ascontiguousarray(u.reshape(tile + 2, tile + 2, 2, 2, 3).transpose(0, 1, 2, 4, 3))
    elif layout == "nhwc":
        data, lies = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), ', data_layout="NHWC", kernel_layout="HWIO"'
    (got,) = ran(f"nn.contrib_conv2d_winograd_without_weight_transform(%x0, %x1, tile_size={tile}, padding=[1, 1, 1, 1], channels=4, "
                 f"kernel_size=[3, 3]{lies})", data, u, rtol=1e-3, atol=1e-3)
    if layout == "nhwc":
        got = got.transpose(0, 3, 1, 2)
    np.testing.assert_allclose(got, convolved(x, w, 1), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("depth", [3, 1, 2])
def test_three_dimensions(depth: int) -> None:
    x, w = drawn(3, 1, 2, 5, 6, 5), drawn(4, 3, 2, depth, 3, 3)
    (u,) = ran("nn.contrib_conv3d_winograd_weight_transform(%x0, tile_size=2)", w)
    assert u.shape == ((4, 4, 4, 3, 2) if depth == 3 else (4, 4, depth, 3, 2))
    (got,) = ran("nn.contrib_conv3d_winograd_without_weight_transform(%x0, %x1, tile_size=2, channels=3, kernel_size="
                 f"[{depth}, 3, 3])", x, u, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(got, convolved(x, w, 0), rtol=1e-3, atol=1e-3)


def bent(x: Array, offset: Array, w: Array, stride: int, pad: int, dilation: int, bends: int, groups: int) -> Array:
    n, c, height, width = x.shape
    o, inner, kh, kw = w.shape
    out = np.zeros((n, o, *offset.shape[2:]))
    for b, f, i, j in np.ndindex(*out.shape):
        for q, ki, kj in np.ndindex(inner, kh, kw):
            channel = f // (o // groups) * inner + q
            at = (channel // (c // bends) * kh * kw + ki * kw + kj) * 2
            y = i * stride - pad + ki * dilation + offset[b, at, i, j]
            z = j * stride - pad + kj * dilation + offset[b, at + 1, i, j]
            if not (0 <= y < height and 0 <= z < width):
                continue
            top, left, value = math.floor(y), math.floor(z), 0.0
            for dy, dz in np.ndindex(2, 2):
                if top + dy < height and left + dz < width:
                    part = (1 - abs(y - top - dy)) * (1 - abs(z - left - dz))
                    value += part * x[b, channel, top + dy, left + dz]
            out[b, f, i, j] += value * w[f, q, ki, kj]
    return out


@pytest.mark.parametrize(("stride", "pad", "dilation", "bends", "groups"), [(1, 1, 1, 1, 1), (2, 1, 1, 2, 1), (1, 2, 2, 1, 2)])
def test_windows_that_bend(stride: int, pad: int, dilation: int, bends: int, groups: int) -> None:
    x, w = drawn(5, 2, 4, 6, 5), drawn(6, 4, 4 // groups, 3, 3)
    oh, ow = ((size + 2 * pad - 2 * dilation - 1) // stride + 1 for size in (6, 5))
    offset = 1.5 * drawn(7, 2, 18 * bends, oh, ow)
    (got,) = ran(f"nn.deformable_conv2d(%x0, %x1, %x2, strides=[{stride}, {stride}], padding=[{pad}, {pad}], dilation=[{dilation}, {dilation}], "
                 f"deformable_groups={bends}, groups={groups})", x, offset, w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(got, bent(x, offset, w, stride, pad, dilation, bends, groups), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("kernel", "far", "stride1", "stride2", "pad", "product"), [(1, 2, 1, 1, 2, True), (3, 2, 2, 2, 3, False)])
def test_correlations(kernel: int, far: int, stride1: int, stride2: int, pad: int, product: bool) -> None:
    x, y = drawn(8, 1, 3, 8, 7), drawn(9, 1, 3, 8, 7)
    (got,) = ran(f"nn.correlation(%x0, %x1, kernel_size={kernel}, max_displacement={far}, stride1={stride1}, stride2={stride2}, "
                 f"padding=[{pad}, {pad}], is_multiply={product})", x, y, rtol=1e-4, atol=1e-4)
    a, b = (np.pad(v, [(0, 0), (0, 0), (pad, pad), (pad, pad)]) for v in (x, y))
    radius = far // stride2
    for q, i, j in np.ndindex(*got.shape[1:]):
        dy, dx = (v * stride2 for v in (q // (2 * radius + 1) - radius, q % (2 * radius + 1) - radius))
        r, s = i * stride1 + far, j * stride1 + far
        one = a[0, :, r:r + kernel, s:s + kernel]
        two = b[0, :, r + dy:r + dy + kernel, s + dx:s + dx + kernel]
        wanted = (one * two if product else np.abs(one - two)).sum() / (kernel * kernel * 3)
        assert abs(got[0, q, i, j] - wanted) < 1e-4
    assert got.shape[1] == (2 * radius + 1) ** 2


def test_regions_are_pooled_cell_by_cell() -> None:
    x = drawn(10, 2, 3, 9, 8)
    rois = np.array([[0, 0, 0, 15, 17], [1, 4, 6, 5, 6], [0, 10, 12, 40, 50], [1, 20, 20, 40, 40]], np.float32)
    (got,) = ran("vision.roi_pool(%x0, %x1, pooled_size=[3, 2], spatial_scale=0.5f)", x, rois)
    for r, roi in enumerate(rois):
        x1, y1, x2, y2 = (math.floor(v * 0.5 + 0.5) for v in roi[1:])
        for i, j in np.ndindex(3, 2):
            tall, wide = max(y2 - y1 + 1, 1) / 3, max(x2 - x1 + 1, 1) / 2
            top, bottom = (min(max(v + y1, 0), 9) for v in (math.floor(i * tall), math.ceil((i + 1) * tall)))
            left, right = (min(max(v + x1, 0), 8) for v in (math.floor(j * wide), math.ceil((j + 1) * wide)))
            cell = x[int(roi[0]), :, top:bottom, left:right].reshape(3, -1)
            np.testing.assert_array_equal(got[r, :, i, j], cell.max(1) if cell.size else np.zeros(3))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_gradient_of_a_pooling_goes_to_the_largest(layout: str) -> None:
    x, grad = drawn(11, 1, 2, 6, 6), drawn(12, 1, 2, 3, 3)
    order = (0, 1, 2, 3) if layout == "NCHW" else (0, 2, 3, 1)
    (got,) = ran(f'nn.max_pool2d_grad(%x0, %x1, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 0, 0], layout="{layout}")',
                 np.ascontiguousarray(grad.transpose(order)), np.ascontiguousarray(x.transpose(order)))
    wanted = np.zeros_like(x)
    for c, i, j in np.ndindex(2, 3, 3):
        rows, columns = (range(max(2 * v - 1, 0), min(2 * v + 2, 6)) for v in (i, j))
        best = max(((r, s) for r in rows for s in columns), key=lambda at: x[0, c, at[0], at[1]])
        wanted[0, c, best[0], best[1]] += grad[0, c, i, j]
    np.testing.assert_allclose(got, wanted.transpose(order), rtol=1e-6, atol=1e-6)


def test_types() -> None:
    assert types("vision.roi_pool(%x0, %x1, pooled_size=[7, 7], spatial_scale=0.0625f)", drawn(1, 1, 8, 14, 14), drawn(1, 5, 5)) == "f32[5,8,7,7]"
    assert types("nn.correlation(%x0, %x1, max_displacement=4, padding=[4, 4])", drawn(1, 1, 8, 9, 9), drawn(1, 1, 8, 9, 9)) == "f32[1,81,9,9]"
