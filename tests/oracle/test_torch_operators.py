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
from tests.oracle.torch_cases import Array, Case, by_reference, differences, read_cases

LIMITS = {
    "dropout draws from torch's generator": r"draws from torch's generator",
    "an order or a half power of complex numbers": r"c64\[.*|c128\[.*",
    "operators outside the families": r"do not run yet|does not run yet",
}
"""What is refused, in so many words: a difference in a number is never among them."""
ANY_OF_EQUALS = {"topk", "kthvalue", "mode"}
"""Which of equal values torch picks is its own affair: the values are torch's, and the places are places of those values."""


def said(case: Case) -> str:
    """Empty when the outputs are torch's, else what is wrong."""
    try:
        with np.errstate(all="ignore"):
            got = by_reference(case)
    except UserError as refused:
        return f"refused: {refused.message}"
    fault = differences(got, case.outputs)
    if fault.startswith("out1") and case.name in ANY_OF_EQUALS:
        return "" if picks(case.inputs[0], got[1], case.outputs[0]) else fault
    return fault


def picks(values: Array, places: Array, wanted: Array) -> bool:
    """Whether the places, along one of the dimensions of the values, hold what was wanted."""
    for axis in range(values.ndim):
        kept = places.ndim == values.ndim
        at = places if kept else np.expand_dims(places, axis)
        if at.max(initial=0) < values.shape[axis] and all(a == v for i, (a, v) in enumerate(zip(at.shape, values.shape, strict=True)) if i != axis):
            found = np.take_along_axis(values, at, axis)
            if np.array_equal(found if kept else found.squeeze(axis), wanted):
                return True
    return values.ndim == 0


@pytest.mark.oracle
def test_operators_give_what_torch_gives(tmp_path: Path) -> None:
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        pytest.fail("the oracle is torch itself: install it, or name a Python that has it in PEERS_PYTHON")
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
        else:
            wrong.append(f"{case.name}: {fault}")
    print(f"{total} cases, {len(good)} operators as torch, refused: {dict(refused)}")
    assert len(good) >= 300
    assert not wrong, "\n".join(wrong[:20])
