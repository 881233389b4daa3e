"""No output replaces a file that the run reads, whichever option, setting or file names it."""
from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import irscope
from irscope.api.options import LintOptions
from irscope.lint.baseline import read_baseline
from irscope.source import UserError
from tests.conftest import Cli

TEXT = """HloModule m
ENTRY e {
  p = f32[8,8] parameter(0)
  e.1 = f32[8,8] exponential(p)
  t = f32[8,8] transpose(e.1), dimensions={1,0}
  u = f32[8,8] transpose(t), dimensions={1,0}
  ROOT r = f32[8,8] add(u, p)
}
"""
BASELINE = '{"version": 1, "findings": []}'
CHECK = """baseline = "b.json"
[check]
models = ["a.hlo"]
expect = "out.npz"
baseline = "check.json"
"""
PASSES = """from irscope.passes import Pass
class Same(Pass):
    name = "same"
    doc = "Changes nothing."
    def run(self, module):
        return module
"""
GPU = """gpu_device_info {
  cuda_compute_capability { major: 9 }
  core_count: 132
  fpus_per_core: 128
  clock_rate_ghz: 1.98
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  shared_memory_per_block: 49152
  threads_per_core_limit: 2048
}
"""


LOGS = Path(__file__).parents[1] / "data" / "fusion_logs"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dump and one file of each kind that a command reads."""
    monkeypatch.chdir(tmp_path)
    files = {"a.hlo": TEXT, "b.json": BASELINE, "check.json": BASELINE, "mine.toml": 'base = "h100"\n', "numbers.csv": "r,1\n", "passes.py": PASSES,
             "irscope.toml": CHECK, "gpu.txt": GPU, "oom.log": "Largest program allocations in hbm:\n  1. Size: 6.00G\n     Shape: f32[8]\n",
             "x.relay": "fn (%x: Tensor[(2, 2), float32]) { nn.relu(%x) }\n", "patterns.txt": "my.relu: nn.relu(*)\n", "empty.toml": "",
             "logged.hlo": (LOGS / "cpu_exp.hlo").read_text(), "fusion.log": (LOGS / "cpu_exp.log").read_text()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    np.savez(tmp_path / "x.npz", arg0=np.ones((8, 8), np.float32))
    np.savez(tmp_path / "out.npz", out0=np.full((8, 8), np.e + 1, np.float32))
    return tmp_path


@pytest.mark.parametrize("line", [
    "lint a.hlo -o a.hlo", "lint a.hlo --write-baseline a.hlo", "lint a.hlo --why-not-fused --write-baseline a.hlo",
    "lint a.hlo --baseline b.json -o b.json", "lint a.hlo -o b.json", "lint a.hlo -o irscope.toml", "lint a.hlo --write-baseline irscope.toml",
    "lint a.hlo --config empty.toml --write-baseline empty.toml", "lint a.hlo --machine mine.toml -o mine.toml",
    "lint a.hlo --machine mine.toml --write-baseline mine.toml", "lint a.hlo --policy xla-gpu --device gpu.txt -o gpu.txt --isolated",
    "lint logged.hlo --why-not-fused --fusion-log fusion.log -o fusion.log", "lint logged.hlo --why-not-fused --fusion-log fusion.log --write-baseline fusion.log",
    "lint a.hlo --audit memory --oom oom.log -o oom.log", "lint a.hlo --audit memory --baseline b.json -o b.json",
    "lint a.hlo --audit dtype --machine mine.toml -o mine.toml", "lint a.hlo --fix -o a.hlo", "lint a.hlo --fix -o irscope.toml",
    "lint . --isolated -o a.hlo",
    "check -o a.hlo", "check -o irscope.toml", "check -o out.npz", "check -o check.json",
    "opt a.hlo --passes cancel-transposes -o a.hlo", "opt a.hlo --load passes.py --passes same -o passes.py",
    "opt x.relay --passes merge-composite{file=patterns.txt} -o patterns.txt",
    "diff a.hlo a.hlo -o a.hlo", "stats a.hlo -o a.hlo", "stats . --jobs 1 -o a.hlo", "show a.hlo --format text -o a.hlo", "show a.hlo --format dot -o a.hlo",
    "show a.hlo --format html --numbers numbers.csv -o numbers.csv", "show a.hlo --format dot --policy xla-gpu --device gpu.txt -o gpu.txt",
    "compile-and-run a.hlo --save-outputs a.hlo",
    "compile-and-run a.hlo --inputs x.npz --save-outputs x.npz", "compile-and-run a.hlo --expect out.npz --save-outputs out.npz",
    "compile-and-run a.hlo --emit llvm -o a.hlo", "compile-and-run a.hlo --emit llvm --weights x.npz -o x.npz",
    "compile-and-run a.hlo --emit obj --weights x.npz -o x.npz", "compile-and-run a.hlo --emit asm -o a.hlo",
    "compile-and-run a.hlo --emit asm --expect out.npz -o out.npz",
])
def test_an_input_is_not_overwritten(line: str, folder: Path, cli: Cli) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = cli(*line.split())
    assert result.exit_code == 2 and "it is not overwritten" in result.stderr, result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("name", ["new.json", "b.json"])
def test_a_report_and_a_baseline_are_two_files(name: str, folder: Path, cli: Cli) -> None:
    """Neither is written, also where the baseline alone would be replaced."""
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = cli("lint", "a.hlo", "--write-baseline", name, "-o", f"./{name}")
    assert result.exit_code == 2 and f"--write-baseline and --output both name ./{name}" in result.stderr, result.stderr
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_standard_input_is_an_input(folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """``irscope opt - -o a.hlo < a.hlo``."""
    saved = os.dup(0)
    given = os.open("a.hlo", os.O_RDONLY)
    os.dup2(given, 0)
    try:
        result = cli("opt", "-", "--passes", "cancel-transposes", "-o", "a.hlo", input=TEXT)
    finally:
        os.dup2(saved, 0)
        os.close(saved)
        os.close(given)
    assert result.exit_code == 2 and "a.hlo is an input; it is not overwritten" in result.stderr
    assert (folder / "a.hlo").read_text() == TEXT


@pytest.mark.parametrize("line", [
    "lint a.hlo --write-baseline b.json", "lint a.hlo --baseline b.json --write-baseline b.json --isolated", "lint a.hlo --write-baseline new.json",
])
def test_a_baseline_that_was_read_is_written_again(line: str, folder: Path, cli: Cli) -> None:
    assert cli(*line.split()).exit_code == 0
    assert read_baseline(line.split("--write-baseline ")[1].split()[0]).total() > 0


def test_a_baseline_that_is_given_as_a_dump_too_is_not_written(folder: Path, cli: Cli) -> None:
    cli("lint", "a.hlo", "--write-baseline", "b.json")
    before = (folder / "b.json").read_bytes()
    result = cli("lint", "a.hlo", "b.json", "--write-baseline", "b.json", "--select", "ALG003")
    assert result.exit_code == 2 and "b.json is an input; it is not overwritten" in result.stderr
    assert (folder / "b.json").read_bytes() == before


def test_check_writes_its_baseline_again(folder: Path, cli: Cli) -> None:
    assert cli("check", "--write-baseline").exit_code == 0 and cli("check", "--write-baseline").exit_code == 0
    assert read_baseline("check.json").total() > 0


def test_the_functions_refuse_too(folder: Path) -> None:
    with pytest.raises(UserError, match="a.hlo is no baseline of irscope; it is not overwritten"):
        irscope.lint("a.hlo", LintOptions(write_baseline="a.hlo"))
    assert (folder / "a.hlo").read_text() == TEXT
