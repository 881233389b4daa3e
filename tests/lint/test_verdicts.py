"""--why-not-fused A B: an edge that was asked for is told whatever became of it, and names that do not fit are met with those that would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import irscope
from irscope.lint.context import Context
from irscope.lint.kernels import Kernel
from irscope.lint.settings import Settings
from irscope.lint.verdicts import answer
from tests.conftest import Cli


def test_a_fused_edge_names_its_kernel(samples: Path, cli: Cli) -> None:
    told = cli("lint", samples / "dense.relay", "--why-not-fused", "0", "1", "--policy", "tvm", "--isolated", "--select", "CTL004")
    assert told.exit_code == 0
    assert "%0 -> %1  fused: all  (main)" in told.stdout
    assert "in the kernel of %2: a matrix product and what works on its result, 3 operators (%0, %1, %2)" in told.stdout
    assert "no rule of tvm@" in told.stdout


@pytest.mark.parametrize("policy", ["xla-cpu", "xla-gpu", "irscope"])
def test_a_kernel_that_reaches_into_a_called_function_is_named(samples: Path, policy: str) -> None:
    module = irscope.load(samples / "residual.pre.hlo").module()
    edges, kernels = answer(Context(module, Settings(policy)), ("mul.6", "mul.7"))
    (edge,) = edges
    kernel = kernels[edge]
    assert (edge.fused, kernel.name) == ("all", "max.3")
    assert {"mul.6", "mul.7", "add.8"} <= set(kernel.nodes)


def test_an_edge_that_is_apart_keeps_its_reason_and_has_no_kernel(samples: Path) -> None:
    module = irscope.load(samples / "residual.pre.hlo").module()
    (edge,), kernels = answer(Context(module, Settings("xla-cpu")), ("conv_general_dilated.2", "mul.7"))
    assert (edge.fused, edge.reason, kernels) == ("none", "operand can not be duplicated", {})


def test_the_order_of_decisions_is_told() -> None:
    kernel = Kernel("b", ("a", "b"), "map", 2, 7)
    assert kernel.describe() == "the kernel of %b: elementwise operators and movement, 2 operators (%a, %b); decision 2 of 7"


@pytest.mark.parametrize("format_", ["json", "concise", "markdown"])
def test_other_formats_tell_it_too(samples: Path, cli: Cli, format_: str) -> None:
    words = ("--why-not-fused", "0", "1", "--policy", "tvm", "--isolated", "--select", "CTL004", "--format", format_)
    text = cli("lint", samples / "dense.relay", *words).stdout
    if format_ == "json":
        (edge,) = json.loads(text)["files"][0]["edges"]
        assert edge["kernel"] == {"name": "2", "kind": "contraction", "nodes": ["0", "1", "2"]}
    else:
        assert "the kernel of %2" in text


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (("mull.6", "mul.7"), ["there is no node mull.6", "did you mean %mul.6"]),
        (("convolution", "mul.7"), ["there is no node convolution", "that is an operator", "%conv_general_dilated.2"]),
        (("add.8", "conv_general_dilated.3"), ["%jit_relu_.2 lies between them", "jit_relu_.2 conv_general_dilated.3"]),
        (("conv_general_dilated.3", "add.8"), ["%jit_relu_.2 lies between them"]),
        (("x.1", "add.9"), ["the text joins %x.1 and %add.9", "no verdict", "%conv_general_dilated.3 -> %add.9"]),
        (("scale.1", "shift.1"), ["no path leads from one to the other", "%scale.1 goes to %broadcast_in_dim.2"]),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, tuple) else "",
)
def test_what_cannot_be_answered_says_what_can(samples: Path, cli: Cli, pair: tuple[str, str], says: list[str]) -> None:
    told = cli("lint", samples / "residual.pre.hlo", "--why-not-fused", *pair, "--policy", "xla-cpu", "--isolated")
    assert told.exit_code == 2
    for words in says:
        assert words in told.stderr


def test_gates_look_at_what_is_called_too(samples: Path, cli: Cli) -> None:
    """JAX leaves a call for each function under jit: relu stands in one, and belongs to the kernel behind the convolution."""
    words = ("--policy", "xla-cpu", "--isolated", "--select", "CTL004")
    fused = cli("lint", samples / "residual.pre.hlo", "--require-fused", "multiply,add,maximum", *words)
    assert (fused.exit_code, fused.stdout.strip()) == (0, "no findings")
    counted = cli("lint", samples / "residual.pre.hlo", "--max-kernels", "3", *words)
    assert "xla-cpu makes 4 kernels of main.2, 3 are allowed" in counted.stdout


def test_a_chain_that_occurs_nowhere_says_where_it_ends(samples: Path, cli: Cli) -> None:
    words = ("--policy", "tvm", "--isolated", "--select", "CTL004")
    told = cli("lint", samples / "dense.relay", "--require-fused", "nn.dense,relu", "--require-fused", "nn.dense,ad", *words).stdout
    assert "no relu follows nn.dense, at %0 (dot) for one: add does" in told
    assert "no operator is called ad: did you mean add?" in told
