"""Gates judge the kernels, traffic, memory, types and fusions of a model with numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import irscope
from irscope.graph import Module
from irscope.lint.baseline import read_fusion
from irscope.lint.demands import Demands
from irscope.lint.gate import all_documented, all_gates
from irscope.lint.gates.expect_dtype import ExpectDtype
from irscope.lint.gates.max_memory import MaxMemory
from irscope.lint.gates.require_fused import RequireFused
from irscope.lint.planned import Planned
from irscope.lint.rule import HEADINGS
from irscope.source import Finding, UserError
from tests.conftest import Cli

CHAIN = """HloModule m
ENTRY e {
  x = f32[4,8]{1,0} parameter(0)
  w = f32[8,16]{1,0} parameter(1)
  b = f32[16]{0} parameter(2)
  d = f32[4,16]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[4,16]{1,0} broadcast(b), dimensions={1}
  a = f32[4,16]{1,0} add(d, bb)
  z = f32[] constant(0)
  zz = f32[4,16]{1,0} broadcast(z), dimensions={}
  ROOT r = f32[4,16]{1,0} maximum(a, zz)
}
"""
APART = CHAIN.replace("add(d, bb)", "add(s, bb)").replace("  bb =", "  s = f32[4,16]{1,0} sort(d), dimensions={1}, to_apply=lt\n  bb =").replace(
    "ENTRY", "lt {\n  p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT c = pred[] compare(p, q), direction=LT\n}\nENTRY")
FUSED = """HloModule m, is_scheduled=true
body {
  p = f32[64]{0} parameter(0)
  e = f32[64]{0} exponential(p)
  n = f32[64]{0} negate(p)
  ROOT t = (f32[64]{0}, f32[64]{0}) tuple(e, n)
}
other {
  q = f32[64]{0} parameter(0)
  ROOT h = f32[64]{0} tanh(q)
}
ENTRY m {
  x = f32[64]{0} parameter(0)
  f = (f32[64]{0}, f32[64]{0}) fusion(x), kind=kLoop, calls=body
  g = f32[64]{0} get-tuple-element(f), index=0
  k = f32[64]{0} get-tuple-element(f), index=1
  o = f32[64]{0} fusion(k), kind=kLoop, calls=other
  ROOT r = (f32[64]{0}, f32[64]{0}) tuple(g, o)
}
"""


def module(text: str) -> Module:
    return irscope.load(text).module()


def fused(text: str, pattern: str, policy: str = "irscope") -> list[Finding]:
    return RequireFused.judge(Planned(module(text), policy), pattern)


@pytest.mark.parametrize("gate", all_gates(), ids=lambda g: g.code)
def test_a_gate_is_documented_as_a_rule_is(gate: type, cli: Cli) -> None:
    page = cli("rule", gate.code)  # type: ignore[attr-defined]
    assert page.exit_code == 0
    assert all(heading in page.stdout for heading in HEADINGS)


def test_codes_and_names_of_rules_and_gates_are_unique() -> None:
    assert len({r.code for r in all_documented()}) == len({r.name for r in all_documented()}) == len(all_documented())


@pytest.mark.parametrize("pattern", ["dot,add", "dot,add,max*", "dot,broadcast,maximum", "add, maximum"])
def test_a_chain_in_one_kernel_is_fine(pattern: str) -> None:
    if "broadcast" in pattern:
        assert [f.message[:8] for f in fused(CHAIN, pattern)] == ["no chain"]
    else:
        assert fused(CHAIN, pattern) == []


def test_a_chain_that_something_opaque_cuts_is_told_with_the_edge_and_its_reason() -> None:
    [finding] = fused(APART, "dot,sort,add")
    assert (finding.code, finding.node, str(finding.severity)) == ("FUS018", "a", "error")
    assert "%d -> %s -> %a" in finding.message
    assert [note.text.split(" (")[0] for note in finding.notes] == ["%d", "%s"]
    assert fused(APART, "add,maximum") == []


def test_a_pattern_that_occurs_nowhere_protects_nothing() -> None:
    [finding] = fused(CHAIN, "convolution,add")
    assert "no chain convolution,add" in finding.message
    assert "dot" in finding.help
    with pytest.raises(UserError, match="is no chain"):
        fused(CHAIN, "dot")


def test_chains_are_followed_into_and_between_the_fusions_of_a_text() -> None:
    assert [f.node for f in fused(FUSED, "negate,tanh", "xla-cpu")] == ["h"]
    assert "no chain" in fused(FUSED, "exponential,tanh", "xla-cpu")[0].message  # the other element of the tuple
    whole = FUSED.replace("  ROOT h = f32[64]{0} tanh(q)", "  j = f32[64]{0} abs(q)\n  ROOT h = f32[64]{0} tanh(j)")
    for policy in ("xla-cpu", "tvm", "irscope"):
        assert fused(whole, "abs,tanh", policy) == []


def test_a_chain_may_be_named_as_the_user_wrote_it() -> None:
    text = "graph(%x : Float(4, 8)):\n  %y : Float(4, 8) = aten::relu(%x)\n  %z : Float(4, 8) = aten::tanh(%y)\n  return (%z)\n"
    for pattern in ("aten::relu,aten::tanh", "relu,tanh", "maximum,tanh"):
        assert RequireFused.judge(Planned(irscope.load(text, format="torchscript").module(), "irscope"), pattern) == []


def test_budgets_judge_by_the_figures_that_they_tell(cli: Cli, tmp_path: Path) -> None:
    planned = Planned(module(APART), "irscope")
    kernels, traffic = planned.kernels, round(planned.traffic)
    (tmp_path / "m.hlo").write_text(APART)
    for option, limit, code in (("--max-kernels", kernels, "KRN003"), ("--max-traffic", traffic, "KRN004"), ("--max-memory", 512, "MEM001")):
        fine = cli("lint", tmp_path / "m.hlo", option, limit, "--isolated", "--select", "DTY", "--policy", "irscope")
        assert (fine.exit_code, fine.stdout) == (0, "no findings\n"), option
        over = cli("lint", tmp_path / "m.hlo", option, limit - 1, "--isolated", "--policy", "irscope", "--select", "DTY", "--format", "concise")
        assert over.exit_code == 1
        assert code in over.stdout


def test_the_traffic_of_kernels_is_that_of_their_inputs_and_outputs() -> None:
    # x 128, w 512, b 64 bytes are read and the result 256 written; nothing between goes through memory.
    assert Planned(module(CHAIN), "irscope").traffic == 128 + 512 + 64 + 256
    assert Planned(module(FUSED), "xla-cpu").traffic == 256 + 2 * 256 + 2 * 256


def test_the_peak_names_who_is_alive() -> None:
    [finding] = MaxMemory.judge(module(APART), 100)
    assert finding.message.startswith("512 B live at %s, 100 B are allowed (parameters: 704 B more)")
    assert [note.text for note in finding.notes] == ["%d holds 256 B", "%s holds 256 B"]


HALF = """HloModule m
add {
  i = f32[] parameter(0)
  j = f32[] parameter(1)
  ROOT k = f32[] add(i, j)
}
ENTRY e {
  x = bf16[64,256]{1,0} parameter(0)
  w = bf16[256,32]{1,0} parameter(1)
  d = f32[64,32]{1,0} dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  h = bf16[64,32]{1,0} convert(d)
  c = f32[64,32]{1,0} convert(h)
  z = f32[] constant(0)
  s = f32[64]{0} reduce(c, z), dimensions={1}, to_apply=add
  m = bf16[64]{0} convert(s)
  ISLAND
  ROOT r = (bf16[64]{0}, bf16[64,32]{1,0}) tuple(m, h)
}
"""


def test_wide_accumulators_are_allowed_and_islands_are_not() -> None:
    assert ExpectDtype.judge(module(HALF.replace("ISLAND", "")), "bf16") == []
    island = "u = f32[64,256]{1,0} convert(x)\n  v = f32[64,256]{1,0} tanh(u)\n  q = bf16[64,256]{1,0} convert(v)"
    [finding] = ExpectDtype.judge(module(HALF.replace("ISLAND", island)), "bf16")
    assert (finding.code, finding.node) == ("DTY002", "v")
    assert finding.message == "2 operators run in f32, bf16 is expected: 128 KiB of results"
    assert finding.notes[-1].text == "casts: 1 into it, 1 out of it"


def test_expected_dtypes_of_other_widths() -> None:
    assert [f.node for f in ExpectDtype.judge(module(CHAIN), "bf16")] == ["d"]
    assert ExpectDtype.judge(module(CHAIN), "f32") == []
    assert [f.message for f in ExpectDtype.judge(module(CHAIN), "int8")] == ["%d (dot) takes f32, int8 is expected"]
    with pytest.raises(UserError, match="cannot be expected"):
        ExpectDtype.judge(module(CHAIN), "f8")


def test_a_query_narrows_what_is_expected(cli: Cli, tmp_path: Path) -> None:
    assert Demands(expect_dtype="bf16", where="op=sort").judge(module(CHAIN)) == []
    (tmp_path / "m.hlo").write_text(CHAIN)
    assert cli("lint", tmp_path / "m.hlo", "--expect-dtype", "bf16", "--where", "name=a", "--isolated").exit_code == 1
    assert cli("lint", tmp_path / "m.hlo", "--where", "name=a", "--isolated").exit_code == 2


def test_a_fusion_that_was_lost_is_told_against_the_baseline(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(CHAIN)
    assert cli("lint", "m.hlo", "--policy", "irscope", "--write-baseline", "b.json", "--track-fusion").exit_code == 0
    assert read_fusion("b.json")["m.hlo"]["kernels"] == Planned(module(CHAIN), "irscope").kernels
    assert cli("lint", "m.hlo", "--policy", "irscope", "--baseline", "b.json").stdout == "no findings\n"
    Path("m.hlo").write_text(APART)
    worse = cli("lint", "m.hlo", "--policy", "irscope", "--baseline", "b.json", "--format", "json")
    assert worse.exit_code == 1
    [finding] = [f for f in json.loads(worse.stdout)["files"][0]["findings"] if f["code"] == "FUS019"]
    assert re.fullmatch(r"3 kernels instead of 1 and .* moved instead of 960 B under irscope@.*, since the baseline was written", finding["message"])
    assert any(note.startswith("dot -> sort: 1 more") for note in finding["notes"])
    assert finding["saves"]["kernels"] == 2
    Path("b.json").write_text('{"findings": [], "fusion": {"m.hlo": {"kernels": 1}}}')
    assert "is damaged" in cli("lint", "m.hlo", "--baseline", "b.json").stderr


def test_gates_and_policies_do_not_look_at_types_that_do_not_fit(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(CHAIN.replace("maximum(a, zz)", "maximum(a, z)"))
    for asked in (("--max-kernels", "0"), ("--max-memory", "1"), ("--why-not-fused",), ("--select", "DTY001", "--max-kernels", "0")):
        said = cli("lint", tmp_path / "m.hlo", *asked)
        assert said.exit_code == 1 and "SHP006" in said.stdout
        assert "fusion policies and gates did not look at m.hlo: its types are not sound, as the errors show" in said.stdout


def test_what_a_policy_raises_over_a_sound_text_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    import irscope.lint.planned as planned

    def stumble(module: Module, policy: str, device: str | None, expanded: bool = False) -> list[object]:
        raise IndexError("tuple index out of range")

    monkeypatch.setattr(planned, "plans", stumble)
    with pytest.raises(IndexError):
        Planned(module(CHAIN), "irscope")


def test_a_kernel_that_takes_slices_reads_those() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[1000,8]{1,0} parameter(0)
  s = f32[1,8]{1,0} slice(x), slice={[0:1], [0:8]}
  ROOT r = f32[1,8]{1,0} exponential(s)
}
"""
    assert Planned(module(text), "irscope").traffic == 32 + 32
