"""simplify-inference: what each normalisation becomes, written out as TVM writes it."""
from __future__ import annotations

import pytest

import irscope
from irscope.diff import compare
from irscope.passes.manager import run_passes
from tests.passes.relay_runs import meaning_stays

IMAGE = "%x: Tensor[(2, 4, 3, 5), float32], %g: Tensor[(4), float32], %b: Tensor[(4), float32]"
LAST = "%x: Tensor[(2, 3, 5, 4), float32], %g: Tensor[(4), float32], %b: Tensor[(4), float32]"
NORMALISED = """
  %0 = mean({0}, axis={1}, keepdims=True);
  %1 = subtract({0}, %0);
  %2 = variance({0}, %0, axis={1}, keepdims=True);
  %3 = add(%2, {2});
  %4 = sqrt(%3);
  %5 = divide(%1, %4);"""
SCALED = """
  %6 = expand_dims(%g, axis=1, num_newaxis=2);
  %7 = multiply(%5, %6);
  %8 = expand_dims(%b, axis=1, num_newaxis=2);
  add(%7, %8)"""
GROUPED = """
  %9 = reshape(%x, newshape=[2, 2, 2, 3, 5]);""" + NORMALISED.format("%9", "[2, 3, 4]", "1e-05f") + """
  %10 = reshape(%5, newshape=[2, 4, 3, 5]);""" + SCALED.replace("%5", "%10")


@pytest.mark.parametrize(("signature", "before", "after"), [
    (LAST, "nn.layer_norm(%x, %g, %b, epsilon=0.1f)", NORMALISED.format("%x", "[-1]", "0.1f") + "\n  %6 = multiply(%5, %g);\n  add(%6, %b)"),
    (LAST, "nn.layer_norm(%x, %g, %b, scale=False)", NORMALISED.format("%x", "[-1]", "1e-05f") + "\n  add(%5, %b)"),
    (IMAGE, "nn.instance_norm(%x, %g, %b, epsilon=0.01f)", NORMALISED.format("%x", "[2, 3]", "0.01f") + SCALED),
    (LAST, "nn.instance_norm(%x, %g, %b, axis=3, center=False)", NORMALISED.format("%x", "[1, 2]", "1e-05f") + "\n  multiply(%5, %g)"),
    (IMAGE, "nn.group_norm(%x, %g, %b, num_groups=2)", GROUPED),
    (IMAGE, "nn.l2_normalize(%x, eps=0.5f, axis=[1])", """
  %0 = multiply(%x, %x);
  %1 = sum(%0, axis=[1], keepdims=True);
  %2 = maximum(%1, 0.5f);
  %3 = sqrt(%2);
  divide(%x, %3)"""),
    (IMAGE, "nn.l2_normalize(%x, eps=0.5f)", """
  %0 = multiply(%x, %x);
  %1 = sum(%0, axis=None, keepdims=True);
  %2 = maximum(%1, 0.5f);
  %3 = sqrt(%2);
  divide(%x, %3)"""),
    (IMAGE, "%0 = nn.dropout(%x, rate=0.3f);\n  tanh(%0.0)", "tanh(%x)"),
])
def test_normalisation_is_arithmetic(signature: str, before: str, after: str) -> None:
    modules = [irscope.load(f"def @main({signature}) {{\n  {body}\n}}\n").module() for body in (before, after)]
    *_, last = run_passes(modules[0], ["simplify-inference"])
    assert not last.broke
    assert compare(last.after, modules[1]).same
    meaning_stays(modules[0], last.after)


@pytest.mark.parametrize(("signature", "groups"), [
    (IMAGE, 3), (IMAGE, 0), (IMAGE.replace("float32", "int32"), 2), (IMAGE.replace("(2, 4, 3, 5)", "(2, 4, ?, 5)"), 2),
])
def test_groups_that_cannot_be_normalised_are_left_for_the_reader_to_see(signature: str, groups: int) -> None:
    """Those that do not divide, none, those of integers, and those of a size that is not known."""
    module = irscope.load(f"def @main({signature}) {{\n  nn.group_norm(%x, %g, %b, num_groups={groups})\n}}\n").module()
    *_, last = run_passes(module, ["simplify-inference"])
    assert [n.op.name for n in last.after.main().nodes][-1] == "nn.group_norm"


def test_a_normalisation_of_integers_is_left_as_it_is() -> None:
    module = irscope.load("def @main(%x: Tensor[(2, 8), int32], %g: Tensor[(8), int32], %b: Tensor[(8), int32]) {\n  nn.layer_norm(%x, %g, %b)\n}\n").module()
    *_, last = run_passes(module, ["simplify-inference"])
    assert [n.op.name for n in last.after.main().nodes][-1] == "nn.layer_norm"
