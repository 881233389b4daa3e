"""gather, scatter and dynamic slices, with indices in and out of bounds, held against their definitions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from irscope.ops import TypeFault
from tests.ops.running import check, read, typed
from tests.ops.test_contraction import spell

ADD = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
TAKE_NEW = "f { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\n"
SUBTRACT = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] subtract(b, a) }\n"
KEEP_OLD = "f { ROOT a = f32[] parameter(0)\n b = f32[] parameter(1) }\n"
ODD = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] constant(2)\n d = f32[] multiply(a, c)\n ROOT r = f32[] add(d, b) }\n"


@st.composite
def addressing(draw: Any) -> dict[str, Any]:
    """An operand, indices, and how the one addresses the other; window positions are those of gather's result."""
    rank = draw(st.integers(1, 3))
    operand = [draw(st.integers(1, 4)) for _ in range(rank)]
    roles = [draw(st.sampled_from(("window", "dropped", "batch"))) for _ in range(rank)]
    outer = [draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2)))]
    batched = [d for d, role in enumerate(roles) if role == "batch"][:1]
    roles = ["dropped" if role == "batch" and d not in batched else role for d, role in enumerate(roles)]
    partner: list[int] = []
    for d in batched:
        outer.append(operand[d])
        partner.append(len(outer) - 1)
    free = [d for d in range(rank) if d not in batched]
    count = draw(st.integers(0, len(free))) if free else 0
    to_operand = draw(st.permutations(free))[:count] if free else []
    kept = [d for d, role in enumerate(roles) if role == "window"]
    sizes = [draw(st.integers(1, operand[d])) if d in kept else 1 for d in range(rank)]
    vector = draw(st.integers(0, len(outer)))
    scalar_indices = count == 1 and vector == len(outer) and draw(st.booleans())
    indices = list(outer) if scalar_indices else [*outer[:vector], count, *outer[vector:]]
    moved = [p if p < vector or scalar_indices else p + 1 for p in partner]
    windows = sorted(draw(st.permutations(range(len(outer) + len(kept))))[:len(kept)])
    return {"operand": operand, "outer": outer, "indices": indices, "vector": vector, "to_operand": list(to_operand), "kept": kept, "sizes": sizes,
            "dropped": [d for d, role in enumerate(roles) if role == "dropped"], "batched": batched, "partner": moved, "windows": windows}


def components(case: dict[str, Any], indices: Any, place: tuple[int, ...]) -> list[int]:
    """The index vector at a place of the outer dimensions."""
    expanded = indices if indices.ndim > len(case["outer"]) else indices[..., None]
    return [int(expanded[(*place[:case["vector"]], c, *place[case["vector"]:])]) for c in range(len(case["to_operand"]))]


def batch_start(case: dict[str, Any], place: tuple[int, ...]) -> list[int]:
    """Where the batching dimensions put an index vector; 0 elsewhere."""
    start = [0] * len(case["operand"])
    for d, p in zip(case["batched"], case["partner"], strict=True):
        inner = p if p < case["vector"] or len(case["indices"]) == len(case["outer"]) else p - 1
        start[d] = place[inner]
    return start


def joined(case: dict[str, Any], place: tuple[int, ...], inside: tuple[int, ...]) -> tuple[int, ...]:
    """An index into gather's result, or scatter's updates."""
    outer, inner = iter(place), iter(inside)
    return tuple(next(inner) if d in case["windows"] else next(outer) for d in range(len(place) + len(inside)))


def shape_of(case: dict[str, Any]) -> tuple[int, ...]:
    """The shape of gather's result, or scatter's updates."""
    return joined(case, tuple(case["outer"]), tuple(case["sizes"][d] for d in case["kept"]))


def full(case: dict[str, Any], start: list[int], inside: tuple[int, ...]) -> tuple[int, ...]:
    """The place in the operand of a place inside a window."""
    at = list(start)
    for d, i in zip(case["kept"], inside, strict=True):
        at[d] += i
    return tuple(at)


