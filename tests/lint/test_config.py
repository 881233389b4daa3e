"""The project's settings: found, checked to the last key, and obeyed."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

import irscope
from irscope.lint.config import Config, find_config, read_config
from irscope.lint.session import Options, Session
from irscope.source import Severity, UserError
from tests.conftest import Cli
from tests.effort import within

WASTEFUL = """HloModule m
ENTRY e {
  p = f32[8]{0} parameter(0)
  a = f32[8]{0} exponential(p), metadata={op_name="jit(f)/decoder/exp" source_file="net.py" source_line=3}
  b = f32[8]{0} exponential(p), metadata={op_name="jit(f)/encoder/exp" source_file="net.py" source_line=9}
  d = f32[8]{0} negate(p), metadata={op_name="jit(f)/decoder/neg"}
  ROOT s = f32[8]{0} add(a, b)
}
"""
"""ALG002 at %b (equal to %a), ALG003 at %d (nobody takes it)."""
TODAY = datetime.date(2026, 6, 1)


def test_blank_lines_take_linear_time(tmp_path: Path) -> None:
    with within(2), pytest.raises(UserError, match="has no key 'nope'"):
        written(tmp_path, "\n" * 40_000 + '"no\\u0070e" = 1')


def written(folder: Path, text: str, name: str = "irscope.toml") -> Config:
    (folder / name).write_text(text)
    return read_config(str(folder / name))


def codes(config: Config | None, file: str = "models/x.hlo", options: Options | None = None) -> list[str]:
    """What a session finds in the wasteful graph."""
    session = Session(options or Options(), config, TODAY)
    session.add(file, irscope.load(WASTEFUL, name=file))
    return sorted(finding.code for finding in session.report().findings())


def test_without_settings_everything_is_told() -> None:
    assert codes(None) == ["ALG002", "ALG003"]


def test_the_nearest_file_wins_and_one_without_settings_is_passed_by(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.irscope]\nignore = ["ALG"]\n')
    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'irscope-user'\n")
    found = find_config(inner)
    assert found is not None
    assert found.top == {"ignore": ("ALG",)}
    assert found.folder == tmp_path
    (inner / "irscope.toml").write_text('select = "DTY"\n')
    nearest = find_config(inner)
    assert nearest is not None
    assert nearest.top == {"select": ("DTY",)}


def test_select_ignore_and_options_over_them(tmp_path: Path) -> None:
    config = written(tmp_path, 'select = ["ALG002", "DTY"]')
    assert codes(config) == ["ALG002"]
    assert codes(config, options=Options(select=["ALG003"])) == ["ALG003"]
    assert codes(written(tmp_path, 'ignore = ["duplicate-subexpression"]')) == ["ALG003"]
    assert codes(written(tmp_path, 'ignore = ["ALG", "HLO020", "KRN003"]')) == []


def test_settings_of_paths(tmp_path: Path) -> None:
    config = written(tmp_path, '[per-path."models/*"]\nignore = ["ALG003"]\nmax-kernels = 0\nfail-on = "error"\n')
    assert codes(config, str(tmp_path / "models" / "x.hlo")) == ["ALG002", "KRN003"]
    assert codes(config, str(tmp_path / "other" / "x.hlo")) == ["ALG002", "ALG003"]
    session = Session(Options(), config, TODAY)
    assert session.add(str(tmp_path / "models/x.hlo"), irscope.load(WASTEFUL)).fail_on is Severity.ERROR
    assert session.add("y.hlo", irscope.load(WASTEFUL)).fail_on is Severity.WARNING


def test_settings_of_scopes(tmp_path: Path) -> None:
    assert codes(written(tmp_path, '[per-scope."*decoder*"]\nignore = ["ALG"]')) == ["ALG002"]
    assert codes(written(tmp_path, '[per-scope."*encoder*"]\nignore = ["ALG"]')) == ["ALG003"]


@pytest.mark.parametrize("field", [
    'node = "b"', 'source = "net.py:9*"', 'scope = "*/encoder/*"', 'path = "models/*"', 'path = "x.hlo"', 'until = 2026-06-01', 'until = "2026-07-01"',
])
def test_a_suppression_hides_what_it_describes(tmp_path: Path, field: str) -> None:
    assert codes(written(tmp_path, f'[[suppress]]\nrule = "ALG002"\nreason = "wanted"\n{field}\n')) == ["ALG003"]


@pytest.mark.parametrize("field", ['node = "zz"', 'source = "other.py*"', 'scope = "*/decoder/*"'])
def test_a_suppression_that_fits_nothing_is_told_with_its_reason(tmp_path: Path, field: str) -> None:
    config = written(tmp_path, f'select = ["ALG"]\n\n[[suppress]]\nrule = "ALG002"\nreason = "wanted"\n{field}\n')
    session = Session(Options(), config, TODAY)
    session.add("x.hlo", irscope.load(WASTEFUL))
    report = session.report()
    assert sorted(f.code for f in report.findings()) == ["ALG002", "ALG003", "CFG001"]
    last = report.findings()[-1]
    place = last.place()
    assert place is not None
    assert (place.line, last.message) == (3, "the suppression of ALG002 fits no finding: wanted")


def test_one_for_files_that_were_not_looked_at_is_not_called_unused(tmp_path: Path) -> None:
    assert codes(written(tmp_path, '[[suppress]]\nrule = "ALG002"\nreason = "wanted"\npath = "elsewhere/*"\n')) == ["ALG002", "ALG003"]


def test_an_expired_suppression_hides_nothing_and_is_told(tmp_path: Path) -> None:
    config = written(tmp_path, '[[suppress]]\nrule = "ALG"\nreason = "until the release"\nuntil = 2026-05-31\n')
    assert codes(config) == ["ALG002", "ALG003", "CFG002"]


@pytest.mark.parametrize(("text", "message", "help"), [
    ('ingore = ["ALG"]', ":1: the top of the file has no key 'ingore'", "did you mean ignore?"),
    ("\nmax_kernels = 3", ":2: the top of the file has no key 'max_kernels'", "did you mean max-kernels?"),
    ("max-kernels = -1", ":1: max-kernels in the top of the file is -1", "a whole number"),
    ('max-traffic = "12 apples"', ":1: '12 apples' is not a size", "sizes are written"),
    ('fail-on = "fatal"', ":1: fail-on in the top of the file is 'fatal'", "error, warning or info"),
    ('[[suppress]]\nrule = "ALG002"', "a suppression has no reason", "why it is accepted"),
    ('[[suppress]]\nrule = "ALG002"\nreason = "x"\nuntill = 2026-01-01', ":4: [suppress] has no key 'untill'", "did you mean until?"),
    ('[check]\nmodel = [{max-kernels = 2}]', "a [[check.model]] has no path", "exports/model.hlo"),
    ('[per-path."a/*"]\nselekt = ["ALG"]', "has no key 'selekt'", "did you mean select?"),
    ("select = [", "irscope.toml: ", "TOML"),
    ('fail-on = "error"\nselect = ["ALG", "ALG02X"]', ":2: select in the top of the file: there is no rule ALG02X", "did you mean ALG012?"),
    ('[per-scope."a/*"]\nignore = ["dead-cod"]', ":2: ignore in [per-scope.'a/*']: there is no rule dead-cod", "did you mean dead-code?"),
    ('[[suppress]]\nreason = "x"\nrule = "ALG02X"', ":3: rule in [suppress]: there is no rule ALG02X", "did you mean ALG012?"),
    ('[per-path."a/*"]\npolicy = "xla-gup"', ":2: policy in [per-path.'a/*']: there is no fusion policy 'xla-gup'", "did you mean xla-gpu?"),
    ('[check]\nmachine = "h200"', ":2: machine in [check]: there is no machine 'h200'", "did you mean h100?"),
    ("tool = 5", "irscope.toml: [tool] is not a table", "[tool.irscope]"),
    ("[[tool]]\nx = 1", "irscope.toml: [tool] is not a table", "[tool.irscope]"),
    (f"[check]\nrtol = 1{'0' * 400}", ":2: rtol in [check] is 1000", "a number from 0"),
    ('expect-dtype = "bf61"', ":1: expect-dtype in the top of the file: 'bf61' cannot be expected", "did you mean bf16?"),
])
def test_what_is_wrong_in_the_settings_is_told_with_its_line(tmp_path: Path, text: str, message: str, help: str) -> None:
    with pytest.raises(UserError) as error:
        written(tmp_path, text)
    assert message in error.value.message
    assert help in error.value.help


@pytest.mark.parametrize("text", ['select = ["ALG02X"]', '[[suppress]]\nrule = "ALG02X"\nreason = "x"', '[per-scope."*"]\nignore = ["ALG02X"]'])
def test_a_rule_that_is_not_there_is_told(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="there is no rule ALG02X"):
        Session(Options(), written(tmp_path, text), TODAY)


def test_the_command_line_reads_ignores_and_names_settings(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.hlo").write_text(WASTEFUL)
    (tmp_path / "pyproject.toml").write_text('[tool.irscope]\nignore = ["ALG"]\nformat = "concise"\n')
    assert cli("lint", "x.hlo").stdout == "no findings\n"
    assert "ALG002" in cli("lint", "x.hlo", "--isolated").stdout
    (tmp_path / "other.toml").write_text('select = ["ALG003"]\n')
    named = cli("lint", "x.hlo", "--config", "other.toml")
    assert "ALG003" in named.stdout and "ALG002" not in named.stdout
    assert cli("lint", "x.hlo", "--config", "other.toml", "--isolated").exit_code == 2
    (tmp_path / "pyproject.toml").write_text('[tool.irscope]\nformat = "consice"\n')
    wrong = cli("lint", "x.hlo")
    assert wrong.exit_code == 2
    assert "did you mean concise?" in wrong.stderr
    (tmp_path / "empty.toml").write_text("[tool.other]\n")
    assert "has no [tool.irscope]" in cli("lint", "x.hlo", "--config", "empty.toml").stderr
