"""A normalisation goes into the weights of the layer before it, past a bias, whatever the layer; the numbers stay."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import Module
from irscope.passes.manager import run_passes
from tests.passes.relay_runs import meaning_stays

NORM = "%g: Tensor[(6), float32], %b: Tensor[(6), float32], %m: Tensor[(6), float32], %s: Tensor[(6), float32], %c: Tensor[(6), float32]"


def folded(signature: str, layer: str, body: str) -> tuple[Module, tuple[str, ...]]:
    """The module after the pass, and what it declined."""
    reading = irscope.load(f"def @main({signature}, {NORM}) {{\n  %0 = exp(%s);\n  %1 = {layer};\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, ["fold-batch-norm"])
    assert not last.broke, [f.message for f in last.broke]
    meaning_stays(module, last.after, 1e-4, 1e-4)
    return last.after, last.declined


LAYERS = [
    ("%x: Tensor[(2, 4, 5, 5), float32], %w: Tensor[(6, 4, 3, 3), float32]", "nn.conv2d(%x, %w, channels=6, kernel_size=[3, 3])", 1),
    ("%x: Tensor[(2, 5, 5, 4), float32], %w: Tensor[(3, 3, 4, 6), float32]",
     'nn.conv2d(%x, %w, channels=6, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")', 3),
    ("%x: Tensor[(2, 6, 5, 5), float32], %w: Tensor[(6, 1, 3, 3), float32]", "nn.conv2d(%x, %w, groups=6, channels=6, kernel_size=[3, 3])", 1),
    ("%x: Tensor[(2, 4, 5, 5), float32], %w: Tensor[(6, 2, 3, 3), float32]", "nn.conv2d(%x, %w, groups=2, channels=6, kernel_size=[3, 3])", 1),
    ("%x: Tensor[(2, 4, 9), float32], %w: Tensor[(6, 4, 3), float32]", "nn.conv1d(%x, %w, channels=6, kernel_size=[3])", 1),
    ("%x: Tensor[(1, 2, 4, 4, 4), float32], %w: Tensor[(6, 2, 3, 3, 3), float32]", "nn.conv3d(%x, %w, channels=6, kernel_size=[3, 3, 3])", 1),
    ("%x: Tensor[(3, 4), float32], %w: Tensor[(6, 4), float32]", "nn.dense(%x, %w, units=6)", 1),
    ("%x: Tensor[(3, 4), float32], %w: Tensor[(4, 6), float32]", "nn.matmul(%x, %w, units=6)", 1),
]


@pytest.mark.parametrize(("signature", "layer", "axis"), LAYERS)
@pytest.mark.parametrize("biased", [False, True])
def test_every_layer_takes_a_normalisation(signature: str, layer: str, axis: int, biased: bool) -> None:
    bias = f"  %2 = nn.bias_add(%1, %c, axis={axis});\n" if biased else ""
    made, declined = folded(signature, layer, f"{bias}  %3 = nn.batch_norm(%{2 if biased else 1}, %g, %b, %m, %0, axis={axis});\n  nn.relu(%3.0)")
    names = [n.op.name for n in made.main().nodes]
    assert not declined and names[-3:] == [layer.partition("(")[0], "nn.bias_add", "nn.relu"] and names.count("nn.bias_add") == 1


def test_types_that_differ_are_told() -> None:
    """A half-precision weight does not hold what single precision computes."""
    made, declined = folded("%x: Tensor[(2, 4, 8, 5), float16], %w: Tensor[(6, 4, 3, 3), float16]",
                            'nn.conv2d(%x, %w, channels=6, kernel_size=[3, 3], out_dtype="float32")',
                            "  %3 = nn.batch_norm(%1, %g, %b, %m, %0);\n  nn.relu(%3.0)")
    assert len(declined) == 1 and "its types are no floats, or differ" in declined[0]
    assert "nn.batch_norm" in [n.op.name for n in made.main().nodes]


@pytest.mark.parametrize(("body", "why"), [
    ("  %3 = nn.batch_norm(%1, %g, %b, %m, %0);\n  add(%3.0, %1)", "needs its plain result"),
    ("  %2 = nn.bias_add(%1, %c);\n  %3 = nn.batch_norm(%2, %g, %b, %m, %0);\n  add(%3.0, %2)", "needs its plain result"),
    ("  %3 = nn.batch_norm(%1, %g, %b, %m, %0, axis=2);\n  nn.relu(%3.0)", "normalises along another axis"),
    ("  %2 = nn.bias_add(%1, %c, axis=2);\n  %3 = nn.batch_norm(%2, %g, %b, %m, %0);\n  nn.relu(%3.0)", "runs along another axis"),
])
def test_what_stays_is_told_with_the_reason(body: str, why: str) -> None:
    made, declined = folded("%x: Tensor[(2, 4, 8, 5), float32], %w: Tensor[(6, 4, 3, 3), float32]", "nn.conv2d(%x, %w, channels=6, kernel_size=[3, 3])",
                            body)
    assert len(declined) == 1 and why in declined[0] and "nn.batch_norm" in [n.op.name for n in made.main().nodes]
