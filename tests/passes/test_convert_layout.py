"""Layouts that are asked for reach what follows, by renamed axes; the numbers stay, whatever the layout."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import Module
from irscope.graph.types import tensor
from irscope.passes import pass_named
from irscope.passes.layouts import laid, layout
from irscope.passes.manager import run_passes
from irscope.source import UserError
from tests.passes.image_graphs import image_program
from tests.passes.relay_runs import meaning_stays

LEAVES = ("parameter", "constant")
X, W = "%x: Tensor[(2, 6, 6, 4), float32]", "%w: Tensor[(3, 3, 4, 8), float32]"
V = "%g: Tensor[(8), float32], %b: Tensor[(8), float32]"
CONV = '  %0 = nn.conv2d(%x, %w, padding=[1, 1], channels=8, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");\n'
FIRST = ["layout_transform", "layout_transform", "nn.conv2d"]
"""What every conversion of CONV begins with."""


def converted(options: str, signature: str, body: str) -> tuple[Module, tuple[str, ...]]:
    """The module after the pass, and what it declined; types hold and the numbers stay."""
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, [f"convert-layout{{layout={options}}}"])
    assert not last.broke, [f.message for f in last.broke]
    meaning_stays(module, last.after, 1e-4, 1e-4)
    return last.after, last.declined


def names(module: Module) -> list[str]:
    return [n.op.name for n in module.main().nodes if n.op.name not in LEAVES]


@pytest.mark.parametrize(("body", "attrs", "back"), [
    ("nn.relu(%0)", {}, True),
    ("add(%0, 1f)", {}, True),
    ("nn.bias_add(%0, %b, axis=-1)", {"axis": 1}, True),
    ("nn.layer_norm(%0, %g, %b)", {"axis": 1}, True),
    ("nn.instance_norm(%0, %g, %b, axis=3)", {"axis": 1}, True),
    ("nn.softmax(%0, axis=1)", {"axis": 2}, True),
    ("nn.l2_normalize(%0, eps=0.1f, axis=[2, 3])", {"axis": [3, 1]}, True),
    ("nn.max_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\")", {"layout": "NCHW"}, True),
    ("nn.upsampling(%0, scale_h=2f, scale_w=2f, layout=\"NHWC\")", {"layout": "NCHW"}, True),
    ("mean(%0, axis=[1, 2])", {"axis": [2, 3]}, False),
    ("sum(%0, axis=[0, 3], exclude=True)", {"axis": [2, 3]}, False),
    ("max(%0, axis=[3], keepdims=True)", {"axis": [1]}, True),
    ("max(%0, axis=[3])", {"axis": [1]}, False),
    ("sum(%0)", {"axis": None}, False),
    ("sum(%0, axis=[0, 1, 2, 3], exclude=True)", {}, True),
    ("argmax(%0, axis=[3])", {"axis": [1]}, False),
    ("nn.pad(%0, 0f, pad_width=[[0, 0], [1, 2], [3, 4], [0, 0]])", {"pad_width": [[0, 0], [0, 0], [1, 2], [3, 4]]}, True),
    ("strided_slice(%0, begin=[0, 1], end=[2, -1, 4], strides=[1, 1, 2, 1])",
     {"begin": [0, 0, 1, 0], "end": [2, 8, -1, 4], "strides": [1, 1, 1, 2]}, True),
    ("strided_slice(%0, begin=[0, 1], end=[1, 3], strides=[1], slice_mode=\"size\")",
     {"begin": [0, 0, 1, 0], "end": [1, -1, 3, -1], "strides": [1, 1, 1, 1]}, True),
    ("strided_slice(%0, begin=[0, 2], end=[1, 7], strides=[1, 1], axes=[0, 3])", {"axes": [0, 1]}, True),
    ("transpose(%0, axes=[0, 3, 1, 2])", {"axes": [0, 1, 2, 3]}, False),
    ("reverse(%0, axis=2)", {"axis": 3}, True),
])
def test_what_follows_renames_its_axes(body: str, attrs: dict[str, object], back: bool) -> None:
    made, _ = converted("NCHW", f"{X}, {W}, {V}", CONV + "  " + body)
    last = made.main().nodes[-2] if back else made.main().result()
    assert last.op.name == body.partition("(")[0] and {key: last.attrs.get(key) for key in attrs} == attrs
    assert names(made) == [*FIRST, last.op.name] + ["layout_transform"] * back


@pytest.mark.parametrize(("body", "left"), [
    ("  add(%0, %b)", [*FIRST, "expand_dims", "layout_transform", "add", "layout_transform"]),
    ("  %1 = nn.relu(%0);\n  add(%1, multiply(%0, 2f))", [*FIRST, "nn.relu", "multiply", "add", "layout_transform"]),
    ("  concatenate((%0, nn.relu(%0)), axis=-1)", [*FIRST, "nn.relu", "tuple", "concatenate", "layout_transform"]),
    ("  %1 = split(%0, indices_or_sections=2, axis=3);\n  (%1.0, tanh(%1.1))",
     [*FIRST, "split", "get-tuple-element", "get-tuple-element", "tanh", "layout_transform", "layout_transform", "tuple"]),
    ("  split(%0, indices_or_sections=2, axis=3)",
     [*FIRST, "split", "get-tuple-element", "get-tuple-element", "layout_transform", "layout_transform", "tuple"]),
    ("  %1 = topk(%0, k=2, axis=2);\n  add(%1.0, 1f)", [*FIRST, "topk", "get-tuple-element", "add", "layout_transform"]),
    ("  %1 = nn.dropout(%0);\n  nn.relu(%1.0)", [*FIRST, "nn.dropout", "get-tuple-element", "nn.relu", "layout_transform"]),
    ("  %1 = squeeze(strided_slice(%0, begin=[0], end=[1], strides=[1], axes=[1]), axis=[1]);\n  tanh(%1)",
     [*FIRST, "strided_slice", "squeeze", "tanh", "layout_transform"]),
    ("  %1 = squeeze(strided_slice(%0, begin=[0], end=[1], strides=[1], axes=[0]));\n  tanh(%1)",
     [*FIRST, "strided_slice", "squeeze", "tanh", "layout_transform"]),
    ("  tanh(sum(%0))", [*FIRST, "sum", "tanh"]),
    ("  concatenate((%0, %0), axis=1)", [*FIRST, "tuple", "concatenate", "layout_transform"]),
    ("  argmax(%0, axis=[1, 2])", [*FIRST, "layout_transform", "argmax"]),
    ("  argmax(%0, axis=[1], exclude=True)", [*FIRST, "layout_transform", "argmax"]),
    ("  nn.max_pool2d(%0, pool_size=[2, 2])", [*FIRST, "layout_transform", "nn.max_pool2d"]),
    ('  nn.max_pool2d(%0, pool_size=[2, 2], layout="NHWC", out_layout="NCHW")', [*FIRST, "layout_transform", "nn.max_pool2d"]),
    ('  nn.depth_to_space(%0, block_size=2, layout="NHWC")', [*FIRST, "layout_transform", "nn.depth_to_space"]),
    ("  %1 = nn.relu(%0);\n  (nn.batch_flatten(%1), argmax(%1))", [*FIRST, "nn.relu", "layout_transform", "nn.batch_flatten", "argmax", "tuple"]),
    ("  greater(%0, %x8)", [*FIRST, "layout_transform", "greater", "layout_transform"]),
    ("  where(greater(%0, 0f), %0, %b)", [*FIRST, "greater", "expand_dims", "layout_transform", "where", "layout_transform"]),
])
def test_transformations_stand_at_the_borders_alone(body: str, left: list[str]) -> None:
    made, _ = converted("NCHW", f"{X}, {W}, {V}, %x8: Tensor[(2, 6, 6, 8), float32]", CONV + body)
    assert names(made) == left


def test_axes_that_may_have_size_one_are_removed_in_the_order_as_written() -> None:
    text = f"def @main(%x: Tensor[(?, 6, 6, 4), float32], {W}) {{\n{CONV}  squeeze(%0)\n}}\n"
    *_, last = run_passes(irscope.load(text).module(), ["convert-layout{layout=NCHW}"])
    assert not last.broke and names(last.after) == [*FIRST, "layout_transform", "squeeze"]
    *_, last = run_passes(irscope.load(text.replace("squeeze(%0)", "squeeze(%0, axis=[0])")).module(), ["convert-layout{layout=NCHW}"])
    assert not last.broke and names(last.after) == [*FIRST, "squeeze", "layout_transform"]


def test_operators_can_have_layouts_of_their_own() -> None:
    body = CONV + '  nn.max_pool2d(%0, pool_size=[2, 2], layout="NHWC")'
    made, _ = converted("nn.conv2d:NCHW+nn.max_pool2d:NHWC", f"{X}, {W}", body)
    assert names(made) == [*FIRST, "layout_transform", "nn.max_pool2d"]
    made, _ = converted("nn.conv2d:NCHW+nn.depth_to_space:NCHW", f"{X}, {W}", CONV + '  nn.depth_to_space(%0, block_size=2, layout="NHWC")')
    assert names(made) == [*FIRST, "nn.depth_to_space", "layout_transform"]
    made, _ = converted("nn.max_pool2d:NCHW", f"{X}, {W}", body)
    assert names(made) == ["nn.conv2d", "layout_transform", "nn.max_pool2d", "layout_transform"]
    made, _ = converted("nn.conv2d:NHWC:OHWI", f"{X}, {W}", body)
    assert names(made) == ["layout_transform", "nn.conv2d", "nn.max_pool2d"]
    assert made.main().nodes[-2].attrs["kernel_layout"] == "OHWI"
    made, _ = converted(" NCHW + ", f"{X}, {W}", body)
    assert names(made) == [*FIRST, "nn.max_pool2d", "layout_transform"]


def test_channels_may_be_split() -> None:
    body = CONV + ("  %1 = nn.bias_add(%0, %b, axis=3);\n  %2 = nn.relu(%1);\n  %3 = split(%2, indices_or_sections=[4], axis=3);\n"
                   '  %4 = nn.max_pool2d(%3.1, pool_size=[2, 2], layout="NHWC");\n  mean(%4, axis=[3])')
    made, _ = converted("NCHW4c", f"{X}, {W}, {V}", body)
    assert names(made) == ["layout_transform", "layout_transform", "nn.contrib_conv2d_NCHWc", "expand_dims", "layout_transform", "add", "nn.relu",
                           "split", "get-tuple-element", "nn.max_pool2d", "mean"]
    assert made.main().result().attrs["axis"] == [1, 4]
    depthwise = '  nn.conv2d(%x, %d, groups=4, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWOI")'
    made, _ = converted("NCHW2c", f"{X}, %d: Tensor[(3, 3, 4, 1), float32]", depthwise)
    assert names(made) == ["layout_transform", "layout_transform", "nn.contrib_depthwise_conv2d_NCHWc", "layout_transform"]


PACKED = ["layout_transform", "layout_transform", "nn.contrib_conv2d_NCHWc"]


@pytest.mark.parametrize(("body", "left"), [
    ("nn.relu(%0)", ["nn.relu", "layout_transform"]),
    ("max(%0, axis=[1], keepdims=True)", ["max", "layout_transform"]),
    ("max(%0, axis=[1, 3], keepdims=True)", ["layout_transform", "max"]),
    ("max(%0, axis=[1, 3])", ["max"]),
    ("argmax(%0, axis=[1])", ["layout_transform", "argmax"]),
    ("reverse(%0, axis=1)", ["layout_transform", "reverse"]),
    ("nn.softmax(%0, axis=1)", ["layout_transform", "nn.softmax"]),
    ("nn.pad(%0, 0f, pad_width=[[0, 0], [1, 2], [3, 4], [0, 0]])", ["nn.pad", "layout_transform"]),
    ("nn.pad(%0, 0f, pad_width=[[0, 0], [1, 2], [0, 0], [0, 4]])", ["layout_transform", "nn.pad"]),
    ("transpose(%0, axes=[0, 3, 1, 2])", ["layout_transform", "transpose"]),
    ("strided_slice(%0, begin=[1], end=[2], strides=[1], axes=[1])", ["layout_transform", "strided_slice"]),
    ("nn.upsampling(%0, scale_h=2f, scale_w=2f, layout=\"NHWC\")", ["layout_transform", "nn.upsampling"]),
    ("nn.avg_pool2d(%0, pool_size=[2, 2], layout=\"NHWC\")", ["nn.avg_pool2d", "layout_transform"]),
])
def test_what_works_on_split_channels(body: str, left: list[str]) -> None:
    """An axis that is split has no number, and what works along it, or on several axes in an order, goes back to the layout as written."""
    made, _ = converted("NCHW4c", f"{X}, {W}", CONV + "  " + body)
    assert names(made) == PACKED + left


def test_split_channels_are_cut_at_multiples_of_their_part() -> None:
    for cuts, fits in (("[4]", True), ("[4, 6]", False), ("[2]", False), ("2", True)):
        made, _ = converted("NCHW4c", f"{X}, {W}", CONV + f"  %1 = split(%0, indices_or_sections={cuts}, axis=3);\n  tanh(%1.1)")
        assert names(made) == PACKED + (["split", "get-tuple-element", "tanh", "layout_transform"] if fits
                                        else ["layout_transform", "split", "get-tuple-element", "tanh"]), cuts


def test_what_stays_is_told_with_the_reason() -> None:
    made, declined = converted("NCHW3c", f"{X}, {W}", CONV + "  nn.relu(%0)")
    assert names(made) == ["nn.conv2d", "nn.relu"] and declined == ("left %0: its sizes do not fit NCHW3c",)
    body = "  nn.conv2d_transpose(%x, %w, channels=6, kernel_size=[3, 3])"
    made, declined = converted("NCHW2c", "%x: Tensor[(1, 4, 5, 5), float32], %w: Tensor[(4, 6, 3, 3), float32]", body)
    assert names(made) == ["nn.conv2d_transpose"] and "no layout of weights is known that goes with NCHW2c" in declined[0]


def test_axes_that_have_other_names_are_taken_as_written() -> None:
    """What a first convolution calls C, a second one calls W: its data comes as written."""
    body = CONV + ('  %1 = nn.conv2d(%0, %v, channels=4, kernel_size=[1, 1], data_layout="NCHW", kernel_layout="OIHW");\n  nn.relu(%1)')
    made, _ = converted("NCHW", f"{X}, {W}, %v: Tensor[(4, 6, 1, 1), float32]", body)
    assert names(made) == [*FIRST, "layout_transform", "nn.conv2d", "nn.relu"]


@pytest.mark.parametrize(("signature", "body", "options"), [
    ("%x: Tensor[(1, 9, 4), float32], %w: Tensor[(3, 4, 5), float32]",
     '  %0 = nn.conv1d(%x, %w, channels=5, kernel_size=[3], data_layout="NWC", kernel_layout="WIO");\n  nn.relu(%0)', "NCW"),
    ("%x: Tensor[(1, 4, 5, 5, 5), float32], %w: Tensor[(6, 4, 3, 3, 3), float32]",
     "  %0 = nn.conv3d(%x, %w, channels=6, kernel_size=[3, 3, 3]);\n  nn.relu(%0)", "NDHWC"),
    ("%x: Tensor[(1, 4, 5, 5), float32], %w: Tensor[(4, 6, 3, 3), float32]",
     "  %0 = nn.conv2d_transpose(%x, %w, channels=6, kernel_size=[3, 3], strides=[2, 2]);\n  nn.relu(%0)", "NHWC"),
])
def test_other_convolutions_are_converted_too(signature: str, body: str, options: str) -> None:
    made, _ = converted(options, signature, body)
    assert names(made)[:2] == ["layout_transform", "layout_transform"] and names(made)[-1] == "layout_transform"


def test_quantised_convolutions_keep_their_axes() -> None:
    made, _ = converted("NCHW", "%x: Tensor[(1, 6, 6, 4), int8], %w: Tensor[(3, 3, 4, 8), int8], %s: Tensor[(8), float32]",
                        '  %0 = qnn.conv2d(%x, %w, 1, 0, 0.5f, 0.25f, channels=8, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");\n'
                        '  %1 = qnn.requantize(%0, %s, 0, 0.5f, 1, out_dtype="int8");\n  clip(%1, a_min=-100f, a_max=100f)')
    assert names(made) == [*FIRST[:2], "qnn.conv2d", "qnn.requantize", "clip", "layout_transform"]
    assert made.main().nodes[-3].attrs["axis"] == 1


def test_quantised_values_are_concatenated_in_one_layout() -> None:
    """The scales and zero points of the fields, and those of the result, are numbers and have no layout."""
    made, _ = converted("NCHW", "%x: Tensor[(1, 6, 6, 4), int8], %w: Tensor[(3, 3, 4, 8), int8], %y: Tensor[(1, 4, 4, 8), int8]",
                        '  %0 = qnn.conv2d(%x, %w, 1, 0, 0.5f, 0.25f, channels=8, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");\n'
                        '  %1 = qnn.requantize(%0, 0.125f, 0, 0.5f, 1, out_dtype="int8");\n'
                        "  qnn.concatenate((%1, %y), (0.5f, 0.25f), (1, 0), 0.5f, 0, axis=1)")
    assert [name for name in names(made) if name != "tuple"] == \
        [*FIRST[:2], "qnn.conv2d", "qnn.requantize", "layout_transform", "qnn.concatenate", "layout_transform"]
    assert [n.attrs["axis"] for n in made.main().nodes if n.op.name == "qnn.concatenate"] == [2]


def test_functions_that_are_one_kernel_stay() -> None:
    text = ('#[version = "0.0.5"]\ndef @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 3, 3), float32]) {\n'
            "  %1 = fn (%p0: Tensor[(1, 4, 6, 6), float32], %p1: Tensor[(4, 4, 3, 3), float32], Primitive=1) {\n"
            "    %0 = nn.conv2d(%p0, %p1, channels=4, kernel_size=[3, 3]);\n    nn.relu(%0)\n  };\n  %1(%x, %w)\n}\n")
    module = irscope.load(text).module()
    made = pass_named("convert-layout").run(module)
    assert [n.op.name for g in made.graphs.values() for n in g.nodes] == [n.op.name for g in module.graphs.values() for n in g.nodes]


@pytest.mark.parametrize(("options", "words"), [
    ("nn.conv2e:NHWC", "no operator"), ("nn.relu:NHWC", "has no layout"), ("nn.conv2d", "asks for no layout"), ("NHWN", "is no layout"),
    ("NHC", "no convolution has"), ("nn.conv2d:CNHW", "no layout of weights"), ("nn.conv2d:NHWC:OIHW:x", "asks for no layout"), ("NCHW4d", "is no layout"),
])
def test_requests_that_make_no_sense(options: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        pass_named(f"convert-layout{{layout={options}}}")


def test_layouts_know_sizes() -> None:
    plain, packed = layout("NHWC"), layout("NCHW4c")
    assert str(laid(tensor("f32", 1, 5, 6, 8), plain, packed)) == "f32[1,2,5,6,4]"
    assert str(laid(tensor("f32", 1, 2, 5, 6, 4), packed, plain)) == "f32[1,5,6,8]"
    assert laid(tensor("f32", 1, 5, 6, 7), plain, packed) is None
    assert packed.only("HC").text == "CH4c" and layout("NCHW").tail(2).text == "HW" and layout("NHWC") is plain


@pytest.mark.parametrize("options", ["NHWC", "NCHW", "NCHW4c", "HWNC", "NHWC2c", "nn.max_pool2d:NHWC+nn.avg_pool2d:NCHW"])
def test_random_images_keep_their_numbers(options: str) -> None:
    for seed in range(8):
        module = irscope.load(image_program(seed)).module()
        *_, last = run_passes(module, [f"convert-layout{{layout={options}}}"])
        assert not last.broke, (seed, [f.message for f in last.broke])
        meaning_stays(module, last.after, 1e-4, 1e-4)
