"""A short run of the fuzzer in benchmarks/: findings, never an exception."""
from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from types import ModuleType

from tests.formats.hlo_texts import FORMS, FRAMES, MODULE


def fuzzer() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "fuzz_hlo.py"
    spec = importlib.util.spec_from_file_location("fuzz_hlo", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutated_texts_give_findings_only() -> None:
    fuzz = fuzzer()
    rng = random.Random(7)
    texts = [MODULE, FRAMES, *FORMS.values()]
    said = {fuzz.one(fuzz.mutate(rng.choice(texts), rng.choice(texts), rng)) for _ in range(800)}
    assert {"fine", "HLO001", "HLO004", "HLO016"} <= said
