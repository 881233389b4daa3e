"""irscope lint --fix: what passes can mend is mended in a copy, and what is gone and left is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Cli

TWICE = """HloModule m

ENTRY e {
  x = f32[512,512] parameter(0)
  t = f32[512,512] tanh(x)
  u = f32[512,512] tanh(x)
  ROOT r = f32[512,512] add(t, u)
}
"""


def test_what_passes_can_mend_is_written_to_another_file(cli: Cli, tmp_path: Path) -> None:
    source, mended = tmp_path / "m.hlo", tmp_path / "mended.hlo"
    source.write_text(TWICE)
    told = cli("lint", source, "--fix", "-o", mended, "--isolated")
    assert (told.exit_code, told.stdout) == (0, "")
    assert told.stderr.strip() == f"{source}: fixed by share-equal: ALG002 1"
    assert source.read_text() == TWICE
    assert mended.read_text().count("tanh(") == 1
    assert cli("lint", mended, "--isolated").stdout.endswith("\n\nno findings\n")
    assert cli("diff", source, mended, "--fail-if", "kernels>+0").exit_code == 0


def test_without_a_file_the_program_goes_to_standard_output(cli: Cli, samples: Path) -> None:
    told = cli("lint", samples / "wasteful.pre.hlo", "--fix", "--isolated")
    assert told.exit_code == 1
    assert told.stdout.startswith("HloModule ")
    assert "ALG002 1; left: BRD007 1, DTY001 1, DTY003 1, DTY004 1, FUS002 1" in told.stderr


def test_what_no_pass_mends_is_said(cli: Cli, samples: Path) -> None:
    told = cli("lint", samples / "risky.traced.txt", "--fix", "--isolated", "--exit-zero")
    assert told.exit_code == 0
    assert "no pass fixes these findings: each finding says what to do; left: CTL001 1" in told.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["m.hlo", "-o", "m.hlo"], "m.hlo is an input; it is not overwritten"),
        (["m.hlo", "n.hlo"], "--fix takes one file"),
        (["."], "--fix takes one file"),
        (["m.hlo", "--format", "json"], "--fix writes the program, and no report"),
        (["broken.hlo"], "has faults, and cannot be fixed"),
    ],
)
def test_what_it_cannot_do_is_told(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], says: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.hlo").write_text(TWICE)
    Path("n.hlo").write_text(TWICE)
    Path("broken.hlo").write_text(TWICE.replace("tanh(x)", "tanh(gone)", 1))
    told = cli("lint", *words, "--fix", "--isolated")
    assert told.exit_code == 2
    assert says in told.stderr
    assert Path("m.hlo").read_text() == TWICE
