"""Spoiled texts of each format give findings, never an exception; and texts that once made irscope stumble. ``make fuzz`` goes further."""
from __future__ import annotations

import random
from pathlib import Path

import pytest

from irscope.formats import format_named
from irscope.formats.detect import detect
from irscope.formats.neighbours import in_text
from irscope.source import SourceText
from tests.effort import within
from tests.formats.hlo_texts import FORMS, FRAMES, MODULE
from tests.formats.stablehlo_texts import ALIASES, DATA, PLAIN
from tests.fuzz.reading import read_text
from tests.fuzz.spice import SPICE
from tests.fuzz.spoil import Mutator

ROOT = Path(__file__).parents[2]


def _texts(suffix: str) -> list[str]:
    return [p.read_text() for p in sorted((ROOT / "samples").glob(f"*{suffix}")) if p.stat().st_size < 8000]


STARTS = {
    "hlo": ([MODULE, FRAMES, *FORMS.values()], 400, {"primitive", "HLO001", "HLO004", "HLO016"}),
    "torchscript": (_texts(".txt"), 120, {"primitive", "TSC001", "TSC003"}),
    "relay": (_texts(".relay"), 150, {"primitive", "RLY001"}),
    "stablehlo": ([PLAIN, ALIASES, (DATA / "block.mlir").read_text()], 150, {"primitive", "SHL001", "SHL006", "SHL013"}),
}


@pytest.mark.parametrize("format", STARTS)
def test_spoiled_texts_give_findings_only(format: str) -> None:
    texts, cases, expected = STARTS[format]
    mutator, rng = Mutator(SPICE[format]), random.Random(7)
    said = {read_text(mutator.mutate(rng.choice(texts), rng.choice(texts), rng), format) for _ in range(cases)}
    assert expected <= said


HOLES = {
    "a constant without a type": "ENTRY e {\n  c = constant(1)\n  p = f32[2] parameter(0)\n  ROOT n = f32[2] add(p, c)\n}\n",
    "a fusion without a body": "ENTRY e {\n  p = f32[64,64] parameter(0)\n  ROOT f = f32[64,64] fusion(p), kind=kOops\n}\n",
    "a reduction of nothing that is known": "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
        "ENTRY e {\n  z = f32[] constant(0)\n  ROOT r = f32[4] reduce(gone, z), dimensions={3}, to_apply=add\n}\n",
    "replica groups that look like a literal": "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
        "ENTRY e {\n  p = f32[4] parameter(0)\n  a = f32[4] all-reduce(p), replica_groups={{0}}, to_apply=add\n"
        "  b = f32[4] all-reduce(p), replica_groups={{0}}, to_apply=add\n  ROOT s = f32[4] add(a, b)\n}\n",
    "a start that gives no pair": "ENTRY e {\n  p = f32[4] parameter(0)\n"
        "  s = f32[4] all-gather-start(p), replica_groups={{0}}, dimensions={0}\n  ROOT d = f32[4] all-gather-done(s)\n}\n",
    "groups that do not fit the result": "ENTRY e {\n  p = f32[4] parameter(0)\n"
        "  ROOT g = f32[40] all-gather(p), replica_groups={{0,1}}, dimensions={0}\n}\n",
    "an element that the tuple does not have": "ENTRY e {\n  p = f32[4] parameter(0)\n  t = (f32[4]) tuple(p)\n"
        "  ROOT g = f32[4] get-tuple-element(t), index=1000000000000000000\n}\n",
    "a bitcast by no layout": "ENTRY e {\n  p = f32[2,3]{1,1} parameter(0)\n  ROOT b = f32[3,2]{1,0} bitcast(p)\n}\n",
    "a bitcast of another rank": "ENTRY e {\n  p = f32[2,3]{1,0} parameter(0)\n  ROOT b = f32[3,3,2]{0,1,2} bitcast(p)\n}\n",
    "an exponential of nothing": "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
        "ENTRY e {\n  z = f32[] constant(0)\n  x = f32[4] exponential()\n  r = f32[] reduce(x, z), dimensions={0}, to_apply=add\n"
        "  b = f32[4] broadcast(r), dimensions={}\n  ROOT d = f32[4] divide(x, b)\n}\n",
    "weights of too few dimensions": "ENTRY e {\n  x = f32[1,8,8,3] parameter(0)\n  w = f32[3,3,3] parameter(1)\n"
        "  ROOT c = f32[1,8,8,4] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f\n}\n",
    "a conversion of nothing": "ENTRY e {\n  x = f32[8] parameter(0)\n  a = bf16[8] convert()\n  b = f32[8] convert(a)\n"
        "  ROOT c = f32[8] add(x, b)\n}\n",
    "a reduction along nothing": "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
        "ENTRY e {\n  z = f32[] constant(0)\n  p = f32[4] parameter(0)\n  ROOT r = f32[] reduce(p, z), to_apply=add\n}\n",
    "a bitcast of what is not known": "ENTRY e {\n  p = f32[2,3]{0,1} parameter(0)\n  c = f32[2,3]{0,1} copy(gone)\n"
        "  k = f32[2,3]{0,1} call(c), to_apply=e2\n  ROOT b = f32[3,2]{1,0} bitcast(c)\n}\n",
    "a convolution with a dimension that nobody knows": "ENTRY e {\n  x = f32[1,8,8] parameter(0)\n  w = f32[8,8,8] parameter(1)\n"
        "  ROOT c = f32[1,8,8] convolution(x, w), window={size=8}, dim_labels=0fb_0io->?0fb\n}\n",
    "groups of more devices than there are": "ENTRY e {\n  p = f32[4] parameter(0)\n"
        "  ROOT g = f32[8] all-gather(p), channel_id=1, replica_groups=[1073741824,2]<=[2147483648], dimensions={0}, "
        "use_global_device_ids=true\n}\n",
    "a window that takes long to walk": "ENTRY e {\n  x = f32[1,8,8,3] parameter(0)\n  w = f32[3,3,3,4] parameter(1)\n"
        "  ROOT c = f32[1,8,8,4] convolution(x, w), window={size=2147483648x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f\n}\n",
}
"""HLO with a hole each, in which something behind the reader once fell."""


