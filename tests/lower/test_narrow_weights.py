"""Fixed weights of every element type, put in order before the first run; arrays of no elements: sound programs, and the reference's results."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.backends.comparison import compare
from irscope.graph import DTYPES
from tests.lower.running import compiled, drawn, entry
from tests.lower.test_templates_contraction import product
from tests.lower.test_templates_convolution import NHWC, conv

NUMBERS = [d.name for d in DTYPES.values() if d.kind in ("int", "uint", "float") and d.name != "f8e8m0fnu"]
"""f8e8m0fnu has no zero to fill a panel with, and no sums worth testing."""

PACKED = {
    "panels": product(5, 7, 17, "mk", "kn"),
    "taps": conv("1,4,5,17", "3,3,1,17", "1,4,5,17", "size=3x3 pad=1_1x1_1", NHWC, ", feature_group_count=17"),
    "winograd": conv("1,6,7,16", "3,3,16,17", "1,6,7,17", "size=3x3 pad=1_1x1_1", NHWC),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_packed_weights(dtype: str, name: str) -> None:
    text = PACKED[name].replace("f32", dtype)
    module = load(text).module()
    arrays = drawn(module)
    program, executable = compiled(text, {1: arrays[1]})
    for got, expected in zip(executable(arrays[0], *arrays[2:]), flatten(evaluate(module.main(), arrays)), strict=True):
        assert compare(dtype, got, expected).fault is None
    assert name != "winograd" or not DTYPES[dtype].is_float or dtype == "f64" or "winograd" in {k.schedule.get("template") for k in program.kernels()}


def test_an_image_may_be_narrower_than_its_results() -> None:
    text = entry(f"""x = bf16[1,6,7,16] parameter(0)
      w = f32[3,3,16,17] parameter(1)
      ROOT c = f32[1,6,7,17] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels={NHWC}""")
    module = load(text).module()
    arrays = drawn(module)
    program, executable = compiled(text, {1: arrays[1]})
    assert "winograd" in {k.schedule.get("template") for k in program.kernels()}
    np.testing.assert_allclose(executable(arrays[0])[0], flatten(evaluate(module.main(), arrays))[0], rtol=1e-5, atol=1e-5)


EMPTY = {
    "reversed": """p = f32[0] parameter(0)
      x = f32[0] reverse(p), dimensions={0}
      y = f32[0] parameter(1)
      ROOT d = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}""",
    "reversed rows": """p = f32[3,0] parameter(0)
      x = f32[3,0] reverse(p), dimensions={0,1}
      y = f32[0,4] parameter(1)
      ROOT d = f32[3,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "sliced at the end": """p = f32[4,4] parameter(0)
      x = f32[0,0] slice(p), slice={[4:4],[4:4]}
      y = f32[0,3] parameter(1)
      ROOT d = f32[0,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "sums of nothing at the end": """p = f32[4,4] parameter(0)
      x = f32[0,3] slice(p), slice={[4:4],[1:4]}
      y = f32[0,3] parameter(1)
      ROOT d = f32[3,3] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}""",
    "a framed image of no channels": """x = f32[1,5,3,0] parameter(0)
      n = f32[1,5,3,0] exponential(x)
      w = f32[3,3,0,4] parameter(1)
      ROOT c = f32[1,5,3,4] convolution(n, w), window={size=3x3 pad=2_2x2_2 rhs_dilate=2x2}, dim_labels=b01f_01io->b01f""",
    "a framed image of no channels, channels first": """x = f32[1,0,5,3] parameter(0)
      n = f32[1,0,5,3] exponential(x)
      w = f32[4,0,3,3] parameter(1)
      ROOT c = f32[1,4,5,3] convolution(n, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01""",
    "a framed image of no rows": """x = f32[1,0,3,2] parameter(0)
      n = f32[1,0,3,2] exponential(x)
      w = f32[3,3,2,4] parameter(1)
      ROOT c = f32[1,2,3,4] convolution(n, w), window={size=3x3 pad=2_2x1_1}, dim_labels=b01f_01io->b01f""",
}


@pytest.mark.parametrize("name", EMPTY)
def test_arrays_of_no_elements_lie_somewhere(name: str) -> None:
    text = entry(EMPTY[name])
    module = load(text).module()
    arrays = drawn(module)
    _, executable = compiled(text)
    for got, expected in zip(executable(*arrays), flatten(evaluate(module.main(), arrays)), strict=True):
        assert np.array_equal(got, expected)
