"""What the grid would see: stray bytes, pages that nobody may touch, memory that was never written, and its own progress."""
from __future__ import annotations

import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from irscope.api import load
from irscope.backends.executable import Executable
from irscope.backends.model import compile_module
from irscope.lower.options import Options
from tests.grid.__main__ import campaign
from tests.grid.case import Case
from tests.grid.guards import CANARY, Arena, Regions
from tests.grid.report import report
from tests.grid.run import run_case
from tests.grid.state import ROOT, Result, State, tree_hash

TEXT = """HloModule m
less {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT
}
ENTRY main {
  x = f32[40] parameter(0)
  y = f32[40] negate(x)
  s = f32[40] sort(y), dimensions={0}, to_apply=less
  ROOT z = f32[40] reverse(s), dimensions={0}
}
"""


@pytest.mark.parametrize("at_end", [True, False])
def test_a_byte_beside_an_array_is_seen(at_end: bool) -> None:
    placed, = Regions().arrays([(np.dtype(np.int16), (33,))], at_end, 64)
    assert placed.strays() == "" and placed.array.ctypes.data % 64 == 0
    memory = np.lib.stride_tricks.as_strided(placed.array.view(np.uint8), (67,))
    memory[66] = CANARY ^ 1
    assert placed.strays() == "1 bytes changed behind it, the nearest 0 bytes away"


@pytest.mark.parametrize("past", ["array.ctypes.data + array.nbytes", "array.ctypes.data - 1"])
def test_a_page_beside_an_array_ends_the_process(past: str) -> None:
    code = (f"import ctypes, numpy as np; from tests.grid.guards import Regions; "
            f"array = Regions().arrays([(np.dtype(np.float32), (5,))], {'nbytes' in past}, 4)[0].array; print('there', flush=True); ctypes.string_at({past}, 1)")
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "there\n" and done.returncode == -signal.SIGSEGV


def test_slots_lie_apart_and_stray_stores_between_them_are_seen() -> None:
    module = load(TEXT).module()
    apart = compile_module(module, None, Options(apart=256), use_cache=False)
    shared = compile_module(module, None, Options(), use_cache=False)
    slots = sorted(apart.program.temps, key=lambda s: s.offset)
    assert len(slots) > 1 and slots[0].offset >= 256
    assert all(b.offset - a.offset - a.bytes >= 256 for a, b in pairwise(slots))
    assert apart.program.arena_bytes == slots[-1].offset + slots[-1].bytes + 256 > shared.program.arena_bytes
    x = np.arange(40, dtype=np.float32)
    executable = apart.executable
    assert isinstance(executable, Executable)
    arena = Arena(apart.program, executable._arena, True)
    arena.fill()
    assert np.array_equal(apart(x)[0], shared(x)[0]) and arena.strays() == ""
    executable._arena[slots[0].offset + slots[0].bytes] ^= 1
    assert arena.strays().startswith("1 bytes changed between")


def test_a_case_that_is_right() -> None:
    outcome = run_case(Case.of("softmax/3x17/f32/2/native/strided/plain/biased/joined/end"))
    assert (outcome.said, outcome.why) == ("right", "") and "rows" in outcome.families


def test_what_raises_is_an_outcome() -> None:
    outcome = run_case(Case("add", (3,), "f32", first="nowhere"))
    assert outcome.said == "raised" and "KeyError" in outcome.why


def test_a_campaign_runs_in_processes_and_goes_on_where_it_was_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys = [Case("add", (n,), "f32").key for n in (0, 1, 17)]
    assert campaign(State(tmp_path, "t" * 40), keys[:2], [7], 2, 1.0) == 0
    assert campaign(State(tmp_path, "t" * 40), keys, [7], 2, 1.0) == 0
    assert "3 cases, 2 of them done before" in capsys.readouterr().out
    state = State(tmp_path, "t" * 40)
    assert set(state.results) == set(keys) and state.seconds > 0
    assert "3 right; 0 failures" in (tmp_path / "report.md").read_text()
    assert State(tmp_path, "u" * 40).results == {}  # other code: nothing counts


def test_a_worker_that_dies_is_told_with_its_case(tmp_path: Path) -> None:
    keys = ["no/case/at/all", Case("add", (3,), "f32").key]
    state = State(tmp_path, "t" * 40)
    assert campaign(state, keys, [], 1, 1.0) == 1
    assert (state.results[keys[0]].said, state.results[keys[1]].said) == ("crashed", "right")
    assert "* no: 1 crashed" in report(state, [], 2)


def test_half_a_line_at_the_end_of_the_progress_is_passed_over(tmp_path: Path) -> None:
    state = State(tmp_path, "t" * 40)
    state.add([Result("a", "right")], 1.0)
    with (tmp_path / f"{'t' * 12}.jsonl").open("a") as file:
        file.write('{"seconds": 2')
    again = State(tmp_path, "t" * 40)
    assert again.results == {"a": Result("a", "right")} and again.seconds == 1.0


def test_the_code_is_named_as_git_names_it(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "one.py").write_text("one\n")
    (tmp_path / "b.py").write_text("two\n")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "x.pyc").write_text("not counted")
    assert tree_hash(tmp_path) == "818dd13286661d4836193fe29aef696eeccbd7ab"
