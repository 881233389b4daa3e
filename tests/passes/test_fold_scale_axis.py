"""Scales go into weights, forward and backward, in every layout; and stay where that would change the numbers."""
from __future__ import annotations

from random import Random

import pytest

import irscope
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.manager import run_passes
from irscope.source import UserError
from tests.passes.relay_runs import meaning_stays

LEAVES = ("parameter", "constant")
X, W = "%x: Tensor[(2, 4, 6, 6), float32]", "%w: Tensor[(4, 4, 3, 3), float32]"
S = "%s: Tensor[(4, 1, 1), float32]"
CONV = "nn.conv2d({}, {}, padding=[1, 1], channels=4, kernel_size=[3, 3])"
POSITIVE, NEGATIVE, ZERO = ("[[[1.5f]], [[2f]], [[0.25f]], [[3f]]]", "[[[1.5f]], [[-2f]], [[0.25f]], [[3f]]]",
                            "[[[1.5f]], [[0f]], [[0.25f]], [[3f]]]")


def constant(numbers: str, shape: str = "(4, 1, 1)") -> str:
    return f"hlo.constant(value={numbers}) /* ty=Tensor[{shape}, float32] */"


def folded(signature: str, body: str, options: str = "") -> tuple[Module, tuple[str, ...]]:
    """The module after the pass, and what it declined; types hold and the numbers stay."""
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, ["fold-scale-axis" + options])
    assert not last.broke, [f.message for f in last.broke]
    meaning_stays(module, last.after, 1e-4, 1e-4)
    return last.after, last.declined


def products(module: Module) -> list[str]:
    """What is multiplied in the end: the types of the products."""
    return [str(n.type) for n in module.main().nodes if n.op.name == "multiply"]


@pytest.mark.parametrize(("signature", "body", "left"), [
    (f"{X}, {W}, {S}", f"  %0 = {CONV.format('%x', '%w')};\n  multiply(%0, %s)", ["f32[4,4,3,3]"]),
    (f"{X}, {W}, {S}", f"  %0 = {CONV.format('%x', '%w')};\n  multiply(%0, 2f)", ["f32[4,4,3,3]"]),
    (f"{X}, {W}, {S}, %b: Tensor[(4), float32]",
     f"  %0 = {CONV.format('%x', '%w')};\n  %1 = nn.bias_add(%0, %b);\n  multiply(%s, %1)", ["f32[4,4,3,3]", "f32[4]"]),
    (f"{X}, {W}, {S}", f"  %0 = {CONV.format('%x', '%w')};\n  %1 = {CONV.format('%x', '%w')};\n  %2 = subtract(%0, nn.relu(%1));\n"
     f"  %3 = {constant(POSITIVE)};\n  multiply(%2, %3)", ["f32[4,4,3,3]", "f32[4,4,3,3]"]),
    (f"{X}, {W}, {S}", f"  %0 = {CONV.format('%x', '%w')};\n  %1 = add(%x, %0);\n  multiply(%1, %s)", ["f32[2,4,6,6]"]),
    (f"{X}, {W}, {S}", f"  %0 = multiply(%x, %s);\n  {CONV.format('%0', '%w')}", ["f32[4,4,3,3]"]),
    (f"{X}, {W}, {S}", f"  %0 = multiply(%x, %s);\n  %1 = {CONV.format('%0', '%w')};\n  %2 = {CONV.format('%0', '%w')};\n  add(%1, %2)",
     ["f32[4,4,3,3]", "f32[4,4,3,3]"]),
    (f"{X}, {W}, {S}", f"  %0 = {constant(NEGATIVE)};\n  %1 = multiply(%x, %0);\n  %2 = add(%1, %s);\n  {CONV.format('%2', '%w')}",
     ["f32[4,4,3,3]"]),
    ("%x: Tensor[(2, 6, 6, 4), float32], %w: Tensor[(3, 3, 4, 1), float32], %s: Tensor[(4), float32]",
     '  %0 = nn.conv2d(%x, %w, groups=4, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI");\n  multiply(%0, %s)',
     ["f32[3,3,4,1]"]),
    ("%x: Tensor[(2, 2, 5, 5, 2), float32], %w: Tensor[(4, 2, 3, 3, 2, 3), float32], %s: Tensor[(4, 1, 1, 3), float32]",
     '  %0 = nn.conv2d(%x, %w, channels=12, kernel_size=[3, 3], data_layout="NCHW2c", kernel_layout="OIHW2i3o", out_layout="NCHW3c");\n'
     "  multiply(%0, %s)", ["f32[4,2,3,3,2,3]"]),
    ("%x: Tensor[(2, 2, 5, 5, 2), float32], %w: Tensor[(4, 2, 3, 3, 2, 3), float32], %s: Tensor[(2, 1, 1, 2), float32]",
     '  %0 = multiply(%x, %s);\n  nn.conv2d(%0, %w, channels=12, kernel_size=[3, 3], data_layout="NCHW2c", kernel_layout="OIHW2i3o", '
     'out_layout="NCHW3c")', ["f32[4,2,3,3,2,3]"]),
    ("%x: Tensor[(3, 5), float32], %w: Tensor[(4, 5), float32], %s: Tensor[(4), float32], %t: Tensor[(5), float32]",
     "  %0 = multiply(%x, %t);\n  %1 = nn.dense(%0, %w, units=4);\n  multiply(%1, %s)", ["f32[4,5]", "f32[4,5]"]),
    ("%x: Tensor[(3, 5), float32], %w: Tensor[(5, 4), float32], %s: Tensor[(4), float32], %t: Tensor[(5), float32]",
     "  %0 = multiply(%x, %t);\n  %1 = nn.matmul(%0, %w, units=4);\n  multiply(%1, %s)", ["f32[5,4]", "f32[5,4]"]),
    (f"{X}, %g: Tensor[(4, 2, 3, 3), float32], {S}",
     "  %0 = nn.conv2d(%x, %g, groups=2, padding=[1, 1], channels=4, kernel_size=[3, 3]);\n  multiply(%0, %s)", ["f32[4,2,3,3]"]),
    (f"{X}, {W}, {S}", f"  %0 = {CONV.format('%x', '%w')};\n  %1 = nn.relu(%0);\n  %2 = {constant('[1.5f, 2f, 0.25f, 3f]', '(4)')};\n"
     "  %3 = reshape(%2, newshape=[4, 1, 1]);\n  multiply(%1, %3)", ["f32[4,4,3,3]"]),
    ("%x: Tensor[(1, 4, 7), float32], %w: Tensor[(6, 4, 3), float32], %s: Tensor[(6, 1), float32]",
     "  %0 = nn.conv1d(%x, %w, channels=6, kernel_size=[3]);\n  %1 = exp(%s);\n  multiply(%0, %1)", ["f32[6,4,3]"]),
])
def test_scales_go_into_the_weights(signature: str, body: str, left: list[str]) -> None:
    made, declined = folded(signature, body)
    assert products(made) == left and not declined


