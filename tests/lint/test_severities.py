"""What a rule tells as information: true of the graph, and no reason to change it. Each case was once a warning on a real model."""

from __future__ import annotations

import pytest

import irscope
from irscope.lint import Fixture, find_rule, lint_module
from irscope.source import Severity

INFORMATION = {
    "BRD006 a table of 8 x 32, as embeddings of positions are": Fixture.torchscript(
        """
        graph(%position : Float(1, 8, 1), %frequency : Float(32)):
          %d : Float(1, 8, 32) = aten::mul(%position, %frequency)
          return (%d)
        """,
        "d",
    ),
}


@pytest.mark.parametrize("case", INFORMATION)
def test_true_and_no_reason_to_change_it(case: str) -> None:
    fixture = INFORMATION[case]
    reading = irscope.load(fixture.text, format=fixture.format)
    found = lint_module(reading.module(), [find_rule(case.split()[0])])
    assert {f.node for f in found} == set(fixture.nodes)
    assert {f.severity for f in found} == {Severity.INFO}
