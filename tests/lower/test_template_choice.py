"""Which template takes a kernel, with which tiles, on both sides of each of its limits. Nothing is compiled to machine code here."""
from __future__ import annotations

from typing import Any

import pytest

from irscope.api import load
from irscope.expand import bind_inputs, expand
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.schedule import AVX2, AVX512, SSE2, VectorMachine
from tests.lower.running import drawn, entry
from tests.lower.test_templates_attention import attention
from tests.lower.test_templates_contraction import product
from tests.lower.whole import ADD


def schedules(text: str, fixed: tuple[int, ...] = (), **options: Any) -> list[dict[str, Any]]:
    """The schedules of a program's kernels."""
    module = load(text).module()
    arrays = drawn(module) if fixed else []
    program = lower(expand(bind_inputs(module, {i: arrays[i] for i in fixed})), Options(**{"machine": AVX512, **options}))
    return [dict(kernel.schedule) for kernel in program.kernels()]


def only(text: str, fixed: tuple[int, ...] = (), **options: Any) -> dict[str, Any]:
    """The schedule of the one kernel that a template with a name built."""
    [found] = [schedule for schedule in schedules(text, fixed, **options) if "template" in schedule]
    return found


def pool(x: str, out: str, window: str, dtype: str = "f32", init: str = "-inf") -> str:
    return entry(f"x = {dtype}[{x}] parameter(0)\ni = {dtype}[] constant({init})\n"
                 f"ROOT p = {dtype}[{out}] reduce-window(x, i), window={{size={window}}}, to_apply=f",
                 f"f {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] maximum(a, b) }}")


@pytest.mark.parametrize(("text", "lanes"), [
    (pool("1,10,10,40", "1,3,3,40", "1x8x8x1"), 16), (pool("1,13,10,40", "1,1,6,40", "1x13x5x1"), 0),
    (pool("1,10,10,40", "1,9,9,40", "1x2x2x1", "f64"), 8), (pool("1,10,10,40", "1,9,9,40", "1x2x2x1", "bf16"), 0),
    (pool("1,10,10,40", "1,9,9,40", "1x2x2x1", "s8", "-128"), 16), (pool("1,10,10,1", "1,9,9,1", "1x2x2x1"), 0), (pool("1,10,10,2", "1,9,9,2", "1x2x2x1"), 2),
    (pool("1,5,5,40", "1,8,8,40", "1x2x2x1 lhs_dilate=1x2x2x1"), 0), (pool("10,10", "9,9", "2x2"), 0),
], ids=["64 taps", "65 taps", "f64", "bf16", "s8", "1 channel", "2 channels", "holes", "no channels"])
def test_pooling(text: str, lanes: int) -> None:
    assert only(text) == ({"vectors": 4, "lanes": lanes, "template": "window"} if lanes else {"template": "generic", "form": "element"})


def solve(shape: str, dtype: str = "f32", left: bool = True) -> str:
    *batch, rows, columns = shape.split(",")
    unknowns = rows if left else columns
    return entry(f"a = {dtype}[{','.join([*batch, unknowns, unknowns])}] parameter(0)\nb = {dtype}[{shape}] parameter(1)\n"
                 f"ROOT t = {dtype}[{shape}] triangular-solve(a, b), left_side={str(left).lower()}, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE")


@pytest.mark.parametrize(("text", "options", "want"), [
    (solve("8,2"), {}, (2, 1, 8)), (solve("7,2"), {}, None), (solve("8,1"), {}, None), (solve("2,8", left=False), {}, (2, 1, 8)), (solve("2,7", left=False), {}, None),
    (solve("1,8", left=False), {}, None), (solve("17,9", left=False), {}, (16, 2, 8)), (solve("3,8,16"), {}, (16, 1, 8)), (solve("3,8,17"), {}, (16, 2, 8)),
    (solve("3,8,33"), {}, (16, 2, 8)), (solve("20,5"), {}, (8, 1, 8)), (solve("8,16", "f64"), {}, (8, 2, 8)), (solve("8,16", "c64"), {}, None),
    (solve("8,16"), {"precision": "exact"}, None), (solve("8,16"), {"machine": AVX2}, (8, 2, 4)),
])
def test_triangular_systems(text: str, options: dict[str, Any], want: tuple[int, int, int] | None) -> None:
    """Lanes and vectors along the right-hand sides, rows of unknowns."""
    found = only(text, **options)
    assert found["template"] == ("triangular" if want else "generic")
    assert want is None or (found["lanes"], found["vectors"], found["rows"]) == want


