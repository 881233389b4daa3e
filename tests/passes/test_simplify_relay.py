"""simplify-algebra over Relay: every rule on the smallest program that shows it, and on one that it must leave alone."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.manager import run_passes
from tests.passes.relay_runs import outputs

X = "%x: Tensor[(2, 8), float32]"
Y = "%y: Tensor[(2, 8), float32]"
I8 = "%x: Tensor[(2, 8), int8]"
KERNEL = "%k: Tensor[(3, 8, 2, 3), float32]"
IMAGE = "%x: Tensor[(1, 8, 4, 6), float32]"
C = "[1f, 2f, 3f, 4f, 5f, 6f, 7f, 8f]"


def after(signature: str, body: str, exactly: bool = True, name: str = "simplify-algebra") -> list[str]:
    """The operators that are left; types hold, and the numbers are the same to the last bit where that is asked."""
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, [name])
    assert not last.broke, [f.message for f in last.broke]
    for got, wanted in zip(outputs(last.after, 0, module), outputs(module), strict=True):
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
        if exactly:
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, 1e-5, 1e-5)
    return shown(last.after)


def shown(module: Module) -> list[str]:
    return [n.op.name for n in module.main().nodes if n.op.name not in ("parameter", "constant")]


@pytest.mark.parametrize(("signature", "body", "left"), [
    # arrays of one value
    (X, "  %0 = zeros_like(%x);\n  add(%0, %x)", []),
    (X, '  %0 = ones(shape=[8], dtype="float32");\n  divide(multiply(%0, %x), %0)', []),
    (X, '  %0 = zeros(shape=[3, 2, 8], dtype="float32");\n  add(%x, %0)', ["zeros", "add"]),
    (X, '  %0 = full(3f, shape=[2, 8], dtype="float32");\n  maximum(%0, %x)', ["maximum"]),
    (X, '  %0 = full(3f, shape=[3, 2, 8], dtype="float32");\n  maximum(%0, %x)', ["full", "maximum"]),
    (X, '  %0 = ones(shape=[2, 8], dtype="float32");\n  less(%x, %0)', ["less"]),
    (X, "  add(%x, %x)", ["multiply"]),
    ("%x: Tensor[(8), int32]", "  subtract(add(%x, %x), 0)", ["multiply"]),
    ("%x: Tensor[(8), bool]", "  logical_or(%x, zeros_like(%x))", ["logical_or"]),
    (X, "  abs(abs(negative(negative(%x))))", ["abs"]),
    # what takes only a type
    (f"{X}, {Y}", "  (ones_like(add(%x, %y)), full_like(%y, 2f))", ["ones", "full", "tuple"]),
    (f"{X}, %l: Tensor[(4, 4), float32]", "  tanh(reshape_like(%x, %l))", ["reshape", "tanh"]),
    (f"{X}, %l: Tensor[(6, 4, 2), float32]", "  reshape_like(%x, %l, lhs_begin=1, rhs_begin=1)", ["reshape"]),
    (f"{X}, %l: Tensor[(3, 2, 8), float32]", "  broadcast_to_like(%x, %l)", ["broadcast_to"]),
    (f"{X}, %l: Tensor[(8), float32]", "  collapse_sum_like(%x, %l)", ["collapse_sum_to"]),
    (f"{X}, %l: Tensor[(3), int32]", "  cast_like(%x, %l)", ["cast"]),
    (f"{X}, {Y}", "  cast_like(%x, %y)", []),
    # reshapes
    (X, "  %0 = expand_dims(%x, axis=1);\n  %1 = squeeze(%0, axis=[1]);\n  nn.batch_flatten(reshape(%1, newshape=[2, 2, 4]))", []),
    (X, "  %0 = expand_dims(%x, axis=1);\n  reshape(%0, newshape=[-1])", ["reshape"]),
    (X, "  %0 = reshape(%x, newshape=[4, 4]);\n  reverse_reshape(%0, newshape=[-1, 0])", ["reshape"]),
    (X, "  %0 = reshape(%x, newshape=[-1]);\n  %1 = tanh(%0);\n  reshape(%1, newshape=[2, 8])", ["reshape", "tanh", "reshape"]),
    # transposes and layouts
    (IMAGE, "  %0 = transpose(%x);\n  %1 = transpose(%0, axes=[3, 1, -2, 0]);\n  transpose(%1, axes=[0, 1, 2, 3])", ["transpose"]),
    (IMAGE, "  transpose(transpose(%x, axes=[0, 2, 3, 1]), axes=[0, 3, 1, 2])", []),
    (IMAGE, '  %0 = transpose(%x, axes=[0, 2, 3, 1]);\n  layout_transform(%0, src_layout="NHWC", dst_layout="HWCN")', ["transpose"]),
    (IMAGE, '  %0 = transpose(%x, axes=[0, 2, 3, 1]);\n  layout_transform(%0, src_layout="NHWC", dst_layout="NCHW4c")', ["layout_transform"]),
    (IMAGE, '  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");\n'
            '  layout_transform(%0, src_layout="NCHW4c", dst_layout="NHWC")', ["layout_transform"]),
    (IMAGE, '  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");\n'
            '  layout_transform(%0, src_layout="NCHW4c", dst_layout="NCHW8c")', ["layout_transform"]),
    (IMAGE, '  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");\n  %1 = nn.relu(%0);\n'
            '  %2 = layout_transform(%1, src_layout="NCHW4c", dst_layout="NCHW");\n  transpose(%2, axes=[3, 0, 2, 1])',
     ["layout_transform", "nn.relu", "layout_transform"]),
    (IMAGE, '  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NCHW4c");\n  transpose(%0, axes=[4, 0, 1, 2, 3])', ["layout_transform"]),
    (IMAGE, '  layout_transform(%x, src_layout="NCHW", dst_layout="NCHW")', []),
    # slices, padding, pieces
    (X, "  %0 = strided_slice(%x, begin=[0, 1], end=[2, 8], strides=[1, 2]);\n  strided_slice(%0, begin=[1, 1], end=[2, 4], strides=[1, 2])",
     ["strided_slice"]),
    (X, '  %0 = strided_slice(%x, begin=[0, 2], end=[-1, 4], strides=[1, 1], slice_mode="size");\n'
        '  strided_slice(%0, begin=[-2], end=[4], strides=[1], axes=[1])', ["strided_slice"]),
    (X, "  %0 = strided_slice(%x, begin=[0, 7], end=[2, 0], strides=[1, -1]);\n  strided_slice(%0, begin=[0, 1], end=[2, 3], strides=[1, 1])",
     ["strided_slice", "strided_slice"]),
    (X, "  %0 = strided_slice(%x, begin=[0, 1], end=[2, 8], strides=[1, 1]);\n  strided_slice(%0, begin=[0, 5], end=[2, 0], strides=[1, -1])",
     ["strided_slice", "strided_slice"]),
    (X, "  strided_slice(%x, begin=[0, 0], end=[2, 8], strides=[1, 1])", []),
    (X, "  strided_slice(%x, begin=[1, 7], end=[-3, -9], strides=[-1, -1])", ["strided_slice"]),
    (X, "  nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0]])", []),
    (X, "  concatenate((%x,), axis=1)", []),
    # padding
    (f"{IMAGE}, {KERNEL}", "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]);\n  nn.conv2d(%0, %k, padding=[1, 0])", ["nn.conv2d"]),
    (f"{IMAGE}, {KERNEL}", "  %0 = nn.pad(%x, 1f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]]);\n  nn.conv2d(%0, %k)", ["nn.pad", "nn.conv2d"]),
    (f"{IMAGE}, {KERNEL}", "  %0 = nn.pad(%x, 0f, pad_width=[[0, 1], [0, 0], [1, 2], [0, 1]]);\n  nn.conv2d(%0, %k)", ["nn.pad", "nn.conv2d"]),
    (f"{IMAGE}, {KERNEL}", '  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]], pad_mode="edge");\n  nn.conv2d(%0, %k)',
     ["nn.pad", "nn.conv2d"]),
    ("%x: Tensor[(1, 4, 6, 3), float32], %k: Tensor[(3, 3, 3, 2), float32]",
     '  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [1, 2], [0, 1], [0, 0]]);\n  nn.conv2d(%0, %k, data_layout="NHWC", kernel_layout="HWIO")',
     ["nn.conv2d"]),
    ("%x: Tensor[(1, 3, 6), float32], %k: Tensor[(2, 3, 3), float32]", "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2]]);\n  nn.conv1d(%0, %k)",
     ["nn.conv1d"]),
    (IMAGE, "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n  nn.avg_pool2d(%0, pool_size=[2, 2], strides=[2, 1])", ["nn.avg_pool2d"]),
    (IMAGE, "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n"
            "  nn.avg_pool2d(%0, pool_size=[2, 2], padding=[1, 1], count_include_pad=True)", ["nn.avg_pool2d"]),
    (IMAGE, "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n  nn.avg_pool2d(%0, pool_size=[2, 2], padding=[1, 1])",
     ["nn.pad", "nn.avg_pool2d"]),
    (IMAGE, "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n  nn.avg_pool2d(%0, pool_size=[3, 3], strides=[2, 2], ceil_mode=True)",
     ["nn.pad", "nn.avg_pool2d"]),
    (IMAGE, "  %0 = nn.pad(%x, -3.40282e+38f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n  nn.max_pool2d(%0, pool_size=[2, 2], strides=[2, 2], ceil_mode=True)",
     ["nn.pad", "nn.max_pool2d"]),  # the last window would see nothing but padding
    (IMAGE, "  %0 = nn.pad(%x, -3.40282e+38f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]);\n  nn.max_pool2d(%0, pool_size=[3, 3], strides=[2, 2], ceil_mode=True)",
     ["nn.max_pool2d"]),
    (IMAGE, "  %0 = nn.pad(%x, -3.40282e+38f, pad_width=[[0, 0], [0, 0], [2, 1], [0, 1]]);\n  nn.max_pool2d(%0, pool_size=[2, 2])",
     ["nn.pad", "nn.max_pool2d"]),
    (IMAGE, "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n  nn.max_pool2d(%0, pool_size=[2, 2])", ["nn.pad", "nn.max_pool2d"]),
    ("%x: Tensor[(1, 2, 4, 4), int8], %k: Tensor[(3, 2, 3, 3), int8]", "  %0 = nn.pad(%x, 5i8, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n"
     "  qnn.conv2d(%0, %k, 5, 1, 0.5f, 0.25f, channels=3, kernel_size=[3, 3])", ["qnn.conv2d"]),
    ("%x: Tensor[(1, 2, 4, 4), int8], %k: Tensor[(3, 2, 3, 3), int8]", "  %0 = nn.pad(%x, 0i8, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n"
     "  qnn.conv2d(%0, %k, 5, 1, 0.5f, 0.25f, channels=3, kernel_size=[3, 3])", ["nn.pad", "qnn.conv2d"]),
    # conversions and limits
    (I8, '  %0 = cast(%x, dtype="int16");\n  %1 = cast(%0, dtype="int32");\n  cast(%1, dtype="float32")', ["cast"]),
    (I8, '  %0 = cast(%x, dtype="float32");\n  cast(%0, dtype="int8")', []),
    (I8, '  %0 = cast(%x, dtype="uint8");\n  cast(%0, dtype="int32")', ["cast", "cast"]),
    (X, '  %0 = cast(%x, dtype="float16");\n  cast(%0, dtype="float32")', ["cast", "cast"]),
    (X, '  %0 = cast(%x, dtype="bool");\n  %1 = cast(%0, dtype="int32");\n  cast(%1, dtype="float32")', ["cast", "cast"]),
    (X, '  %0 = clip(%x, a_min=0f, a_max=255f);\n  %1 = cast(%0, dtype="uint8");\n  %2 = cast(%1, dtype="int16");\n  cast(%2, dtype="int32")',
     ["clip", "cast"]),
    (X, '  %0 = clip(%x, a_min=0f, a_max=255f);\n  %1 = cast(%0, dtype="uint8");\n  cast(%1, dtype="float32")', ["clip", "cast", "cast"]),
    (X, '  %0 = clip(%x, a_min=0f, a_max=255f);\n  %1 = cast(%0, dtype="uint8");\n  cast(%1, dtype="int8")', ["clip", "cast", "cast"]),
    ("%x: Tensor[(8), int32]", '  %0 = clip(%x, a_min=0f, a_max=255f);\n  %1 = cast(%0, dtype="uint8");\n  cast(%1, dtype="int32")', ["clip"]),
    (I8, "  clip(%x, a_min=-128f, a_max=127f)", []),
    (I8, "  clip(%x, a_min=-127f, a_max=127f)", ["clip"]),
    (X, "  clip(%x, a_min=-3e38f, a_max=3e38f)", ["clip"]),
    # the order of quantised values
    (I8, "  %0 = qnn.dequantize(%x, 2f, 3);\n  (argmax(%0, axis=1), argmin(%0, axis=[0]), argsort(%0, axis=1))", ["argmax", "argmin", "argsort", "tuple"]),
    (I8, "  %0 = qnn.dequantize(%x, -2f, 0);\n  argmax(%0, axis=1)", ["qnn.dequantize", "argmax"]),
    (f"{I8}, %s: float32", "  %0 = qnn.dequantize(%x, %s, 0);\n  argmax(%0, axis=1)", ["qnn.dequantize", "argmax"]),
])
def test_what_is_left_to_the_last_bit(signature: str, body: str, left: list[str]) -> None:
    assert after(signature, body) == left


@pytest.mark.parametrize(("body", "kept", "left"), [
    (f"  add(add({C}, %x), {C})", ["add", "add"], ["add"]),
    (f"  multiply({C}, multiply(%x, {C}))", ["multiply", "multiply"], ["multiply"]),
    (f"  multiply(add(%x, {C}), 2f)", ["add", "multiply"], ["multiply", "add"]),
    (f"  add(multiply(add(multiply(%x, {C}), 2f), {C}), 3f)", ["multiply", "add", "multiply", "add"], ["multiply", "add"]),
    (f"  %0 = add(%x, {C});\n  add(tanh(%0), multiply(%0, 2f))", ["add", "tanh", "multiply", "add"], ["add", "tanh", "multiply", "add"]),
    ("  %0 = add(%x, [[1f], [2f]]);\n  add(%0, [1f, 2f, 3f, 4f, 5f, 6f, 7f, 8f])", ["add", "add"], ["add", "add"]),
    ("  divide(1f, sqrt(exp(%x)))", ["exp", "sqrt", "divide"], ["exp", "rsqrt"]),
    ("  divide(%x, sqrt(exp(%x)))", ["exp", "sqrt", "divide"], ["exp", "rsqrt", "multiply"]),
])
def test_rules_that_round_differently_are_asked_for(body: str, kept: list[str], left: list[str]) -> None:
    assert after(X, body) == kept
    assert after(X, body, False, "simplify-algebra{inexact}") == left


def test_constants_of_2019_are_taken_together_in_the_type_of_their_comments() -> None:
    """Those texts write an int64 without its suffix; as int32 the product would overflow."""
    module = irscope.load("def @main(%x: Tensor[(4), int64]) {\n  %0 = multiply(%x, 2 /* ty=int64 */) /* ty=Tensor[(4), int64] */;\n"
                          "  multiply(%0, 1073741824 /* ty=int64 */) /* ty=Tensor[(4), int64] */\n}\n").module()
    made = pass_named("simplify-algebra{inexact}").run(module)
    assert shown(made) == ["multiply"]
    (constant,) = (node for node in made.main().nodes if node.op.name == "constant")
    assert str(constant.type) == "s64[]"
    assert constant.attrs["literal"].value() == 1 << 31


def test_an_open_dimension() -> None:
    module = irscope.load("def @main(%x: Tensor[(?, 8), float32], %y: Tensor[(?, 8), float32]) {\n"
                          "  %0 = reshape(%x, newshape=[-1]);\n  %1 = reshape(%0, newshape=[4, -1]);\n  add(cast_like(%1, 1), cast(zeros_like(%y), dtype=\"int32\"))\n}\n")
    made = pass_named("simplify-algebra").run(module.module())
    assert shown(made) == ["reshape", "cast", "zeros_like", "cast", "add"]


def test_nothing_to_simplify_gives_the_same_module() -> None:
    module = irscope.load(f"def @main({X}) {{\n  add(tanh(%x), 2f)\n}}\n").module()
    assert pass_named("simplify-algebra").run(module) is module


@pytest.mark.parametrize("line", ["transpose(%x, axes=[0, 0, 7])", "layout_transform(%x, src_layout=\"??\", dst_layout=\"NC\")",
                                  "strided_slice(%x, begin=[\"a\", 0], end=[1, 2])", "clip(%x, a_min=\"low\", a_max=1f)"])
def test_attributes_of_the_wrong_kind_are_left_to_the_checker(line: str) -> None:
    """The text claims a type, so that the rules look at the call."""
    module = irscope.load(f"def @main({X}) {{\n  %0 = {line} /* ty=Tensor[(2, 8), int8] */;\n  %0\n}}\n").module()
    assert shown(pass_named("simplify-algebra").run(module)) == [line.partition("(")[0]]


@pytest.mark.parametrize("line", ["argmax(%1, axis=1)", "argmin(%1, axis=1)", "argsort(%1, axis=1)", 'cast(%1, dtype="int32")'])
def test_values_of_an_unknown_type_keep_what_reads_them(line: str) -> None:
    """The text claims the types of what is computed from them."""
    for first in ("my.quantised(%x)", "(%x, %x)"):
        for second, type in (("qnn.dequantize(%0, 2f, 3)", "float32"), ('cast(%0, dtype="int8")', "int8")):
            module = irscope.load(f"def @main({X}) {{\n  %0 = {first};\n  %1 = {second} /* ty=Tensor[(2, 8), {type}] */;\n"
                                  f"  {line} /* ty=Tensor[(2), int32] */\n}}\n").module()
            assert shown(pass_named("simplify-algebra").run(module)) == shown(module)
