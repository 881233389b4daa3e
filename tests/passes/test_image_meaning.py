"""Passes on layers keep the numbers of random programs on images; and this notices when one does not."""
from __future__ import annotations

import pytest

import irscope
from irscope.passes.manager import run_passes
from irscope.passes.pattern import Match
from tests.passes.image_graphs import image_program
from tests.passes.relay_runs import meaning_stays

LAYERS = ("merge-composite{patterns=a: tanh(add(*, *)); b: subtract(nn.conv2d(*, *), *); c: add(nn.conv2d(*, *), *); d: nn.relu?(nn.conv2d(*, *)); "
          "e: nn.bias_add(*, *); f: multiply(multiply(*, constant), *); g: add(x, x)}")
PASSES = ["infer-types", "fold-batch-norm", "fold-scale-axis", "canonicalize-ops", "fuse-conv-relu", "fuse-patterns", LAYERS,
          "dynamic-to-static", "canonicalize-ops,fold-batch-norm,fold-scale-axis,convert-layout,fuse-conv-relu,fuse-patterns"]


def keeps(passes: str, seed: int) -> bool:
    """Whether passes keep types and numbers; raises AssertionError where they do not. False: they changed nothing."""
    from irscope.passes.registry import split_outside

    module = irscope.load(image_program(seed, 20)).module()
    made = module
    for step in run_passes(module, split_outside(passes)):
        assert not step.broke, (step.name, [f.message for f in step.broke])
        made = step.after
    meaning_stays(module, made, 5e-4, 5e-4)
    return [n.op.name for n in made.main().nodes] != [n.op.name for n in module.main().nodes]


@pytest.mark.parametrize("passes", PASSES)
def test_numbers_stay(passes: str) -> None:
    changed = sum(keeps(passes, seed) for seed in range(14))
    assert changed or passes in ("infer-types", "dynamic-to-static")


def test_a_group_that_forgets_who_else_reads_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Match, "escapes", lambda self, graph, users: None)

    def broken(seed: int) -> bool:
        try:
            keeps(LAYERS, seed)
        except AssertionError:
            return True
        return False
    assert any(broken(seed) for seed in range(14))
