"""HLO from before XLA's rewriting under ``xla-gpu``: what XLA's GPU compiler makes of a text before it fuses, and what is told of that.

The later texts are what jaxlib 0.10.2 dumped for an H100 of the same programs as in tests/data/xla_cpu, without their metadata.
"""
from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.raw_coverage import compare, on_gpu, size
from irscope.api import load
from irscope.fusion import EdgeVerdict
from irscope.fusion.xla.early_gpu import rewritten, with_kernels
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla_gpu import POLICY
from irscope.graph import Module, Node
from irscope.lint.fusion import remarks
from irscope.ops import hlo

DATA = Path(__file__).parent.parent / "data"
NAMES = sorted(path.name.removesuffix(".h100.hlo") for path in (DATA / "xla_gpu_early").glob("*.h100.hlo"))


def raw(name: str) -> str:
    return (DATA / "xla_cpu" / f"{name}.raw.hlo").read_text()


def module(lines: str, params: str, before: str = "") -> Module:
    """A text as XLA prints it before its passes; ``lines`` is the entry, ``params`` the types in its first line, ``before`` what it calls."""
    return load(f"HloModule m, entry_computation_layout={{{params}}}\n\n{before}\n\nENTRY %main {{\n{lines}\n}}\n").module()


def nodes(text: Module, device: str = "h100") -> list[Node]:
    """What stands right before ``priority-fusion``, kernels opened."""
    _, canonical = rewritten(text, DEVICES[device])
    assert canonical is not None
    made, _ = with_kernels(canonical, DEVICES[device])
    return made.module.main().nodes


def ops(text: Module, device: str = "h100") -> list[str]:
    return [f"{node.op.name}:{str(node.type).split('[')[0]}" for node in nodes(text, device)
            if node.op not in (hlo.parameter, hlo.constant, hlo.broadcast)]


def told(text: Module, device: str | None = None) -> dict[tuple[str, str], EdgeVerdict]:
    return {v.names: v for plan in POLICY.plan_module(text, device) for v in plan.verdicts}


