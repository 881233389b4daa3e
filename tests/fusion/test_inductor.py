"""The policy inductor: what is stored, what is joined, and the reasons that are given."""
from __future__ import annotations

import pytest

from irscope.api import load
from irscope.fusion import policy_named
from irscope.fusion.inductor.policy import POLICY
from irscope.fusion.policy import AsWritten
from irscope.lint.verdicts import verdicts_of
from irscope.source import UserError
from tests.fusion.inductor_texts import graph, plan, tensor, verdict


def test_it_is_a_policy_with_a_version() -> None:
    policy = policy_named("inductor")
    assert isinstance(policy, AsWritten) and policy.version == "inductor@torch-2.15"


def test_a_pointwise_chain_is_one_kernel() -> None:
    made = plan(graph({"a": tensor(64, 128), "b": tensor(64, 128)}, """
        m = aten::mul(%a, %b)
        r = aten::relu(%m)
        s = aten::sigmoid(%a)
        d = aten::sub(%r, %s, 1)""", "d"))
    assert made.kernels() == 1 and {v.fused for v in made.verdicts} == {"all"}


def test_softmax_between_products_shares_its_outer_loop() -> None:
    made = plan(graph({"a": tensor(64, 128), "b": tensor(64, 128), "t": tensor(128, 64)}, """
        p = aten::mm(%a, %t)
        r = aten::relu(%p)
        q = aten::mm(%r, %b)
        s = aten::softmax(%q, -1, None)""", "s"))
    assert made.kernels() == 4
    assert made.decisions == [("op4", "op5"), ("op3", "op4_op5"), ("op3_op4_op5", "op6")]
    told = verdict(made, "q", "s")
    assert (told.fused, told.rule, told.reason) == ("none", "extern-kernel", None)
    assert "aten::mm %q" in told.cause and "aten::mm %q" in verdict(made, "r", "q").cause


def test_a_value_that_is_needed_again_behind_a_product_goes_through_memory() -> None:
    made = plan(graph({"a": tensor(8, 64), "w": tensor(64, 64)}, """
        e = aten::relu(%a)
        p = aten::mm(%e, %w)
        s = aten::sub(%e, %p, 1)""", "s"))
    told = verdict(made, "e", "s")
    assert (told.fused, told.reason, told.rule) == ("none", "intermediate nodes between node1 & node2", "intermediate-node")
    assert "%p (aten::mm)" in told.cause


def test_another_order_of_elements_keeps_kernels_apart() -> None:
    made = plan(graph({"a": tensor(64, 128)}, """
        e = aten::exp(%a)
        t = aten::t(%e)
        r = aten::reshape(%t, [64, 128])
        s = aten::add(%e, %r, 1)
        n = aten::neg(%e)""", "s, n"))
    told = verdict(made, "e", "s")
    assert (told.fused, told.rule) == ("none", "index-mismatch")


def test_a_number_that_is_repeated_needs_no_dimensions() -> None:
    text = "HloModule m\n\nENTRY e {\n  p = f32[] parameter(0)\n  b = f32[4,8] broadcast(p)\n  n = f32[4,8] negate(b)\n  ROOT r = f32[4,8] abs(n)\n}\n"
    assert verdict(plan(load(text).module()), "n", "r").fused == "all"


def test_a_part_of_a_tuple_is_what_the_tuple_was_made_of() -> None:
    """In a graph whose tuples nothing has taken apart before."""
    text = """HloModule m

        ENTRY e {
          x = f32[64,32] parameter(0)
          y = f32[64,32] parameter(1)
          a = f32[64,32] exponential(x)
          b = f32[64,32] negate(y)
          t = (f32[64,32], f32[64,32]) tuple(a, b)
          p = f32[64,32] get-tuple-element(t), index=1
          ROOT r = f32[64,32] add(p, x)
        }
    """
    made = POLICY.plan(load(text).module().main())
    assert [[node.name for node in group.nodes] for group in made.groups] == [["b", "r"]]
    assert verdict(made, "b", "r").fused == "all"


def test_a_device_is_refused_with_what_to_do() -> None:
    with pytest.raises(UserError, match="--device h100 means nothing to the policy inductor") as caught:
        verdicts_of(graph({"a": tensor(8)}, "e = aten::exp(%a)", "e"), "inductor", "h100")
    assert "TORCH_LOGS=fusion" in caught.value.help and "--fusion-log" in caught.value.help
