"""Texts of every shape run as code and agree with the reference: maps, rows, reductions, places, views, several results."""
from __future__ import annotations

import numpy as np
import pytest

import irscope
from irscope.lower.program import Copy, Launch
from tests.lower import running
from tests.lower.whole import ADD, MAX, check, entry, templates

SOFTMAX = """
    x = f32[5,37] parameter(0)
    low = f32[] constant(-inf)
    m = f32[5] reduce(x, low), dimensions={1}, to_apply=most
    mb = f32[5,37] broadcast(m), dimensions={0}
    d = f32[5,37] subtract(x, mb)
    e = f32[5,37] exponential(d)
    zero = f32[] constant(0)
    s = f32[5] reduce(e, zero), dimensions={1}, to_apply=sum
    sb = f32[5,37] broadcast(s), dimensions={0}
    ROOT r = f32[5,37] divide(e, sb)
"""

LAYER_NORM = """
    x = f32[2,3,64] parameter(0)
    g = f32[64] parameter(1)
    zero = f32[] constant(0)
    n = f32[] constant(64)
    nb = f32[2,3] broadcast(n), dimensions={}
    s = f32[2,3] reduce(x, zero), dimensions={2}, to_apply=sum
    mean = f32[2,3] divide(s, nb)
    mb = f32[2,3,64] broadcast(mean), dimensions={0,1}
    c = f32[2,3,64] subtract(x, mb)
    q = f32[2,3,64] multiply(c, c)
    v = f32[2,3] reduce(q, zero), dimensions={2}, to_apply=sum
    var = f32[2,3] divide(v, nb)
    eps = f32[] constant(1e-5)
    epsb = f32[2,3] broadcast(eps), dimensions={}
    shifted = f32[2,3] add(var, epsb)
    i = f32[2,3] rsqrt(shifted)
    ib = f32[2,3,64] broadcast(i), dimensions={0,1}
    y = f32[2,3,64] multiply(c, ib)
    gb = f32[2,3,64] broadcast(g), dimensions={2}
    ROOT r = f32[2,3,64] multiply(y, gb)
"""


def test_softmax_is_one_kernel_over_rows() -> None:
    model = check(entry(SOFTMAX, ADD + MAX))
    assert templates(model) == ["rows"]


def test_layer_norm_is_one_kernel_over_rows() -> None:
    model = check(entry(LAYER_NORM, ADD))
    assert templates(model) == ["rows"]


@pytest.mark.parametrize("shape", ["7", "16", "33", "3,5", "2,3,17", "4,1,16", "1", "64,3", "5000"])
def test_pointwise_chains_of_every_length(shape: str) -> None:
    model = check(entry(f"""
        x = f32[{shape}] parameter(0)
        y = f32[{shape}] parameter(1)
        a = f32[{shape}] add(x, y)
        t = f32[{shape}] tanh(a)
        k = f32[] constant(2.5)
        kb = f32[{shape}] broadcast(k), dimensions={{}}
        m = f32[{shape}] multiply(t, kb)
        c = pred[{shape}] compare(m, y), direction=LT
        ROOT r = f32[{shape}] select(c, m, x)"""))
    assert templates(model) == ["map"]


@pytest.mark.parametrize(("shape", "reduced", "result"), [
    ("6,40", "1", "6"), ("6,40", "0", "40"), ("6,40", "0,1", ""), ("3,4,50", "1", "3,50"), ("3,4,50", "0,1", "50"), ("3,4,50", "0,2", "4"),
    ("3,4,50", "1,2", "3"), ("4,1,9", "1", "4,9"), ("2,3,4,5", "0,2", "3,5"), ("2000", "0", ""), ("5,3", "1", "5"), ("70,200", "0", "200"),
])
@pytest.mark.parametrize("kind", ["sum", "most"])
def test_reductions_over_any_axes(shape: str, reduced: str, result: str, kind: str) -> None:
    init = "0.5" if kind == "sum" else "-inf"
    check(entry(f"""
        x = f32[{shape}] parameter(0)
        s = f32[{shape}] multiply(x, x)
        i = f32[] constant({init})
        r = f32[{result}] reduce(s, i), dimensions={{{reduced}}}, to_apply={kind}
        ROOT n = f32[{result}] negate(r)""", ADD + MAX))


