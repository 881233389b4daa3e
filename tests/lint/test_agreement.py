"""lint and --why-not-fused share one plan: what a finding states of an edge is the verdict on that edge."""

from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from benchmarks.lint_agreement import disagreements
from irscope.lint import Context, all_rules
from irscope.lint.run import lint_context
from irscope.lint.settings import Settings
from irscope.lint.unfused import unfused_edges
from irscope.lint.verdicts import answer
from irscope.source import UserError
from tests.conftest import Cli

HERE = Path(__file__).parent
TWO_CALLS = """HloModule jit_f, entry_computation_layout={(f32[2,8,8,8]{3,2,1,0}, f32[3,3,8,8]{3,2,1,0})->f32[2,8,8,8]{3,2,1,0}}

relu.1 {
  a.1 = f32[2,8,8,8]{3,2,1,0} parameter(0)
  c.1 = f32[] constant(0)
  z.1 = f32[2,8,8,8]{3,2,1,0} broadcast(c.1), dimensions={}
  ROOT m.1 = f32[2,8,8,8]{3,2,1,0} maximum(a.1, z.1)
}

ENTRY main.1 {
  x.1 = f32[2,8,8,8]{3,2,1,0} parameter(0)
  w.1 = f32[3,3,8,8]{3,2,1,0} parameter(1)
  conv.1 = f32[2,8,8,8]{3,2,1,0} convolution(x.1, w.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  call.1 = f32[2,8,8,8]{3,2,1,0} call(conv.1), to_apply=relu.1
  conv.2 = f32[2,8,8,8]{3,2,1,0} convolution(call.1, w.1), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  ROOT call.2 = f32[2,8,8,8]{3,2,1,0} call(conv.2), to_apply=relu.1
}
"""


@pytest.mark.parametrize("policy", ["auto", "irscope"])
@pytest.mark.parametrize("folder", [HERE.parents[1] / "samples", HERE / "patterns"])
def test_every_verdict_that_lint_states_is_that_on_the_edge(folder: Path, policy: str) -> None:
    count = 0
    for path in sorted(folder.iterdir()):
        try:
            reading = irscope.load(path)
        except UserError:
            continue
        n, found = disagreements(reading, policy)
        assert found == [], path
        count += n
    assert count > 30


@pytest.mark.parametrize("policy", ["auto", "irscope", "tvm", "xla-gpu", "inductor"])
def test_edges_into_called_functions_are_the_same_on_both_sides(policy: str) -> None:
    count, found = disagreements(irscope.load(TWO_CALLS), policy)
    assert found == [] and count > 0


def test_an_edge_is_found_by_what_is_called_and_by_the_call(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(TWO_CALLS)
    for producer, consumer in (("m.1", "conv.2"), ("call.1", "conv.2"), ("conv.1", "m.1"), ("conv.1", "call.1")):
        said = cli("lint", tmp_path / "m.hlo", "--isolated", "--why-not-fused", producer, consumer)
        assert said.exit_code == 0 and f"%{producer} -> %{consumer}  fused: none" in said.stdout, said.output
    table = [verdict.names for verdict in answer(Context(irscope.load(TWO_CALLS).module()))[0]]
    assert len(table) == len(set(table)), "each edge of the text has one verdict"
    assert {("conv.1", "m.1"), ("m.1", "conv.2"), ("conv.2", "m.1"), ("z.1", "m.1")} <= set(table)


def test_calls_that_xla_keeps_are_kept() -> None:
    kept = TWO_CALLS.replace("call(conv.1), to_apply=relu.1", 'call(conv.1), to_apply=relu.1, frontend_attributes={_xla_stream_annotation="1"}')
    kept = kept.replace("ROOT call.2 = f32[2,8,8,8]{3,2,1,0} call(conv.2), to_apply=relu.1",
                        'ROOT call.2 = f32[2,8,8,8]{3,2,1,0} call(conv.2), to_apply=relu.1, frontend_attributes={inlineable="false"}')
    context = Context(irscope.load(kept).module())
    assert context.view.primitive is context.module
    assert disagreements(irscope.load(kept))[1] == []


def test_relay_is_judged_by_its_own_operators_on_both_sides() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) {\n' \
           "  let %a = nn.dense(%x, %w);\n  let %b = nn.relu(%a);\n  %b\n}\n"
    context = Context(irscope.load(text).module())
    (edge,) = unfused_edges(context.inner)
    (verdict,) = (v for v in answer(context)[0] if v.names == ("a", "b"))
    assert (edge.verdict.rule, verdict.rule) == ("let", "let")
    assert {node.op.name for node in (edge.producer, edge.consumer)} == {"dot", "maximum"}
    (finding,) = (f for f in lint_context(context, all_rules()) if f.code == "FUS001")
    assert "let" in finding.message


def test_edges_of_inductor_are_seen_by_rules() -> None:
    text = "graph(%x : Float(64, 64), %w : Float(64, 64)):\n  %d : Float(64, 64) = aten::mm(%x, %w)\n" \
           "  %y : Float(64, 64) = aten::tanh(%d)\n  return (%y)\n"
    context = Context(irscope.load(text).module(), Settings("inductor"))
    assert [(edge.producer.op.name, edge.consumer.op.name, edge.verdict.rule) for edge in unfused_edges(context.inner)] == [
        ("dot", "tanh", "extern-kernel")]


CONCATENATION = """module @m {
  func.func public @main(%arg0: tensor<8x32xf32>, %arg1: tensor<8x32xf32>) -> tensor<8x64xf32> {
    %a = stablehlo.multiply %arg0, %arg1 : tensor<8x32xf32>
    %b = stablehlo.subtract %arg0, %arg1 : tensor<8x32xf32>
    %c = stablehlo.concatenate %a, %b, dim = 1 : (tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<8x64xf32>
    return %c : tensor<8x64xf32>
  }
}
"""


def test_releases_are_compared_on_stablehlo_as_on_hlo(cli: Cli, tmp_path: Path) -> None:
    """A concatenation along the minor dimension is not fused from 64 bytes along it and 2 KiB in all since jaxlib 0.12."""
    verdicts = answer(Context(irscope.load(CONCATENATION).module()))[0]
    differ = {verdict.names: dict(verdict.releases) for verdict in verdicts if verdict.releases}
    assert differ.keys() == {("a", "c"), ("b", "c")}
    (tmp_path / "m.mlir").write_text(CONCATENATION)
    said = cli("lint", tmp_path / "m.mlir", "--isolated", "--why-not-fused").stdout
    assert "releases differ: fused up to jaxlib-0.11.2, not fused since jaxlib-0.12.0.1" in said
