"""Functions that were once compiled wrong, and their neighbours, against jax and torch, which must be installed."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO, Cli
from tests.regressions.programs import read


@pytest.mark.oracle
def test_functions_give_what_jax_and_torch_give(cli: Cli, tmp_path: Path) -> None:
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import jax, torch"], capture_output=True).returncode:
        pytest.fail("the oracle is jax and torch: install them, or name a Python that has them in PEERS_PYTHON")
    command = [python, str(REPO / "tests/regressions/record.py"), "--functions", str(tmp_path / "functions.npz")]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(REPO)})
    programs, values = read(tmp_path / "functions.npz")
    assert len(programs) >= 100
    wrong = {program.name: fault for program in programs if (fault := program.wrong(cli, tmp_path, values))}
    assert not wrong, "\n".join(f"{name}: {fault}" for name, fault in wrong.items())