def test_a_reduction_by_any_body_goes_in_order() -> None:
    check(entry("""
        x = f32[4,19] parameter(0)
        i = f32[] constant(1)
        ROOT r = f32[4] reduce(x, i), dimensions={1}, to_apply=odd""",
        "odd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n h = f32[] constant(0.5)\n c = f32[] multiply(a, h)\n "
        "ROOT r = f32[] subtract(b, c) }\n"))


def test_an_arg_max_has_two_results() -> None:
    check(entry("""
        x = f32[3,20] parameter(0)
        n = s32[3,20] iota(), iota_dimension=1
        low = f32[] constant(-inf)
        first = s32[] constant(0)
        r = (f32[3], s32[3]) reduce(x, n, low, first), dimensions={1}, to_apply=pick
        ROOT at = s32[3] get-tuple-element(r), index=1""",
        "pick { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n"
        "c = pred[] compare(a, b), direction=GE\n v = f32[] select(c, a, b)\n k = s32[] select(c, i, j)\n"
        "ROOT t = (f32[], s32[]) tuple(v, k) }\n"))


def test_movement_is_strides() -> None:
    model = check(entry("""
        x = f32[6,4,5] parameter(0)
        t = f32[5,6,4] transpose(x), dimensions={2,0,1}
        s = f32[3,3,4] slice(t), slice={[1:4], [0:6:2], [0:4]}
        v = f32[3,3,4] reverse(s), dimensions={1}
        f = f32[9,4] reshape(v)
        y = f32[4] parameter(1)
        b = f32[9,4] broadcast(y), dimensions={1}
        ROOT r = f32[9,4] subtract(f, b)"""))
    assert len(templates(model)) <= 2  # a reshape of reversed memory takes a copy


@pytest.mark.parametrize(("shape", "order"), [("33,50", "1,0"), ("4,70,16", "0,2,1"), ("3,20,5,7", "2,3,0,1"), ("17,3", "1,0"), ("64,64", "1,0")])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "s8"])
def test_inputs_that_are_read_across_are_turned_in_registers(shape: str, order: str, dtype: str) -> None:
    sizes = [int(n) for n in shape.split(",")]
    result = ",".join(str(sizes[int(d)]) for d in order.split(","))
    model = check(entry(f"""
        x = {dtype}[{shape}] parameter(0)
        y = {dtype}[{result}] parameter(1)
        t = {dtype}[{result}] transpose(x), dimensions={{{order}}}
        ROOT r = {dtype}[{result}] add(t, y)"""))
    assert templates(model) == ["transposition" if shape != "17,3" else "map"]


def test_concatenations_are_written_by_their_parts() -> None:
    model = check(entry("""
        x = f32[3,8] parameter(0)
        y = f32[3,24] parameter(1)
        a = f32[3,8] exponential(x)
        b = f32[3,24] negate(y)
        c = f32[3,32] concatenate(a, b), dimensions={1}
        d = f32[3,8] tanh(x)
        e = f32[3,40] concatenate(c, d), dimensions={1}
        ROOT r = f32[3,40] sqrt(e)"""))
    assert templates(model) == ["map"] * 4 and all(isinstance(s, Launch) for s in model.program.steps)


@pytest.mark.parametrize("padding", ["1_2x0_3", "0_0x5_5", "2_1_1x1_1_2", "-1_2x3_-2", "4_4x4_4"])
def test_padding(padding: str) -> None:
    sizes = {"1_2x0_3": "9,20", "0_0x5_5": "6,27", "2_1_1x1_1_2": "14,51", "-1_2x3_-2": "7,18", "4_4x4_4": "14,25"}
    check(entry(f"""
        x = f32[6,17] parameter(0)
        v = f32[] parameter(1)
        n = f32[6,17] exponential(x)
        p = f32[{sizes[padding]}] pad(n, v), padding={padding}
        ROOT r = f32[{sizes[padding]}] negate(p)"""))


