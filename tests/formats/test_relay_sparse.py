"""Sparse matrices, bits in words, transforms, distinct values, packed kernels: held against numpy."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irscope
from irscope.source import UserError
from tests.formats.relay_numbers import program, ran, types

Array = np.ndarray[Any, Any]


def drawn(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def packed(matrix: Array, block: tuple[int, int] | None = None) -> tuple[Array, Array, Array]:
    """A matrix as CSR, or as BSR with blocks of a size."""
    if block is None:
        rows, columns = np.nonzero(matrix)
        data, height = matrix[rows, columns], matrix.shape[0]
    else:
        tall, wide = block
        blocks = matrix.reshape(matrix.shape[0] // tall, tall, matrix.shape[1] // wide, wide).transpose(0, 2, 1, 3)
        rows, columns = np.nonzero(np.abs(blocks).sum((2, 3)))
        data, height = blocks[rows, columns], blocks.shape[0]
    return data, columns.astype(np.int32), np.searchsorted(rows, np.arange(height + 1)).astype(np.int32)


def holey(seed: int, rows: int, columns: int, block: tuple[int, int] = (1, 1)) -> Array:
    """A matrix with empty places, and an empty row."""
    keep = np.random.default_rng(seed).uniform(size=(rows // block[0], columns // block[1])) < 0.4
    keep[1] = False
    return drawn(seed, rows, columns) * np.kron(keep, np.ones(block)).astype(np.float32)


@pytest.mark.parametrize("block", [None, (2, 1), (2, 4)])
@pytest.mark.parametrize("name", ["nn.sparse_dense", "nn.internal.sparse_dense_padded"])
def test_dense_layers_of_sparse_weights(name: str, block: tuple[int, int] | None) -> None:
    x, w = drawn(1, 3, 8), holey(2, 6, 8, block or (1, 1))
    (got,) = ran(f"{name}(%x0, %x1, %x2, %x3)", x, *packed(w, block))
    np.testing.assert_allclose(got, x @ w.T, rtol=1e-5, atol=1e-5)
    (got,) = ran(f"{name}(%x0, %x1, %x2, %x3, sparse_lhs=True)", x, *packed(w, block))
    np.testing.assert_allclose(got, w @ x.T, rtol=1e-5, atol=1e-5)


def test_a_matrix_of_one_row() -> None:
    w = np.array([[0, 2, 0, 3]], np.float32)
    (got,) = ran("nn.sparse_add(%x0, %x1, %x2, %x3)", np.ones((1, 4), np.float32), *packed(w))
    np.testing.assert_array_equal(got, w + 1)


def test_sums_and_transposes() -> None:
    w = holey(3, 5, 5)
    x = drawn(4, 5, 5)
    (got,) = ran("nn.sparse_add(%x0, %x1, %x2, %x3)", x, *packed(w))
    np.testing.assert_allclose(got, x + w, rtol=1e-6)
    for mine, wanted in zip(ran("nn.sparse_transpose(%x0, %x1, %x2)", *packed(w)), packed(np.ascontiguousarray(w.T)), strict=True):
        np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize(("layout", "size"), [("NHWC", 1), ("NCHW", 1), ("NHWC", 3)])
def test_convolutions_of_sparse_kernels(layout: str, size: int) -> None:
    x, w = drawn(5, 2, 5, 4, 4), holey(6, 6, size * size * 4)
    given = x if layout == "NHWC" else np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    (got,) = ran(f'nn.sparse_conv2d(%x0, %x1, %x2, %x3, layout="{layout}", kernel_size=[{size}, {size}])', given, *packed(w))
    got = got if layout == "NHWC" else got.transpose(0, 2, 3, 1)
    edge = size // 2
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (edge, edge), (edge, edge), (0, 0)]), (size, size), axis=(1, 2))
    wanted = np.einsum("nhwcij,oijc->nhwo", windows, w.reshape(6, size, size, 4))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("before", "after"), [((3, 4), (2, 6)), ((2, 3, 4), (6, -1)), ((6, 4), (2, 3, 4))])
def test_places_in_another_shape(before: tuple[int, ...], after: tuple[int, ...]) -> None:
    rng = np.random.default_rng(7)
    places = np.stack([rng.integers(0, n, 5) for n in before], 1)
    moved, shape = ran("sparse_reshape(%x0, %x1, %x2)", places, np.array(before), np.array(after))
    resolved = np.zeros(before).reshape(after).shape
    assert shape.tolist() == list(resolved) and moved.dtype == np.int64
    np.testing.assert_array_equal(moved, np.stack(np.unravel_index(np.ravel_multi_index(tuple(places.T), before), resolved), 1))


def test_rows_without_a_place_get_one() -> None:
    text = """def @main(%v: Tensor[(3), float32]) {
  %i = reshape([0, 1, 0, 3, 2, 0], newshape=[3, 2]);
  %0 = sparse_fill_empty_rows(cast(%i, dtype="int64"), %v, cast([5, 6], dtype="int64"), -1f);
  %0
}
"""
    places, values, marks = irscope.compile(text)(np.array([10, 20, 30], np.float32))
    assert places.tolist() == [[0, 1], [0, 3], [1, 0], [2, 0], [3, 0], [4, 0]]
    assert values.tolist() == [10, 20, -1, 30, -1, -1] and marks.tolist() == [0, 1, 0, 1, 1]
    open_ = types("sparse_fill_empty_rows(%x0, %x1, %x2, %x3)", np.zeros((3, 2), np.int64), drawn(1, 3), np.zeros(2, np.int64), np.float32(0))
    assert open_ == "(s64[?,2], f32[?], s64[?])"


def test_places_that_are_not_zero_are_constants_or_refused() -> None:
    found, = irscope.compile("def @main(%x: float32) {\n  argwhere([0, 3, 0, 4])\n}\n")(np.zeros((), np.float32))
    assert found.tolist() == [[1], [3]] and found.dtype == np.int32
    x = drawn(1, 2, 3)
    assert types("argwhere(%x0)", x) == "s32[?,2]"
    with pytest.raises(UserError, match=r"argwhere: how many places there are depends on data.*\(line 2\)"):
        irscope.compile(program("argwhere(%x0)", x))


@pytest.mark.parametrize(("word", "pack_axis", "bit_axis", "bits"), [("uint8", 1, 2, 2), ("uint32", 1, 1, 1), ("uint16", 0, 2, 3), ("uint64", 1, 0, 1)])
def test_bits_in_words(word: str, pack_axis: int, bit_axis: int, bits: int) -> None:
    x = np.random.default_rng(8).integers(0, 1 << bits, (64, 64)).astype(np.int32)
    (got,) = ran(f'nn.bitpack(%x0, bits={bits}, pack_axis={pack_axis}, bit_axis={bit_axis}, pack_type="{word}")', x)
    width = np.dtype(word).itemsize * 8
    planes = []
    for b in range(bits):
        one = np.moveaxis((x >> b) & 1, pack_axis, -1)
        weights = np.array([1 << (width - 1 - k) for k in range(width)], object)
        words = (one.reshape(*one.shape[:-1], -1, width).astype(object) * weights).sum(-1)
        planes.append(np.moveaxis(words.astype(np.uint64), -1, pack_axis))
    wanted = np.stack(planes, bit_axis)
    assert got.dtype == word
    np.testing.assert_array_equal(got.astype(np.uint64), wanted)


@pytest.mark.parametrize("unipolar", [True, False])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("prepacked", [False, True])
def test_convolutions_of_a_few_bits(unipolar: bool, layout: str, prepacked: bool) -> None:
    rng = np.random.default_rng(9)
    x, w = rng.integers(0, 4, (1, 32, 5, 5)), rng.integers(0, 2, (3, 32, 3, 3))
    value = 2 * w - 1 if unipolar else w
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)]), (3, 3), axis=(2, 3))[:, :, ::2, ::2]
    wanted = np.einsum("nchwij,ocij->nohw", windows, value)
    data, kernel = (x, w) if layout == "NCHW" else (x.transpose(0, 2, 3, 1), w.transpose(2, 3, 1, 0))
    data, kernel = np.ascontiguousarray(data).astype(np.uint8), np.ascontiguousarray(kernel).astype(np.uint8)
    if prepacked:
        (kernel,) = ran(f'nn.bitpack(%x0, bits=1, pack_axis={1 if layout == "NCHW" else 2}, bit_axis=4, pack_type="uint32")', kernel)
    (got,) = ran(f'nn.bitserial_conv2d(%x0, %x1, strides=[2, 2], padding=[1, 1], channels=3, activation_bits=2, weight_bits=1, '
                 f'data_layout="{layout}", out_dtype="int16", unipolar={unipolar})', data, kernel)
    np.testing.assert_array_equal(got, wanted if layout == "NCHW" else wanted.transpose(0, 2, 3, 1))
    assert got.dtype == np.int16


@pytest.mark.parametrize("unipolar", [True, False])
def test_dense_layers_of_a_few_bits(unipolar: bool) -> None:
    rng = np.random.default_rng(10)
    x, w = rng.integers(0, 8, (2, 16)).astype(np.uint8), rng.integers(0, 4, (5, 16)).astype(np.uint8)
    value = 2 * w.astype(int) - 3 if unipolar else w
    call = f'nn.bitserial_dense(%x0, %x1, units=5, data_bits=3, weight_bits=2, out_dtype="int32", unipolar={unipolar})'
    np.testing.assert_array_equal(ran(call, x, w)[0], x.astype(int) @ value.T)
    (words,) = ran('nn.bitpack(%x0, bits=2, pack_axis=1, bit_axis=1, pack_type="uint8")', w)
    np.testing.assert_array_equal(ran(call, x, words)[0], x.astype(int) @ value.T)


@pytest.mark.parametrize("inverse", [False, True])
def test_fourier_transforms(inverse: bool) -> None:
    re, im = drawn(11, 3, 12), drawn(12, 3, 12)
    got = ran(f"dft(%x0, %x1, inverse={inverse})", re, im)
    wanted = (np.fft.ifft if inverse else np.fft.fft)(re + 1j * im)
    np.testing.assert_allclose(got[0] + 1j * got[1], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("onesided", "normalized", "batched"), [(True, False, True), (False, True, False)])
def test_transforms_of_windows(onesided: bool, normalized: bool, batched: bool) -> None:
    x, window = drawn(13, 2, 40) if batched else drawn(13, 40), drawn(14, 8)
    (got,) = ran(f"stft(%x0, %x1, n_fft=8, hop_length=4, win_length=8, normalized={normalized}, onesided={onesided})", x, window,
                 rtol=1e-4, atol=1e-4)
    frames = np.stack([x[..., i:i + 8] * window for i in range(0, 33, 4)], -2)
    wanted = np.swapaxes(np.fft.fft(frames), -1, -2)[..., :5 if onesided else 8, :] / (np.sqrt(8) if normalized else 1)
    np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("in_order", [True, False])
def test_distinct_values(in_order: bool) -> None:
    x = np.array([4, 5, 1, 2, 3, 3, 4, 5], np.int32)
    found, first, inverse, count, times = ran(f"unique(%x0, sorted={in_order}, return_counts=True)", x)
    values, places, numbers, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.arange(5) if in_order else np.argsort(places)
    assert count.tolist() == [5]
    assert found.tolist() == [*values[order], 0, 0, 0]
    assert first.tolist() == [*places[order], 8, 8, 8]
    assert inverse.tolist() == np.argsort(order)[numbers].tolist()
    assert times.tolist() == [*counts[order], 0, 0, 0]
    assert len(ran("unique(%x0)", x)) == 4


def test_a_queue_forgets_the_oldest() -> None:
    data, buffer = drawn(15, 2, 3), drawn(16, 2, 7)
    (got,) = ran("nn.fifo_buffer(%x0, %x1, axis=1)", data, buffer)
    np.testing.assert_array_equal(got, np.concatenate([buffer[:, 3:], data], 1))


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_element_types_that_are_chosen_while_it_runs(code: int) -> None:
    x, scale, zero = 100 * drawn(17, 2, 3), np.array([0.5, 1, 2], np.float32), np.array([3, -4, 5], np.int32)
    (got,) = ran("qnn.simulated_quantize(%x0, %x1, %x2, %x3, axis=-1)", x, np.int32(code), scale, zero)
    low, high = {0: (0, 0), 1: (-128, 127), 2: (0, 255), 3: (-2**31, 2**31 - 1)}[code]
    steps = np.floor(np.abs(x / scale) + 0.5) * np.sign(x) + zero
    np.testing.assert_allclose(got, np.clip(steps, low, high) if code else x, rtol=1e-6)
    (back,) = ran("qnn.simulated_dequantize(%x0, %x1, %x2, %x3)", got, np.int32(code), scale, zero)
    np.testing.assert_allclose(back, (got - zero) * scale if code else got, rtol=1e-6)


def test_a_packed_weight_of_integers() -> None:
    rng = np.random.default_rng(18)
    x, w = rng.integers(-9, 9, (2, 8)).astype(np.int8), rng.integers(-9, 9, (32, 8)).astype(np.int8)
    tiles = np.ascontiguousarray(w.reshape(2, 16, 2, 4).transpose(0, 2, 1, 3))
    (got,) = ran('qnn.contrib_dense_pack(%x0, %x1, %x2, %x3, %x4, %x5, units=32, weight_layout="NC16n4c")', x, tiles, np.int32(1), np.int32(-2),
                 np.float32(0.5), np.float32(0.25))
    np.testing.assert_array_equal(got, (x.astype(int) - 1) @ (w.astype(int) + 2).T)


@pytest.mark.parametrize(("dtype", "out"), [("int8", "int32"), ("float32", "float32")])
def test_convolutions_over_tiles(dtype: str, out: str) -> None:
    rng = np.random.default_rng(19)
    x, w = rng.integers(-9, 9, (1, 5, 5, 3)).astype(dtype), rng.integers(-9, 9, (3, 3, 3, 10)).astype(dtype)
    (tiles,) = ran("nn.contrib_conv2d_gemm_weight_transform(%x0, tile_N=4, tile_K=16)", w)
    assert tiles.shape == ((3, 4, 4, 16) if dtype == "int8" else (3, 4, 16, 4))
    (got,) = ran('nn.contrib_conv2d_gemm_without_weight_transform(%x0, %x1, padding=[1, 1], channels=10, kernel_size=[3, 3], data_layout="NHWC", '
                 f'kernel_layout="HWIO", out_dtype="{out}")', x, tiles)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)]), (3, 3), axis=(1, 2))
    np.testing.assert_allclose(got, np.einsum("nhwcij,ijco->nhwo", windows.astype(float), w.astype(float)), rtol=1e-5, atol=1e-4)


def test_what_is_known_by_name_has_a_type_and_is_refused_with_its_place() -> None:
    w = drawn(1, 4, 3, 3, 3)
    call = 'nn.contrib_conv2d_winograd_nnpack_weight_transform(%x0, convolution_algorithm=1)'
    assert types(call, w) == "f32[4,3,8,8]"
    with pytest.raises(UserError, match=r"nn.contrib_conv2d_winograd_nnpack_weight_transform has no meaning that irscope could compile \(line 2\)"):
        irscope.compile(program(call, w))
    text = """def @main(%x: Tensor[(4), float32]) {
  let %s = memory.alloc_storage(16i64, 64i64, dtype="float32");
  memory.alloc_tensor(%s, 0i64, [4], assert_shape=[4], dtype="float32")
}
"""
    assert str(irscope.load(text).module().main().result().type) == "f32[4]"
