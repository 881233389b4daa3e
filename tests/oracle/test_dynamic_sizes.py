"""XLA itself, asked anew: programs with dynamic sizes give what irscope gives."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import irscope
from tests.backends.test_dynamic_sizes import FOLDER, OTHERWISE, PROGRAMS, REFUSED, close


@pytest.mark.oracle
def test_programs_with_dynamic_sizes_give_what_xla_gives(tmp_path: Path) -> None:
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import jaxlib"], capture_output=True).returncode:
        pytest.fail("the oracle is XLA itself: install jax, or name a Python that has it in PEERS_PYTHON")
    file = tmp_path / "answers.npz"
    recorder = Path(__file__).with_name("record_dynamic.py")
    subprocess.run([python, str(recorder), str(FOLDER / "programs.hlo"), str(file)], check=True)
    answers, compared = np.load(file), 0
    for name, text in PROGRAMS.items():
        if name in OTHERWISE or name in REFUSED or f"{name}.out0" not in answers:
            continue
        given = [answers[key] for key in sorted(k for k in answers.files if k.startswith(f"{name}.arg"))]
        for i, one in enumerate(irscope.compile(text, threads=1)(*given)):
            assert close(one, answers[f"{name}.out{i}"].ravel()[:one.size].reshape(one.shape)), name
        compared += 1
    assert compared >= 85
