"""What MLIR's parser refuses, irscope refuses at the same line, in words."""
from __future__ import annotations

import pytest

from irscope.formats.stablehlo import read
from irscope.formats.stablehlo.building import faults as building
from irscope.formats.stablehlo.faults import FAULTS
from irscope.source import SourceText
from tests.formats.stablehlo_texts import DATA, PLAIN, body, parsed

ADD = "%0 = stablehlo.add %x, %y : tensor<4xf32>"
BACK = "return %0 : tensor<4xf32>"
IF = '%0 = "stablehlo.if"(%p) ({\n  stablehlo.return %x : tensor<4xf32>\n}, {\n  stablehlo.return %y : tensor<4xf32>\n}) : (tensor<i1>) -> tensor<4xf32>'

# name: (lines of main, code, place)
BAD: dict[str, tuple[tuple[str, ...], str, str]] = {
    "a value that nothing defines": (("%0 = stablehlo.add %x, %z : tensor<4xf32>", BACK), "SHL006", "3:28"),
    "a result number that is not there": ((ADD, "return %0#1 : tensor<4xf32>"), "SHL006", "4:12"),
    "an unknown operation": (("%0 = stablehlo.frobnicate %x : tensor<4xf32>", BACK), "SHL003", "3:10"),
    "an unknown operation in quotes": (('%0 = "stablehlo.scatter_x"(%x) : (tensor<4xf32>) -> tensor<4xf32>', BACK), "SHL003", "3:10"),
    "an unknown dialect": (("%0 = nodialect.constant dense<1.0> : tensor<4xf32>", BACK), "SHL005", "3:10"),
    "an operation without a pretty form": (("%0 = stablehlo.gather %x, %y : tensor<4xf32>", BACK), "SHL001", "3:10"),
    "a value defined twice": ((ADD, ADD, BACK), "SHL007", "4:5"),
    "an argument defined again": (("%x = stablehlo.add %y, %y : tensor<4xf32>", "return %x : tensor<4xf32>"), "SHL007", "3:5"),
    "a use before the definition": (("%0 = stablehlo.add %x, %1 : tensor<4xf32>", "%1 = stablehlo.negate %x : tensor<4xf32>", BACK), "SHL008", "3:10"),
    "more names than results": (("%0:2 = stablehlo.add %x, %y : tensor<4xf32>", "return %0#0 : tensor<4xf32>"), "SHL009", "3:5"),
    "another type than the value's": (("%0 = stablehlo.add %x, %y : tensor<5xf32>", "return %x : tensor<4xf32>"), "SHL010", "3:24"),
    "fewer types than operands": (('%0 = "stablehlo.add"(%x, %y) : (tensor<4xf32>) -> tensor<4xf32>', BACK), "SHL011", "3:36"),
    "an unknown element type": (("%0 = stablehlo.add %x, %y : tensor<4xf33>", BACK), "SHL013", "3:42"),
    "a dimension that is no number": (("%0 = stablehlo.add %x, %y : tensor<4yxf32>", BACK), "SHL013", "3:40"),
    "an alias of a type that is not there": (("%0 = stablehlo.add %x, %y : !row", BACK), "SHL012", "3:33"),
    "an alias of a location that is not there": ((ADD + " loc(#loc7)", BACK), "SHL012", "3:51"),
    "a literal that is no number": (("%0 = stablehlo.constant dense<oops> : tensor<4xf32>", BACK), "SHL014", "3:35"),
    "a float of an integer type": (("%c = stablehlo.constant dense<1.5> : tensor<i32>", "return %x : tensor<4xf32>"), "SHL014", "3:35"),
    "an integer of a float type": (("%0 = stablehlo.constant dense<1> : tensor<4xf32>", BACK), "SHL014", "3:35"),
    "a literal of another shape": (("%0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<4xf32>", BACK), "SHL014", "3:35"),
    "bytes of another length": (('%0 = stablehlo.constant dense<"0x00000000FF"> : tensor<4xf32>', BACK), "SHL014", "3:35"),
    "a word that no enumeration has": (("%0 = stablehlo.compare XX, %x, %y : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>", BACK), "SHL015", "3:28"),
    "an attribute without value": (("%0 = stablehlo.add %x, %y {a = } : tensor<4xf32>", BACK), "SHL015", "3:35"),
    "an attribute given twice": (("%0 = stablehlo.add %x, %y {a, a} : tensor<4xf32>", BACK), "SHL007", "3:35"),
    "no = after the value": (("%0 stablehlo.add %x, %y : tensor<4xf32>", BACK), "SHL001", "3:7"),
    "no type": (("%0 = stablehlo.add %x, %y", BACK), "SHL001", "3:30"),
    "an operand too many": (("%0 = stablehlo.add %x, %y, %y : tensor<4xf32>", BACK), "SHL001", "3:30"),
    "an operand missing": (("%0 = stablehlo.add %x : tensor<4xf32>", BACK), "SHL001", "3:26"),
    "no return": ((ADD,), "SHL017", "3:10"),
    "an unclosed string": (('%0 = stablehlo.add %x, %y {a = "oops} : tensor<4xf32>', BACK), "SHL001", "3:36"),
    "a control character": (("%0 = stablehlo\x01add %x, %y : tensor<4xf32>", BACK), "SHL001", "3:19"),
    "a region that the printer left out": (('%0 = "stablehlo.if"(%p) ({...}, {...}) : (tensor<i1>) -> tensor<4xf32>', BACK), "SHL018", "3:31"),
    "a value of a region outside": ((IF.replace("  stablehlo.return %y", "  %7 = stablehlo.abs %y : tensor<4xf32>\n  stablehlo.return %7"),
                                     "return %7 : tensor<4xf32>"), "SHL006", "9:12"),
    "a region without return": ((IF.replace("  stablehlo.return %y", "  %7 = stablehlo.abs %y"), BACK), "SHL017", "6:8"),
}


