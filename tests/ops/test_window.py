"""Windows of all shapes: reference and machine code agree, and both with windows that are reduced one by one."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.ops import TypeFault
from irscope.ops.attrs import Window
from irscope.ops.convolution import meeting_windows
from tests.ops.running import check, read, typed

ADD = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
MAX = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] maximum(a, b) }\n"
ODD = "f { a = f32[] parameter(0)\n b = f32[] parameter(1)\n t = f32[] multiply(a, a)\n ROOT r = f32[] subtract(t, b) }\n"


def spelled(window: Window) -> str:
    """The window as HLO writes it."""
    def by(values: Any) -> str:
        return "x".join(map(str, values))
    pads = by(f"{low}_{high}" for low, high in zip(window.pad_low, window.pad_high, strict=True))
    return (f"{{size={by(window.size)} stride={by(window.stride)} pad={pads} lhs_dilate={by(window.lhs_dilate)} "
            f"rhs_dilate={by(window.rhs_dilate)} rhs_reversal={by(int(r) for r in window.rhs_reversal)}}}")


@st.composite
def windows(draw: Any, rank: int, reversal: bool = False) -> tuple[tuple[int, ...], Window]:
    """A small shape and a window over it that leaves something."""
    shape = tuple(draw(st.integers(1, 6)) for _ in range(rank))
    columns = [(draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(-1, 3)), draw(st.integers(-1, 3)),
                draw(st.integers(1, 3)), draw(st.integers(1, 2)), reversal and draw(st.booleans())) for _ in range(rank)]
    return shape, Window(*(tuple(c[i] for c in columns) for i in range(7)))


def one_by_one(x: Any, init: float, window: Window, out_shape: tuple[int, ...], combine: Any) -> Any:
    """reduce-window as its definition says it."""
    out = np.empty(out_shape, x.dtype)
    for o in np.ndindex(*out_shape):
        total = x.dtype.type(init)
        for w in np.ndindex(*window.size):
            places = [i * s + j * d - p for i, s, j, d, p in zip(o, window.stride, w, window.rhs_dilate, window.pad_low, strict=True)]
            if all(p >= 0 and p % h == 0 and p // h < n for p, h, n in zip(places, window.lhs_dilate, x.shape, strict=True)):
                total = combine(total, x[tuple(p // h for p, h in zip(places, window.lhs_dilate, strict=True))])
        out[o] = total
    return out


@settings(max_examples=25, deadline=None)
@given(windows(2), st.sampled_from((ADD, MAX, ODD)), st.integers(0, 99))
def test_reduce_window(case: Any, body: str, seed: int) -> None:
    shape, window = case
    out = tuple(window.output_size(d, n) for d, n in enumerate(shape))
    if not prod(out):
        return
    x = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
    dims, outs = (",".join(map(str, s)) for s in (shape, out))
    found, = check(f"{body}ENTRY e {{ x = f32[{dims}] parameter(0)\n i = f32[] parameter(1)\n "
                   f"ROOT r = f32[{outs}] reduce-window(x, i), window={spelled(window)}, to_apply=f }}", x, np.float32(2))
    combine = {ADD: np.add, MAX: np.maximum, ODD: lambda a, b: a * a - b}[body]
    with np.errstate(all="ignore"):
        assert np.array_equal(found, one_by_one(x, 2, window, out, combine))


@pytest.mark.parametrize(("dtype", "opcode"), [("f32", "add"), ("bf16", "add"), ("f16", "multiply"), ("s8", "add"), ("pred", "or"),
                                               ("u32", "minimum"), ("f64", "maximum"), ("c64", "multiply")])
@pytest.mark.parametrize("pads", ["0_0x6_0", "0_0x0_6"])
def test_running_reductions(dtype: str, opcode: str, pads: str) -> None:
    import ml_dtypes
    rng = np.random.default_rng(3)
    kinds = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "s8": np.int8, "pred": np.bool_, "u32": np.uint32,
             "f64": np.float64, "c64": np.complex64}
    x = rng.integers(1 if opcode == "multiply" else -3, 4, (3, 7)).astype(kinds[dtype])
    init = np.asarray(1, kinds[dtype])
    found, = check(f"f {{ a = {dtype}[] parameter(0)\n b = {dtype}[] parameter(1)\n ROOT r = {dtype}[] {opcode}(a, b) }}\n"
                   f"ENTRY e {{ x = {dtype}[3,7] parameter(0)\n i = {dtype}[] parameter(1)\n "
                   f"ROOT r = {dtype}[3,7] reduce-window(x, i), window={{size=1x7 pad={pads}}}, to_apply=f }}", x, init)
    first = found[:, 0 if pads == "0_0x6_0" else -1]
    edge = x[:, 0 if pads == "0_0x6_0" else -1]
    ufunc = {"add": np.add, "multiply": np.multiply, "or": np.logical_or, "minimum": np.minimum, "maximum": np.maximum}[opcode]
    assert np.array_equal(first, ufunc(init, edge))


def test_sums_of_bf16_are_kept_in_f32() -> None:
    import ml_dtypes
    x = np.full((1, 512), 1, ml_dtypes.bfloat16)
    found, = check("f { a = bf16[] parameter(0)\n b = bf16[] parameter(1)\n ROOT r = bf16[] add(a, b) }\nENTRY e { x = bf16[1,512] parameter(0)\n"
                   "i = bf16[] constant(0)\n ROOT r = bf16[1,1] reduce-window(x, i), window={size=1x512}, to_apply=f }", x)
    assert found[0, 0] == 512


def test_a_window_of_two_arrays() -> None:
    rng = np.random.default_rng(0)
    x, places = rng.normal(size=9).astype(np.float32), np.arange(9, dtype=np.int32)
    values, chosen = check("""f { a = f32[] parameter(0)
        i = s32[] parameter(1)
        b = f32[] parameter(2)
        j = s32[] parameter(3)
        g = pred[] compare(a, b), direction=GE
        v = f32[] select(g, a, b)
        k = s32[] select(g, i, j)
        ROOT t = (f32[], s32[]) tuple(v, k) }
      ENTRY e { x = f32[9] parameter(0)
        y = s32[9] parameter(1)
        i = f32[] constant(-inf)
        j = s32[] constant(-1)
        ROOT r = (f32[4], s32[4]) reduce-window(x, y, i, j), window={size=3 stride=2}, to_apply=f }""", x, places)
    assert [int(i) for i in chosen] == [2 * o + int(np.argmax(x[2 * o:2 * o + 3])) for o in range(4)]
    assert np.array_equal(values, x[chosen])


def test_a_window_of_a_scalar() -> None:
    found, = check(ADD + "ENTRY e { x = f32[] parameter(0)\n i = f32[] constant(3)\n ROOT r = f32[] reduce-window(x, i), to_apply=f }",
                   np.float32(2))
    assert found == 5


SELECT = "s { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=GE }\n"


@settings(max_examples=15, deadline=None)
@given(windows(2), st.integers(0, 99))
def test_select_and_scatter(case: Any, seed: int) -> None:
    shape, window = case
    out = tuple(window.output_size(d, n) for d, n in enumerate(shape))
    if not prod(out):
        return
    rng = np.random.default_rng(seed)
    x, source = rng.integers(-3, 3, shape).astype(np.float32), rng.integers(-3, 4, out).astype(np.float32)
    dims, outs = (",".join(map(str, s)) for s in (shape, out))
    found, = check(f"{SELECT}{ADD}ENTRY e {{ x = f32[{dims}] parameter(0)\n y = f32[{outs}] parameter(1)\n i = f32[] constant(0.5)\n "
                   f"ROOT r = f32[{dims}] select-and-scatter(x, y, i), window={spelled(window)}, select=s, scatter=f }}", x, source)
    want = np.full(shape, 0.5, np.float32)
    for o in np.ndindex(*out):
        best = None
        for w in np.ndindex(*window.size):
            places = [i * s + j * d - p for i, s, j, d, p in zip(o, window.stride, w, window.rhs_dilate, window.pad_low, strict=True)]
            if all(p >= 0 and p % h == 0 and p // h < n for p, h, n in zip(places, window.lhs_dilate, shape, strict=True)):
                at = tuple(p // h for p, h in zip(places, window.lhs_dilate, strict=True))
                if best is None or not x[best] >= x[at]:
                    best = at
        if best is not None:
            want[best] += source[o]
    assert np.array_equal(found, want)


def test_scatter_takes_what_is_there_first() -> None:
    double = "g { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = f32[] add(b, b)\n ROOT r = f32[] add(a, c) }\n"
    x, source = np.array([1, 3, 2, 0], np.float32), np.array([1, 5], np.float32)
    found, = check(f"{SELECT}{double}ENTRY e {{ x = f32[4] parameter(0)\n y = f32[2] parameter(1)\n i = f32[] constant(7)\n "
                   "ROOT r = f32[4] select-and-scatter(x, y, i), window={size=2 stride=2}, select=s, scatter=g }", x, source)
    assert list(found) == [7, 9, 17, 7]


def test_windows_reach_as_far_as_positions_are_counted() -> None:
    far = 2 ** 61 - 12
    found, = check(ADD + f"ENTRY e {{ x = f32[2] parameter(0)\n i = f32[] constant(0)\n ROOT r = f32[2] reduce-window(x, i), "
                   f"window={{size=3 pad={far}_{far} rhs_dilate={far}}}, to_apply=f }}", np.array([3, 5], np.float32))
    assert list(found) == [3, 5]


@pytest.mark.parametrize(("text", "words"), [
    (ADD + "ENTRY e { x = f32[4] parameter(0)\n i = f32[] constant(0)\n ROOT r = f32[4] reduce-window(x, i), window={size=1x1}, to_apply=f }",
     "2 dimensions"),
    (ADD + "ENTRY e { x = f32[4] parameter(0)\n i = f32[] constant(0)\n ROOT r = f32[4] reduce-window(x, i), window={size=1 stride=0}, to_apply=f }",
     "stride 0"),
    (SELECT + ADD + "ENTRY e { x = f32[6] parameter(0)\n y = f32[2] parameter(1)\n i = f32[] constant(0)\n "
     "ROOT r = f32[6] select-and-scatter(x, y, i), window={size=2 stride=2}, select=s, scatter=f }", "f32[3]"),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message


def test_cost_counts_the_combinations() -> None:
    module = read(ADD + "ENTRY e { x = f32[4,6] parameter(0)\n i = f32[] constant(0)\n "
                  "ROOT r = f32[2,3] reduce-window(x, i), window={size=2x2 stride=2x2}, to_apply=f }")
    node = module.main().result()
    assert node.op.cost is not None and node.op.cost(node) == 6 * 3


@pytest.mark.parametrize("seed", range(40))
def test_the_elements_that_windows_meet_are_counted_as_if_one_walked_over_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shift, out, stride, hole, length = (int(rng.integers(a, b)) for a, b in ((-12, 30), (0, 9), (1, 7), (1, 7), (1, 8)))
    places = [o * stride + shift for o in range(out)]
    assert meeting_windows(shift, out, stride, hole, length) == sum(p >= 0 and p % hole == 0 and p // hole < length for p in places)


def test_the_cost_of_a_window_beyond_all_bounds_is_estimated_at_once() -> None:
    module = read("ENTRY e { x = f32[1,6,6,8] parameter(0)\n w = f32[3,3,8,16] parameter(1)\n "
                  "ROOT c = f32[1,6,6,16] convolution(x, w), window={size=2147483648x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }")
    node = module.main().result()
    assert node.op.cost is not None and node.op.cost(node) >= 0
