"""What check_types says of small texts: nothing of sound ones, both types of the others, and the rules of XLA's verifier."""
from __future__ import annotations

import pytest

import irscope
from irscope.analysis.types import check_types
from irscope.source import Finding, Severity
from tests.ops.running import read

ADD = "add { a = f32[] parameter(0)\nb = f32[] parameter(1)\nROOT s = f32[] add(a, b) }\n"


def faults(text: str) -> list[Finding]:
    return check_types(read(text))


def test_declared_against_inferred() -> None:
    [fault] = faults("ENTRY e { x = f32[2,3] parameter(0)\nROOT t = f32[2,3] transpose(x), dimensions={1,0} }")
    assert fault.message == "%t is declared f32[2,3], but transpose(f32[2,3]) gives f32[3,2]"
    assert (fault.code, fault.severity, fault.node, fault.graph) == ("SHP006", Severity.ERROR, "t", "e")
    assert fault.place() is not None and fault.place().line == 2  # type: ignore[union-attr]


def test_another_element_type_is_another_code() -> None:
    [fault] = faults("ENTRY e { x = s32[2] parameter(0)\nROOT t = s8[2] negate(x) }")
    assert (fault.code, fault.severity) == ("DTY006", Severity.ERROR)


def test_another_element_type_beside_a_token_is_another_code() -> None:
    [fault] = faults("ENTRY e { k = token[] parameter(0)\nx = f32[2] parameter(1)\nROOT t = (token[], f16[2]) tuple(k, x) }")
    assert (fault.code, fault.severity) == ("DTY006", Severity.ERROR)


def test_mixed_precision_is_a_warning() -> None:
    [fault] = faults("ENTRY e { x = f32[2] parameter(0)\ny = bf16[2] parameter(1)\nROOT t = bf16[2] add(x, y) }")
    assert (fault.code, fault.severity) == ("DTY006", Severity.WARNING)


@pytest.mark.parametrize("text", [
    "ENTRY e { x = f32[2]{0} parameter(0)\nROOT s = f32[2] add(x, x) }",
    "ENTRY e { x = f32[<=8] parameter(0)\ny = f32[8] parameter(1)\nROOT s = f32[<=8] add(x, y) }",
    "ENTRY e { x = f32[?,4] parameter(0)\nROOT s = f32[?,4] negate(x) }",
    "ENTRY e { p = pred[] parameter(0)\nx = f32[2] parameter(1)\nROOT s = f32[2] select(p, x, x) }",
    "ENTRY e { x = f32[] parameter(0)\nROOT s = s32[] bitcast(x) }",
    "ENTRY e { x = f32[2]{0} parameter(0)\nROOT s = s32[2]{0} bitcast(x) }",
    ADD + "ENTRY e { x = bf16[4] parameter(0)\nz = f32[] constant(0)\nROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=add }",
    # Before layouts are assigned, what transposes leave binds nobody.
    "ENTRY e { x = f32[2,3]{1,0} parameter(0)\nt = f32[3,2]{0,1} transpose(x), dimensions={1,0}\nROOT n = f32[3,2]{1,0} negate(t) }",
])
def test_nothing_to_say(text: str) -> None:
    assert faults(text) == []


