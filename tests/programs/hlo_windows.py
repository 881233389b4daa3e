"""HLO steps: windows that slide, and what selects from them."""
from __future__ import annotations

from dataclasses import replace
from math import prod

from tests.programs.hlo import STEPS, Hlo
from tests.programs.hlo_contractions import Window, window_text
from tests.programs.maker import Misfit, arithmetic, exact, keep, ordered, within
from tests.programs.numbers import is_complex, is_float, summed


@STEPS(2, "window")
def reduce_window(maker: Hlo) -> None:
    value = maker.pick(lambda v: bool(v.shape) and arithmetic(v) and exact(v) and not v.dtype.startswith("f8") and 0 not in v.shape)
    draws = maker.draws
    windows = [Window(draws.one((1, 2, 3)), draws.one((1, 1, 2)), draws.one((0, 0, 1, 2)), draws.one((0, 0, 1)), draws.one((1, 1, 1, 2)),
                      draws.one((1, 1, 2))) for _ in value.shape]
    shape = tuple(w.made(n) for w, n in zip(windows, value.shape, strict=True))
    if 0 in shape or prod(w.size for w in windows) > 40:
        raise Misfit
    op = "add" if is_complex(value.dtype) else draws.one(("add", "maximum", "minimum"))
    made = keep(summed(value, prod(w.size for w in windows) + 1)) if op == "add" else replace(value, low=min(0, value.low), high=max(0, value.high))
    init = maker.constant(value.dtype, 0)
    maker.add(within(made, shape=shape), f"reduce-window({value.name}, {init.name}), {window_text(windows)}, to_apply={maker.reducer(value.dtype, op)}")


@STEPS(1, "window")
def running_sum(maker: Hlo) -> None:
    """A cumulative sum or maximum: the window is as long as the axis."""
    value = maker.pick(lambda v: bool(v.shape) and arithmetic(v) and ordered(v) and exact(v) and not v.dtype.startswith("f8") and 0 not in v.shape)
    axis = maker.draws.between(0, len(value.shape) - 1)
    n = value.shape[axis]
    backwards = maker.draws.chance(0.3)
    windows = [Window(n, 1, 0 if backwards else n - 1, n - 1 if backwards else 0) if d == axis else Window(1) for d in range(len(value.shape))]
    op = maker.draws.one(("add", "maximum"))
    made = keep(summed(value, n + 1)) if op == "add" else replace(value, low=min(0, value.low), high=max(0, value.high))
    init = maker.constant(value.dtype, 0)
    maker.add(made, f"reduce-window({value.name}, {init.name}), {window_text(windows)}, to_apply={maker.reducer(value.dtype, op)}")


@STEPS(0.8, "window", "index")
def select_and_scatter(maker: Hlo) -> None:
    """The gradient of a maximum over windows, which may overlap."""
    value = maker.pick(lambda v: bool(v.shape) and exact(v) and v.dtype in ("f32", "f64", "s32") and 0 not in v.shape)
    draws = maker.draws
    windows = [Window(draws.one((1, 2, 3)), draws.one((1, 2)), draws.one((0, 0, 1)), draws.one((0, 0, 1))) for _ in value.shape]
    shape = tuple(w.made(n) for w, n in zip(windows, value.shape, strict=True))
    # Every window holds an element that is no padding: what a window of padding alone selects is nothing that engines agree on.
    if maker.palette.special or 0 in shape or prod(w.size for w in windows) > 40 or any(w.low >= w.size or w.high >= w.size for w in windows):
        raise Misfit
    source = maker.alike(replace(value, shape=shape))
    init = maker.constant(value.dtype, 0)
    t = value.dtype
    select = maker.helper(f"{{\n  a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT r = pred[] compare(a, b), direction={draws.one(('GE', 'GT'))}\n}}")
    made = keep(summed(source, prod(w.size for w in windows) + 1))
    maker.add(replace(made, shape=value.shape),
              f"select-and-scatter({value.name}, {source.name}, {init.name}), {window_text(windows)}, select={select}, "
              f"scatter={maker.reducer(t, 'add')}")
    assert is_float(t) or t == "s32"
