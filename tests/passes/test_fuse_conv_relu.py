"""A convolution and its rectifier become one operator, with the same numbers; where they may not, the reason is told."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import irscope
from irscope.backends.arguments import drawn
from irscope.cli.main import group
from irscope.formats.torchscript import print_module
from irscope.passes import pass_named
from irscope.passes.fuse_conv_relu import FuseConvRelu
from irscope.passes.visitor import GraphMutator
from tests.passes.relay_runs import meaning_stays

HEAD = "def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(8, 2, 3, 3), float32]) {\n"
CONV = "  %0 = nn.conv2d(%x, %w, strides=[2, 1], padding=[1, 0, 1, 2], groups=2, channels=8, kernel_size=[3, 3]);\n"


def ops(text: str) -> tuple[list[str], list[str]]:
    """The operators after the pass, and what it left alone; the numbers stay."""
    module = irscope.load(text).module()
    fusing = FuseConvRelu()
    made = fusing.run(module)
    meaning_stays(module, made)
    return [n.op.name for n in made.main().nodes if n.op.name not in ("parameter", "constant")], list(fusing.declined)


def test_it_fuses_and_keeps_the_attributes() -> None:
    text = HEAD + CONV + "  %1 = nn.relu(%0);\n  tanh(%1)\n}\n"
    assert ops(text) == (["nn.conv2d_relu", "tanh"], [])
    made = pass_named("fuse-conv-relu").run(irscope.load(text).module())
    fused = next(n for n in made.main().nodes if n.op.name == "nn.conv2d_relu")
    assert dict(fused.attrs) == {"strides": [2, 1], "padding": [1, 0, 1, 2], "groups": 2, "channels": 8, "kernel_size": [3, 3]}
    assert [o.name for o in fused.operands] == ["x", "w"]
    assert str(fused.type) == "f32[1,8,3,6]"


@pytest.mark.parametrize(("lines", "left", "why"), [
    ("  %1 = nn.relu(%0);\n  add(%0, %1)\n", ["nn.conv2d", "nn.relu", "add"], "needs the convolution's plain result"),
    ("  %1 = nn.relu(%0);\n  (%0, %1)\n", ["nn.conv2d", "nn.relu", "tuple"], "needs the convolution's plain result"),
    ("  %1 = cast(%0, dtype=\"float16\");\n  nn.relu(%1)\n", ["nn.conv2d", "cast", "nn.relu"], "cast stands between"),
    ("  %1 = cast(%0, dtype=\"float16\");\n  %2 = cast(%1, dtype=\"float32\");\n  nn.relu(%2)\n", ["nn.conv2d", "cast", "cast", "nn.relu"],
     "cast and cast stand between"),
    ("  %1 = nn.max_pool2d(%0, pool_size=[2, 2]);\n  nn.relu(%1)\n", ["nn.conv2d", "nn.max_pool2d", "nn.relu"], "nn.max_pool2d stands between"),
    ("  tanh(%0)\n", ["nn.conv2d", "tanh"], ""),
])
def test_it_leaves_alone_and_says_why(lines: str, left: list[str], why: str) -> None:
    found, declined = ops(HEAD + CONV + lines + "}\n")
    assert found == left
    assert (len(declined) == 1 and why in declined[0]) if why else not declined


def test_two_rectifiers_of_one_convolution_are_left_alone() -> None:
    found, declined = ops(HEAD + CONV + "  %1 = nn.relu(%0);\n  %2 = nn.relu(%0);\n  add(%1, %2)\n}\n")
    assert found == ["nn.conv2d", "nn.relu", "nn.relu", "add"]
    assert len(declined) == 2


TYPE = "Float(1, 4, 6, 6, strides=[144, 36, 6, 1], requires_grad=0, device=cpu)"
TORCH = f"""graph(%x : {TYPE}, %w : Float(4, 4, 3, 3, strides=[36, 9, 3, 1], requires_grad=0, device=cpu),
      %b : Float(4, strides=[1], requires_grad=0, device=cpu)):
  %1 : int = prim::Constant[value=1]()
  %2 : int[] = prim::ListConstruct(%1, %1)
  %n : bool = prim::Constant[value=0]()