@settings(max_examples=25, deadline=None)
@given(addressing(), st.integers(0, 99), st.sampled_from(("s32", "u32", "s64", "u64", "s8", "u8")))
def test_gather(case: dict[str, Any], seed: int, index_type: str) -> None:
    rng = np.random.default_rng(seed)
    operand = rng.normal(size=case["operand"]).astype(np.float32)
    kinds = {"s": np.int64, "u": np.uint64}
    indices = rng.integers(-2 if index_type[0] == "s" else 0, 6, case["indices"]).astype(kinds[index_type[0]]).astype(
        {"s32": np.int32, "u32": np.uint32, "s64": np.int64, "u64": np.uint64, "s8": np.int8, "u8": np.uint8}[index_type])
    if index_type == "u64" and indices.size:
        indices.reshape(-1)[0] = 2 ** 64 - 1
    want = np.zeros(shape_of(case), np.float32)
    for place in np.ndindex(*case["outer"]):
        start = batch_start(case, place)
        for d, i in zip(case["to_operand"], components(case, indices, place), strict=True):
            start[d] += min(max(i, 0), case["operand"][d] - case["sizes"][d])
        for inside in np.ndindex(*(case["sizes"][d] for d in case["kept"])):
            want[joined(case, place, inside)] = operand[full(case, start, inside)]
    found, = check(f"ENTRY e {{ x = f32[{spell(case['operand'])}] parameter(0)\n i = {index_type}[{spell(case['indices'])}] parameter(1)\n "
                   f"ROOT r = f32[{spell(want.shape)}] gather(x, i), offset_dims={{{spell(case['windows'])}}}, "
                   f"collapsed_slice_dims={{{spell(case['dropped'])}}}, start_index_map={{{spell(case['to_operand'])}}}, "
                   f"operand_batching_dims={{{spell(case['batched'])}}}, start_indices_batching_dims={{{spell(case['partner'])}}}, "
                   f"index_vector_dim={case['vector']}, slice_sizes={{{spell(case['sizes'])}}} }}", operand, indices)
    assert np.array_equal(found, want)


OVERLAPPING: dict[str, Any] = {  # the window dimensions of the updates come first, and windows of several index vectors meet
    "operand": [3, 2, 3], "outer": [2, 2, 3], "indices": [1, 2, 2, 3], "vector": 0, "to_operand": [0], "kept": [0, 1], "sizes": [2, 1, 1],
    "dropped": [], "batched": [2], "partner": [3], "windows": [0, 1]}


@settings(max_examples=40, deadline=None)
@given(addressing(), st.integers(0, 99), st.sampled_from((ADD, TAKE_NEW, SUBTRACT, KEEP_OLD, ODD)))
@example(OVERLAPPING, 0, TAKE_NEW)
@example(OVERLAPPING, 1, SUBTRACT)
@example(OVERLAPPING, 2, KEEP_OLD)
@example(OVERLAPPING, 3, ODD)
def test_scatter(case: dict[str, Any], seed: int, body: str) -> None:
    rng = np.random.default_rng(seed)
    operand = rng.integers(-3, 4, case["operand"]).astype(np.float32)
    indices = rng.integers(-1, 4, case["indices"]).astype(np.int32)
    updates = rng.integers(-3, 4, shape_of(case)).astype(np.float32)
    want = operand.copy()
    combine: Any = {
        ADD: lambda a, b: a + b, TAKE_NEW: lambda a, b: b, SUBTRACT: lambda a, b: b - a, KEEP_OLD: lambda a, b: a, ODD: lambda a, b: 2 * a + b}[body]
    for place in np.ndindex(*case["outer"]):
        start = batch_start(case, place)
        fits = True
        for d, i in zip(case["to_operand"], components(case, indices, place), strict=True):
            start[d] += i
            fits &= 0 <= i <= case["operand"][d] - case["sizes"][d]
        for inside in np.ndindex(*(case["sizes"][d] for d in case["kept"])) if fits else ():
            at = full(case, start, inside)
            want[at] = combine(want[at], updates[joined(case, place, inside)])
    found, = check(f"{body}ENTRY e {{ x = f32[{spell(case['operand'])}] parameter(0)\n i = s32[{spell(case['indices'])}] parameter(1)\n "
                   f"u = f32[{spell(updates.shape)}] parameter(2)\n ROOT r = f32[{spell(case['operand'])}] scatter(x, i, u), "
                   f"update_window_dims={{{spell(case['windows'])}}}, inserted_window_dims={{{spell(case['dropped'])}}}, "
                   f"scatter_dims_to_operand_dims={{{spell(case['to_operand'])}}}, input_batching_dims={{{spell(case['batched'])}}}, "
                   f"scatter_indices_batching_dims={{{spell(case['partner'])}}}, index_vector_dim={case['vector']}, to_apply=f }}",
                   operand, indices, updates)
    assert np.array_equal(found, want)


def test_scattered_windows_that_overlap_are_written_vector_by_vector() -> None:
    found, = check(TAKE_NEW + "ENTRY e { x = f32[6] parameter(0)\n i = s32[3,1] parameter(1)\n u = f32[3,3] parameter(2)\n "
                   "ROOT r = f32[6] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
                   "index_vector_dim=1, to_apply=f }",
                   np.zeros(6, np.float32), np.array([[0], [1], [2]], np.int32), np.arange(1, 10, dtype=np.float32).reshape(3, 3))
    assert found.tolist() == [1, 2, 3, 6, 9, 0]  # XLA's, jaxlib 0.10.2


