"""Releases of torch: which one decides, and where they differ."""
from __future__ import annotations

import pytest

from irscope.api import load
from irscope.expand import expand
from irscope.fusion import policy_for, policy_named
from irscope.fusion.inductor.differing import differ
from irscope.fusion.inductor.policy import RELEASES, InductorPolicy
from irscope.fusion.inductor.releases import release_of
from irscope.graph import Module
from irscope.lint.context import Context
from irscope.lint.settings import Settings
from irscope.lint.verdicts import answer
from tests.fusion.inductor_texts import graph, tensor

CHEAP = "a = aten::mul(%x, 1.0)\nb = aten::add(%a, 2.0, 1)"


def operations(module: Module, release: str) -> list[int]:
    """How many operations compute each buffer that is no library call."""
    prepared = RELEASES[release].prepared(expand(module).main())
    return [buffer.expression.operations() for buffer in prepared.state.buffers if buffer.kind == "pointwise"]


def chain(length: int, readers: int, more: str = "") -> Module:
    """A chain of sines that several operators read, and further lines, which return ``r`` with the next number."""
    lines = ["s0 = aten::sin(%x)", *(f"s{i} = aten::sin(%s{i - 1})" for i in range(1, length))]
    lines += [f"r{i} = aten::cos(%s{length - 1})" for i in range(readers)]
    results = ", ".join(f"r{i}" for i in range(readers + bool(more)))
    return graph({"x": tensor(8, 8)}, "\n".join([*lines, more]).strip(), results)


@pytest.mark.parametrize(("length", "readers", "newest", "older"), [
    (48, 6, 7, 6),  # 49 operations with the read, and six readers: only torch 2.15 stores the value
    (47, 6, 6, 6),
    (48, 5, 5, 5),
    (51, 2, 3, 3),
])
def test_a_value_that_many_read_is_stored_earlier(length: int, readers: int, newest: int, older: int) -> None:
    module = chain(length, readers)
    assert len(operations(module, "torch-2.15")) == newest
    assert len(operations(module, "torch-2.13")) == older


def test_multiplying_by_one_computes_nothing_since_2_15() -> None:
    module = graph({"x": tensor(8, 8)}, CHEAP, "b")
    assert operations(module, "torch-2.15") == [3]
    assert operations(module, "torch-2.13") == [5]


def test_an_operator_that_one_release_leaves_to_the_library() -> None:
    module = graph({"x": tensor(8, 8)}, "a = aten::special_log_ndtr(%x)\nb = aten::neg(%a)", "b")
    calls = {name: policy.plan_module(expand(module, outline=True))[-1].calls for name, policy in RELEASES.items()}
    assert [call.extern for call in calls["torch-2.13"] or []] == [True, False]
    assert [call.extern for call in calls["torch-2.15"] or []] == [False]


def test_releases_are_compared_where_they_may_differ() -> None:
    assert not differ(expand(graph({"x": tensor(8, 8)}, "a = aten::relu(%x)\nb = aten::neg(%a)", "b")).main())
    module = chain(48, 5, "h = aten::slice(%s47, 0, 0, 4, 1)\nr5 = aten::cos(%h)")
    assert differ(expand(module).main())
    verdicts, _ = answer(Context(module, Settings("inductor")))
    told = {verdict.names: dict(verdict.releases) for verdict in verdicts if verdict.releases}
    assert told["s47", "r5"] == {"torch-2.15": "none", "torch-2.13": "some"}


@pytest.mark.parametrize(("version", "name"), [
    ("", "torch-2.15"), ("2.13.0+cpu", "torch-2.13"), ("2.14.1", "torch-2.13"), ("2.15.0+cu132", "torch-2.15"), ("3.0", "torch-2.15"),
    ("2.9.1", "torch-2.13"),
])
def test_a_version_has_a_release(version: str, name: str) -> None:
    assert release_of(version).name == name


def test_a_text_decides_its_release() -> None:
    text = 'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[8]"):\n' \
        '        relu: "f32[8]" = torch.ops.aten.relu.default(x)\n        return (relu,)\n'
    for said, name in (("", "torch-2.15"), ("# torch version: 2.13.0+cpu\n", "torch-2.13")):
        policy = policy_for("inductor", load(said + text).module())
        assert isinstance(policy, InductorPolicy) and policy.version == f"inductor@{name}"
    assert policy_for("inductor@2.13", load(text).module()) is policy_named("inductor@torch-2.13")
