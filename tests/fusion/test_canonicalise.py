"""HLO from before XLA's rewriting against what XLA made of it: pairs of texts that jaxlib 0.10.2 dumped for small jax programs of our own."""
from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from irscope.api import load
from irscope.fusion import EdgeVerdict, Plan
from irscope.fusion.canonicalise import canonicalise, early_signs, may_be_early, run_cpu
from irscope.fusion.canonicalise.signs import is_rewritten
from irscope.fusion.xla.releases import CPU_0_10_2
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_cpu import RELEASES
from irscope.graph import Graph, Module, Node, TensorType
from irscope.lint.fusion import remarks
from irscope.lint.planned import Planned
from irscope.ops import hlo

FOLDER = Path(__file__).parent.parent / "data" / "xla_cpu"
NAMES = sorted(path.name.removesuffix(".raw.hlo") for path in FOLDER.glob("*.raw.hlo"))
REWRITING = CPU_0_10_2.rewriting
rewrite = partial(run_cpu, rewriting=REWRITING)
POLICY = RELEASES[CPU_0_10_2.name]
UNTOLD = (hlo.parameter, hlo.constant, hlo.get_tuple_element, hlo.tuple)


def text(name: str, stage: str) -> Module:
    """One half of a pair: ``raw`` from before all passes, ``before`` from before the pass that fuses."""
    return load((FOLDER / f"{name}.{stage}.hlo").read_text()).module()


def form(node: Node) -> tuple[str, str]:
    """Operator and type, the layout left out."""
    if isinstance(node.type, TensorType):
        return node.op.name, f"{node.type.dtype.name}{list(node.type.shape)}"
    return node.op.name, "tuple"


def forms(module: Module) -> Counter[tuple[str, str]]:
    return Counter(form(node) for graph in computations(module) for node in graph.nodes if node.op is not hlo.parameter)


def edges(plans: list[Plan]) -> Counter[tuple[object, ...]]:
    """Every edge by the forms of its ends, and what became of it."""
    found: Counter[tuple[object, ...]] = Counter()
    for plan in plans:
        for v in plan.verdicts:
            if v.graph is plan.graph:
                found[form(v.producer), form(v.consumer), v.fused, v.rule] += 1
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_rewritten_text_holds_what_xla_makes_of_it(name: str) -> None:
    made, truth = canonicalise(text(name, "raw"), rewrite).module, text(name, "before")
    assert forms(made) == forms(truth)
    assert edges(POLICY.plan_as_written(made)) == edges(POLICY.plan_as_written(truth))


@pytest.mark.parametrize("name", NAMES)
def test_an_early_text_is_told_from_a_late_one(name: str) -> None:
    raw, before = text(name, "raw"), text(name, "before")
    same = forms(raw) == forms(before)
    assert bool(early_signs(raw, rewriting=REWRITING)) or is_rewritten(raw, canonicalise(raw, rewrite).module) or same
    assert early_signs(before, rewriting=REWRITING) == []
    assert not (may_be_early(before) and is_rewritten(before, canonicalise(before, rewrite).module))


@pytest.mark.parametrize("name", NAMES)
def test_what_is_rewritten_keeps_its_way_to_the_text(name: str) -> None:
    raw = text(name, "raw")
    canonical = canonicalise(raw, rewrite)
    here = {node for graph in raw.graphs.values() for node in graph.nodes}
    for graph in computations(canonical.module):
        names = [node.name for node in graph.nodes]
        assert len(set(names)) == len(names)
        for place, node in enumerate(graph.nodes):
            assert node.index == place and all(o.index < place and graph.nodes[o.index] is o for o in node.operands)
            assert (node.origin and set(node.origin) <= here) or node.op in (hlo.parameter, hlo.tuple, hlo.constant)
    assert set(canonical.trace.became) <= here
    by_name = {node.name: node for node in here}
    for graph in computations(canonical.module):
        for node in graph.nodes:
            old = by_name.get(node.name)
            assert old is None or old in node.origin, f"%{node.name} is another value in the text"


def told(name: str) -> dict[tuple[str, str], EdgeVerdict]:
    return {v.names: v for plan in POLICY.plan_module(text(name, "raw")) for v in plan.verdicts}


def graph_edges(graph: Graph) -> set[tuple[str, str]]:
    return {(o.name, n.name) for n in graph.nodes if n.op not in UNTOLD for o in n.operands if o.op not in UNTOLD}


@pytest.mark.parametrize("name", NAMES)
def test_every_edge_of_the_text_is_told(name: str) -> None:
    raw, verdicts = text(name, "raw"), told(name)
    for graph in computations(raw):
        assert graph_edges(graph) <= set(verdicts)
    for plan in POLICY.plan_module(raw):
        here = set(plan.graph.nodes)
        for group in plan.groups:
            assert group.nodes and set(group.nodes) | set(group.outputs) <= here and group.outputs
    planned = Planned(raw, "xla-cpu@jaxlib-0.10.2")
    assert planned.kernels >= 1 and planned.traffic > 0


def test_a_rewritten_edge_is_told_in_the_operators_of_the_text() -> None:
    verdicts = told("layernorm")
    gone = verdicts["sub.10", "sub.11"]  # a second difference with the mean, as the first
    assert (gone.fused, gone.rule) == ("all", "simplified") or "%sub.15" in gone.cause
    kept = verdicts["sub.11", "integer_pow.1"]
    assert kept.fused == "none" and kept.rule == "library-call" and "XLA has rewritten this edge to %sub.15 -> %reduce_sum.15" in kept.cause
    assert verdicts["rsqrt", "mul.10"].rule == "not-profitable"


def test_the_confidence_is_stated() -> None:
    near = remarks(text("layernorm", "raw"), "xla-cpu")
    assert len(near) == 1 and "(reshape)" in near[0] and "confidence: near" in near[0] and "before_fusion" in near[0]
    assert remarks(text("layernorm", "before"), "xla-cpu") == []
    unfollowed = load("HloModule m, entry_computation_layout={(f32[4]{0})->f32[2,2]{1,0}}, num_partitions=2\nENTRY e {\n"
                      " x = f32[4]{0} parameter(0)\n c = f32[4]{0} custom-call(x), custom_call_target=\"there\"\n"
                      " ROOT r = f32[2,2]{1,0} reshape(c)\n}\n").module()
    first, low, parts = remarks(unfollowed, "xla-cpu")
    assert "confidence: near" in first and "confidence: low around custom-call" in low and "2 devices" in parts
