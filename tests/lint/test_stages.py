"""What fusion is worth: the columns of --why-not-fused, on all formats, and the tables that its times come from."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import irscope
from irscope.lint import Context, find_rule
from irscope.lint.fusion import judge
from irscope.lint.machine import BUILT_IN, machine_named
from irscope.lint.settings import Settings
from irscope.lint.stages import Stages, stages
from irscope.source import UserError
from tests.conftest import Cli

PATTERNS = Path(__file__).parent / "patterns"
CHAIN = """HloModule m

ENTRY e {
  x = f32[1024,1024] parameter(0)
  a = f32[1024,1024] negate(x)
  b = f32[1024,1024] abs(a)
  ROOT c = f32[1024,1024] floor(b)
}
"""
LOOP = """HloModule m

cond {
  s = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(10)
  ROOT l = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[1024]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  v = f32[1024] get-tuple-element(s), index=1
  w = f32[1024] negate(v)
  ROOT r = (s32[], f32[1024]) tuple(j, w)
}

ENTRY e {
  x = f32[1024] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[1024]) tuple(z, x)
  ROOT w = (s32[], f32[1024]) while(t), condition=cond, body=body
}
"""


def told(text: str, format: str = "hlo", settings: Settings | None = None) -> Stages:
    found = stages(Context(irscope.load(text, format=format).module(), settings))
    assert found is not None
    return found


def test_a_chain_is_three_kernels_and_then_one() -> None:
    eager, captured, fused, lifted = told(CHAIN).stages
    size = 4 * 1024 * 1024
    assert [(s.name, s.dispatches, s.launches, s.traffic) for s in (eager, captured, fused, lifted)] == [
        ("eager", 3, 3, 6 * size), ("captured", 1, 3, 6 * size), ("fused", 1, 1, 2 * size), ("blockers lifted", 1, 1, 2 * size),
    ]  # fmt: skip
    assert eager.us > captured.us > fused.us == lifted.us


def test_loops_count_by_their_trips() -> None:
    eager, _, fused, _ = told(LOOP).stages
    assert eager.launches == 30  # a comparison, a step and a negation in each of ten trips
    assert fused.launches <= eager.launches + 1  # the counter's first value is stored before the loop


def test_on_a_gpu_the_host_runs_ahead() -> None:
    """Three calls of 5 us hide three kernels of 1 us and little work."""
    small = CHAIN.replace("1024,1024", "8,8")
    eager, captured, *_ = told(small, settings=Settings(machine="h100")).stages
    assert eager.us == pytest.approx(3 * machine_named("h100").dispatch_us)
    assert captured.us < eager.us


@pytest.mark.parametrize(("suffix", "format"), [("hlo", "hlo"), ("txt", "torchscript"), ("relay", "relay")])
def test_every_format_has_its_table(suffix: str, format: str) -> None:
    found = told((PATTERNS / f"linear_gelu.{suffix}").read_text(), format)
    eager, captured, fused, _ = found.stages
    assert eager.launches == captured.launches > fused.launches
    assert eager.us > captured.us > fused.us
    assert any("products of f32" in source for source in found.sources)


def test_lifted_blockers_are_named() -> None:
    found = told(find_rule("FUS003").bad[0].text)
    assert found.lifted == {"FUS003": 1}
    assert found.stages[3].us < found.stages[2].us
    assert found.stages[3].launches < found.stages[2].launches


def test_open_shapes_have_no_table() -> None:
    text = "graph(%x : Tensor):\n  %y : Tensor = aten::exp(%x)\n  return (%y)\n"
    assert stages(Context(irscope.load(text, format="torchscript").module())) is None


def test_edges_are_told_between_operators_of_the_text() -> None:
    module = irscope.load((PATTERNS / "attention.txt").read_text(), format="torchscript").module()
    names = {node.name for node in module.main().nodes}
    verdicts = judge(module, "irscope")
    assert verdicts
    assert {name for verdict in verdicts for name in (verdict.producer, verdict.consumer)} <= names
    assert all(verdict.producer != verdict.consumer for verdict in verdicts)


def test_the_command_prints_the_table(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "m.hlo").write_text(CHAIN)
    result = cli("lint", str(tmp_path / "m.hlo"), "--why-not-fused", "--exit-zero")
    assert re.search(r"kernel launches +3 +3 +1 +1\n", result.stdout)
    assert re.search(r"memory traffic +24 MiB +24 MiB +8 MiB +8 MiB\n", result.stdout)
    assert "dispatch 0.83 us" in result.stdout
    result = cli("lint", str(tmp_path / "m.hlo"), "--why-not-fused", "--format", "json", "--machine", "a100")
    (file,) = json.loads(result.stdout)["files"]
    (table,) = file["stages"]
    assert [row["name"] for row in table["stages"]] == ["eager", "captured", "fused", "blockers lifted"]
    assert table["machine"].startswith("NVIDIA A100")


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_number_of_a_table_has_its_source(name: str) -> None:
    machine = machine_named(name)
    wanted = ["dispatch_us", "launch_us", "read_gbs", "write_gbs", "vector_gflops", *(f"caches.{i}" for i in range(len(machine.caches)))]
    wanted += [f"matrix_gflops.{dtype}" for dtype in machine.matrix_gflops]
    assert all(machine.sources.get(key) for key in wanted)


def test_a_table_of_ones_own_completes_a_built_in_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('base = "h100"\nlaunch_us = 2.5\n\n[read_gbs]\nvalue = 2000.0\nsource = "data sheet"\n\n[matrix_gflops]\nbf16 = 5e5\n')
    machine = machine_named(str(path))
    assert (machine.launch_us, machine.read_gbs, machine.matrix_gflops["bf16"], machine.overlaps) == (2.5, 2000.0, 5e5, True)
    assert machine.write_gbs == machine_named("h100").write_gbs
    assert machine.sources["read_gbs"] == "data sheet"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("lunch_us = 1.0", "no key 'lunch_us'"),
        ("launch_us = -1", "launch_us is -1"),
        ('base = "h200"', "no built-in table"),
        ("overlaps = 3", "overlaps is 3"),
        ("caches = 4", "no list of tables"),
        ("launch_us = [", "mine.toml:"),
    ],
)
def test_faults_of_a_table_are_told(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=says.replace("[", r"\[")):
        machine_named(str(path))


def test_a_machine_that_is_not_there() -> None:
    with pytest.raises(UserError, match="there is no machine 'h10'") as error:
        machine_named("h10")
    assert "h100" in error.value.help
    with pytest.raises(UserError, match="nowhere.toml"):
        machine_named("nowhere.toml")
