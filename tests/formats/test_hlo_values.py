"""Types, replica groups and other values by their text."""
from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.formats.hlo import read
from irscope.formats.hlo.devices import ReplicaGroups, read_groups
from irscope.formats.hlo.faults import Refused
from irscope.formats.hlo.lexer import Cursor, unescape
from irscope.formats.hlo.opcodes import OPCODES, opcode_named
from irscope.formats.hlo.spelling import quoted, spell
from irscope.formats.hlo.types import TypeTable
from irscope.formats.hlo.values import quick_value, read_value
from irscope.graph import DTYPES, Layout, TensorType
from irscope.ops.attributes import Compare
from irscope.source import SourceText

TYPES = ["f32[]", "f32[2,3]{1,0}", "f32[2,3]{0,1:T(8,128)(2,1)E(4)S(5)}", "(f32[2]{0}, (s32[], pred[3]), token[])", "()", "f32[<=8,?]", "bf16[4]{0:S(1)}",
         "s4[2]{0:E(4)}", "f32[3]{0:D(C+~)#(u32)*(u8)}", "f32[3]{0:T(*,128)L(2)SC(0:1,2)M(16)}", "b(f32[2]{0})", "opaque[]", "f32[]{:T(128)}", "f8e4m3b11fnuz[0]"]


@pytest.mark.parametrize("text", TYPES)
def test_types_print_as_they_were_written(text: str) -> None:
    table = TypeTable()
    assert str(table.lookup(text)) == text
    spaced = text.replace(",", " , ").replace("(", "( ")
    if text[0] != "b":
        assert table.lookup(spaced) == table.lookup(text) and table.lookup("/* a */ " + text) is table.lookup(text)


def test_layouts() -> None:
    type = TypeTable().lookup("f32[2,3]{0,1:T(8,128)S(5)}")
    assert isinstance(type, TensorType) and type.layout == Layout((0, 1), "T(8,128)S(5)", 5)


@pytest.mark.parametrize("text", ["f32", "f32[2", "f32[2]{0", "g32[2]", "f32[2]{1}", "(f32[2]", "f32[2]{0:S()}", "f32[2]{0:S(1)E(4)}", "f32[2]x", "f32[a]", "b(token[])"])
def test_types_that_are_none(text: str) -> None:
    with pytest.raises(Refused):
        TypeTable().lookup(text)


def groups(text: str) -> tuple[tuple[int, ...], ...]:
    cursor = Cursor(text)
    value = read_groups(cursor)
    assert cursor.kind == "end"
    again = Cursor(value.text)
    assert read_groups(again).groups() == value.groups()
    return value.groups()


def test_replica_groups() -> None:
    assert groups("{}") == () and groups("{{0,1},{2,3}}") == ((0, 1), (2, 3)) and groups("{ {0} , {1} }") == ((0,), (1,))
    assert groups("[2,4]<=[8]") == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert groups("[4,2]<=[2,4]T(1,0)") == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert groups('mesh["x"=2,"y"=4] {"y"}') == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert groups("mesh[x=2,y=4] {x}") == ((0, 4), (1, 5), (2, 6), (3, 7))
    assert groups('mesh["x"=2,"y"=4] {"y":(1)2}') == ((0, 2), (1, 3), (4, 6), (5, 7))
    assert groups('mesh["x"=2,"y"=4] {"y":(2)2,"x"}') == ((0, 4, 1, 5), (2, 6, 3, 7))
    assert groups('mesh["x"=2,"y"=2, device_ids=(3,2,1,0)] {"x"}') == ((3, 1), (2, 0))
    assert groups('mesh["x"=2,"y"=2, device_ids=([2,2]T(1,0))] {"x"}') == ((0, 1), (2, 3))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_iota_groups_are_a_transposed_count(sizes: list[int], random: object) -> None:
    perm = list(range(len(sizes)))
    random.shuffle(perm)  # type: ignore[attr-defined]
    n = prod(sizes)
    flat = [sum(i * prod(sizes[axis + 1:]) for axis, i in zip(perm, at, strict=True)) for at in product(*(range(sizes[axis]) for axis in perm))]
    tail = f"T({','.join(map(str, perm))})" if len(sizes) > 1 else ""
    assert [d for g in groups(f"[1,{n}]<=[{','.join(map(str, sizes))}]{tail}") for d in g] == flat
    assert isinstance(read_groups(Cursor(f"[{n},1]<=[{n}]")), ReplicaGroups)


