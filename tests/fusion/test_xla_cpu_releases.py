"""The policy ``xla-cpu`` of each release against what that release of jaxlib logged, on small jax programs of our own.

tests/data/xla_cpu_releases has a folder for each release: for each program the text before XLA's fusion pass, for some the text that jax
gave to XLA, and in ``edges.json`` what the log says of every edge, by the name of its computation and of its ends.
"""
from __future__ import annotations

import json
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from irscope.api import LintOptions, lint, load
from irscope.fusion import change_words, policy_for, policy_named
from irscope.fusion.canonicalise import canonicalise, run_cpu
from irscope.fusion.xla.releases import CPU_RELEASES
from irscope.fusion.xla.stage import computations
from irscope.fusion.xla_cpu import RELEASES, XlaCpuPolicy
from irscope.graph import Module, TensorType
from irscope.lint.fusion import remarks
from irscope.lint.reporters import full, json_
from irscope.lint.verdicts import verdicts_of
from irscope.ops import hlo
from tests.fusion.xla_texts import why

FOLDER = Path(__file__).parent.parent / "data" / "xla_cpu_releases"
PROGRAMS = [(path.parent.name, path.name.removesuffix(".before.hlo")) for path in sorted(FOLDER.glob("*/*.before.hlo"))]
EARLY = [(path.parent.name, path.name.removesuffix(".raw.hlo")) for path in sorted(FOLDER.glob("*/*.raw.hlo"))]


def text(release: str, name: str, stage: str = "before") -> Module:
    return load(FOLDER / release / f"{name}.{stage}.hlo").module()


def logged(release: str, name: str) -> dict[tuple[str, str, str], str]:
    """What became of each edge, by computation and ends."""
    said = json.loads((FOLDER / release / "edges.json").read_text())[name]
    return {(graph, producer, consumer): fused for fused, edges in said.items() for edge in edges for graph, producer, consumer in [edge.split(" ")]}


@pytest.mark.parametrize("release, name", PROGRAMS)
def test_each_release_decides_as_its_log_says(release: str, name: str) -> None:
    verdicts = {(v.graph.name, *v.names): v.fused for v in verdicts_of(text(release, name), f"xla-cpu@{release}")}
    truth = logged(release, name)
    assert truth and {edge: verdicts.get(edge) for edge in truth} == truth


@pytest.mark.parametrize("release, name", PROGRAMS)
def test_an_edge_on_which_releases_differ_says_so(release: str, name: str) -> None:
    """What the policy of each release says, asked one by one."""
    module = text(release, name)
    asked = {one: {(v.graph.name, *v.names): v.fused for v in verdicts_of(module, f"xla-cpu@{one}")} for one in RELEASES}
    for verdict in verdicts_of(module, f"xla-cpu@{release}"):
        edge = (verdict.graph.name, *verdict.names)
        each = tuple((one, said[edge]) for one, said in asked.items() if edge in said)
        assert verdict.releases == (each if len({fused for _, fused in each}) > 1 else ())


def forms(module: Module) -> Counter[tuple[str, str]]:
    nodes = (node for graph in computations(module) for node in graph.nodes if node.op is not hlo.parameter)
    return Counter((n.op.name, f"{n.type.dtype.name}{n.type.shape}" if isinstance(n.type, TensorType) else "tuple") for n in nodes)


@pytest.mark.parametrize("release, name", EARLY)
def test_each_release_rewrites_an_early_text_as_it_did(release: str, name: str) -> None:
    rewriting = CPU_RELEASES[f"jaxlib-{release}"].rewriting
    made = canonicalise(text(release, name, "raw"), partial(run_cpu, rewriting=rewriting)).module
    assert forms(made) == forms(text(release, name))


def test_the_text_shows_the_release_as_far_as_releases_print_otherwise() -> None:
    def shown(release: str, name: str) -> str:
        policy = policy_for("xla-cpu", text(release, name))
        assert isinstance(policy, XlaCpuPolicy)
        return policy.release.name

    assert shown("0.7.2", "bf16_block") == "jaxlib-0.7.2"
    assert shown("0.8.3", "bf16_block") == "jaxlib-0.12.0.1"  # nothing tells them apart
    assert shown("0.11.2", "while_newton") == shown("0.12.0.1", "while_newton") == "jaxlib-0.12.0.1"
    assert shown("0.9.2", "while_newton") == "jaxlib-0.12.0.1"


