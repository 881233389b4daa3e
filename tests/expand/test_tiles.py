"""Shardings in XLA's own form, several devices as text, and what Relay's choices and missing types say."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irscope
from irscope.analysis.reference import evaluate, flatten
from irscope.expand import expand
from irscope.expand.bind import elided_constants
from irscope.expand.manual import Shards, shards_of
from irscope.expand.partitions import partitioned
from irscope.expand.relay import run_program
from irscope.formats.relay.attributes import TableConstant
from irscope.graph import Module
from irscope.source import UserError
from tests.expand.test_expansions import listed


def tiles(sharding: str, shape: str = "f32[8,8]") -> list[Shards]:
    module = irscope.load(f"ENTRY e {{\n  x = {shape} parameter(0), sharding={{{sharding}}}\n"
                          f'  ROOT s = {shape} custom-call(x), custom_call_target="SPMDFullToShardShape", sharding={{manual}}\n}}\n').module()
    return shards_of(module, module.main().result())


@pytest.mark.parametrize(("sharding", "counts", "places"), [
    ("devices=[2,1]0,1", (2, 1), ((0, 0), (1, 0))),
    ("devices=[2,1]1,0", (2, 1), ((1, 0), (0, 0))),
    ("devices=[1,2]0,1", (1, 2), ((0, 0), (0, 1))),
    ("devices=[2,2]0,1,2,3", (2, 2), ((0, 0), (0, 1), (1, 0), (1, 1))),
    ("devices=[2,2]<=[4]", (2, 2), ((0, 0), (0, 1), (1, 0), (1, 1))),
    ("devices=[2,2]<=[2,2]T(1,0)", (2, 2), ((0, 0), (1, 0), (0, 1), (1, 1))),
    ("devices=[4,2]<=[2,4]T(1,0)", (4, 2), ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (3, 1))),
    ("devices=[2,1,2]<=[4] last_tile_dim_replicate", (2, 1), ((0, 0), (0, 0), (1, 0), (1, 0))),
    ("devices=[2,1,2]0,2,1,3 last_tile_dim_replicate", (2, 1), ((0, 0), (1, 0), (0, 0), (1, 0))),
    ("devices=[2,1,1,2]<=[4] last_tile_dims={manual, replicated}", (2, 1), ((0, 0), (0, 0), (1, 0), (1, 0))),
])
def test_tiles_are_read(sharding: str, counts: tuple[int, ...], places: tuple[tuple[int, ...], ...]) -> None:
    assert tiles(sharding) == [Shards(counts, places)]


@pytest.mark.parametrize("sharding", [
    "replicated", "maximal device=0", "devices=[2,1]0,2", "devices=[2,1]0,0", "devices=[2]0,1", "devices=[3,1]0,1,2", "devices=[99999,99999]<=[9999800001]",
    "devices=[2,1]0",
])
def test_tiles_of_no_known_form(sharding: str) -> None:
    with pytest.raises(UserError, match="the sharding by which it cuts or joins is of no form that irscope knows"):
        tiles(sharding)


ADD = "add { x = f32[] parameter(0)\n      y = f32[] parameter(1)\n      ROOT s = f32[] add(x, y) }\n"
BODIES = ADD + """with { p = f32[4,2] parameter(0)
      ROOT r = f32[4,2] all-reduce(p), to_apply=add }
without { p = f32[4,2] parameter(0)
      ROOT r = f32[4,2] negate(p) }
