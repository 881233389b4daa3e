"""Recognisers find composites as JAX, torch and Relay write them, name what is odd about one, and leave other functions alone."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import irscope
from irscope.analysis.recognise import RECOGNISERS
from irscope.analysis.recognise.attention import softmaxes
from irscope.analysis.recognise.epilogues import biased_gelus, normalised_convolutions
from irscope.analysis.recognise.gated import swiglus
from irscope.analysis.recognise.gelu import gelus
from irscope.analysis.recognise.norms import normalisations
from irscope.analysis.recognise.parts import Composite, Users, scaled, sigmoid, squared, summed
from irscope.analysis.recognise.rope import rotations_of_halves, rotations_of_pairs
from irscope.analysis.recognise.softmax import softmax
from irscope.expand import expand
from irscope.graph import Graph, Node
from irscope.ops import hlo

PROGRAMS = Path(__file__).resolve().parent.parent / "lint" / "patterns"
"""Small programs of our own: printed by jax 0.10.2 (.hlo) and torch 2.13 (.txt), written by hand in Relay."""
FORMATS = {"hlo": "hlo", "txt": "torchscript", "relay": "relay"}
Recognise = Callable[[Node, Users], Iterator[Composite]]
FOUND: dict[str, tuple[Recognise, str]] = {
    # name of the program: (recogniser, what it finds)
    "softmax": (softmaxes, "softmax"),
    "attention": (softmaxes, "attention"),
    "layernorm": (normalisations, "layer normalisation"),
    "rmsnorm": (normalisations, "RMS normalisation"),
    "gelu_tanh": (gelus, "GELU"),
    "gelu_erf": (gelus, "GELU"),
    "linear_gelu": (biased_gelus, "product with bias and GELU"),
    "swiglu": (swiglus, "SwiGLU"),
    "rope": (rotations_of_halves, "rotary embedding"),
    "rope_pairs": (rotations_of_pairs, "rotary embedding"),
    "conv_bn_relu": (normalised_convolutions, "convolution, batch normalisation and ReLU"),
}


def primitives(name: str, **changes: str) -> Graph:
    """The primitives of a program, in which ``before`` is replaced by ``after``."""
    text = (PROGRAMS / name).read_text()
    if changes:
        assert changes["before"] in text
        text = text.replace(changes["before"], changes["after"])
    return expand(irscope.load(text, format=FORMATS[name.rpartition(".")[2]]).module(), True).main()


def entry(*instructions: str) -> Graph:
    """A graph of HLO over ``x`` and ``y`` of eight numbers."""
    reducer = "sum {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b)\n}\n"
    lines = ["x = f32[8] parameter(0)", "y = f32[8] parameter(1)", *instructions]
    return irscope.load(f"HloModule m\n{reducer}ENTRY e {{\n " + "\n ".join(lines) + "\n}\n", format="hlo").module().main()


def found(graph: Graph, recognise: Recognise) -> list[Composite]:
    users = graph.users()
    (ops,) = (row.ops for row in RECOGNISERS if row.recognise is recognise)
    return [composite for node in graph.nodes if node.op in ops for composite in recognise(node, users)]


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("name", FOUND)
def test_each_recogniser_finds_its_composite_in_each_format(name: str, suffix: str) -> None:
    recognise, what = FOUND[name]
    composites = found(primitives(f"{name}.{suffix}"), recognise)
    assert [(one.what, one.odd) for one in composites] == [(one, None) for one in (["softmax"] if what == "attention" else []) + [what]]


@pytest.mark.parametrize("name", ["softmax", "layernorm", "gelu_tanh", "swiglu", "rope", "conv_bn_relu"])
def test_recognisers_leave_other_composites_alone(name: str) -> None:
    graph = primitives(f"{name}.hlo")
    others = [row.recognise for row in RECOGNISERS if row.recognise is not FOUND[name][0]]
    assert [composite.what for recognise in others for composite in found(graph, recognise)] == []


ODD = [
    # (program, text in it, text instead, what is said, whether it is wrong)
    ("softmax.hlo", "reduce(x.1, constant.5), dimensions={1}", "reduce(x.1, constant.5), dimensions={0}", "takes its maximum over axis 0", True),
    ("attention.relay", "nn.softmax(%1)", "nn.softmax(%1, axis=1)", "the softmax is over axis 1", True),
    ("attention.relay", "nn.batch_matmul(%2, %v", "%3 = multiply(%2, 2f);\n  nn.batch_matmul(%3, %v", "scales after the softmax", False),
    ("rmsnorm.hlo", "rsqrt(add.1)", "rsqrt(div.1)", "nothing is added under the root", False),
    ("rmsnorm.relay", "%2 = add(%1, 1e-06f);\n  %3 = rsqrt(%2);\n  %4 = multiply(%x, %3);",
     "%2 = sqrt(%1);\n  %3 = add(%2, 1e-06f);\n  %4 = divide(%x, %3);", "adds epsilon after the root", False),
    ("gelu_tanh.hlo", "constant(0.797884583)", "constant(0.85)", "its scale is 0.85", False),
    ("gelu_tanh.hlo", "constant(0.044715)", "constant(0.0347)", "its cubic term is 0.0347", False),
    ("gelu_erf.relay", "0.707107f", "0.75f", "its scale is 0.75", False),
    ("swiglu.relay", "%1 = sigmoid(%0);", "%9 = multiply(%0, 1.702f);\n  %1 = sigmoid(%9);", "the sigmoid of 1.702 times the gate", False),
    ("swiglu.relay", "nn.dense(%x, %v);", "nn.dense(tanh(%x), %v);", "is a product of %x and", False),
    ("swiglu.relay", "%2 = multiply(%0, %1);", "%9 = cast(cast(%0, dtype=\"float16\"), dtype=\"float32\");\n  %2 = multiply(%9, %1);",
     "its sigmoid is of the other type", False),
    ("rope.hlo", "concatenate(neg.1, split.2)", "concatenate(split.3, split.2)", "neither half is negated", True),
    ("rope_pairs.relay", "%7 = add(%5, %6);", "%7 = subtract(%5, %6);", "subtract, so nothing is rotated", True),
    ("linear_gelu.relay", "%1 = nn.bias_add(%0, %b);",
     "%8 = cast(%0, dtype=\"float16\");\n  %9 = cast(%8, dtype=\"float32\");\n  %1 = nn.bias_add(%9, %b);", "is between the product", False),
    ("conv_bn_relu.relay", "nn.relu(%2)", "%3 = cast(%2, dtype=\"float16\");\n  nn.relu(%3)", "is between them", False),
]  # fmt: skip


@pytest.mark.parametrize(("name", "before", "after", "says", "wrong"), ODD)
def test_a_near_miss_says_what_is_odd(name: str, before: str, after: str, says: str, wrong: bool) -> None:
    recognise, what = FOUND[name.partition(".")[0]]
    (composite,) = (one for one in found(primitives(name, before=before, after=after), recognise) if one.what == what)
    assert composite.odd is not None
    assert says in composite.odd.says
    assert composite.odd.wrong is wrong


def test_the_products_of_a_gate_may_share_their_weights() -> None:
    (composite,) = found(primitives("swiglu.relay", before="nn.dense(%x, %v);", after="nn.dense(tanh(%x), %w);"), swiglus)
    assert (composite.what, composite.odd) == ("SwiGLU", None)


OTHER = [
    # (program, text in it, text instead): another function, and no near miss
    ("softmax.hlo", "divide(exp.1", "divide(x.1"),
    ("attention.hlo", " divide(", " maximum("),
    ("rmsnorm.hlo", "rsqrt(add.1)", "tanh(add.1)"),
    ("gelu_tanh.hlo", "multiply(integer_pow.2, x.1)", "multiply(integer_pow.2, integer_pow.2)"),
    ("gelu_tanh.hlo", "constant(0.797884583)", "parameter(1)"),
    ("swiglu.relay", "%2 = multiply(%0, %1);", "%2 = add(%0, %1);"),
    ("rope.relay", "%1 = negative(%0);", "%1 = abs(%0);"),
    ("conv_bn_relu.relay", "nn.relu(%2)", "tanh(%2)"),
]


@pytest.mark.parametrize(("name", "before", "after"), OTHER)
def test_another_function_is_no_composite(name: str, before: str, after: str) -> None:
    assert found(primitives(name, before=before, after=after), FOUND[name.partition(".")[0]][0]) == []


def test_the_parts_of_a_softmax() -> None:
    graph = primitives("softmax.hlo")
    (division,) = (node for node in graph.nodes if node.op is hlo.divide)
    parts = softmax(division)
    assert parts is not None and parts.difference is not None and parts.largest is not None
    assert (parts.result, parts.exponential.op, parts.difference.op, parts.axes) == (division, hlo.exponential, hlo.subtract, (1,))
    assert parts.largest.operands[0] is parts.difference.operands[0]


def test_a_softmax_without_its_maximum_is_one() -> None:
    graph = primitives("softmax.hlo", before="exponential(sub.7)", after="exponential(x.1)")
    (composite,) = found(graph, softmaxes)
    assert [node.op.name for node in composite.nodes] == ["exponential", "reduce"]


@pytest.mark.parametrize(("instructions", "factor"), [
    (("c = f32[] constant(4)", "b = f32[8] broadcast(c), dimensions={}", "ROOT r = f32[8] multiply(b, x)"), 4.0),
    (("c = f32[] constant(4)", "b = f32[8] broadcast(c), dimensions={}", "ROOT r = f32[8] divide(x, b)"), 0.25),
    (("c = f32[] constant(4)", "b = f32[8] broadcast(c), dimensions={}", "ROOT r = f32[8] divide(b, x)"), None),
    (("ROOT r = f32[8] multiply(x, y)",), None),
])
def test_factors_are_seen_in_products_and_quotients(instructions: tuple[str, ...], factor: float | None) -> None:
    graph = entry(*instructions)
    found_, rest = scaled(graph.result())
    assert (found_, rest.name) == (factor, "x" if factor is not None else "r")


def test_squares_are_seen_behind_casts() -> None:
    product = entry("a = f64[8] convert(x)", "b = f64[8] convert(x)", "ROOT r = f64[8] multiply(a, b)")
    power = entry("c = f32[] constant(2)", "b = f32[8] broadcast(c), dimensions={}", "ROOT r = f32[8] power(x, b)")
    other = entry("ROOT r = f32[8] multiply(x, y)")
    assert [value and value.name for value in (squared(graph.result()) for graph in (product, power, other))] == ["x", "x", None]


def test_a_mean_is_a_sum_with_a_divisor() -> None:
    graph = entry("z = f32[] constant(0)", "n = f32[] constant(8)", "s = f32[] reduce(x, z), dimensions={0}, to_apply=sum",
                  "ROOT m = f32[] divide(s, n)")
    reduction, divisor = summed(graph.result())
    assert (reduction and reduction.name, divisor) == ("s", 8.0)
    assert summed(graph.nodes[0]) == (None, 1.0)


def test_a_sigmoid_in_both_spellings() -> None:
    written_out = entry("c = f32[] constant(1)", "one = f32[8] broadcast(c), dimensions={}", "n = f32[8] negate(x)",
                        "e = f32[8] exponential(n)", "a = f32[8] add(one, e)", "ROOT r = f32[8] divide(one, a)")
    named = entry("ROOT r = f32[8] logistic(x)")
    growing = entry("c = f32[] constant(1)", "one = f32[8] broadcast(c), dimensions={}", "e = f32[8] exponential(x)",
                    "a = f32[8] add(one, e)", "ROOT r = f32[8] divide(one, a)")
    assert [value and value.name for value in (sigmoid(graph.result()) for graph in (written_out, named, growing))] == ["x", "x", None]


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "0"])
def test_a_sum_over_no_number_is_no_mean(number: str) -> None:
    text = ("add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
            "ENTRY e { x = f32[8] parameter(0)\n z = f32[] constant(0)\n s = f32[] reduce(x, z), dimensions={0}, to_apply=add\n"
            f"n = f32[] constant({number})\n ROOT r = f32[] divide(s, n) }}")
    assert summed(irscope.load(text).module().main().result())[0] is None
