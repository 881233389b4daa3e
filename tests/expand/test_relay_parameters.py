"""Inputs that are parameters of a model are drawn as such: variances are positive, sums stay of a size."""
from __future__ import annotations

import irscope
from irscope.expand.relay import parameter_names
from tests.conftest import Cli

NORMALISED = """def @main(%x: Tensor[(1, 8, 4, 4), float32], %g: Tensor[(8), float32], %b: Tensor[(8), float32], %m: Tensor[(8), float32], %v: Tensor[(8), float32]) {
  %0 = nn.batch_norm(%x, %g, %b, %m, %v, epsilon=0.001f);
  %1 = %0.0;
  return nn.relu(%1);
}
"""
FUSED = """def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(8, 4), float32], %y: Tensor[(1, 4), float32]) {
  %2 = fn (%p0: Tensor[(1, 8), float32], %p1: Tensor[(4, 8), float16], Primitive=1) {
    %0 = cast(%p1, dtype="float32");
    nn.dense(%p0, %0, units=4)
  };
  %3 = transpose(%w);
  %4 = cast(%3, dtype="float16");
  %5 = %2(%x, %4);
  add(%5, %y)
}
"""


def test_what_operators_take_as_weights_is_a_parameter() -> None:
    assert parameter_names(irscope.load(NORMALISED).module()) == ["g", "b", "m", "v"]


def test_parameters_are_followed_into_functions_and_through_conversions() -> None:
    assert parameter_names(irscope.load(FUSED).module()) == ["w"]


def test_a_drawn_variance_has_a_root(cli: Cli) -> None:
    result = cli("compile-and-run", "-", "--check", input=NORMALISED)
    assert result.exit_code == 0, result.stderr
    assert "not finite" not in result.stdout
