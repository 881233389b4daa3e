"""What narrow floats on the way leave of a result's digits."""
from __future__ import annotations

import pytest

from irscope.analysis.rounding import result_steps, step
from irscope.formats.hlo import read
from irscope.graph import DTYPES
from irscope.source import SourceText

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
    assert result_steps(read(SourceText("t", TEXT)).module()) == [2.0 ** -10, 2.0 ** -23, 0.0]


@pytest.mark.parametrize(("dtype", "expected"), [("f16", 2.0 ** -10), ("bf16", 2.0 ** -7), ("f8e4m3fn", 2.0 ** -3), ("f4e2m1fn", 0.5), ("s8", 0.0)])
def test_steps_of_types(dtype: str, expected: float) -> None:
    assert step(DTYPES[dtype]) == expected
