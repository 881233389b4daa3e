"""Layers and what stands behind them become functions in Relay, TorchScript and HLO alike; the numbers stay."""
from __future__ import annotations

import re

import numpy as np
import pytest

import irscope
from irscope.backends.arguments import drawn
from irscope.formats import format_named
from irscope.graph import Dialect, Module
from irscope.passes import pass_named
from irscope.passes.manager import run_passes
from tests.conftest import REPO
from tests.passes.relay_runs import meaning_stays

HEAD = "def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(8, 4), float32], %r: Tensor[({rows}, 8), float32]) {{\n"
BODY = "  %0 = nn.dense(%x, %w, units=8);\n  %1 = add(%0, %r);\n  nn.relu(%1)\n}\n"


def composites(rows: int) -> list[str]:
    module = irscope.load(HEAD.format(rows=rows) + BODY).module()
    made = pass_named("fuse-patterns").run(pass_named("infer-types").run(module))
    meaning_stays(module, made)
    return [node.attrs["Composite"] for node in made.main().nodes if node.op.name == "fn"]


def test_a_residual_sum_of_the_same_shape_joins() -> None:
    assert composites(1) == ["dense_add_relu"]


def test_a_sum_that_makes_the_result_larger_stays_outside() -> None:
    assert composites(5) == []


def fused(text: str) -> tuple[str, tuple[str, ...]]:
    """The text after the pass, and what was declined. It reads back, and compiled code gives the same numbers as before."""
    reading = irscope.load(text)
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, ["fuse-patterns"])
    made = printed(last.after)
    again = irscope.load(made)
    assert again.ok and printed(again.module()) == made, made
    models = [irscope.compile(irscope.load(t)) for t in (text, made)]
    values = list(drawn(models[0].inputs, range(len(models[0].inputs)), 0).values())
    for a, b in zip(models[0](*values), models[1](*values), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5)
    return made, last.declined


def printed(module: Module) -> str:
    return format_named(module.format).print_module(module)


def groups(text: str) -> list[str]:
    return re.findall(r'prim::FusionGroup_\d+\[name="(\w+)"\]', text)


TYPE = "Float(1, 4, 6, 6, strides=[144, 36, 6, 1], requires_grad=0, device=cpu)"
TORCH = f"""graph(%x : {TYPE}, %w : Float(4, 4, 3, 3, strides=[36, 9, 3, 1], requires_grad=0, device=cpu),
      %b : Float(4, strides=[1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=1]()
  %2 : int[] = prim::ListConstruct(%1, %1)
  %3 : {TYPE} = aten::conv2d(%x, %w, %b, %2, %2, %2, %1)
"""


@pytest.mark.parametrize(("lines", "names"), [
    ("  %4 : {t} = aten::relu(%3)\n  return (%4)", ["conv2d_relu"]),
    ("  %4 : {t} = aten::add(%3, %x, %1)\n  %5 : {t} = aten::sigmoid(%4)\n  return (%5)", ["conv2d_add_sigmoid"]),
    ("  %4 : {t} = aten::add(%x, %3, %1)\n  %5 : {t} = aten::relu_(%4)\n  return (%5)", ["conv2d_add_relu"]),
    ("  %4 : {t} = aten::add_(%3, %x, %1)\n  %5 : {t} = aten::relu_(%4)\n  return (%5)", ["conv2d_add_relu"]),
    ("  %4 : {t} = aten::tanh(%3)\n  %5 : {t} = aten::conv2d(%4, %w, %b, %2, %2, %2, %1)\n  %6 : {t} = aten::relu(%5)\n  return (%6)",
     ["conv2d_tanh", "conv2d_relu"]),
])
def test_layers_of_torch_become_groups(lines: str, names: list[str]) -> None:
    made, declined = fused(TORCH + lines.replace("{t}", TYPE) + "\n")
    assert groups(made) == names and not declined
    assert made.partition("with prim")[0].count("prim::Constant") == ("conv2d_add" in names[0]) * 0


