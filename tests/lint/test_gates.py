"""Every gate in every format: one demand that a small program breaks, and one just beside it that it meets."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from irscope.lint.gate import all_gates
from tests.conftest import Cli

HLO = """HloModule m

ENTRY main {
  x = f32[32,128] parameter(0)
  w = f32[128,256] parameter(1)
  zero = f32[] constant(0)
  d = f32[32,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zeros = f32[32,256] broadcast(zero), dimensions={}
  r = f32[32,256] maximum(d, zeros)
  ROOT e = f32[32,256] exponential(r)
}
"""
TORCHSCRIPT = """graph(%x : Float(32, 128, strides=[128, 1], requires_grad=0, device=cpu),
      %w : Float(256, 128, strides=[128, 1], requires_grad=0, device=cpu)):
  %none : NoneType = prim::Constant()
  %d : Float(32, 256, strides=[256, 1], requires_grad=0, device=cpu) = aten::linear(%x, %w, %none)
  %r : Float(32, 256, strides=[256, 1], requires_grad=0, device=cpu) = aten::relu(%d)
  %e : Float(32, 256, strides=[256, 1], requires_grad=0, device=cpu) = aten::exp(%r)
  return (%e)
"""
RELAY = """#[version = "0.0.5"]
def @main(%x: Tensor[(32, 128), float32], %w: Tensor[(256, 128), float32]) {
  %0 = nn.dense(%x, %w, units=256);
  %1 = nn.relu(%0);
  exp(%1)
}
"""
TEXTS = {"m.hlo": HLO, "m.txt": TORCHSCRIPT, "m.relay": RELAY}
APART = {
    "m.hlo": HLO.replace("r = f32[32,256] maximum(d, zeros)", "s = f32[32,256] sort(d), dimensions={0}, to_apply=less\n  "
                         "r = f32[32,256] maximum(s, zeros)").replace("ENTRY", "less {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                                                                     "  ROOT c = pred[] compare(a, b), direction=LT\n}\n\nENTRY"),
    "m.txt": TORCHSCRIPT.replace("%r : Float", "%zero : int = prim::Constant[value=0]()\n  %no : bool = prim::Constant[value=0]()\n  "
                                 "%s : Float(32, 256, strides=[256, 1], requires_grad=0, device=cpu), %i : Long(32, 256, strides=[256, 1], "
                                 "requires_grad=0, device=cpu) = aten::sort(%d, %zero, %no)\n  %r : Float").replace("relu(%d)", "relu(%s)"),
    "m.relay": RELAY.replace("%1 = nn.relu(%0)", "%1 = sort(%0, axis=0);\n  %2 = nn.relu(%1)").replace("exp(%1)", "exp(%2)"),
}  # fmt: skip
"""The same with a sort behind the product, which no policy fuses."""
FORMATS = {"hlo", "relay", "torchscript"}
CHAIN = {"m.hlo": "dot,maximum,exponential", "m.txt": "linear,relu,exp", "m.relay": "nn.dense,relu,exp"}
BROKEN = {
    "KRN003": (["--max-kernels", "0"], ["--max-kernels", "1"]),
    "KRN004": (["--max-traffic", "175KiB"], ["--max-traffic", "177KiB"]),
    "MEM001": (["--max-memory", "1KiB"], ["--max-memory", "1MiB"]),
    "DTY002": (["--expect-dtype", "bf16"], ["--expect-dtype", "f32"]),
}
"""A demand that each of these programs breaks, and one that it meets: 176 KiB are 16 of input, 128 of weights and 32 of result."""
QUIET = ("--isolated", "--policy", "irscope", "--select", "CTL004", "--format", "json")


def codes(cli: Cli, *words: object) -> list[str]:
    told = cli("lint", *words, *QUIET)
    return [finding["code"] for finding in json.loads(told.stdout)["files"][0]["findings"]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("code", BROKEN)
def test_a_demand_is_broken_and_met(folder: Path, cli: Cli, name: str, code: str) -> None:
    broken, met = BROKEN[code]
    assert set(codes(cli, name, *broken)) == {code}
    assert codes(cli, name, *met) == []


@pytest.mark.parametrize("name", TEXTS)
def test_a_chain_is_required_and_apart(folder: Path, cli: Cli, name: str) -> None:
    first, second, third = CHAIN[name].split(",")
    assert codes(cli, name, "--require-fused", CHAIN[name]) == []
    assert codes(cli, name, "--require-fused", f"{first},{third}") == ["FUS018"]  # nowhere in a row
    Path(name).write_text(APART[name])
    assert codes(cli, name, "--require-fused", f"{second},{third}") == []
    assert codes(cli, name, "--require-fused", f"sort,{second}") == ["FUS018"]


@pytest.mark.parametrize("name", TEXTS)
def test_a_fusion_that_is_lost_is_told_and_one_that_is_kept_is_not(folder: Path, cli: Cli, name: str) -> None:
    assert cli("lint", name, "--write-baseline", "b.json", "--track-fusion", *QUIET).exit_code == 0
    assert codes(cli, name, "--baseline", "b.json") == []
    Path(name).write_text(APART[name])
    assert codes(cli, name, "--baseline", "b.json") == ["FUS019"]


def test_these_are_all_gates_that_look_at_a_model() -> None:
    elsewhere = {"CFG001", "CFG002", "CHK001", "CHK002"}  # what they tell is about the settings and whole projects
    assert {gate.code for gate in all_gates()} - elsewhere == {*BROKEN, "FUS018", "FUS019"}
    assert all(set(gate.formats) == (set() if gate.code in elsewhere else FORMATS) for gate in all_gates())


OPEN = {
    "m.hlo": "HloModule m\n\nENTRY e {\n  x = f32[?,64] parameter(0)\n  t = f32[?,64] tanh(x)\n  ROOT n = f32[?,64] negate(t)\n}\n",
    "m.txt": "graph(%x : Tensor):\n  %t : Tensor = aten::tanh(%x)\n  %n : Tensor = aten::neg(%t)\n  return (%n)\n",
    "m.relay": '#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 64), float32]) {\n  %0 = tanh(%x);\n  negative(%0)\n}\n',
    "own.relay": '#[version = "0.0.5"]\ndef @main(%x: Tensor[(8, 64), float32]) {\n  %0 = mine(%x);\n  negative(%0)\n}\n',
}
"""Programs of unknown size, or with an unknown operator: no figure of them is known."""


@pytest.mark.parametrize("option", [("--max-kernels", "1000"), ("--max-traffic", "1GiB"), ("--max-memory", "1GiB"),
                                    ("--require-fused", "tanh,neg*")], ids=lambda option: option[0])
@pytest.mark.parametrize("file", sorted(OPEN))
def test_a_demand_on_what_is_not_known_is_not_met(cli: Cli, tmp_path: Path, file: str, option: tuple[str, str]) -> None:
    (tmp_path / file).write_text(OPEN[file])
    said = cli("lint", tmp_path / file, "--isolated", "--select", "CTL004", *option)
    assert said.exit_code in (1, 2)
    assert re.search(r"(is|are) not known: the text does not say the size of %|does not say the shape of input %x", said.output), said.output


def test_bound_sizes_make_figures_known(cli: Cli, tmp_path: Path) -> None:
    for file in ("m.hlo", "m.txt", "m.relay"):
        (tmp_path / file).write_text(OPEN[file])
        for option in (("--max-kernels", "1000"), ("--max-traffic", "1GiB")):
            assert cli("lint", tmp_path / file, "--isolated", "--shape", "x=8,64", *option).exit_code == 0, file
    (tmp_path / "m.hlo").write_text(OPEN["m.hlo"].replace("?", "<=8"))
    for option in (("--max-kernels", "1000"), ("--max-traffic", "1GiB"), ("--max-memory", "1GiB")):
        assert cli("lint", tmp_path / "m.hlo", "--isolated", *option).exit_code == 0, "a bounded size counts as its bound"


def test_unknown_element_types_are_not_the_expected_one(cli: Cli, tmp_path: Path) -> None:
    for file, value in (("m.txt", "%t"), ("own.relay", "%0")):
        (tmp_path / file).write_text(OPEN[file])
        said = cli("lint", tmp_path / file, "--isolated", "--expect-dtype", "f32")
        assert said.exit_code == 1 and f"does not say the element type of 2 values ({value}" in said.stdout


LOOP = """HloModule m

cond {
  c = (f32[1024], pred[]) parameter(0)
  ROOT go = pred[] get-tuple-element(c), index=1
}

body {
  b = (f32[1024], pred[]) parameter(0)
  v = f32[1024] get-tuple-element(b), index=0
  g = pred[] get-tuple-element(b), index=1
  t = f32[1024] tanh(v)
  ROOT r = (f32[1024], pred[]) tuple(t, g)
}

ENTRY e {
  x = f32[1024] parameter(0)
  g = pred[] parameter(1)
  t = (f32[1024], pred[]) tuple(x, g)
  w = (f32[1024], pred[]) while(t), condition=cond, body=body
  ROOT o = f32[1024] get-tuple-element(w), index=0
}
"""


def test_the_traffic_of_a_loop_without_trips_is_not_known(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(LOOP)
    said = cli("lint", tmp_path / "m.hlo", "--isolated", "--max-traffic", "1GiB")
    assert said.exit_code == 1 and "the traffic is not known: %w runs an unknown number of times" in said.stdout
    over = cli("lint", tmp_path / "m.hlo", "--isolated", "--max-traffic", "1KiB")
    assert over.exit_code == 1 and "1 KiB are allowed" in over.stdout, "one trip is too much already"
    assert cli("lint", tmp_path / "m.hlo", "--isolated", "--max-kernels", "9", "--max-memory", "1MiB").exit_code == 0


@pytest.mark.parametrize(("condition", "fails"), [
    ("bytes>+5%", "bytes after is not known"), ("flops>+0", "flops after is not known"), ("peak_bytes>1GiB", "peak_bytes after is not known"),
    ("parameter_bytes<1", "parameter_bytes after is not known"), ("kernels>+0", ""), ("ops.tanh>+0", "")])
def test_a_comparison_with_what_is_not_known_fails(cli: Cli, tmp_path: Path, condition: str, fails: str) -> None:
    (tmp_path / "a.hlo").write_text(OPEN["m.hlo"].replace("?", "8"))
    (tmp_path / "b.hlo").write_text(OPEN["m.hlo"])
    said = cli("diff", tmp_path / "a.hlo", tmp_path / "b.hlo", "--fail-if", condition)
    assert (said.exit_code, fails in said.stderr) == (int(bool(fails)), True), said.output
    told = cli("diff", tmp_path / "a.hlo", tmp_path / "b.hlo", "--format", "json")
    assert json.loads(told.stdout)["metrics"]["bytes"]["after"] is None
    for format_ in ("text", "markdown", "html"):
        assert "unknown" in cli("diff", tmp_path / "a.hlo", tmp_path / "b.hlo", "--format", format_).stdout


def test_only_the_side_that_is_asked_for_must_be_known(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.hlo").write_text(OPEN["m.hlo"])
    (tmp_path / "b.hlo").write_text(OPEN["m.hlo"].replace("?", "8"))
    assert cli("diff", tmp_path / "a.hlo", tmp_path / "b.hlo", "--fail-if", "bytes>1GiB").exit_code == 0
    assert cli("diff", tmp_path / "a.hlo", tmp_path / "b.hlo", "--fail-if", "bytes>+0").exit_code == 1
    over = cli("diff", tmp_path / "a.hlo", tmp_path / "b.hlo", "--fail-if", "bytes>1").stderr
    assert "bytes went from unknown to 8192" in over


def test_the_work_of_a_custom_call_is_not_known(cli: Cli, tmp_path: Path) -> None:
    text = OPEN["m.hlo"].replace("?", "8").replace("tanh(x)", 'custom-call(x), custom_call_target="mine"')
    (tmp_path / "m.hlo").write_text(text)
    assert "flops after is not known" in cli("diff", tmp_path / "m.hlo", tmp_path / "m.hlo", "--fail-if", "flops>1").stderr
    assert cli("diff", tmp_path / "m.hlo", tmp_path / "m.hlo", "--fail-if", "bytes>+0").exit_code == 0


def test_check_says_which_model_has_no_figure(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.relay").write_text(OPEN["m.relay"])
    (tmp_path / "irscope.toml").write_text('[check]\nmodels = ["m.relay"]\nmax-kernels = 100\nlint = false\n')
    monkeypatch.chdir(tmp_path)
    said = cli("check")
    assert said.exit_code == 1 and "the number of kernels is not known" in said.stdout


@pytest.mark.parametrize("policy", ["auto", "irscope", "xla-gpu", "tvm"])
def test_findings_of_unknown_sizes_claim_nothing(cli: Cli, tmp_path: Path, policy: str) -> None:
    (tmp_path / "m.hlo").write_text(OPEN["m.hlo"].replace("ENTRY e {", "sum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                                    "  ROOT c = f32[] add(a, b)\n}\n\nENTRY e {\n  z = f32[] constant(0)").replace(
        "ROOT n = f32[?,64] negate(t)", "u = f32[?,64] tanh(x)\n  v = f32[?,64] add(t, u)\n"
        "  ROOT n = f32[64] reduce(v, z), dimensions={0}, to_apply=sum"))
    said = cli("lint", tmp_path / "m.hlo", "--isolated", "--select", "ALL", "--policy", policy, "--why-not-fused", "--format", "json")
    assert said.exit_code == 0, said.output
    (file,) = json.loads(said.stdout)["files"]
    assert "ALG002" in {finding["code"] for finding in file["findings"]}
    for finding in file["findings"]:
        assert not (finding["saves"] or {}).get("us") and not finding.get("costs"), finding
    assert all(not edge.get("us") for edge in file["edges"])
