"""What narrow floats on the way leave of a result's digits."""
from __future__ import annotations

import pytest

from irscope.analysis.rounding import coarsest_types, step
from irscope.backends.comparison import compare_all, tolerance
from irscope.backends.model import compile_module
from irscope.formats.hlo import read
from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import BF16, C64, C128, F16, F32, F64
from irscope.lower.options import Options
from irscope.source import SourceText
from tests.lower.whole import ADD, entry, inputs_of, module_of, reference

TEXT = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  h = f16[4] parameter(1)
  n = f16[4] convert(x)
  w = f32[4] convert(n)
  g = f32[4] convert(h)
  s = f32[4] add(x, g)
  i = s32[4] convert(x)
  ROOT r = (f32[4], f32[4], s32[4]) tuple(w, s, i)
}
"""


def test_a_result_is_as_coarse_as_the_narrowest_type_on_its_way() -> None:
    assert coarsest_types(read(SourceText("t", TEXT)).module()) == [F16, F32, None]


@pytest.mark.parametrize(("dtype", "expected"), [
    ("f16", 2.0 ** -10), ("bf16", 2.0 ** -7), ("f8e4m3fn", 2.0 ** -3), ("f4e2m1fn", 0.5), ("s8", 0.0), ("c64", 2.0 ** -23), ("c128", 2.0 ** -52),
])
def test_steps_of_types(dtype: str, expected: float) -> None:
    assert step(DTYPES[dtype]) == expected


WIDENED = {
    "complex products": """
      x = c64[9,40] parameter(0)
      y = c64[40,17] parameter(1)
      d = c64[9,17] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = c128[9,17] convert(d)""",
    "a long sum": """
      x = f32[3,100000] parameter(0)
      z = f32[] constant(0)
      d = f32[3] reduce(x, z), dimensions={1}, to_apply=sum
      ROOT r = f64[3] convert(d)""",
    "long products": """
      x = f32[4,9000] parameter(0)
      y = f32[9000,5] parameter(1)
      d = f32[4,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT r = f64[4,5] convert(d)""",
}


@pytest.mark.parametrize("name", WIDENED)
def test_sums_that_are_widened_keep_their_tolerance(name: str) -> None:
    module = module_of(entry(WIDENED[name], ADD))
    arrays = inputs_of(module)
    model = compile_module(module, {}, Options(), use_cache=False)
    compared = compare_all(model(*arrays), reference(module, arrays), way=coarsest_types(module))
    assert [c.fault for c in compared] == [None]


@pytest.mark.parametrize(("name", "way", "expected"), [
    ("float64", None, 1e-9), ("float64", F64, 1e-9), ("float64", F32, 1e-4), ("complex128", C64, 1e-4), ("float32", C128, 1e-4), ("float32", F16, 2.0 ** -10),
    ("float16", F32, 5e-3), ("float64", BF16, 2.0 ** -7),
])
def test_tolerances_by_the_types_on_the_way(name: str, way: DType | None, expected: float) -> None:
    assert tolerance(name, way) == expected
