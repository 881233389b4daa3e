"""``compile-and-run A --expect-from B``: two dumps of one program give the same values for the same inputs."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Cli

STABLEHLO = """func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %arg0, %arg1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
BEFORE = """HloModule m
ENTRY main {
  p0 = f32[4] parameter(0)
  p1 = f32[4] parameter(1)
  ROOT s = f32[4] subtract(p0, p1)
}
"""
AFTER = """HloModule m
fused {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  n = f32[4] negate(b)
  ROOT s = f32[4] add(a, n)
}
ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT f = f32[4] fusion(x, y), kind=kLoop, calls=fused
}
"""
TEXTS = {"stable.mlir": STABLEHLO, "before.hlo": BEFORE, "after.hlo": AFTER}


@pytest.fixture
def stages(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("one", TEXTS)
@pytest.mark.parametrize("other", TEXTS)
def test_stages_of_one_program_agree(one: str, other: str, cli: Cli, stages: Path) -> None:
    result = cli("compile-and-run", stages / one, "--expect-from", stages / other)
    assert result.exit_code == 0
    assert f"agrees with {stages / other}" in " ".join(result.stdout.split())


def test_the_other_dump_may_come_from_standard_input(cli: Cli, stages: Path) -> None:
    result = cli("compile-and-run", stages / "before.hlo", "--expect-from", "-", input=AFTER)
    assert result.exit_code == 0


def test_a_dump_that_cannot_be_read_is_named_once(cli: Cli, stages: Path) -> None:
    result = cli("compile-and-run", stages / "before.hlo", "--expect-from", stages / "none.hlo")
    assert result.exit_code == 2 and result.stderr.count("none.hlo") == 1


@pytest.mark.parametrize("engine", ["llvm", "reference"])
def test_another_program_differs(engine: str, cli: Cli, stages: Path) -> None:
    (stages / "other.hlo").write_text(AFTER.replace("negate(b)", "abs(b)"))
    result = cli("compile-and-run", stages / "before.hlo", "--expect-from", stages / "other.hlo", "--engine", engine, "--format", "json")
    record = json.loads(result.stdout)
    assert result.exit_code == 1 and not record["ok"]
    assert "of 4 values differ" in record["faults"][0]


def test_an_infinite_error_is_null_in_json(cli: Cli, stages: Path) -> None:
    (stages / "other.hlo").write_text(BEFORE.replace("ROOT s = f32[4] subtract(p0, p1)", "s = f32[4] subtract(p0, p1)\n ROOT r = f32[4] log(s)"))
    result = cli("compile-and-run", stages / "other.hlo", "--expect-from", stages / "before.hlo", "--format", "json")
    record = json.loads(result.stdout, parse_constant=pytest.fail)
    assert result.exit_code == 1 and record["max_abs_error"] is None and record["max_rel_error"] is None


def test_inputs_of_the_same_names_may_be_in_another_order(cli: Cli, stages: Path) -> None:
    swapped = BEFORE.replace("parameter(0)", "parameter(2)").replace("parameter(1)", "parameter(0)").replace("parameter(2)", "parameter(1)")
    (stages / "swapped.hlo").write_text(swapped)
    assert cli("compile-and-run", stages / "before.hlo", "--expect-from", stages / "swapped.hlo").exit_code == 0
    assert cli("compile-and-run", stages / "after.hlo", "--expect-from", stages / "swapped.hlo").exit_code == 1, "x and y are its first and its second"


def test_given_inputs_reach_both(cli: Cli, stages: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", arg0=np.arange(1, 5, dtype=np.float32), arg1=np.ones(4, np.float32))
    result = cli("compile-and-run", stages / "stable.mlir", "--inputs", tmp_path / "x.npz", "--expect-from", stages / "before.hlo",
                 "--save-outputs", tmp_path / "y.npz")
    assert result.exit_code == 0 and "drawn" not in result.stderr
    assert np.load(tmp_path / "y.npz")["out0"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("text", "words"), [
    (BEFORE.replace("f32[4]", "f32[5]"), "arg0 has the shape [4], but the graph takes p0: f32[5]"),
    ("ENTRY main { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n z = f32[4] parameter(2)\n ROOT s = f32[4] subtract(x, y) }",
     "takes inputs that the other program does not: z"),
    ("ENTRY main { x = f32[4] parameter(0)\n ROOT s = f32[4] abs(x) }", "there is no input 'arg1': the graph takes 1"),
    ("ENTRY main { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n ROOT s = (f32[4], f32[4]) tuple(x, y) }", "has 2 outputs, not 1"),
    ("ENTRY main { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n s = f32[4] subtract(x, y)\n ROOT c = f64[4] convert(s) }", "out0 is float64"),
    ("ENTRY main { x = f32[4] parameter(0) ROOT", "other.hlo"),
], ids=["shape", "more inputs", "fewer inputs", "more outputs", "type of the output", "unreadable"])
def test_programs_that_do_not_correspond_are_refused(text: str, words: str, cli: Cli, stages: Path) -> None:
    (stages / "other.hlo").write_text(text)
    result = cli("compile-and-run", stages / "stable.mlir", "--expect-from", stages / "other.hlo")
    assert result.exit_code == 2
    assert words in result.stderr


def test_the_tolerance_allows_for_the_coarser_of_both_programs(cli: Cli, stages: Path) -> None:
    body = "p = f32[64,64] parameter(0)\n q = f32[64,64] parameter(1)\n"
    dot = "dot({0}, {1}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
    (stages / "wide.hlo").write_text(f"ENTRY main {{ {body} ROOT d = f32[64,64] {dot.format('p', 'q')} }}")
    narrow = f"a = bf16[64,64] convert(p)\n b = bf16[64,64] convert(q)\n d = bf16[64,64] {dot.format('a', 'b')}\n ROOT r = f32[64,64] convert(d)"
    (stages / "narrow.hlo").write_text(f"ENTRY main {{ {body} {narrow} }}")
    assert cli("compile-and-run", stages / "wide.hlo", "--expect-from", stages / "narrow.hlo").exit_code == 0
    assert cli("compile-and-run", stages / "wide.hlo", "--expect-from", stages / "narrow.hlo", "--rtol", "1e-5").exit_code == 1


TORCH = """graph(%self : __torch__.M, %x : Float(2, 3, strides=[3, 1])):
  %1 : int = prim::Constant[value=1]()
  %w : Float(3, strides=[1]) = prim::GetAttr[name="w"](%self)
  %y : Tensor = aten::OPERATOR(%x, %w, %1)
  return (%y)
"""


@pytest.mark.parametrize("given", [True, False], ids=["given", "drawn"])
@pytest.mark.parametrize(("operator", "status"), [("add", 0), ("sub", 1)])
def test_weights_are_matched_by_name(operator: str, status: int, given: bool, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(TORCH.replace("OPERATOR", "add"))
    (tmp_path / "two.txt").write_text(TORCH.replace("OPERATOR", operator))
    np.savez(tmp_path / "w.npz", w=np.arange(1, 4, dtype=np.float32))
    weights = ["--weights", tmp_path / "w.npz"] if given else []
    result = cli("compile-and-run", tmp_path / "one.txt", "--expect-from", tmp_path / "two.txt", *weights)
    assert result.exit_code == status, result.stderr


def test_outputs_do_not_replace_the_dump_that_is_compared(cli: Cli, stages: Path) -> None:
    result = cli("compile-and-run", stages / "before.hlo", "--expect-from", stages / "after.hlo", "--save-outputs", stages / "after.hlo")
    assert result.exit_code == 2
    assert (stages / "after.hlo").read_text() == AFTER


def test_simulated_devices_are_refused(cli: Cli, stages: Path) -> None:
    result = cli("compile-and-run", stages / "before.hlo", "--expect-from", stages / "after.hlo", "--partitions", 2)
    assert result.exit_code == 2 and "--expect-from compares the programs of one device" in result.stderr