@pytest.mark.parametrize("name", NAMES)
def test_every_edge_is_found_and_decided_as_by_xla(name: str) -> None:
    found = compare(*on_gpu(raw(name), (DATA / "xla_gpu_early" / f"{name}.h100.hlo").read_text(), "h100"), size)
    assert found["edges"] == found["covered"] == found["right"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_text_that_stands_before_fusion_is_judged_as_it_stands(name: str) -> None:
    text = load((DATA / "xla_gpu_early" / f"{name}.h100.hlo").read_text()).module()
    assert rewritten(text, DEVICES["h100"])[1] is None
    assert not any("before XLA's own rewriting" in told for told in remarks(text, "xla-gpu"))


@pytest.mark.parametrize("name", NAMES)
def test_kernels_and_edges_are_told_in_the_operators_of_the_text(name: str) -> None:
    text = load(raw(name)).module()
    here = {node for graph in text.graphs.values() for node in graph.nodes}
    plans = POLICY.plan_module(text)
    assert all(node in here for plan in plans for group in plan.groups for node in (*group.nodes, *group.outputs))
    found = {v.names for plan in plans for v in plan.verdicts}
    untold = ("parameter", "constant", "get-tuple-element", "tuple")
    for plan in plans:
        assert {(o.name, n.name) for n in plan.graph.nodes for o in n.operands if not {o.op.name, n.op.name} & set(untold)} <= found


def test_what_a_product_takes_in_is_fused() -> None:
    verdicts = told(load(raw("mlp_relu")).module())
    assert verdicts["dot_general.2", "add.11"].fused == "all" and verdicts["add.11", "max.3"].fused == "all"
    between = verdicts["max.3", "dot_general.3"]
    assert between.fused == "none" and between.reason == "the producer is not fusible" and "GemmFusion" in between.cause
    assert [plan.kernels() for plan in POLICY.plan_module(load(raw("mlp_relu")).module())] == [2]


def test_the_answer_says_how_sure_it_is() -> None:
    first, *rest = remarks(load(raw("attention")).module(), "xla-gpu")
    assert "confidence: near (" in first and "XLA's autotuner" in first and "before_priority-fusion" in first
    assert any("SoftmaxRewriterTriton" in told and "the kernels reported here are those with it" in told for told in rest)
    assert any("GemmFusion" in told and told.endswith("the kernels reported here are those with it") for told in rest)
    low = remarks(module("%p = f32[8,8]{1,0} parameter(0)\n%c = f32[8,8]{1,0} cholesky(%p)\nROOT %n = f32[8,8]{1,0} negate(%c)",
                         "(f32[8,8]{1,0})->f32[8,8]{1,0}"), "xla-gpu")
    assert any("confidence: low around cholesky" in told for told in low)


def test_a_later_text_has_its_products_in_kernels_too() -> None:
    late = """%x = f32[64,64]{1,0} parameter(0)
%y = f32[64,64]{1,0} parameter(1)
%n = f32[64,64]{1,0} negate(%x)
%d = f32[64,64]{1,0} dot(%n, %y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT %a = f32[64,64]{1,0} add(%d, %y)"""
    types = "(f32[64,64]{1,0}, f32[64,64]{1,0})->f32[64,64]{1,0}"
    text = module(late, types)
    assert rewritten(text, DEVICES["h100"])[1] is None
    assert {edge: v.fused for edge, v in told(text).items()} == {("n", "d"): "all", ("d", "a"): "all"}
    assert [plan.kernels() for plan in POLICY.plan_module(text)] == [1]
    by_hand = load(f"HloModule m\n\nENTRY %main {{\n{late}\n}}\n").module()
    assert [plan.kernels() for plan in POLICY.plan_module(by_hand)] == [3], "what somebody wrote is meant as it stands"


HALVES = """%x = bf16[64,64]{1,0} parameter(0)
%r = bf16[4096]{0} reshape(%x)
%a = bf16[4096]{0} add(%r, %r)
%s = bf16[4096]{0} sqrt(%a)
ROOT %e = bf16[4096]{0} exponential(%s)"""


def test_halves_are_computed_as_the_device_can() -> None:
    text = module(HALVES, "(bf16[64,64]{1,0})->bf16[4096]{0}")
    assert ops(text) == ["add:bf16", "convert:f32", "sqrt:f32", "convert:bf16", "exponential:bf16", "bitcast:bf16"]
    assert ops(text, "a100") == ["convert:f32", "add:f32", "sqrt:f32", "convert:bf16", "exponential:bf16", "bitcast:bf16"]


def test_halves_are_computed_wide_inside_kernels_too() -> None:
    text = module("""%x = bf16[4,64,64]{2,1,0} parameter(0)
%r = bf16[256,64]{1,0} reshape(%x)
%w = bf16[64,128]{1,0} parameter(1)
%d = bf16[256,128]{1,0} dot(%r, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT %t = bf16[256,128]{1,0} tanh(%d)""", "(bf16[4,64,64]{2,1,0}, bf16[64,128]{1,0})->bf16[256,128]{1,0}")
    assert ops(text) == ["bitcast:bf16", "dot:bf16", "convert:f32", "tanh:f32", "convert:bf16"]
    assert [plan.kernels() for plan in POLICY.plan_module(text)] == [1]


def test_products_of_one_array_are_merged_and_cut_apart() -> None:
    text = module("""%x = f32[4,64,64]{2,1,0} parameter(0)
%r = f32[256,64]{1,0} reshape(%x)
%a = f32[64,32]{1,0} parameter(1)
%b = f32[64,96]{1,0} parameter(2)
%d = f32[256,32]{1,0} dot(%r, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
%e = f32[256,96]{1,0} dot(%r, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
%t = f32[256,32]{1,0} tanh(%d)
ROOT %u = (f32[256,32]{1,0}, f32[256,96]{1,0}) tuple(%t, %e)""",
                  "(f32[4,64,64]{2,1,0}, f32[64,32]{1,0}, f32[64,96]{1,0})->(f32[256,32]{1,0}, f32[256,96]{1,0})")
    made = nodes(text)
    assert [n.op.name for n in made if n.op in (hlo.dot, hlo.concatenate, hlo.slice, hlo.tanh)] == ["concatenate", "dot", "slice", "tanh", "slice"]
    assert [str(n.type) for n in made if n.op is hlo.dot] == ["f32[256,128]{1,0}"]


def test_a_product_that_reads_another_of_the_same_array_stays() -> None:
    text = module("""%x = f32[4,16,64]{2,1,0} parameter(0)
%r = f32[64,64]{1,0} reshape(%x)
%a = f32[64,64]{1,0} parameter(1)
%d = f32[64,64]{1,0} dot(%r, %a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT %e = f32[64,64]{1,0} dot(%r, %d), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
                  "(f32[4,16,64]{2,1,0}, f32[64,64]{1,0})->f32[64,64]{1,0}")
    assert [n.op.name for n in nodes(text) if n.op in (hlo.dot, hlo.concatenate)] == ["dot", "dot"]


@pytest.mark.parametrize("device, rows, length, pieces", [
    ("h100", 32, 256, 8), ("h100", 32, 64, 1), ("h100", 1024, 256, 4), ("h100", 64, 4096, 32),
    ("a100", 32, 256, 4), ("a100", 32, 64, 1), ("a100", 1024, 256, 1), ("a100", 64, 4096, 16),
    ("b200", 32, 256, 1), ("b200", 32, 64, 1), ("b200", 1024, 256, 1), ("b200", 64, 4096, 32)])
def test_few_rows_and_a_long_sum_are_cut(device: str, rows: int, length: int, pieces: int) -> None:
    """As the plugin of jaxlib 0.10.2 cut them."""
    text = module(f"""%x = f32[{rows // 2},2,{length}]{{2,1,0}} parameter(0)
%r = f32[{rows},{length}]{{1,0}} reshape(%x)
%w = f32[{length},64]{{1,0}} parameter(1)
ROOT %d = f32[{rows},64]{{1,0}} dot(%r, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}""",
                  f"(f32[{rows // 2},2,{length}]{{2,1,0}}, f32[{length},64]{{1,0}})->f32[{rows},64]{{1,0}}")
    [dot] = [n for n in nodes(text, device) if n.op is hlo.dot]
    assert dot.type.dims() == ((pieces, rows, 64) if pieces > 1 else (rows, 64))  # type: ignore[attr-defined]


def test_reductions_over_what_lies_apart_are_split_and_together_are_one() -> None:
    text = module("""%x = f32[4,8,8,4,8]{4,3,2,1,0} parameter(0)
%z = f32[] constant(0)
%s = f32[4,4]{1,0} reduce(%x, %z), dimensions={1,2,4}, to_apply=%add
ROOT %r = f32[16]{0} reshape(%s)""", "(f32[4,8,8,4,8]{4,3,2,1,0})->f32[16]{0}",
                  "%add {\n%a = f32[] parameter(0)\n%b = f32[] parameter(1)\nROOT %c = f32[] add(%a, %b)\n}")
    assert [(n.op.name, str(n.type)) for n in nodes(text) if n.op in (hlo.bitcast, hlo.reduce)] == [
        ("bitcast", "f32[4,64,4,8]{3,2,1,0}"), ("reduce", "f32[4,4,8]{2,1,0}"), ("reduce", "f32[4,4]{1,0}"), ("bitcast", "f32[16]{0}")]


CONVOLUTION = """%x = f32[2,3,16,16]{{3,2,1,0}} parameter(0)
%w = f32[8,3,3,3]{{3,2,1,0}} parameter(1)
%c = f32[2,8,{out}]{{3,2,1,0}} convolution(%x, %w), window={{{window}}}, dim_labels=bf01_oi01->bf01
%b = f32[8]{{0}} parameter(2)
%s = f32[2,8,{out}]{{3,2,1,0}} broadcast(%b), dimensions={{1}}
%a = f32[2,8,{out}]{{3,2,1,0}} add(%c, %s)
%z = f32[] constant(0)
%f = f32[2,8,{out}]{{3,2,1,0}} broadcast(%z), dimensions={{}}
%m = f32[2,8,{out}]{{3,2,1,0}} maximum(%a, %f)
ROOT %r = f32[{size}]{{0}} reshape(%m)"""


def convolved(window: str, out: str, size: int) -> Module:
    return module(CONVOLUTION.format(window=window, out=out, size=size),
                  f"(f32[2,3,16,16]{{3,2,1,0}}, f32[8,3,3,3]{{3,2,1,0}}, f32[8]{{0}})->f32[{size}]{{0}}")


def test_a_convolution_takes_bias_and_relu_and_lies_as_the_device_wants() -> None:
    text = convolved("size=3x3 pad=1_1x1_1", "16,16", 4096)
    assert ops(text) == ["transpose:f32", "transpose:f32", "custom-call:(f32", "get-tuple-element:f32", "transpose:f32", "bitcast:f32"]
    assert ops(text, "a100") == ["custom-call:(f32", "get-tuple-element:f32", "bitcast:f32"]
    [call] = [n for n in nodes(text) if n.op is hlo.custom_call]
    assert call.attrs["custom_call_target"] == "__cudnn$convBiasActivationForward" and len(call.operands) == 3
    verdicts = told(text)
    assert verdicts["c", "a"].fused == verdicts["a", "m"].fused == "all"


def test_uneven_zeros_around_a_convolution_are_written_out() -> None:
    assert "pad:f32" in ops(convolved("size=3x3 pad=0_1x0_1", "15,15", 3600))
    assert "pad:f32" not in ops(convolved("size=3x3 pad=1_1x1_1", "16,16", 4096))


def test_a_stable_sort_takes_its_places_along() -> None:
    text = module("""%x = f32[4,16]{1,0} parameter(0)
%r = f32[64]{0} reshape(%x)
ROOT %s = f32[64]{0} sort(%r), dimensions={0}, is_stable=true, to_apply=%less""", "(f32[4,16]{1,0})->f32[64]{0}",
                  "%less {\n%a = f32[] parameter(0)\n%b = f32[] parameter(1)\nROOT %c = pred[] compare(%a, %b), direction=LT\n}")
    assert ops(text) == ["bitcast:f32", "fusion:(f32", "get-tuple-element:f32"]


def test_round_trips_between_floats_end() -> None:
    text = module("""%x = f32[4,16]{1,0} parameter(0)
%r = f32[64]{0} reshape(%x)
%n = f32[64]{0} negate(%r)
%h = bf16[64]{0} convert(%n)
%w = f32[64]{0} convert(%h)
ROOT %t = f32[64]{0} tanh(%w)""", "(f32[4,16]{1,0})->f32[64]{0}")
    assert ops(text) == ["negate:f32", "tanh:f32", "bitcast:f32"]
    assert told(text)["n", "h"].rule == "simplified"


def test_a_barrier_stays_until_xla_has_fused() -> None:
    text = module("""%x = f32[4,16]{1,0} parameter(0)
%r = f32[64]{0} reshape(%x)
%n = f32[64]{0} negate(%r)
%t = (f32[64]{0}, f32[64]{0}) tuple(%r, %n)
%o = (f32[64]{0}, f32[64]{0}) opt-barrier(%t)
%g = f32[64]{0} get-tuple-element(%o), index=0
%h = f32[64]{0} get-tuple-element(%o), index=1
ROOT %a = f32[64]{0} add(%g, %h)""", "(f32[4,16]{1,0})->f32[64]{0}")
    assert "opt-barrier:(f32" in ops(text)


def test_long_chains_of_products_take_linear_time() -> None:
    lines = ["%x = f32[2,32,64]{2,1,0} parameter(0)", "%w = f32[64,64]{1,0} parameter(1)", "%y0 = f32[64,64]{1,0} reshape(%x)"]
    for i in range(300):
        lines += [f"%d{i} = f32[64,64]{{1,0}} dot(%y{i}, %w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
                  f"%y{i + 1} = f32[64,64]{{1,0}} tanh(%d{i})"]
    text = module("\n".join([*lines, "ROOT %r = f32[4096]{0} reshape(%y300)"]), "(f32[2,32,64]{2,1,0}, f32[64,64]{1,0})->f32[4096]{0}")
    assert sum(plan.kernels() for plan in POLICY.plan_module(text)) == 300, "each product takes its tanh in"
