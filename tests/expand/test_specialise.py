"""Modules whose sizes are open, specialised to those of their inputs; inputs of other types; weights and constants that are bound."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import results
from irscope.expand import bind_types, expand
from irscope.expand.bind import bind_constants, bind_inputs, elided_constants
from irscope.expand.specialise import has_open_sizes, specialised
from irscope.formats.hlo.printer import print_module
from irscope.graph import Module, TensorType
from irscope.graph.dtypes import F32
from irscope.source import UserError

X = np.arange(6, dtype=np.float32).reshape(3, 2) - 2


def stable(body: str, inputs: str, result: str) -> Module:
    text = f"module {{\n  func.func public @main({inputs}) -> {result} {{\n{body}\n  }}\n}}\n"
    reading = irscope.load(text, format="stablehlo")
    assert reading.ok, [f.render() for f in reading.findings]
    return reading.module()


RESHAPED = """
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %c = stablehlo.constant dense<2> : tensor<i32>
    %m = stablehlo.multiply %n, %c : tensor<i32>
    %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
    %r = stablehlo.dynamic_reshape %x, %s : (tensor<?x2xf32>, tensor<1xi32>) -> tensor<?xf32>
    return %r : tensor<?xf32>"""
SPREAD = """
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %a = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %b = stablehlo.constant dense<4> : tensor<1xi32>
    %t = stablehlo.constant dense<2> : tensor<1xi32>
    %s = stablehlo.concatenate %b, %a, %t, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %r = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1, 2] : (tensor<?x2xf32>, tensor<3xi32>) -> tensor<4x?x2xf32>
    return %r : tensor<4x?x2xf32>"""
COUNTED = """
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
    %a = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %r = stablehlo.dynamic_iota %a, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    return %r : tensor<?xi32>"""
WHOLE = "HloModule m\n"
LOOP = """HloModule m
c {
  s = (s32[], f32[?,2], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=2
  ROOT l = pred[] compare(i, n), direction=LT
}
b {
  s = (s32[], f32[?,2], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[?,2] get-tuple-element(s), index=1
  n = s32[] get-tuple-element(s), index=2
  o = s32[] constant(1)
  j = s32[] add(i, o)
  y = f32[?,2] negate(x)
  ROOT t = (s32[], f32[?,2], s32[]) tuple(j, y, KEPT)
}
ENTRY e {
  x = f32[?,2] parameter(0)
  n = s32[] get-dimension-size(x), dimensions={0}
  z = s32[] constant(0)
  t = (s32[], f32[?,2], s32[]) tuple(z, x, n)
  w = (s32[], f32[?,2], s32[]) while(t), condition=c, body=b
  ROOT r = f32[?,2] get-tuple-element(w), index=1
}
"""
BRANCH = """HloModule m
f {
  s = (f32[?,2], s32[]) parameter(0)
  x = f32[?,2] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  k = f32[] convert(n)
  b = f32[?,2] dynamic-broadcast(x, k)
  ROOT r = f32[?,2] negate(x)
}
g {
  s = f32[?,2] parameter(0)
  ROOT r = f32[?,2] abs(s)
}
ENTRY e {
  p = pred[] parameter(0)
  x = f32[?,2] parameter(1)
  n = s32[] get-dimension-size(x), dimensions={0}
  t = (f32[?,2], s32[]) tuple(x, n)
  ROOT r = f32[?,2] conditional(p, t, x), true_computation=f, false_computation=g
}
""".replace("  k = f32[] convert(n)\n  b = f32[?,2] dynamic-broadcast(x, k)\n", "")

PROGRAMS: dict[str, tuple[Callable[[], Module], Any]] = {
    "reshaped": (lambda: stable(RESHAPED, "%x: tensor<?x2xf32>", "tensor<?xf32>"), X.reshape(6)),
    "broadcast": (lambda: stable(SPREAD, "%x: tensor<?x2xf32>", "tensor<4x?x2xf32>"), np.broadcast_to(X, (4, 3, 2))),
    "counted": (lambda: stable(COUNTED, "%x: tensor<?x2xf32>", "tensor<?xi32>"), np.arange(3, dtype=np.int32)),
    "a loop that keeps its limit": (lambda: irscope.load(LOOP.replace("KEPT", "n")).module(), -X),
    "a loop that changes its limit": (lambda: irscope.load(LOOP.replace("KEPT", "j")).module(), -X),
    "a loop of one value": (lambda: irscope.load("""HloModule m
c {
  s = f32[?,2] parameter(0)
  ROOT p = pred[] constant(false)
}
b {
  s = f32[?,2] parameter(0)
  ROOT n = f32[?,2] negate(s)
}
ENTRY e {
  x = f32[?,2] parameter(0)
  ROOT w = f32[?,2] while(x), condition=c, body=b
}
""").module(), X),
    "arithmetic": (lambda: irscope.load(WHOLE + """ENTRY e {
  x = f32[?,2] parameter(0)
  n = s32[] get-dimension-size(x), dimensions={0}
  m = s32[] get-dimension-size(x), dimensions={1}
  c = s32[] constant(5)
  d = s32[] multiply(n, m)
  q = s32[] divide(d, m)
  g = pred[] compare(d, c), direction=GT
  s = s32[] select(g, d, c)
  u = s32[] add(s, q)
  k = f32[] convert(u)
  w = f32[3,2] broadcast(k), dimensions={}
  dead = f32[?,2] exponential(x)
  ROOT y = f32[?,2] add(x, w)
}
""").module(), X + 9),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_specialised_program(name: str, golden: Callable[[str, str], None]) -> None:
    make, wanted = PROGRAMS[name]
    made = bind_types(make(), {make().main().params[-1].name: (3, 2)})
    assert not has_open_sizes(made)
    golden(f"specialised_{name.replace(' ', '_')}.txt", print_module(made))
    if name != "a loop that changes its limit":
        (got,) = results(expand(made), [X])
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("taken", [True, False])
def test_branches_are_specialised(taken: bool) -> None:
    made = bind_types(irscope.load(BRANCH).module(), {"x": (3, 2)})
    (got,) = results(expand(made), [np.array(taken), X])
    np.testing.assert_array_equal(got, -X if taken else np.abs(X))


def test_open_sizes_are_seen() -> None:
    assert has_open_sizes(irscope.load(LOOP.replace("KEPT", "n")).module())
    assert not has_open_sizes(irscope.load("ENTRY e { x = f32[<=3,2] parameter(0)\nROOT r = f32[<=3,2] negate(x) }\n").module())
    assert not has_open_sizes(irscope.load('#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 2), float32]) { nn.relu(%x) }\n', format="relay").module())


@pytest.mark.parametrize(("text", "said", "help"), [
    ("ENTRY e { x = f32[?,2,<=5] parameter(0)\nROOT r = f32[?,2,<=5] negate(x) }\n", r"input x is f32\[\?,2,<=5\]: its sizes are open",
     "give an array, or --shape x=8,2,8"),
    ("ENTRY e { x = (f32[?]) parameter(0)\nROOT r = f32[?] get-tuple-element(x), index=0 }\n", "its sizes are open", "give an array, or --shape x=8"),
    ('ENTRY e { x = f32[2] parameter(0)\nROOT r = f32[?] custom-call(x), custom_call_target="f" }\n', r"sizes of %r, f32\[\?\], do not follow", ""),
])
def test_sizes_that_stay_open_are_refused(text: str, said: str, help: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        specialised(irscope.load(text).module(), {})
    assert raised.value.help == help


def test_shapes_that_an_operator_does_not_take_are_refused() -> None:
    text = "ENTRY e { x = f32[?,2] parameter(0)\ny = f32[3,?] parameter(1)\nROOT r = f32[?,2] add(x, y) }\n"
    with pytest.raises(UserError, match="the program does not take these shapes"):
        bind_types(irscope.load(text).module(), {"x": (3, 2), "y": (3, 4)})


def test_large_values_are_not_evaluated() -> None:
    def made(count: int) -> set[str]:
        text = (f"ENTRY e {{ x = f32[?] parameter(0)\nn = s32[] get-dimension-size(x), dimensions={{0}}\nw = s32[{count}] broadcast(n), dimensions={{}}\n"
                f"c = f32[{count}] convert(w)\nROOT t = (f32[?], f32[{count}]) tuple(x, c) }}\n")
        return {node.op.name for node in specialised(irscope.load(text).module(), {0: TensorType(F32, (3,))}).main().nodes}
    assert "broadcast" not in made(1024)
    assert "broadcast" in made(1025)


PLAIN = """HloModule m
f {
  p = f32[2,3] parameter(0)
  ROOT n = f32[2,3] negate(p)
}
ENTRY e {
  x = f32[2,3] parameter(0)
  k = f32[3] constant({1, 2, 3})
  y = f32[3] parameter(1)
  b = f32[2,3] broadcast(y), dimensions={1}
  s = f32[2,3] add(x, b)
  ROOT r = f32[3,2] transpose(s), dimensions={1,0}
}
"""


def test_other_shapes_and_element_types_are_inferred_downstream() -> None:
    module = irscope.load(PLAIN).module()
    assert bind_types(module, {}) is module
    made = bind_types(module, {}, {"x": "f64", "arg1": "f64"})
    types = {node.name: str(node.type) for node in made.main().nodes}
    assert types == {"x": "f64[2,3]", "k": "f32[3]", "y": "f64[3]", "b": "f64[2,3]", "s": "f64[2,3]", "r": "f64[3,2]"}
    assert [p.name for p in made.main().params] == ["x", "y"] and made.main().result().name == "r"
    assert made.graphs["f"] is module.graphs["f"] and set(made.graphs) == set(module.graphs)
    assert str(module.main().params[0].type) == "f32[2,3]", "the module before is unchanged"


@pytest.mark.parametrize(("shapes", "dtypes", "said", "help"), [
    ({"z": (1,)}, {}, "there is no input 'z'", "the inputs are x, y"),
    ({"xx": (1,)}, {}, "there is no input 'xx'", "did you mean x?"),
    ({}, {"q": "f32"}, "there is no input 'q'", "the inputs are x, y"),
    ({"x": (2, 4)}, {}, "%s does not take the bound shapes", ""),
])
def test_bindings_that_do_not_fit_are_refused(shapes: dict[str, tuple[int, ...]], dtypes: dict[str, str], said: str, help: str) -> None:
    with pytest.raises(UserError, match=said) as raised:
        bind_types(irscope.load(PLAIN).module(), shapes, dtypes)
    assert help in (raised.value.help or "")


def test_a_tuple_has_no_shape() -> None:
    module = irscope.load("ENTRY e { x = (f32[2]) parameter(0)\nROOT r = f32[2] get-tuple-element(x), index=0 }\n").module()
    with pytest.raises(UserError, match=r"input x is \(f32\[2\]\), not a tensor: --shape cannot bind it"):
        bind_types(module, {"x": (2,)})


def test_an_untyped_relay_input_is_float32() -> None:
    module = irscope.load('#[version = "0.0.5"]\ndef @main(%x) { nn.relu(%x) }\n', format="relay").module()
    assert str(bind_types(module, {"x": (2, 3)}).main().params[0].type) == "f32[2,3]"
    assert str(bind_types(module, {"x": (2, 3)}, {"x": "s8"}).main().params[0].type) == "s8[2,3]"


def test_weights_become_constants() -> None:
    module = expand(irscope.load(PLAIN).module())
    assert bind_inputs(module, {}) is module
    made = bind_inputs(module, {1: np.array([1, 2, 3], np.float32)})
    assert [p.name for p in made.main().params] == ["x"]
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(results(made, [x])[0], (x + [1, 2, 3]).T)
    first = bind_inputs(module, {0: x})
    np.testing.assert_array_equal(results(first, [np.zeros(3, np.float32)])[0], x.T)


def test_elided_constants_take_values() -> None:
    module = irscope.load("ENTRY e { c = f32[3] constant({...})\nd = f32[3] constant({1,2,3})\nROOT r = f32[3] add(c, d) }\n").module()
    assert [node.name for node in elided_constants(module)] == ["c"]
    bound = bind_constants(module, {"c": np.array([4, 5, 6], np.float32)})
    assert elided_constants(bound) == []
    np.testing.assert_array_equal(results(bound, [])[0], [5, 7, 9])
