"""Schedules and memory by hand: cycles of tiles, the tiles that fit, loops with a last step, places of temporaries in the arena."""
from __future__ import annotations

from math import ceil

import pytest

from irscope.graph import DTYPES
from irscope.graph.dtypes import BF16, C128, F32, F64, PRED, S8, S64
from irscope.lower.build import KernelBuilder
from irscope.lower.memory import ArenaLayout
from irscope.lower.options import Options
from irscope.lower.printer import print_kernel
from irscope.lower.program import Slot
from irscope.lower.schedule import (
    AVX2,
    AVX512,
    NEON,
    SSE2,
    ContractionSchedule,
    ProductSize,
    VectorMachine,
    choose_tile,
    fits,
    good_tiles,
    tile_cycles,
)
from irscope.lower.templates.shares import stepped


def test_processors() -> None:
    assert [(m.vector_bytes, m.registers, m.words) for m in (AVX512, AVX2, SSE2, NEON)] == [(64, 32, 16), (32, 16, 8), (16, 16, 4), (16, 32, 4)]
    assert {(m.loads, m.fmas, m.latency, m.l1, m.l2) for m in (AVX512, AVX2, SSE2, NEON)} == {(2.0, 2.0, 4, 32 * 1024, 1024 * 1024)}
    assert [AVX512.lanes(t) for t in (F32, F64, C128, BF16, S8, PRED, S64, DTYPES["s4"])] == [16, 8, 4, 16, 16, 16, 8, 16]
    assert [SSE2.lanes(t) for t in (F32, F64, C128, BF16)] == [4, 2, 1, 4] and VectorMachine(vector_bytes=8).lanes(C128) == 1


def test_a_tile_fits_where_a_register_is_left() -> None:
    """rows * vectors accumulators, the right operand and one left element; a single row folds its loads."""
    for machine, columns, most in ((AVX512, 2, 14), (AVX512, 1, 30), (AVX512, 4, 6), (AVX2, 2, 6), (AVX2, 1, 14), (AVX2, 3, 4), (NEON, 4, 6)):
        assert fits(most, columns, machine) and not fits(most + 1, columns, machine), (machine, columns)
    assert fits(1, 31, AVX512) and not fits(1, 32, AVX512) and fits(1, 15, AVX2) and not fits(1, 16, AVX2)


@pytest.mark.parametrize(("rows", "vectors", "busy"), [
    (1, 1, 4.0), (4, 2, 4.0), (5, 2, 5.0), (14, 2, 14.0), (6, 4, 12.0), (1, 8, 4.5), (12, 1, 6.5), (7, 1, 4.0), (8, 1, 4.5),
])
def test_cycles_of_a_tile(rows: int, vectors: int, busy: float) -> None:
    """The busiest of fmas (2 a cycle), loads (2 a cycle) and latency (4), a twentieth for each operand, and stalls below 16 chains."""
    stalls = max(0, 16 - rows * vectors) / 16
    assert tile_cycles(rows, vectors, AVX512) == pytest.approx(busy + 0.05 * (rows + vectors) + stalls)
    slow = VectorMachine(fmas=1.0, loads=4.0, latency=5)
    want = max(rows * vectors, (rows + vectors) / 4, 5) + 0.05 * (rows + vectors) + max(0, 10 - rows * vectors) / 8
    assert tile_cycles(rows, vectors, slow) == pytest.approx(want)


