"""What ``--around``, ``--between`` and ``--where`` select of a sample, written to a file, is a module: it is read, linted, compiled and run."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from tests.conftest import Cli

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.hlo")))
def test_written_pieces_are_modules(name: str, tmp_path: Path, cli: Cli) -> None:
    graph = irscope.load(SAMPLES / name).module().main()
    working = [node for node in graph.nodes if node.op.work != "free" and node.operands]
    centre, last = working[len(working) // 2], working[-1]
    around = ("--around", f"{graph.name}/{centre.name}", "--radius", "2")
    where = ("--where", f"graph={graph.name} and (op=fusion or op=dot or op=while or op=conditional or op=add or op=multiply)")
    dominating = ("--where", f"dominators('{graph.name}/{last.name}')")
    for number, selection in enumerate((around, where, dominating)):
        piece = tmp_path / f"piece{number}{'.txt' if number else '.hlo'}"
        done = cli("show", SAMPLES / name, *selection, "-o", piece)
        assert done.exit_code == 0, done.stderr
        reading = irscope.load(piece)
        assert reading.ok and reading.modules, [finding.message for finding in reading.findings]
        linted = cli("lint", piece, "--isolated", "--exit-zero")
        assert linted.exit_code == 0, linted.stderr  # 2 for a text that its own parser would reject
        run = cli("compile-and-run", piece, "--check", "--fill-elided", "--threads", "1")
        assert run.exit_code == 0, (selection, run.stderr, run.stdout)
