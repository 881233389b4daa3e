"""Whole audits of small modules as text: every column, note and chart, beside figures that follow from the module by hand."""
from __future__ import annotations

from collections.abc import Callable

import pytest

import irscope
from irscope.lint.audits import FileAudit, auditor, write_audits
from irscope.lint.audits.table import AUDITS, Table
from irscope.lint.audits.timeline import Timeline

Golden = Callable[[str, str], None]

LOOP = """HloModule m, is_scheduled=true

f {
  p = f32[64,8]{1,0} parameter(0)
  h = bf16[64,8]{1,0} convert(p)
  t = bf16[8,64]{1,0} transpose(h), dimensions={1,0}
  ROOT e = bf16[8,64]{1,0} exponential(t)
}
cond {
  s = (s32[], f32[64,8]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[64,8]{1,0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[64,8]{1,0} get-tuple-element(s), index=1
  d = f64[64,8]{1,0} convert(x)
  q = f64[64,8]{1,0} tanh(d)
  b = f32[64,8]{1,0} convert(q)
  c = f32[64,8]{0,1} copy(b)
  y = f32[64,8]{1,0} copy(c)
  ROOT r = (s32[], f32[64,8]{1,0}) tuple(j, y)
}
ENTRY e {
  x = f32[64,8]{1,0} parameter(0)
  w = bf16[8,64]{1,0} parameter(1)
  xt = f32[8,64]{1,0} transpose(x), dimensions={1,0}, metadata={op_name="jit(f)/block/turn"}
  g = bf16[8,64]{1,0} fusion(x), kind=kLoop, calls=f, metadata={op_name="jit(f)/block/cast"}
  v = bf16[8,64]{1,0} add(g, w), metadata={op_name="jit(f)/head/add"}
  z = s32[] constant(0)
  u = f32[8,64]{1,0:S(1)} negate(xt), metadata={op_name="jit(f)/head/neg"}
  a = (s32[], f32[64,8]{1,0}) tuple(z, x)
  o = (s32[], f32[64,8]{1,0}) while(a), condition=cond, body=body
  k = f32[64,8]{1,0} get-tuple-element(o), index=1
  m = f32[8,7]{1,0} slice(u), slice={[0:8], [0:7]}
  m2 = f32[8,7]{1,0} sqrt(m)
  kt = f32[8,64]{1,0} transpose(k), dimensions={1,0}
  vf = f32[8,64]{1,0} convert(v)
  ROOT t = (f32[8,64]{1,0}, f32[8,64]{1,0}, f32[8,7]{1,0}) tuple(kt, vf, m2)
}
"""
UPDATE = """HloModule m

ENTRY e {
  x = f32[256]{0} parameter(0)
  y = f32[16]{0} parameter(1)
  i = s32[] parameter(2)
  n = f32[256]{0} negate(x)
  u = f32[256]{0} dynamic-update-slice(n, y, i)
  ROOT s = f32[256]{0} sine(u)
}
"""
KEPT = """HloModule m

ENTRY e {
  x = f32[1024]{0} parameter(0)
  b = f32[1024]{0} exponential(x)
  c = f32[1024]{0} tanh(b)
  d = f32[1024]{0} add(b, c)
  ROOT r = f32[1024]{0} multiply(d, b)
}
"""
OPEN = """graph(%x : Float(*, 8),
      %w : Float(8, 6),
      %z : Float(*, 3)):
  %y : Float(*, 8) = aten::relu(%x)
  %m : Float(*, 6) = aten::matmul(%y, %w)
  %u : Float(6, *) = aten::t(%m)
  %v : Float(8, 6) = aten::sigmoid(%w)
  %s : Float(8, 6) = aten::tanh(%v)
  return (%u, %s, %z)
"""
WIDE = "HloModule m\n\nENTRY e {\n  x = f32[30,3]{1,0} parameter(0)\n" + "".join(
    f"  t{i} = f32[3,30]{{1,0}} transpose(x), dimensions={{1,0}}\n  n{i} = f32[3,{i + 31}]{{1,0}} pad(t{i}, c), padding=0_0x0_{i + 1}\n".replace(
        "  t0", "  c = f32[] constant(0)\n  t0") for i in range(44)) + "  ROOT r = (" + ", ".join(
    f"f32[3,{i + 31}]{{1,0}}" for i in range(44)) + ") tuple(" + ", ".join(f"n{i}" for i in range(44)) + ")\n}\n"
MODULES = {"loop": (LOOP, "hlo"), "update": (UPDATE, "hlo"), "kept": (KEPT, "hlo"), "open": (OPEN, "torchscript"), "wide": (WIDE, "hlo")}


@pytest.mark.parametrize("name", MODULES)
def test_audits_of_a_module(name: str, golden: Golden) -> None:
    text, format = MODULES[name]
    reading = irscope.load(text, format=format)
    assert reading.ok, [finding.message for finding in reading.findings]
    tables = [auditor(audit)(reading.module()) for audit in AUDITS]
    golden(f"audits/{name}.txt", write_audits([FileAudit(f"{name}.txt", tables)], "full") + "\n")


def test_a_table_as_markdown(golden: Golden) -> None:
    module = irscope.load(LOOP, format="hlo").module()
    golden("audits/loop.md", write_audits([FileAudit("loop.txt", [auditor(audit)(module) for audit in AUDITS])], "markdown") + "\n")


def test_columns_of_figures_are_flush_right_and_wide_ones_cut_off() -> None:
    table = Table("dtype", "a title", ("name", "bytes", "share", "n", "mixed"), [
        ("x" * 61, "1.5 KiB", "7 %", 1234.5, "2"), ("y" * 60, "3 B", "100 %", 0.123456, "two"), ("z", "1,024 GiB", None, None, "3 MB")])
    assert write_audits([FileAudit("f", [table])], "full").splitlines() == [
        "f: a title",
        "  " + "name".ljust(60) + "      bytes  share       n  mixed",
        "  " + "x" * 57 + "...    1.5 KiB    7 %   1,234  2",
        "  " + "y" * 60 + "        3 B  100 %  0.1235  two",
        "  " + "z".ljust(60) + "  1,024 GiB                 3 MB",
    ]


def test_a_chart_has_a_column_for_each_of_at_most_sixty_parts() -> None:
    line = Timeline.of(list(range(1, 62)), [f"n{i}" for i in range(61)])
    chart = line.chart()
    assert len(chart) == 7 and max(map(len, chart)) == len(chart[-2]) == 60 + len("41 B │")
    assert chart[-1].strip() == "0..60" and chart[0] == "61 B │" + " " * 51 + "▁▂▂▃▄▅▆▆█"
    assert Timeline.of([0, 0], ["a", "b"]).chart() == [] and Timeline.of([], []) == Timeline(0, (), ())


def test_a_long_schedule_keeps_the_most_of_each_part() -> None:
    live = [i % 7 for i in range(1024)]
    line = Timeline.of(live, [f"n{i}" for i in range(1024)])
    assert line.steps == 1024 and len(line.live) == 512
    assert line.live[:4] == (1, 3, 5, 6) and line.at[:4] == ("n1", "n3", "n5", "n6")