@pytest.mark.parametrize(("indices", "updates", "windows", "inserted", "vector"), [
    ((4, 0), (4,), "", "0,1", 1), ((0, 4), (4,), "", "0,1", 0), ((0,), (), "", "0,1", 0), ((4, 0), (4, 1, 2), "1,2", "", 1), ((0,), (2, 3), "0,1", "", 0),
])
@pytest.mark.parametrize(("body", "combine"), [(ADD, lambda a, b: a + b), (SUBTRACT, lambda a, b: b - a), (ODD, lambda a, b: 2 * a + b)])
def test_updates_without_components_all_meet_the_first_place(indices: tuple[int, ...], updates: tuple[int, ...], windows: str, inserted: str, vector: int,
                                                            body: str, combine: Any) -> None:
    given = np.arange(1, 1 + np.prod(updates), dtype=np.float32).reshape(updates)
    found, = check(f"{body}ENTRY e {{ x = f32[2,3] parameter(0)\n i = s32[{spell(indices)}] parameter(1)\n u = f32[{spell(updates)}] parameter(2)\n "
                   f"ROOT r = f32[2,3] scatter(x, i, u), update_window_dims={{{windows}}}, inserted_window_dims={{{inserted}}}, "
                   f"scatter_dims_to_operand_dims={{}}, index_vector_dim={vector}, to_apply=f }}",
                   np.zeros((2, 3), np.float32), np.zeros(indices, np.int32), given)
    wanted = np.zeros((2, 3), np.float32)
    for update in given if len(indices) == 2 else [given]:
        window = np.reshape(update, (1, 1) if inserted else update.shape)
        here = wanted[:window.shape[0], :window.shape[1]]
        here[...] = combine(here, window)
    assert np.array_equal(found, wanted)


def test_gather_from_nothing() -> None:
    found, = check("ENTRY e { x = f32[0,2] parameter(0)\n i = s32[3] parameter(1)\n ROOT r = f32[3,2] gather(x, i), offset_dims={1}, "
                   "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={0,2} }",
                   np.zeros((0, 2), np.float32), np.zeros(3, np.int32))
    assert not found.any()


def test_scatter_into_an_operand_in_another_order_of_memory() -> None:
    x = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    text = TAKE_NEW + """ENTRY e { t = f32[3,2] parameter(0)
        i = s32[1,1] parameter(1)
        u = f32[1,2] parameter(2)
        ROOT r = f32[3,2] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
          index_vector_dim=1, to_apply=f }"""
    found, = check(text, x, np.array([[1]], np.int32), np.full((1, 2), 9, np.float32))
    assert found.tolist() == [[0, 1], [9, 9], [4, 5]]


def test_scatter_of_two_arrays() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=5).astype(np.float32), rng.integers(0, 9, 5).astype(np.int32)
    indices = np.array([3, 1, 3, 9, 0], np.int32)
    u, v = rng.normal(size=5).astype(np.float32), rng.integers(0, 9, 5).astype(np.int32)
    a, b = check("""f { a = f32[] parameter(0)
        i = s32[] parameter(1)
        b = f32[] parameter(2)
        j = s32[] parameter(3)
        s = f32[] maximum(a, b)
        t = s32[] subtract(j, i)
        ROOT r = (f32[], s32[]) tuple(s, t) }
      ENTRY e { x = f32[5] parameter(0)
        y = s32[5] parameter(1)
        i = s32[5] parameter(2)
        u = f32[5] parameter(3)
        v = s32[5] parameter(4)
        ROOT r = (f32[5], s32[5]) scatter(x, y, i, u, v), update_window_dims={}, inserted_window_dims={0},
          scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }""", x, y, indices, u, v)
    want_a, want_b = x.copy(), y.copy()
    for i, at in enumerate(indices):
        if at < 5:
            want_a[at], want_b[at] = max(want_a[at], u[i]), v[i] - want_b[at]
    assert np.array_equal(a, want_a) and np.array_equal(b, want_b)


@pytest.mark.parametrize(("dtype", "starts"), [("s32", (-3, 1)), ("s32", (9, 0)), ("u64", (2 ** 64 - 1, 2)), ("u8", (2, 255)), ("s64", (1, -2 ** 40))])
@pytest.mark.parametrize("sizes", [(2, 3), (4, 5), (1, 1), (0, 2)])
def test_dynamic_slices(dtype: str, starts: tuple[int, int], sizes: tuple[int, int]) -> None:
    kind = {"s32": np.int32, "u64": np.uint64, "u8": np.uint8, "s64": np.int64}[dtype]
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    update = -np.ones(sizes, np.float32)
    i, j = (np.asarray(s, kind) for s in starts)
    a, b = (min(max(int(s), 0), n - m) for s, n, m in zip(starts, x.shape, sizes, strict=True))
    head = f"ENTRY e {{ x = f32[4,5] parameter(0)\n i = {dtype}[] parameter(1)\n j = {dtype}[] parameter(2)\n "
    found, = check(f"{head} ROOT r = f32[{spell(sizes)}] dynamic-slice(x, i, j), dynamic_slice_sizes={{{spell(sizes)}}} }}", x, i, j)
    assert np.array_equal(found, x[a:a + sizes[0], b:b + sizes[1]])
    found, = check(f"{head} u = f32[{spell(sizes)}] parameter(3)\n ROOT r = f32[4,5] dynamic-update-slice(x, u, i, j) }}", x, i, j, update)
    want = x.copy()
    want[a:a + sizes[0], b:b + sizes[1]] = update
    assert np.array_equal(found, want)


