"""Folders that XLA wrote: modules, stages, what changed between them, the report on memory."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from irscope.analysis.survey import Survey
from irscope.fleet.buffers import parse_buffer_assignment, parse_memory_usage
from irscope.fleet.dump_folder import read_folder, reports_beside
from irscope.fleet.timeline import fusions_of, timeline
from tests.analysis.texts import FUSED, survey
from tests.conftest import Cli

BEFORE = """HloModule jit_f
add_f32 { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[8,4] parameter(0)
  w = f32[4,16] parameter(1)
  bias = f32[16] parameter(2)
  dot = f32[8,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  wide = f32[8,16] broadcast(bias), dimensions={1}
  biased = f32[8,16] add(dot, wide)
  twice = f32[8,16] add(dot, wide)
  zero = f32[] constant(0)
  ROOT total = f32[8] reduce(biased, zero), dimensions={1}, to_apply=add_f32
}
"""
TRIVIAL = "HloModule jit_g\nENTRY main {\n  x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)\n}\n"
REPORT = """BufferAssignment:
allocation 0: size 512, maybe-live-out:
 value: <3 dot @0> (size=512,offset=0): f32[8,16]{1,0}
 value: <5 total @0> (size=32,offset=0): f32[8]{0}
allocation 1: size 128, parameter 0, shape |f32[8,4]| at ShapeIndex {}:
 value: <1 x @0> (size=128,offset=0): f32[8,4]{1,0}
allocation 2: size 4, thread-local:
 value: <9 s{} @0> (size=4,offset=0): f32[]
allocation 3: size 64, preallocated-temp:
 value: <4 biased{1} @0> (size=64,offset=0): f32[16]{0}

Total bytes used: 708
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    files = {
        "module_0003.jit_f.before_optimizations.txt": BEFORE,
        "module_0003.jit_f.0000.simplification.after_pipeline-start.before_dce.txt": BEFORE,
        "module_0003.jit_f.0001.simplification.after_dce.before_pipeline-end.txt": BEFORE.replace("  twice = f32[8,16] add(dot, wide)\n", ""),
        "module_0003.jit_f.cpu_after_optimizations.txt": FUSED.replace("HloModule fused", "HloModule jit_f"),
        "module_0003.jit_f.cpu_after_optimizations-buffer-assignment.txt": REPORT,
        "module_0007.jit_g.before_optimizations.txt": TRIVIAL,
        "module_0007.jit_g.cpu_after_optimizations.txt": TRIVIAL,
        "module_0003.jit_f.ir-no-opt.ll": "; ModuleID", "module_0003.jit_f.debug_options": "xla_flag: true",
    }
    for rank in ("rank0", "rank1"):
        (tmp_path / rank).mkdir()
        for name, text in files.items():
            (tmp_path / rank / name).write_text(text)
    return tmp_path


def test_files_are_sorted_into_modules_and_stages(dump: Path) -> None:
    folder = read_folder(str(dump / "rank0"))
    assert [(m.title, len(m.stages)) for m in folder.modules] == [("module_0003.jit_f", 4), ("module_0007.jit_g", 2)]
    assert [s.words() for s in folder.modules[0].stages] == [
        "before optimizations", "0 begin (simplification)", "1 dce (simplification)", "cpu after optimizations"]
    assert set(folder.modules[0].reports) == {"buffer-assignment"}
    assert not folder.others


def test_the_timeline_tells_what_each_pass_changed(dump: Path) -> None:
    steps = timeline(read_folder(str(dump / "rank0")).modules[0])
    assert [bool(step.came or step.went) for step in steps] == [False, False, True, True]
    assert (steps[2].came, steps[2].went) == ({}, {"add": 1})
    assert steps[3].came == {"fusion": 1, "parameter": 2}


def test_the_fusions_that_xla_made_are_counted() -> None:
    found = fusions_of(survey(FUSED))
    assert (found.kinds, found.inside, found.alone) == ({"kLoop": 1}, 2, {"dot": 1, "reduce": 1})


def test_the_buffer_assignment_is_read() -> None:
    found = parse_buffer_assignment(REPORT)
    assert found.total == 708
    assert {sort: found.bytes_of(sort) for sort in ("parameter", "output", "temporary", "thread-local")} == {
        "parameter": 128, "output": 512, "temporary": 64, "thread-local": 4}
    assert found.largest(2) == [("dot", 512, "output"), ("biased", 64, "temporary")]
    assert parse_buffer_assignment("no report\n").total == 0
    assert parse_buffer_assignment(f"allocation 0: size {'9' * 5000}, parameter 0\n").allocations == []
    assert parse_memory_usage(f"Memory Space: default (color=0)\nTotal bytes: {'9' * 5000}\n") == {}


def test_show_takes_the_costliest_module_and_groups_ranks(dump: Path, cli: Cli) -> None:
    result = cli("show", dump, "--width", 100)
    assert result.exit_code == 0, result.output
    for words in ("4 modules of 2 ranks", "> module_0003.jit_f ×2", "1 dce (simplification)", "-1 add", "+1 fusion",
                  "5 operations before → 3 kernels: 1 fusion (kLoop 1) of 2 operations", "708 B", "HLO module jit_f"):
        assert words in result.stdout, result.stdout


def test_show_takes_a_module_by_name_and_draws_it(dump: Path, cli: Cli) -> None:
    assert "HLO module jit_g" in cli("show", dump, "--module", "jit_g").stdout
    assert "HLO module jit_g" in cli("show", dump, "--module", 7).stdout
    out = dump / "g.dot"
    assert cli("show", dump, "--module", "jit_g", "-o", out).exit_code == 0
    assert "negate" in out.read_text()
    wrong = cli("show", dump, "--module", "jit_h")
    assert wrong.exit_code == 2
    assert "did you mean jit_" in wrong.stderr


def test_stats_gives_the_timeline(dump: Path, cli: Cli) -> None:
    result = cli("stats", dump / "rank0")
    assert result.exit_code == 0
    assert "module_0003.jit_f: what each pass changed" in result.stdout


def test_a_folder_without_dumps_says_how_to_get_one(tmp_path: Path, cli: Cli) -> None:
    result = cli("show", tmp_path)
    assert result.exit_code == 2
    assert "--xla_dump_hlo_as_text" in result.stderr


def test_memory_of_the_module_is_near_the_report() -> None:
    facts = Survey(survey(FUSED).module)
    assert facts.memory.graphs[facts.module.main()].peak == 512 + 32


USAGE = "Memory Space: default (color=0)\nTotal bytes: 708 (708B)\n  cumulative_size;  size\n\nMemory Space: host (color=5)\nTotal bytes: 64\n"


def test_the_account_of_memory_stands_below_a_single_file_too(dump: Path, cli: Cli) -> None:
    last = dump / "rank0" / "module_0003.jit_f.cpu_after_optimizations.txt"
    assert set(reports_beside(str(last))) == {"buffer-assignment"}
    said = cli("show", str(last)).stdout
    assert "memory  as XLA assigned it (buffer-assignment report)\n  708 B" in said
    last.with_name("module_0003.jit_f.cpu_after_optimizations-buffer-assignment.txt").unlink()
    assert "as XLA assigned it" not in cli("show", str(last)).stdout
    last.with_name("module_0003.jit_f.cpu_after_optimizations-memory-usage-report.txt").write_text(USAGE)
    assert parse_memory_usage(USAGE) == {"default": 708, "host": 64}
    assert "(memory-usage report)\n  772 B · default 708 B · host 64 B" in cli("show", str(last)).stdout


@pytest.mark.parametrize("name", [
    "module_0003.jit_f.cpu_after_optimizations-live-range.txt", "module_0003.jit_f.cpu_after_optimizations.dot",
    "module_0003.jit_f.cpu_after_optimizations.hlo.pb"])
def test_what_lies_beside_a_dump_is_answered_with_the_dump(dump: Path, cli: Cli, name: str) -> None:
    texts = {"dot": b"digraph G {\n}\n", "txt": b"HloLiveRange (max 9):\n", "pb": b"\n\x05jit_f\x12\x06main.1\x12\x09parameter\x1a\x00\x00"}
    path = dump / "rank0" / name
    path.write_bytes(texts[name.rpartition(".")[2]])
    done = cli("show", str(path))
    assert done.exit_code == 2
    assert f"its text is in the same folder: {dump / 'rank0' / 'module_0003.jit_f.cpu_after_optimizations.txt'}" in done.stderr


def test_a_report_of_memory_is_shown_alone(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "m-memory-usage-report.txt").write_text(USAGE)
    shown = cli("show", tmp_path / "m-memory-usage-report.txt")
    assert shown.exit_code == 0 and "772 B · default 708 B · host 64 B" in shown.stdout
    (tmp_path / "m-buffer-assignment.txt").write_text("BufferAssignment:\nallocation 0: size 8, parameter 0, shape |f32[2]|:\n"
                                                      "allocation 1: size 24, maybe-live-out:\n value: <3 add.1 @0> (size=24,offset=0): f32[6]\n")
    document = json.loads(cli("show", tmp_path / "m-buffer-assignment.txt", "--format", "json").stdout)
    assert document["modules"] == [] and document["memory"]["total"] == 32
    assert document["memory"]["largest"] == [{"node": "add.1", "bytes": 24, "sort": "output"}]


@pytest.mark.parametrize("stage", ["cpu_after_optimizations", "sm_9.0_gpu_after_optimizations", "tpu_after_optimizations", "after_optimizations"])
def test_the_name_of_a_module_may_hold_dots(tmp_path: Path, stage: str) -> None:
    for rank in (0, 1):
        (tmp_path / f"module_0003.jit_f.rank{rank}.{stage}.txt").write_text(BEFORE)
    assert [(m.name, m.stages[0].name) for m in read_folder(str(tmp_path)).modules] == [(f"jit_f.rank{rank}", stage) for rank in (0, 1)]


def test_digits_of_other_kinds_are_no_number_of_a_pass(tmp_path: Path) -> None:
    file = tmp_path / "module_0001.m.\u00b2\u00b2\u00b2\u00b2_after_optimizations.txt"
    file.write_text("HloModule m\n\nENTRY e {\n  ROOT p = f32[2] parameter(0)\n}\n")
    [module] = read_folder(str(tmp_path)).modules
    assert module.last.is_last
