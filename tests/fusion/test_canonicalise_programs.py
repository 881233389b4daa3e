"""Small programs that XLA's rewriting changes, or must not change: what is left of them, and that they mean the same."""
from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from irscope.analysis.reference import results
from irscope.api import load
from irscope.fusion.canonicalise import canonicalise, early_signs, may_be_early, run_cpu
from irscope.fusion.canonicalise.computation import without_layout
from irscope.fusion.canonicalise.pipeline import run_gpu
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.releases import CPU_0_10_2, LATEST
from irscope.graph import DynamicDim, Layout, Module, Node, TensorType, TupleType
from irscope.graph.dtypes import F32
from irscope.ops import hlo
from tests.fusion.test_canonicalise_rules import drawn, operators
from tests.fusion.xla_texts import BOTH

ADD = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] add(p, q) }\n"


def read(instructions: str, header: str = "") -> Module:
    reading = load(f"HloModule m\n{header}\nENTRY e {{\n{instructions}\n}}\n")
    assert reading.ok, [f.message for f in reading.findings]
    return reading.module()


def on_cpu(instructions: str, header: str = "") -> Module:
    """The program as XLA rewrites it for a CPU; it gives the same numbers."""
    module = read(instructions, header)
    made = canonicalise(module, partial(run_cpu, rewriting=CPU_0_10_2.rewriting)).module
    inputs = [drawn(param.type) for param in module.main().params]
    for one, other in zip(results(module, inputs), results(made, inputs), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-6)
    return made


def on_gpu(instructions: str) -> Module:
    """The program as XLA rewrites it for an H100."""
    return canonicalise(read(instructions), lambda entry, kept: run_gpu(entry, DEVICES["h100"], kept)).module


COUNTED = """
cond { t = (s32[], s32[], f32[4]) parameter(0)
       i = s32[] get-tuple-element(t), index=0
       unread = s32[] get-tuple-element(t), index=1
       n = s32[] constant(7)
       ROOT c = pred[] compare(i, n), direction=LT }
body { t = (s32[], s32[], f32[4]) parameter(0)
       i = s32[] get-tuple-element(t), index=0
       j = s32[] get-tuple-element(t), index=1
       x = f32[4] get-tuple-element(t), index=2
       one = s32[] constant(1)
       two = s32[] constant(2)
       ni = s32[] add(i, one)
       nj = s32[] add(j, {step})
       f = f32[] convert(j)
       fb = f32[4] broadcast(f), dimensions={{}}
       nx = f32[4] add(x, fb)
       ROOT r = (s32[], s32[], f32[4]) tuple(ni, nj, nx) }}
"""
LOOP = """
    x = f32[4] parameter(0)
    z = s32[] constant(0)
    y = s32[] constant({start})
    s = (s32[], s32[], f32[4]) tuple(z, y, x)
    w = (s32[], s32[], f32[4]) while(s), condition=cond, body=body
    a = f32[4] get-tuple-element(w), index=2
    j = s32[] get-tuple-element(w), index=1
    k = f32[] convert(j)
    kb = f32[4] broadcast(k), dimensions={{}}
    ROOT r = f32[4] add(a, kb)"""


def carried(made: Module) -> int:
    """How many values the loop of a program carries."""
    [loop] = [node for node in made.main().nodes if node.op is hlo.while_]
    assert isinstance(loop.type, TupleType)
    return len(loop.type.elements)


@pytest.mark.parametrize(("start", "step", "count"), [("0", "one", 2), ("1", "one", 3), ("0", "two", 3)])
def test_values_that_start_and_change_alike_are_carried_once(start: str, step: str, count: int) -> None:
    header = COUNTED.replace("{step}", step).replace("{{", "{").replace("}}", "}")
    assert carried(on_cpu(LOOP.format(start=start), header)) == count


