"""Every fault is found at its place, says what is wrong, and leaves the rest of the text readable."""
from __future__ import annotations

from pathlib import Path

import pytest

from irscope.formats.hlo import print_module
from irscope.formats.hlo.faults import FAULTS, MAX_FINDINGS
from irscope.source import Finding
from tests.formats.hlo_texts import FORMS, MODULE, reading


def body(lines: str, before: str = "") -> str:
    return f"HloModule m\n{before}ENTRY e {{\n{lines}\n}}\n"


ADD = "add {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT c = f32[] add(a, b)\n}\n"

# (text, code, what the carets stand under, words of message, notes or help)
CASES = [
    (body("  a = f32[2] parameter(0)\n  b = f32[2] add(a, bb)"), "HLO004", "bb", "there is no instruction bb"),
    (body("  alpha = f32[2] parameter(0)\n  b = f32[2] negate(%alhpa)"), "HLO004", "alhpa", "did you mean alpha?"),
    (body("  b = f32[2] negate(a)\n  a = f32[2] parameter(0)"), "HLO004", "a", "it is defined later"),
    (body("  p = f32[2] parameter(0)\n  r = f32[] reduce(p, p), dimensions={0}, to_apply={\n    a = f32[] parameter(0)\n    ROOT n = f32[] negate(p)\n  }"),
     "HLO004", "p", "belongs to the computation around"),
    (body("  ROOT n = f32[] negate(add)", ADD), "HLO004", "add", "add is a computation"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] recude(a)"), "HLO003", "recude", "Unknown opcode: recude"),
    (body("  a = f32[2] parameter(0)\n  b = pred[2] less-than(a, a)"), "HLO003", "less-than", "compare(...), direction=LT"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] negate(a), dimensions={0}"), "HLO008", "dimensions", "negate takes no specific attributes"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] transpose(a), slice={[0:1]}, dimensions={0}"), "HLO008", "slice", "slice belongs to slice"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] transpose(a)"), "HLO009", "transpose", "needs the attribute dimensions"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] transpose(a), dimensions={0}, dimensions={0}"), "HLO010", "dimensions", "given first here"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] transpose(a), dimensions={x}"), "HLO011", "x", "expected an integer"),
    (body("  a = f32[2] parameter(0)\n  b = pred[2] compare(a, a), direction=LESS"), "HLO011", "LESS", "one of EQ, GE, GT, LE, LT, NE"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] pad(a, a), padding=1_1_1_1"), "HLO011", "", "padding"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] slice(a), slice={[0:1:2:3]}"), "HLO011", "[0:1:2:3]", "not 4 numbers"),
    (body("  a = f32[2] parameter(0), sharding={devices=[2,2]0}"), "HLO011", "[2,2]0", "more than one device"),
    (body("  a = f32[2] parameter(0), metadata={op_name=3}"), "HLO011", "3", "a string for op_name"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] add(a)"), "HLO012", "(a)", "add takes 2 operands, but has 1"),
    (body("  a = f32[] parameter(0)\n  b = (f32[], f32[]) tuple(a)"), "HLO012", "b", "2 operands for its type"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] negate(f32[3] a)"), "HLO013", "f32[3] a", "written as f32[3], but %a is f32[2]"),
    (body("  a = s32[2] parameter(0)\n  b = f32[] conditional(a, a), branch_computations={add}", ADD), "HLO013", "b", "pred[] or s32[], not s32[2]"),
    (body("  ROOT a = f32[2] parameter(0)").replace("ENTRY e", "ENTRY e (a: f32[2]) -> f32[3]"), "HLO014", "f32[3]", "its root %a is f32[2]"),
    (body("  a = parameter(0)"), "HLO015", "parameter", "must write the type"),
    (body("  a = f32[2] parameter(0)\n  b = f32[3] parameter(1)\n  c = add(a, b)"), "HLO015", "add", "cannot be inferred"),
    (body("  a = g32[2] parameter(0)"), "HLO016", "g32", "not an element type"),
    (body("  a = f32[2,3]{1} parameter(0)"), "HLO016", "{1}", "orders 1 dimensions, but the type has 2"),
    (body("  a = f32[2] parameter(0)\n  b = (f32[2]{1}) tuple(a)"), "HLO016", "{1}", "each of the dimensions 0 to 0 once"),
    (body("  a = f32[2]{0:T(2,)} parameter(0)"), "HLO016", ")", "a number after the comma"),
    (body("  a = f32[2]{} parameter(0)"), "HLO016", "{}", "orders 0 dimensions, but the type has 1"),
    (body("  a = f32[-2] parameter(0)"), "HLO016", "-2", "cannot be -2"),
    (body("  a = f32[2]{0:Q(3)} parameter(0)"), "HLO016", "Q", "a part of a layout"),
    (body("  ROOT a = f32[] parameter(0)\n  ROOT b = f32[] negate(a)"), "HLO018", "ROOT", "this is the second"),
    (body("  a = f32[] parameter(0)") + "ENTRY f {\n  a = f32[] parameter(0)\n}\n", "HLO018", "", "one ENTRY"),
    (body("  a = f32[] parameter(0)\n  b = f32[] parameter(0)"), "HLO019", "b", "duplicate parameter number 0"),
    (body("  a = f32[] parameter(0)\n  b = f32[] parameter(2)"), "HLO019", "b", "has no parameter 1, but a parameter 2"),
    (body("  a = f32[] parameter(0)\n  b = f32[] async-done(a)"), "HLO020", "b", "expect an asynchronous operation"),
    (body("  __a = f32[] parameter(0)"), "HLO021", "__a", "call it a_a"),
    (body("  s32 = f32[] parameter(0)"), "HLO021", "s32", "the name of an element type"),
    (body("  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  c = (f32[], f32[], f32[]) tuple(a, b, ...(+1))"), "HLO022", "...", "compact operands"),
    (body("  a = " + "(" * 200 + ")" * 200 + " parameter(0)"), "HLO023", "(", "levels deep"),
    (body("  a = f32[] parameter(0)\n  a = f32[] negate(a)"), "HLO005", "a", "there is an instruction a already"),
    (body("  a = f32[] parameter(0)", ADD + ADD), "HLO005", "add", "there is a computation add already"),
    (body("  a=f32[] parameter(0)"), "HLO001", "a=", "a blank is required between the name a and ="),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] transpose(a, dimensions={0}"), "HLO001", "dimensions=", "is a ')' missing before dimensions=?"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] negate(a), dimensions = {0}"), "HLO001", "dimensions", "nothing between the name and ="),
    (body("  a = f32[2] parameter(0)\n  b f32[2] negate(a)"), "HLO001", "f32", "expected '=' after the name b"),
    ("HloModule m, is_scheduled=maybe\n" + ADD, "HLO026", "maybe", "true"),
    ("HloModule m, input_output_alias={ {0, a}: (0, {0}) }\n" + ADD, "HLO026", "a", "expected an integer"),
    ("HloModule m, input_output_alias={ {0}: (0, {}) }\n" + ADD, "HLO026", "input_output_alias", "but the entry returns f32[]"),
    ("HloModule m, dimensions={0}\n" + ADD, "HLO008", "dimensions", "it belongs to instructions"),
    ("HloModule m\n\nFileNames\n1 \"a\"\n\nFileLocations\n" + ADD, "HLO026", "FileLocations", "expected the table FunctionNames"),
    ("HloModule , entry_computation_layout={()->f32[]}\n\n{\n  tmp_0 = f32[] constant(1)\n}\n", "HLO022", ",", "without names"),
    ("HloModule m\n\n%(a: f32[]) -> f32[] {\n  ROOT %a = f32[] parameter(0)\n}\n", "HLO022", "%", "this computation has no name"),
    ("HloModule m\n/* no end\n" + ADD, "HLO002", "/*", "never closed"),
    ("HloModule m\nENTRY e {\n}\n", "HLO001", "}", "has no instructions"),
    (body("  a = f32[] parameter(0)") + "}\n", "HLO001", "}", "closes nothing"),
]


