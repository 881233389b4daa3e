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


BETWEEN = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[64]{0} parameter(0)
  q = f32[256]{0} parameter(1)
  a = f32[64]{0} exponential(p), metadata={op_name="jit(f)/net/head/0/exp" source_file="net.py" source_line=7}
  b = f32[64]{0} reverse(a), dimensions={0}
  w = f32[256]{0} reverse(q), dimensions={0}, metadata={op_name="jit(f)/net/body/rev" source_file="net.py" source_line=9}
  v = f32[256]{0} reverse(w), dimensions={0}
  s = f32[64]{0} slice(v), slice={[0:64]}
  c = f32[64]{0} add(a, b)
  ROOT d = f32[64]{0} add(c, s)
}
"""
"""While v is written, a and b wait for c; b is made of a, which can be made of a parameter again."""


def proposals(text: str) -> list[str]:
    """What the audit of memory proposes."""
    return [note for note in auditor("memory")(irscope.load(text, format="hlo").module()).notes if "lowers the peak" in note]


def test_the_peak_is_told_with_what_would_lower_it_and_by_scope() -> None:
    table = auditor("memory")(irscope.load(BETWEEN).module())
    assert table.title == "2.5 KiB at the peak, %v; parameters hold 1.25 KiB besides"  # two of 64 and two of 256 floats
    assert table.notes == [
        "by scope: (no scope) 1.25 KiB, jit(f)/net/body 1 KiB, jit(f)/net/head 256 B",
        "computing later %b, for %c, lowers the peak to 2.25 KiB",
        "computing again %a (net.py:7), for %c, 64 FLOP more, lowers the peak to 2.25 KiB",
        "the order is the compiler's own",
    ]


def test_what_is_used_after_the_peak_alone_can_be_computed_later() -> None:
    """Then no operator runs twice; without a line of the program the value alone is named."""
    assert proposals(BETWEEN.replace("reverse(a)", "reverse(p)")) == [
        "computing later %a (net.py:7), for %c, lowers the peak to 2.25 KiB", "computing later %b, for %c, lowers the peak to 2.25 KiB"]


def updates(count: int) -> str:
    """A step of ``count`` parameters, each with its new value in its place."""
    params = "".join(f"  p{i} = f32[64]{{0}} parameter({i})\n" for i in range(count))
    steps = "".join(f"  n{i} = f32[64]{{0}} negate(p{i})\n" for i in range(count))
    return f"HloModule m\n\nENTRY e {{\n{params}{steps}  ROOT r = ({', '.join(['f32[64]{0}'] * count)}) tuple({', '.join(f'n{i}' for i in range(count))})\n}}\n"


def test_parameters_to_donate_are_one_proposal_that_names_four() -> None:
    assert proposals(updates(4)) == ["donating %p0 %p1 %p2 %p3 (donate_argnums in jax) lowers the peak to 0 B"]
    assert proposals(updates(5)) == ["donating %p0 %p1 %p2 %p3 and 1 more (donate_argnums in jax) lowers the peak to 0 B"]
    assert proposals(updates(6)) == ["donating %p0 %p1 %p2 %p3 and 2 more (donate_argnums in jax) lowers the peak to 0 B"]


def test_the_five_best_proposals_are_told() -> None:
    """Six values are made before the peak at x, and used behind it alone; the largest is worth most."""
    early = "".join(f"  a{i} = f32[{64 + 64 * i}]{{0}} slice(q), slice={{[0:{64 + 64 * i}]}}\n" for i in range(6))
    late = "".join(f"  b{i} = f32[{64 + 64 * i}]{{0}} negate(a{i})\n" for i in range(6))
    text = f"""HloModule m

