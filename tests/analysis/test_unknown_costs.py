"""A cost that is not known is called unknown, in the terminal, in json, in drawings and on the page; it is never zero."""
from __future__ import annotations

import json

import irscope
from irscope import ShowOptions, View
from irscope.analysis.survey import Survey
from irscope.render.page_data import page_data

OPEN = """graph(%x.1 : Tensor,
      %w.1 : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu)):
  %y : Tensor = aten::matmul(%x.1, %w.1)
  %z : Tensor = aten::relu(%y)
  return (%z)
"""
OPAQUE = "ENTRY main {\n x = f32[4] parameter(0)\n y = f32[4] negate(x)\n ROOT z = f32[4] made-up(y)\n}\n"


def test_costs_of_open_shapes_are_open() -> None:
    reading = irscope.load(OPEN)
    survey = Survey(reading.module())
    assert survey.totals.is_open
    assert all(section.is_open for section in survey.outline.walk())
    text = str(irscope.show(reading))
    assert "the cost of 2 nodes is not known" in text
    assert "0 FLOP" not in text
    assert "costliest  share" not in text  # nothing of known cost is left to rank
    shown = json.loads(str(irscope.show(reading, ShowOptions(view=View.JSON))))["modules"][0]
    assert shown["summary"]["unknown_costs"] == 2
    assert shown["tree"]["open"] is True


def test_one_unknown_operator_makes_sums_lower_bounds() -> None:
    reading = irscope.load(OPAQUE)
    survey = Survey(reading.module())
    graph = reading.module().main()
    assert [survey.costs.is_open(node, graph) for node in graph.nodes] == [False, False, True]
    assert "4 FLOP+" in str(irscope.show(reading))
    data = page_data(survey)
    assert data["graphs"][0]["open"] == [2]
    assert data["graphs"][0]["sections"][0][-1] == 1


def test_known_costs_stay_as_they_are() -> None:
    reading = irscope.load("ENTRY main {\n x = f32[4] parameter(0)\n ROOT y = f32[4] negate(x)\n}\n")
    assert not Survey(reading.module()).totals.is_open
    assert "+" not in str(irscope.show(reading)).split("work")[1].splitlines()[0]
