"""Composites are recognised in every format, as JAX, torch and Relay write them; and a near miss names its odd node."""

from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.analysis.recognise.parts import Composite
from irscope.lint import Context, find_rule, lint_module
from irscope.lint.rules.pattern_near_miss import composites
from irscope.source import Severity

FOLDER = Path(__file__).parent / "patterns"
"""Small programs of our own: printed by jax 0.10.2 (.hlo) and torch 2.13 (.txt), written by hand in Relay."""
EXPECTED = {
    "softmax": ["softmax"],
    "attention": ["softmax", "attention"],
    "layernorm": ["layer normalisation"],
    "rmsnorm": ["RMS normalisation"],
    "gelu_tanh": ["GELU"],
    "gelu_erf": ["GELU"],
    "linear_gelu": ["GELU", "product with bias and GELU"],
    "swiglu": ["SwiGLU"],
    "rope": ["rotary embedding"],
    "rope_pairs": ["rotary embedding"],
    "conv_bn_relu": ["convolution, batch normalisation and ReLU"],
}


def found(text: str, format: str) -> list[Composite]:
    context = Context(irscope.load(text, format=format).module())
    assert context.view.primitive is not None
    return [found for found, _ in composites(context.inner.view)]


@pytest.mark.parametrize("suffix", ["hlo", "txt", "relay"])
@pytest.mark.parametrize("name", EXPECTED)
def test_each_composite_is_recognised_in_each_format(name: str, suffix: str) -> None:
    text = (FOLDER / f"{name}.{suffix}").read_text()
    told = found(text, {"hlo": "hlo", "txt": "torchscript", "relay": "relay"}[suffix])
    assert [one.what for one in told] == EXPECTED[name]
    assert [one.odd for one in told if one.odd is not None] == []


NEAR = {
    # name of the program: (text in it, text instead, the odd node, what is said, whether it is wrong)
    "rmsnorm.hlo": ("rsqrt(add.1)", "rsqrt(div.1)", "rsqrt.1", "nothing is added under the root", False),
    "layernorm.relay": ("nn.layer_norm(%x, %g, %b, epsilon=1e-05f)", "%0 = mean(%x, axis=[-1], keepdims=True);\n  %1 = subtract(%x, %0);\n"
                        "  %2 = multiply(%1, %1);\n  %3 = sum(%2, axis=[-1], keepdims=True);\n  %4 = divide(%3, 15f);\n  %5 = add(%4, 1e-05f);\n"
                        "  %6 = rsqrt(%5);\n  multiply(%1, %6)", "3", "of 16 squares is divided by 15", False),
    "rmsnorm.relay": ("%2 = add(%1, 1e-06f);\n  %3 = rsqrt(%2);\n  %4 = multiply(%x, %3);",
                      "%2 = sqrt(%1);\n  %3 = add(%2, 1e-06f);\n  %4 = divide(%x, %3);", "3", "adds epsilon after the root", False),
    "rope.relay": ("%1 = negative(%0);", "%1 = abs(%0);", "", "", False),
    "rope_pairs.relay": ("%7 = add(%5, %6);", "%7 = subtract(%5, %6);", "7", "both %4 and %7 subtract", True),
    "swiglu.relay": ("%1 = sigmoid(%0);", "%9 = multiply(%0, 1.702f);\n  %1 = sigmoid(%9);", "1", "the sigmoid of 1.702 times the gate", False),
    "linear_gelu.relay": ("%1 = nn.bias_add(%0, %b);", "%8 = cast(%0, dtype=\"float16\");\n  %9 = cast(%8, dtype=\"float32\");\n"
                          "  %1 = nn.bias_add(%9, %b);", "9", "is between the product and the bias", False),
    "conv_bn_relu.relay": ("nn.relu(%2)", "%3 = cast(%2, dtype=\"float16\");\n  nn.relu(%3)", "3", "(convert) is between them", False),
    "gelu_tanh.relay": ("0.797885f", "0.85f", "4", "its scale is 0.85", False),
    "attention.relay": ("%2 = nn.softmax(%1);", "%2 = nn.softmax(%1, axis=1);", "", "the softmax is over axis 1", True),
}  # fmt: skip


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_names_the_odd_node(name: str) -> None:
    before, after, node, says, wrong = NEAR[name]
    text = (FOLDER / name).read_text()
    assert before in text
    format = name.rpartition(".")[2]
    findings = lint_module(irscope.load(text.replace(before, after), format=format).module(), [find_rule("FUS016")])
    if not says:  # another function altogether, of which nothing is said
        assert findings == []
        return
    (finding,) = findings
    assert says in finding.message
    assert not node or finding.node == node
    assert finding.severity is (Severity.WARNING if wrong else Severity.INFO)


@pytest.mark.parametrize(
    ("parts", "says", "wrong"),
    [
        ("-b, a", "", False),
        ("b, a", "neither half is negated", True),
        ("-a, b", "the halves are in the same order", True),
        ("b, -a", "negates the first half", False),
        ("-b, -a", "both halves are negated", True),
    ],
)
def test_halves_that_are_turned(parts: str, says: str, wrong: bool) -> None:
    """Rotary embeddings over halves, with the halves and their signs as given."""
    lines = [
        "HloModule m\n\nENTRY e {", "  x = f32[4,16] parameter(0)", "  c = f32[4,16] parameter(1)", "  s = f32[4,16] parameter(2)",
        "  a = f32[4,8] slice(x), slice={[0:4], [0:8]}", "  b = f32[4,8] slice(x), slice={[0:4], [8:16]}",
        "  na = f32[4,8] negate(a)", "  nb = f32[4,8] negate(b)",
        f"  t = f32[4,16] concatenate({parts.replace('-', 'n')}), dimensions={{1}}",
        "  u = f32[4,16] multiply(x, c)", "  v = f32[4,16] multiply(t, s)", "  ROOT r = f32[4,16] add(u, v)", "}",
    ]  # fmt: skip
    (composite,) = found("\n".join(lines), "hlo")
    assert composite.what == "rotary embedding"
    if not says:
        assert composite.odd is None
        return
    assert composite.odd is not None
    assert says in composite.odd.says
    assert composite.odd.wrong is wrong