ENTRY e {{
  q = f32[1024]{{0}} parameter(0)
{early}  w = f32[1024]{{0}} reverse(q), dimensions={{0}}
  x = f32[1024]{{0}} reverse(w), dimensions={{0}}
  y = f32[64]{{0}} slice(x), slice={{[0:64]}}
{late}  ROOT t = f32[64]{{0}} add(b0, y)
}}
"""
    told = proposals(text)
    assert [note.split(",")[0] for note in told] == [f"computing later %a{i}" for i in (5, 4, 3, 2, 1)]


def test_a_program_that_computes_nothing_has_no_peak_and_a_text_without_a_program_no_levels() -> None:
    same = irscope.load("HloModule m\n\nENTRY e {\n  ROOT x = f32[2]{0} parameter(0)\n}\n").module()
    none = irscope.load("HloModule m\n", format="hlo").modules[0]
    for module in (same, none):
        table = auditor("memory")(module)
        assert (table.title, table.rows, table.notes, table.timeline) == ("no values live", [], [], None)
    assert (auditor("parallel")(none).title, auditor("parallel")(none).rows) == ("nothing runs", [])


def test_forty_of_the_odd_sizes_are_listed() -> None:
    def lines(count: int) -> str:
        made = "".join(f"  p{i} = f32[{2 * i + 3}]{{0}} parameter({i})\n  n{i} = f32[{2 * i + 3}]{{0}} negate(p{i})\n" for i in range(count))
        types, names = ", ".join(f"f32[{2 * i + 3}]{{0}}" for i in range(count)), ", ".join(f"n{i}" for i in range(count))
        return f"{made}  ROOT r = ({types}) tuple({names})\n"

    def odd(count: int) -> tuple[int, list[str]]:
        table = auditor("shape")(irscope.load(f"HloModule m\n\nENTRY e {{\n{lines(count)}}}\n").module())
        return len(table.rows), table.notes

    assert odd(40) == (40, [])
    assert odd(41) == (40, ["the first 40 of each are shown"])


def test_forty_of_the_open_sizes_are_listed() -> None:
    def opened(count: int) -> tuple[int, list[str]]:
        params = ",\n      ".join(f"%p{i} : Float(*, 8)" for i in range(count))
        table = auditor("shape")(irscope.load(f"graph({params}):\n  return (%p0)\n", format="torchscript").module())
        return len(table.rows), table.notes

    assert opened(40) == (40, [])
    assert opened(41) == (40, ["the first 40 of each are shown"])


def kept(values: int, scopes: int) -> Table:
    """The memory of so many values that all are returned, of 8, 9, 10... floats, in scopes s0, s1, ... in turn."""
    params = "".join(f"  p{i} = f32[{i + 8}]{{0}} parameter({i})\n" for i in range(values))
    made = "".join(f'  n{i} = f32[{i + 8}]{{0}} reverse(p{i}), dimensions={{0}}, metadata={{op_name="s{i % scopes}/a/b/c{i}/rev"}}\n' for i in range(values))
    types, names = ", ".join(f"f32[{i + 8}]{{0}}" for i in range(values)), ", ".join(f"n{i}" for i in range(values))
    return auditor("memory")(irscope.load(f"HloModule m\n\nENTRY e {{\n{params}{made}  ROOT r = ({types}) tuple({names})\n}}\n").module())


def test_the_largest_25_values_are_listed_and_the_rest_in_one_sum() -> None:
    assert len(kept(25, 1).rows) == len(kept(27, 1).rows) == 25
    assert not any("smaller values" in note for note in kept(25, 1).notes)
    assert "1 smaller value holds 32 B" in kept(26, 1).notes and "2 smaller values hold 68 B" in kept(27, 1).notes
    assert kept(27, 1).rows[0][:4] == ("%n26", "f32[34]", "136 B", "6 %")  # 34 of 8 + ... + 34 floats


def test_six_scopes_are_told_where_there_are_several() -> None:
    def by_scope(scopes: int) -> list[str]:
        return [note for note in kept(7, scopes).notes if note.startswith("by scope")]

    assert by_scope(1) == []
    assert by_scope(2) == ["by scope: s0/a/b 176 B, s1/a/b 132 B"]
    assert by_scope(7) == ["by scope: s6/a/b 56 B, s5/a/b 52 B, s4/a/b 48 B, s3/a/b 44 B, s2/a/b 40 B, s1/a/b 36 B"]


def test_the_peak_may_be_at_the_first_operator() -> None:
    table = auditor("memory")(irscope.load("HloModule m\n\nENTRY e {\n  ROOT x = s32[16]{0} iota(), iota_dimension=0\n}\n").module())
    assert table.title == "64 B at the peak, %x; parameters hold 0 B besides"