@pytest.mark.parametrize("text", HOLES.values(), ids=HOLES)
def test_what_is_asked_of_a_text_with_a_hole_is_answered(text: str) -> None:
    assert read_text(text, "hlo")


RELAY = {
    "a number of five thousand digits": ("def @main(%x: Tensor[(2), float32]) { add(%x, " + "9" * 5000 + ") }", "no element type can represent"),
    "nan of no bits": ("def @main(%x: Tensor[(2), float32]) { add(%x, nanf0) }", "there is no float of 0 bits"),
    "an attribute beyond 64 bits": (f"def @main(%x: Tensor[(2), float32]) {{ sum(%x, axis={10 ** 30}) }}", "does not fit into 64 bits"),
}


@pytest.mark.parametrize(("text", "said"), RELAY.values(), ids=RELAY)
def test_relay_that_asks_for_too_much_gets_a_finding(text: str, said: str) -> None:
    reading = format_named("relay").read(SourceText("t", text))
    assert said in reading.findings[0].message
    assert read_text(text, "relay")


LARGE = {
    "an image": 'def @main(%x: Tensor[(1, 3, 2, 2147483648), int8]) { image.resize2d(%x, size=[4, 4], method="linear") }',
    "a mirror": "def @main(%x: Tensor[(1, 3), float32]) { nn.mirror_pad(%x, pad_width=[[0, 0], [2147483648, 0]]) }",
    "parts": "def @main(%x: Tensor[(1, 2147483648), float32]) { let %s = split(%x, indices_or_sections=2147483648, axis=1); %s.0 }",
}
"""Relay whose expansion would need a table of thousands of millions."""


@pytest.mark.parametrize("text", LARGE.values(), ids=LARGE)
def test_relay_that_would_need_a_giant_table_is_refused(text: str) -> None:
    assert read_text(text, "relay") in ("refused", "RLY001")


def test_an_element_of_no_tuple_is_refused() -> None:
    assert read_text("0.0.1", "relay") in ("refused", "RLY001")


@pytest.mark.parametrize("unit", ["\n", "\t\n", "\r\n", "/", "/**/", "//\n", "%", "%0", "#", "(", "graph(", "HloModule ", "a = f32[] "])
def test_sniffing_and_reading_a_long_run_of_one_thing_is_quick(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    with within(3):
        detect(text)
        in_text(text)
        for name in STARTS:
            format_named(name).read(SourceText("t", text))
