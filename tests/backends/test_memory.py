"""Loads and stores of every kind: masks, gathers, pred and complex lanes, scratch, constants, alignment, aliasing reads."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import C64, F32, PRED, S32, S64
from irscope.lower.build import KernelBuilder
from tests.backends.running import Array, compiled, interpreted

TYPES = [DTYPES[n] for n in ("pred", "s4", "s8", "u16", "s32", "u64", "bf16", "f16", "f8e4m3fn", "f32", "f64", "c64", "c128")]


def data(dtype: DType, count: int) -> Array:
    rng = np.random.default_rng(0)
    if dtype is PRED:
        return rng.integers(0, 2, count).astype(bool)
    if dtype.is_complex:
        return (rng.standard_normal(count) + 1j * rng.standard_normal(count)).astype(dtype.numpy())
    return rng.integers(0, 7, count).astype(np.int32).astype(dtype.numpy())


@pytest.mark.parametrize("lanes", [1, 4, 16])
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_masked_loads_and_stores(dtype: DType, lanes: int) -> None:
    count = 64
    k = KernelBuilder("masked", lanes)
    x, m, y = k.buffer("x", dtype, (count,), "in"), k.buffer("m", PRED, (count,), "in"), k.buffer("y", dtype, (count,), "out")
    with k.par(0, count, lanes) as i:
        take = k.load(m, i, lanes)
        k.store(y, i, k.load(x, i, lanes, k.unary("not", take)), take)
    kernel = k.finish()
    xs, ms = data(dtype, count), data(PRED, count)
    # Where the mask holds, the load's own mask did not, and gave zeros; elsewhere nothing is stored.
    wanted = interpreted(kernel, [xs, ms])[0]
    got = compiled(kernel, [xs, ms])[0]
    assert (got[ms] == np.zeros(1, got.dtype)).all() and (wanted == np.zeros(1, got.dtype)).all()

    k = KernelBuilder("masked", lanes)
    x, m, y = k.buffer("x", dtype, (count,), "in"), k.buffer("m", PRED, (count,), "in"), k.buffer("y", dtype, (count,), "out")
    with k.par(0, count, lanes) as i:
        k.store(y, i, k.load(x, i, lanes, k.load(m, i, lanes)))
    kernel = k.finish()
    for result in (compiled(kernel, [xs, ms])[0], interpreted(kernel, [xs, ms])[0]):
        assert (result == np.where(ms, xs, np.zeros(1, xs.dtype))).all()


def test_a_mask_keeps_the_last_vector_inside() -> None:
    count = 21
    k = KernelBuilder("tail", 16)
    x, y = k.buffer("x", F32, (count,), "in"), k.buffer("y", F32, (count,), "out")
    for at in (0, 16):
        mask = k.vector([at + lane < count for lane in range(16)], PRED)
        k.store(y, at, k.binary("mul", k.load(x, at, 16, mask), 2.0), mask)
    kernel = k.finish()
    xs = np.arange(count, dtype=np.float32)
    assert (compiled(kernel, [xs])[0] == xs * 2).all() and (interpreted(kernel, [xs])[0] == xs * 2).all()


@pytest.mark.parametrize("index_type", [S32, S64], ids=str)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_gather(dtype: DType, index_type: DType) -> None:
    count, lanes = 32, 8
    k = KernelBuilder("gather", lanes)
    x, n, y = k.buffer("x", dtype, (count,), "in"), k.buffer("n", index_type, (count,), "in"), k.buffer("y", dtype, (count,), "out")
    with k.par(0, count, lanes) as i:
        k.store(y, i, k.gather(x, k.binary("min", k.binary("max", k.load(n, i, lanes), 0), count - 1)))
    kernel = k.finish()
    xs, ns = data(dtype, count), np.random.default_rng(1).integers(0, count, count).astype(index_type.numpy())
    assert (compiled(kernel, [xs, ns])[0] == xs[ns]).all() and (interpreted(kernel, [xs, ns])[0] == xs[ns]).all()


def test_gather_under_a_mask_reads_nothing() -> None:
    k = KernelBuilder("gather", 4)
    x, y = k.buffer("x", F32, (4,), "in"), k.buffer("y", F32, (4,), "out")
    k.store(y, 0, k.gather(x, k.vector([3, 1 << 40, 0, -(1 << 40)]), k.vector([True, False, True, False], PRED)))
    kernel = k.finish()
    xs = np.arange(1, 5, dtype=np.float32)
    assert compiled(kernel, [xs])[0].tolist() == interpreted(kernel, [xs])[0].tolist() == [4, 0, 1, 0]


def test_scratch_tables_and_lanes() -> None:
    k = KernelBuilder("reverse", 8)
    x, y = k.buffer("x", F32, (6, 8), "in"), k.buffer("y", F32, (6, 8), "out")
    weights = k.table(np.arange(8), F32)
    with k.par(0, 6) as i:
        row = k.scratch(F32, (8,))
        with k.loop(0, 8) as j:
            row.store([7 - j], k.load(x, i * 8 + j))
        v = k.load(row.buffer, 0, 8)
        v = k.binary("add", v, k.binary("mul", k.load(weights.buffer, 0, 8), k.convert(k.lane(8), F32)))
        k.store(y, i * 8, k.shuffle(v, v, [1, 0, 3, 2, 5, 4, 7, 6]))
    kernel = k.finish()
    xs = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
    want = (xs[:, ::-1] + np.arange(8, dtype=np.float32) ** 2)[:, [1, 0, 3, 2, 5, 4, 7, 6]]
    for result in (compiled(kernel, [xs.reshape(-1)])[0], interpreted(kernel, [xs.reshape(-1)])[0]):
        assert (result.reshape(6, 8) == want).all()


def test_unaligned_addresses_and_streaming_stores() -> None:
    k = KernelBuilder("copy", 16)
    x, y = k.buffer("x", F32, (100,), "in"), k.buffer("y", F32, (100,), "out")
    with k.par(0, 96, 16) as i:
        k.store(y, i, k.load(x, i + 3, 16), nontemporal=True)
    with k.loop(0, 3) as i:
        k.store(y, i + 97, k.load(x, i), nontemporal=True)
    kernel = k.finish()
    raw = np.arange(101, dtype=np.float32)
    xs = raw.view(np.uint8)[4:].view(np.float32)  # four bytes off
    for result in (compiled(kernel, [xs])[0], interpreted(kernel, [xs])[0]):
        assert (result[:96] == xs[3:99]).all() and (result[97:] == xs[:3]).all()


def test_views_walk_any_layout() -> None:
    k = KernelBuilder("transpose")
    x, y = k.buffer("x", C64, (3, 5), "in"), k.buffer("y", C64, (5, 3), "out")
    source, target = k.view(x), k.view(y, (3, 5), (1, 3))
    with k.par(0, 3) as i, k.loop(0, 5) as j:
        target.store([i, j], source.load([i, j]))
    kernel = k.finish()
    xs = data(C64, 15)
    for result in (compiled(kernel, [xs])[0], interpreted(kernel, [xs])[0]):
        assert (result.reshape(5, 3) == xs.reshape(3, 5).T).all()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17])
def test_any_count(count: int) -> None:
    k = KernelBuilder("any", 16)
    x, y = k.buffer("x", F32, (count,), "in"), k.buffer("y", F32, (count,), "out")
    with k.par(0, count // 16 * 16, 16) as i:
        k.store(y, i, k.load(x, i, 16))
    with k.par(count // 16 * 16, count) as i:
        k.store(y, i, k.load(x, i))
    kernel = k.finish()
    xs = np.arange(count, dtype=np.float32)
    assert (compiled(kernel, [xs])[0] == xs).all()
