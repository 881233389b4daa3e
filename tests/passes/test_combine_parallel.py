"""combine-parallel: which layers become one, how far the steps behind them come along, and when they must not."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import Module
from irscope.passes.manager import run_passes
from tests.passes.relay_runs import meaning_stays

DENSE = "%x: Tensor[(3, 4), float32], %a: Tensor[(5, 4), float32], %b: Tensor[(7, 4), float32], %c: Tensor[(5, 4), float32]"
CONV = ("%x: Tensor[(1, 4, 5, 5), float32], %a: Tensor[(3, 4, 1, 1), float32], %b: Tensor[(8, 4, 1, 1), float32], "
        "%p: Tensor[(3, 1, 1), float32], %q: Tensor[(8, 1, 1), float32]")
LAST = "%x: Tensor[(1, 5, 5, 4), float32], %a: Tensor[(1, 1, 4, 3), float32], %b: Tensor[(1, 1, 4, 8), float32]"
BATCH = "%x: Tensor[(2, 3, 4), float32], %a: Tensor[(2, 5, 4), float32], %b: Tensor[(2, 6, 4), float32]"
VECTORS = ", %u: Tensor[(5), float32], %v: Tensor[(7), float32], %w: Tensor[(1), float32], %s: float32, %t: float32, %r: Tensor[(3, 1), float32]"
NHWC = 'data_layout="NHWC", kernel_layout="HWIO"'


def after(signature: str, body: str, options: str = "min-branches=2") -> Module:
    reading = irscope.load(f"def @main({signature}) {{\n{body}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    module = reading.module()
    *_, last = run_passes(module, [f"combine-parallel{{{options}}}"])
    assert not last.broke, [f.message for f in last.broke]
    meaning_stays(module, last.after)
    return last.after


def ops(module: Module) -> list[str]:
    return [n.op.name for n in module.main().nodes if n.op.name not in ("parameter", "constant", "tuple", "get-tuple-element")]


def two(step: str, other: str | None = None) -> str:
    """Two dense layers of 5 and 7 units, a step behind each, and both results."""
    return (f"  %0 = nn.dense(%x, %a);\n  %1 = {step.format('%0')};\n  %2 = nn.dense(%x, %b);\n"
            f"  %3 = {(other or step).format('%2')};\n  (%1, %3)")


JOINED = ["concatenate", "nn.dense"]
CUT = ["strided_slice", "strided_slice"]


@pytest.mark.parametrize(("step", "other", "taken"), [
    ("nn.relu({})", None, ["nn.relu"]),
    ("clip({}, a_min=0f, a_max=6f)", None, ["clip"]),
    ("cast({}, dtype=\"float16\")", None, ["cast"]),
    ("add({}, %u)", "add({}, %v)", ["concatenate", "add"]),
    ("subtract(%u, {})", "subtract(%v, {})", ["concatenate", "subtract"]),
    ("less({}, %u)", "less({}, %v)", ["concatenate", "less"]),
    ("multiply({}, %s)", "multiply({}, %t)", ["expand_dims", "repeat", "expand_dims", "repeat", "concatenate", "multiply"]),
    ("multiply({}, %s)", None, ["multiply"]),
    ("multiply({}, 2f)", None, ["multiply"]),
    ("multiply({}, 2f)", "multiply({}, 3f)", ["expand_dims", "repeat", "expand_dims", "repeat", "concatenate", "multiply"]),
    ("add({}, %u)", "add({}, %w)", ["repeat", "concatenate", "add"]),
    ("add({}, %r)", None, ["add"]),
    ("nn.bias_add({}, %u)", "nn.bias_add({}, %v)", ["concatenate", "nn.bias_add"]),
    ("nn.prelu({}, %u)", "nn.prelu({}, %v)", ["concatenate", "nn.prelu"]),
    ("expand_dims({}, axis=0, num_newaxis=2)", None, ["expand_dims"]),
    ("expand_dims({}, axis=-1)", None, ["expand_dims"]),
])
def test_steps_that_come_along(step: str, other: str | None, taken: list[str]) -> None:
    assert ops(after(DENSE + VECTORS, two(step, other))) == [*JOINED, *taken, *CUT]


@pytest.mark.parametrize(("step", "other"), [
    ("nn.relu({})", "tanh({})"),
    ("clip({}, a_min=0f, a_max=6f)", "clip({}, a_min=0f, a_max=5f)"),
    ("add({}, %u)", "add(%v, {})"),
    ("add({0}, {0})", None),
    ("nn.softmax({})", None),
    ("reshape({}, newshape=[-1])", None),
    ("({},)", None),
    ("nn.bias_add({}, %m, axis=0)", "nn.bias_add({}, %n, axis=0)"),
    ("add({}, %e)", "add({}, %e)"),  # makes it larger
])
def test_steps_that_stay_behind(step: str, other: str | None) -> None:
    extra = ", %m: Tensor[(3), float32], %n: Tensor[(3), float32], %e: Tensor[(2, 1, 1), float32]"
    made = ops(after(DENSE + VECTORS + extra, two(step, other)))
    assert made[:3] == [*JOINED, CUT[0]] and made.count(CUT[0]) == 2


def test_a_step_whose_value_somebody_else_needs_stays() -> None:
    body = two("nn.relu({})").replace("(%1, %3)", "(%1, %3, %2)")
    assert ops(after(DENSE, body)) == [*JOINED, "strided_slice", "nn.relu", "strided_slice", "nn.relu"]


def test_convolutions_with_scale_bias_and_rectifier() -> None:
    body = ("  %0 = nn.conv2d(%x, %a);\n  %1 = multiply(%0, %p);\n  %2 = nn.relu(%1);\n"
            "  %3 = nn.conv2d(%x, %b);\n  %4 = multiply(%3, %q);\n  %5 = nn.relu(%4);\n  %6 = add(%5, %q);\n  (%2, %6)")
    made = after(CONV, body)
    assert ops(made) == ["concatenate", "nn.conv2d", "concatenate", "multiply", "nn.relu", *CUT, "add"]
    slices = [n.attrs["end"] for n in made.main().nodes if n.op.name == "strided_slice"]
    assert slices == [[-1, 3], [-1, 8]]


def test_channels_last_and_a_bias_that_is_computed_late() -> None:
    """What a later branch adds is written behind the earlier one's result; it depends on no layer, so it can be had before."""
    body = (f"  %0 = nn.conv2d(%x, %a, {NHWC});\n  %1 = exp(%u);\n  %2 = add(%0, %1);\n  %3 = tanh(%2);\n  %4 = sum(%3);\n"
            f"  %5 = nn.conv2d(%x, %b, {NHWC});\n  %6 = exp(%v);\n  %7 = negative(%6);\n  %8 = add(%5, %7);\n  (%4, %8, %6)")
    signature = LAST + ", %u: Tensor[(3), float32], %v: Tensor[(8), float32]"
    assert ops(after(signature, body)) == ["concatenate", "nn.conv2d", "exp", "exp", "negative", "concatenate", "add", "strided_slice", "tanh",
                                           "sum", "strided_slice"]


