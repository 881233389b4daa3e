"""What is imported before a command is known: nothing heavy."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from irscope.cli.main import COMMANDS, group
from tests.conftest import Cli

HEAVY = ("numpy", "llvmlite", "rich", "ml_dtypes", "graphviz", "pygraphviz", "onnx", "google", "jaxlib")


def modules_after(*args: str) -> tuple[int, set[str], str]:
    """Run irscope in a process of its own: exit status, the modules it had at its end, and its stdout."""
    program = (
        "import sys\n"
        "from irscope.cli.main import main\n"
        "status = main(sys.argv[1:])\n"
        "print(status, *sorted({name.partition('.')[0] for name in sys.modules} | {n for n in sys.modules if n.startswith('irscope')}), file=sys.stderr)\n"
    )
    repo = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(repo)})
    status, *names = done.stderr.split()
    return int(status), set(names), done.stdout


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_version_and_help_import_nothing_heavy(option: str) -> None:
    status, names, said = modules_after(option)
    assert status == 0
    assert said.startswith(("irscope 0", "Usage: irscope"))
    assert names.isdisjoint(HEAVY)


@pytest.mark.parametrize("program", ["import irscope", "import irscope; irscope.load, irscope.lint, irscope.LintOptions()"])
def test_the_package_imports_nothing_heavy(program: str) -> None:
    heavy = (*HEAVY, "click") if program == "import irscope" else HEAVY
    done = subprocess.run([sys.executable, "-c", f"{program}; import sys; print(*sys.modules)"], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])})
    assert {name.partition(".")[0] for name in done.stdout.split()}.isdisjoint(heavy)


def test_help_tells_each_command_on_one_line() -> None:
    for name, (_, text) in COMMANDS.items():
        assert len(text) <= 59, name


def test_every_command_that_is_offered_can_be_imported(cli: Cli) -> None:
    for name in group.list_commands(click.Context(group)):
        result = cli(name, "--help")
        assert result.exit_code == 0, name
        assert result.stdout.startswith("Usage: irscope"), name


def test_help_imports_no_command() -> None:
    _, names, said = modules_after("--help")
    assert "doctor" in said
    assert "irscope.cli.doctor" not in names and "irscope.formats" not in names
