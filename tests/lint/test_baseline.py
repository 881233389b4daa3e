"""Accepted findings stay accepted when a model is exported again."""

from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.lint import lint_reading
from irscope.lint.baseline import fingerprint, read_baseline, read_fusion, unknown_to, write_baseline
from irscope.lint.session import Options, Session
from irscope.source import UserError

TEXT = """HloModule m
ENTRY e {{
  p = f32[8] parameter(0)
  {dead} = f32[8] exponential(p)
  ROOT r = f32[8] negate(p)
}}
"""


def test_a_baseline_hides_what_it_accepts_whatever_the_numbers_behind_the_names(tmp_path: Path) -> None:
    first = lint_reading(irscope.load(TEXT.format(dead="exp.3")))
    again = lint_reading(irscope.load("\n\n" + TEXT.format(dead="exp.41")))
    assert [fingerprint(f) for f in first] == [fingerprint(f) for f in again]
    path = str(tmp_path / "baseline.json")
    write_baseline(path, first)
    assert unknown_to(read_baseline(path), again) == []
    assert len(unknown_to(read_baseline(path), [*again, *again])) == len(again)


def test_a_file_that_is_no_baseline_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text("[1]")
    with pytest.raises(UserError, match="is no baseline"):
        read_baseline(str(path))
    with pytest.raises(UserError):
        read_baseline(str(tmp_path / "missing.json"))


@pytest.mark.parametrize(("key", "value"), [
    ("traffic", "1" + "0" * 400), ("traffic", "NaN"), ("traffic", '"12"'), ("kernels", "1e999"), ("apart", '{"dot -> add": "x"}'), ("apart", "[]"),
])
def test_figures_of_fusion_that_are_no_numbers_are_refused(key: str, value: str, tmp_path: Path) -> None:
    row = {"kernels": "1", "traffic": "1.5", "policy": '"irscope"', "apart": '{"dot -> add": 1}', key: value}
    path = tmp_path / "b.json"
    figures = ", ".join(f'"{name}": {text}' for name, text in row.items())
    path.write_text(f'{{"version": 1, "findings": [], "fusion": {{"m.hlo": {{{figures}}}}}}}')
    with pytest.raises(UserError, match="what it holds of fusion is damaged"):
        read_fusion(str(path))


@pytest.mark.parametrize("text", ['{"findings": [], "tool": "other"}', '{"findings": {}}', "[]", "x"])
def test_a_file_of_another_tool_is_not_overwritten(text: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(UserError, match="is no baseline of irscope; it is not overwritten"):
        write_baseline(str(path), [])
    assert path.read_text() == text


def test_equal_layers_are_all_accepted(tmp_path: Path) -> None:
    """Findings that differ in the numbers behind names alone have one fingerprint, and each is accepted."""
    layers = "".join(f"  e.{i} = f32[64,64] exponential(x)\n  d.{i} = f32[64,64] exponential(x)\n" for i in range(1, 4))
    text = f"HloModule m\n\nENTRY e {{\n  x = f32[64,64] parameter(0)\n{layers}  ROOT r = (f32[64,64]) tuple(e.1)\n}}\n"
    found = lint_reading(irscope.load(text))
    assert len({fingerprint(finding) for finding in found}) < len(found)
    write_baseline(str(tmp_path / "b.json"), found)
    assert unknown_to(read_baseline(str(tmp_path / "b.json")), found) == []


def test_what_is_accepted_once_is_accepted_once_in_all_files(tmp_path: Path) -> None:
    path = str(tmp_path / "b.json")
    first = lint_reading(irscope.load(TEXT.format(dead="exp.3")))
    write_baseline(path, first)
    session = Session(Options(baseline=path))
    assert session.add("a.hlo", irscope.load(TEXT.format(dead="exp.3"))).findings == []
    again = session.add("b.hlo", irscope.load(TEXT.format(dead="exp.3"))).findings
    assert [f.code for f in again] == [f.code for f in first]
    assert (session.accepted, session.stale) == (len(first), 0)