RULES = {
    "passes s32[] to parameter 0 of f":
        "f { x = f32[] parameter(0)\nROOT n = f32[] negate(x) }\nENTRY e { x = s32[] parameter(0)\nROOT c = f32[] call(x), to_apply=f }",
    "greater than the number of operands":
        "f { x = f32[] parameter(0)\ny = f32[] parameter(1)\nROOT n = f32[] add(x, y) }\n"
        "ENTRY e { x = f32[] parameter(0)\nROOT c = f32[] fusion(x), kind=kLoop, calls=f }",
    "the condition c of while must give pred[]":
        "c { x = s32[] parameter(0)\nROOT y = s32[] negate(x) }\nENTRY e { x = s32[] parameter(0)\nROOT w = s32[] while(x), condition=c, body=c }",
    "branches of conditional give":
        "f { x = f32[] parameter(0)\nROOT n = f32[] negate(x) }\ng { x = f32[] parameter(0)\nROOT n = pred[] is-finite(x) }\n"
        "ENTRY e { p = pred[] parameter(0)\nx = f32[] parameter(1)\n"
        "ROOT c = f32[] conditional(p, x, x), true_computation=f, false_computation=g }",
    "runs on the thread other":
        'f { ROOT x = f32[] parameter(0) }, execution_thread="other"\n'
        "ENTRY e { x = f32[] parameter(0)\nROOT c = f32[] fusion(x), kind=kLoop, calls=f }",
    "copy-start needs one consumer, but %s has 0":
        "ENTRY e { x = f32[2] parameter(0)\ns = (f32[2], f32[2], u32[]) copy-start(x)\nROOT n = f32[2] negate(x) }",
    "the operand of copy-done must be copy-start":
        "ENTRY e { x = f32[2] parameter(0)\nu = u32[] constant(0)\nt = (f32[2], f32[2], u32[]) tuple(x, x, u)\nROOT d = f32[2] copy-done(t) }",
    "has 2 instructions beside its parameters":
        "w { x = f32[2] parameter(0)\nm = f32[2] negate(x)\nROOT n = f32[2] negate(m) }\n"
        "ENTRY e { x = f32[2] parameter(0)\ns = ((f32[2]), f32[2], u32[]) async-start(x), calls=w\nROOT d = f32[2] async-done(s) }",
    "element 1 of the result of async-start is f32[3]":
        "w { x = f32[2] parameter(0)\nROOT n = f32[2] negate(x) }\n"
        "ENTRY e { x = f32[2] parameter(0)\ns = ((f32[2]), f32[3], u32[]) async-start(x), calls=w\nROOT d = f32[3] async-done(s) }",
    "used by send and by all-reduce":
        ADD + "ENTRY e { x = f32[] parameter(0)\nt = token[] after-all()\n"
        "s = (f32[], u32[], token[]) send(x, t), channel_id=1\nd = token[] send-done(s), channel_id=1\n"
        "ROOT r = f32[] all-reduce(x), channel_id=1, replica_groups={{0}}, to_apply=add }",
    "1 is listed twice in the replica_groups":
        ADD + "ENTRY e { x = f32[] parameter(0)\nROOT r = f32[] all-reduce(x), replica_groups={{0,1},{1}}, to_apply=add }",
    "not device 1":
        ADD + "ENTRY e { x = f32[] parameter(0)\nROOT r = f32[] all-reduce(x), replica_groups={{0},{2}}, to_apply=add }",
    "name 2 replicas, but the module has 4":
        "HloModule m, replica_count=4\n" + ADD + "ENTRY e { x = f32[] parameter(0)\n"
        "ROOT r = f32[] all-reduce(x), replica_groups={{0,1}}, to_apply=add }",
    "source 0 appears more than once":
        "ENTRY e { x = f32[] parameter(0)\nROOT r = f32[] collective-permute(x), source_target_pairs={{0,1},{0,2}} }",
    "must be below 2, the num_partitions":
        "HloModule m, num_partitions=2\nENTRY e { x = f32[] parameter(0)\n"
        "ROOT r = f32[] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,5}} }",
    "concatenate does not change layouts":
        "ENTRY e { x = f32[3,5]{0,1} parameter(0)\ny = f32[3,3]{1,0} parameter(1)\n"
        "ROOT c = f32[3,8]{1,0} concatenate(x, y), dimensions={1} }",
    "passes memory on unchanged":
        "ENTRY e { x = f32[2,3]{0,1} parameter(0)\nt = (f32[2,3]{0,1}) tuple(x)\nROOT g = f32[2,3]{1,0} get-tuple-element(t), index=0 }",
    "bitcast can not change the element type":
        "ENTRY e { c = f32[2] parameter(0)\nROOT b = s32[2] bitcast(c) }",
    "bitcast does not move memory":
        "ENTRY e { x = f32[2,3]{1,0} parameter(0)\nROOT b = f32[2,3]{1,0:S(5)} bitcast(x) }",
    "scan is left after layout assignment":
        "HloModule m, is_scheduled=true\nf { c = f32[] parameter(0)\nx = f32[] parameter(1)\ns = f32[] add(c, x)\n"
        "ROOT t = (f32[], f32[]) tuple(s, s) }\nENTRY e { x = f32[4]{0} parameter(0)\ni = f32[] constant(0)\n"
        "ROOT s = (f32[4]{0}, f32[]) scan(x, i), dimensions={0}, num_carries=1, is_associative=false, to_apply=f }",
    "operands, not number 3":
        'ENTRY e { x = f32[2] parameter(0)\nROOT c = f32[2] custom-call(x), custom_call_target="f", output_to_operand_aliasing={{}: (3, {})} }',
    "memory is shared by f32[2] and f32[3]":
        'ENTRY e { x = f32[3] parameter(0)\nROOT c = f32[2] custom-call(x), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})} }',
    "entry_computation_layout says f32[3] for parameter 0":
        "HloModule m, entry_computation_layout={(f32[3])->f32[2]}\nENTRY e { x = f32[2] parameter(0)\nROOT n = f32[2] negate(x) }",
    "has no such parameter":
        "HloModule m, input_output_alias={ {}: (4, {}, may-alias) }\nENTRY e { x = f32[2] parameter(0)\nROOT n = f32[2] negate(x) }",
    "3 tile dimensions, but f32[4,2] has 2":
        "ENTRY e { x = f32[4,2] parameter(0), sharding={devices=[1,2,2]0,1,2,3}\nROOT n = f32[4,2] negate(x) }",
    "names device 5, which does not exist":
        "HloModule m, num_partitions=4\nENTRY e { x = f32[4,2] parameter(0), sharding={devices=[2,2]0,1,2,5}\nROOT n = f32[4,2] negate(x) }",
    "shards its value in two ways":
        "c { x = s32[] parameter(0), sharding={maximal device=0}\nROOT y = pred[] constant(false) }\n"
        "b { x = s32[] parameter(0), sharding={replicated}\nROOT y = s32[] negate(x) }\n"
        "ENTRY e { x = s32[] parameter(0)\nROOT w = s32[] while(x), condition=c, body=b }",
    "must have frontend attributes with a composite.name":
        "f { x = f32[] parameter(0)\nROOT n = f32[] negate(x) }\n"
        "ENTRY e { x = f32[] parameter(0)\nROOT c = f32[] call(x), to_apply=f, is_composite=true }",
    "was scheduled under the name other":
        'ENTRY e { x = f32[] parameter(0)\nROOT n = f32[] negate(x), metadata={scheduling_name="other"} }',
    "another tuple structure":
        'ENTRY e { x = f32[] parameter(0)\nROOT n = f32[] negate(x), origin={({"a"}, {"b"})} }',
    "GetRngSeed must have 0 operands":
        'ENTRY e { x = u64[] parameter(0)\nROOT s = u64[] custom-call(x), custom_call_target="GetRngSeed" }',
    "a buffer has more than one writer":
        'ENTRY e { x = f32[2] parameter(0)\n'
        'b = b(f32[2]) custom-call(x), custom_call_target="Pin", output_to_operand_aliasing={{}: (0, {})}\n'
        'c = b(f32[2]) custom-call(b), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}\n'
        'ROOT v = f32[2] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})} }',
    "buffers are not allowed at the entry":
        'ENTRY e { b = b(f32[2]) parameter(0)\n'
        'ROOT v = f32[2] custom-call(b), custom_call_target="Unpin", output_to_operand_aliasing={{}: (0, {})} }',
    "it waits forever":
        'HloModule m, is_scheduled=true\nENTRY e { t = token[] after-all()\n'
        'r = (f32[], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1}}"}\n'
        'ROOT d = (f32[], token[]) recv-done(r), channel_id=1 }',
}


@pytest.mark.parametrize("sharding", ["devices=[2,2]0,1,2,{}", "devices=[2,{}]<=[{}]", "maximal device={}", "devices=[2,2]<=[{}]"])
def test_devices_beyond_any_number_stop_nothing(sharding: str) -> None:
    text = "HloModule m, num_partitions=4\nENTRY e { x = f32[4,2] parameter(0), sharding={SHARDING}\nROOT n = f32[4,2] negate(x) }"
    text = text.replace("SHARDING", sharding.replace("{}", "9" * 5000)).replace("negate(x)", "negate(x), sharding={devices=[4,1,2]0,1,2,3}")
    reading = irscope.load(text)
    assert not reading.ok
    assert any("3 tile dimensions" in fault.message or "4,1,2" in fault.message for fault in check_types(reading.module()))


@pytest.mark.parametrize("words", RULES)
def test_a_rule_that_is_broken(words: str) -> None:
    found = faults(RULES[words])
    assert any(words in f.message for f in found), [f.message for f in found]
    assert all(f.severity is Severity.ERROR for f in found)