def under_carets(finding: Finding) -> str:
    assert finding.source is not None
    return finding.source.text[finding.offset:finding.offset + finding.length]


@pytest.mark.parametrize("text, code, place, words", CASES, ids=[f"{c[1]}-{c[3][:24]}" for c in CASES])
def test_fault(text: str, code: str, place: str, words: str) -> None:
    got = reading(text)
    assert not got.ok
    rendered = "\n".join(f.render() for f in got.findings)
    first = got.findings[0]
    assert first.code == code, rendered
    assert not place or under_carets(first) == place, rendered
    assert words in first.render(), rendered
    for module in got.modules:
        print_module(module)


VERIFIED = [
    (body("  a = f32[2] parameter(0), sharding={devices=[2,2]0,1}"), "HLO030", "[2,2]0,1", "2 devices do not fill 2x2"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2] collective-broadcast(a), replica_groups=[2,4]<=[4]"), "HLO030", "b", "are 2x4, but made of 4 devices"),
    (body("  a = f32[2,3]{1,1} parameter(0)"), "HLO029", "{1,1}", "each of the dimensions 0 to 1 once"),
    (body("  a = f32[2]{0} parameter(0)\n  b = f32[2]{1} negate(a)"), "HLO029", "{1}", "each of the dimensions 0 to 0 once"),
    (body("  a = f32[] parameter(0)\n  b = f32[] add(a, f32[], a)"), "HLO028", "f32[]", "a type without the name"),
    (body("  a = f32[] parameter(0)\n  b = f32[] add(a,, a)"), "HLO028", ",", "an operand is missing"),
    (body("  a = f32[2] parameter(0)\n  b = f32[2,2] constant(1)"), "HLO027", "1", "followed by zeros"),
]


@pytest.mark.parametrize("text, code, place, words", VERIFIED, ids=[f"{c[1]}-{c[3][:24]}" for c in VERIFIED])
def test_what_the_parser_of_xla_lets_through(text: str, code: str, place: str, words: str) -> None:
    got = reading(text)
    assert got.ok and [f.code for f in got.findings] == [code] and under_carets(got.findings[0]) == place and words in got.findings[0].message


