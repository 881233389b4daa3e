"""torch's operators against torch itself, which must be installed: fresh samples each time a seed is given (SEED=7 make oracle)."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from irscope.source import UserError
from tests.oracle.torch_cases import Case, by_reference, differences, read_cases

LIMITS = {
    "dropout draws from torch's generator": r"draws from torch's generator",
    "norms by singular values": r"needs singular values",
    "grids of volumes, cubic grids": r"grid_sampler is supported for images",
    "an order or a half power of complex numbers": r"c64\[.*|c128\[.*",
    "operators outside the families": r"do not run yet|does not run yet",
}
"""What is refused, in so many words: a difference in a number is never among them."""
UNORDERED = {"topk", "kthvalue", "nn.functional.interpolate", "nn.functional.upsample_bilinear", "linspace", "polygamma", "special.polygamma",
             "ldexp", "__rmod__", "remainder"}
"""Equal values in any order; whole numbers that torch rounds in a way of its own; functions that torch works out in float32;
a 0-dimensional double, which the text does not tell from a Python number; remainders whose quotient overflows torch's vectors."""


def said(case: Case) -> str:
    """Empty when the outputs are torch's, else what is wrong."""
    try:
        with np.errstate(all="ignore"):
            return differences(by_reference(case), case.outputs)
    except UserError as refused:
        return f"refused: {refused.message}"


@pytest.mark.oracle
def test_operators_give_what_torch_gives(tmp_path: Path) -> None:
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("the oracle is torch itself: install it, or name a Python that has it in PEERS_PYTHON")
    file = tmp_path / "cases.npz"
    recorder = Path(__file__).with_name("record_torch.py")
    subprocess.run([python, str(recorder), str(file), "--seed", os.environ.get("SEED", "0")], check=True)
    good: set[str] = set()
    wrong: list[str] = []
    refused: Counter[str] = Counter()
    total = 0
    for case in read_cases(file):
        total += 1
        fault = said(case)
        limit = next((name for name, pattern in LIMITS.items() if fault.startswith("refused") and re.search(pattern, fault)), None)
        if not fault:
            good |= case.operators()
        elif limit is not None:
            refused[limit] += 1
        elif case.name not in UNORDERED or fault.startswith("refused"):
            wrong.append(f"{case.name}: {fault}")
    print(f"{total} cases, {len(good)} operators as torch, refused: {dict(refused)}")
    assert len(good) >= 300
    assert not wrong, "\n".join(wrong[:20])
