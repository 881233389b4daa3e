"""What a rule tells as information: true of the graph, and no reason to change it. Each case was once a warning on a real model."""

from __future__ import annotations

import pytest

import irscope
from irscope.lint import Fixture, find_rule, lint_module
from irscope.source import Severity

INFORMATION = {
    "CTL001 a size that Python looked at": Fixture.torchscript(
        """
        graph(%self : __torch__.Net,
              %x : Float(4, 6, strides=[6, 1], requires_grad=0, device=cpu)):
          %2 : int = prim::Constant[value=0]()
          %3 : int = aten::size(%x, %2) # f.py:4:0
          %4 : Long(device=cpu) = prim::NumToTensor(%3)
          %5 : int = aten::Int(%4) # f.py:4:0
          %6 : Float(4, 6, strides=[6, 1], requires_grad=0, device=cpu) = aten::neg(%x) # f.py:5:0
          return (%6)
        """,
        "5",
    ),
    "DTY001 a number that meets no array": Fixture.hlo(
        """
        ENTRY e {
          x = f32[1024] parameter(0)
          c = f64[] constant(0.5)
          n = f32[] convert(c)
          b = f32[1024] broadcast(n), dimensions={}
          ROOT m = f32[1024] multiply(x, b)
        }
        """,
        "c",
    ),
    "ALG003 dead code that the compiler leaves out": Fixture.hlo(
        """
        ENTRY e {
          x = f32[4096,4096] parameter(0)
          d = f32[4096,4096] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT n = f32[4096,4096] negate(x)
        }
        """,
        "d",
    ),
    "BRD001 a broadcast that is the result": Fixture.hlo(
        """
        ENTRY e {
          x = f32[1024] parameter(0)
          ROOT b = f32[1024,1024] broadcast(x), dimensions={1}
        }
        """,
        "b",
    ),
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
