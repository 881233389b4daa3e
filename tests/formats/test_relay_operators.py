"""Relay's operators: what is declared, which types they give, and what is said when operands do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import irscope
from irscope.analysis.types import check_types
from irscope.formats.relay.algebra import layout_axes
from irscope.formats.relay.operators import declared, names
from irscope.formats.relay.operators.shape import new_shape
from irscope.graph import Kind
from tests.formats.relay_texts import parsed


def result_type(text: str) -> str:
    return str(parsed(text).module().main().result().type)


def faults(text: str) -> list[tuple[str, str]]:
    return [(str(f.place()), f.message) for f in check_types(parsed(text).module())]


def test_every_operator_of_the_registry_is_known() -> None:
    assert len(names()) > 290
    assert sum(declared(name).build is not None for name in names()) > 240  # type: ignore[union-attr]


@pytest.mark.parametrize(("name", "operands", "attributes", "kind"), [
    ("nn.dense", ("data", "weight"), ("units", "out_dtype"), Kind.CONTRACTION),
    ("nn.bias_add", ("data", "bias"), ("axis",), Kind.BROADCAST),
    ("nn.relu", ("data",), (), Kind.ELEMENTWISE),
    ("sum", ("data",), ("axis", "keepdims", "exclude"), Kind.REDUCTION),
    ("reshape", ("data",), ("newshape", "allowzero"), Kind.INJECTIVE),
    ("topk", ("data",), ("k", "axis", "ret_type", "is_ascend", "dtype"), Kind.OPAQUE),
])
def test_declarations(name: str, operands: tuple[str, ...], attributes: tuple[str, ...], kind: Kind) -> None:
    found = declared(name)
    assert found is not None
    assert (found.operands, found.names, found.kind) == (operands, attributes, kind)


def test_attributes_have_defaults_and_strings_may_stand_without_a_name() -> None:
    conv, cast = declared("nn.conv2d"), declared("cast")
    assert conv is not None and cast is not None
    assert conv.bound({"channels": 8}).data_layout == "NCHW"
    assert cast.bound({"positional0": "int8"}).dtype == "int8"


@pytest.mark.parametrize(("text", "type"), [
    ("def @main(%x: Tensor[(1, 128), float32], %w) { nn.dense(%x, %w, units=64) }", "f32[1,64]"),
    ("def @main(%x: Tensor[(1, 3, 32, 32), float32], %w) { nn.conv2d(%x, %w, channels=16, kernel_size=[3, 3], padding=[1]) }", "f32[1,16,32,32]"),
    ("def @main(%x: Tensor[(?, 3, 32, 32), float32]) { nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2]) }", "f32[?,3,16,16]"),
    ("def @main(%x: Tensor[(N, 128), float32]) { nn.softmax(%x) }", "f32[N,128]"),
    ("def @main(%x: Tensor[(?, 8), float32], %y: Tensor[(1, 8), float32]) { add(%x, %y) }", "f32[?,8]"),
    ("def @main(%x: Tensor[(?, 8), float32], %y: Tensor[(4, 8), float32]) { add(%x, %y) }", "f32[4,8]"),
    ("def @main(%x: Tensor[(?, 4, 8), float32]) { reshape(%x, newshape=[0, -1]) }", "f32[?,32]"),
    ("def @main(%x: Tensor[(?, 4, 8), float32]) { sum(%x, axis=[1]) }", "f32[?,8]"),
    ("def @main(%x: Tensor[(?, 128), float32], %w: Tensor[(64, 128), float32]) { nn.dense(%x, %w, units=64) }", "f32[?,64]"),
    ("def @main(%x: Tensor[(2, 8, 3, 3), float32]) { layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NCHW4c\") }", "f32[2,2,3,3,4]"),
    ("def @main(%x: Tensor[(6, 4), float32]) { split(%x, indices_or_sections=[1, 4]) }", "(f32[1,4], f32[3,4], f32[2,4])"),
    ("def @main(%x: Tensor[(2, 3), float32]) { argmax(%x, axis=[1]) }", "s32[2]"),
    ("def @main(%x: Tensor[(2, 3), float32]) { cast(%x, \"int8\") }", "s8[2,3]"),
    ("def @f(%x: Tensor[(2), float32]) { negative(%x) } def @main(%x: Tensor[(2), float32]) { (@f(%x), 1f) }", "(f32[2], f32[])"),
    ("def @main(%c: bool, %x: float32) { if (%c) { add(%x, 1f) } else { %x } }", "f32[]"),
    ("def @main(%x: Tensor[(1, 4), float32]) { my.op(%x) /* ty=Tensor[(7), float32] */ }", "f32[7]"),
])
def test_types(text: str, type: str) -> None:
    assert result_type(text) == type


def test_weights_get_their_type_from_the_attributes() -> None:
    text = ("def @main(%x: Tensor[(1, 3, 8, 8), float32], %w, %b, %v) { %0 = nn.conv2d(%x, %w, channels=6, kernel_size=[3, 3], groups=3); "
            "%1 = nn.bias_add(%0, %b); nn.dense(nn.batch_flatten(%1), %v, units=5) }")
    main = parsed(text).module().main()
    assert [str(p.type) for p in main.params] == ["f32[1,3,8,8]", "f32[3,2,3,3]", "f32[6]", "f32[5,216]"]


@pytest.mark.parametrize(("text", "place", "message"), [
    ("def @f(%x: Tensor[(4, 3), float32], %y: Tensor[(5), float32]) { add(%x, %y) }", "1:65",
     "add: cannot broadcast (4, 3) with (5): axis -1 is 3 and 5"),
    ("def @f(%x: Tensor[(4), float32], %y: Tensor[(4), int32]) { add(%x, %y) }", "1:60", "add needs equal dtypes, got float32 and int32"),
    ("def @f(%x: Tensor[(1, 128), float32], %w: Tensor[(64, 127), float32]) { nn.dense(%x, %w) }", "1:73",
     "nn.dense: data axis -1 is 128, weight axis 1 is 127"),
    ("def @f(%x: Tensor[(4), float32]) { nn.relu(%x) /* ty=Tensor[(5), float32] */ }", "1:36",
     "the dump says Tensor[(5), float32], inferred Tensor[(4), float32]"),
    ("def @f(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(6, 3, 3, 3), float32]) { nn.conv2d(%x, %w) }", "1:80",
     "nn.conv2d: data axis 1 is 4, weight axis 1 is 3"),
    ("def @f(%x: Tensor[(4, 3), float32]) { squeeze(%x, axis=[0]) }", "1:39", "squeeze: axis 0 is 4, not 1"),
    ("def @f(%x: Tensor[(4, 3), float32]) { nn.relu(%x, %x) }", "1:39", "nn.relu takes 1 operand (data), got 2"),
    ("def @f(%x: Tensor[(4), float32]) { @g(%x) } def @g(%x: Tensor[(5), float32]) { %x }", "1:36",
     "parameter %x of @g is Tensor[(5), float32], and gets Tensor[(4), float32]"),
    ("def @f(%x: Tensor[(4), float32]) -> Tensor[(3), float32] { nn.relu(%x) }", "1:60",
     "@f is declared to give Tensor[(3), float32], but gives Tensor[(4), float32]"),
])
def test_type_errors_name_the_rule_and_the_axes(text: str, place: str, message: str) -> None:
    assert faults(text) == [(place, message)]


def test_unknown_operators_and_attributes_are_warned_of() -> None:
    text = "def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(4, 8), float32]) { nn.rleu(nn.dense(%x, %w, unit=4)) }"
    said = {(str(f.place()), f.message, f.help) for f in parsed(text).findings}
    assert said == {("1:71", "unknown operator `nn.rleu`", "did you mean nn.relu?"),
                    ("1:96", "`nn.dense` has no attribute `unit`", "did you mean `units`?")}


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_codes_of_newshape_keep_the_number_of_elements(shape: list[int], data: st.DataObject) -> None:
    codes: list[int] = []
    at = 0
    while at < len(shape):
        code = data.draw(st.sampled_from([0, -2, -3, -4] if at + 1 < len(shape) else [0, -2, -4]))
        if code == -4:
            factor = next(f for f in range(shape[at], 0, -1) if shape[at] % f == 0 and (f < shape[at] or f == 1))
            codes += [-4, factor, -1]
            at += 1
        else:
            codes.append(code)
            at = len(shape) if code == -2 else at + (2 if code == -3 else 1)
    made = new_shape(tuple(shape), codes)
    product = 1
    for d in made:
        assert isinstance(d, int)
        product *= d
    whole = 1
    for n in shape:
        whole *= n
    assert product == whole


def test_long_ranges_are_counted_when_the_program_runs() -> None:
    """A text of one line does not become a constant of gigabytes."""
    assert result_type("def @main() { arange(0f, 2147483647f, 16f) }") == "f32[134217728]"
    module = irscope.compile("\ndef @main() { (arange(2f, 300000f, 1.5f), arange(5, -200000, -2, dtype=\"int32\")) }")
    floats, whole = module()
    np.testing.assert_array_equal(floats, np.arange(2, 300000, 1.5, dtype=np.float32))
    np.testing.assert_array_equal(whole, np.arange(5, -200000, -2, dtype=np.int32))


def test_layouts_have_letters_and_parts() -> None:
    assert layout_axes("OIHW16i8o") == [("O", 0), ("I", 0), ("H", 0), ("W", 0), ("i", 16), ("o", 8)]
    with pytest.raises(ValueError, match="not a layout"):
        layout_axes("N C")


def test_slices_reach_as_many_axes_as_the_longest_list_names() -> None:
    text = "def @main(%x: Tensor[(4, 8, 9), float32]) {{\n  strided_slice(%x, begin={}, end={}, strides={})\n}}\n"
    assert result_type(text.format([0, 1], [4, -1, 6], [1, 1, 2])) == "f32[4,6,3]"
    assert result_type(text.format([1], [4], [1])) == "f32[3,8,9]"


def test_deformable_convolutions_have_types_though_they_are_not_computed() -> None:
    module = parsed('def @main(%x: Tensor[(1, 9, 10, 4), float32], %o, %w) {\n  nn.deformable_conv2d(%x, %o, %w, channels=6, kernel_size=[3, 2], '
                    'strides=[2, 1], data_layout="NHWC", kernel_layout="HWIO")\n}\n').module()
    assert [str(n.type) for n in module.main().nodes] == ["f32[1,9,10,4]", "f32[1,4,9,12]", "f32[3,2,4,6]", "f32[1,4,9,6]"]
    [(_, message)] = faults("def @main(%x: Tensor[(1, 4, 9, 9), float32], %o: Tensor[(1, 8, 7, 7), float32], %w: Tensor[(6, 4, 3, 3), float32]) {\n"
                            "  nn.deformable_conv2d(%x, %o, %w)\n}\n")
    assert "offset is f32[1,8,7,7]" in message and "f32[1,18,7,7]" in message
    assert result_type("def @main(%x: Tensor[(1, 4, 9, 9), float32], %r: Tensor[(5, 5), float32]) {\n"
                       "  vision.roi_pool(%x, %r, pooled_size=[2, 3], spatial_scale=0.5f)\n}\n") == "f32[5,4,2,3]"


def test_weights_in_a_table_that_was_left_out_are_solved_too() -> None:
    module = parsed("def @main(%x: Tensor[(1, 3, 8, 8), float32]) {\n  %0 = nn.conv2d(%x, meta[relay.Constant][0], channels=4, kernel_size=[3, 3]);\n"
                    "  %1 = nn.batch_norm(%0, meta[relay.Constant][1], meta[relay.Constant][2], meta[relay.Constant][3], meta[relay.Constant][4]);\n"
                    "  %2 = nn.dense(nn.batch_flatten(%1.0), meta[relay.Constant][5], units=10);\n  tanh(%2)\n}\n").module()
    constants = [n for n in module.main().nodes if n.op.name == "constant"]
    assert [str(n.type) for n in constants] == ["f32[4,3,3,3]", *["f32[4]"] * 4, "f32[10,144]"]
    assert all(n.attrs["literal"].type == n.type and n.attrs["literal"].elided for n in constants)
    assert str(module.main().result().type) == "f32[1,10]"


@pytest.mark.parametrize("call", [
    "nn.batch_norm(%x, %v, %v, %v, %v).0", "nn.layer_norm(%x, %v, %v)", "nn.instance_norm(%x, %v, %v)", "nn.group_norm(%x, %v, %v, num_groups=2)",
    "nn.cross_entropy(%x, %y)",
])
def test_vectors_of_another_element_type_are_faults(call: str) -> None:
    """Found by the fuzzer: a pass writes the arithmetic of a normalisation, and no operator of it takes two element types."""
    text = f"fn (%x: Tensor[(3, 8), float16], %y: Tensor[(3, 8), float32], %v: Tensor[(8,), float32]) {{ {call} }}\n"
    found = faults(text)
    assert any("equal dtypes are needed" in message for _, message in found), found
    assert faults(text.replace("float16", "float32")) == []


def test_the_grid_of_an_affine_map_is_bounded() -> None:
    found = faults("fn (%x: Tensor[(1, 2, 3), float32]) { image.affine_grid(%x, target_shape=[4000000000000000000, 4]) }\n")
    assert any("this takes a table of" in message for _, message in found), found


@pytest.mark.parametrize("diagonal", [2**63 - 1, -2**63, 4, -3])
def test_diagonals_far_from_a_matrix(diagonal: int) -> None:
    x = np.ones((2, 3), np.float32)
    for upper, want in (("True", np.triu), ("False", np.tril)):
        text = f"def @main(%x: Tensor[(2, 3), float32]) {{\n  trilu(%x, {diagonal}i64, upper={upper})\n}}\n"
        got = irscope.run(parsed(text), inputs={"x": x}).outputs[0]
        np.testing.assert_array_equal(got, want(x, max(-9, min(diagonal, 9))))
