"""Priorities that XLA's GPU fusion updates by differences. XLA (jaxlib 0.10.2, for an H100) decides each of these texts as asserted."""
from __future__ import annotations

from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.increments import Increments
from irscope.fusion.xla.instructions import Computation
from tests.fusion.xla_texts import ADD, module, verdicts

KEPT = """
  p = f32[262144]{0} parameter(0)
  q = f32[262144]{0} parameter(1)
  angle = f32[262144]{0} atan2(p, q)
  ratio = f32[262144]{0} divide(angle, angle)
  view = f32[131072,2]{1,0} bitcast(ratio)
  power = f32[262144]{0} power(p, q)
  sum = f32[262144]{0} add(power, ratio)
  last = f32[131072,2]{1,0} bitcast(sum)
  ROOT t = (f32[131072,2]{1,0}, f32[131072,2]{1,0}) tuple(view, last)
"""
"""``ratio`` is fused into ``sum`` and stays, since a bitcast reads it."""


def test_a_producer_that_stays_is_subtracted_from_the_priority_of_its_operand() -> None:
    """With all its users of that moment ``angle`` would cost 7.63 us fused and 6.90 us apart: XLA fuses it all the same."""
    said = verdicts("xla-gpu", KEPT)
    assert said["power", "sum"].fused == said["ratio", "sum"].fused == "all"
    assert said["angle", "ratio"].fused == "all"


def test_without_that_user_the_operand_is_estimated_as_a_whole() -> None:
    """``divide(angle, p)`` computes the angle once, so that it is fused first, and ``ratio`` then costs too much to compute twice."""
    said = verdicts("xla-gpu", KEPT.replace("divide(angle, angle)", "divide(angle, p)"))
    assert said["angle", "ratio"].fused == "all"
    assert said["ratio", "sum"].fused == "none"
    assert "7.63 us fused > 6.90 us apart" in said["ratio", "sum"].cause


TWICE = """
  p = f32[65536] parameter(0)
  base = f32[65536] tanh(p)
  one = f32[65536] exponential(base)
  ROOT two = f32[65536] add(one, base)
"""
"""``base`` is read by ``one``, and by ``two``, which takes ``one``."""


def test_a_step_subtracts_the_times_that_are_cached_and_no_others() -> None:
    named = {one.name: one for one in Computation.of(module(TWICE).main()).instructions}
    base, one, two = (named[name] for name in ("base", "one", "two"))
    cost = CostModel(DEVICES["h100"])
    increments = Increments(cost)

    def change() -> float | None:
        increments.begin(one, [two], {base: 1.0})
        increments.add(base, two)
        return increments.change(base)

    assert change() == cost.gain_of(base, [two]) - cost.gain_of(base, [])  # nothing is cached yet, and then the new user is
    assert change() == 0.0
    increments.estimated(base)
    assert change() == cost.gain_of(base, [two]) - cost.gain_of(base, [one, two]) != 0.0
    increments.invalidate(one)
    assert change() == 0.0


def test_a_producer_outside_of_the_queue_is_estimated_with_all_its_users() -> None:
    computation = Computation.of(module(KEPT).main())
    named = {one.name: one for one in computation.instructions}
    increments = Increments(CostModel(DEVICES["h100"]))
    increments.begin(named["ratio"], [named["sum"]], {})
    assert increments.change(named["angle"]) is None


GROUPS = """
  x = f32[4,64,4,8]{3,2,1,0} parameter(0)
  zero = f32[] constant(0)
  partial = f32[4,4,8]{2,1,0} reduce(x, zero), dimensions={1}, to_apply=add
  total = f32[4,4]{1,0} reduce(partial, zero), dimensions={2}, to_apply=add
  mean = f32[4,4]{1,0} multiply(total, total)
  spread = f32[4,64,4,8]{3,2,1,0} broadcast(mean), dimensions={0,2}
  difference = f32[4,64,4,8]{3,2,1,0} subtract(x, spread)
  square = f32[4,64,4,8]{3,2,1,0} multiply(difference, difference)
  again = f32[4,4,8]{2,1,0} reduce(square, zero), dimensions={1}, to_apply=add
  root = f32[4,4,8]{2,1,0} sqrt(again)
  wide = f32[4,64,4,8]{3,2,1,0} broadcast(root), dimensions={0,2,3}
  ROOT out = f32[4,64,4,8]{3,2,1,0} multiply(difference, wide)
"""


def test_the_reason_is_that_of_the_user_that_xla_asks_first() -> None:
    """Both kernels that compute ``mean`` refuse ``total``: one reduces too, and one would become a loop, which XLA asks first."""
    edge = verdicts("xla-gpu", GROUPS, ADD)["total", "mean"]
    assert (edge.fused, edge.reason) == ("none", "fusion into output of a reduce fusion would create a loop fusion")


SPLIT = """
  x = f32[4,16,16,32]{3,2,1,0} parameter(0)
  y = f32[4,4]{1,0} parameter(1)
  z = f32[] constant(0)
  flat = f32[4,256,4,8]{3,2,1,0} bitcast(x)
  partial = f32[4,4,8]{2,1,0} reduce(flat, z), dimensions={1}, to_apply=add
  total = f32[4,4]{1,0} reduce(partial, z), dimensions={2}, to_apply=add
  negated = f32[4,4]{1,0} negate(total)
  ROOT out = f32[4,4]{1,0} multiply(negated, y)
"""


def test_a_reduction_that_a_pass_has_split_is_younger_than_its_user() -> None:
    """Both ``total`` and ``negated`` gain 1.001 us. The youngest goes first: ``total``, which ``negated`` then keeps from ``out``."""
    said = verdicts("xla-gpu", SPLIT, ADD)
    assert (said["total", "negated"].fused, said["negated", "out"].fused) == ("all", "none")
