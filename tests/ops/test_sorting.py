"""sort and topk: stable, with any comparator, specials included."""
from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ops import TypeFault
from tests.ops.running import check, read, typed
from tests.ops.test_contraction import spell


def comparator(dtype: str, direction: str = "LT", order: str = "") -> str:
    """One that looks at the first array alone."""
    more = f", type={order}" if order else ""
    return f"c {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = pred[] compare(a, b), direction={direction}{more} }}\n"


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=3), st.data(), st.integers(0, 99), st.booleans())
def test_sort_along_any_dimension(shape: list[int], data: st.DataObject, seed: int, descending: bool) -> None:
    d = data.draw(st.integers(0, len(shape) - 1))
    x = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.int32)
    found, = check(f"{comparator('s32', 'GT' if descending else 'LT')}ENTRY e {{ x = s32[{spell(shape)}] parameter(0)\n "
                   f"ROOT r = s32[{spell(shape)}] sort(x), dimensions={{{d}}}, is_stable=true, to_apply=c }}", x)
    assert np.array_equal(found, -np.sort(-x, axis=d) if descending else np.sort(x, axis=d))


@pytest.mark.parametrize("length", [1, 2, 3, 17, 64, 100, 1000])
def test_what_moves_along_keeps_its_order_among_equals(length: int) -> None:
    x = np.random.default_rng(length).integers(0, 5, length).astype(np.float32)
    keys, places = check(
        "c { a = f32[] parameter(0)\n b = f32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n "
        "ROOT r = pred[] compare(a, b), direction=LT }\n"
        f"ENTRY e {{ x = f32[{length}] parameter(0)\n i = s32[{length}] parameter(1)\n "
        f"ROOT r = (f32[{length}], s32[{length}]) sort(x, i), dimensions={{0}}, is_stable=true, to_apply=c }}", x, np.arange(length, dtype=np.int32),
        interpret=length < 50)
    order = np.argsort(x, kind="stable")
    assert np.array_equal(places, order) and np.array_equal(keys, x[order])


def test_a_comparator_of_several_keys() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 4, (2, 30)).astype(np.int32), rng.integers(0, 4, (2, 30)).astype(np.int32)
    a, b = check("""c { a = s32[] parameter(0)
        b = s32[] parameter(1)
        u = s32[] parameter(2)
        v = s32[] parameter(3)
        l = pred[] compare(a, b), direction=LT
        e = pred[] compare(a, b), direction=EQ
        m = pred[] compare(u, v), direction=GT
        n = pred[] and(e, m)
        ROOT r = pred[] or(l, n) }
      ENTRY e { x = s32[2,30] parameter(0)
        y = s32[2,30] parameter(1)
        ROOT r = (s32[2,30], s32[2,30]) sort(x, y), dimensions={1}, is_stable=true, to_apply=c }""", x, y)
    for row in range(2):
        order = np.lexsort((-y[row], x[row]))
        assert np.array_equal(a[row], x[row][order]) and np.array_equal(b[row], y[row][order])


def test_a_comparator_that_contradicts_itself_loses_nothing() -> None:
    from tests.ops.running import compiled, reference
    x = np.array([3, np.nan, 1, np.nan, 2, -1, np.nan, 0], np.float32)
    module = read(comparator("f32") + "ENTRY e { x = f32[8] parameter(0)\n ROOT r = f32[8] sort(x), dimensions={0}, to_apply=c }")
    for found, in (reference(module, x), compiled(module, x)):
        assert np.array_equal(np.sort(found), np.sort(x), equal_nan=True)


@pytest.mark.parametrize(("dtype", "kind"), [("f32", np.float32), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64), ("u8", np.uint8), ("pred", np.bool_)])
def test_sort_of_element_types(dtype: str, kind: Any) -> None:
    x = np.random.default_rng(1).integers(0, 50, 40).astype(kind)
    found, = check(f"{comparator(dtype)}ENTRY e {{ x = {dtype}[40] parameter(0)\n ROOT r = {dtype}[40] sort(x), dimensions={{0}}, to_apply=c }}", x)
    assert np.array_equal(found, np.sort(x))


@pytest.mark.parametrize(("shape", "k"), [((9,), 3), ((3, 40), 5), ((2, 3, 7), 7), ((200,), 100), ((5,), 0), ((1, 500), 8)])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(shape: tuple[int, ...], k: int, largest: bool) -> None:
    x = np.random.default_rng(k).integers(-20, 20, shape).astype(np.float32)
    out = (*shape[:-1], k)
    values, places = check(f"ENTRY e {{ x = f32[{spell(shape)}] parameter(0)\n ROOT r = (f32[{spell(out)}], s32[{spell(out)}]) topk(x), k={k}, "
                           f"largest={str(largest).lower()} }}", x, interpret=x.size < 100)
    order = np.argsort(-x if largest else x, axis=-1, kind="stable")[..., :k]
    assert np.array_equal(places, order) and np.array_equal(values, np.take_along_axis(x, order, -1))


def test_topk_of_complex_numbers_is_refused() -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read("ENTRY e { x = c64[4] parameter(0)\n ROOT r = (c64[2], s32[2]) topk(x), k=2 }"))
    assert "c64[4]" in fault.value.message


@pytest.mark.parametrize("k", [4, 8])
def test_topk_has_a_place_for_everything(k: int) -> None:
    x = np.array([3, np.nan, -np.inf, 0.0, -0.0, np.inf, 3, -5] + [-9] * 24, np.float32)
    values, places = check(f"ENTRY e {{ x = f32[32] parameter(0)\n ROOT r = (f32[{k}], s32[{k}]) topk(x), k={k}, largest=true }}", x)
    assert list(places) == [1, 5, 0, 6, 3, 4, 7, 8][:k]
    assert np.isnan(values[0]) and values[1] == np.inf


@pytest.mark.parametrize(("dtype", "kind"), [("s32", np.int32), ("u8", np.uint8), ("bf16", ml_dtypes.bfloat16), ("f64", np.float64), ("s64", np.int64)])
def test_topk_of_element_types(dtype: str, kind: Any) -> None:
    x = np.random.default_rng(2).integers(0, 60, 50).astype(kind)
    values, _ = check(f"ENTRY e {{ x = {dtype}[50] parameter(0)\n ROOT r = ({dtype}[6], s32[6]) topk(x), k=6, largest=true }}", x)
    assert np.array_equal(values, -np.sort(-x.astype(np.int64))[:6].astype(kind))


@pytest.mark.parametrize(("text", "words"), [
    (comparator("f32") + "ENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] sort(x), dimensions={1}, to_apply=c }", "out of range"),
    (comparator("s32") + "ENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] sort(x), dimensions={0}, to_apply=c }", "f32[]"),
    (comparator("f32") + "ENTRY e { x = f32[4] parameter(0)\n y = f32[5] parameter(1)\n "
     "ROOT r = (f32[4], f32[5]) sort(x, y), dimensions={0}, to_apply=c }", "equal dimensions"),
    ("ENTRY e { x = f32[4] parameter(0)\n ROOT r = (f32[5], s32[5]) topk(x), k=5, largest=true }", "k=5"),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message