def test_a_loop_goes_on_by_a_truth_value_that_it_carries() -> None:
    header = """
cond { t = (pred[], s32[], f32[4]) parameter(0)
       ROOT c = pred[] get-tuple-element(t), index=0 }
body { t = (pred[], s32[], f32[4]) parameter(0)
       i = s32[] get-tuple-element(t), index=1
       x = f32[4] get-tuple-element(t), index=2
       one = s32[] constant(1)
       four = s32[] constant(4)
       n = s32[] add(i, one)
       g = pred[] compare(n, four), direction=LT
       d = f32[4] add(x, x)
       ROOT r = (pred[], s32[], f32[4]) tuple(g, n, d) }
"""
    assert carried(on_cpu("""
        x = f32[4] parameter(0)
        z = s32[] constant(0)
        g = pred[] constant(true)
        s = (pred[], s32[], f32[4]) tuple(g, z, x)
        w = (pred[], s32[], f32[4]) while(s), condition=cond, body=body
        ROOT a = f32[4] get-tuple-element(w), index=2""", header)) == 3


def test_what_a_loop_only_takes_apart_is_not_carried() -> None:
    """The condition names the sum, but reads nothing of it."""
    header = COUNTED.replace("{step}", "one").replace("{{", "{").replace("}}", "}").replace("add(x, fb)", "add(x, x)")
    text = LOOP.format(start="5").partition("j = s32[]")[0] + "ROOT r = f32[4] negate(a)"
    assert carried(on_cpu(text, header)) == 2


BRANCHES = """
one { p = f32[4] parameter(0)
      e = f32[4] exponential(p)
      c = f32[4] cosine(p)
      ROOT r = (f32[4], f32[4], f32[4]) tuple(e, c, e) }
two { p = f32[4] parameter(0)
      e = f32[4] sine(p)
      c = f32[4] tanh(p)
      ROOT r = (f32[4], f32[4], f32[4]) tuple(e, c, LAST) }
"""


@pytest.mark.parametrize(("last", "count"), [("e", 2), ("c", 3)])
def test_what_all_branches_give_twice_is_given_once(last: str, count: int) -> None:
    made = on_cpu("""
        x = f32[4] parameter(0)
        i = s32[] parameter(1)
        c = (f32[4], f32[4], f32[4]) conditional(i, x, x), branch_computations={one, two}
        a = f32[4] get-tuple-element(c), index=0
        b = f32[4] get-tuple-element(c), index=1
        d = f32[4] get-tuple-element(c), index=2
        s = f32[4] add(a, b)
        ROOT r = f32[4] multiply(s, d)""", BRANCHES.replace("LAST", last))
    [branch] = [node for node in made.main().nodes if node.op is hlo.conditional]
    assert isinstance(branch.type, TupleType) and len(branch.type.elements) == count


@pytest.mark.parametrize(("number", "kept"), [("parameter(1)", True), ("constant(0)", False), ("constant(1)", False), ("constant(9)", False)])
def test_a_branch_is_chosen_by_a_constant_alone(number: str, kept: bool) -> None:
    made = on_cpu(f"x = f32[4] parameter(0)\n i = s32[] {number}\n c = (f32[4], f32[4], f32[4]) conditional(i, x, x), "
                  "branch_computations={one, two}\n a = f32[4] get-tuple-element(c), index=0\n ROOT r = f32[4] negate(a)",
                  BRANCHES.replace("LAST", "e"))
    assert ("conditional" in operators(made)) == kept
    assert kept or operators(made) == [*["exponential"] * ("(0)" in number), "negate", *["sine"] * ("(0)" not in number)]


def test_a_branch_that_acts_is_not_chosen_beforehand() -> None:
    header = """
one { p = f32[4] parameter(0)
      ROOT e = f32[4] custom-call(p), custom_call_target="tell", custom_call_has_side_effect=SIDE }
two { p = f32[4] parameter(0)
      ROOT e = f32[4] negate(p) }
"""
    for acts in ("true", "false"):
        made = canonicalise(read("x = f32[4] parameter(0)\n i = s32[] constant(0)\n"
                                 "ROOT c = f32[4] conditional(i, x, x), branch_computations={one, two}", header.replace("SIDE", acts))).module
        assert ("conditional" in operators(made)) == (acts == "true")


