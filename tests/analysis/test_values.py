"""Facts about values: the number that fills one, its uniform axes, its cone; and where nodes and lines come from."""
from __future__ import annotations

import pytest

from irscope import api
from irscope.analysis.values import (
    body_operator,
    cone,
    dims,
    in_library,
    is_annotation,
    number,
    other,
    reduces,
    size,
    uniform_axes,
    written,
)
from irscope.expand import expand
from irscope.graph import Graph
from irscope.ops import hlo

ADD = "add { p = f32[] parameter(0)\nq = f32[] parameter(1)\nROOT s = f32[] add(p, q) }\n"


def entry(*lines: str) -> Graph:
    """The graph of some instructions over x and y; its result is the last."""
    head = "HloModule m\n" + ADD + "ENTRY e {\n x = f32[4,8] parameter(0)\n y = f32[8] parameter(1)\n"
    return api.load(head + "".join(f" {line}\n" for line in lines[:-1]) + f" ROOT {lines[-1]}\n}}\n", format="hlo").module().main()


@pytest.mark.parametrize(("lines", "value"), [
    (("r = f32[] constant(2.5)",), 2.5),
    (("r = f32[1] constant({3})",), 3.0),
    (("r = f32[1,1] constant({ { 3 } })",), 3.0),
    (("r = pred[] constant(true)",), 1.0),
    (("r = pred[] constant(false)",), 0.0),
    (("r = f32[2] constant({3, 3})",), None),
    (("r = c64[] constant((1, 2))",), None),
    (("c = f32[] constant(3)", "b = f32[8] broadcast(c), dimensions={}", "d = f64[8] convert(b)", "r = f64[2,4] reshape(d)"), 3.0),
    (("c = s32[] constant(16)", "d = s32[] constant(3)", "r = s32[] subtract(c, d)"), 13.0),
    (("c = s32[] constant(16)", "d = s32[] constant(3)", "r = s32[] add(c, d)"), 19.0),
    (("c = s32[] constant(16)", "d = s32[] constant(3)", "r = s32[] multiply(c, d)"), 48.0),
    (("c = s32[] constant(16)", "d = s32[] constant(3)", "r = s32[] divide(c, d)"), None),
    (("c = f32[] constant(16)", "p = f32[] parameter(2)", "r = f32[] add(c, p)"), None),
    (("c = f32[] constant(16)", "p = f32[] parameter(2)", "r = f32[] add(p, c)"), None),
    (("c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})", "r = f32[8] add(c, c)"), None),
    (("r = f32[] parameter(2)",), None),
])
def test_the_number_that_fills_a_value(lines: tuple[str, ...], value: float | None) -> None:
    assert number(entry(*lines).result()) == value


@pytest.mark.parametrize(("depth", "value"), [(3, 8.0), (4, None)])
def test_arithmetic_is_folded_three_operators_deep(depth: int, value: float | None) -> None:
    lines = ["v0 = f32[] constant(1)", *(f"v{i} = f32[] add(v{i - 1}, v{i - 1})" for i in range(1, depth + 1))]
    assert number(entry(*lines).result()) == value


def test_a_number_that_expansion_made_is_known() -> None:
    made = expand(api.load('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { clip(%x, a_min=-2f, a_max=6f) }\n', format="relay").module())
    filled = sorted({found for node in made.main().nodes if (found := number(node)) is not None})
    assert filled == [-2.0, 6.0]


@pytest.mark.parametrize(("lines", "axes"), [
    (("c = f32[] constant(1)", "r = f32[4,8] broadcast(c), dimensions={}"), {0, 1}),
    (("r = f32[4,8] broadcast(y), dimensions={1}",), {0}),
    (("c = f32[] constant(1)", "r = f32[1,8] broadcast(c), dimensions={}"), {1}),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "r = f32[4,8] negate(b)"), {0}),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "r = f64[4,8] convert(b)"), {0}),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "c = f32[] constant(1)", "d = f32[4,8] broadcast(c), dimensions={}", "r = f32[4,8] add(d, b)"), {0}),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "r = f32[4,8] add(b, x)"), set()),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "r = f32[4,8] add(x, b)"), set()),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "p = pred[] constant(true)", "r = f32[4,8] select(p, b, b)"), set()),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "n = f32[] constant(0)", "r = f32[4,8] clamp(n, b, n)"), set()),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "n = f32[] constant(0)", "r = f32[4,8] pad(b, n), padding=0_0x0_0"), set()),
    (("b = f32[4,8] broadcast(y), dimensions={1}", "r = f32[8,4] transpose(b), dimensions={1,0}"), set()),
    (("r = f32[4,8] copy(x)",), set()),
])
def test_uniform_axes(lines: tuple[str, ...], axes: set[int]) -> None:
    graph = entry(*lines)
    assert uniform_axes(graph)[graph.result().index] == axes


