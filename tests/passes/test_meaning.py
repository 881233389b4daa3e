"""Every pass keeps the meaning of random programs, and this is sharp enough to notice a pass that is wrong."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.diff import compare
from irscope.formats.relay import print_module
from irscope.graph import Graph, Module
from irscope.graph.numbering import Numbering
from irscope.passes import pass_named, share_equal
from irscope.passes.manager import run_passes
from irscope.passes.registry import own_passes
from tests.lower.whole import inputs_of, module_of, reference
from tests.passes.relay_runs import outputs
from tests.programs import hlo, relay

SEEDS = range(12)


def relay_text(seed: int) -> str:
    return relay.program(seed, "plain").text()


HALF = frozenset(("to-mixed-precision",))
"""Passes that change the precision: their numbers are held to that of the narrow type."""


def close(got: Sequence[np.ndarray[Any, Any]], wanted: Sequence[np.ndarray[Any, Any]], name: str) -> bool:
    """Whether the numbers agree, relative to the largest of each result."""
    tolerance = 5e-2 if name in HALF else 5e-3
    for a, b in zip(got, wanted, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        x, y = a.astype(np.float64), b.astype(np.float64)
        finite = np.isfinite(y)
        scale = max(1.0, float(np.max(np.abs(y[finite]), initial=0.0)))
        # Halves round differently where a conversion was; one rounding is what may differ.
        if not np.array_equal(np.isnan(x), np.isnan(y)) or np.max(np.abs(x - y)[finite & np.isfinite(x)], initial=0.0) > tolerance * scale:
            return False
    return True


def keeps(module: Module, name: str) -> bool:
    *_, last = run_passes(module, [name])
    assert not last.broke, [f.message for f in last.broke]
    return close(outputs(last.after, 0, module), outputs(module), name)


@pytest.mark.parametrize("name", own_passes())
def test_relay_programs_keep_their_meaning(name: str) -> None:
    for seed in SEEDS:
        module = irscope.load(relay_text(seed)).module()
        assert keeps(module, name), f"seed {seed}"


@pytest.mark.parametrize("name", own_passes())
def test_what_a_pass_makes_of_relay_reads_back_as_the_same(name: str) -> None:
    for seed in SEEDS:
        made = irscope.load(relay.program(seed, "plain", control=False).text()).module()
        for step in run_passes(made, [name]):
            made = step.after
        text = print_module(made)
        assert compare(made, irscope.load(text).module()).same, text


@pytest.mark.parametrize("name", own_passes())
def test_hlo_programs_keep_their_meaning(name: str) -> None:
    for seed in SEEDS:
        module = module_of(hlo.program(seed, "plain").text())
        made = pass_named(name).run(module)
        arrays = inputs_of(module)
        assert close(reference(made, arrays), reference(module, arrays), name), f"seed {seed}"


def test_all_passes_one_after_the_other() -> None:
    for seed in SEEDS:
        module = irscope.load(relay_text(seed)).module()
        made = module
        for step in run_passes(module, [name for name in own_passes() if name not in HALF]):
            assert not step.broke, (step.name, [f.message for f in step.broke])
            made = step.after
        assert close(outputs(made, 0, module), outputs(module), "all"), f"seed {seed}"


def test_a_key_without_operands_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """share-equal that calls nodes equal whatever they read. One program in fifteen has two such nodes of one type, and shows it."""
    class Wrong(Numbering):
        def values(self, graph: Graph, alone: Any, bodies: Any = None) -> list[int]:
            numbers: dict[object, int] = {}
            return [numbers.setdefault(n if alone(n) else self.shape_of(n), len(numbers)) for n in graph.nodes]
    monkeypatch.setattr(share_equal, "Numbering", Wrong)
    modules = (irscope.load(relay_text(seed)).module() for seed in range(60))
    assert not all(keeps(module, "share-equal") for module in modules)