PROGRAMS: list[tuple[str, str, str, list[str]]] = [
    ("an outer product stays before its transpose", "", """
        x = f32[4] parameter(0)
        y = f32[5] parameter(1)
        d = f32[4,5] dot(x, y), lhs_contracting_dims={}, rhs_contracting_dims={}
        t = f32[5,4] transpose(d), dimensions={1,0}
        ROOT n = f32[5,4] cosine(t)""", ["broadcast", "broadcast", "copy", "cosine", "multiply", "transpose"]),
    ("a reshape and a transpose do not move below their sum together", "", """
        x = f32[2,6] parameter(0)
        y = f32[4,3] parameter(1)
        r = f32[3,4] reshape(x)
        t = f32[3,4] transpose(y), dimensions={1,0}
        a = f32[3,4] add(r, t)
        ROOT n = f32[3,4] cosine(a)""", ["add", "bitcast", "copy", "cosine", "transpose"]),
    ("two transposes alike move below their sum", "", """
        x = f32[4,3] parameter(0)
        y = f32[4,3] parameter(1)
        s = f32[3,4] transpose(x), dimensions={1,0}
        t = f32[3,4] transpose(y), dimensions={1,0}
        a = f32[3,4] add(s, t)
        ROOT n = f32[3,4] cosine(a)""", ["add", "copy", "cosine", "transpose"]),
    ("windows of one element, padded, are padded sums", ADD, """
        x = f32[4,5] parameter(0)
        b = f32[] parameter(1)
        w = f32[7,5] reduce-window(x, b), window={size=1x1 pad=1_2x0_0}, to_apply=add
        ROOT n = f32[7,5] cosine(w)""", ["add", "broadcast", "cosine", "pad"]),
    ("a map to one of its operands is that operand", "second { p = f32[] parameter(0)\n ROOT q = f32[] parameter(1) }\n", """
        x = f32[4,5] parameter(0)
        y = f32[4,5] parameter(1)
        m = f32[4,5] map(x, y), dimensions={0,1}, to_apply=second
        ROOT n = f32[4,5] cosine(m)""", ["cosine"]),
    ("a constant factor goes to the smaller array", "", """
        a = f32[4,5] parameter(0)
        b = f32[5] parameter(1)
        c = f32[] constant(3)
        cb = f32[4,5] broadcast(c), dimensions={}
        m = f32[4,5] multiply(a, cb)
        bb = f32[4,5] broadcast(b), dimensions={1}
        ROOT r = f32[4,5] multiply(m, bb)""", ["broadcast", "broadcast", "multiply", "multiply"]),
    ("a sum of repeated rows is repeated less often", ADD, """
        x = f32[5] parameter(0)
        z = f32[] parameter(1)
        b = f32[4,5] broadcast(x), dimensions={1}
        r = f32[5] reduce(b, z), dimensions={0}, to_apply=add
        ROOT n = f32[5] cosine(r)""", ["add", "broadcast", "broadcast", "cosine", "multiply"]),
    ("places in one vector stay where a slice or an update has them", "", """
        x = f32[6,8] parameter(0)
        i = s32[2] parameter(1)
        s = f32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}
        n = f32[2,3] cosine(s)
        ROOT r = f32[6,8] dynamic-update-slice(x, n, i)""", ["cosine", "dynamic-slice", "dynamic-update-slice"]),
    ("a repeated place is no repeated value", "", """
        x = f32[6,8] parameter(0)
        k = s32[] parameter(1)
        i = s32[2] broadcast(k), dimensions={}
        ROOT s = f32[2,3] dynamic-slice(x, i), dynamic_slice_sizes={2,3}""", ["broadcast", "dynamic-slice"]),
    ("a repeated value in reverse order is a repeated value", "", """
        v = f32[] parameter(0)
        b = f32[6,8] broadcast(v), dimensions={}
        ROOT r = f32[6,8] reverse(b), dimensions={0}""", ["broadcast"]),
    ("repeated values in order are repeated values", "less { p = f32[] parameter(0)\n q = f32[] parameter(1)\n "
     "ROOT s = pred[] compare(p, q), direction=LT }\n", """
        v = f32[] parameter(0)
        b = f32[6,8] broadcast(v), dimensions={}
        ROOT r = f32[6,8] sort(b), dimensions={0}, to_apply=less""", ["broadcast"]),
    ("a piece of a repeated value is repeated", "", """
        v = f32[] parameter(0)
        i = s32[] parameter(1)
        b = f32[6,8] broadcast(v), dimensions={}
        s = f32[2,3] dynamic-slice(b, i, i), dynamic_slice_sizes={2,3}
        t = f32[2,3] slice(b), slice={[0:2], [4:7]}
        a = f32[2,3] multiply(s, t)
        ROOT n = f32[2,3] cosine(a)""", ["broadcast", "cosine", "multiply"]),
]


