"""Texts that were cut off: what is complete, which computation is the entry, and what commands say of them."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

import irscope
from irscope.cli.main import main
from irscope.diff.report import as_text
from tests.conftest import Cli
from tests.schemas import conforms

SCHEMAS = Path(irscope.__file__).parent / "schemas"

def check(name: str, document: object) -> None:
    """Check a document of a command against its schema."""
    schema = json.loads((SCHEMAS / f"{name}.json").read_text())
    assert conforms(document, schema, schema) == []


WHOLE = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}

%fused_computation (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  %e = f32[8]{0} exponential(%p)
  %e2 = f32[8]{0} exponential(%p)
  ROOT %m = f32[8]{0} multiply(%e, %e2)
}

%inner (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  ROOT %fusion = f32[8]{0} fusion(%q), kind=kLoop, calls=%fused_computation
}

ENTRY %main.3 (x: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  ROOT %call = f32[8]{0} call(%x), to_apply=%inner
}

"""


def at(text: str, behind: bool = True) -> str:
    """The beginning of the module, up to the end (or the begin) of a piece of it."""
    return WHOLE[:WHOLE.index(text) + len(text) * behind]


@pytest.mark.parametrize("text, complete, entry", [
    (at("HloModule jit_f, is_sch"), 0, None),
    (at("HloModule jit_f"), 0, None),
    (at("->f32[8]{0}}"), 0, None),
    (at("parameter(0)"), 0, None),
    (at("%e2)"), 0, None),
    (at("%e2)\n}"), 1, None),
    (at("%e2)\n}\n"), 1, None),
    (at("%e2)\n}\n\n%inner (q: f3"), 1, None),
    (at("%inner (q: f32[8]) -> f32[8] {"), 1, None),
    (at("calls=%fused_computation"), 1, None),
    (at("calls=%fused_computation\n}\n\n"), 2, None),  # of the types of the entry, and yet not it
    (at("%inner\n}", False), 2, "main.3"),
    (at("\n\nENT"), 2, None),
    (at("ENTRY %main.3 (x: f32[8]) -> f32[8] {"), 2, "main.3"),
    (at("ENTRY %main.3 (x: f32[8]) -> f32[8] {\n"), 2, "main.3"),
    (at("to_apply=%in"), 2, "main.3"),
    (at("to_apply=%inner\n"), 2, "main.3"),
])
def test_what_is_there_of_a_cut_text(text: str, complete: int, entry: str | None) -> None:
    reading = irscope.load(text if "\n" in text else text.encode(), name="t.hlo")
    module = reading.module()
    assert module.cut is not None and (len(module.cut.complete), module.cut.entry) == (complete, entry)
    assert not reading.ok and not module.entry and reading.findings[0].message == str(module.cut)
    assert f"{complete} complete" in reading.findings[0].message and ("missing" in reading.findings[0].message) == (entry is None)


@pytest.mark.parametrize("text", [
    WHOLE, WHOLE.rstrip(), WHOLE.replace(", entry_computation_layout={(f32[8]{0})->f32[8]{0}}", "").replace("ENTRY ", ""),
    "HloModule m, entry_computation_layout={(f32[8])->f32[8]}\nf {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n",
    "f {\n  p = f32[8] parameter(0)\n  ROOT n = f32[8] negate(p)\n}\n",
])
def test_a_whole_text_is_not_cut(text: str) -> None:
    reading = irscope.load(text, name="t.hlo")
    assert reading.ok and reading.module().cut is None and reading.module().entry


def test_the_first_of_two_modules_may_be_cut() -> None:
    first, second = irscope.load(at("%e2)\n}\n\n%inner (q: f32[8]) -> f32[8] {\n") + WHOLE, name="t.hlo").modules
    assert first.cut is not None and first.cut.complete == {"fused_computation"}
    assert second.cut is None and second.entry == "main.3"


def test_show_says_first_that_the_text_is_cut_off(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "t.hlo").write_text(at("calls=%fused_computation"))
    shown = cli("show", tmp_path / "t.hlo")
    assert shown.exit_code == 2
    assert shown.stdout.startswith("the text is cut off after 12 lines: 1 complete computation, ENTRY missing\n")
    assert "traffic" not in shown.stdout and "fused_computation -> f32[8]{0}: 4  exponential 2, multiply" in shown.stdout
    document = json.loads(cli("show", tmp_path / "t.hlo", "--format", "json").stdout)
    check("show", document)
    module = document["modules"][0]
    assert module["entry"] is None and module["cut"] == {"complete": 1, "entry": None}
    assert module["summary"]["flops"] is None and module["summary"]["nodes"] == 6
    assert [graph["complete"] for graph in module["graphs"]] == [True, False]
    one = cli("show", tmp_path / "t.hlo", "--graph", "fused_computation").stdout
    assert "fused_computation       4    24 FLOP     224 B" in one


def test_stats_count_what_is_there_and_leave_open_what_is_not(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "cut.hlo").write_text(at("to_apply=%in"))
    (tmp_path / "whole.hlo").write_text(WHOLE)
    result = cli("stats", tmp_path, "--format", "json")
    cut, whole = records = json.loads(result.stdout)
    check("stats", records)
    assert result.exit_code == 2 and not cut["ok"] and whole["ok"]
    assert cut["cut"] == {"complete": 2, "entry": "main.3"} and cut["flops"] is cut["bytes"] is None and cut["graphs"] == 3
    table = cli("stats", tmp_path).stdout
    assert "cut off after 17 lines" in table and table.splitlines()[-1].split()[-3:] == ["?", "?", "?"]


def test_lint_looks_at_complete_computations_and_no_gate_passes(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "t.hlo").write_text(at("calls=%fused_computation"))
    result = cli("lint", tmp_path / "t.hlo", "--exit-zero", "--max-kernels", "100", "--isolated", "--format", "json")
    found = json.loads(result.stdout)["files"][0]["findings"]
    assert result.exit_code == 2 and [f["code"] for f in found] == ["HLO002", "ALG002"]
    assert "gates did not look at t.hlo: the text is cut off" in cli("lint", tmp_path / "t.hlo", "--max-kernels", "100").output


def test_diff_compares_complete_computations(tmp_path: Path, cli: Cli) -> None:
    a, b = tmp_path / "a.hlo", tmp_path / "b.hlo"
    a.write_text(at("calls=%fused_computation"))
    b.write_text(WHOLE.replace("multiply(", "add("))
    result = irscope.diff(a, b)
    assert not result.same and not result.readable and not result.comparison.before
    pairs = {pair.after.name: pair.same for pair in result.comparison.pairs if pair.before and pair.after}
    assert pairs == {"fused_computation": False}
    assert "a.hlo: the text is cut off after 12 lines" in as_text(result.comparison, "a.hlo", "b.hlo")
    gated = cli("diff", a, a, "--fail-if", "kernels>+100", "--format", "json")
    document = json.loads(gated.stdout)
    check("diff", document)
    assert gated.exit_code == 2 and document["same"] is False and document["cut"]["before"] and "cannot be judged" in gated.stderr
    assert cli("diff", a, b, "--format", "html").exit_code == 2


def test_a_cut_text_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "t.hlo").write_text(at("%e2)\n}\n"))
    assert main(["compile-and-run", str(tmp_path / "t.hlo")]) == 2
    assert main(["opt", str(tmp_path / "t.hlo"), "--passes", "remove-dead"]) == 2
