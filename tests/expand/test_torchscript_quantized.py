"""Quantised models give torch's own numbers, from the text and the state dict."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irscope.source import UserError
from irscope.source.arrays import read_arrays
from tests.expand.torchscript_runs import primitive, run

DATA = Path(__file__).resolve().parent.parent / "data"


@pytest.mark.parametrize("name", ["static", "dynamic"])
def test_a_quantised_model_gives_what_torch_gave(name: str) -> None:
    with np.load(DATA / "quantized.npz") as file:
        x, y = file[f"x_{name}"], file[f"y_{name}"]
    weights = read_arrays(str(DATA / f"quantized_{name}.pt"))
    got = run((DATA / f"quantized_{name}.txt").read_text(), weights, x=x)[0]
    np.testing.assert_allclose(got, y, rtol=1e-5, atol=1e-6)


def test_packed_weights_are_asked_for_by_the_state_dict() -> None:
    with pytest.raises(UserError, match="packed in an object that no text shows: give the state dict"):
        primitive((DATA / "quantized_static.txt").read_text(), {})
