"""Random numbers: the cipher against its published numbers, keys against whole numbers of Python, distributions against their moments."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.formats.relay_numbers import ran, types

Array = np.ndarray[Any, Any]
MASK = (1 << 64) - 1
ROTATIONS = [(14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32)]


def cipher(key: list[int], counter: list[int]) -> list[int]:
    """One block, word by word."""
    whole = [*key, 0x1BD11BDAA9FC1A22 ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = list(counter)
    for r in range(20):
        if r % 4 == 0:
            for j in range(4):
                x[j] = (x[j] + whole[(r // 4 + j) % 5] + (r // 4 if j == 3 else 0)) & MASK
        for pair in (0, 2):
            turn = ROTATIONS[r % 8][pair // 2]
            a, b = x[pair], x[pair + 1]
            a = (a + b) & MASK
            x[pair], x[pair + 1] = a, a ^ (((b << turn) | (b >> (64 - turn))) & MASK)
        x = [x[0], x[3], x[2], x[1]]
    return x


def key_of(seed: int, counter: int = 0, mark: int = 1 << 127) -> Array:
    words = [seed, 2, 3, 4, 0, 0, 0, counter, mark >> 64, mark & MASK]
    return np.array(words, np.uint64)


def test_the_cipher_gives_the_published_numbers() -> None:
    """Random123's kat_vectors, threefry4x64 of 20 rounds, all zero: its last addition of the key, which TVM leaves out, comes on top."""
    published = [0x09218EBDE6C85537, 0x55941F5266D86105, 0x4BD25E16282434DC, 0xEE29EC846BD2E40B]
    whole = [0, 0, 0, 0, 0x1BD11BDAA9FC1A22]
    last = [(word + whole[j] + (5 if j == 3 else 0)) & MASK for j, word in enumerate(cipher([0] * 4, [0] * 4))]
    assert last == published
    zero = np.zeros(10, np.uint64)
    zero[8] = 1 << 63
    _, bits = ran("random.threefry_generate(%x0, out_shape=[4])", zero)
    assert bits.tolist() == cipher([0] * 4, [0] * 4)


@pytest.mark.parametrize("shape", [(8,), (2, 3), (3,)])
def test_numbers_and_the_key_for_those_to_come(shape: tuple[int, ...]) -> None:
    count = int(np.prod(shape))
    after, bits = ran(f"random.threefry_generate(%x0, out_shape={list(shape)})", key_of(7, 5))
    wanted: list[int] = []
    for block in range(count // 4):
        wanted += cipher([7, 2, 3, 4], [block, block, block, 5 + block])
    if count % 4:
        wanted += cipher([7, 2, 3, 4], [0, 0, 0, 5 + count // 4 * 4])[:count % 4]
    assert bits.dtype == np.uint64 and bits.reshape(-1).tolist() == wanted
    assert after.tolist() == [7, 2, 3, 4, 0, 0, 0, 5 + (count if count % 4 == 0 else count // 4 * 4 + 4), 1 << 63, 0]


def test_a_counter_that_is_full_lengthens_the_path_and_then_changes_the_key() -> None:
    after, bits = ran("random.threefry_generate(%x0, out_shape=[4])", key_of(7, MASK - 3))
    assert bits.tolist() == cipher([7, 2, 3, 4], [1 << 63, 0, 0, 0])
    assert after.tolist() == [7, 2, 3, 4, 1 << 63, 0, 0, 4, 1 << 62, 0]
    after, bits = ran("random.threefry_generate(%x0, out_shape=[4])", key_of(7, MASK - 3, 0))
    fresh = cipher([7, 2, 3, 4], [MASK] * 4)
    assert bits.tolist() == cipher(fresh, [0] * 4)
    assert after.tolist() == [*fresh, 0, 0, 0, 4, 1 << 63, 0]


@pytest.mark.parametrize(("mark", "next_"), [(1 << 127, 1 << 126), (1 << 64, 1 << 63), (1 << 63, 1 << 62), (1, 0)])
def test_a_split_adds_a_bit_to_the_path(mark: int, next_: int) -> None:
    left, right = ran("random.threefry_split(%x0)", key_of(9, 3, mark))
    moved = [next_ >> 64, next_ & MASK]
    assert left.tolist() == [9, 2, 3, 4, 0, 0, 0, 3, *moved]
    assert right.tolist() == [9, 2, 3, 4, mark >> 64, mark & MASK, 0, 3, *moved]


def test_a_full_path_is_hashed_into_a_new_key() -> None:
    left, right = ran("random.threefry_split(%x0)", key_of(9, 3, 0))
    fresh = cipher([9, 2, 3, 4], [0, 0, 0, 3])
    assert left.tolist() == [*fresh, 0, 0, 0, 0, 1 << 62, 0]
    assert right.tolist() == [*fresh, 1 << 63, 0, 0, 0, 1 << 62, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform_and_normal_numbers(dtype: str) -> None:
    key = key_of(11)
    low, high = np.dtype(dtype).type(-1), np.dtype(dtype).type(3)
    _, bits = ran("random.threefry_generate(%x0, out_shape=[4000])", key)
    _, drawn = ran(f"random.uniform(%x0, %x1, %x2, out_shape=[4000], out_dtype=\"{dtype}\")", key, low, high)
    fraction = (bits & np.uint64(0xFFFFFFFF)) >> np.uint64(9) if dtype == "float32" else bits >> np.uint64(12)
    size = 2.0 ** (23 if dtype == "float32" else 52)
    np.testing.assert_allclose(drawn, fraction / size * 4 - 1, rtol=1e-6, atol=1e-6)
    assert drawn.dtype == dtype and drawn.min() >= -1 and drawn.max() < 3
    _, bell = ran(f"random.normal(%x0, %x1, %x2, out_shape=[2, 2000], out_dtype=\"{dtype}\")", key, np.dtype(dtype).type(2), np.dtype(dtype).type(3))
    assert bell.shape == (2, 2000) and bell.dtype == dtype
    assert abs(bell.mean() - 2) < 0.2 and abs(bell.std() - 3) < 0.15


def test_places_are_drawn_as_often_as_their_share() -> None:
    shares = np.array([[1, 3, -2, 4], [0, 0, 1, 0]], np.float32)
    after, drawn = ran("random.multinomial(%x0, %x1, num_samples=2000)", key_of(13), shares)
    assert drawn.shape == (2, 2000) and drawn.dtype == np.int32 and after[7] == 4000
    counts = np.bincount(drawn[0], minlength=4) / 2000
    np.testing.assert_allclose(counts, [0.125, 0.375, 0, 0.5], atol=0.04)
    assert set(drawn[1].tolist()) == {2}


def test_types() -> None:
    assert types("random.uniform(%x0, %x1, %x2, out_shape=[2, 3], out_dtype=\"float32\")", key_of(1), np.float32(0), np.float32(1)) == (
        "(u64[10], f32[2,3])")