"""
PLAIN = f"  %3 : {TYPE} = aten::conv2d(%x, %w, %b, %2, %2, %2, %1)\n"
TRACED = (f"  %0 : int = prim::Constant[value=0]()\n  %4 : int[] = prim::ListConstruct(%0, %0)\n"
          f"  %3 : {TYPE} = aten::_convolution(%x, %w, %b, %2, %2, %2, %n, %4, %1, %n, %n, %n, %n)\n")


WORD = f"  %p : str = prim::Constant[value=\"same\"]()\n  %3 : {TYPE} = aten::conv2d(%x, %w, %b, %2, %p, %2, %1)\n"


@pytest.mark.parametrize(("convolution", "rectifier", "left", "why"), [
    (WORD, "relu", ["aten::conv2d", "aten::relu"], "pads by a word"),
    ("  %q : int[] = prim::Constant[value=[1, 1]]()\n" + TRACED.replace("%b, %2, %2, %2", "%b, %q, %q, %q"), "relu",
     ["aten::cudnn_convolution_relu"], ""),
    (PLAIN, "relu", ["aten::cudnn_convolution_relu"], ""),
    (TRACED, "relu_", ["aten::cudnn_convolution_relu"], ""),
    (TRACED.replace("%2, %n, %4, %1, %n", "%2, %n2, %4, %1, %n").replace("  %0", "  %n2 : bool = prim::Constant[value=1]()\n  %0"), "relu",
     ["aten::_convolution", "aten::relu"], "transposed"),
    (PLAIN + f"  %9 : {TYPE} = aten::add_(%x, %1, %1)\n", "relu", ["aten::conv2d", "aten::add_", "aten::relu"], "may write"),
    (PLAIN + f"  %9 : {TYPE} = aten::add(%3, %3, %1)\n", "relu(%9)", ["aten::conv2d", "aten::add", "aten::relu"], "aten::add stands between"),
    (PLAIN, "relu(%3)\n  %6 : Tensor = aten::mul(%3, %5)", ["aten::conv2d", "aten::relu", "aten::mul"], "%6 needs the convolution's plain result"),
])
def test_in_torchscript_it_is_what_torch_makes_of_it(convolution: str, rectifier: str, left: list[str], why: str) -> None:
    call = rectifier if "(" in rectifier else f"{rectifier}(%3)"
    last = "%6" if "%6" in rectifier else "%5"
    text = TORCH + convolution + f"  %5 : {TYPE} = aten::{call}\n  return ({last})\n"
    reading = irscope.load(text)
    assert reading.ok, [f.message for f in reading.findings]
    fusing = FuseConvRelu()
    made = fusing.run(reading.module())
    assert [n.op.name for n in made.main().nodes if n.op.name.startswith("aten")] == left
    assert (len(fusing.declined) == 1 and why in fusing.declined[0]) if why else not fusing.declined
    again = print_module(made)
    models = [irscope.compile(irscope.load(t)) for t in (text, again)]
    values = list(drawn(models[0].inputs, range(len(models[0].inputs)), 0).values())
    for a, b in zip(models[0](*values), models[1](*values), strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5)


LINE = "Float(1, 4, 6, strides=[24, 6, 1], requires_grad=0, device=cpu)"


@pytest.mark.parametrize(("before", "stride"), [
    ("  %2 : int[] = prim::ListConstruct(%1)\n", "%2"), ("  %2 : int[] = prim::Constant[value=[1]]()\n", "%2"), ("", "%s"), ("", "%1"),
])
def test_traced_convolutions_that_are_not_of_images_stay(before: str, stride: str) -> None:
    """The stride of one of images has two numbers, and the text tells them."""
    text = (f"graph(%x : {LINE}, %w : Float(4, 4, 3, strides=[12, 3, 1], requires_grad=0, device=cpu), %b : Float(4, strides=[1], requires_grad=0, "
            "device=cpu), %s : int[]):\n  %1 : int = prim::Constant[value=1]()\n  %n : bool = prim::Constant[value=0]()\n"
            f"{before}  %3 : {LINE} = aten::_convolution(%x, %w, %b, {stride}, {stride}, {stride}, %n, {stride}, %1, %n, %n, %n, %n)\n"
            f"  %5 : {LINE} = aten::relu(%3)\n  return (%5)\n")
    fusing = FuseConvRelu()
    made = fusing.run(irscope.load(text).module())
    assert [n.op.name for n in made.main().nodes if n.op.name.startswith("aten")] == ["aten::_convolution", "aten::relu"]
    assert len(fusing.declined) == 1 and "not of images" in fusing.declined[0]


def test_in_hlo_another_pass_is_named() -> None:
    fusing = FuseConvRelu()
    module = irscope.load("HloModule m\n\nENTRY e {\n  x = f32[1,5,5,2] parameter(0)\n  w = f32[3,3,2,2] parameter(1)\n"
                          "  ROOT c = f32[1,3,3,2] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f\n}\n").module()
    assert fusing.run(module) is module and "fuse-patterns" in fusing.declined[0]


def test_without_the_guard_the_convolution_would_be_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD + CONV + "  %1 = nn.relu(%0);\n  add(%0, %1)\n}\n"
    monkeypatch.setattr(GraphMutator, "needed_elsewhere", lambda self, node, by: [])
    found, _ = ops(text)
    assert found.count("nn.conv2d") + found.count("nn.conv2d_relu") == 2


def test_the_command_prints_it_in_the_style_of_the_input_and_verifies(tmp_path: Path) -> None:
    path = tmp_path / "m.relay"
    path.write_text(HEAD + CONV + "  %1 = nn.relu(%0);\n  return %1;\n}\n")
    done = CliRunner().invoke(group, ["opt", str(path), "--passes", "fuse-conv-relu", "--verify"])
    assert done.exit_code == 0, done.stderr
    assert "nn.conv2d_relu(%x, %w, strides=[2, 1]" in done.stdout
    assert "return %0;" in done.stdout
    assert "the same" in done.stderr