@pytest.mark.parametrize("bias", [
    "  %3 = add(%2, strided_slice(%1, begin=[0, 0], end=[3, 1], strides=[1, 1]));\n",  # waits for the first branch
    "  %3 = add(%2, nn.dense(%x, %k));\n",  # waits for a layer that comes later
])
def test_a_branch_that_waits_for_another_is_cut_before_that(bias: str) -> None:
    body = f"  %0 = nn.dense(%x, %a);\n  %1 = add(%0, %r);\n  %2 = nn.dense(%x, %b);\n{bias}  (%1, %3)"
    made = after(DENSE + VECTORS + ", %k: Tensor[(1, 4), float32]", body, "min-branches=2")
    assert ops(made).count("nn.dense") == 1 and ops(made).count("add") == 2


def test_weights_that_depend_on_a_branch_keep_their_layer() -> None:
    body = "  %0 = nn.dense(%x, %a);\n  %1 = nn.dense(%x, %c);\n  %2 = reshape(%0, newshape=[-1, 1]);\n  %3 = nn.dense(%x, concatenate((%2, %2, %2, %2), axis=1));\n  (%1, %3)"
    assert ops(after(DENSE, body)).count("nn.dense") == 2


@pytest.mark.parametrize(("step", "other", "taken"), [
    ("nn.relu({})", None, ["nn.relu"]),
    ("add({}, %u)", "add({}, %k)", ["expand_dims", "expand_dims", "stack", "add"]),
    ("add({}, %w)", None, ["add"]),
    ("multiply({}, %r)", "multiply({}, %l)", ["stack", "multiply"]),
])
def test_dense_layers_as_one_batched_product(step: str, other: str | None, taken: list[str]) -> None:
    extra = ", %k: Tensor[(5), float32], %l: Tensor[(3, 1), float32]"
    body = f"  %0 = nn.dense(%x, %a);\n  %1 = {step.format('%0')};\n  %2 = nn.dense(%x, %c);\n  %3 = {(other or step).format('%2')};\n  (%1, %3)"
    made = ops(after(DENSE + VECTORS + extra, body, "min-branches=2,to-batch"))
    assert made == ["stack", "stack", "nn.batch_matmul", *taken, "split", "squeeze", "squeeze"]


