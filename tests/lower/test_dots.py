"""Schedules of contractions by rule: what is packed, prefetched and blocked, and in which order the loops run, on both sides of each limit."""
from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.graph import DType
from irscope.graph.dtypes import BF16, F16, F32, F64
from irscope.lower.schedule import AVX512, ContractionSchedule, VectorMachine
from irscope.lower.templates.affine import Affine, Axis
from irscope.lower.templates.dots import alternatives, choose, last, packing, size_of, sorted_axes, vector_axis


def product(m: int, n: int, k: int, *outer: Axis) -> Affine:
    """``f32[m,k] x f32[k,n]``, with axes outside."""
    return Affine([*outer, Axis("row", m, k, 0, 0), Axis("column", n, 0, 1, 1), Axis("sum", k, 1, n)])


def schedule(m: int, n: int, k: int, pack: str = "load", l2: int = AVX512.l2, dtype: DType = F32) -> ContractionSchedule:
    return choose(product(m, n, k), pack, dtype, VectorMachine(l2=l2))


@pytest.mark.parametrize(("l2", "block"), [(770_000, 0), (768_000, 0), (767_997, 500), (510_000, 334), (300_000, 250)])
def test_a_panel_beyond_a_third_of_the_second_cache_is_cut_into_quarters_of_it(l2: int, block: int) -> None:
    """A panel is 1000 steps of 4 vectors of 64 bytes."""
    assert schedule(64, 64, 1000, "load", l2).sum_block == block
    assert schedule(64, 64, 1000, "copy", l2).sum_block == block
    assert schedule(64, 64, 1000, "none", l2).sum_block == 0, "read in place, a panel takes no room of its own"
    assert schedule(6, 64, 1000, "copy", l2).sum_block == 0, "a single tile reads the panel once"


@pytest.mark.parametrize(("k", "dtype", "block"), [(16384, F32, 0), (16385, F32, 2048), (16385, F64, 0), (16385, BF16, 0), (16385, F16, 0)])
def test_sums_whose_totals_are_wider_are_cut_into_blocks_of_products(k: int, dtype: DType, block: int) -> None:
    assert schedule(2, 32, k, "none", dtype=dtype).sum_block == block


def test_a_block_holds_no_more_products_than_one_total_takes() -> None:
    assert schedule(64, 64, 20_000, "load", 6_000_000).sum_block == 2048
    assert schedule(64, 64, 20_000, "load", 300_000).sum_block < 400, "the cache holds less"


def test_rows_are_outside_where_all_weights_stay_in_the_cache_and_the_rows_do_not() -> None:
    assert schedule(600, 64, 16, l2=4 * 4096).rows_outer, "weights of 4096 bytes are a quarter of the cache"
    assert not schedule(600, 64, 16, l2=4 * 4096 - 4).rows_outer
    assert schedule(513, 64, 16, l2=65536).rows_outer and not schedule(512, 64, 16, l2=65536).rows_outer, "512 rows of 64 bytes are half of it"
    assert schedule(600, 64, 16, "none", 4 * 4096).rows_outer
    assert not schedule(600, 64, 16, "copy", 4 * 4096).rows_outer, "a panel that the kernel packs is used for all rows"
    assert schedule(600, 64, 16, "none", 4 * 4096, F64).rows_outer is False, "elements of 8 bytes: twice the weights"


@pytest.mark.parametrize(("m", "pack", "lines"), [(1, "load", 4), (5, "load", 4), (16, "load", 1), (33, "load", 1), (1, "none", 0), (16, "copy", 0), (33, "copy", 1)])
def test_lines_of_the_next_panel_are_shared_by_the_tiles_of_this_one(m: int, pack: str, lines: int) -> None:
    assert schedule(m, 1024, 300, pack).prefetch == lines


def test_packing_prefetches_only_what_does_not_fit() -> None:
    assert schedule(33, 1024, 300, "copy", 4 * 1024 * 300 * 4).prefetch == 0
    assert schedule(33, 1024, 300, "copy", 4 * 1024 * 300 * 4 - 4).prefetch == 1


@pytest.mark.parametrize(("affine", "pack", "dtype", "far"), [
    (product(8, 64, 1024), "load", F32, False), (product(8, 64, 1025), "load", F32, True), (product(8, 64, 1025), "none", F32, False),
    (product(8, 64, 1024), "load", BF16, False), (product(8, 64, 1025), "load", BF16, True), (product(8, 64, 513), "load", F64, True),
    (product(8, 64, 512, Axis("batch", 2, 9, 9)), "load", F32, False), (product(8, 64, 513, Axis("batch", 2, 9, 9)), "load", F32, True),
])
def test_weights_are_far_beyond_a_quarter_of_the_second_cache(affine: Affine, pack: str, dtype: DType, far: bool) -> None:
    assert size_of(affine, pack, dtype, AVX512, 1).far is far


