"""Who works on halves, who does not, who follows; and how far the numbers may be away."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.manager import run_passes
from irscope.source import UserError
from tests.passes.image_graphs import image_program
from tests.passes.relay_runs import outputs

SIZE = 16
"""Operators of a random program."""
ROUNDOFF = {"float16": 2.0 ** -11, "bfloat16": 2.0 ** -8}
"""Half the distance from 1 to the next number (IEEE 754; bfloat16 keeps 8 bits)."""
GROWTH = 4
"""How much an operator here may enlarge an error relative to the largest value: sums over a kernel average it, normalisation of a small
spread enlarges it. Measured over 150 programs: at most 0.6 of ``SIZE * ROUNDOFF`` for float16, 1.0 for bfloat16; the rest is room."""
X, W = "%x: Tensor[(2, 4, 6, 6), float32]", "%w: Tensor[(4, 4, 3, 3), float32]"
CONV = "  %0 = nn.conv2d(%x, %w, padding=[1, 1], channels=4, kernel_size=[3, 3]);\n"


def close(before: Module, after: Module, dtype: str = "float16", seed: int = 0) -> None:
    """The same types, and numbers within what halves can tell."""
    bound = SIZE * ROUNDOFF[dtype] * GROWTH
    for a, b in zip(outputs(before, seed), outputs(after, seed, before), strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        x, y = a.astype(np.float64), b.astype(np.float64)
        assert np.max(np.abs(x - y), initial=0.0) <= bound * max(1.0, float(np.max(np.abs(x), initial=0.0)))


def mixed(signature: str, body: str, options: str = "") -> Module:
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, ["to-mixed-precision" + options])
    assert not last.broke, [f.message for f in last.broke]
    close(module, last.after)
    return last.after


def typed(module: Module) -> list[str]:
    """Operators and their element types."""
    return [f"{n.op.name} {str(n.type).partition('[')[0]}" for n in module.main().nodes if n.op.name not in ("parameter", "constant", "tuple")]


HALVES = ["cast f16", "cast f16", "nn.conv2d f32", "cast f16"]
"""What CONV becomes: data and weights, the sum in single precision, and its half."""


@pytest.mark.parametrize(("body", "left"), [
    ("  nn.relu(%0)", [*HALVES, "nn.relu f16", "cast f32"]),
    ("  nn.softmax(%0)", [*HALVES[:3], "nn.softmax f32"]),
    ("  nn.relu(nn.softmax(%0))", [*HALVES[:3], "nn.softmax f32", "nn.relu f32"]),
    ("  nn.bias_add(%0, %b)", [*HALVES, "cast f16", "nn.bias_add f16", "cast f32"]),
    ("  add(%0, exp(%x))", [*HALVES[:3], "exp f32", "add f32"]),
    ("  add(%0, %x)", [*HALVES, "add f16", "cast f32"]),
    ("  multiply(%0, 2f)", [*HALVES, "cast f16", "multiply f16", "cast f32"]),
    ("  concatenate((%0, nn.relu(%0)), axis=1)", [*HALVES, "nn.relu f16", "concatenate f16", "cast f32"]),
    ("  %1 = split(%0, indices_or_sections=2, axis=1);\n  tanh(%1.0)", [*HALVES, "split (f16", "get-tuple-element f16", "tanh f16", "cast f32"]),
    ("  split(%0, indices_or_sections=2, axis=1)",
     [*HALVES, "split (f16", "get-tuple-element f16", "get-tuple-element f16", "cast f32", "cast f32"]),
    ("  %1 = nn.dropout(%0);\n  nn.relu(%1.0)", [*HALVES, "nn.dropout (f16", "get-tuple-element f16", "nn.relu f16", "cast f32"]),
    ("  %1 = nn.batch_norm(%0, %b, %b, %b, [1.0, 2.0, 0.5, 1.5]);\n  nn.relu(%1.0)",
     [*HALVES, "cast f16", "cast f16", "nn.batch_norm (f16", "get-tuple-element f16", "nn.relu f16", "cast f32"]),
    ("  take(%0, %i, axis=1)", [*HALVES, "take f16", "cast f32"]),
    ("  where(greater(%0, 0f), %0, %x)", [*HALVES, "cast f16", "greater pred", "where f16", "cast f32"]),
    ("  nn.global_avg_pool2d(%0)", [*HALVES[:3], "nn.global_avg_pool2d f32"]),
    ('  cast(%0, dtype="float64")', [*HALVES[:3], "cast f64"]),
    ("  nn.conv2d(%0, %w, padding=[1, 1], channels=4, kernel_size=[3, 3])", [*HALVES, "nn.conv2d f32"]),
])
def test_lists_decide(body: str, left: list[str]) -> None:
    made = mixed(f"{X}, {W}, %b: Tensor[(4), float32], %i: Tensor[(3), int32]", CONV + body)
    assert typed(made) == left and [str(p.type) for p in made.main().params[:2]] == ["f32[2,4,6,6]", "f32[4,4,3,3]"]


@pytest.mark.parametrize(("signature", "body"), [
    ("%x: Tensor[(2, 4), float32], %y: Tensor[(4), float32]", "  tanh(add(%x, %y))"),
    ("%x: Tensor[(2, 4), float16], %w: Tensor[(3, 4), float16]", "  nn.dense(%x, %w, units=3)"),
    ("%x: Tensor[(2, 4), int8], %w: Tensor[(3, 4), int8]", '  nn.dense(%x, %w, units=3, out_dtype="int32")'),
    ("%x: Tensor[(2, 4), float64], %w: Tensor[(3, 4), float64]", "  nn.relu(nn.dense(%x, %w, units=3))"),
])
def test_what_has_nothing_heavy_in_single_precision_stays(signature: str, body: str) -> None:
    module = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n").module()
    assert typed(pass_named("to-mixed-precision").run(module)) == typed(module)


def test_what_is_moved_on_its_way_is_converted_before() -> None:
    made = mixed("%x: Tensor[(2, 4), float32], %w: Tensor[(4, 3), float32]", "  %0 = transpose(%w, axes=[1, 0]);\n  nn.dense(%x, %0, units=3)")
    assert typed(made) == ["cast f16", "transpose f16", "cast f16", "nn.dense f32"]


def test_sums_and_lists_are_options() -> None:
    body = CONV + "  nn.softmax(nn.relu(%0))"
    assert typed(mixed(f"{X}, {W}", body, "{accumulate=float16}")) == ["cast f16", "cast f16", "nn.conv2d f16", "nn.relu f16", "cast f32",
                                                                      "nn.softmax f32"]
    assert typed(mixed(f"{X}, {W}", body, "{follow=nn.softmax}"))[-3:] == ["nn.relu f16", "nn.softmax f16", "cast f32"]
    assert typed(mixed(f"{X}, {W}", body, "{never=nn.relu+nn.softmax}"))[-2:] == ["nn.relu f32", "nn.softmax f32"]
    assert typed(mixed("%x: Tensor[(2, 4), float32]", "  tanh(%x)", "{always=tanh}")) == ["cast f16", "tanh f16", "cast f32"]


@pytest.mark.parametrize(("options", "words"), [
    ("dtype=int8", "makes no"), ("accumulate=float64", "sums in no"), ("never=nn.sofmax", "no operator 'nn.sofmax'")])
def test_options_that_make_no_sense(options: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        pass_named(f"to-mixed-precision{{{options}}}")


@pytest.mark.parametrize("options", ["", "{dtype=bfloat16}", "{accumulate=float16}"])
def test_random_images_stay_within_what_halves_can_tell(options: str) -> None:
    for seed in range(10):
        module = irscope.load(image_program(seed, SIZE, places=False)).module()
        *_, last = run_passes(module, ["to-mixed-precision" + options])
        assert not last.broke, (seed, [f.message for f in last.broke])
        close(module, last.after, "bfloat16" if "bf" in options else "float16", seed)
