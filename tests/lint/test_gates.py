"""Every gate in every format: one demand that a small program breaks, and one just beside it that it meets."""

from __future__ import annotations

import json
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
