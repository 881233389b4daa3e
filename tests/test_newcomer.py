"""Adding a rule, a pass, an operator, a format or a release touches one file of irscope, and everything else follows from it (docs/architecture.md).

Each case copies the package, adds a template of ``tests/newcomer`` to it, and asks the command line of the copy.
"""
from __future__ import annotations

import filecmp
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPO

TEMPLATES = Path(__file__).parent / "newcomer"
PACKAGE = REPO / "irscope"
NEGATIONS = "HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  n = f32[8] negate(p)\n  ROOT r = f32[8] negate(n)\n}\n"
TORCH = "graph(%x : Float(4)):\n  %y : Float(4) = aten::newcomer(%x)\n  return (%y)\n"
RELAY = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {\n  newcomer(%x)\n}\n'
PRIMITIVE = "HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] newcomer(p)\n}\n"
FORMAT = "newcomer 1\nx f32 4096\ny f32 4096\na add x y\nb add x y\nm multiply a b\nr exponential m\n"
RUN_ALL = """
import sys
from irscope.cli.errors import run
from irscope.cli.main import group

for line in sys.argv[1:]:
    print("STATUS", run(group, line.split(), "irscope"), flush=True)
"""
WHY = "lint DUMP --why-not-fused --exit-zero --policy"


@dataclass(frozen=True)
class Case:
    """A template and the file that it becomes, or is appended to; a dump; and commands on it with a part of what each prints."""

    template: str
    file: str
    dump: str
    suffix: str
    commands: tuple[tuple[str, str], ...]


CASES = {
    "rule": Case("rule", "lint/rules/newcomers_rule.py", NEGATIONS, ".hlo", (
        ("list rules", "ALG099"), ("rule ALG099", "ROOT r = f32[8] negate(n)"), ("rule double-negation", "Both cancel out."),
        ("lint DUMP --select ALG099 --exit-zero", "%r undoes %n"))),
    "pass": Case("pass", "passes/drop_double_negation.py", NEGATIONS, ".hlo", (
        ("list passes", "drop-double-negation"), ("opt DUMP --passes drop-double-negation,remove-dead --verify", "ROOT %p"))),
    "torch operator": Case("torch_operator", "formats/torchscript/operators/activations.py", TORCH, ".ir", (
        ("list ops", "aten::newcomer"), ("lint DUMP", "no findings"), ("compile-and-run DUMP --check", ""))),
    "Relay operator": Case("relay_operator", "formats/relay/operators/pointwise.py", RELAY, ".relay", (
        ("list ops", "newcomer"), ("lint DUMP", "no findings"), ("opt DUMP --infer", "Tensor[(4), float32]"),
        ("compile-and-run DUMP --check", ""))),
    "primitive": Case("primitive", "ops/elementwise.py", PRIMITIVE, ".hlo", (
        ("list ops", "newcomer"), ("lint DUMP", "no findings"), ("opt DUMP --passes simplify-algebra", "newcomer"),
        ("compile-and-run DUMP --check", ""))),
    "release": Case("release", "fusion/xla/releases.py", NEGATIONS, ".hlo", (
        ("list policies", "xla-cpu@jaxlib-9.9.9"), (f"{WHY} xla-cpu@jaxlib-9.9.9", ""))),
    "format": Case("format", "formats/newcomer/__init__.py", FORMAT, ".txt", (
        ("list formats", "newcomer"), ("show DUMP", "exponential"), ("lint DUMP --select ALG002 --exit-zero", "ALG002"), (f"{WHY} irscope", "kernel"),
        (f"{WHY} xla-cpu", ""), (f"{WHY} tvm", ""), ("opt DUMP --passes share-equal,remove-dead --verify", "m multiply a a"),
        ("compile-and-run DUMP --check", ""))),
}


@pytest.mark.parametrize("name", CASES)
def test_one_file_is_enough(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    shutil.copytree(PACKAGE, tmp_path / "irscope")
    (tmp_path / "irscope" / case.file).parent.mkdir(exist_ok=True)
    with (tmp_path / "irscope" / case.file).open("a", encoding="utf-8") as file:
        file.write((TEMPLATES / f"{case.template}.py.txt").read_text(encoding="utf-8"))
    dump = tmp_path / f"dump{case.suffix}"
    dump.write_text(case.dump, encoding="utf-8")
    lines = [command.replace("DUMP", dump.name) for command, _ in case.commands]
    done = subprocess.run([sys.executable, "-c", RUN_ALL, *lines], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    printed = re.split(r"^STATUS (.*)\n", done.stdout, flags=re.MULTILINE)
    assert printed[1::2] == ["0"] * len(lines), done.stdout
    for (command, expected), text in zip(case.commands, printed[::2], strict=False):
        assert expected in text, command
    assert changed(filecmp.dircmp(PACKAGE, tmp_path / "irscope", ignore=["__pycache__"])) == [Path(case.file).parent.name if name == "format" else Path(case.file).name]


def changed(folders: filecmp.dircmp[str]) -> list[str]:
    """The files that two folders do not share."""
    found = [*folders.left_only, *folders.right_only, *folders.diff_files]
    for inner in folders.subdirs.values():
        found += changed(inner)
    return found