@pytest.mark.parametrize(("body", "why"), [
    (f"  %0 = {CONV.format('%x', '%w')};\n  %1 = nn.relu(%0);\n  multiply(%1, {constant(NEGATIVE)})", "not positive everywhere, and nn.relu"),
    (f"  %0 = {CONV.format('%x', '%w')};\n  %1 = nn.relu(%0);\n  multiply(%1, %s)", "numbers that the text does not tell, and nn.relu"),
    (f"  %0 = multiply(%x, {constant(NEGATIVE)});\n  %1 = nn.leaky_relu(%0);\n  {CONV.format('%1', '%w')}", "not positive everywhere, and nn.leaky"),
    (f"  %0 = multiply(%x, {constant(ZERO)});\n  %1 = add(%0, %s);\n  {CONV.format('%1', '%w')}", "is 0 somewhere, and add would divide"),
    (f"  %0 = multiply(%x, {constant(POSITIVE.replace('3f', 'inff'))});\n  %1 = add(%0, %s);\n  {CONV.format('%1', '%w')}", "is 0 somewhere, and add"),
    (f"  %0 = multiply(%x, %s);\n  %1 = add(%0, %s);\n  {CONV.format('%1', '%w')}", "numbers that the text does not tell, and add"),
    (f"  %0 = {CONV.format('%x', '%w')};\n  multiply(%0, %row)", "other axes than the channels"),
    (f"  %0 = {CONV.format('%x', '%w')};\n  %1 = mean(%x, axis=[0, 2, 3]);\n  multiply(%0, reshape(%1, newshape=[4, 1, 1]))", "computed from data"),
])
def test_what_stays_is_told_with_the_reason(body: str, why: str) -> None:
    made, declined = folded(f"{X}, {W}, {S}, %row: Tensor[(6), float32]", body)
    assert why in " ".join(declined) and products(made) == ["f32[2,4,6,6]"]


@pytest.mark.parametrize("body", [
    f"  %0 = {CONV.format('%x', '%w')};\n  %1 = multiply(%0, %s);\n  add(%1, nn.relu(%0))",
    f"  %0 = multiply(%x, %s);\n  %1 = {CONV.format('%0', '%w')};\n  add(%1, %0)",
    f"  %0 = {CONV.format('%x', '%w')};\n  %1 = tanh(%0);\n  multiply(%1, %s)",
    f"  %0 = {CONV.format('%x', '%w')};\n  multiply(%0, %x)",
    "  %0 = multiply(%x, %s);\n  nn.conv2d(%0, %g, groups=2, padding=[1, 1], channels=4, kernel_size=[3, 3])",
    "  multiply(%x, %s)",
])
def test_values_that_others_read_stay_and_what_grouped_convolutions_read(body: str) -> None:
    made, declined = folded(f"{X}, {W}, {S}, %g: Tensor[(4, 2, 3, 3), float32]", body)
    assert products(made) == ["f32[2,4,6,6]"] and not declined


