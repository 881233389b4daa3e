"""Colours mean one thing: every dtype has its own, and a legend names those that occur."""
from __future__ import annotations

import pytest

from irscope.graph.dtypes import DTYPES
from irscope.render.detail import detail_view
from irscope.render.palette import OF_DTYPE
from irscope.render.svg import svg_text
from irscope.render.theme import LIGHT, legend
from irscope.render.view import BoxOptions
from tests.analysis.texts import survey

MIXED = """HloModule m
ENTRY main {
  a = f32[4] parameter(0)
  b = f64[4] convert(a)
  c = s32[4] convert(b)
  d = bf16[4] convert(c)
  ROOT e = f32[4] convert(d)
}"""


def test_no_two_dtypes_have_one_colour() -> None:
    fills = [colours.fill for colours in OF_DTYPE.values()]
    assert len(set(fills)) == len(fills)
    assert {name for name, dtype in DTYPES.items() if dtype.kind not in ("token", "opaque")} == set(OF_DTYPE)


@pytest.mark.parametrize(("color_by", "names"), [
    ("dtype", ["s32", "bf16", "f32", "f64"]), ("class", ["elementwise", "parameter"]), ("fusion", []), ("findings", ["none"]),
    ("cost", ["0% of the costliest", "4%", "25%", "50%", "100% of the costliest"]),
])
def test_a_legend_names_the_colours_that_occur(color_by: str, names: list[str]) -> None:
    facts = survey(MIXED)
    view = detail_view(facts, facts.module.main(), BoxOptions())
    assert [name for name, _ in legend(view.boxes, color_by, LIGHT)] == names
    text = svg_text(view, color_by)
    assert all(f">{name}</text>" in text for name in names)


def test_a_leaked_f64_differs_from_f32_in_a_drawing() -> None:
    facts = survey(MIXED)
    text = svg_text(detail_view(facts, facts.module.main(), BoxOptions()), "dtype")
    assert OF_DTYPE["f64"].fill in text
    assert OF_DTYPE["f32"].fill in text