VALUES = [("int", "-3"), ("bool", "false"), ("ints", "{}"), ("ints", "{1,-2}"), ("slices", "{[0:2], [1:9:3]}"), ("padding", "1_-1x0_0_2"), ("string", '"a.b"'),
          ("direction", "LT"), ("fusion", "kLoop"), ("intlists", "{{0,1},{}}"), ("window", "{size=2x3 stride=1x2 pad=0_1x-2_0 rhs_dilate=2x1}"), ("window", "{}"),
          ("dim_labels", "b01f_01io->b01f"), ("dim_labels", "bf_io->bf"), ("precisions", "{highest,default}"), ("aliasing", "{{0}: (1, {}), {1, 2}: (0, {3})}"),
          ("types", "{f32[2]{0}, (s32[], pred[])}"), ("type", "(f32[2], token[])"), ("float", "0.001"), ("result_accuracy", "{tolerance={atol=1e-05,rtol=0.1,ulps=2}}"),
          ("result_accuracy", "{mode=highest}"), ("groups", "{{0,1}}"), ("dot_algorithm", "dot_bf16_bf16_f32_x3"), ("literal", "f32[2]{0} {1, 2}")]


@pytest.mark.parametrize("kind, text", VALUES)
def test_values_print_as_they_were_written(kind: str, text: str) -> None:
    cursor = Cursor(text + ", next=1")
    value = read_value(kind, cursor, TypeTable())
    assert cursor.sees(",") and spell(kind, value) == text
    quick = quick_value(kind, text)
    assert quick is None or quick == value


@given(st.text(max_size=30))
def test_strings_come_back(text: str) -> None:
    assert unescape(quoted(text)) == text


def test_escapes() -> None:
    assert unescape(r'"a\n\x41\101\"\u00e9"') == 'a\nAA"é' and unescape(r'"\q"') is None


def test_the_opcodes_are_those_of_hlo() -> None:
    assert len(OPCODES) == 133 and sum(o.infers for o in OPCODES.values()) == 91
    assert set(DTYPES) - {"buffer", "tuple"} and all(set(o.required) <= set(o.attributes) for o in OPCODES.values())


def test_async_sugar() -> None:
    start = opcode_named("custom-call-start")
    assert start is not None and (start.name, start.wraps) == ("async-start", "custom-call") and "custom_call_target" in start.required
    done = opcode_named("dot-done")
    assert done is not None and (done.name, done.wraps) == ("async-done", "dot")
    assert opcode_named("all-gather-update") is None and opcode_named("send-start") is None and opcode_named("what-start") is None
    copy = opcode_named("copy-start")
    assert copy is not None and copy.name == "copy-start"


def test_the_order_of_a_comparison_in_both_spellings() -> None:
    """XLA of 2026 writes ``order=TOTAL`` where it wrote ``type=TOTALORDER``."""
    module = "HloModule m\n\nENTRY %e (x: f32[], y: f32[]) -> pred[] {{\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n" \
             "  ROOT %c = pred[] compare({0}%y), direction=LT, {1}\n}}\n"
    for operands in ("%x, ", "%x,"):  # the fast path, and the cursor
        for written, wanted in (("order=TOTAL", "TOTALORDER"), ("type=TOTALORDER", "TOTALORDER"), ("order=PARTIAL", "")):
            reading = read(SourceText("", module.format(operands, written)))
            assert reading.ok and not reading.findings
            assert Compare.of(reading.module().main().result()).type == wanted