"""
DEVICES = {
    "a branch that communicates": "c = pred[] constant(true)\n  ROOT r = f32[4,2] conditional(c, p, p), true_computation=with, false_computation=without",
    "a branch alone": "c = pred[] constant(true)\n  ROOT r = f32[4,2] conditional(c, p, p), true_computation=without, false_computation=without",
    "two operands all to all": "n = f32[4,2] negate(p)\n  a = (f32[4,2], f32[4,2]) all-to-all(p, n), replica_groups={{0,1}}\n"
    "  x = f32[4,2] get-tuple-element(a), index=0\n  y = f32[4,2] get-tuple-element(a), index=1\n  ROOT r = f32[4,2] add(x, y)",
    "two operands permuted": "n = f32[4,2] negate(p)\n  a = (f32[4,2], f32[4,2]) collective-permute(p, n), source_target_pairs={{0,1}}\n"
    "  x = f32[4,2] get-tuple-element(a), index=0\n  y = f32[4,2] get-tuple-element(a), index=1\n  ROOT r = f32[4,2] add(x, y)",
    "two operands reduced": "n = f32[4,2] negate(p)\n  a = (f32[4,2], f32[4,2]) all-reduce(p, n), to_apply=add\n"
    "  x = f32[4,2] get-tuple-element(a), index=0\n  y = f32[4,2] get-tuple-element(a), index=1\n  ROOT r = f32[4,2] subtract(x, y)",
    "gathered along the last": "ROOT r = f32[4,4] all-gather(p), dimensions={1}",
    "scattered along the last": "ROOT r = f32[4,1] reduce-scatter(p), dimensions={1}, to_apply=add",
    "groups that leave one": "ROOT r = f32[4,2] all-reduce(p), to_apply=add, replica_groups={{1}}",
}
P = [np.arange(8, dtype=np.float32).reshape(4, 2), np.full((4, 2), 10, np.float32)]
WANTED = {
    "a branch that communicates": [P[0] + P[1]] * 2, "a branch alone": [-P[0], -P[1]], "two operands all to all": [P[0] + P[1], -P[0] - P[1]],
    "two operands permuted": [0 * P[0], 0 * P[0]], "two operands reduced": [2 * (P[0] + P[1])] * 2,
    "gathered along the last": [np.concatenate(P, 1)] * 2, "scattered along the last": [(P[0] + P[1])[:, :1], (P[0] + P[1])[:, 1:]], "groups that leave one": P,
}


def on_two(name: str) -> Module:
    text = f"HloModule m, num_partitions=2\n{BODIES}ENTRY e {{\n  p = f32[4,2] parameter(0)\n  {DEVICES[name]}\n}}\n"
    return expand(partitioned(irscope.load(text).module(), 2))


@pytest.mark.parametrize("name", DEVICES)
def test_two_devices(name: str) -> None:
    for got, wanted in zip(flatten(evaluate(on_two(name).main(), P)), WANTED[name], strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_two_devices_as_text(golden: Callable[[str, str], None]) -> None:
    golden("devices.txt", "".join(f"==== {name}\n{listed(on_two(name))}" for name in DEVICES))


@pytest.mark.parametrize(("body", "said", "help"), [
    ("nn.dense(%x, %w)", "nn.dense in line 2 reads it with f32[2,8]", "--shape w=UNITS,8 and"),
    ("nn.conv2d(%x4, %w, kernel_size=[3, 3])", "nn.conv2d in line 2 reads it with f32[2,8,5,5]", "--shape w=CHANNELS,8,HEIGHT,WIDTH and"),
    ("nn.conv2d(%x4, %w, kernel_layout=\"HWIO\", kernel_size=[3, 3])", "nn.conv2d in line 2 reads it with f32[2,8,5,5]", "--shape w=2,8,5,5 and"),
    ("nn.matmul(%x, %w)", "nn.matmul in line 2 reads it with f32[2,8]", "--shape w=8,UNITS and"),
    ("nn.matmul(%x, %w, transpose_b=True)", "nn.matmul in line 2 reads it with f32[2,8]", "--shape w=UNITS,8 and"),
    ("multiply(%w, %x)", "multiply in line 2 reads it with f32[2,8]", "--shape w=2,8 and"),
    ("nn.relu(%w)", "nn.relu in line 2 reads it", "--shape w=1,3,224,224 and"),
])
def test_a_missing_type_names_its_reader_and_an_option(body: str, said: str, help: str) -> None:
    text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 8), float32], %x4: Tensor[(2, 8, 5, 5), float32], %w) {{ {body} }}\n'
    with pytest.raises(UserError) as raised:
        expand(irscope.load(text, format="relay").module())
    assert said in raised.value.message and help in str(raised.value.help)


LIST = "type List { Cons(float32, List), Nil, }\ntype Pair { Two(float32, float32), One(float32), }\n"


@pytest.mark.parametrize(("body", "value"), [
    ("match (Two(%x, 3f)) { One(%a) => %a, Two(%a, %b) => add(%a, %b), }", 5.0),
    ("match (One(%x)) { One(%a) => negative(%a), Two(%a, %b) => add(%a, %b), }", -2.0),
    ("match ((%x, 3f)) { (%a, %b) => multiply(%a, %b), }", 6.0),
    ("match ((Two(%x, 3f), One(7f))) { (One(_), _) => 1f, (Two(_, %b), One(%c)) => add(%b, %c), }", 10.0),
    ("match (Cons(%x, Cons(4f, Nil))) { Cons(_, Nil) => 0f, Cons(%a, Cons(%b, Nil)) => subtract(%b, %a), _ => 9f, }", 2.0),
    ("match (Nil) { Cons(%a, _) => %a, Nil => %x, }", 2.0),
    ("match (Cons(%x, Nil)) { Cons(%a, %r) => match (%r) { Nil => %a, _ => 5f, }, Nil => 6f, }", 2.0),
])
def test_a_match_takes_the_first_pattern_that_fits(body: str, value: float) -> None:
    module = irscope.load(f'#[version = "0.0.5"]\n{LIST}def @main(%x: float32) {{ {body} }}\n', format="relay").module()
    assert flatten(evaluate(expand(module).main(), [np.float32(2)])) == [value]


@pytest.mark.parametrize(("body", "said"), [
    ("match (%x) { (%a, %b) => %a, }", "a pattern of a tuple is compared with an array"),
    ("let %f = fn (%a: float32) { %a }; if (%c) { %f } else { %f }", "a function or a reference cannot be chosen by data"),
    ("let %r = ref(%x); match (%r) { Two(%a, _) => %a, }", "a pattern Two is compared with a reference"),
    ("if (%c) { (%x, %x) } else { (%x, %x, %x) }", "the branches give a tuple of 2 and a tuple of 3"),
    ("let %l = if (%c) { One(%x) } else { Two(%x, %x) }; 1f", "the branches give One and Two"),
])
def test_choices_that_are_refused(body: str, said: str) -> None:
    module = irscope.load(f'#[version = "0.0.5"]\n{LIST}def @main(%x: float32, %c: bool) {{ {body} }}\n', format="relay").module()
    with pytest.raises(UserError, match=said):
        expand(module)



def test_constants_of_a_dump_take_values() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) {\n  add(%x, meta[relay.Constant][0] /* ty=Tensor[(3), float32] */)\n}\n'
    module = irscope.load(text, format="relay").module()
    given = np.array([4, 5, 6], np.float32)
    keys = [str(TableConstant.of(node).meta) for node in module.main().nodes if TableConstant.of(node).meta is not None]
    made = run_program(module, constants=dict.fromkeys(keys, given))
    np.testing.assert_array_equal(flatten(evaluate(expand(made).main(), [np.ones(3, np.float32)]))[0], given + 1)
    assert elided_constants(made) == [] and [node.name for node in elided_constants(run_program(module))] == keys