def test_a_scalar_operand_does_not_limit_the_uniform_axes() -> None:
    graph = entry("b = f32[4,8] broadcast(y), dimensions={1}", "n = f32[] constant(0)", "r = f32[4,8] maximum(b, n)")
    assert uniform_axes(graph)[graph.result().index] == {0}


def test_a_cone_is_nearest_first_and_limited() -> None:
    graph = entry("a = f32[4,8] negate(x)", "b = f32[4,8] exponential(a)", "r = f32[4,8] add(b, x)")
    assert [node.name for node in cone(graph.result())] == ["r", "b", "x", "a"]
    assert [node.name for node in cone(graph.result(), 3)] == ["r", "b", "x"]
    assert [node.name for node in cone(graph.result(), 1)] == ["r"]
    long = entry(*(f"n{i} = f32[4,8] negate({f'n{i - 1}' if i else 'x'})" for i in range(70)))
    assert len(cone(long.result())) == 64


def test_small_facts() -> None:
    graph = entry("z = f32[] constant(0)", "s = f32[4] reduce(x, z), dimensions={1}, to_apply=add", "t = (f32[4], f32[4,8]) tuple(s, x)",
                  "o = f32[<=4,8] parameter(2)", "w = f32[4,8] add(x, x)", "r = f32[4,8] subtract(w, x)")
    at = {node.name: node for node in graph.nodes}
    assert (dims(at["s"]), dims(at["t"]), dims(at["o"]), dims(at["z"])) == ((4,), (), (), ())
    assert (size(at["x"]), size(at["t"])) == (128, 0)
    assert other(at["r"], at["w"]) is at["x"] and other(at["r"], at["x"]) is at["w"]
    assert body_operator(at["s"]) is hlo.add and body_operator(at["r"]) is None
    assert reduces(at["s"], hlo.add) and not reduces(at["s"], hlo.maximum) and not reduces(at["r"], hlo.add)
    pair = entry("z = f32[] constant(0)", "r = (f32[4], f32[4]) reduce(x, x, z, z), dimensions={1}, to_apply=add").result()
    assert not reduces(pair, hlo.add)


def test_a_node_of_a_derived_graph_stands_for_one_of_the_text() -> None:
    module = api.load('#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { %0 = nn.relu(%x); negative(%0) }\n', format="relay").module()
    made = expand(expand(module)).main()
    assert {written(node).name for node in made.nodes if node.op is hlo.maximum} == {"0"}
    assert all(written(node) is node for node in module.main().nodes)


@pytest.mark.parametrize(("line", "is_of_library"), [
    ("torch/nn/functional.py:10", True), ("/usr/lib/python3/dist-packages/jax/a.py:1", True), ("/env/site-packages/x.py:3", True), ("jax/x.py:1", True),
    ("model.py:1", False), ("/home/torch/nn/model.py:2", False), ("my/flax/x.py", False), ("flax/x.py", True), ("keras/x.py", True),
    ("transformers/x.py", True), ("timm/x.py", True),
])
def test_lines_of_libraries(line: str, is_of_library: bool) -> None:
    assert in_library(line) is is_of_library


@pytest.mark.parametrize(("target", "annotates"), [
    ("Sharding", True), ("SPMDFullToShardShape", True), ("SPMDShardToFullShape", True), ("annotate_device_placement", True), ("MoveToHost", True),
    ("ShardBarrierFrom", True), ("xla.sdy.FuncResultSharding", True), ("TopK", False), ("x.Sharding", False),
])
def test_calls_that_only_annotate(target: str, annotates: bool) -> None:
    assert is_annotation(entry(f'r = f32[4,8] custom-call(x), custom_call_target="{target}"').result()) is annotates
    assert not is_annotation(entry("r = f32[4,8] copy(x)").result())