@pytest.mark.parametrize(("header", "instructions", "left"), [p[1:] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS])
def test_a_program_is_rewritten(header: str, instructions: str, left: list[str]) -> None:
    assert operators(on_cpu(instructions, header)) == left


def test_a_sum_of_all_numbers_that_were_repeated_along_one_axis_only_is_a_sum() -> None:
    made = on_cpu("x = f32[5] parameter(0)\n z = f32[] parameter(1)\n b = f32[4,5] broadcast(x), dimensions={1}\n"
                  "ROOT r = f32[] reduce(b, z), dimensions={0,1}, to_apply=add", ADD)
    assert "reduce" in operators(made)


@pytest.mark.parametrize(("line", "inputs"), [
    ("reduce-window(x, y, z, z), window={size=8 pad=7_0}", ""),
    ("scatter(x, y, i, u, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
     "i = s32[3,1] parameter(2)\n u = f32[3] parameter(3)\n"),
])
def test_what_gives_several_results_at_once_stays(line: str, inputs: str) -> None:
    made = on_cpu(f"""
        x = f32[8] parameter(0)
        y = f32[8] parameter(1)
        {inputs}
        z = f32[] constant(0)
        w = (f32[8], f32[8]) {line}, to_apply=both
        a = f32[8] get-tuple-element(w), index=0
        b = f32[8] get-tuple-element(w), index=1
        ROOT r = f32[8] multiply(a, b)""", BOTH)
    assert operators(made) == sorted([line.partition("(")[0], "get-tuple-element", "get-tuple-element", "multiply"])


def test_a_release_lacks_some_identities() -> None:
    """A product of exponentials is the exponential of a sum up to jaxlib 0.10."""
    text = "x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n a = f32[4] exponential(x)\n b = f32[4] exponential(y)\nROOT r = f32[4] multiply(a, b)"
    assert operators(on_cpu(text)) == ["add", "exponential"]
    latest = canonicalise(read(text), partial(run_cpu, rewriting=LATEST.rewriting)).module
    assert operators(latest) == ["exponential", "exponential", "multiply"]


@pytest.mark.parametrize(("window", "called"), [
    ("size=3x3 pad=1_1x1_1", True), ("size=3x3 pad=1_1x1_1 rhs_reversal=1x1", False), ("size=3x3 pad=1_1x1_1 lhs_dilate=2x2", False)])
def test_the_library_of_a_cpu_convolves_with_plain_windows(window: str, called: bool) -> None:
    size = 15 if "lhs" in window else 8
    made = canonicalise(read(f"x = f32[2,8,8,32] parameter(0)\n w = f32[3,3,32,32] parameter(1)\n"
                             f"ROOT c = f32[2,{size},{size},32] convolution(x, w), window={{{window}}}, dim_labels=b01f_01io->b01f")).module
    assert (made.main().result().op is hlo.fusion) == called