@pytest.mark.parametrize(("shape", "line", "form"), [
    ("4,20", "v = f32[4,20] negate(d)", "points"), ("20,4", "v = f32[20,4] transpose(d), dimensions={1,0}", "points"),
    ("80", "v = f32[80] reshape(d)", "element"),
])
def test_a_part_that_data_chooses_is_read_by_strides_where_it_can_be(shape: str, line: str, form: str) -> None:
    """The rows of the part have gaps between them: as one row it has no strides."""
    model = check(entry(f"""
        x = f32[9,40] parameter(0)
        i = s32[] parameter(1)
        k = s32[] constant(3)
        y = f32[{shape}] parameter(2)
        d = f32[4,20] dynamic-slice(x, i, k), dynamic_slice_sizes={{4,20}}
        {line}
        ROOT r = f32[{shape}] add(v, y)"""))
    assert [kernel.schedule["form"] for kernel in model.program.kernels()] == [form]


def test_several_outputs_of_every_kind() -> None:
    check(entry("""
        x = f32[4,4] parameter(0)
        c = f32[2] constant({3, 4})
        t = f32[4,4] transpose(x), dimensions={1,0}
        a = f32[4,4] add(x, t)
        e = f32[4,4] exponential(a)
        s = f32[2,2] slice(e), slice={[0:2], [1:3]}
        ROOT r = (f32[4,4], f32[4,4], f32[2], f32[4,4], f32[2,2], f32[4,4], f32[4,4]) tuple(a, e, c, x, s, a, t)"""))


def test_tuples_in_and_out() -> None:
    check(entry("""
        p = (f32[3], (s32[2], f32[])) parameter(0)
        q = f32[3] parameter(1)
        a = f32[3] get-tuple-element(p), index=0
        i = (s32[2], f32[]) get-tuple-element(p), index=1
        k = f32[] get-tuple-element(i), index=1
        kb = f32[3] broadcast(k), dimensions={}
        m = f32[3] multiply(a, kb)
        n = f32[3] add(m, q)
        ROOT r = ((s32[2], f32[]), f32[3], ()) tuple(i, n, ())""".replace(", ())", ")").replace(", ()) tuple", ") tuple")))


def test_empty_arrays() -> None:
    check(entry("""
        x = f32[0,5] parameter(0)
        y = f32[3,5] parameter(1)
        e = f32[0,5] exponential(x)
        z = f32[] constant(7)
        s = f32[5] reduce(e, z), dimensions={0}, to_apply=sum
        c = f32[3,5] concatenate(e, y), dimensions={0}
        b = f32[3,5] broadcast(s), dimensions={1}
        ROOT r = f32[3,5] add(b, c)""", ADD))


def test_gather_in_vectors() -> None:
    model = check(entry("""
        table = f32[50,24] parameter(0)
        i = s32[3,4] parameter(1)
        j = s32[3,4,1] reshape(i)
        g = f32[3,4,24] gather(table, j), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,24}
        p = f32[24] parameter(2)
        b = f32[3,4,24] broadcast(p), dimensions={2}
        ROOT r = f32[3,4,24] add(g, b)"""))
    assert templates(model) == ["map"]


def test_gather_clamps() -> None:
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    check(entry("""
        table = f32[3,4] parameter(0)
        i = s32[4,1] parameter(1)
        ROOT g = f32[4,4] gather(table, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"""),
        [table, np.array([[-5], [1], [2], [99]], np.int32)])


