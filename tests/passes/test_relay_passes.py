"""Each pass over Relay on the smallest program that shows it, and on one that it must leave alone."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import Module
from irscope.passes import pass_named
from irscope.passes.manager import run_passes
from irscope.source import UserError
from tests.passes.relay_runs import meaning_stays

LEAVES = ("parameter", "constant")
NORM = "%g: Tensor[(4), float32], %b: Tensor[(4), float32], %m: Tensor[(4), float32], %s: Tensor[(4), float32]"
X = "%x: Tensor[(2, 4, 6, 6), float32]"
W = "%w: Tensor[(4, 4, 3, 3), float32]"
POSITIVE = "  %0 = exp(%s);\n"
CONV = "  %1 = nn.conv2d(%x, %w, padding=[1, 1], channels=4, kernel_size=[3, 3]);\n"


def after(name: str, signature: str, body: str, rtol: float = 1e-4) -> Module:
    """The module after a pass; types hold and the numbers stay."""
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, [name])
    assert not last.broke, [f.message for f in last.broke]
    meaning_stays(module, last.after, rtol, rtol)
    return last.after


def ops(module: Module) -> list[str]:
    return [n.op.name for n in module.main().nodes if n.op.name not in LEAVES]


@pytest.mark.parametrize(("name", "signature", "body", "left"), [
    ("simplify-algebra", "%x: Tensor[(4), float32]", "  %0 = multiply(%x, 1f);\n  %1 = add(0f, %0);\n  %2 = subtract(%1, 0f);\n  tanh(%2)", ["tanh"]),
    ("simplify-algebra", "%x: Tensor[(4), float32]", "  %0 = subtract(0f, %x);\n  tanh(%0)", ["subtract", "tanh"]),
    ("simplify-algebra", "%x: Tensor[(2, 4), float32]",
     "  %0 = reshape(%x, newshape=[8]);\n  %1 = reshape(%0, newshape=[4, -1]);\n  %2 = transpose(%1, axes=[0, -1]);\n  nn.relu(nn.relu(%2))",
     ["reshape", "nn.relu"]),
    ("simplify-algebra", "%x: Tensor[(2, 4), float32]", "  %0 = reshape(%x, newshape=[8, 1]);\n  reshape(%0, newshape=[2, 0, 4])", ["reshape"]),
    ("cancel-transposes", "%x: Tensor[(2, 3, 4), float32]",
     "  %0 = transpose(%x, axes=[1, 2, 0]);\n  %1 = tanh(%0);\n  transpose(%1, axes=[2, 0, 1])", ["tanh"]),
    ("cancel-transposes", "%x: Tensor[(2, 3, 4), float32]", "  %0 = transpose(%x);\n  %1 = tanh(%0);\n  transpose(%1)", ["tanh"]),
    ("cancel-transposes", "%x: Tensor[(2, 3, 4), float32]", "  %0 = transpose(%x, axes=[-1, 0, 1]);\n  transpose(%0, axes=[1, -1, 0])", []),
    ("simplify-inference", "%x: Tensor[(2, 3, 4), float32], %g: Tensor[(3), float32], %m: Tensor[(3), float32], %v: Tensor[(3), float32]",
     "  %0 = nn.batch_norm(%x, %g, %g, %m, %v);\n  (%0.1, %0.2)", ["tuple"]),
    ("cancel-transposes", "%x: Tensor[(2, 3, 4), float32]", "  %0 = transpose(%x, axes=[1, 2, 0]);\n  transpose(%0, axes=[1, 2, 0])", ["transpose"]),
    ("cancel-transposes", "%x: Tensor[(2, 3, 4), float32]",
     "  %0 = transpose(%x, axes=[1, 2, 0]);\n  %1 = tanh(%0);\n  %2 = transpose(%1, axes=[2, 0, 1]);\n  (%1, %2)",
     ["transpose", "tanh", "transpose", "tuple"]),
    ("cancel-transposes", "%x: Tensor[(1, 8, 2, 2), float32]",
     '  %0 = layout_transform(%x, src_layout="NCHW", dst_layout="NHWC");\n  %1 = abs(%0);\n'
     '  layout_transform(%1, src_layout="NHWC", dst_layout="NCHW")', ["abs"]),
    ("move-cast", "%x: Tensor[(2, 3), float16]", '  %0 = cast(%x, dtype="float32");\n  %1 = transpose(%0, axes=[1, 0]);\n  tanh(%1)',
     ["transpose", "cast", "tanh"]),
    ("move-cast", "%x: Tensor[(2, 3), float32]", '  %0 = broadcast_to(%x, shape=[4, 2, 3]);\n  %1 = reshape(%0, newshape=[8, 3]);\n  cast(%1, dtype="float16")',
     ["cast", "broadcast_to", "reshape"]),
    ("move-cast", "%x: Tensor[(2, 3), float16]", '  %0 = cast(%x, dtype="float32");\n  %1 = transpose(%0, axes=[1, 0]);\n  (%0, %1)',
     ["cast", "transpose", "tuple"]),
    ("canonicalize-cast", "%x: Tensor[(4), float16]", '  %0 = cast(%x, dtype="float32");\n  %1 = exp(%0);\n  %2 = tanh(%0);\n  add(%1, %2)',
     ["cast", "exp", "cast", "tanh", "add"]),
    ("canonicalize-cast", "%x: Tensor[(4), float32]", '  %0 = cast(%x, dtype="float16");\n  %1 = exp(%0);\n  %2 = tanh(%0);\n  add(%1, %2)',
     ["cast", "exp", "tanh", "add"]),
    ("canonicalize-cast", "%x: Tensor[(4, 4), float16]",
     '  %0 = cast(%x, dtype="float32");\n  %1 = nn.dense(%0, %0);\n  %2 = tanh(%0);\n  %3 = add(%0, %1);\n  add(%2, %3)',
     ["cast", "nn.dense", "tanh", "cast", "add", "add"]),
    ("fast-math", "%x: Tensor[(2, 4), float32]", "  %0 = exp(%x);\n  %1 = tanh(%0);\n  %2 = erf(%1);\n  nn.softmax(%2, axis=0)",
     ["fast_exp", "fast_tanh", "fast_erf", "nn.fast_softmax"]),
    ("dynamic-to-static", "%x: Tensor[(2, 4), float32]",
     "  %0 = dyn.reshape(%x, [4, 2]);\n  %1 = dyn.tile(%0, [1, 2]);\n  %2 = dyn.strided_slice(%1, [0, 1], [4, 3], [1, 1]);\n"
     "  %3 = dyn.broadcast_to(%2, [3, 4, 2]);\n  dyn.squeeze(dyn.expand_dims(%3, 0), [0])",
     ["reshape", "tile", "strided_slice", "broadcast_to", "expand_dims", "squeeze"]),
    ("simplify-inference", "%x: Tensor[(2, 4), float32]", "  %0 = nn.dropout(%x);\n  tanh(%0.0)", ["tanh"]),
    ("simplify-inference", "%x: Tensor[(2, 4), float32], %g: Tensor[(4), float32], %b: Tensor[(4), float32]",
     "  nn.layer_norm(%x, %g, %b, epsilon=0.1f)", ["mean", "variance", "add", "sqrt", "subtract", "divide", "multiply", "add"]),
    ("simplify-inference", f"{X}, {NORM}", POSITIVE + "  %1 = nn.batch_norm(%x, %g, %b, %m, %0, center=False);\n  tanh(%1.0)",
     ["exp", "add", "sqrt", "divide", "multiply", "negative", "multiply", "expand_dims", "multiply", "expand_dims", "add", "tanh"]),
    ("fold-batch-norm", f"{X}, {W}, {NORM}", POSITIVE + CONV + "  %2 = nn.batch_norm(%1, %g, %b, %m, %0);\n  nn.relu(%2.0)",
     ["exp", "add", "sqrt", "divide", "multiply", "negative", "multiply", "add", "reshape", "multiply", "nn.conv2d", "nn.bias_add", "nn.relu"]),
    ("fold-batch-norm", f"{X}, {W}, {NORM}", POSITIVE + CONV + "  %2 = nn.batch_norm(%1, %g, %b, %m, %0);\n  add(%2.0, %1)",
     ["exp", "nn.conv2d", "nn.batch_norm", "get-tuple-element", "add"]),
    ("fold-constants", "%x: Tensor[(2), float32]", "  %0 = add([1f, 2f], [3f, 4f]);\n  %1 = multiply(2f, 3f);\n  multiply(add(%x, %0), %1)",
     ["add", "multiply"]),
    ("fold-constants", "%x: Tensor[(2), float32]", "  %0 = ([1f, 2f], [3f, 4f]);\n  %1 = concatenate(%0, axis=0);\n  concatenate((%x, %1), axis=0)",
     ["tuple", "concatenate"]),
    ("fold-constants", "%x: Tensor[(2), float32]", '  %0 = cast([1f, 2f], dtype="float16");\n  add(%x, cast(%0, dtype="float32"))', ["add"]),
    ("combine-parallel", "%x: Tensor[(3, 4), float32], %a: Tensor[(5, 4), float32], %b: Tensor[(6, 4), float32], %c: Tensor[(7, 4), float32]",
     "  %0 = nn.dense(%x, %a, units=5);\n  %1 = nn.dense(%x, %b, units=6);\n  %2 = nn.dense(%x, %c, units=7);\n  (%2, %0, %1)",
     ["tuple", "concatenate", "nn.dense", "strided_slice", "strided_slice", "strided_slice", "tuple"]),
    ("combine-parallel", "%x: Tensor[(3, 4), float32], %a: Tensor[(5, 4), float32], %b: Tensor[(6, 4), float32]",
     "  %0 = nn.dense(%x, %a, units=5);\n  %1 = nn.dense(%x, %b, units=6);\n  (%0, %1)", ["nn.dense", "nn.dense", "tuple"]),
    ("combine-parallel{min-branches=2}", f"{X}, {W}, %v: Tensor[(8, 4, 3, 3), float32]",
     CONV + "  %2 = nn.conv2d(%x, %v, padding=[1, 1], channels=8, kernel_size=[3, 3]);\n  (tanh(%1), %2)",
     ["tuple", "concatenate", "nn.conv2d", "strided_slice", "strided_slice", "tanh", "tuple"]),
    ("combine-parallel{min-branches=2}", f"{X}, {W}, %v: Tensor[(8, 4, 3, 3), float32]",
     CONV + "  %2 = nn.conv2d(%x, %v, padding=[2, 2], channels=8, kernel_size=[3, 3]);\n  (%1, %2)", ["nn.conv2d", "nn.conv2d", "tuple"]),
    ("combine-parallel{min-branches=2}", "%x: Tensor[(2, 3, 8), float32], %a: Tensor[(2, 3, 8), float32], %b: Tensor[(2, 5, 8), float32]",
     "  %0 = nn.batch_matmul(%x, %a);\n  %1 = nn.batch_matmul(%x, %b);\n  (%0, %1)",
     ["tuple", "concatenate", "nn.batch_matmul", "strided_slice", "strided_slice", "tuple"]),
    ("convert-layout", f"{X}, {W}", CONV + "  %2 = nn.relu(%1);\n  %3 = add(%2, 1f);\n  nn.max_pool2d(add(%3, %1), pool_size=[2, 2])",
     ["layout_transform", "layout_transform", "nn.conv2d", "nn.relu", "add", "add", "nn.max_pool2d", "layout_transform"]),
    ("convert-layout", f"{X}, {W}, %b: Tensor[(4), float32]",
     CONV + "  %2 = nn.bias_add(%1, %b);\n  %3 = concatenate((%1, %2), axis=1);\n  sum(%3, axis=[1])",
     ["layout_transform", "layout_transform", "nn.conv2d", "nn.bias_add", "tuple", "concatenate", "sum"]),
    ("convert-layout", f"{X}, {W}", "  %0 = nn.conv2d(%x, %w, channels=4, kernel_size=[3, 3]);\n  %1 = nn.conv2d(%0, %w, channels=4, kernel_size=[3, 3]);\n  tanh(%1)",
     ["layout_transform", "layout_transform", "nn.conv2d", "nn.conv2d", "tanh", "layout_transform"]),
    ("convert-layout{layout=NCHW}", "%x: Tensor[(1, 6, 6, 4), float32], %w: Tensor[(3, 3, 1, 4), float32]",
     '  nn.conv2d(%x, %w, groups=4, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO")',
     ["layout_transform", "layout_transform", "nn.conv2d", "layout_transform"]),
    ("convert-layout", "%x: Tensor[(2, 3), float32]", "  tanh(%x)", ["tanh"]),
])
def test_what_is_left(name: str, signature: str, body: str, left: list[str]) -> None:
    assert ops(after(name, signature, body)) == left


def test_dense_layers_take_a_normalisation_too() -> None:
    made = after("fold-batch-norm", f"%x: Tensor[(3, 5), float32], %w: Tensor[(4, 5), float32], {NORM}",
                 POSITIVE + "  %1 = nn.dense(%x, %w, units=4);\n  %2 = nn.batch_norm(%1, %g, %b, %m, %0);\n  tanh(%2.0)")
    assert ops(made)[-3:] == ["nn.dense", "nn.bias_add", "tanh"]


def test_grouped_convolutions_in_other_layouts_take_a_normalisation_too() -> None:
    made = after("fold-batch-norm", f"%x: Tensor[(2, 6, 6, 4), float32], %w: Tensor[(3, 3, 2, 4), float32], {NORM}",
                 POSITIVE + '  %1 = nn.conv2d(%x, %w, groups=2, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");\n'
                 "  %2 = nn.batch_norm(%1, %g, %b, %m, %0, axis=3);\n  tanh(%2.0)")
    assert ops(made)[-3:] == ["nn.conv2d", "nn.bias_add", "tanh"]


def test_infer_types_fills_weights_and_results() -> None:
    made = after("infer-types", "%x: Tensor[(1, 8), float32], %w: Tensor[(4, 8), float32]", "  nn.dense(%x, %w, units=4)")
    assert [str(n.type) for n in made.main().nodes] == ["f32[1,8]", "f32[4,8]", "f32[1,4]"]
    open_ = irscope.load("def @main(%x: Tensor[(1, 8), float32], %w) {\n  nn.dense(%x, %w, units=4)\n}\n").module()
    *_, last = run_passes(open_, ["infer-types"])
    assert str(last.after.main().params[1].type) == "f32[4,8]"


def test_heavy_operators_work_on_halves_and_delicate_ones_do_not() -> None:
    body = CONV + "  %2 = nn.relu(%1);\n  %3 = nn.softmax(%2, axis=1);\n  add(%3, %2)"
    made = after("to-mixed-precision", f"{X}, {W}", body, 2e-2)
    types = {n.op.name: str(n.type)[:3] for n in made.main().nodes}
    assert types["nn.relu"] == "f16" and types["nn.softmax"] == "f32" and str(made.main().result().type) == "f32[2,4,6,6]"
    conv = next(n for n in made.main().nodes if n.op.name == "nn.conv2d")
    assert conv.attrs["out_dtype"] == "float32" and {str(o.type)[:3] for o in conv.operands} == {"f16"}


def test_bfloat16_is_the_other_half() -> None:
    made = after("to-mixed-precision{dtype=bfloat16}", "%x: Tensor[(2, 4), float32], %w: Tensor[(3, 4), float32]", "  nn.dense(%x, %w, units=3)", 5e-2)
    assert ops(made) == ["cast", "cast", "nn.dense"]


@pytest.mark.parametrize(("text", "words"), [
    ("convert-layout{layout=NWHC}", "no layout"), ("to-mixed-precision{dtype=int8}", "makes no"), ("fuse-ops{max-dept=3}", "no option"),
    ("fuse-ops{max-depth=x}", "must be a int"), ("fuse-ops{link-params=maybe}", "true or false"), ("remove-dead{x=1}", "no option"),
])
def test_options_that_make_no_sense(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        pass_named(text)


def composites(signature: str, body: str) -> list[str]:
    made = after("fuse-patterns", signature, body)
    return [str(n.attrs["Composite"]) for n in made.main().nodes if n.op.name == "fn"]


@pytest.mark.parametrize(("body", "names"), [
    (CONV + "  %2 = nn.bias_add(%1, %g);\n  nn.relu(%2)", ["conv2d_bias_add_relu"]),
    (POSITIVE + CONV + "  %2 = nn.batch_norm(%1, %g, %b, %m, %0);\n  %3 = add(%x, %2.0);\n  nn.relu(%3)", ["conv2d_batch_norm_add_relu"]),
    (CONV + "  %2 = tanh(%1);\n  add(%2, %1)", []),
    (CONV + "  %2 = nn.bias_add(%1, %g);\n  %3 = nn.relu(%2);\n  add(%3, %2)", ["conv2d_bias_add"]),
    (CONV + "  %2 = nn.conv2d(%x, %w, padding=[1, 1], channels=4, kernel_size=[3, 3]);\n  %3 = add(%1, %2);\n  sigmoid(%3)", ["conv2d_add_sigmoid"]),
    ("  nn.relu(%x)", []),
])
def test_patterns_become_functions_with_names(body: str, names: list[str]) -> None:
    assert composites(f"{X}, {W}, {NORM}", body) == names