@pytest.mark.parametrize("name", BAD)
def test_faults_at_their_place(name: str) -> None:
    lines, code, place = BAD[name]
    text = body(*lines, arguments="%x: tensor<4xf32>, %y: tensor<4xf32>, %p: tensor<i1>")
    reading = read(SourceText("bad.mlir", text))
    assert not reading.ok
    first = reading.findings[0]
    assert (first.code, str(first.place())) == (code, place), first.render()
    assert all(finding.render() for finding in reading.findings)


def test_faults_around_functions() -> None:
    cases = {
        "```mlir\n" + PLAIN + "```\n": ("SHL020", "1:1"), PLAIN + "}\n": ("SHL001", "7:2"), PLAIN[:-2] + PLAIN[PLAIN.index("  func"):]: ("SHL007", "7:3"),
        "": ("SHL021", "1:1"), "module {\n}\n": ("SHL021", "1:1"), PLAIN.replace("= 1 : i32", "="): ("SHL015", "1:48"),
        PLAIN.replace("-> (tensor<2x3xf32>", "-> ("): ("SHL013", "2:78"),
    }
    for text, (code, place) in cases.items():
        _, findings, ok = parsed(text)
        assert not ok and (findings[0].code, str(findings[0].place())) == (code, place), (text, findings[0].render())


@pytest.mark.parametrize("cut", range(40, len(PLAIN) - 3, 23))
def test_a_text_that_ends_early_says_so_and_keeps_its_beginning(cut: int) -> None:
    text = PLAIN[:cut]
    modules, findings, ok = parsed(text)
    assert not ok and findings[0].code in ("SHL002", "SHL001", "SHL013")
    place = findings[0].place()
    assert place is not None and place.line >= text.rstrip("\n").count("\n") + 1
    if cut > PLAIN.index("multiply"):
        assert [module.is_complete for module in modules] == [False]
        body = modules[0].functions["main"].body
        assert body is not None and [each.name for each in body.operations][:1] == ["stablehlo.add"]


def test_a_fault_does_not_hide_what_follows_it() -> None:
    text = (DATA / "several.mlir").read_text()
    whole, _, _ = parsed(text)
    broken = text.replace("%2 = stablehlo.iota dim = 0", "%2 = stablehlo.iota dim = x", 1)
    modules, findings, ok = parsed(broken if broken != text else text.replace("stablehlo.iota dim = 0", "stablehlo.iota dim = x", 1))
    assert not ok and len(findings) == 1
    assert list(modules[0].functions) == list(whole[0].functions)


def test_codes_are_unique_and_described() -> None:
    codes = [fault.code for fault in (*FAULTS, *building.FAULTS)]
    assert len(set(codes)) == len(codes) and all(fault.doc.endswith(".") for fault in FAULTS)
