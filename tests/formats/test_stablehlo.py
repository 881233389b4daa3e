"""The reader of StableHLO: one tree from both forms, every spelling."""
from __future__ import annotations

import pytest

from irscope.formats.stablehlo import read, sniff
from irscope.formats.stablehlo.attributes import Array, Number, Record, Symbol, Text, Unit, Word
from irscope.graph import DynamicDim, NamedType, TensorType, TupleType, tensor
from irscope.source import SourceText
from tests.formats.stablehlo_texts import ALIASES, DATA, PLAIN, body, described, one, operations, parsed


@pytest.mark.parametrize("name", ["block", "several"])
def test_both_forms_give_one_tree(name: str) -> None:
    pretty = [described(each) for each in operations((DATA / f"{name}.mlir").read_text())]
    generic = [described(each) for each in operations((DATA / f"{name}.generic.mlir").read_text())]
    for one_form, other in zip(pretty, generic, strict=True):
        assert one_form == other


def test_results_and_operands_have_their_names() -> None:
    sort = next(each for each in operations((DATA / "several.mlir").read_text()) if each.name == "stablehlo.sort")
    assert [value.name.partition("#")[2] for value in sort.results] == ["0", "1"]
    assert [argument.type for argument in sort.regions[0].body.arguments] == [tensor("f32")] * 2 + [tensor("s32")] * 2


def test_applies_is_a_region() -> None:
    reduce = one("%0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> "
                 "tensor<f32>", "%x: tensor<4xf32>, %c: tensor<f32>")
    assert [each.name for each in reduce.regions[0].body.operations] == ["stablehlo.add", "stablehlo.return"]
    assert reduce.attributes["dimensions"] == Array(tensor("s64").dtype, (0,))


def test_a_reducer_of_pairs_takes_all_left_sides_first() -> None:
    texts = operations((DATA / "several.mlir").read_text())
    reduce = next(each for each in texts if each.name == "stablehlo.reduce" and len(each.results) == 2)
    assert [str(value.type) for value in reduce.regions[0].body.arguments] == ["f32[]", "s32[]", "f32[]", "s32[]"]


ATTRIBUTES = {
    "true": True, "3 : i32": Number(3, NamedType("i32")), "3": Number(3, NamedType("i64")), "-2.5 : f32": Number(-2.5, NamedType("f32")),
    "1.0e-3": Number(0.001, NamedType("f64")), "0x7F800000 : f32": Number(float("inf"), NamedType("f32")), '"a\\22b\\0A"': 'a"b\n',
    "unit": Unit.UNIT, "@f": Symbol("f"), '@"a b"::@g': Symbol("a b::g"), "[1 : i8, true]": (Number(1, NamedType("i8")), True),
    "{a = 1 : i32, b}": {"a": Number(1, NamedType("i32")), "b": Unit.UNIT}, "array<i64>": Array(tensor("s64").dtype, ()),
    "array<i1: true, false>": Array(tensor("pred").dtype, (True, False)), "array<f32: 1.5, 2.0>": Array(tensor("f32").dtype, (1.5, 2.0)),
    "tensor<2xf32>": tensor("f32", 2), "f32": NamedType("f32"), "#stablehlo<precision HIGH>": Word("stablehlo", "precision", "HIGH"),
    "#sdy.sharding<@mesh, [{\"x\"}, {?}]>": Text('#sdy.sharding<@mesh, [{"x"}, {?}]>'), "affine_map<(d0) -> (d0)>": Text("affine_map<(d0) -> (d0)>"),
    "#stablehlo.channel_handle<handle = 1, type = 0>": Record("stablehlo", "channel_handle", {
        "handle": Number(1, NamedType("i64")), "type": Number(0, NamedType("i64"))}),
    "#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>": Record("stablehlo", "conv", {
        "input": ("b", "0", "f"), "kernel": ("0", "i", "o"), "output": ("b", "0", "f")}),
}


@pytest.mark.parametrize("text", ATTRIBUTES)
def test_values_of_attributes(text: str) -> None:
    assert one(f"%0 = stablehlo.add %x, %y {{a = {text}}} : tensor<4xf32>").attributes == {"a": ATTRIBUTES[text]}


TYPES = {
    "tensor<f32>": tensor("f32"), "tensor<2x?xbf16>": tensor("bf16", 2, DynamicDim()), "tensor<3xui8>": tensor("u8", 3),
    "tensor<?xf32, #stablehlo.bounds<4>>": tensor("f32", DynamicDim("", 4)), "tensor<2xcomplex<f64>>": tensor("c128", 2),
    "tensor<1xf8E4M3B11FNUZ>": tensor("f8e4m3b11fnuz", 1), "tensor<4xi1>": tensor("pred", 4), "tensor<0xi4>": tensor("s4", 0),
    "tuple<tensor<f32>, tuple<>>": TupleType((tensor("f32"), TupleType(()))), "tensor<*xf32>": NamedType("tensor<*xf32>"),
    "tensor<2x!quant.uniform<i8:f32, 0.5:3>>": NamedType("tensor<2x!quant.uniform<i8:f32, 0.5:3>>"),
    "tensor<2xindex>": NamedType("tensor<2xindex>"), "!stablehlo.token": NamedType("token[]"), "vector<4xf32>": NamedType("vector<4xf32>"),
}