def test_old_dynamic_slices_take_a_vector_of_starts() -> None:
    x, starts = np.arange(20, dtype=np.float32).reshape(4, 5), np.array([1, 7], np.int32)
    found, = check("ENTRY e { x = f32[4,5] parameter(0)\n i = s32[2] parameter(1)\n "
                   "ROOT r = f32[2,2] dynamic-slice(x, i), dynamic_slice_sizes={2,2} }", x, starts)
    assert np.array_equal(found, x[1:3, 3:5])


@pytest.mark.parametrize("indices", [[[0, 1], [1, 2], [0, 3]], [[2, 0], [2, 1], [1, 2]], [[-1, 0], [0, 4], [2 ** 31 - 1, 2]]])
def test_scatter_counts_an_index_of_a_batching_dimension_from_the_batch(indices: list[list[int]]) -> None:
    x, u = np.arange(12, dtype=np.float32).reshape(3, 4), np.array([10, 20, 30], np.float32)
    found, = check(ADD + "ENTRY e { x = f32[3,4] parameter(0)\n i = s32[3,2] parameter(1)\n u = f32[3] parameter(2)\n "
                   "ROOT r = f32[3,4] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={0,1}, "
                   "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=f }",
                   x, np.array(indices, np.int32), u)
    want = x.copy()
    for batch, (row, column) in enumerate(indices):
        if 0 <= batch + row < 3 and 0 <= column < 4:
            want[batch + row, column] += u[batch]
    assert np.array_equal(found, want)


def test_gather_of_dropped_slices_without_elements_gives_zeros() -> None:
    x, i = np.ones((3, 4), np.float32), np.array([[0], [3], [9]], np.int32)
    found, = check("ENTRY e { x = f32[3,4] parameter(0)\n i = s32[3,1] parameter(1)\n ROOT r = f32[3,4] gather(x, i), offset_dims={1}, "
                   "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={0,4} }", x, i)
    assert not found.any()
    found, = check("ENTRY e { x = f32[3,4] parameter(0)\n i = s32[3,1] parameter(1)\n ROOT r = f32[3] gather(x, i), offset_dims={}, "
                   "collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
                   "index_vector_dim=1, slice_sizes={0,0} }", x, i)
    assert not found.any()


GATHER = ("ENTRY e {{ x = f32[4,5] parameter(0)\n i = s32[3,2] parameter(1)\n ROOT r = f32[3] gather(x, i), offset_dims={{{0}}}, "
          "collapsed_slice_dims={{{1}}}, start_index_map={{{2}}}, index_vector_dim={3}, slice_sizes={{{4}}} }}")


@pytest.mark.parametrize(("text", "words"), [
    (GATHER.format("", "0,1", "0,1", 3, "1,1"), "index_vector_dim=3"),
    (GATHER.format("", "0,1", "0", 1, "1,1"), "1 components"),
    (GATHER.format("", "0,1", "0,2", 1, "1,1"), "out of range"),
    (GATHER.format("", "0,1", "0,1", 1, "1,2"), "must be 1"),
    (GATHER.format("", "0,1", "0,1", 1, "1,9"), "does not fit"),
    (GATHER.format("", "1,0", "0,1", 1, "1,1"), "increasing"),
    (ADD + "ENTRY e { x = f32[4] parameter(0)\n i = s32[3,1] parameter(1)\n u = f32[2] parameter(2)\n ROOT r = f32[4] scatter(x, i, u), "
     "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }", "2 and 3"),
    ("ENTRY e { x = f32[4] parameter(0)\n i = f32[] parameter(1)\n ROOT r = f32[2] dynamic-slice(x, i), dynamic_slice_sizes={2} }", "integer"),
    ("ENTRY e { x = f32[4] parameter(0)\n i = s32[] parameter(1)\n ROOT r = f32[5] dynamic-slice(x, i), dynamic_slice_sizes={5} }", "does not fit"),
    ("ENTRY e { x = f32[4] parameter(0)\n u = f32[5] parameter(1)\n i = s32[] parameter(2)\n ROOT r = f32[4] dynamic-update-slice(x, u, i) }", "exceeds"),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message
