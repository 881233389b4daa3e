"""How irscope ends: one clear message and the exit code of the contract, never a traceback that nobody asked for."""
from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from irscope.cli import errors
from irscope.source import Finding, Severity, SourceText, UserError
from irscope.version import __version__
from tests.conftest import Cli


def run(body: object) -> int:
    """The exit status of a command whose whole work is ``body``: an exception to raise, or a value to return."""

    @click.command()
    def command() -> object:
        if isinstance(body, BaseException):
            raise body
        return body

    return errors.run(command, [], "irscope")


def test_a_command_that_ends_well_is_0() -> None:
    assert run(None) == 0


def test_a_command_returns_its_status() -> None:
    assert run(1) == 1


def test_a_command_may_exit_by_click_or_by_the_interpreter() -> None:
    assert run(click.exceptions.Exit(1)) == 1
    assert run(SystemExit(2)) == 2
    assert run(SystemExit()) == 0


def test_user_error_is_2_with_findings_message_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    source = SourceText("m.hlo", "x = f99[]")
    finding = Finding("HLO007", "unknown-dtype", Severity.ERROR, "there is no dtype f99", source, 4, 3)
    assert run(UserError("m.hlo: 1 error in the text", "mend it", [finding])) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "m.hlo:1:5: error[HLO007]: there is no dtype f99\n"
        "    1 | x = f99[]\n"
        "      |     ^^^\n"
        "error: m.hlo: 1 error in the text\n"
        "   help: mend it\n"
    )


def test_usage_error_is_2(cli: Cli) -> None:
    result = cli("doctor", "--nonsense")
    assert result.exit_code == 2
    assert "--nonsense" in result.stderr


def test_unknown_command_is_2_and_names_the_near_one(cli: Cli) -> None:
    result = cli("docter")
    assert result.exit_code == 2
    assert "did you mean doctor?" in result.stderr


def test_a_file_in_place_of_a_command_is_answered_with_the_command(cli: Cli) -> None:
    result = cli(__file__)
    assert result.exit_code == 2
    assert f"irscope show {__file__}" in result.stderr


def test_interruption_is_130() -> None:
    assert run(KeyboardInterrupt()) == 130


def test_defect_is_3_without_traceback(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("IRSCOPE_TRACEBACK", raising=False)
    assert run(KeyError("lost")) == 3
    err = capsys.readouterr().err
    assert "defect of irscope" in err and "KeyError: 'lost'" in err and "IRSCOPE_TRACEBACK=1" in err
    assert "Traceback" not in err


def test_defect_shows_its_traceback_when_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_TRACEBACK", "1")
    assert run(ZeroDivisionError("oh")) == 3
    err = capsys.readouterr().err
    assert "Traceback (most recent call last)" in err and "ZeroDivisionError: oh" in err


@pytest.mark.parametrize(("error", "status", "words"), [
    (FileNotFoundError(2, "No such file or directory", "/no/such/folder/report.json"), 2, "/no/such/folder/report.json: No such file"),
    (OSError(28, "No space left on device"), 2, "No space left on device"),
    (FileNotFoundError(2, "No such file or directory", str(Path(errors.__file__).parent / "template.html")), 3, "defect of irscope"),
    (ConnectionResetError(104, "Connection reset by peer"), 3, "defect of irscope"),
])
def test_a_refusal_of_the_system_is_the_users_but_for_our_own_files(
        error: OSError, status: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(error) == status
    assert words in capsys.readouterr().err


def test_out_of_memory_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(MemoryError()) == 2
    assert "memory" in capsys.readouterr().err


def test_version(cli: Cli) -> None:
    assert cli("--version").stdout == f"irscope {__version__}\n"


def test_python_m_irscope_is_irscope_and_a_closed_pipe_is_quiet() -> None:
    repo = Path(__file__).resolve().parents[2]
    program = f"{sys.executable} -m irscope --help | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(repo)})
    assert done.stdout == "0\n"
    assert done.stderr == ""


@pytest.mark.parametrize(("environment", "colour"), [({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False), ({"FORCE_COLOR": "1"}, True), ({}, False)])
def test_colour_follows_the_environment(environment: dict[str, str], colour: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert errors.wants_colour(io.StringIO()) is colour


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX closes streams")
@pytest.mark.parametrize(("words", "closed", "status", "says"), [
    ("show {0}", ">&-", 2, "error: standard output is closed"),
    ("stats {0}", ">&-", 2, "error: standard output is closed"),
    ("lint {0} --exit-zero", ">&-", 2, "error: standard output is closed"),
    ("compile-and-run {0} --no-cache", ">&-", 2, "error: standard output is closed"),
    ("show {0} -o {1}/x.svg", ">&-", 0, ""),
    ("show {0}", "2>&-", 0, ""),
    ("show {0}", "<&-", 0, ""),
    ("show -", "<&-", 2, "there is no standard input to read"),
])
def test_closed_streams(samples: Path, tmp_path: Path, words: str, closed: str, status: int, says: str) -> None:
    line = f"{sys.executable} -m irscope {words.format(samples / 'mlp.opt.hlo', tmp_path)} {closed}"
    told = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert told.returncode == status, told.stderr
    assert says in told.stderr
    if "-o" in words:
        assert (tmp_path / "x.svg").read_text().startswith("<")