@pytest.mark.parametrize("text", TYPES)
def test_types(text: str) -> None:
    assert one("return %x : " + text, f"%x: {text}").operands[0].type == TYPES[text]


def test_calls_custom_calls_and_composites() -> None:
    call = one('%0 = stablehlo.custom_call @"my target"(%x) {api_version = 4 : i32, backend_config = {a = 1 : i32}} : (tensor<4xf32>) -> tensor<4xf32>')
    assert call.attributes["call_target_name"] == "my target"
    composite = one('%0 = stablehlo.composite "my.op" %x, %y {decomposition = @f} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>')
    assert composite.attributes == {"name": "my.op", "decomposition": Symbol("f")} and len(composite.operands) == 2


def test_old_and_new_spaces_of_comparisons() -> None:
    type = "(tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>"
    assert one(f"%0 = stablehlo.compare  LT, %x, %y,  FLOAT : {type}").attributes == one(f"%0 = stablehlo.compare LT, %x, %y, FLOAT : {type}").attributes


def test_operations_of_shardy() -> None:
    manual = one('%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} '
                 "(%a: tensor<2xf32>) {\n sdy.return %a : tensor<2xf32>\n } : (tensor<4xf32>) -> tensor<2xf32>")
    assert manual.attributes["manual_axes"] == Text('#sdy<manual_axes{"x"}>') and manual.regions[0].body.arguments[0].name == "a"
    mesh = operations(PLAIN.replace("  func", '  sdy.mesh @mesh = <["x"=8]>\n  func', 1))[0]
    assert mesh.attributes["sym_name"] == "mesh"


def test_aliases_before_and_after_the_module() -> None:
    table = "#loc1 = loc(\"model.py\":3:4)\n"
    moved = ALIASES.replace(table, "") + table
    for text in (ALIASES, moved):
        reading = read(SourceText("x", text))
        assert reading.ok, [finding.render() for finding in reading.findings]
        module = reading.module()
        assert module.name == "a module" and list(module.graphs) == ["square", "main"] and module.entry == "main"


def test_a_text_without_a_module_and_two_modules() -> None:
    (module,), _, ok = parsed(PLAIN.split("{\n", 1)[1].rsplit("}", 1)[0])
    assert ok and list(module.functions) == ["main"]
    modules, _, ok = parsed(PLAIN + "// -----\n" + PLAIN.replace("jit_f", "jit_g"))
    assert ok and [each.name for each in modules] == ["jit_f", "jit_g"]


def test_results_without_names_and_regions_that_reuse_names() -> None:
    text = body('"stablehlo.custom_call"(%x) <{call_target_name = "f"}> : (tensor<4xf32>) -> tensor<4xf32>',
                '%0 = "stablehlo.if"(%p) ({', "  %1 = stablehlo.negate %x : tensor<4xf32>", "  stablehlo.return %1 : tensor<4xf32>", "}, {",
                "  %1 = stablehlo.abs %x : tensor<4xf32>", "  stablehlo.return %1 : tensor<4xf32>", "}) : (tensor<i1>) -> tensor<4xf32>",
                "return %0#0 : tensor<4xf32>", arguments="%x: tensor<4xf32>, %p: tensor<i1>")
    assert read(SourceText("x", text)).ok


def test_unknown_dialects_are_kept() -> None:
    text = body('%0 = "other.thing"(%x) {a = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>', "%1 = arith.addf %0, %y : tensor<4xf32>",
                "return %1 : tensor<4xf32>")
    reading = read(SourceText("x", text))
    assert reading.ok and [finding.code for finding in reading.findings][:1] == ["SHL004"]
    assert "other.thing" in [node.op.name for node in reading.module().main().nodes]


def test_a_deep_text_is_refused_and_not_recursed_into() -> None:
    for opened in ("tuple<" * 5000, "[" * 5000, "{a = " * 5000):
        _, findings, ok = parsed(body(f"%0 = stablehlo.add %x, %y {{a = {opened}}} : tensor<4xf32>", "return %0 : tensor<4xf32>"))
        assert not ok and "SHL019" in [finding.code for finding in findings]
    regions = '"stablehlo.if"(%p) ({\n' * 3000
    _, findings, ok = parsed(body(regions, arguments="%p: tensor<i1>"))
    assert not ok and "SHL019" in [finding.code for finding in findings]


@pytest.mark.parametrize("text", [PLAIN, ALIASES, PLAIN.replace("stablehlo.", "mhlo."), "func.func @f(%a: tensor<2xf32>) {\n  return\n}\n"])
def test_sniffing(text: str) -> None:
    assert sniff(text) >= 0.9


def test_other_dialects_are_not_sniffed() -> None:
    assert sniff("module {\n  func.func @f(%a: memref<4xf32>) {\n    %0 = memref.load %a[] : memref<4xf32>\n") == 0.0
    assert sniff("HloModule m\n\nENTRY e {\n  ROOT p = f32[] parameter(0)\n}\n") == 0.0


def test_types_of_a_reading_share_objects() -> None:
    add, multiply = [each for each in operations(PLAIN) if each.name.startswith("stablehlo.")]
    assert add.results[0].type is multiply.results[0].type and isinstance(add.results[0].type, TensorType)