def test_sorts_store_results_that_nobody_reads() -> None:
    check(entry("""
        k = f32[2,9] parameter(0)
        v = s32[2,9] parameter(1)
        s = (f32[2,9], s32[2,9]) sort(k, v), dimensions={1}, is_stable=true, to_apply=less
        ROOT r = s32[2,9] get-tuple-element(s), index=1""",
        "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n c = s32[] parameter(2)\n d = s32[] parameter(3)\n "
        "ROOT r = pred[] compare(a, b), direction=LT }\n"))


@pytest.mark.parametrize("dtype", ["bf16", "f16", "f64", "s8", "u8", "s32", "u64", "pred", "c64", "f8e4m3fn", "s4"])
def test_every_kind_of_element(dtype: str) -> None:
    word = "or" if dtype == "pred" else "add"
    check(entry(f"""
        x = {dtype}[3,21] parameter(0)
        y = {dtype}[21] parameter(1)
        b = {dtype}[3,21] broadcast(y), dimensions={{1}}
        a = {dtype}[3,21] {word}(x, b)
        t = {dtype}[21,3] transpose(a), dimensions={{1,0}}
        ROOT r = {dtype}[63] reshape(t)"""))


def test_narrow_sums_are_kept_wide() -> None:
    check(entry("""
        x = bf16[4,300] parameter(0)
        z = bf16[] constant(0)
        ROOT r = bf16[4] reduce(x, z), dimensions={1}, to_apply=sum""", ADD.replace("f32", "bf16")))


def test_a_value_that_is_only_shown_is_written_as_it_is_shown() -> None:
    model = check(entry("""
        x = f32[2,4,6] parameter(0)
        w = f32[6,8] parameter(1)
        d = f32[2,4,8] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
        t = f32[4,2,8] transpose(d), dimensions={1,0,2}
        ROOT r = f32[4,16] reshape(t)"""))
    assert templates(model) == ["contraction"] and not any(isinstance(s, Copy) for s in model.program.steps)