# ---------------------------------------------------------------- cuDNN


def call(made: Module) -> Node:
    [found] = [node for node in made.main().nodes if node.op is hlo.custom_call]
    return found


def target(made: Module) -> str:
    return str(call(made).attrs["custom_call_target"])


def convolved(filter_: str, window: str, result: str, image: str = "2,8,8,4") -> Module:
    """A convolution of ``w``, the last of ``filter_``, with an image; the features are last."""
    return on_gpu(f"g = f32[{image}] parameter(0)\n {filter_}\n ROOT c = f32[{result}] convolution(g, w), window={{{window}}}, "
                  "dim_labels=b01f_01oi->b01f")


def test_a_reversed_filter_is_a_gradient_and_cudnn_reverses_it_itself() -> None:
    made = convolved("v = f32[3,3,16,4] parameter(1)\n w = f32[3,3,16,4] reverse(v), dimensions={0,1}", "size=3x3 pad=1_1x1_1", "2,8,8,16")
    assert target(made) == "__cudnn$convBackwardInput" and "reverse" not in operators(made)
    image, weights = call(made).operands
    assert image.op is hlo.parameter and weights.op is hlo.transpose and weights.operands[0].op is hlo.parameter


def test_a_filter_that_is_reversed_along_one_axis_is_a_filter() -> None:
    made = convolved("v = f32[3,3,16,4] parameter(1)\n w = f32[3,3,16,4] reverse(v), dimensions={0}", "size=3x3 pad=1_1x1_1", "2,8,8,16")
    assert target(made) == "__cudnn$convForward" and "reverse" in operators(made)


@pytest.mark.parametrize(("size", "image", "dilated", "kind"), [
    ("1x1", "2,8,8,4", "2x2", "BackwardInput"), ("1x1", "2,8,8,4", "1x1", "Forward"), ("2x2", "2,8,8,4", "2x2", "Forward")])
def test_an_image_that_is_spread_under_one_element_is_a_gradient(size: str, image: str, dilated: str, kind: str) -> None:
    wide = (15 if dilated == "2x2" else 8) - int(size[0]) + 1
    made = convolved(f"w = f32[{size.replace('x', ',')},16,4] parameter(1)", f"size={size} lhs_dilate={dilated}", f"2,{wide},{wide},16", image)
    assert target(made) == f"__cudnn$conv{kind}"


@pytest.mark.parametrize(("size", "pad", "wide", "kind"), [
    (6, "0_0", 3, "BackwardFilter"), (6, "1_1", 5, "BackwardFilter"), (4, "0_0", 5, "Forward"), (5, "0_0", 4, "BackwardFilter"),
    (4, "-1_-1", 3, "Forward")])
def test_a_window_larger_than_its_result_is_a_gradient_for_the_filter(size: int, pad: str, wide: int, kind: str) -> None:
    made = convolved(f"w = f32[{size},{size},16,4] parameter(1)", f"size={size}x{size} pad={pad}x{pad}", f"2,{wide},{wide},16")
    assert target(made) == f"__cudnn$conv{kind}"


def test_a_call_takes_in_a_bias_and_one_more_array() -> None:
    made = on_gpu("""
        x = f32[2,8,8,4] parameter(0)
        w = f32[3,3,4,16] parameter(1)
        b = f32[16] parameter(2)
        s = f32[2,8,8,16] parameter(3)
        u = f32[2,8,8,16] parameter(4)
        c = f32[2,8,8,16] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
        bb = f32[2,8,8,16] broadcast(b), dimensions={3}
        d = f32[2,8,8,16] add(c, bb)
        e = f32[2,8,8,16] add(d, s)
        f = f32[2,8,8,16] add(e, u)
        ROOT r = f32[2,8,8,16] cosine(f)""")
    assert operators(made) == ["add", "cosine", "custom-call", "get-tuple-element", "transpose"]
    assert [o.name for o in call(made).operands][2:] == ["b", "s"] and target(made) == "__cudnn$convBiasActivationForward"


