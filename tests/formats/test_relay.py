"""Relay text of every version becomes the common graph; what is wrong with it is told at its place."""
from __future__ import annotations

import pytest

from irscope.formats.relay import read, sniff
from irscope.graph import DTYPES, Graph, TensorType
from irscope.source import SourceText
from tests.formats.relay_texts import parsed

COURSE = """def @main(%input: Tensor[(1, 128), float32], %weight: Tensor[(64, 128), float32], %bias: Tensor[(64), float32]) -> Tensor[(1, 64), float32] {
%0 = nn.dense(%input, %weight, units=64);
%1 = nn.bias_add(%0, %bias);
%2 = nn.relu(%1);
return %2;
}
"""


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.nodes if not node.synthetic]


def test_the_first_program_of_the_course() -> None:
    main = parsed(COURSE).module().main()
    assert ops(main) == ["nn.dense", "nn.bias_add", "nn.relu"]
    assert [p.name for p in main.params] == ["input", "weight", "bias"]
    assert str(main.params[2].type) == "f32[64]"
    assert main.nodes[3].attrs == {"units": 64}
    assert main.result().name == "2"


@pytest.mark.parametrize("text", [
    '#[version = "0.0.5"]\n' + COURSE.replace("return %2;", "%2"),
    "v0.0.4\n" + COURSE,
    COURSE.replace(";\n", "\n").replace("return %2\n", "%2\n"),
    "/* Apache */\n// lesson\n" + COURSE,
    COURSE.replace("\n", "\r\n"),
    "[12:00:01] file.cc:90: PrintIR(after fuse):\n" + COURSE,
])
def test_every_way_to_write_it(text: str) -> None:
    assert sniff(text) > 0.5
    assert ops(parsed(text).module().main()) == ["nn.dense", "nn.bias_add", "nn.relu"]


def test_claimed_types_spans_and_constants() -> None:
    text = ("def @main(%x: Tensor[(1, 4), float32]) { nn.dense(%x, meta[relay.Constant][0] /* ty=Tensor[(2, 4), float32] */, units=2)"
            " /* ty=Tensor[(1, 2), float32] span=m.py:12:3 */ }")
    module = parsed(text).module()
    dense = module.main().result()
    assert str(dense.type) == "f32[1,2]"
    constant = dense.operands[1]
    assert constant.attrs["literal"].elided
    assert isinstance(constant.type, TensorType)
    assert constant.type.dims() == (2, 4)
    assert str(module.call_stack(dense)[0]) == "m.py:12:3"


def test_a_function_value_is_closed() -> None:
    main = parsed("def @main(%x: float32, %y: float32) { let %f = fn (%a: float32) { add(%a, %y) }; %f(%x) }").module().main()
    call = main.result()
    function = call.operands[0]
    assert (call.op.name, function.op.name) == ("call", "fn")
    assert [o.name for o in function.operands] == ["y"]
    assert [p.name for p in function.bodies[0].params] == ["a", "y"]


def test_numbers_are_one_flat_map_and_locals_are_scoped() -> None:
    text = "def @main(%c: bool, %x: float32) { %0 = add(%x, 1f); if (%c) { %1 = add(%0, 1f); multiply(%1, 2f) } else { multiply(%1, 1f) } }"
    branch = parsed(text).module().main().result()
    assert [ops(b) for b in branch.bodies] == [["add", "multiply"], ["add", "multiply"]]


def test_names_with_dots_and_projections() -> None:
    main = parsed("def @main(%t: (float32, float32), %t.1: float32) { add(%t.0, %t.1) }").module().main()
    left, right = main.result().operands
    assert (left.op.name, left.attrs["index"], right.name) == ("get-tuple-element", 0, "t.1")


def test_data_types_matches_and_recursion() -> None:
    text = """type List[A] { Cons(A, List[A]), Nil, }
def @length[A](%xs: List[A]) -> int32 { match (%xs) { Cons(_, %rest) => { 1 + @length(%rest) }, Nil => { 0 }, } }
def @main() { @length(Cons(1, Nil)) }
"""
    module = parsed(text).module()
    match = module.graphs["length"].result()
    assert match.attrs["patterns"] == ("Cons(_, %rest)", "Nil")
    assert ops(match.bodies[0]) == ["call", "add"]
    assert module.main().result().bodies == (module.graphs["length"],)