@pytest.mark.parametrize(("outer", "shared"), [
    ((), 4), ((Axis("batch", 7, 9, 9),), 4), ((Axis("batch", 8, 9, 9),), 1), ((Axis("column", 7, 0, 9),), 4), ((Axis("column", 8, 0, 9),), 1),
    ((Axis("batch", 2, 9, 9), Axis("column", 4, 0, 9)), 1),
])
def test_threads_share_panels_where_there_are_few_products(outer: tuple[Axis, ...], shared: int) -> None:
    assert size_of(product(8, 64, 100, *outer), "none", F32, AVX512, 4).shared == shared


def test_sizes_of_a_contraction_are_those_of_its_inner_axes() -> None:
    affine = Affine([Axis("row", 5, 9, 0), Axis("row", 3, 9, 0), Axis("column", 2, 0, 9), Axis("column", 20, 0, 1), Axis("sum", 6, 1, 9), Axis("sum", 7, 1, 9)])
    size = size_of(affine, "none", F32, AVX512, 1)
    assert (size.rows, size.outer_rows, size.columns, size.depth) == (3, 5, 20, 42)
    alone = size_of(Affine(affine.axes[2:]), "none", F32, AVX512, 1)
    assert (alone.rows, alone.outer_rows) == (1, 1)


def test_alternatives_vary_one_choice_each() -> None:
    affine = product(16, 1024, 300)
    chosen = choose(affine, "load", F32, AVX512)
    found = alternatives(affine, chosen, F32, AVX512)
    assert chosen not in found and len(found) == len(set(found))
    assert {s.prefetch for s in found if replace(s, prefetch=chosen.prefetch) == chosen} == {0, 1, 2, 4} - {chosen.prefetch}
    assert replace(chosen, rows_outer=True, prefetch=0) in found
    assert len({(s.rows, s.vectors, s.across) for s in found}) >= 5
    copied = choose(affine, "copy", F32, AVX512)
    assert {(s.prefetch, s.rows_outer) for s in alternatives(affine, copied, F32, AVX512) if (s.rows, s.vectors) == (copied.rows, copied.vectors)} <= {(0, False), (1, False)}
    blocked = choose(product(64, 64, 20_000), "load", F32, AVX512)
    assert blocked.sum_block and not any(s.rows_outer for s in alternatives(product(64, 64, 20_000), blocked, F32, AVX512))


COLUMN, ROW, SUM = Axis("column", 64, 0, 1, 1), Axis("row", 24, 32, 0, 0), Axis("sum", 32, 1, 64)


@pytest.mark.parametrize(("row", "column", "sums", "want"), [
    (ROW, COLUMN, [SUM], "none"),
    (ROW, replace(COLUMN, rhs=32), [replace(SUM, rhs=1)], "transpose"),
    (ROW, replace(COLUMN, rhs=64), [replace(SUM, rhs=2)], "gather"),
    (ROW, replace(COLUMN, rhs=6), [Axis("sum", 2, 1, 3), Axis("sum", 3, 2, 1)], "transpose"),
    (ROW, replace(COLUMN, rhs=8), [Axis("sum", 2, 1, 4), Axis("sum", 3, 2, 1)], "gather"),
    (ROW, COLUMN, [replace(SUM, rhs=2048)], "none"), (ROW, COLUMN, [replace(SUM, rhs=2049)], "copy"),
    (replace(ROW, size=23), COLUMN, [replace(SUM, rhs=2049)], "none"),
    (ROW, COLUMN, [replace(SUM, size=31, rhs=4000)], "none"),
    (ROW, COLUMN, [Axis("sum", 2, 1, 100_000), Axis("sum", 16, 1, 2048)], "none"),
    (ROW, COLUMN, [Axis("sum", 2, 1, 0), Axis("sum", 16, 1, -2049)], "copy"),
])
def test_the_right_operand_is_packed_where_reading_it_in_place_is_slow(row: Axis, column: Axis, sums: list[Axis], want: str) -> None:
    affine = Affine([row, column, *sums])
    assert packing(affine, False, F32, AVX512) == want
    assert packing(affine, True, F32, AVX512) == "load", "what is known before the first run is packed before it"


def test_the_vector_axis_is_contiguous_in_all_outputs() -> None:
    first, second, alone = Axis("column", 8, 0, 4, 1), Axis("column", 4, 0, 1, 2), Axis("column", 4, 0, 1)
    assert vector_axis(Affine([ROW, first, second]), [(32, 4, 1)]) is second
    assert vector_axis(Affine([ROW, first, second]), [(32, 1, 8)]) is first
    assert vector_axis(Affine([ROW, first, second]), [(32, 4, 1), (32, 1, 8)]) is None
    assert vector_axis(Affine([ROW, alone]), [(32, 4, 1)]) is None
    assert last(Affine([first, second, ROW]), first).axes == [second, ROW, first]


def test_axes_are_sorted_by_role_and_rows_by_memory() -> None:
    near, far = Axis("row", 4, 3, 0, 1), Axis("row", 5, -40, 0, 0)
    axes = [SUM, near, COLUMN, far, Axis("batch", 2, 9, 9)]
    assert [a.size for a in sorted_axes(Affine(axes)).axes] == [2, 5, 4, 64, 32]
