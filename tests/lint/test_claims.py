"""A claim is what planning a changed copy again shows, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import irscope
from irscope.expand import expand
from irscope.fusion import policy_named
from irscope.graph import Builder, Node
from irscope.lint.claims import claim, traffic

TEXT = """HloModule m

ENTRY e {
  x = f32[64,64] parameter(0)
  s = f32[64,64] sort(x), dimensions={1}, to_apply=less
  y = f32[64,64] exponential(s)
  ROOT z = f32[64,64] sort(y), dimensions={1}, to_apply=less
}
""".replace("ENTRY", "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT l = pred[] compare(a, b), direction=LT\n}\n\nENTRY")


def test_a_change_that_drops_a_kernel_is_counted() -> None:
    module = expand(irscope.load(TEXT, format="hlo").module())
    plan = policy_named("irscope").plan(module.main())

    def without_exponential(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        return operands[0] if node.op.name == "exponential" else None

    brings = claim(plan, without_exponential)
    assert (brings.kernels, brings.bytes) == (1, 2 * 64 * 64 * 4)
    assert brings.holds
    assert brings.saves["kernels"] == 1.0
    assert traffic(plan) == 3 * 2 * 64 * 64 * 4


def test_no_change_brings_nothing() -> None:
    plan = policy_named("irscope").plan(expand(irscope.load(TEXT, format="hlo").module()).main())
    assert not claim(plan, lambda builder, node, operands: None).holds
