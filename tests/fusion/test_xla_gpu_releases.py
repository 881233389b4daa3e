"""The policy ``xla-gpu`` of each release against what that release of jaxlib logged, on small jax programs of our own.

tests/data/xla_gpu_releases has a folder for each release: for each program the text before ``priority-fusion``, compiled for an H100 without
one, and in ``edges.json`` what XLA's ``priority_fusion_dump`` says of every edge, by the name of its computation and of its ends.
"""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from irscope.api import load
from irscope.fusion.canonicalise import canonicalise
from irscope.fusion.canonicalise.pipeline import run_gpu
from irscope.fusion.policy import policy_named
from irscope.fusion.xla.gpu_device import device_named
from irscope.fusion.xla.releases import GPU_RELEASES
from irscope.fusion.xla_gpu import POLICY, RELEASES, XlaGpuPolicy
from irscope.graph import Module
from irscope.lint.verdicts import verdicts_of

FOLDER = Path(__file__).parent.parent / "data" / "xla_gpu_releases"
PROGRAMS = [(path.parent.name, path.name.removesuffix(".before.hlo")) for path in sorted(FOLDER.glob("*/*.before.hlo"))]


def text(release: str, name: str) -> Module:
    return load(FOLDER / release / f"{name}.before.hlo").module()


@pytest.mark.parametrize("release, name", PROGRAMS)
def test_each_release_decides_as_its_log_says(release: str, name: str) -> None:
    verdicts = {(v.graph.name, *v.names): v.fused for v in verdicts_of(text(release, name), f"xla-gpu@{release}", "h100")}
    said = json.loads((FOLDER / release / "edges.json").read_text())[name]
    truth = {tuple(edge.split(" ")): fused for fused, edges in said.items() for edge in edges}
    assert truth and {edge: verdicts.get(edge) for edge in truth} == truth


def test_the_releases_are_known_by_name_and_by_number() -> None:
    assert {release for release, _ in PROGRAMS} == {"0.10.2", "0.12.0.1"}
    for name in ("jaxlib-0.12.0.1", "jaxlib-0.10.2"):
        policy = policy_named(f"xla-gpu@{name.partition('-')[2]}")
        assert policy is RELEASES[name] and policy.version == f"xla-gpu@{name}"
    assert POLICY is RELEASES["jaxlib-0.10.2"]


SUMS = """HloModule m, entry_computation_layout={(f32[64]{0})->f32[64]{0}}
ENTRY e {
  x = f32[64]{0} parameter(0)
  one = f32[] constant(0.1)
  two = f32[] constant(0.2)
  b = f32[64]{0} broadcast(one), dimensions={}
  c = f32[64]{0} broadcast(two), dimensions={}
  y = f32[64]{0} add(x, b)
  ROOT z = f32[64]{0} add(y, c)
}
"""


@pytest.mark.parametrize("release, additions", [("jaxlib-0.12.0.1", 2), ("jaxlib-0.10.2", 1)])
def test_constants_that_are_added_one_after_the_other_stay_apart_since_0_12(release: str, additions: int) -> None:
    rewriting = GPU_RELEASES[release].rewriting
    assert rewriting is not None
    made = canonicalise(load(SUMS).module(), lambda body, kept: run_gpu(body, device_named(None), kept, rewriting)).module
    assert sum(node.op.name == "add" for node in made.main().nodes) == additions


def test_an_older_release_is_noted_to_be_rewritten_as_another_one() -> None:
    assert GPU_RELEASES["jaxlib-0.4.38"].rewriting is None
    for name in ("jaxlib-0.12.0.1", "jaxlib-0.10.2"):
        policy = RELEASES[name]
        assert isinstance(policy, XlaGpuPolicy)
        assert not any("the rewriting, and what is made of products" in line for line in policy.remarks(load(SUMS).module()))
