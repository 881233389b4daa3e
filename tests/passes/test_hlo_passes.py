"""Passes over HLO on the smallest module that shows them; the numbers stay."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.types import check_types
from irscope.formats.hlo import print_module
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.source import Severity
from tests.lower.whole import entry, inputs_of, module_of, reference

LOOP = """cond {{ p = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({rounds})
  ROOT c = pred[] compare(i, n), direction=LT }}
body {{ p = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  w = f32[8] get-tuple-element(p), index=1
  a = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  e = f32[8] exponential(w)
  f = f32[8] negate(e)
  b = f32[8] add(a, f)
  m = f32[8] multiply(b, e)
  ROOT t = (s32[], f32[8], f32[8]) tuple(j, {kept}, m) }}
"""
MAIN = """
  w = f32[8] parameter(0)
  a = f32[8] parameter(1)
  z = s32[] constant(0)
  init = (s32[], f32[8], f32[8]) tuple(z, w, a)
  loop = (s32[], f32[8], f32[8]) while(init), condition=cond, body=body
  r = f32[8] get-tuple-element(loop), index=2
  s = f32[8] get-tuple-element(loop), index=1
  ROOT q = f32[8] add(r, s)
"""


def after(name: str, text: str) -> Module:
    module = module_of(text)
    made = pass_named(name).run(module)
    assert not [f.message for f in check_types(made) if f.severity is Severity.ERROR]
    arrays = [np.asarray(a) for a in inputs_of(module)]
    again = module_of(print_module(made))
    for candidate in (made, again):
        for got, wanted in zip(reference(candidate, arrays), reference(module, arrays), strict=True):
            np.testing.assert_array_equal(got, wanted)
    return made


def ops(module: Module) -> list[str]:
    return [n.op.name for n in module.main().nodes if n.op.name not in ("parameter", "constant", "get-tuple-element")]


def body_ops(module: Module) -> list[str]:
    loop = next(n for n in module.main().nodes if n.op.name == "while")
    return [n.op.name for n in loop.bodies[1].nodes if n.op.name not in ("parameter", "constant", "get-tuple-element")]


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_what_a_loop_never_changes_is_computed_before_it(rounds: int) -> None:
    made = after("hoist-loop-invariant", entry(MAIN, LOOP.format(kept="w", rounds=rounds)))
    assert body_ops(made) == ["add", "add", "multiply", "tuple"]
    assert [o for o in ops(made) if o in ("exponential", "negate")] == ["exponential", "negate"]


def test_what_a_loop_changes_stays_in_it() -> None:
    made = after("hoist-loop-invariant", entry(MAIN, LOOP.format(kept="b", rounds=3)))
    assert "exponential" in body_ops(made)


def test_a_second_run_finds_nothing() -> None:
    once = after("hoist-loop-invariant", entry(MAIN, LOOP.format(kept="w", rounds=3)))
    again = pass_named("hoist-loop-invariant").run(once)
    assert body_ops(again) == body_ops(once)


@pytest.mark.parametrize(("name", "lines", "left"), [
    ("fold-constants", "c = f32[] constant(2)\nd = f32[] constant(3)\nm = f32[] multiply(c, d)\nb = f32[4] broadcast(m), dimensions={}\n"
     "ROOT r = f32[4] add(x, b)", ["broadcast", "add"]),
    ("fold-constants", "c = f32[2] constant({1, 2})\nd = f32[2] constant({3, 4})\ne = f32[4] concatenate(c, d), dimensions={0}\n"
     "ROOT r = f32[4] add(x, e)", ["add"]),
    ("fold-constants{max-elements=3}", "c = f32[2] constant({1, 2})\nd = f32[2] constant({3, 4})\n"
     "e = f32[4] concatenate(c, d), dimensions={0}\nROOT r = f32[4] add(x, e)", ["concatenate", "add"]),
    ("cancel-transposes", "a = f32[2,2] reshape(x)\nb = f32[2,2] transpose(a), dimensions={1,0}\nc = f32[2,2] tanh(b)\n"
     "d = f32[2,2] transpose(c), dimensions={1,0}\nROOT r = f32[4] reshape(d)", ["reshape", "tanh", "reshape"]),
    ("cancel-transposes", "a = f32[2,2] reshape(x)\nb = f32[2,2]{1,0} transpose(a), dimensions={1,0}\nROOT d = f32[2,2] transpose(b), dimensions={1,0}",
     ["reshape"]),
    ("cancel-transposes", "a = f32[2,2] reshape(x)\nb = f32[2,2]{0,1} transpose(a), dimensions={1,0}\nROOT d = f32[2,2] transpose(b), dimensions={1,0}",
     ["reshape", "transpose", "transpose"]),
    ("move-cast", "a = f16[4] convert(x)\nb = f32[4] convert(a)\nROOT c = f32[2,2] reshape(b)", ["convert", "reshape", "convert"]),
    ("move-cast", "a = f32[3,4] broadcast(x), dimensions={1}\nROOT c = bf16[3,4] convert(a)", ["convert", "broadcast"]),
    ("canonicalize-cast", "a = f16[4] convert(x)\nb = f32[4] convert(a)\nc = f32[4] tanh(b)\nd = f32[4] negate(b)\nROOT r = f32[4] add(c, d)",
     ["convert", "convert", "tanh", "convert", "negate", "add"]),
])
def test_what_is_left(name: str, lines: str, left: list[str]) -> None:
    assert ops(after(name, entry("x = f32[4] parameter(0)\n" + lines))) == left


NESTED = """cond { p = ((f32[8], f32[8]), s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=1
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT }
body { p = ((f32[8], f32[8]), s32[], f32[8]) parameter(0)
  w = (f32[8], f32[8]) get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(w), index=1
  i = s32[] get-tuple-element(p), index=1
  a = f32[8] get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  e = f32[8] exponential(v)
  b = f32[8] add(a, e)
  ROOT t = ((f32[8], f32[8]), s32[], f32[8]) tuple(w, j, b) }
"""


def test_an_element_of_a_tuple_inside_the_state_is_read_from_that_tuple() -> None:
    made = after("hoist-loop-invariant", entry("""
        x = f32[8] parameter(0)
        y = f32[8] parameter(1)
        a = f32[8] parameter(2)
        z = s32[] constant(0)
        w = (f32[8], f32[8]) tuple(x, y)
        init = ((f32[8], f32[8]), s32[], f32[8]) tuple(w, z, a)
        loop = ((f32[8], f32[8]), s32[], f32[8]) while(init), condition=cond, body=body
        ROOT r = f32[8] get-tuple-element(loop), index=2""", NESTED))
    assert "exponential" in ops(made) and "exponential" not in body_ops(made)


def test_an_empty_slice_of_a_slice_stays_inside_the_operand() -> None:
    made = after("simplify-algebra", entry("""
        x = f32[10] parameter(0)
        a = f32[3] slice(x), slice={[0:9:4]}
        ROOT b = f32[0] slice(a), slice={[3:3]}"""))
    assert made.main().result().operands[0].op.name == "parameter"


ACTING = """f { p = f32[8] parameter(0)
  c = f32[8] custom-call(p), custom_call_target="print", custom_call_has_side_effect=true
  ROOT n = f32[8] negate(p) }
g { p = f32[8] parameter(0)
  ROOT c = f32[8] call(p), to_apply=f }
"""


@pytest.mark.parametrize("line", [
    'custom-call(x), custom_call_target="print", custom_call_has_side_effect=true', "call(x), to_apply=f", "call(x), to_apply=g",
])
@pytest.mark.parametrize("name", ["share-equal", "remove-dead"])
def test_what_acts_by_an_attribute_or_in_a_called_graph_stays(name: str, line: str) -> None:
    module = module_of(entry(f"x = f32[8] parameter(0)\na = f32[8] {line}\nb = f32[8] {line}\nROOT r = f32[8] exponential(x)", ACTING))
    made = pass_named(name).run(module)
    assert [node.op.name for node in made.main().nodes] == [node.op.name for node in module.main().nodes]


def test_a_loop_whose_state_is_no_tuple_of_parts_stays() -> None:
    """Nothing is known of what it passes on."""
    state = "(s32[], f32[8])"
    loop = f"""never {{ p = {state} parameter(0)
      ROOT c = pred[] constant(false) }}
    turn {{ p = {state} parameter(0)
      ROOT r = {state} call(p), to_apply=step }}
    step {{ p = {state} parameter(0)
      i = s32[] get-tuple-element(p), index=0
      w = f32[8] get-tuple-element(p), index=1
      e = f32[8] exponential(w)
      ROOT t = {state} tuple(i, e) }}
    """
    module = module_of(entry(f"p = {state} parameter(0)\nROOT w = {state} while(p), condition=never, body=turn", loop))
    assert ops(pass_named("hoist-loop-invariant").run(module)) == ["while"]


def test_a_call_that_acts_stays_in_its_loop() -> None:
    made = pass_named("hoist-loop-invariant").run(
        module_of(entry(MAIN, ACTING + LOOP.format(kept="w", rounds=3).replace("exponential(w)", "call(w), to_apply=g"))))
    assert "call" in body_ops(made) and "call" not in ops(made)


@pytest.mark.parametrize(("dtypes", "weight", "scale", "folds"), [
    ("f32 f32", "2", "3", True), ("bf16 f32", "2", "3", False), ("s8 f32", "2", "3", False),
    ("f16 f16", "60000", "2.5", False), ("f32 f32", "1e-20", "1e-25", False), ("f32 f32", "0", "1e-25", True),
    ("f32 f32", "inf", "0", False),
])
def test_a_scale_is_folded_into_weights_that_can_hold_the_products(dtypes: str, weight: str, scale: str, folds: bool) -> None:
    given, result = dtypes.split()
    made = pass_named("fold-scale").run(module_of(entry(f"""
        x = {given}[2,1] parameter(0)
        w = {given}[1,2] constant({{{{1, {weight}}}}})
        d = {result}[2,2] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        s = {result}[2] constant({{1, {scale}}})
        b = {result}[2,2] broadcast(s), dimensions={{1}}
        ROOT m = {result}[2,2] multiply(d, b)""")))
    assert not [f.message for f in check_types(made) if f.severity is Severity.ERROR]
    assert (made.main().result().op.name == "dot") == folds


FOREVER = """more { a = f32[] parameter(0)
  ROOT c = pred[] constant(true) }
step { a = f32[] parameter(0)
  ROOT b = f32[] negate(a) }
loops { a = f32[] parameter(0)
  ROOT w = f32[] while(a), condition=more, body=step }
ever { a = () parameter(0)
  ROOT c = pred[] constant(true) }
same { ROOT a = () parameter(0) }
stays { a = f32[] parameter(0)
  t = () tuple()
  w = () while(t), condition=ever, body=same
  ROOT b = f32[] negate(a) }
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
"""


@pytest.mark.parametrize(("line", "op"), [
    ("map(x), dimensions={0}, to_apply=loops", "map"), ("map(x), dimensions={0}, to_apply=stays", "map"),
    ("reduce-window(x, z), window={size=1000000000 pad=0_999999999}, to_apply=add", "reduce-window"),
    ("reduce-window(x, z), window={size=2 pad=0_1}, to_apply=add", "constant"),
])
def test_a_small_value_that_takes_long_is_not_folded(line: str, op: str) -> None:
    module = module_of(entry(f"x = f32[4] constant({{1, 2, 3, 4}})\nz = f32[] constant(0)\nROOT r = f32[4] {line}", FOREVER))
    assert pass_named("fold-constants").run(module).main().result().op.name == op


@pytest.mark.parametrize("name", ["remove-dead", "share-equal", "simplify-algebra", "cancel-transposes", "fold-constants"])
def test_control_predecessors_name_nodes_that_are_left(name: str) -> None:
    module = module_of(entry("""
        x = f32[4] parameter(0)
        p = f32[4] tanh(x)
        one = f32[] constant(1)
        ones = f32[4] broadcast(one), dimensions={}
        same = f32[4] multiply(p, ones)
        dead = f32[4] negate(x), control-predecessors={p}
        twin = f32[4] tanh(x), control-predecessors={dead}
        b = f32[4] exponential(x), control-predecessors={dead, twin, same}
        s = f32[4] add(p, twin)
        ROOT r = (f32[4], f32[4], f32[4]) tuple(b, s, same)"""))
    made = pass_named(name).run(module)
    names = [node.name for node in made.main().nodes]
    last = next(node for node in made.main().nodes if node.name == "b")
    assert last.attrs["control_predecessors"] and set(last.attrs["control_predecessors"]) <= set(names[:last.index])
    assert "p" in last.attrs["control_predecessors"] or "dead" in names
    module_of(print_module(made))


@pytest.mark.parametrize(("name", "line"), [
    ("simplify-algebra", "b = f32[4,8] broadcast(x), dimensions={1}\n"
                         "ROOT r = f32[4,8] exponential(b), sharding={devices=[1,2]<=[2]}"),
    ("move-cast", "b = f32[2,4] reshape(x), sharding={devices=[1,2]<=[2]}\nROOT r = bf16[2,4] convert(b), sharding={devices=[1,2]<=[2]}"),
])
def test_a_sharding_stays_with_values_of_its_shape(name: str, line: str) -> None:
    module = module_of(entry("x = f32[8] parameter(0), sharding={devices=[2]<=[2]}\n" + line))
    made = pass_named(name).run(module)
    assert ops(made) != ops(module)
    for each in (made, module_of(print_module(made))):
        assert not [f.message for f in check_types(each) if f.severity is Severity.ERROR]
    assert module.raw(module.main().params[0])
