"""The kernel of docs/tile-ir.md is one."""
from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest


def test_the_example_runs(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (repo / "docs" / "tile-ir.md").read_text(encoding="utf-8")
    example, = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert capsys.readouterr().out.startswith("kernel softplus(in x: f32[64], out y: f32[64]) lanes=16\n  par i0 in 0..64 step 16:\n")
    assert np.allclose(names["result"], np.log1p(np.exp(np.linspace(-3, 3, 64))), rtol=1e-6)  # type: ignore[arg-type]