@pytest.mark.parametrize(("shape", "dtype", "options", "want"), [
    ("16,16", "f32", {}, (16, 8)), ("15,15", "f32", {}, None), ("2,16,16", "f32", {}, (16, 8)), ("16,16", "f64", {}, (8, 8)), ("16,16", "c64", {}, None),
    ("16,16", "f32", {"precision": "exact"}, None), ("16,16", "f32", {"machine": AVX2}, (8, 4)), ("16,16", "f32", {"machine": SSE2}, (4, 4)),
    ("16,16", "f64", {"machine": SSE2}, (2, 2)),
])
def test_cholesky_factors(shape: str, dtype: str, options: dict[str, Any], want: tuple[int, int] | None) -> None:
    """Lanes of a row of the factor, and rows of a block: no more than lanes."""
    found = only(entry(f"a = {dtype}[{shape}] parameter(0)\nROOT t = {dtype}[{shape}] cholesky(a), lower=true"), **options)
    assert found["template"] == ("cholesky" if want else "generic")
    assert want is None or (found["lanes"], found["vectors"], found["rows"]) == (want[0], 2, want[1])


@pytest.mark.parametrize(("rows", "columns", "dtype", "lanes"), [
    (4, 4, "f32", 4), (3, 9, "f32", 0), (9, 3, "f32", 0), (4, 9, "f32", 4), (9, 4, "f32", 4), (7, 9, "f32", 4), (8, 9, "f32", 8), (15, 40, "f32", 8),
    (16, 16, "f32", 16), (33, 33, "f32", 16), (16, 16, "c64", 0), (16, 16, "s8", 16),
])
def test_transpositions_go_by_squares_that_fit(rows: int, columns: int, dtype: str, lanes: int) -> None:
    found = only(entry(f"""
      x = {dtype}[{rows},{columns}] parameter(0)
      y = {dtype}[{columns},{rows}] parameter(1)
      t = {dtype}[{columns},{rows}] transpose(x), dimensions={{1,0}}
      ROOT s = {dtype}[{columns},{rows}] add(t, y)"""))
    assert found == {"lanes": lanes, "template": "transposition"} if lanes else found["template"] == "map"


def summed(shape: str, dimension: str, out: str) -> str:
    return entry(f"x = f32[{shape}] parameter(0)\n z = f32[] constant(0)\n ROOT s = f32[{out}] reduce(x, z), dimensions={{{dimension}}}, to_apply=sum", ADD)


@pytest.mark.parametrize(("text", "want"), [
    (summed("131072", "0", ""), (16, 4, 4096)), (summed("131071", "0", ""), (16, 4, 0)), (summed("7,131072", "1", "7"), (16, 4, 4096)),
    (summed("8,131072", "1", "8"), (16, 4, 0)), (summed("7,131071", "1", "7"), (16, 4, 0)), (summed("8388608", "0", ""), (16, 4, 131072)),
    (summed("8388609", "0", ""), (16, 4, 135168)), (summed("40,63", "1", "40"), (16, 1, 0)), (summed("40,64", "1", "40"), (16, 4, 0)),
    (summed("40,3", "1", "40"), (4, 1, 0)), (summed("40,5", "1", "40"), (8, 1, 0)),
])
def test_sums_of_rows(text: str, want: tuple[int, int, int]) -> None:
    """Lanes, independent sums, and the elements of a part of a row: two kernels where rows are in parts."""
    found = schedules(text)
    assert len(found) == 1 + bool(want[2])
    assert {(s["template"], s["lanes"], s["sums"], s["part"]) for s in found} == {("rows", *want)}