def cost(size: ProductSize, tile: tuple[int, int, int], machine: VectorMachine, lanes: int) -> float:
    """The cycles of a result, tile by tile: each is entered and left once."""
    inner, vectors, across = tile
    total = ceil(size.columns / lanes)
    widths = [vectors] * (total // vectors) + [total % vectors] * (total % vectors > 0)
    heights = [inner] * (size.rows // inner) + [size.rows % inner] * (size.rows % inner > 0)
    spans = [across] * (size.outer_rows // across) + [size.outer_rows % across] * (size.outer_rows % across > 0)
    cycles = sum(size.depth * tile_cycles(h * s, w, machine) + 12 + 1.5 * h * s * w for w in widths for h in heights for s in spans)
    if size.far and size.rows * size.outer_rows <= 32:
        tiles = len(heights) * len(spans)
        cycles *= (1 + 0.5 / inner / across) * (1.15 if tiles < vectors and vectors % tiles else 1)
    units = len(widths)
    return cycles * ceil(units / size.shared) * size.shared / units


SIZES = [
    ProductSize(64, 256, 128), ProductSize(1, 1000, 64), ProductSize(7, 48, 9), ProductSize(13, 100, 200, 5), ProductSize(4, 64, 64, 16),
    ProductSize(32, 512, 512, 1, True), ProductSize(33, 512, 512, 1, True), ProductSize(8, 512, 512, 4, True), ProductSize(3, 512, 64, 11, True),
    ProductSize(16, 320, 64, 1, False, 4), ProductSize(16, 320, 64, 1, True, 3), ProductSize(5, 16, 1), ProductSize(100, 17, 3, 2, False, 2),
]


@pytest.mark.parametrize("machine", [AVX512, AVX2], ids=["AVX-512", "AVX2"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_tile_with_the_fewest_cycles(size: ProductSize, machine: VectorMachine) -> None:
    lanes = machine.lanes(F32)
    tiles = [(inner, vectors, across) for across in range(1, min(4, size.outer_rows) + 1) for vectors in range(1, ceil(size.columns / lanes) + 1)
             for inner in range(1, size.rows + 1) if vectors <= machine.registers - 2 and fits(inner * across, vectors, machine)
             and (across == 1 or inner == size.rows)]
    costs = {tile: cost(size, tile, machine, lanes) for tile in tiles}
    best = choose_tile(size, machine, lanes)
    assert costs[best] <= min(costs.values()) * 1.0015
    earlier = [tile for tile in tiles[:tiles.index(best)] if costs[tile] < costs[best] * 1.0005]
    assert not earlier, "of tiles with nearly the same cost the first one is taken"
    ranked = sorted((c, tile) for tile, c in costs.items())
    assert [costs[t] for t in good_tiles(6, size, machine, lanes)] == pytest.approx([c for c, _ in ranked[:6]])
    assert len(good_tiles(1, size, machine, lanes)) == 1


def test_schedules_as_data() -> None:
    schedule = ContractionSchedule(6, 4, pack="load", prefetch=2)
    assert schedule.data() == {"rows": 6, "vectors": 4, "across": 1, "sum_block": 0, "row_block": 0, "pack": "load", "prefetch": 2,
                               "rows_outer": False}
    assert ContractionSchedule.of({**schedule.data(), "template": "contraction"}) == schedule
    assert ContractionSchedule.of({"rows": 1, "vectors": 2}) == ContractionSchedule(1, 2, 1, 0, 0, "none", 0, False)


def test_options() -> None:
    assert Options() == Options(None, 1, "default", 0) and Options(precision="fast").precision == "fast"


def lines(size: int, step: int, **more: bool) -> list[str]:
    """A kernel that stores the width of each step at its position."""
    k = KernelBuilder("k")
    y = k.buffer("y", S64, (64,), "out")
    for i, width in stepped(k, size, step, **more):
        k.store(y, i, width)
    return [line.strip() for line in print_kernel(k.finish()).splitlines()[1:]]


@pytest.mark.parametrize(("size", "step", "more", "want"), [
    (8, 4, {}, ["par i0 in 0..8 step 4", "store y[i0] = 4"]), (4, 4, {}, ["store y[0] = 4"]), (3, 4, {}, ["store y[0] = 3"]),
    (10, 4, {}, ["par i0 in 0..10 step 4", "if i0 < 8", "store y[i0] = 4", "else", "store y[8] = 2"]),
    (10, 4, {"parallel": False}, ["for i0 in 0..8 step 4", "store y[i0] = 4", "store y[8] = 2"]),
    (8, 4, {"parallel": False}, ["for i0 in 0..8 step 4", "store y[i0] = 4"]),
    (8, 4, {"last_apart": True}, ["par i0 in 0..8 step 4", "if i0 < 4", "store y[i0] = 4", "else", "store y[4] = 4"]),
    (8, 4, {"parallel": False, "last_apart": True}, ["store y[0] = 4", "store y[4] = 4"]),
    (4, 4, {"last_apart": True}, ["store y[0] = 4"]),
])
def test_loops_with_a_smaller_last_step(size: int, step: int, more: dict[str, bool], want: list[str]) -> None:
    assert [line.rstrip(":") for line in lines(size, step, **more)] == want


# ---- the arena

STAGGER = 17 * 64


def slot(name: str, elements: int, zeroed: bool = False, scope: str = "temp") -> Slot:
    made = Slot(name, F32, elements, scope, 0)
    made.zeroed = zeroed
    return made


def placed(uses: list[tuple[int, list[Slot]]]) -> tuple[ArenaLayout, int]:
    """The layout of slots that are used in these steps."""
    layout = ArenaLayout()
    for step, slots in uses:
        while layout.time < step:
            layout.tick()
        for s in slots:
            layout.touch(s)
    return layout, layout.place()


def test_values_that_do_not_live_at_once_share_memory() -> None:
    a, b, c, d = (slot(n, 20) for n in "abcd")  # 80 bytes: two lines each
    layout, total = placed([(1, [a]), (2, [a, b]), (3, [b, c]), (4, [c, d])])
    assert [s.offset for s in (a, b, c, d)] == [0, 128, 0, 128] and total == 256 and layout.slots() == [a, b, c, d]
    a, b, c, d = slot("a", 32), slot("b", 16), slot("c", 16), slot("d", 17)
    _, total = placed([(1, [a]), (2, [a, b]), (3, [b, c]), (4, [b, c, d])])
    assert [s.offset for s in (a, b, c, d)] == [0, 128, 0, 192] and total == 320, "c takes the place of a, d does not fit beside it"
    e = slot("e", 0)
    assert placed([(1, [e])])[1] == 64, "an empty array has an address"


def test_only_temporaries_are_placed() -> None:
    given = slot("given", 20, scope="input")
    layout, total = placed([(1, [given])])
    assert layout.slots() == [] and total == 0


def test_large_buffers_are_staggered() -> None:
    a, b, c = slot("a", 1024), slot("b", 1023), slot("c", 16)
    _, total = placed([(1, [a, b, c])])
    assert (a.offset, b.offset, c.offset) == (0, 4096 + STAGGER, 4096 + STAGGER + 4096) and total == c.offset + 64


def test_a_loop_keeps_what_it_reads_until_its_last_round() -> None:
    a, b, c = (slot(n, 16) for n in "abc")
    layout = ArenaLayout()
    assert layout.tick() == 1
    layout.touch(a)
    begin = layout.tick()
    layout.touch(a)
    layout.touch(b)
    layout.tick()
    layout.touch(c)
    layout.close_loop(begin)
    assert layout.place() == 128 and [s.offset for s in (a, b, c)] == [0, 64, 64], "a is read again in the next round"
    layout = ArenaLayout()
    layout.tick()
    layout.touch(a)
    begin = layout.tick()
    layout.touch(b)
    layout.tick()
    layout.touch(c)
    layout.close_loop(begin)
    assert layout.place() == 64 and [s.offset for s in (a, b, c)] == [0, 0, 0], "what no round reads is free"


def test_what_is_cleared_once_shares_nothing() -> None:
    a, z, y, b = slot("a", 16), slot("z", 16, True), slot("y", 40, True), slot("b", 16)
    _, total = placed([(1, [a]), (2, [z]), (3, [y]), (4, [b])])
    assert (z.offset, y.offset) == (0, 64 + STAGGER) and a.offset == b.offset == 64 + STAGGER + 192 + STAGGER and total == a.offset + 64


@pytest.mark.parametrize(("apart", "offsets", "total"), [(64, [64, 256, 448], 592), (1, [64, 192, 320], 401), (100, [128, 320, 512], 692)])
def test_values_apart_share_nothing(apart: int, offsets: list[int], total: int) -> None:
    slots = [slot(n, 20) for n in "abc"]
    layout = ArenaLayout()
    for s in slots:
        layout.tick()
        layout.touch(s)
    assert layout.place_apart(apart) == total and [s.offset for s in slots] == offsets
