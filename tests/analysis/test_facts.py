"""Every figure and section of some programs, compared with golden files whose figures can be recomputed by hand."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from irscope import api
from irscope.analysis.survey import Survey
from tests.analysis.facts import facts
from tests.analysis.texts import FUSED, LOOP, flat, irregular, layers, nested, scrambled, training

PROGRAMS = Path(__file__).parent / "programs"
TEXTS = {"loop": LOOP, "fused": FUSED, "layers": layers(5), "scoped": layers(12, scoped=True), "training": training(4),
         "irregular": irregular(90), "nested": nested(), "flat_12": flat(12), "flat_14": flat(14)}
SAMPLES = ("mlp.opt.hlo", "newton.pre.hlo", "residual.opt.hlo", "tagger.inlined.txt", "risky.scripted.txt", "conv_two_consumers.relay")
Golden = Callable[[str, str], None]


LARGE = {"training_20": training(20), "irregular_300": irregular(300), "layers_40": layers(40), "scrambled": scrambled(200, False),
         "scrambled_scopes": scrambled(200, True)}


@pytest.mark.parametrize("name", LARGE)
def test_outlines_of_a_large_text(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", facts(Survey(api.load(LARGE[name]).module()), nodes=False))


@pytest.mark.parametrize("name", TEXTS)
def test_facts_of_a_text(name: str, golden: Golden) -> None:
    golden(f"{name}.txt", facts(Survey(api.load(TEXTS[name]).module())))


@pytest.mark.parametrize("name", SAMPLES)
def test_facts_of_a_sample(name: str, golden: Golden, samples: Path) -> None:
    golden(f"{name}.txt", facts(Survey(api.load(samples / name).module())))


@pytest.mark.parametrize("name", ["transformer.opt.hlo", "transformer.pre.hlo", "newton.opt.hlo"])
def test_outlines_of_a_large_sample(name: str, golden: Golden, samples: Path) -> None:
    golden(f"{name}.txt", facts(Survey(api.load(samples / name).module()), nodes=False))


@pytest.mark.parametrize("path", sorted(PROGRAMS.iterdir()), ids=lambda path: path.name)
def test_facts_of_a_program(path: Path, golden: Golden) -> None:
    golden(f"{path.name}.txt", facts(Survey(api.load(path).module())))
