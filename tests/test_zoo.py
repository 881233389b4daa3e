"""The zoo's own parts, without a framework: its tables, what a run is called, its page. `make zoo` runs the nets."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.zoo import keras_nets, timm_nets, torchvision_nets, transformers_nets
from benchmarks.zoo.nets import NETS, forms
from benchmarks.zoo.running import Run, run
from benchmarks.zoo.table import excess, page, summary

TEXT = """HloModule m
ENTRY main {
  w = f32[4] parameter(0)
  x = f32[4] parameter(1)
  ROOT y = f32[4] NAME(w, x)
}
"""


def test_every_net_has_a_name_of_its_own() -> None:
    tables = (torchvision_nets, timm_nets, transformers_nets, keras_nets)
    assert len(NETS) == sum(len(table.NETS) for table in tables)
    assert sum("frozen" in forms(net) for net in NETS.values()) >= 60 and len(keras_nets.NETS) == 20


@pytest.mark.parametrize("name, shift, said, why", [
    ("add", 0.0, "right", ""), ("add", 0.5, "wrong", "out0: 4 of 4 values differ"), ("rng-get-and-update-state", 0.0, "refused", "error"),
])
def test_a_run_is_held_against_what_is_expected(tmp_path: Path, name: str, shift: float, said: str, why: str) -> None:
    w, x = np.arange(4, dtype=np.float32), np.ones(4, np.float32)
    (tmp_path / "hlo.txt").write_text(TEXT.replace("NAME", name))
    np.savez(tmp_path / "weights.npz", arg0=w)
    np.savez(tmp_path / "hlo.inputs.npz", arg1=x)
    np.savez(tmp_path / "expected.npz", out0=w + x + np.float32(shift))
    one = run("alexnet", "hlo", tmp_path)
    assert one.said == said and why in one.why
    assert one.cpu_s is not None and 0 < one.cpu_s < 60
    assert (one.error is not None and one.peak_mb is not None) == (said != "refused")


def test_the_page_names_what_is_not_right() -> None:
    runs = [Run("vit", "inlined", "right", error=1e-7, kernels=3, cpu_s=61.0, compile_s=1.0, run_ms=2.0, peak_mb=99.0),
            Run("vit", "frozen", "refused", "error: a | b"), Run("keras_gru", "hlo", "wrong", "out0: 3 of 4 values differ")]
    assert excess(runs[0]) == "61 s" and not excess(runs[1])
    assert "2 nets: 1 right in one form, refused in the other, 1 wrong" in summary(runs)
    shown = page(runs, "0" * 40)
    assert "- `vit`, frozen, refused: error: a / b" in shown and "- `keras_gru`, HLO, wrong: out0" in shown and "not run yet: alexnet" in shown
    assert "| vit | torchvision | 64 px, 4 layers of width 128 | inlined | right | 1.0e-07 | 3 | 61.0 | 1.0 | 2.00 | 99 |" in shown