@pytest.mark.parametrize(("features", "value", "sunk"), [
    (16, "b = f32[16] parameter(2)\n y = f32[2,16,8,8] broadcast(b), dimensions={1}", True),
    (16, "b = f32[16,8] parameter(2)\n y = f32[2,16,8,8] broadcast(b), dimensions={1,2}", False),
    (16, "y = f32[2,16,8,8] parameter(2)", False)])
def test_what_reads_a_call_works_in_its_layout_if_it_can(features: int, value: str, sunk: bool) -> None:
    """The features of the call's result are last in memory: one number for each of them can be repeated there in any order."""
    made = on_gpu(f"""
        x = f32[2,4,8,8] parameter(0)
        w = f32[{features},4,3,3] parameter(1)
        {value}
        c = f32[2,{features},8,8] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=bf01_oi01->bf01
        d = f32[2,{features},8,8] multiply(c, y)
        ROOT r = f32[2,{features},8,8] cosine(d)""")
    assert (made.main().result().op is hlo.transpose) == sunk


def test_the_layout_of_one_feature_is_any() -> None:
    made = on_gpu("""
        x = f32[2,4,8,8] parameter(0)
        w = f32[1,4,3,3] parameter(1)
        y = f32[2,1,8,8] parameter(2)
        c = f32[2,1,8,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01
        ROOT d = f32[2,1,8,8] multiply(c, y)""")
    assert operators(made) == ["bitcast", "custom-call", "get-tuple-element", "multiply", "transpose", "transpose"]


# ---------------------------------------------------------------- which texts are rewritten


EARLY = "HloModule m, entry_computation_layout={{(f32[4]{{0}})->f32[4]{{0}}}}\nENTRY e {{\n x = f32[4]{{0}} parameter(0)\n {0}\n}}\n"


def test_the_name_of_a_dump_says_that_it_is_early() -> None:
    text = EARLY.format("ROOT n = f32[4]{0} negate(x)")
    assert early_signs(load(text, name="module_0001.jit_f.before_optimizations.txt").module()) == ["the name of the dump"]
    assert early_signs(load(text, name="module_0001.jit_f.txt").module()) == []
    assert not may_be_early(load(text, name="module_0001.before_fusion.before_optimizations.txt").module())


def test_annotations_of_sharding_are_early_on_a_gpu() -> None:
    module = load(EARLY.format('s = f32[4]{0} custom-call(x), custom_call_target="Sharding"\n ROOT n = f32[4]{0} negate(s)')).module()
    other = load(EARLY.format('s = f32[4]{0} custom-call(x), custom_call_target="mine"\n ROOT n = f32[4]{0} negate(s)')).module()
    assert early_signs(module, on_gpu=True) == ["sharding annotations"]
    assert early_signs(module) == early_signs(other, on_gpu=True) == []


def test_a_translated_text_is_always_early() -> None:
    module = load("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.negate %x : tensor<4xf32>\n"
                  "  return %0 : tensor<4xf32>\n}\n").module()
    assert may_be_early(module) and early_signs(module) == ["StableHLO module"]


def test_a_type_without_layout_keeps_its_sizes() -> None:
    fixed, laid_out = TensorType(F32, (4, 8)), TensorType(F32, (4, 8), Layout((0, 1)))
    bounded = TensorType(F32, (DynamicDim("n", 4), 8))
    assert without_layout(laid_out) == without_layout(fixed) == fixed
    assert without_layout(TensorType(F32, (DynamicDim("n", 4), 8), Layout((0, 1)))) == without_layout(bounded) == bounded
    assert without_layout(TupleType((laid_out, TupleType((laid_out,))))) == TupleType((fixed, TupleType((fixed,))))


def test_a_rewritten_module_is_shown_shortly() -> None:
    made = canonicalise(read("x = f32[4] parameter(0)\n ROOT n = f32[4] negate(x)"))
    assert made.nodes and "nodes=" not in repr(made)
