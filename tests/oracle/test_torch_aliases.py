"""Views, copies and writes in place against torch itself, which must be installed (SEED=7 make oracle takes other samples)."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irscope.expand.torchscript import aliases
from irscope.expand.torchscript.interpreter import TorchInterpreter
from irscope.expand.torchscript.program import Given
from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.types import TorchTensorType
from irscope.graph import Node
from irscope.source import UserError
from tests.expand.test_torchscript_aliases import MAY_BE_REFUSED, REFUSED
from tests.expand.torchscript_runs import module_of
from tests.oracle.torch_cases import by_reference, differences, read_cases


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """All programs with torch's results, and the texts of calls on operands of every order of dimensions."""
    python = os.environ.get("PEERS_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        pytest.fail("the oracle is torch itself: install it, or name a Python that has it in PEERS_PYTHON")
    folder = tmp_path_factory.mktemp("aliases")
    recorder = Path(__file__).with_name("record_aliases.py")
    command = [python, str(recorder), str(folder / "cases.npz"), "--layouts", str(folder / "layouts.json"), "--seed", os.environ.get("SEED", "0")]
    subprocess.run(command, check=True)
    return folder / "cases.npz", folder / "layouts.json"


@pytest.mark.oracle
def test_every_write_reaches_what_torch_lets_it_reach(record: tuple[Path, Path]) -> None:
    wrong, good, refused = [], 0, 0
    for case in read_cases(record[0]):
        try:
            with np.errstate(all="ignore"):
                fault = differences(by_reference(case), case.outputs)
        except UserError as error:
            fault = "" if REFUSED.search(error.message) and case.name.partition(".")[0] in MAY_BE_REFUSED else error.message
            refused += not fault
            good -= not fault
        good += not fault
        if fault:
            wrong.append(f"{case.name}: {fault}")
    print(f"{good} programs as torch, {refused} refused")
    assert good >= 7_500
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:20])


@pytest.mark.oracle
def test_strides_are_those_that_torch_states(record: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aliases, "stated", lambda *_: None)
    wrong: dict[str, str] = {}
    good: Counter[str] = Counter()

    def compare(node: Node, value: Any) -> None:
        type = node.type
        if not isinstance(value, Tensor) or not isinstance(type, TorchTensorType) or type.strides is None or "aten::" not in node.op.name:
            return
        at = value.layout
        if at is None or at.sizes != type.shape or not at.elements:
            return
        if all(a == b or n == 1 for a, b, n in zip(at.strides, type.strides, at.sizes, strict=True)):
            good[node.op.name] += 1
        else:
            wrong[node.op.name] = f"{node.op.name} has strides {at.strides}, torch {type}: {[str(o.type) for o in node.operands]}"
    for text in json.loads(record[1].read_text()):
        try:
            TorchInterpreter(module_of(text), Given(), compare).run()
        except UserError:
            continue  # an operator that does not run
    print(f"{sum(good.values())} values of {len(good)} operators")
    assert len(good) >= 250
    assert not wrong, "\n".join(wrong.values())