SOFTMAX = """
  x = f32[8,16] parameter(0)
  y = f32[8,16] {op}(x)
  least = f32[] constant(-inf)
  top = f32[8] reduce(y, least), dimensions={{1}}, to_apply={reducer}
  tops = f32[8,16] broadcast(top), dimensions={{0}}
  shifted = f32[8,16] {difference}
  ROOT e = f32[8,16] {last}(shifted)"""
PARTS = {"op": "negate", "reducer": "largest", "difference": "subtract(y, tops)", "last": "exponential"}
LARGEST = """largest { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] maximum(p, q) }
sum { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n"""


@pytest.mark.parametrize("change, stored", [
    ({}, True), ({"difference": "subtract(tops, y)"}, True), ({"reducer": "sum"}, False), ({"difference": "add(y, tops)"}, False),
    ({"last": "negate"}, False), ({"difference": "subtract(x, tops)"}, False), ({"op": "reverse"}, False)])
def test_what_a_softmax_shifts_by_its_maximum_is_stored_since_0_11(change: dict[str, str], stored: bool) -> None:
    instructions = SOFTMAX.format(**{**PARTS, **change})
    if change.get("op") == "reverse":
        instructions = instructions.replace("reverse(x)", "reverse(x), dimensions={0}")
    rules = [why(f"xla-cpu@{release}", instructions, "y top", LARGEST) for release in ("0.10.2", "0.11.2", "0.12.0.1")]
    assert rules == ["fused", *(["shifted-by-its-maximum"] * 2 if stored else ["fused"] * 2)]


def test_the_report_names_the_releases_that_differ() -> None:
    path = FOLDER / "0.12.0.1" / "grouped_query_rope.before.hlo"
    report = lint([path], LintOptions(why=True, policy="xla-cpu")).report
    file, = json.loads(json_.write(report))["files"]
    assert file["policy"] == "xla-cpu@jaxlib-0.12.0.1"
    differ = [edge for edge in file["edges"] if edge["releases"]]
    assert differ and all(edge["releases"][file["policy"].partition("@")[2]] == edge["fused"] for edge in differ)
    words = full.write(report)
    assert f"on {len(differ)} of them the releases of the compiler differ" in words
    assert "releases differ: fused up to jaxlib-0.11.2, not fused since jaxlib-0.12.0.1" in words


def test_words_for_releases() -> None:
    assert change_words((("c", "none"), ("b", "all"), ("a", "all"))) == "fused up to b, not fused since c"
    assert change_words((("d", "none"), ("c", "all"), ("b", "all"), ("a", "some"))) == "fused in part up to a, fused from b to c, not fused since d"
    assert change_words((("c", "none"), ("b", "all"), ("a", "none"))) == "not fused up to a, fused in b, not fused since c"


def test_a_release_may_be_named_by_its_number() -> None:
    for name in RELEASES:
        assert policy_named(f"xla-cpu@{name.removeprefix('jaxlib-')}") is RELEASES[name]


LATE = """HloModule m, entry_computation_layout={{(f32[8,64]{{1,0}})->f32[8]{{0}}}}

sum.1 {{
  p.1 = f32[] parameter(0)
  q.1 = f32[] parameter(1)
  ROOT s.1 = f32[] add(p.1, q.1)
}}

ENTRY main.1 {{
  x.1 = f32[8,64]{{1,0}} parameter(0)
  zero.1 = f32[] constant(0)
  {name} = f32[8,64]{{1,0}} multiply(x.1, x.1)
  ROOT reduce.1 = f32[8]{{0}} reduce({name}, zero.1), dimensions={{1}}, to_apply=sum.1
}}
"""


@pytest.mark.parametrize("name, is_early", [("square.1", True), ("square.0", False), ("multiply", False), ("multiply.2", True)])
def test_names_that_only_passes_give_show_that_a_text_is_late(name: str, is_early: bool) -> None:
    """XLA would still split the sum of 64 elements in two."""
    told = any("before XLA's own rewriting" in line for line in remarks(load(LATE.format(name=name)).module(), "xla-cpu"))
    assert told == is_early