@pytest.mark.parametrize(("lines", "why"), [
    ("  %4 : {t} = aten::relu(%3)\n  %5 : {t} = aten::add(%4, %3, %1)\n  return (%5)", "%5 needs %3 too"),
    ("  %8 : {t} = aten::add_(%x, %x, %1)\n  %4 : {t} = aten::relu(%3)\n  return (%4)", "may write what they read"),
    ("  %4 : {t} = aten::relu_(%3)\n  %5 : {t} = aten::add(%4, %3, %1)\n  return (%5)", "%5 needs %3 too"),
])
def test_what_torch_might_see_stays(lines: str, why: str) -> None:
    made, declined = fused(TORCH + lines.replace("{t}", TYPE) + "\n")
    assert not groups(made) and any(why in text for text in declined)


def test_a_write_into_what_others_own_stays_outside() -> None:
    made, _ = fused(TORCH + f"  %4 : {TYPE} = aten::add_(%x, %3, %1)\n  %5 : {TYPE} = aten::mul(%x, %4)\n  return (%5)\n")
    assert not groups(made)


def test_programs_of_jax_keep_rectifiers_as_the_calls_that_they_are() -> None:
    made, _ = fused((REPO / "samples" / "residual.pre.hlo").read_text(encoding="utf-8"))
    assert re.findall(r"^%([a-z_]+) \(", made, re.MULTILINE) == ["convolution_multiply_add_relu", "convolution_add_relu"]
    assert made.count("to_apply=%convolution_multiply_add_relu") == 1


HLO = """HloModule m

ENTRY main {
  x = f32[1,6,6,4] parameter(0)
  w = f32[3,3,4,8] parameter(1)
  b = f32[8] parameter(2)
  c = f32[1,6,6,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  s = f32[1,6,6,8] broadcast(b), dimensions={3}
  z = f32[] constant(0)
  n = f32[1,6,6,8] broadcast(z), dimensions={}
"""


@pytest.mark.parametrize(("lines", "names"), [
    ("  a = f32[1,6,6,8] add(c, s)\n  ROOT r = f32[1,6,6,8] maximum(n, a)", ["convolution_add_relu"]),
    ("  ROOT r = f32[1,6,6,8] tanh(c)", ["convolution_tanh"]),
    ("  a = f32[1,6,6,8] multiply(s, c)\n  ROOT r = f32[1,6,6,8] add(a, a)", ["convolution_multiply_add"]),
    ("  a = f32[1,6,6,8] multiply(s, c)\n  d = f32[1,6,6,8] exponential(a)\n  ROOT r = f32[1,6,6,8] add(d, c)", []),
    ("  f = f32[36,8] reshape(c)\n  v = f32[8,8] broadcast(b), dimensions={1}\n"
     "  d = f32[36,8] dot(f, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT r = f32[36,8] logistic(d)", ["dot_logistic"]),
])
def test_layers_of_hlo_become_computations_that_are_called(lines: str, names: list[str]) -> None:
    made, _ = fused(HLO + lines + "\n}\n")
    assert re.findall(r"^%([a-z_]+) \(", made, re.MULTILINE) == names
    assert names == re.findall(r"call\(.*to_apply=%([a-z_]+)", made)


def test_what_is_stretched_is_handed_over_small() -> None:
    made, _ = fused(HLO + "  a = f32[1,6,6,8] add(c, s)\n  ROOT r = f32[1,6,6,8] maximum(n, a)\n}\n")
    assert "%convolution_add_relu (p0: f32[1,6,6,4], p1: f32[3,3,4,8], p2: f32[8]) -> f32[1,6,6,8]" in made


def test_stablehlo_is_outlined_as_hlo_is() -> None:
    text = """func.func @main(%x: tensor<3x8xf32>, %w: tensor<8x4xf32>, %b: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x8xf32>, tensor<8x4xf32>) -> tensor<3x4xf32>
  %1 = stablehlo.add %0, %b : tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}
"""
    made = pass_named("fuse-patterns").run(irscope.load(text).module())
    assert [node.op.name for node in made.main().nodes if node.bodies] == ["call"]


def test_modules_of_other_dialects_stay() -> None:
    module = Module("m", Dialect("mine"))
    assert pass_named("fuse-patterns").run(module) is module