def test_infix_operators_by_precedence() -> None:
    root = parsed("def @main(%a: float32, %b: float32) { %a + %b * %a < %b - 1f }").module().main().result()
    assert root.op.name == "less"
    assert [o.op.name for o in root.operands] == ["add", "subtract"]


def test_a_long_chain_needs_no_recursion() -> None:
    lines = "".join(f"  %{i} = add(%{i - 1}, %x);\n" for i in range(1, 5000))
    text = "def @main(%x: float32) {\n  %0 = negative(%x);\n" + lines + "  %4999\n}\n"
    assert len(ops(parsed(text).module().main())) == 5000


def test_constants_are_decoded_from_the_table() -> None:
    text = """#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) { add(%x, meta[relay.Constant][0]) }
#[metadata]
{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
 {"type_key": "Array", "data": [3]}, {"type_key": "relay.Constant", "attrs": {"data": "0"}}],
 "b64ndarrays": ["P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQACAAAAAAAAAAgAAAAAAAAAAACAPwAAAEA="]}
"""
    constant = parsed(text).module().main().result().operands[1]
    assert constant.attrs["literal"].value().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("text", "place", "message"), [
    ("def @main(%input: Tensor[(4), float32]) {\n  %0 = nn.relu(%inptu);\n  return %0;\n}", "2:16", "`%inptu` is not defined; did you mean `%input`?"),
    ("def @f(%x: float32) {\n  %0 = add(%1, %x);\n  %1 = nn.relu(%x);\n  return %0;\n}", "2:12", "`%1` is used before it is defined (line 3)"),
    ("def @main(%x: float32) {\n  let %y = nn.relu(%x)\n  %y\n}", "3:3", "expected `;` after the let binding on line 2"),
    ("def @main(%x: Tensor[(4), float32]) {\n  nn.relu(%x)\n", "3:1", "expected `}` to close the body opened at 1:37"),
    ("def @main(%x: Tensor[(4), float32]) {\n  %0 = nn.relu(%x);\n}", "3:1", "function `@main` has no result; add `return %0;` or end with `%0`"),
    ("def @main(%x: float32) {\n  return %x;\n  return %x;\n}", "3:3", "nothing may follow `return`"),
    ("def @main(%x: Tensor[(4), flaot32]) { %x }", "1:27", "unknown dtype `flaot32`; did you mean `float32`?"),
    ("def @main(%x: Tensor[(4)]) { %x }", "1:25", "expected `, dtype`"),
    ("def @main(%x: Tensor[4, float32]) { %x }", "1:22", "expected a shape like `(4)`"),
    ("def @main(%x: Tensor[(-4), float32]) { %x }", "1:23", "a dimension may not be negative"),
    ("def @f() { 1 }\ndef @f() { 2 }", "2:5", "`@f` is already defined at 1:5"),
    ("def @f(%x: float32, %x: float32) { %x }", "1:21", "parameter `%x` is declared twice"),
    ("def @f(%x: Tensor[(4), float32]) { nn.softmax(%x, axis=0, axis=1) }", "1:59", "attribute `axis` is given twice"),
    ("def @f() { 32768i16 }", "1:12", "32768 does not fit int16"),
    ("def @f() { 65505f16 }", "1:12", "65505 does not fit float16"),
    ("def @f() { let @x = 1; @x }", "1:16", "`let` binds a local name such as `%x`"),
    ("/* oops\ndef @f() { 1 }", "1:1", "this comment is never closed"),
    ('def @f(%x: float32, hash="abc) { %x }', "1:26", "this string is never closed"),
    ("def @f(%c: bool) { if (%c) { let %x = 1; %x } else { %x } }", "1:54", "`%x` is not defined in this scope (defined in the other branch)"),
    ("def @f(%c: bool) { if (%c) { 1 } }", "1:34", "expected `else`"),
    ("def @f(%x: (float32, float32)) { %x.first }", "1:36", "expected a tuple index after `.`"),
    ('#[version = "0.0.9"]\ndef @f() { 1 }', "1:1", "text version 0.0.9 is not known; irscope reads 0.0.1-0.0.5"),
    ("<html><body>def @main() { 1 }</body></html>", "1:1", "this does not look like Relay text"),
    ("def @main(%x: float32) {\n  %0 = nn.relu(%x);\n  ...\n}", "3:3", "`...`: this dump was shortened by hand; paste the full text"),
])
def test_faults_are_told_with_their_place(text: str, place: str, message: str) -> None:
    reading = read(SourceText("t.relay", text))
    assert not reading.ok
    assert str(reading.findings[0].place()) == place
    assert reading.findings[0].message == message