@pytest.mark.parametrize(("step", "other"), [("multiply({}, %s)", "multiply({}, %t)"), ("expand_dims({}, axis=0)", None),
                                             ("nn.bias_add({}, %u)", "nn.bias_add({}, %k)")])
def test_what_does_not_go_into_a_batched_product(step: str, other: str | None) -> None:
    body = f"  %0 = nn.dense(%x, %a);\n  %1 = {step.format('%0')};\n  %2 = nn.dense(%x, %c);\n  %3 = {(other or step).format('%2')};\n  (%1, %3)"
    made = ops(after(DENSE + VECTORS + ", %k: Tensor[(5), float32]", body, "min-branches=2,to-batch"))
    assert made[:6] == ["stack", "stack", "nn.batch_matmul", "split", "squeeze", made[5]]


def test_layers_of_different_sizes_are_not_stacked() -> None:
    assert ops(after(DENSE, two("nn.relu({})"), "min-branches=2,to-batch")) == ["nn.dense", "nn.relu", "nn.dense", "nn.relu"]


def test_batched_products_with_biases() -> None:
    body = "  %0 = nn.batch_matmul(%x, %a);\n  %1 = add(%0, %u);\n  %2 = nn.batch_matmul(%x, %b);\n  %3 = add(%2, %v);\n  (%1, %3)"
    signature = BATCH + ", %u: Tensor[(5), float32], %v: Tensor[(6), float32]"
    assert ops(after(signature, body)) == ["concatenate", "nn.batch_matmul", "concatenate", "add", *CUT]


def test_as_many_branches_as_asked_for() -> None:
    assert ops(after(DENSE, two("nn.relu({})"), "min-branches=3")) == ["nn.dense", "nn.relu", "nn.dense", "nn.relu"]


def test_what_is_combined_names_what_it_stands_for() -> None:
    made = after(DENSE, two("nn.relu({})"))
    dense = next(n for n in made.main().nodes if n.op.name == "nn.dense")
    assert sorted(o.op.name for o in dense.origin) == ["nn.dense", "nn.dense", "nn.relu", "nn.relu"]


def test_layers_of_open_shape_stay() -> None:
    reading = irscope.load("def @main(%x: Tensor[(?, 4), float32], %a: Tensor[(5, 4), float32], %b: Tensor[(7, 4), float32]) {\n"
                           "  (nn.dense(%x, %a), nn.dense(%x, %b))\n}\n")
    assert reading.ok, [f.message for f in reading.findings]
    *_, last = run_passes(reading.module(), ["combine-parallel{min-branches=2}"])
    assert ops(last.after) == ["nn.dense", "nn.dense"] and not last.broke
