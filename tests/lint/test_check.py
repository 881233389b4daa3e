"""``irscope check`` judges the models of a project in one report; its page, hooks and action."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from irscope.lint.baseline import read_fusion
from tests.conftest import Cli
from tests.lint.test_demands import APART, CHAIN

SETTINGS = """[tool.irscope.check]
models = ["exports/*.hlo"]
policy = "irscope"
max-kernels = 1
require-fused = ["dot,add,maximum"]
{more}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one exported model and its demands; the current folder is its own."""
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "a.hlo").write_text(CHAIN)
    (tmp_path / "pyproject.toml").write_text(SETTINGS.format(more=""))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_project_as_demanded_passes_from_wherever_it_is_started(project: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    result = cli("check")
    assert result.exit_code == 0 and result.stdout.endswith("1 finding (1 info)\n")
    assert "1 models, 1 as demanded" in result.stderr
    monkeypatch.chdir("/")
    assert cli("check", project / "exports").exit_code == 0


def test_each_broken_demand_is_told_in_one_report(project: Path, cli: Cli) -> None:
    (project / "exports" / "b.hlo").write_text(APART)
    result = cli("check", "--format", "json")
    assert result.exit_code == 1
    told = {file["file"]: {f["code"] for f in file["findings"]} for file in json.loads(result.stdout)["files"]}
    assert told == {"exports/a.hlo": {"BRD007"}, "exports/b.hlo": {"KRN003", "FUS018", "BRD007"}}
    assert "not exports/b.hlo" in result.stderr
    assert cli("check", "--exit-zero").exit_code == 0
    for format_ in ("sarif", "github", "gitlab", "junit", "markdown", "full", "concise", "jsonl"):
        assert "KRN003" in cli("check", "--format", format_).stdout


def test_a_table_of_one_model_stands_over_the_common_demands(project: Path, cli: Cli) -> None:
    (project / "exports" / "b.hlo").write_text(APART)
    more = '[[tool.irscope.check.model]]\npath = "exports/b.hlo"\nmax-kernels = 3\nrequire-fused = ["add,maximum"]\n'
    (project / "pyproject.toml").write_text(SETTINGS.format(more=more))
    assert cli("check").exit_code == 0


def test_results_are_compared_with_stored_ones_and_with_an_earlier_version(project: Path, cli: Cli) -> None:
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in ((4, 8), (8, 16), (16,)))
    np.savez(project / "in.npz", x=x, w=w, b=b)
    np.savez(project / "out.npz", out0=np.maximum(x @ w + b, 0))
    (project / "old.hlo").write_text(CHAIN.replace("  a = f32[4,16]{1,0} add(d, bb)", "  a = f32[4,16]{1,0} add(bb, d)"))
    model = '[[tool.irscope.check.model]]\npath = "exports/a.hlo"\ninputs = "in.npz"\nexpect = "out.npz"\nprevious = "old.hlo"\n'
    (project / "pyproject.toml").write_text(SETTINGS.format(more=model))
    fine = cli("check")
    assert fine.exit_code == 0, fine.stdout + fine.stderr
    np.savez(project / "out.npz", out0=np.maximum(x @ w - b, 0))
    (project / "old.hlo").write_text(CHAIN.replace("add(d, bb)", "subtract(d, bb)"))
    differ = cli("check", "--format", "concise")
    assert differ.exit_code == 1
    assert re.search(r"CHK001\]: out0 is not that of out.npz: \d+ of 64 values differ", differ.stdout)
    assert re.search(r"CHK001\]: out0 is not that of old.hlo: \d+ of 64 values differ", differ.stdout)
    (project / "old.hlo").write_text(CHAIN.replace("[8,16]", "[9,16]").replace("[4,8]", "[4,9]"))
    assert "takes other inputs" in cli("check", "--format", "concise").stdout


def test_what_cannot_be_looked_at_ends_with_2_and_the_others_are_told(project: Path, cli: Cli) -> None:
    (project / "exports" / "b.hlo").write_text("HloModule m\nENTRY e {\n  ROOT x = f32[2] nagate(y)\n}\n")
    more = '[[tool.irscope.check.model]]\npath = "exports/gone.hlo"\n'
    (project / "pyproject.toml").write_text(SETTINGS.format(more=more))
    result = cli("check", "--format", "json")
    assert result.exit_code == 2
    told = {file["file"]: {f["code"] for f in file["findings"]} for file in json.loads(result.stdout)["files"]}
    assert told["exports/a.hlo"] == {"BRD007"}
    assert told["exports/gone.hlo"] == {"CHK002"}
    assert any(code.startswith("HLO") for code in told["exports/b.hlo"])


def test_a_baseline_of_a_project_accepts_and_measures(project: Path, cli: Cli) -> None:
    (project / "exports" / "b.hlo").write_text(APART)
    (project / "pyproject.toml").write_text('[tool.irscope.check]\nmodels = ["exports/*.hlo"]\nmax-kernels = 2\nbaseline = "base.json"\n')
    missing = cli("check")
    assert missing.exit_code == 2
    assert "--write-baseline makes it" in missing.stderr
    assert cli("check", "--write-baseline").exit_code == 0
    assert set(read_fusion("base.json")) == {"exports/a.hlo", "exports/b.hlo"}
    accepted = cli("check")
    assert accepted.stdout.endswith("no findings\n")
    assert "accepted by base.json: " in accepted.stderr
    assert "gone" not in accepted.stderr
    text = (project / "pyproject.toml").read_text()
    (project / "pyproject.toml").write_text(text.replace("max-kernels = 2", "max-kernels = 9"))
    assert "more that no longer occur: --write-baseline rewrites it" in cli("check").stderr
    (project / "pyproject.toml").write_text(text)
    (project / "exports" / "a.hlo").write_text(APART)
    assert "FUS019" in cli("check", "--format", "concise").stdout


@pytest.mark.parametrize(("settings", "message"), [
    ("[tool.irscope]\n", "has no [tool.irscope.check]"),
    ("[tool.irscope.check]\nlint = true\n", "names no models"),
    ("[tool.irscope.check]\nmodles = ['x']\n", "did you mean models?"),
])
def test_settings_without_a_check_are_told(project: Path, cli: Cli, settings: str, message: str) -> None:
    (project / "pyproject.toml").write_text(settings)
    result = cli("check")
    assert result.exit_code == 2
    assert message in result.stderr


# ------------------------------------------------------------------ docs/ci.md, the pre-commit hooks and the action


def blocks(repo: Path, language: str) -> list[str]:
    """The examples of the page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", (repo / "docs" / "ci.md").read_text(), re.M | re.S)


