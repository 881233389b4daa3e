"""Attention that is written out: which forms PyTorch makes one call of. The table is what torch 2.13 did with each form."""
from __future__ import annotations

import pytest

from irscope.expand import expand
from irscope.fusion.inductor.policy import POLICY
from irscope.graph import Module
from tests.fusion.inductor_texts import graph, plan, tensor, verdict


def written(scale: str, turned: bool, mask: str, rank: int = 4, behind: str = "") -> Module:
    """Queries and keys, a softmax, and the values. ``behind``: lines that read something in between."""
    shape = tensor(2, 64, 128) if turned else tensor(2, 4, 64, 32) if rank == 4 else tensor(8, 64, 32)
    lines: list[str] = []
    q, k, v = "q", "k", "v"
    if turned:
        for name in "qkv":
            lines += [f"{name}1 = aten::view(%{name}, [2, 64, 4, 32])", f"{name}2 = aten::transpose(%{name}1, 1, 2)"]
        q, k, v = "q2", "k2", "v2"
    if scale == "queries":
        lines.append(f"q3 = aten::mul(%{q}, 0.17)")
        q = "q3"
    lines += [f"t = aten::transpose(%{k}, -2, -1)", f"s = aten::matmul(%{q}, %t)"]
    last = "s"
    if scale in ("div", "mul"):
        lines.append(f"d = aten::{scale}(%s, 5.65)")
        last = "d"
    if mask == "add":
        lines.append(f"a = aten::add(%{last}, %m, 1)")
    elif mask:
        lines += ["z = aten::eq(%m, 0)", f"a = aten::masked_fill(%{last}, %z, -1000000.0)"]
    last = "a" if mask else last
    lines += [f"p = aten::softmax(%{last}, -1, None)", f"o = aten::matmul(%p, %{v})"]
    lines += [behind] if behind else []
    return graph({"q": shape, "k": shape, "v": shape, "m": tensor(64, 64)}, "\n".join(lines), "o, e" if behind else "o")


def is_one_call(module: Module) -> bool:
    return any(unit.attention for unit in POLICY.prepared(expand(module).main()).program.units)


@pytest.mark.parametrize(("scale", "turned", "mask"), [
    ("div", False, ""), ("div", False, "add"), ("div", True, ""), ("div", True, "add"), ("mul", False, ""), ("mul", True, ""),
    ("", True, ""), ("", True, "add"),
])
def test_these_forms_are_one_call(scale: str, turned: bool, mask: str) -> None:
    module = written(scale, turned, mask)
    assert is_one_call(module)
    kernels = POLICY.prepared(expand(module).main()).scheduler.kernels
    assert all(kernel.extern for kernel in kernels)
    assert verdict(plan(module), "p", "o").fused == "all"


@pytest.mark.parametrize(("scale", "turned", "mask"), [
    ("mul", False, "add"), ("mul", True, "add"), ("", False, ""), ("", False, "add"), ("div", False, "fill"), ("div", True, "fill"),
    ("mul", False, "fill"), ("", True, "fill"), ("queries", False, ""), ("queries", True, "add"),
])
def test_these_forms_are_not(scale: str, turned: bool, mask: str) -> None:
    module = written(scale, turned, mask)
    assert not is_one_call(module)
    assert any(not kernel.extern for kernel in POLICY.prepared(expand(module).main()).scheduler.kernels)


def test_three_dimensions_are_not() -> None:
    assert not is_one_call(written("div", False, "", rank=3))


def test_a_single_key_is_not() -> None:
    lines = "t = aten::transpose(%k, -2, -1)\ns = aten::matmul(%q, %t)\nd = aten::div(%s, 5.65)\np = aten::softmax(%d, -1, None)\n"
    for keys in (1, 2):
        shapes = {"q": tensor(2, 4, 64, 32), "k": tensor(2, 4, keys, 32), "v": tensor(2, 4, keys, 32)}
        assert is_one_call(graph(shapes, lines + "o = aten::matmul(%p, %v)", "o")) == (keys > 1)


@pytest.mark.parametrize("name", ["s", "d", "p"])
def test_what_is_read_in_between_keeps_it_apart(name: str) -> None:
    assert not is_one_call(written("div", False, "", behind=f"e = aten::neg(%{name})"))
    assert is_one_call(written("div", False, "", behind="e = aten::neg(%o)"))


def test_the_result_lies_in_memory_as_the_queries_do() -> None:
    """So that turning it back and merging the heads copies nothing."""
    module = written("div", True, "", behind="b = aten::transpose(%o, 1, 2)\ne = aten::reshape(%b, [2, 64, 128])")
    assert all(kernel.extern for kernel in POLICY.prepared(expand(module).main()).scheduler.kernels)
