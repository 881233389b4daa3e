"""Reductions flush denormal elements and init values to zero, as all arithmetic of XLA's CPU backend does, and warn of nothing."""
from __future__ import annotations

import warnings

import numpy as np
import pytest

import irscope
from irscope.api import RunOptions

FORMS = {
    "reduce": "f32[] reduce(x, z), dimensions={0}, to_apply=f",
    "windows": "f32[1] reduce-window(x, z), window={size=2}, to_apply=f",
    "running": "f32[2] reduce-window(x, z), window={size=2 pad=1_0}, to_apply=f",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("opcode", "init", "x", "last"), [
    ("multiply", "-inf", [1e-40, 2], np.nan), ("multiply", "1e-40", [3e38, 1], 0), ("add", "inf", [-np.inf, 1], np.nan),
    ("add", "1e-40", [-1e-40, 1e-40], 0), ("maximum", "-1", [1e-40, -2], 0)])
def test_reductions(form: str, opcode: str, init: str, x: list[float], last: float) -> None:
    text = (f"f {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] {opcode}(a, b) }}\n"
            f"ENTRY m {{ x = f32[2] parameter(0)\n z = f32[] constant({init})\n ROOT r = {FORMS[form]} }}")
    arrays = {"x": np.array(x, np.float32)}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = irscope.api.run(text, RunOptions(engine="reference"), inputs=arrays).outputs[0].reshape(-1)[-1]
    found = irscope.api.run(text, RunOptions(no_cache=True, threads=1), inputs=arrays).outputs[0].reshape(-1)[-1]
    for value in (expected, found):
        assert np.isnan(value) if np.isnan(last) else value == last