def test_integers_stay() -> None:
    """A product of small integers may not fit the weights."""
    module = irscope.load("def @main(%x: Tensor[(1, 4, 5, 5), int8], %w: Tensor[(4, 4, 3, 3), int8], %s: Tensor[(4, 1, 1), int32]) {\n"
                          '  %0 = nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3], out_dtype="int32");\n  multiply(%0, %s)\n}\n').module()
    *_, last = run_passes(module, ["fold-scale-axis"])
    assert products(last.after) == ["s32[1,4,3,3]"]


def test_a_scale_that_is_computed_behind_its_convolution_is_computed_before_it() -> None:
    made, _ = folded(f"{X}, {W}, {S}", f"  %0 = {CONV.format('%x', '%w')};\n  %1 = exp(%s);\n  %2 = tanh(%1);\n  multiply(%0, %2)")
    names = [n.op.name for n in made.main().nodes if n.op.name not in LEAVES]
    assert names == ["exp", "tanh", "squeeze", "expand_dims", "multiply", "nn.conv2d"]


def test_two_branches_share_one_scale() -> None:
    made, _ = folded(f"{X}, {W}, {S}", f"  %0 = {CONV.format('%x', '%w')};\n  %1 = {CONV.format('%x', '%w')};\n  %2 = add(%0, %1);\n  multiply(%2, %s)")
    assert [n.op.name for n in made.main().nodes].count("squeeze") == 1


def test_one_direction_can_be_asked_for() -> None:
    body = f"  %0 = multiply(%x, %s);\n  %1 = {CONV.format('%0', '%w')};\n  multiply(%1, %s)"
    assert products(folded(f"{X}, {W}, {S}", body, "{direction=forward}")[0]) == ["f32[4,4,3,3]", "f32[2,4,6,6]"]
    assert products(folded(f"{X}, {W}, {S}", body, "{direction=backward}")[0]) == ["f32[2,4,6,6]", "f32[4,4,3,3]"]
    with pytest.raises(UserError, match="no direction"):
        pass_named("fold-scale-axis{direction=up}")


def test_weights_of_packed_layouts_are_solved() -> None:
    module = irscope.load('def @main(%x: Tensor[(2, 3, 10, 10, 2), float32], %w) {\n  nn.conv2d(%x, %w, channels=8, kernel_size=[3, 3], '
                          'data_layout="NCHW2c", kernel_layout="OIHW3i4o")\n}\n').module()
    assert str(module.main().params[1].type) == "f32[2,2,3,3,3,4]"


def program(seed: int) -> str:
    """Random layers with scales in front of and behind them, some of them shared, in NCHW or NHWC."""
    random = Random(seed)
    wide, shape = ("(1, 4, 5, 5)", "(4, 1, 1)") if seed % 2 else ("(1, 5, 5, 4)", "(4)")
    layouts = "" if seed % 2 else ', data_layout="NHWC", kernel_layout="HWIO"'
    weight = "(4, 4, 3, 3)" if seed % 2 else "(3, 3, 4, 4)"
    lines: list[str] = []
    values = ["%x"]
    params = [f"%x: Tensor[{wide}, float32]", f"%w: Tensor[{weight}, float32]", f"%s: Tensor[{shape}, float32]", "%b: Tensor[(4), float32]"]
    while len(lines) < 16:
        value = values[-1 - min(int(random.expovariate(1.2)), len(values) - 1)]
        kind = random.choice(["conv", "conv", "scale", "scale", "number", "relu", "add", "bias", "sum"])
        numbers = [random.choice([0.5, 1.5, 2, 3] + [-1, 0] * (random.random() < 0.3)) for _ in range(4)]
        text = ", ".join(f"{n}f" if shape == "(4)" else f"[[{n}f]]" for n in numbers)
        made = {
            "conv": f"nn.conv2d({value}, %w, padding=[1, 1], channels=4, kernel_size=[3, 3]{layouts})",
            "scale": f"multiply({value}, %s)", "number": f"multiply({constant(f'[{text}]', shape)}, {value})",
            "relu": f"nn.relu({value})", "add": f"add(%s, {value})", "bias": f"nn.bias_add({value}, %b, axis={1 if seed % 2 else -1})",
            "sum": f"add({value}, {random.choice(values)})",
        }[kind]
        lines.append(f"  %{len(lines)} = {made};")
        values.append(f"%{len(lines) - 1}")
    return f"def @main({', '.join(params)}) {{\n" + "\n".join(lines) + f"\n  ({values[-1]}, {values[-5]})\n}}\n"


@pytest.mark.parametrize("seed", range(16))
def test_random_layers_keep_their_numbers(seed: int) -> None:
    module = irscope.load(program(seed)).module()
    *_, last = run_passes(module, ["fold-scale-axis"])
    assert not last.broke, [f.message for f in last.broke]
    meaning_stays(module, last.after, 2e-3, 2e-3)
