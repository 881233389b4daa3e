"""What a reader of the TorchScript samples does with them: run, lint, show, weights from a .pt file."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Cli


def run(cli: Cli, file: Path, x: np.ndarray[tuple[int], np.dtype[np.float32]], folder: Path) -> list[float]:
    np.savez(folder / "in.npz", arg0=x)
    result = cli("compile-and-run", file, "--inputs", folder / "in.npz", "--save-outputs", folder / "out.npz", "--check", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["interpreted_ops"] == []
    with np.load(folder / "out.npz") as out:
        values: list[float] = out["out0"].tolist()
    return values


@pytest.mark.parametrize("sign", [1, -1])
def test_the_script_keeps_both_ways_and_the_trace_one(cli: Cli, samples: Path, tmp_path: Path, sign: int) -> None:
    x = sign * np.array([1, 2, 3, 4], np.float32)
    assert run(cli, samples / "risky.scripted.txt", x, tmp_path) == (x * 2 if sign > 0 else x - 1).tolist()
    assert run(cli, samples / "risky.traced.txt", x, tmp_path) == (x * 2).tolist()


def test_lint_says_which_dump_is_which(cli: Cli, samples: Path) -> None:
    traced = cli("lint", samples / "risky.traced.txt", "--format", "concise")
    assert traced.exit_code == 1
    assert "CTL001" in traced.stdout
    assert "traced, not scripted" in traced.stdout
    scripted = cli("lint", samples / "risky.scripted.txt", "--format", "concise")
    assert scripted.exit_code == 0
    assert "CTL006" in scripted.stdout
    assert "scripted, not traced" in scripted.stdout


def test_the_output_of_a_script_is_shown_from_the_pipe(cli: Cli, samples: Path) -> None:
    result = cli("show", "-", input=(samples / "risky.log").read_text())
    assert result.exit_code == 0, result.stderr
    assert "aten::mul" in result.stdout
    assert "%16 branch 1" in result.stdout
    found = cli("lint", "-", "--format", "concise", input=(samples / "risky.log").read_text())
    assert "CTL001" in found.stdout
    assert "CTL006" in found.stdout


def test_weights_come_from_a_pt_file(cli: Cli, samples: Path, tmp_path: Path) -> None:
    result = cli("compile-and-run", samples / "tagger.inlined.txt", "--weights", samples / "tagger.pt", "--check",
                 "--save-outputs", tmp_path / "out.npz")
    assert result.exit_code == 0, result.stderr
    with np.load(tmp_path / "out.npz") as out:
        np.testing.assert_allclose(np.exp(out["out0"]).sum(-1), 1, rtol=1e-5)


def test_modules_and_variables_are_shown_in_the_users_words(cli: Cli, samples: Path) -> None:
    result = cli("show", samples / "tagger.inlined.txt")
    for word in ("head", "norm", "conv", "words", "aten::matmul", "make_torch.py"):
        assert word in result.stdout
    found = cli("lint", samples / "tagger.inlined.txt", "--format", "json")
    codes = {f["code"] for f in json.loads(found.stdout)["files"][0]["findings"]}
    assert {"FUS009", "LAY004", "SHP005"} <= codes
