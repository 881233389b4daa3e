"""Transposes as XLA's GPU emitters see them: which go through tiles, and how much shared memory a tile takes."""
from __future__ import annotations

import pytest

from irscope.fusion.xla import transposes
from irscope.fusion.xla.gpu_rules import shared_memory
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.transposes import TiledTranspose, moves_minor, tiled_transpose
from tests.fusion.xla_texts import module


def transpose(dtype: str, dims: tuple[int, ...], axes: tuple[int, ...], layout: str = "", result: str = "") -> Instruction:
    sizes = ",".join(map(str, dims))
    out = ",".join(str(dims[a]) for a in axes)
    text = f"x = {dtype}[{sizes}]{layout} parameter(0)\n ROOT t = {dtype}[{out}]{result} transpose(x), " \
        f"dimensions={{{','.join(map(str, axes))}}}"
    return Computation.of(module(text).main()).root


CASES: list[tuple[str, tuple[int, ...], tuple[int, ...], TiledTranspose | None]] = [
    ("f32", (64, 48), (1, 0), TiledTranspose((48, 64), (1, 0), (32, 32), 32 * 33 * 4)),
    ("f32", (16, 16), (1, 0), TiledTranspose((16, 16), (1, 0), (32, 32), 32 * 33 * 4)),
    ("f32", (15, 16), (1, 0), None),
    ("f32", (8, 1024), (1, 0), TiledTranspose((1024, 8), (1, 0), (32, 32), 32 * 33 * 4)),
    ("f32", (8, 1023), (1, 0), None),
    ("f32", (7, 4096), (1, 0), None),
    # neighbours that stay together are one dimension, sizes of 1 none
    ("f32", (4, 1, 16, 32), (3, 1, 0, 2), TiledTranspose((32, 64), (1, 0), (32, 32), 32 * 33 * 4)),
    ("f32", (2, 32, 64), (0, 2, 1), TiledTranspose((2, 64, 32), (0, 2, 1), (1, 32, 32), 32 * 33 * 4)),
    # the fastest dimension stays: it becomes part of the tile while it is narrow
    ("f32", (128, 1024, 2), (1, 0, 2), TiledTranspose((1024, 128, 2), (1, 0, 2), (32, 32, 2), 32 * 33 * 2 * 4)),
    ("f32", (128, 1024, 3), (1, 0, 2), None),
    ("f16", (128, 1024, 4), (1, 0, 2), TiledTranspose((1024, 128, 4), (1, 0, 2), (32, 32, 4), 32 * 33 * 4 * 2)),
    ("f32", (2, 1024, 2), (1, 0, 2), TiledTranspose((1024, 2, 2), (1, 0, 2), (32, 32, 2), 32 * 33 * 2 * 4)),
    ("s8", (8, 1024, 1, 2), (1, 0, 2, 3), TiledTranspose((1024, 8, 2), (1, 0, 2), (32, 32, 2), 32 * 33 * 2)),
    ("s8", (7, 1024, 2), (1, 0, 2), None),
    # narrow elements are packed
    ("f16", (64, 48), (1, 0), TiledTranspose((48, 64), (1, 0), (48, 64), 32 * 4 * 32 * 2)),
    ("f16", (20, 20), (1, 0), TiledTranspose((20, 20), (1, 0), (20, 20), 32 * 4 * 32 * 2)),
    ("f16", (20, 18), (1, 0), TiledTranspose((18, 20), (1, 0), (32, 32), 32 * 33 * 2)),
    ("f16", (21, 20), (1, 0), TiledTranspose((20, 21), (1, 0), (32, 32), 32 * 33 * 2)),
    ("s8", (128, 64, 10, 6), (0, 3, 2, 1), TiledTranspose((128, 6, 10, 64), (0, 3, 2, 1), (1, 6, 10, 64), 32 * 32 * 4 * 4)),
    ("pred", (256, 256), (1, 0), TiledTranspose((256, 256), (1, 0), (128, 128), 32 * 32 * 4 * 4)),
    ("s4", (16, 16), (1, 0), None),
]


@pytest.mark.parametrize("dtype, dims, axes, tiled", CASES, ids=[f"{c[0]}{list(c[1])}{list(c[2])}" for c in CASES])
def test_tiles(dtype: str, dims: tuple[int, ...], axes: tuple[int, ...], tiled: TiledTranspose | None) -> None:
    made = transpose(dtype, dims, axes)
    assert tiled_transpose(made) == tiled
    assert shared_memory(made) == (tiled.shared_memory if tiled is not None else 0)


THRESHOLDS = [("MIN_TILED", 1), ("MIN_TILED_SMALL", 1), ("MIN_TILED_TOTAL", 8), ("MAX_MINOR_BITS", 32), ("BANK_BITS", 16),
              ("MIN_PACKED", 1)]


@pytest.mark.parametrize("name, step", THRESHOLDS, ids=[t[0] for t in THRESHOLDS])
@pytest.mark.parametrize("sign", [-1, 1])
def test_every_threshold_matters(name: str, step: int, sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transposes, name, getattr(transposes, name) + sign * step)
    monkeypatch.setattr(transposes, "_tiles", transposes._tiles.__wrapped__)  # without what it remembers
    assert any(tiled_transpose(transpose(dtype, dims, axes)) != tiled for dtype, dims, axes, tiled in CASES)


def test_a_copy_into_another_layout_is_a_transpose() -> None:
    text = "x = f32[64,32]{1,0} parameter(0)\n ROOT c = f32[64,32]{0,1} copy(x)"
    assert tiled_transpose(Computation.of(module(text).main()).root) == TiledTranspose((32, 64), (1, 0), (32, 32), 32 * 33 * 4)


def test_blocks_cover_the_result() -> None:
    assert TiledTranspose((1000, 33, 2), (1, 0, 2), (32, 32, 2), 0).blocks == 32 * 2 * 1


@pytest.mark.parametrize("dims, axes, layout, result, moved", [
    ((10, 20), (1, 0), "", "", True), ((10, 20), (1, 0), "{1,0}", "{0,1}", False), ((4, 10, 20), (1, 0, 2), "", "", False),
    ((10, 20, 1, 1), (0, 1, 3, 2), "", "", False), ((10, 20, 1, 1), (1, 0, 2, 3), "", "", True)])
def test_who_moves_the_fastest_dimension(dims: tuple[int, ...], axes: tuple[int, ...], layout: str, result: str, moved: bool) -> None:
    assert moves_minor(transpose("f32", dims, axes, layout, result)) is moved