def test_the_settings_of_the_page_are_settings(repo: Path, tmp_path: Path) -> None:
    from irscope.lint.config import read_config

    for number, text in enumerate(blocks(repo, "toml")):
        path = tmp_path / f"{number}.toml"
        path.write_text(text)
        read_config(str(path))
    assert len(blocks(repo, "toml")) == 2


def test_the_commands_of_the_page_and_of_the_action_are_commands(repo: Path) -> None:
    import click

    from irscope.cli.main import group

    texts = "\n".join([*blocks(repo, "sh"), *blocks(repo, "yaml"), (repo / "action.yml").read_text()])
    lines = re.findall(r"(?<![\w/.-])irscope ((?:lint|check|rule|diff)\b[^\n|;&#\"]*)", texts.replace("\\\n", " "))
    assert len(lines) >= 8
    for line in lines:
        words = line.split()
        command = group.get_command(click.Context(group), words[0])
        assert command is not None
        known = {name for parameter in command.params for name in parameter.opts}
        for word in words[1:]:
            option = word.split("=")[0]
            assert not option.startswith("--") or option in known, line


def test_the_hooks_and_the_action_name_what_is_there(repo: Path) -> None:
    hooks = (repo / ".pre-commit-hooks.yaml").read_text()
    assert re.findall(r"^- id: (\S+)", hooks, re.M) == ["irscope-lint", "irscope-check"]
    assert re.findall(r"^  entry: (.*)$", hooks, re.M) == ["irscope lint", "irscope check"]
    patterns = re.findall(r"^  files: (.*)$", hooks, re.M)
    assert re.search(patterns[0], "exports/model.hlo.txt") and re.search(patterns[0], "a.relay")
    assert not re.search(patterns[0], "model.py")
    action = (repo / "action.yml").read_text()
    asked = set(re.findall(r"inputs\.([\w-]+)", action))
    declared = set(re.findall(r"^  ([\w-]+):$", action.split("inputs:")[1].split("outputs:")[0].split("runs:")[0], re.M))
    assert asked == declared


def test_the_action_annotates_summarises_and_ends_as_the_check_does(repo: Path, project: Path) -> None:
    script = textwrap.dedent((repo / "action.yml").read_text().split("run: |\n")[1])
    (project / "bin").mkdir()
    shim = project / "bin" / "irscope"
    shim.write_text(f'#!/bin/sh\nPYTHONPATH="{repo}" exec "{sys.executable}" -m irscope "$@"\n')
    shim.chmod(0o755)
    summary = project / "summary.md"
    asked = {"COMMAND": "check", "PATHS": ".", "ARGS": "", "SARIF": "out.sarif", "GITHUB_STEP_SUMMARY": str(summary)}
    env = {**os.environ, **asked, "PATH": f"{project / 'bin'}:{os.environ['PATH']}"}
    (project / "exports" / "b.hlo").write_text(APART)
    failed = subprocess.run(["bash", "-e", "-c", script], cwd=project, env=env, capture_output=True, text=True)
    assert failed.returncode == 1
    assert "::error file=exports/b.hlo,title=KRN003 too-many-kernels::" in failed.stdout
    assert "KRN003 too-many-kernels" in summary.read_text()
    assert json.loads((project / "out.sarif").read_text())["version"] == "2.1.0"
    wrong = subprocess.run(["bash", "-e", "-c", script], cwd=project, env={**env, "COMMAND": "rm"}, capture_output=True, text=True)
    assert wrong.returncode == 2


def test_a_shape_of_the_settings_that_is_no_number(project: Path, cli: Cli) -> None:
    np.savez(project / "o.npz", out0=np.zeros(1, np.float32))
    (project / "pyproject.toml").write_text(SETTINGS.format(more='expect = "o.npz"\nshapes = {x = [inf]}'))
    result = cli("check")
    assert result.exit_code == 2 and "the shape of x in the settings is [inf]" in result.stdout