@pytest.mark.parametrize(("kept", "threads", "lanes", "vectors"), [
    (16, 1, 16, 1), (100, 1, 16, 4), (255, 1, 16, 4), (256, 1, 16, 8), (256, 2, 16, 4), (511, 2, 16, 4), (512, 2, 16, 8), (5, 1, 8, 1), (31, 1, 16, 1), (32, 1, 16, 2),
])
def test_sums_of_columns(kept: int, threads: int, lanes: int, vectors: int) -> None:
    """Eight vectors of columns, or four where that leaves too few strips for the threads."""
    assert only(summed(f"50,{kept}", "0", str(kept)), threads=threads) == {"lanes": lanes, "vectors": vectors, "template": "reduction"}


def convolved(n: int, h: int, w: int, c: int, f: int, size: str = "3x3 pad=1_1x1_1", groups: int = 1, out: tuple[int, int] | None = None, dtype: str = "f32") -> str:
    across, down = size.split(" ")[0].split("x")
    y, x = out or (h, w)
    return entry(f"x = {dtype}[{n},{h},{w},{c}] parameter(0)\nk = {dtype}[{across},{down},{c // groups},{f}] parameter(1)\n"
                 f"ROOT y = {dtype}[{n},{y},{x},{f}] convolution(x, k), window={{size={size}}}, dim_labels=b01f_01io->b01f, feature_group_count={groups}")


@pytest.mark.parametrize(("text", "options", "m"), [
    (convolved(1, 6, 6, 16, 16), {}, 2), (convolved(1, 6, 6, 15, 16), {}, 0), (convolved(1, 6, 6, 16, 15), {}, 0), (convolved(1, 4, 8, 16, 16), {}, 0),
    (convolved(1, 6, 5, 16, 16), {}, 2), (convolved(9, 2, 2, 16, 16), {}, 2), (convolved(8, 2, 2, 16, 16), {}, 0),
    (convolved(1, 12, 12, 16, 16, "3x3 pad=1_1x1_1 stride=2x2", out=(6, 6)), {}, 0), (convolved(1, 10, 10, 16, 16, "3x3 rhs_dilate=2x2", out=(6, 6)), {}, 0),
    (convolved(1, 12, 12, 16, 16, "3x3 pad=-1_0x0_0", out=(9, 10)), {}, 0), (convolved(1, 6, 6, 32, 32, groups=2), {}, 0), (convolved(1, 6, 6, 16, 16, dtype="f64"), {}, 0),
    (convolved(1, 6, 6, 16, 16), {"precision": "exact"}, 0), (convolved(1, 6, 6, 16, 16), {"precision": "fast"}, 2),
    (convolved(1, 16, 16, 16, 16), {"precision": "fast"}, 4), (convolved(1, 16, 12, 16, 16), {"precision": "fast"}, 2), (convolved(1, 13, 13, 16, 16), {"precision": "fast"}, 4),
    (convolved(1, 16, 16, 16, 16), {}, 2),
])
def test_convolutions_by_winograd(text: str, options: dict[str, Any], m: int) -> None:
    found = only(text, (1,), **options)
    assert (found["template"], found.get("m", 0)) == ("winograd" if m else "convolution", m)


def test_weights_that_are_computed_are_not_transformed() -> None:
    assert only(convolved(1, 6, 6, 16, 16))["template"] == "convolution"


@pytest.mark.parametrize(("text", "options", "block", "groups", "prefetch"), [
    (convolved(1, 8, 8, 64, 256), {}, 4, 1, 1), (convolved(1, 8, 8, 64, 256), {"threads": 4}, 4, 4, 1), (convolved(1, 8, 8, 64, 256), {"threads": 3}, 4, 2, 1),
    (convolved(1, 8, 8, 64, 240), {"threads": 4}, 4, 1, 1), (convolved(4, 32, 32, 64, 256), {"threads": 4}, 1, 1, 1), (convolved(1, 6, 6, 16, 16), {}, 3, 1, 1),
    (convolved(1, 32, 32, 16, 64), {"machine": VectorMachine(l2=1 << 18)}, 1, 1, 2), (convolved(1, 32, 32, 16, 64), {"machine": VectorMachine(l2=1 << 19)}, 2, 1, 1),
    (convolved(1, 28, 28, 256, 512), {}, 4, 1, 1),
])
def test_blocks_of_a_winograd_convolution(text: str, options: dict[str, Any], block: int, groups: int, prefetch: int) -> None:
    """Rows of tiles of a block, by the second cache; groups of panels, where there are fewer blocks than threads."""
    found = only(text, (1,), **options)
    assert (found["block_rows"], found["groups"], found["prefetch"]) == (block, groups, prefetch)


