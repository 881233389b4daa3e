"""Every schedule that a tuner may choose computes the same, and what it measured is remembered."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irscope
from irscope.backends.loaded_model import Model
from irscope.backends.model import compile_module, primitive
from irscope.backends.tuning import Tuning
from irscope.expand import bind_inputs
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.schedule import AVX512
from irscope.lower.templates import Built, Problem
from tests.conftest import Cli
from tests.lower.running import drawn, entry
from tests.lower.whole import reference

DOT = entry("""
    x = f32[37,96] parameter(0)
    w = f32[96,80] parameter(1)
    d = f32[37,80] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT t = f32[37,80] tanh(d)
""")
CONVOLUTION = entry("""
    x = f32[1,14,14,32] parameter(0)
    w = f32[3,3,32,48] parameter(1)
    ROOT c = f32[1,14,14,48] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
""")
TEXTS = {"dot": DOT, "convolution": CONVOLUTION}


class Takes:
    """A tuner that takes the way of one number, and remembers which templates there were."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.templates: list[str] = []

    def __call__(self, problem: Problem, ways: list[Built]) -> int:
        self.templates = [way.stages[-1].kernel.schedule["template"] for way in ways]
        return min(self.number, len(ways) - 1)


def built(text: str, tuner: Takes | Tuning | None, fixed: bool) -> tuple[Model, list[np.ndarray], list[np.ndarray]]:
    module = irscope.load(text).module()
    arrays = drawn(module)
    weights = {1: arrays[1]} if fixed else {}
    model = compile_module(module, weights, Options(threads=1), use_cache=False, tuner=tuner)
    return model, arrays[:1] if fixed else arrays, reference(module, arrays)


@pytest.mark.parametrize("name", sorted(TEXTS))
@pytest.mark.parametrize("fixed", [True, False])
def test_every_way_gives_the_same_results(name: str, fixed: bool) -> None:
    count = 1
    number = 0
    while number < count:
        tuner = Takes(number)
        model, given, expected = built(TEXTS[name], tuner, fixed)
        count = len(tuner.templates)
        np.testing.assert_allclose(model(*given)[0], expected[0], rtol=1e-4, atol=1e-4)
        number += 1
    assert count > 3


def test_a_winograd_convolution_may_be_done_directly() -> None:
    tuner = Takes(0)
    built(CONVOLUTION, tuner, fixed=True)
    assert {"winograd", "convolution"} <= set(tuner.templates)


def test_without_a_tuner_the_rules_choose() -> None:
    module = primitive(bind_inputs(irscope.load(DOT).module(), {1: drawn(irscope.load(DOT).module())[1]}))
    plain = lower(module, Options(machine=AVX512))
    tuned = lower(module, Options(machine=AVX512), Takes(0))
    assert [k.schedule for k in plain.kernels()] == [k.schedule for k in tuned.kernels()]


def test_what_was_measured_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRSCOPE_CACHE", str(tmp_path))
    first = Tuning()
    model, given, expected = built(DOT, first, fixed=True)
    np.testing.assert_allclose(model(*given)[0], expected[0], rtol=1e-4, atol=1e-4)
    assert first.tried == 1

    def never(problem: Problem, ways: list[Built]) -> int:
        raise AssertionError("measured again")

    second = Tuning()
    monkeypatch.setattr(second, "_measured", never)
    built(DOT, second, fixed=True)
    assert (second.tried, second.changed) == (1, first.changed)


def test_the_command_tells_what_tuning_changed(cli: Cli, samples: Path) -> None:
    result = cli("compile-and-run", samples / "mlp.pre.hlo", "--autotune", "--check", "--threads", 1)
    assert result.exit_code == 0, result.stderr
    assert "kernels that have several schedules" in result.stderr