def test_reshapes_that_take_a_copy_get_one() -> None:
    check(entry("""
        x = f32[4,6] parameter(0)
        t = f32[6,4] transpose(x), dimensions={1,0}
        f = f32[3,8] reshape(t)
        w = f32[8,5] parameter(1)
        ROOT d = f32[3,5] dot(f, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""))


def test_equal_layers_share_kernels() -> None:
    layers = "\n".join(f"""
        d{i} = f32[8,16] dot({'x' if i == 0 else f't{i - 1}'}, w{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
        t{i} = f32[8,16] tanh(d{i})""" for i in range(6))
    params = "\n".join(f"w{i} = f32[16,16] parameter({i + 1})" for i in range(6))
    model = check(entry(f"x = f32[8,16] parameter(0)\n{params}\n{layers}\nROOT r = f32[8,16] negate(t5)"))
    assert len(model.program.launches()) == 6
    assert len(model.program.kernels()) == 2


def test_a_chain_of_a_thousand_needs_no_recursion() -> None:
    lines = ["x0 = f32[4] parameter(0)"]
    for i in range(1000):
        lines.append(f"x{i + 1} = f32[4] {'abs' if i % 2 else 'negate'}(x{i})")
    lines.append("ROOT r = f32[4] negate(x1000)")
    check(entry("\n".join(lines)))


def test_fixed_weights_are_folded_at_load() -> None:
    model = check(entry("""
        x = f32[1,6,6,8] parameter(0)
        w = f32[1,1,8,16] parameter(1)
        s = f32[16] parameter(2)
        b = f32[16] parameter(3)
        c = f32[1,6,6,16] convolution(x, w), window={size=1x1}, dim_labels=b01f_01io->b01f
        e = f32[16] exponential(s)
        sb = f32[1,6,6,16] broadcast(e), dimensions={3}
        m = f32[1,6,6,16] multiply(c, sb)
        bb = f32[1,6,6,16] broadcast(b), dimensions={3}
        ROOT r = f32[1,6,6,16] add(m, bb)"""), weights=(1, 2, 3))
    assert len(model.program.launches()) == 1
    assert [n.op.name for n in model.module.main().nodes if n.op.scalar] == ["add"]


def test_a_reduction_that_is_seen_in_two_orders_is_one() -> None:
    check(entry("""
        x = f32[4,4,16] parameter(0)
        e = f32[4,5] parameter(1)
        z = f32[] constant(inf)
        m = f32[4,16] reduce(x, z), dimensions={0}, to_apply=least
        a = f32[16,4] transpose(m), dimensions={1,0}
        b = f32[16,4] cosine(a)
        c = f32[4,16] transpose(b), dimensions={1,0}
        d = f32[16,5] dot(m, e), lhs_contracting_dims={0}, rhs_contracting_dims={0}
        ROOT t = (f32[4,16], f32[16,5], f32[4,16]) tuple(c, d, m)""",
        "least {\n p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT r = f32[] minimum(p, q)\n}\n"))


@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2"])
def test_quotients_beyond_a_tail_are_not_summed(cpu: str) -> None:
    """Both operands of the masked lanes are 0, whose quotient is NaN."""
    text = entry("""
        x = f32[11] parameter(0)
        y = f32[11] parameter(1)
        a = f32[5] slice(x), slice={[1:11:2]}
        b = f32[5] slice(y), slice={[1:11:2]}
        q = f32[5] divide(a, b)
        z = f32[] constant(0)
        r = f32[] reduce(q, z), dimensions={0}, to_apply=sum
        ROOT t = (f32[5], f32[]) tuple(q, r)""", ADD)
    x, y = np.arange(11, dtype=np.float32), np.full(11, 2, np.float32)
    assert irscope.compile(text, cpu=cpu)(x, y)[1] == 12.5


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_numbers_that_count_in_the_complex_plane(dtype: str) -> None:
    check(entry(f"""
        x = {dtype}[3,21] parameter(0)
        i = {dtype}[3,21] iota(), iota_dimension=1
        j = {dtype}[3,21] iota(), iota_dimension=0
        p = {dtype}[3,21] multiply(x, i)
        ROOT r = {dtype}[3,21] add(p, j)"""), runs=1)


@pytest.mark.parametrize("line", [
    "ROOT r = f32[0,4] concatenate(x, x), dimensions={0}", "z = f32[] constant(1)\n ROOT r = f32[0,7] pad(x, z), padding=0_0x1_2",
    "z = f32[] constant(1)\n ROOT r = f32[2,4] pad(x, z), padding=1_1x0_0",
    "i = s32[] constant(0)\n ROOT r = f32[0,4] dynamic-update-slice(x, x, i, i)",
    "i = s32[] constant(0)\n y = f32[2,4] parameter(1)\n ROOT r = f32[2,4] dynamic-update-slice(y, x, i, i)",
])
def test_values_without_elements_are_put_together(line: str) -> None:
    running.check(entry(f"x = f32[0,4] parameter(0)\n {line}"))


def test_an_update_that_starts_at_a_vector_of_indices() -> None:
    arrays = [np.arange(20, dtype=np.float32).reshape(4, 5), -np.ones((2, 2), np.float32), np.array([1, 9], np.int32)]
    check(entry("""
        x = f32[4,5] parameter(0)
        u = f32[2,2] parameter(1)
        i = s32[2] parameter(2)
        ROOT d = f32[4,5] dynamic-update-slice(x, u, i)"""), arrays, runs=1)


def test_large_numbers_that_count_in_the_complex_plane() -> None:
    """2**24 + 1 has no place in the 24 bits of an f32."""
    _, executable = running.compiled(entry("""
        x = c128[3] parameter(0)
        i = c128[33554432] iota(), iota_dimension=0
        s = c128[3] slice(i), slice={[16777217:16777220]}
        ROOT r = c128[3] add(x, s)"""))
    assert executable(np.zeros(3, np.complex128))[0].tolist() == [16777217, 16777218, 16777219]
