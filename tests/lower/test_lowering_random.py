"""Random graphs mean the same as code, after passes and in every plan; what the plan says holds."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.backends.comparison import compare
from irscope.backends.model import primitive
from irscope.expand import expand
from irscope.fusion import policy_named
from irscope.fusion.views import VIEWS
from irscope.graph import live
from irscope.lower.interpret import interpret_program
from irscope.lower.lowering import lower
from irscope.lower.options import Options
from irscope.lower.schedule import NEON
from irscope.ops.hlo import named
from tests.lower.whole import check, inputs_of, module_of, reference
from tests.programs import hlo


def random_text(seed: int) -> str:
    return hlo.program(seed, "plain").text()


@pytest.mark.parametrize("seed", range(12))
def test_compiled_random_graphs_agree_with_the_reference(seed: int) -> None:
    check(random_text(seed), runs=1)


@pytest.mark.parametrize("seed", range(100, 112))
def test_interpreted_tile_ir_agrees_with_the_reference(seed: int) -> None:
    module = module_of(random_text(seed))
    made = primitive(module)
    program = lower(made, Options(machine=NEON))
    arrays = inputs_of(module)
    for number, (got, wanted) in enumerate(zip(interpret_program(program, arrays), reference(module, arrays), strict=True)):
        assert compare(f"out{number}", got.reshape(wanted.shape), wanted).fault is None


@pytest.mark.parametrize("seed", range(200, 230))
def test_passes_keep_the_meaning_of_random_graphs(seed: int) -> None:
    module = module_of(random_text(seed))
    made = primitive(module)
    arrays = inputs_of(module)
    after = flatten(evaluate(made.main(), arrays))
    for number, (got, wanted) in enumerate(zip(after, reference(module, arrays), strict=True)):
        assert compare(f"out{number}", np.asarray(got), wanted).fault is None


@pytest.mark.parametrize("seed", range(300, 330))
def test_plans_are_complete_and_in_order(seed: int) -> None:
    graph = expand(module_of(random_text(seed))).main()
    plan = policy_named("irscope").plan(graph)
    stored = {node for node in graph.nodes if node.op.name in ("parameter", "constant")}
    for group in plan.groups:
        for node in group.inputs:
            while node.op in VIEWS and node not in stored:
                node = node.operands[0]
            for part in node.operands if node.op.name == "tuple" else (node,):
                assert part in stored, f"{group} reads %{part.name} before it is there"
        assert set(group.outputs) <= set(group.nodes)
        stored.update(group.outputs)
    alive = live(graph)
    root = graph.result()
    wanted = set(root.operands if root.op.name == "tuple" else (root,))
    assert wanted <= stored
    inside = {node for group in plan.groups for node in group.nodes}
    for node in graph.nodes:
        if alive[node.index] and node.op not in VIEWS | named("parameter constant tuple"):
            assert node in inside, f"no kernel computes %{node.name}"
    edges = {v.names for v in plan.verdicts}
    assert len(edges) == len(plan.verdicts)
