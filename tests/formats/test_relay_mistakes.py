"""What a learner gets wrong in Relay is told with its place and both figures, by lint and by a run, and in no words of Python's."""
from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.conftest import Cli

FOLDER = Path(__file__).parent / "relay_mistakes"
EXPECTED = dict(line.split(": ", 1) for line in (FOLDER / "expected.txt").read_text().splitlines() if not line.startswith("#"))
PYTHON = re.compile(
    r"object (?:has no attribute|is not)|positional argument|NoneType|unpack|takes \d+ arguments? but|index out of range|not supported between|"
    r"invalid literal|argument must be|zip\(\)|Traceback|KeyError|ValueError|TypeError|AttributeError|IndexError|math domain|"
    r"division (?:or modulo )?by zero|unexpected keyword|substring not found|defect of irscope"
)
"""Words of Python's exceptions."""


def test_every_text_is_expected_to_be_wrong() -> None:
    assert set(EXPECTED) == {file.stem for file in FOLDER.glob("*.relay")}
    assert len(EXPECTED) > 100


@pytest.mark.parametrize("name", EXPECTED)
def test_a_mistake_is_told_by_lint_and_by_a_run(name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.relay").write_text((FOLDER / f"{name}.relay").read_text())
    monkeypatch.chdir(tmp_path)
    statuses, _, told = EXPECTED[name].partition(":")
    lint = cli("lint", "m.relay", "--format", "json")
    findings = [f for f in json.loads(lint.stdout)["files"][0]["findings"] if f["severity"] != "info"]
    run = cli("compile-and-run", "m.relay")
    first = [f"{f['line']}:{f['column']} {f['code']} {f['message']}" for f in findings[:1]]
    assert (f"{lint.exit_code} {run.exit_code}", first) == (statuses, [told.strip()] if told.strip() else [])
    errors = [f for f in findings if f["severity"] == "error"]
    syntax = [f for f in errors if f["code"] == "RLY001"]
    for finding in syntax or errors:  # the run is refused for what lint calls an error, in the same words; first for syntax
        assert f"m.relay:{finding['line']}:{finding['column']}: error[{finding['code']}]: {finding['message']}" in run.stderr
    assert not PYTHON.search(lint.output + run.output), PYTHON.search(lint.output + run.output)
