"""erf and tanh are 1 exactly where their value, rounded, is: ``(1 - f(x)) * inf`` is NaN in compiled code where it is in the reference."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.api.options import RunOptions
from irscope.lazy import Array


def floats(low: float, high: float) -> Array:
    """All f32 between two, both included."""
    begin, end = (int(np.float32(bound).view(np.int32)) for bound in (low, high))
    return np.arange(begin, end + 1, dtype=np.int32).view(np.float32)


def compiled(name: str, x: Array, **options: Any) -> Array:
    text = f"ENTRY e {{\n  p = f32[{x.size}] parameter(0)\n  ROOT r = f32[{x.size}] {name}(p)\n}}\n"
    out: Array = irscope.run(text, RunOptions(threads=1, **options), inputs={"p": x}).outputs[0]
    return out


@pytest.mark.parametrize("cpu", ["", "v2"])
@pytest.mark.parametrize(("name", "function", "low", "high"), [("erf", math.erf, 3.90, 3.94), ("tanh", math.tanh, 9.0, 9.02), ("tanh", math.tanh, 19.99, 20.0)])
def test_it_is_one_exactly_where_the_rounded_value_is(name: str, function: Callable[[float], float], low: float, high: float, cpu: str) -> None:
    x = floats(low, high)
    wanted = np.array([function(value) for value in x.tolist()]).astype(np.float32)
    got = compiled(name, x, cpu=cpu)
    assert np.array_equal(got == 1, wanted == 1)
    assert np.array_equal(compiled(name, -x, cpu=cpu), -got)


@pytest.mark.parametrize("cpu", ["", "v2"])
@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_it_is_never_beyond_one(name: str, cpu: str) -> None:
    x = np.concatenate([floats(3.5, 4.1)[::3], floats(7.5, 9.1)[::5], np.geomspace(10, 3e38, 1000, dtype=np.float32)])
    got = compiled(name, x, cpu=cpu)
    assert (got > 0.99).all() and (got <= 1).all()


@pytest.mark.parametrize("name", ["erf", "tanh"])
def test_special_values(name: str) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -1e-40, 3e38], np.float32)
    got = compiled(name, x, precision="default")
    assert np.isnan(got[0]) and got[[1, 2, 7]].tolist() == [1, -1, 1] and np.signbit(got[3:7]).tolist() == [False, True, False, True]


def test_the_end_of_gelu_times_infinity_is_that_of_the_reference() -> None:
    """Found by the fuzzer: -inf in compiled code, NaN in the reference."""
    text = """ENTRY e {
  p = f32[2] parameter(0)
  one = f32[] constant(1)
  ones = f32[2] broadcast(one), dimensions={}
  inf = f32[] constant(-inf)
  infs = f32[2] broadcast(inf), dimensions={}
  f = f32[2] erf(p)
  g = f32[2] add(f, ones)
  ROOT r = f32[2] multiply(g, infs)
}
"""
    result = irscope.run(text, RunOptions(threads=1, check=True), inputs={"p": np.array([-3.9279068, -3.9307864], np.float32)})
    assert result.ok and np.isnan(result.outputs[0]).all()