def depthwise(width: int, channels: int, size: str, dtype: str = "f32", results: int = 0) -> str:
    return convolved(1, 9, width, channels, results or channels, size, channels, dtype=dtype)


@pytest.mark.parametrize(("text", "machine", "pixels"), [
    (depthwise(9, 40, "3x3 pad=1_1x1_1"), AVX512, 5), (depthwise(17, 40, "3x3 pad=1_1x1_1"), AVX512, 6), (depthwise(17, 40, "3x3 pad=1_1x1_1"), AVX2, 6),
    (depthwise(8, 40, "3x3 pad=1_1x1_1"), AVX512, 8), (depthwise(8, 40, "3x3 pad=1_1x1_1"), AVX2, 4), (depthwise(16, 40, "7x7 pad=3_3x3_3"), AVX512, 6),
    (depthwise(9, 40, "7x8 pad=3_3x3_4"), AVX512, 0), (depthwise(17, 40, "4x6 pad=1_2x2_3"), AVX512, 4), (depthwise(17, 40, "5x5 pad=2_2x2_2"), AVX512, 6),
    (depthwise(9, 40, "3x3 pad=1_1x1_1", results=80), AVX512, 0), (depthwise(9, 1, "3x3 pad=1_1x1_1"), AVX512, 0), (depthwise(9, 40, "3x3 pad=1_1x1_1", "s32"), AVX512, 0),
])
def test_depthwise_convolutions(text: str, machine: VectorMachine, pixels: int) -> None:
    """Neighbours of a row at a time: as many as fit beside the taps, and as even shares of the row as there are."""
    for fixed in ((), (1,)):
        found = only(text, fixed, machine=machine)
        assert (found["template"], found.get("pixels", 0)) == ("depthwise" if pixels else "convolution", pixels)


@pytest.mark.parametrize(("sizes", "rows"), [((5, 1, 16), 5), ((5, 1, 15), 0), ((20, 1, 16), 8), ((5, 2, 64), 5), ((20, 2, 64), 8), ((5, 4, 64), 4), ((5, 5, 64), 0), ((1, 1, 64), 1),
                                            ((100, 3, 64), 5)])
def test_lanes_walk_the_sum_of_a_few_columns(sizes: tuple[int, int, int], rows: int) -> None:
    found = only(product(*sizes, "mk", "nk", epilogue=False))
    assert found == {"rows": rows, "template": "contraction"} if rows else found["pack"] == "transpose"
    assert "vectors" in only(product(*sizes, "mk", "kn", epilogue=False)) or sizes[1] == 1, "columns side by side"


@pytest.mark.parametrize(("queries", "keys", "options", "want"), [
    (20, 300, {}, (20, 300, 20)), (64, 64, {}, (64, 64, 64)), (63, 1024, {}, (8, 1024, 63)), (64, 1025, {}, (8, 528, 64)), (128, 2100, {}, (8, 704, 128)),
    (600, 700, {"threads": 4}, (10, 700, 300)), (600, 700, {"threads": 8}, (10, 700, 200)), (7, 33, {"machine": AVX2}, (7, 33, 7)),
    (300, 3000, {"machine": VectorMachine(l2=1 << 17, l1=16 << 10)}, (12, 256, 300)), (300, 300, {"machine": VectorMachine(l2=1 << 16)}, (50, 160, 150)),
])
def test_blocks_of_attention(queries: int, keys: int, options: dict[str, Any], want: tuple[int, int, int]) -> None:
    """Queries whose scores fit in the first cache, keys of a block, and queries that walk the blocks together."""
    [found] = [s for s in schedules(attention(queries, keys), **options) if s["template"] == "attention"]
    assert (found["block"], found["keys"], found["queries"], found["axes"]) == (*want, 1)
