"""The diagnoses of a course are facts that lint reports by default, in every format and under every policy, also where they cost nothing."""

from __future__ import annotations

import pytest

import irscope
from irscope.lint import lint_module
from irscope.lint.settings import Settings
from irscope.source import Finding, Level

HLO = """HloModule m

ENTRY e {{
  {0}
}}
"""
RELAY = '#[version = "0.0.5"]\ndef @main({0}) {{\n  {1}\n}}\n'
MLIR = """module @m {{
  func.func public @main(%arg0: tensor<1x3x32x32xf32>, %arg1: tensor<8x3x3x3xf32>) -> tensor<1x8x900xf32> {{
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {{}} \
{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : (tensor<1x3x32x32xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x30x30xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x8x30x30xf32>) -> tensor<1x8x900xf32>
    %2 = stablehlo.tanh %1 : tensor<1x8x900xf32>
    return %2 : tensor<1x8x900xf32>
  }}
}}
""".replace("{{", "{").replace("}}", "}")
FX = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[1, 3, 32, 32]", w: "f32[8, 3, 3, 3]"):
        conv: "f32[1, 8, 30, 30]" = torch.ops.aten.convolution.default(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        view: "f32[1, 8, 900]" = torch.ops.aten.view.default(conv, [1, 8, 900])
        relu: "f32[1, 8, 900]" = torch.ops.aten.relu.default(view)
        return (relu,)
"""
TORCH = """graph(%x : Float(1, 3, 32, 32), %w : Float(8, 3, 3, 3)):
  %one : int = prim::Constant[value=1]()
  %zero : int = prim::Constant[value=0]()
  %two : int = prim::Constant[value=2]()
  %six : int = prim::Constant[value=5]()
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %last : int = prim::Constant[value=-1]()
  %ones : int[] = prim::ListConstruct(%one, %one)
  %zeros : int[] = prim::ListConstruct(%zero, %zero)
  %c : Float(1, 8, 30, 30) = aten::conv2d(%x, %w, %none, %ones, %zeros, %ones, %one)
  {0}
  return (%y)
"""
BETWEEN = {
    "hlo, reshape": ("hlo", HLO.format("""x = f32[1,3,32,32] parameter(0)
  w = f32[8,3,3,3] parameter(1)
  c = f32[1,8,30,30] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
  r = f32[1,8,900] reshape(c)
  ROOT y = f32[1,8,900] tanh(r)""")),
    "hlo, cast": ("hlo", HLO.format("""x = f32[1,3,32,32] parameter(0)
  w = f32[8,3,3,3] parameter(1)
  c = f32[1,8,30,30] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
  r = bf16[1,8,30,30] convert(c)
  ROOT y = bf16[1,8,30,30] tanh(r)""")),
    "stablehlo, reshape": ("stablehlo", MLIR),
    "export, reshape": ("export", FX),
    "torchscript, reshape": ("torchscript", TORCH.format("""%r : Float(1, 8, 900) = aten::flatten(%c, %two, %last)
  %y : Float(1, 8, 900) = aten::relu(%r)""")),
    "torchscript, cast": ("torchscript", TORCH.format("""%r : Half(1, 8, 30, 30) = aten::to(%c, %six, %no, %no, %none)
  %y : Half(1, 8, 30, 30) = aten::relu(%r)""")),
    "relay, reshape": ("relay", RELAY.format("%x: Tensor[(1, 3, 32, 32), float32], %w: Tensor[(8, 3, 3, 3), float32]", """\
%0 = nn.conv2d(%x, %w, channels=8, kernel_size=[3, 3]);
  %1 = reshape(%0, newshape=[1, 8, 900]);
  nn.relu(%1)""")),
    "relay, cast": ("relay", RELAY.format("%x: Tensor[(1, 3, 32, 32), float32], %w: Tensor[(8, 3, 3, 3), float32]", """\
%0 = nn.conv2d(%x, %w, channels=8, kernel_size=[3, 3]);
  %1 = cast(%0, dtype="float16");
  nn.relu(%1)""")),
}  # fmt: skip
OTHERS = {
    "BRD002 an operand of another rank": RELAY.format("%x: Tensor[(8, 16, 32), float32], %y: Tensor[(16, 1), float32]", "add(%x, %y)"),
    "BRD007 a bias": RELAY.format("%x: Tensor[(32, 64), float32], %b: Tensor[(64), float32]", "add(%x, %b)"),
    "BRD007 a column": RELAY.format("%x: Tensor[(32, 64), float32], %b: Tensor[(32, 1), float32]", "add(%x, %b)"),
    "DTY010 a product in f32 among halves": RELAY.format("%x: Tensor[(32, 64), float16], %v: Tensor[(64, 64), float16]", """\
%0 = cast(%x, dtype="float32");
  %1 = cast(%v, dtype="float32");
  %2 = nn.dense(%0, %1);
  nn.relu(%2)"""),
    "DTY006 a layer that is not quantised": RELAY.format(
        "%x: Tensor[(32, 512), float32], %w: Tensor[(512, 512), int8], %s: float32, %z: int32, %v: Tensor[(512, 512), float32]", """\
%0 = qnn.dequantize(%w, %s, %z);
  %1 = nn.dense(%x, %0);
  nn.dense(%1, %v)"""),
    "ALG016 numbers that are not folded": RELAY.format("%x: Tensor[(32, 64), float32]", "%0 = multiply(2f, 3f);\n  multiply(%x, %0)"),
    "SHP001 an open size": RELAY.format("%x: Tensor[(?, 64), float32]", "nn.relu(%x)"),
    "LAY002 a convolution between layouts": RELAY.format("%x: Tensor[(1, 8, 8, 8), float32], %w: Tensor[(8, 8, 3, 3), float32]", """\
%0 = layout_transform(%x, src_layout="NHWC", dst_layout="NCHW");
  %1 = nn.conv2d(%0, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  layout_transform(%1, src_layout="NCHW", dst_layout="NHWC")"""),
}  # fmt: skip
POLICIES = ("auto", "irscope", "tvm", "xla-cpu", "xla-gpu", "inductor")


def facts(format: str, text: str, policy: str = "auto") -> dict[str, Finding]:
    found = lint_module(irscope.load(text, format=format).module(), settings=Settings(policy))
    return {finding.code: finding for finding in found if finding.level is Level.FACT}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", BETWEEN)
def test_what_stands_between_a_convolution_and_its_activation_is_a_fact(case: str, policy: str) -> None:
    fact = facts(*BETWEEN[case], policy).get("FUS021")
    assert fact is not None
    assert "is between" in fact.message and fact.costs is not None


@pytest.mark.parametrize("case", OTHERS)
def test_the_other_diagnoses_are_facts(case: str) -> None:
    assert case.split()[0] in facts("relay", OTHERS[case])


def test_a_broadcast_in_registers_costs_nothing_and_one_in_memory_its_bytes() -> None:
    fact = facts("relay", OTHERS["BRD007 a bias"])["BRD007"]
    assert fact.saves is not None and fact.saves["us"] == 0
    assert "none of it written to memory" in fact.message


STORED = """HloModule m

ENTRY e {
  x = f32[512,1024] parameter(0)
  s = f32[512] parameter(1)
  b = f32[512,1024] broadcast(s), dimensions={0}
  r = f32[512,1024] add(x, b)
  w = f32[1024,512] parameter(2)
  d = f32[512,512] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[512,1024], f32[512,512]) tuple(r, d)
}
"""


def test_a_broadcast_that_a_product_reads_from_memory_costs_a_write_and_a_read() -> None:
    fact = facts("hlo", STORED)["BRD002"]
    assert fact.saves is not None
    assert (fact.saves["bytes"], fact.saves["kernels"]) == (2 * 512 * 1024 * 4, 1)
    assert fact.saves["us"] > 0