def test_one_fault_gives_one_finding() -> None:
    """What follows from a fault is not told as well."""
    for text in (MODULE.replace("%zero = f32[] constant(0)", "%zero = f31[] constant(0)"), MODULE.replace("parameter(1)\n  %zero", "paramater(1)\n  %zero"),
                 MODULE.replace("add(%x, %table)", "add(%x, %tabel)"), MODULE.replace("[0:3]}", "[0:3}"), MODULE[:900]):
        got = reading(text)
        assert not got.ok and len(got.findings) == 1, "\n".join(f.render() for f in got.findings)


def test_reading_goes_on_behind_a_fault() -> None:
    got = reading(MODULE.replace("constant({ { 1,", "constant({ { one,").replace("dimensions={1,0}, control", "dimensions={1.5}, control"))
    assert [f.code for f in got.findings] == ["HLO017", "HLO011"]
    assert [n.name for n in got.module().main().shown()][-1] == "out" and len(list(got.module().main().shown())) == 10


@pytest.mark.parametrize("cut", range(30, len(MODULE) - 3, 37))
def test_cut_dumps_are_told_as_cut(cut: int) -> None:
    got = reading(MODULE[:cut])
    assert not got.ok and [f.code for f in got.findings] == ["HLO002"], "\n".join(f.render() for f in got.findings)
    assert got.findings[-1].offset >= MODULE[:cut].rstrip().rfind("\n") - 1 or "closed" in got.findings[-1].message


def test_warnings_do_not_refuse() -> None:
    got = reading(MODULE.replace("dimensions={1,0}, control", "dimensions={1,0}, dimensoins={3}, control").replace("is_scheduled", "is_sheduled"))
    assert got.ok and [f.code for f in got.findings] == ["HLO007", "HLO007"]
    assert "did you mean is_scheduled?" in got.findings[0].help and "did you mean dimensions?" in got.findings[1].help
    assert dict(got.module().raw(got.module().main().nodes[9]))["dimensoins"] == "{3}"


def test_what_xla_drops_is_dropped() -> None:
    got = reading(body("  a = f32[] parameter(0)\n  b = f32[] add(a, f32[], a)"))
    assert len(got.module().main().nodes[1].operands) == 2


def test_there_is_an_end_to_findings() -> None:
    got = reading(body("\n".join(f"  a.{i} = f32[] unknown-thing()" for i in range(300))))
    assert len(got.findings) == MAX_FINDINGS + 1 and "200 more" in got.findings[-1].message
    assert len(got.module().main().nodes) == 300


def test_compact_operands_are_told_once() -> None:
    line = "  t.{} = (f32[], f32[]) tuple(a, ...(+1))"
    got = reading(body("  a = f32[] parameter(0)\n" + "\n".join(line.format(i) for i in range(5))))
    assert [f.code for f in got.findings] == ["HLO022"]


def test_codes_are_unique() -> None:
    assert len({f.code for f in FAULTS}) == len(FAULTS) == len({f.name for f in FAULTS})
    assert all(f.doc.endswith(".") for f in FAULTS)


def test_deep_nesting_ends_in_a_finding() -> None:
    deep = "f32[] parameter(0)"
    for _ in range(400):
        deep = f"f32[] negate({deep})"
    got = reading(body(f"  ROOT r = {deep}"))
    assert not got.ok and got.findings[0].code == "HLO023"
    inner = "  ROOT z = f32[] parameter(0)\n"
    for _ in range(300):
        inner = "  p = f32[] parameter(0)\n  ROOT r = f32[] call(p), to_apply={\n" + inner + "  }\n"
    got = reading(body(inner))
    assert not got.ok and any(f.code == "HLO023" for f in got.findings)


def test_numbers_of_any_length_are_survived() -> None:
    nines = "9" * 6000
    for text in (FORMS["windows"].replace("size=3x3", f"size={nines}x3"), MODULE.replace("{1,0}", "{" + nines + "}", 1), MODULE.replace("constant(0)", f"constant({nines})"),
                 MODULE.replace("parameter(1)", f"parameter({nines})"), MODULE.replace("[0:3]", f"[0:{nines}]"), MODULE.replace("1_1x0_0", f"1_{nines}x0_0")):
        assert reading(text).findings


def test_every_code_stands_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats" / "hlo.md").read_text(encoding="utf-8")
    for fault in FAULTS:
        assert f"| {fault.code} | {fault.name} | {fault.severity}" in page and fault.doc in page, fault.code


def test_an_instruction_that_lacks_what_its_opcode_needs_is_opaque_and_printed_as_it_was() -> None:
    lines = "  p = f32[2,2] parameter(0)\n  t = f32[2,2] transpose(p)\n  a = f32[2,2] add(p)\n  ROOT s = f32[2,2] sort(p), dimensions={0,1}, to_apply=add"
    got = reading(body(lines, ADD))
    assert [n.op.name for n in got.module().main().nodes] == ["parameter", "transpose?", "add?", "sort?"]
    assert [f.code for f in got.findings] == ["HLO009", "HLO012", "HLO011"]
    assert "t = f32[2,2] transpose(p)" in print_module(got.module()).replace("%", "")
