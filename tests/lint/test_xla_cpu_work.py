"""What XLA's CPU compiler takes for operators, beside what irscope's kernels take."""

from __future__ import annotations

import pytest

import irscope
from irscope.lint.estimate import Works
from irscope.lint.machine import machine_named

MACHINE = machine_named("cpu")


def us(lines: str, policy: str, name: str = "y") -> float:
    """The time of one node's arithmetic."""
    module = irscope.load(f"HloModule m\n\nENTRY e {{\n  {lines}\n}}\n", format="hlo").module()
    return Works(MACHINE, policy).us(next(node for node in module.main().nodes if node.name == name))


@pytest.mark.parametrize(("op", "least"), [("sine", 20), ("power", 15), ("rsqrt", 20), ("exponential", 1.5)])
def test_what_has_no_vector_form_takes_longer_in_xlas_loops(op: str, least: float) -> None:
    second = ", x" if op == "power" else ""
    lines = f"x = f32[65536] parameter(0)\n  ROOT y = f32[65536] {op}(x{second})"
    assert us(lines, "xla-cpu") > least * us(lines, "irscope")
    assert us(lines, "inductor") == us(lines, "irscope")


def test_rounding_to_half_precision_costs_arithmetic() -> None:
    lines = "x = f32[65536] parameter(0)\n  ROOT y = {}[65536] convert(x)"
    assert us(lines.format("bf16"), "xla-cpu") > 5 * us(lines.format("f64"), "xla-cpu") / 2


def test_a_product_is_a_library_call_that_packs_its_operands() -> None:
    """XLA transposes copies where batch axes are not the first ones; with a row or two of work an element, that is most of the time."""
    plain = us("x = f32[32,4,64] parameter(0)\n  w = f32[32,64,512] parameter(1)\n  ROOT y = f32[32,4,512] dot(x, w), lhs_batch_dims={0}, "
               "rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}", "xla-cpu")
    turned = us("x = f32[4,32,64] parameter(0)\n  w = f32[512,32,64] parameter(1)\n  ROOT y = f32[32,4,512] dot(x, w), lhs_batch_dims={1}, "
                "rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}", "xla-cpu")
    assert turned > 5 * plain


def test_a_running_sum_is_a_tree_and_not_a_window_for_each_element() -> None:
    lines = ("x = f32[64,2048] parameter(0)\n  z = f32[] constant(0)\n  ROOT y = f32[64,2048] reduce-window(x, z), "
             "window={size=1x2048 pad=0_0x2047_0}, to_apply=s")
    text = f"HloModule m\n\ns {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}}\n\nENTRY e {{\n  {lines}\n}}\n"
    node = irscope.load(text, format="hlo").module().main().result()
    assert Works(MACHINE, "xla-cpu").us(node) < Works(MACHINE, "irscope").us(node) / 5


def test_a_pooling_over_a_whole_axis_is_no_running_sum() -> None:
    """Its window stands still: each element is read once."""
    lines = ("x = f32[64,2048] parameter(0)\n  z = f32[] constant(0)\n  ROOT y = f32[64,1] reduce-window(x, z), "
             "window={size=1x2048}, to_apply=s")
    text = f"HloModule m\n\ns {{\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT r = f32[] add(a, b)\n}}\n\nENTRY e {{\n  {lines}\n}}\n"
    node = irscope.load(text, format="hlo").module().main().result()
    assert Works(MACHINE, "xla-cpu").us(node) <= 5 * Works(MACHINE, "irscope").us(node)


def test_a_filter_for_each_channel_has_no_kernel() -> None:
    lines = ("x = f32[1,56,56,64] parameter(0)\n  w = f32[3,3,1,64] parameter(1)\n  ROOT y = f32[1,56,56,64] convolution(x, w), "
             "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=64")
    assert us(lines, "xla-cpu") > 100 * us(lines, "irscope")