def test_several_functions_with_faults_are_all_told() -> None:
    text = "def @a() { %x }\ndef @b() { 1 }\ndef @c() { %y }\n"
    reading = read(SourceText("t.relay", text))
    assert [f.message for f in reading.findings] == ["`%x` is not defined", "`%y` is not defined"]
    assert "b" in reading.module().graphs


LOG = """[12:00:01] /tvm/src/ir/transform.cc:440: PrintIR(first):
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(%x);
  nn.relu(%0)
}

Print IR after: FoldConstant
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) {
  nn.relu(%y)
}


Before Running Pass: The meta data of the pass - pass name: FuseOps, opt_level: 2, required passes: []

def @main(%x: Tensor[(4), float32]) {
  %0 = fn (%p0: Tensor[(4), float32], Primitive=1) { nn.relu(%p0) };
  %0(%x)
}
"""


def test_the_log_of_an_instrument_is_a_row_of_modules() -> None:
    reading = read(SourceText("passes.log", LOG))
    assert sniff(LOG) > 0.5
    assert [m.name for m in reading.modules] == ["first", "after FoldConstant", "before FuseOps"]
    assert ops(reading.modules[0].main()) == ["nn.relu", "nn.relu"]
    assert ops(reading.modules[2].main()) == ["fn", "call"]
    assert [str(f.place()) for f in reading.findings] == ["11:11"]


LOWERED = """@fused_relu = primfn(a_1: handle, b_1: handle) -> ()
  attr = {"global_symbol": "fused_relu", "tir.noalias": True}
  buffers = {b: Buffer(b_2: Pointer(float32), float32, [16], []),
             a: Buffer(a_2: Pointer(float32), float32, [16], [])}
  buffer_map = {a_1: a, b_1: b} {
  allocate(tmp: Pointer(global float32), float32, [4, 16]), storage_scope = global {
    for (i: int32, 0, 16) "parallel" {
      b[i] = max(a[i], 0f32)
    }
  }
}
def @main(%x: Tensor[(16), float32]) { nn.relu(%x) }
"""


def test_a_lowered_function_tells_its_loops_and_allocations() -> None:
    module = parsed(LOWERED).module()
    assert module.entry == "main"
    lowered = module.graphs["fused_relu"].result()
    assert lowered.op.name == "primfn"
    assert lowered.attrs["loops"] == (("i", "16", "parallel"),)
    assert lowered.attrs["allocations"] == (("tmp", "float32", (4, 16), "global", 256),)
    assert lowered.attrs["buffers"] == (("b", "float32", (16,)), ("a", "float32", (16,)))


@pytest.mark.parametrize(("claim", "dtype"), [("int64", "s64"), ("uint8", "u8"), ("int32", "s32"), ("float32", "s32"), ("Tensor[(2), int64]", "s32")])
def test_a_number_without_a_suffix_has_the_integer_type_that_its_comment_claims(claim: str, dtype: str) -> None:
    reading = read(SourceText("t", f"v0.0.4\ndef @main() {{ %0 = (2 /* ty={claim} */, 1); %0 }}"))
    (two,) = (n for n in reading.module().main().nodes if n.op.name == "constant" and n.attrs["literal"].value() == 2)
    assert two.type == TensorType(DTYPES[dtype], ())
