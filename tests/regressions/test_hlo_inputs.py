"""Texts of HLO and StableHLO that no compiler writes are refused, or read in time and memory of their size."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import irscope
from irscope.expand.dynamic import pad_dynamic
from irscope.expand.manual import shards_of
from irscope.expand.partitions import partitioned
from irscope.formats.hlo.arrays import text_of
from irscope.formats.hlo.lexer import unescape
from irscope.graph import Node, Reading
from irscope.graph.types import tensor
from irscope.source import UserError
from tests.effort import calls_in


def hlo(lines: str) -> Reading:
    return irscope.load(f"HloModule m\nENTRY e {{\n p = f32[8] parameter(0)\n{lines}\n}}\n", format="hlo")


def messages(reading: Reading) -> str:
    return "\n".join(finding.message for finding in reading.findings)


def named(reading: Reading, name: str) -> Node:
    return next(node for node in reading.module().main().nodes if node.name == name)


@pytest.mark.parametrize("field", ["stack_frame_id", "source_line", "source_column"])
def test_strings_in_place_of_numbers_in_metadata(field: str) -> None:
    reading = hlo(f' ROOT r = f32[8] add(p, p), metadata={{source_file="a.py" {field}="abc"}}')
    assert not reading.ok
    stack = reading.modules[0].call_stack(named(reading, "r"))
    assert all(line.line == 0 and line.column == 0 for line in stack)


def gather(groups: str) -> Reading:
    return hlo(f" ROOT r = f32[8] all-gather(p), dimensions={{0}}, replica_groups={groups}")


@pytest.mark.parametrize(("groups", "message"), [
    ('mesh["x"=1024] {"x","x","x","x"}', "given twice, or in parts that overlap"),
    ('mesh["x"=8] {"x":(1)4,"x":(2)2}', "given twice, or in parts that overlap"),
    ('mesh["x"=8] {"x","x":(1)2}', "given twice, or in parts that overlap"),
    ('mesh["x"=4] {"x":(4)1}', "is not a part of an axis"),
    ("[0,5]<=[1000000000000,0]T(0,1)", "cannot be numbered along 0 places"),
    ('mesh["x"=0,device_ids=([1000000000000,0]T(0,1))] {"x"}', "cannot be numbered along 0 places"),
    ('mesh["x"=1,device_ids=([1000000000000,-1]T(0,1))] {"x"}', "cannot be numbered along -1 places"),
    (f"[1,2]<=[{','.join(['999999999999999999'] * 300)}]T({','.join(map(str, range(300)))})", "does not fit into 64 bits"),
    ("mesh[" + ",".join(f'"a{i}"=999999999999999999' for i in range(300)) + ',device_ids=(1)] {"a0"}', "does not fit into 64 bits"),
])
def test_impossible_device_numbers_are_refused(groups: str, message: str) -> None:
    assert message in messages(gather(groups))


def test_parts_of_an_axis_side_by_side_are_groups() -> None:
    reading = gather('mesh["x"=8] {"x":(1)2,"x":(4)2}')
    assert reading.ok, messages(reading)
    assert named(reading, "r").attrs["replica_groups"].groups() == ((0, 1, 4, 5), (2, 3, 6, 7))


def literal(type: str, value: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    return np.asarray(named(hlo(f" c = {type} constant({value})\n ROOT r = {type} copy(c)"), "c").attrs["literal"].value())


def test_complex_constants_keep_the_payload_of_nan() -> None:
    found = literal("c64[2]", "{(nan(0x1), 0), (1, -nan(0x7))}")
    assert found.view(np.uint32).tolist() == [0x7F800001, 0, 0x3F800000, 0xFF800007]


def test_one_number_is_the_first_element_of_a_complex_constant() -> None:
    assert literal("c64[3]", "(1, 2)").tolist() == [1 + 2j, 0, 0]
    assert literal("s8[3]", "5").tolist() == [5, 0, 0]


def test_escapes_of_half_a_character_are_unknown() -> None:
    assert unescape(r'"\uD800"') is None
    assert unescape(r'"\U0000DFFF"') is None
    assert unescape(r'"\uE000"') == "\ue000"


def test_empty_arrays_have_a_short_text() -> None:
    assert text_of(np.zeros((2, 0), np.float32), tensor("f32", 2, 0)) == "{ {}, {} }"
    assert text_of(np.zeros((1 << 40, 0), np.float32), tensor("f32", 1 << 40, 0)) == "{...}"


@pytest.mark.parametrize("operand", ["abs(p)", "%a{}"])
def test_operands_written_inline_and_undefined_ones_take_linear_time(operand: str) -> None:
    small, large = (calls_in(hlo, f" r = f32[8] add({','.join(operand.format(i) for i in range(n))})") for n in (500, 5000))
    assert large < 11 * small


def stablehlo(lines: str, types: str = "", arguments: str = "%p: tensor<8xf32>") -> Reading:
    text = f"{types}module @m {{\n func.func public @main({arguments}) -> tensor<8xf32> {{\n{lines} return %p : tensor<8xf32>\n }}\n}}\n"
    return irscope.load(text, format="stablehlo")


def test_types_that_name_one_another_twice_are_refused() -> None:
    types = "!t0 = tuple<tensor<f32>>\n" + "".join(f"!t{i} = tuple<!t{i - 1}, !t{i - 1}>\n" for i in range(1, 30))
    assert "more than 16,384 parts" in messages(stablehlo("", types, "%p: tensor<8xf32>, %q: !t29"))


def test_types_that_name_one_another_deeply_are_refused() -> None:
    types = "!t0 = tuple<tensor<f32>>\n" + "".join(f"!t{i} = tuple<!t{i - 1}>\n" for i in range(1, 500))
    arguments = ", ".join(["%p: tensor<8xf32>", *(f"%q{i}: !t{i}" for i in range(500))])
    assert "nested more than" in messages(stablehlo("", types, arguments))


def test_an_alias_of_a_type_may_be_used_often() -> None:
    reading = stablehlo("", "!t = tensor<8xf32>\n!u = tuple<!t, !t>\n", "%p: !t, " + ", ".join(f"%q{i}: !u" for i in range(100)))
    assert reading.ok, messages(reading)


def test_results_of_unreadable_lines_are_few() -> None:
    small, large = (calls_in(stablehlo, "".join(f" %a{i}:100000 = stablehlo.add %p, !\n" for i in range(n))) for n in (50, 200))
    assert large < 5 * small


def test_an_axis_that_cuts_two_dimensions_is_refused() -> None:
    twice = r'"#sdy.sharding_per_value<[<@mesh, [{\"x\"}, {\"x\"}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"'
    module = irscope.load(
        'HloModule m, frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\\"x\\"=2]>}"}\n'
        "ENTRY e {\n p = f32[8,8] parameter(0)\n"
        ' ROOT s = f32[4,4] custom-call(p), custom_call_target="xla.sdy.GlobalToLocalShape", '
        f"frontend_attributes={{xla.sdy.in_shardings={twice}}}\n}}\n", format="hlo").module()
    root = module.main().root
    assert root is not None
    with pytest.raises(UserError, match="no form that irscope knows"):
        shards_of(module, root)


def test_devices_combine_values_by_an_operator_with_attributes() -> None:
    module = irscope.load(
        "HloModule m, num_partitions=2\nless { a = pred[] parameter(0)\n b = pred[] parameter(1)\n"
        " ROOT c = pred[] compare(a, b), direction=LT }\n"
        "ENTRY e {\n p = pred[2] parameter(0)\n ROOT r = pred[2] all-reduce(p), replica_groups={{0,1}}, to_apply=less\n}\n",
        format="hlo").module()
    ops = {node.op.name for node in partitioned(module, 2).main().nodes}
    assert "map" in ops and "compare" not in ops


@pytest.mark.parametrize("call", [
    '(f32[4], s32[], s32[]) custom-call(p), custom_call_target="PadToStatic"',
    '(f32[5], s32[]) custom-call(p), custom_call_target="PadToStatic"',
    '(f32[4], s32[]) custom-call(), custom_call_target="PadToStatic"',
    'f32[4] custom-call(p), custom_call_target="PadToStatic"',
    'f32[<=4] custom-call(), custom_call_target="SliceToDynamic"',
    'f32[<=5] custom-call(p), custom_call_target="SliceToDynamic"',
    'f32[<=4] custom-call(p, p), custom_call_target="SliceToDynamic"',
])
def test_calls_for_dynamic_sizes_need_their_operands_and_results(call: str) -> None:
    module = irscope.load(f"HloModule m\nENTRY e {{\n p = f32[<=4] parameter(0)\n ROOT r = {call}\n}}\n", format="hlo").module()
    with pytest.raises(UserError, match="cannot run"):
        pad_dynamic(module)


def test_asynchronous_operators_need_their_operands() -> None:
    reading = hlo(" s = ((), f32[8]) get-tuple-element-start(), index=5\n ROOT r = f32[8] get-tuple-element-done(s)")
    assert "get-tuple-element-start takes 1 operand, but has 0" in messages(reading)


@pytest.mark.parametrize("type", ["f32[8] ", ""])
def test_elements_of_tuples_before_the_first_are_refused(type: str) -> None:
    reading = hlo(f" t = (f32[8], f32[8]) tuple(p, p)\n ROOT r = {type}get-tuple-element(t), index=-1")
    assert not reading.ok
    assert "index=-1" in messages(reading) or "element -1" in messages(reading)


def proto(instructions: str, rest: str = "entry_computation_id: 7", root: int = 2) -> Reading:
    text = f'name: "m" entry_computation_name: "e"\ncomputations {{ name: "e" id: 7 root_id: {root}\n{instructions} }}\n{rest}\n'
    return irscope.load(text, format="hlo-pb")


def of_proto(name: str, opcode: str, number: int, more: str = "") -> str:
    shape = "shape { element_type: F32 dimensions: 8 layout { minor_to_major: 0 } }"
    return f'instructions {{ name: "{name}" opcode: "{opcode}" {shape} id: {number} {more} }}\n'


WHOLE = of_proto("p", "parameter", 1) + of_proto("r", "negate", 2, "operand_ids: 1")


def test_a_proto_of_distinct_ids_is_read() -> None:
    assert proto(WHOLE).ok


@pytest.mark.parametrize(("reading", "message"), [
    (lambda: proto(WHOLE + of_proto("s", "exponential", 2, "operand_ids: 1")), "two instructions of e have the id 2: s and r"),
    (lambda: proto(WHOLE, f'computations {{ name: "f" id: 7 root_id: 2\n{WHOLE}}}\nentry_computation_id: 7'),
     "two computations have the id 7: f and e"),
    (lambda: proto(WHOLE, root=9), "no instruction of e has the id 9 of its root"),
    (lambda: proto(WHOLE, "entry_computation_id: 8"), "no computation has the id 8 or the name 'e' of the entry"),
])
def test_ids_of_protos_that_name_nothing_or_two_things_are_refused(reading: Callable[[], Reading], message: str) -> None:
    found = reading()
    assert not found.ok
    assert message in messages(found)
