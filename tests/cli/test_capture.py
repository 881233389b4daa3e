"""``irscope capture``: the flags of the program, its dumps, the limits. The program is a small one that writes what XLA would write."""
from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from irscope import api
from irscope.api.capturing import capture, environment
from irscope.source import UserError
from tests.conftest import Cli

PROGRAM = r"""
import os, sys, time
flags = dict(flag.lstrip("-").partition("=")[::2] for flag in os.environ["XLA_FLAGS"].split())
print("the program's own words")
text = '''HloModule jit_step, entry_computation_layout={(f32[512,512]{1,0})->f32[512,512]{1,0}}

ENTRY %main.1 (p: f32[512,512]) -> f32[512,512] {
  %p = f32[512,512]{1,0} parameter(0)
  %a = f32[512,512]{1,0} exponential(%p)
  %b = f32[512,512]{1,0} exponential(%p)
  ROOT %u = f32[512,512]{1,0} add(%a, %b)
}
'''
if "nothing" in sys.argv:
    sys.exit(3)
with open(flags["xla_dump_to"] + "/module_0001.jit_step.before_optimizations.txt", "w") as file:
    file.write(text)
assert "xla_dump_hlo_as_text" in flags and os.environ["JAX_ENABLE_COMPILATION_CACHE"] == "false"
if "endless" in sys.argv:
    with open(flags["xla_dump_to"] + "/big.txt", "w") as file:
        file.write("x" * 100_000)
    time.sleep(60)
sys.exit(7 if "fails" in sys.argv else 0)
"""


@pytest.fixture
def program(tmp_path: Path) -> list[str]:
    (tmp_path / "train.py").write_text(PROGRAM)
    return [sys.executable, str(tmp_path / "train.py")]


def test_what_a_program_compiles_is_shown(program: list[str], tmp_path: Path, cli: Cli) -> None:
    keep = tmp_path / "dumps"
    done = cli("capture", "--keep", keep, "--", *program)
    assert done.exit_code == 0, done.stderr
    assert "module_0001.jit_step" in done.stdout and "ALG002" in done.stdout and "the program's own words" not in done.stdout
    assert [file.name for file in keep.iterdir()] == ["module_0001.jit_step.before_optimizations.txt"]
    again = cli("capture", "--keep", keep, "--", *program)
    assert again.exit_code == 2 and "holds files already" in again.stderr


TORCH = r"""
import os, shutil, sys
source, folder = sys.argv[1], os.environ["TORCH_COMPILE_DEBUG_DIR"]
assert os.environ["TORCH_COMPILE_DEBUG"] == "1" == os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"]
shutil.copy(source + "/torch_trace.log.gz", os.environ["TORCH_TRACE"] + "/dedicated_log_torch_trace_x.log.gz")
if "trace-only" not in sys.argv:
    shutil.copytree(source + "/torch_compile_debug", folder + "/torch_compile_debug")
"""
INDUCTOR = Path(__file__).parent.parent / "data" / "inductor"


@pytest.mark.parametrize("option", ["", "trace-only"])
def test_what_torch_compiles_is_shown(option: str, tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "train.py").write_text(TORCH)
    done = cli("capture", "--keep", tmp_path / "dumps", "--", sys.executable, tmp_path / "train.py", INDUCTOR, option)
    assert done.exit_code == 0, done.stderr
    assert "what the compiler did" in done.stdout and "graph break" in done.stdout and "CTL007" in done.stdout
    assert ("as Inductor recorded them" in done.stdout) != bool(option) and f"the dumps are in {tmp_path / 'dumps'}" in done.stderr


def test_a_program_that_fails_is_shown_and_said(program: list[str], cli: Cli) -> None:
    done = cli("capture", "--", *program, "fails")
    assert done.exit_code == 1 and "ended with status 7" in done.stderr and "jit_step" in done.stdout


def test_the_folder_is_gone_afterwards(program: list[str]) -> None:
    with capture(program) as captured:
        folder = captured.shown.folder
        assert folder is not None and os.path.isdir(folder.path) and captured.status == 0
    assert not os.path.exists(folder.path)


def test_a_program_without_dumps_is_refused(program: list[str], cli: Cli) -> None:
    done = cli("capture", *program, "nothing")
    assert done.exit_code == 2 and "ended with status 3, and wrote no dump" in done.stderr and "torch.compile" in done.stderr
    assert "no such program" in cli("capture", "--", "no-such-program-here").stderr
    with pytest.raises(UserError, match="no program to run"), capture([]):
        pass


def test_dumps_that_exceed_the_limit_end_the_program(program: list[str]) -> None:
    with capture([*program, "endless"], api.CaptureOptions(max_size=10_000)) as captured:
        assert captured.stopped and captured.status != 0


def test_the_flags_of_the_program_are_kept() -> None:
    flags = environment(api.CaptureOptions(functions=".*step.*", passes=True), "/d", {"XLA_FLAGS": "--a=1", "HOME": "/h"})
    assert flags["HOME"] == "/h" and flags["XLA_FLAGS"].split() == [
        "--a=1", "--xla_dump_to=/d", "--xla_dump_hlo_as_text", "--xla_dump_hlo_module_re=.*step.*", "--xla_dump_hlo_pass_re=.*"]


def test_values_of_flags_with_blanks_and_quotes_are_quoted_as_xla_reads_them() -> None:
    flags = environment(api.CaptureOptions(functions=r"a b\d\""), "/my \"d\\", {})["XLA_FLAGS"]
    assert flags == r'''--xla_dump_to="/my \"d\\" --xla_dump_hlo_as_text --xla_dump_hlo_module_re="a b\\d\\\""'''
