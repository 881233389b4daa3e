"""No kernel computes values again that computing once would have been enough for: sums inside sums, whatever moves between them."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irscope.api import load
from irscope.backends.model import compile_module, primitive
from irscope.fusion import Group, policy_named
from irscope.fusion.drafts import dims_of
from irscope.lower.repeated import EXCEPTIONS, MOST_REPEATED, GroupWork, work_of
from irscope.lower.templates import Problem
from irscope.lower.templates.generic import TEMPLATE as GENERIC
from irscope.lower.work import SMALL
from tests.lower import running
from tests.lower.regrouped_graphs import regrouped_text
from tests.lower.whole import ADD, MAX, check, entry, inputs_of, module_of, reference, templates

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
VECTORS = 4096
"""Operations that padding to vectors may add to the smallest kernels."""


def norm(x: str, shape: str, kept: str, rows: str, name: str = "n") -> str:
    """A layer normalisation of %x along its last axis; ``kept`` are the other axes, of sizes ``rows``."""
    return f"""
        {name}0 = f32[] constant(0.01)
        {name}s = f32[{rows}] reduce({x}, {name}0), dimensions={{{shape.count(",")}}}, to_apply=sum
        {name}m = f32[{rows}] multiply({name}s, {name}s)
        {name}b = f32[{shape}] broadcast({name}m), dimensions={{{kept}}}
        {name}c = f32[{shape}] subtract({x}, {name}b)
        {name}q = f32[{shape}] multiply({name}c, {name}c)
        {name}v = f32[{rows}] reduce({name}q, {name}0), dimensions={{{shape.count(",")}}}, to_apply=sum
        {name}r = f32[{rows}] rsqrt({name}v)
        {name}w = f32[{shape}] broadcast({name}r), dimensions={{{kept}}}
        {name} = f32[{shape}] multiply({name}c, {name}w)"""


def softmax(x: str, shape: str, kept: str, rows: str, name: str = "p") -> str:
    """A softmax of %x along its last axis."""
    return f"""
        {name}l = f32[] constant(-inf)
        {name}m = f32[{rows}] reduce({x}, {name}l), dimensions={{{shape.count(",")}}}, to_apply=most
        {name}b = f32[{shape}] broadcast({name}m), dimensions={{{kept}}}
        {name}d = f32[{shape}] subtract({x}, {name}b)
        {name}e = f32[{shape}] exponential({name}d)
        {name}z = f32[] constant(0)
        {name}s = f32[{rows}] reduce({name}e, {name}z), dimensions={{{shape.count(",")}}}, to_apply=sum
        {name}t = f32[{shape}] broadcast({name}s), dimensions={{{kept}}}
        {name} = f32[{shape}] divide({name}e, {name}t)"""


ATTENTION = """
    q = f32[2,32,16] parameter(0)
    k = f32[2,32,16] parameter(1)
    v = f32[2,32,16] parameter(2)
    s = f32[2,32,32] dot(q, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
""" + softmax("s", "2,32,32", "0,1", "2,32") + """
    o = f32[2,32,16] dot(p, v), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
"""
MERGED = """
    x = f32[1,64,16] parameter(0)
    a = f32[1,4,2,4,2,16] reshape(x)
    t = f32[1,4,4,2,2,16] transpose(a), dimensions={0,1,3,4,2,5}
    m = f32[16,64] reshape(t)
"""
CASES: dict[str, tuple[str, list[str]]] = {
    # text, what builds the kernels (empty: it does not matter)
    "layer norm behind patch merging": (MERGED + norm("m", "16,64", "0", "16") + "\nROOT r = f32[1,4,4,64] reshape(n)", ["map", "rows"]),
    "layer norm behind a window reverse": ("""
        x = f32[4,49,32] parameter(0)
        a = f32[1,2,2,7,7,32] reshape(x)
        t = f32[1,2,7,2,7,32] transpose(a), dimensions={0,1,3,2,4,5}
        m = f32[196,32] reshape(t)""" + norm("m", "196,32", "0", "196") + "\nROOT r = f32[196,32] add(n, m)", ["map", "rows"]),
    "softmax behind patch merging": (MERGED + softmax("m", "16,64", "0", "16") + "\nROOT r = f32[16,64] negate(p)", ["map", "rows"]),
    "pointwise work before the movement": ("""
        y = f32[1,64,16] parameter(0)
        x = f32[1,64,16] tanh(y)
        a = f32[1,4,2,4,2,16] reshape(x)
        t = f32[1,4,4,2,2,16] transpose(a), dimensions={0,1,3,4,2,5}
        m = f32[16,64] reshape(t)""" + norm("m", "16,64", "0", "16") + "\nROOT r = f32[16,64] negate(n)", ["map", "rows"]),
    "a product before the movement": ("""
        x = f32[64,8] parameter(0)
        w = f32[8,16] parameter(1)
        d = f32[64,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        a = f32[1,4,2,4,2,16] reshape(d)
        t = f32[1,4,4,2,2,16] transpose(a), dimensions={0,1,3,4,2,5}
        m = f32[16,64] reshape(t)""" + norm("m", "16,64", "0", "16") + "\nROOT r = f32[16,64] negate(n)", []),
    "pointwise work that leaves its axes apart": ("""
        y = f32[4,2,4,2,16] parameter(0)
        x = f32[4,2,4,2,16] tanh(y)
        t = f32[4,4,2,2,16] transpose(x), dimensions={0,2,1,3,4}
        m = f32[16,64] reshape(t)""" + norm("m", "16,64", "0", "16") + "\nROOT r = f32[16,64] negate(n)", ["map", "rows"]),
    "a view that is added to what follows": (MERGED + """
        y = f32[16,64] parameter(1)""" + norm("y", "16,64", "0", "16") + "\nROOT r = f32[16,64] add(n, m)", []),
    "a view that an epilogue adds": (MERGED + """
        y = f32[16,32] parameter(1)
        w = f32[32,64] parameter(2)
        d = f32[16,64] dot(y, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT r = f32[16,64] add(d, m)""", []),
    "transposed attention": (ATTENTION + "ROOT r = f32[2,16,32] transpose(o), dimensions={0,2,1}", ["attention", "transposition"]),
    "transposed attention of two axes": ("""
        q = f32[32,16] parameter(0)
        k = f32[32,16] parameter(1)
        v = f32[32,16] parameter(2)
        kt = f32[16,32] transpose(k), dimensions={1,0}
        s = f32[32,32] dot(q, kt), lhs_contracting_dims={1}, rhs_contracting_dims={0}""" + softmax("s", "32,32", "0", "32") + """
        o = f32[32,16] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT r = f32[16,32] transpose(o), dimensions={1,0}""", ["attention", "transposition"]),
    "attention of one value": ("""
        q = f32[64,16] parameter(0)
        k = f32[64,16] parameter(1)
        v = f32[64,1] parameter(2)
        s = f32[64,64] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}""" + softmax("s", "64,64", "0", "64") + """
        ROOT o = f32[64,1] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}""", []),
    "attention of blocks with a halo": ("""
        x = f32[8,8,16] parameter(0)
        k = f32[12,12,16] parameter(1)
        a = f32[2,4,2,4,16] reshape(x)
        b = f32[2,2,4,4,16] transpose(a), dimensions={0,2,1,3,4}
        q = f32[4,16,16] reshape(b)
        k0 = f32[8,8,16] slice(k), slice={[0:8], [0:8], [0:16]}
        k1 = f32[8,8,16] slice(k), slice={[0:8], [4:12], [0:16]}
        k2 = f32[8,8,16] slice(k), slice={[4:12], [0:8], [0:16]}
        k3 = f32[8,8,16] slice(k), slice={[4:12], [4:12], [0:16]}
        l0 = f32[1,64,16] reshape(k0)
        l1 = f32[1,64,16] reshape(k1)
        l2 = f32[1,64,16] reshape(k2)
        l3 = f32[1,64,16] reshape(k3)
        l = f32[4,64,16] concatenate(l0, l1, l2, l3), dimensions={0}
        s = f32[4,16,64] dot(q, l), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
        """ + softmax("s", "4,16,64", "0,1", "4,16") + """
        o = f32[4,16,16] dot(p, l), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
        c = f32[2,2,4,4,16] reshape(o)
        d = f32[16,2,4,2,4] transpose(c), dimensions={4,0,2,1,3}
        ROOT r = f32[16,8,8] reshape(d)""", []),
    "softmax of softmax": ("x = f32[16,64] parameter(0)" + softmax("x", "16,64", "0", "16") + softmax("p", "16,64", "0", "16", "o")
                           + "\nROOT r = f32[16,64] negate(o)", ["rows"]),
    "softmax of softmax along the other axis": ("x = f32[64,64] parameter(0)" + softmax("x", "64,64", "0", "64") + """
        u = f32[64,64] transpose(p), dimensions={1,0}""" + softmax("u", "64,64", "0", "64", "o") + "\nROOT r = f32[64,64] negate(o)", []),
    "norm of a strided slice": ("""
        x = f32[64,128] parameter(0)
        h = f32[32,64] slice(x), slice={[0:64:2], [0:128:2]}""" + norm("h", "32,64", "0", "32") + "\nROOT r = f32[32,64] negate(n)", ["rows"]),
    "norm of a reversed transpose": ("""
        x = f32[64,32] parameter(0)
        t = f32[32,64] transpose(x), dimensions={1,0}
        h = f32[32,64] reverse(t), dimensions={1}""" + norm("h", "32,64", "0", "32") + "\nROOT r = f32[32,64] negate(n)", []),
    "norm of padding": ("""
        x = f32[30,60] parameter(0)
        z = f32[] constant(1)
        h = f32[32,64] pad(x, z), padding=1_1x2_2""" + norm("h", "32,64", "0", "32") + "\nROOT r = f32[32,64] negate(n)", []),
    "norm of a concatenation": ("""
        x = f32[32,32] parameter(0)
        y = f32[32,32] tanh(x)
        h = f32[32,64] concatenate(x, y), dimensions={1}""" + norm("h", "32,64", "0", "32") + "\nROOT r = f32[32,64] negate(n)", []),
    "norm of gathered rows": ("""
        x = f32[100,64] parameter(0)
        f = f32[32,1] parameter(1)
        i = s32[32,1] convert(f)
        h = f32[32,64] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
        """ + norm("h", "32,64", "0", "32") + "\nROOT r = f32[32,64] negate(n)", []),
    "rows that are gathered of a norm": ("""
        x = f32[100,64] parameter(0)
        f = f32[32,1] parameter(1)
        i = s32[32,1] convert(f)""" + norm("x", "100,64", "0", "100") + """
        ROOT r = f32[32,64] gather(n, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
        """, []),
    "a reduction of a repeated reduction": ("""
        x = f32[64,64] parameter(0)
        z = f32[] constant(0)
        s = f32[64] reduce(x, z), dimensions={1}, to_apply=sum
        b = f32[64,64] broadcast(s), dimensions={1}
        e = f32[64,64] exponential(b)
        ROOT r = f32[64] reduce(e, z), dimensions={0}, to_apply=most""", []),
    "running sums inside a reduction": ("""
        x = f32[64,64] parameter(0)
        z = f32[] constant(0)
        c = f32[64,64] reduce-window(x, z), window={size=1x64 pad=0_0x63_0}, to_apply=sum
        q = f32[64,64] multiply(c, c)
        ROOT r = f32[64] reduce(q, z), dimensions={0}, to_apply=sum""", []),
    "a reduction inside a product": ("x = f32[64,64] parameter(0)\n w = f32[64,64] parameter(1)" + norm("x", "64,64", "0", "64") + """
        ROOT d = f32[64,64] dot(n, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}""", ["rows", "contraction"]),
    "a product inside a product": ("""
        x = f32[64,32] parameter(0)
        w = f32[32,48] parameter(1)
        v = f32[48,32] parameter(2)
        d = f32[64,48] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        e = f32[64,48] exponential(d)
        ROOT f = f32[64,32] dot(e, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}""", ["contraction", "contraction"]),
    "a sorted norm": ("x = f32[32,64] parameter(0)" + norm("x", "32,64", "0", "32") + """
        ROOT r = f32[32,64] sort(n), dimensions={1}, to_apply=less""", []),
    "a norm in a loop": ("""
        x = f32[1,64,16] parameter(0)
        i = s32[] constant(0)
        b = (s32[], f32[1,64,16]) tuple(i, x)
        w = (s32[], f32[1,64,16]) while(b), condition=short, body=step
        ROOT r = f32[1,64,16] get-tuple-element(w), index=1""", []),
}
LESS = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
LOOP = """short { p = (s32[], f32[1,64,16]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 n = s32[] constant(3)
 ROOT c = pred[] compare(i, n), direction=LT }
step { p = (s32[], f32[1,64,16]) parameter(0)
 i = s32[] get-tuple-element(p), index=0
 x = f32[1,64,16] get-tuple-element(p), index=1
 o = s32[] constant(1)
 j = s32[] add(i, o)
""" + MERGED.replace("x = f32[1,64,16] parameter(0)", "") + norm("m", "16,64", "0", "16") + """
 y = f32[1,64,16] reshape(n)
 ROOT out = (s32[], f32[1,64,16]) tuple(j, y) }
"""
HEADER = ADD + MAX + LESS + LOOP


def repeated(text: str) -> list[GroupWork]:
    """The kernels that do more than they need and than padding explains, smaller ones than users would mind too."""
    return [w for w in work_of(primitive(module_of(text)))
            if w.done > EXCEPTIONS.get(w.anchor, (MOST_REPEATED, ""))[0] * w.needed + VECTORS]


@pytest.mark.parametrize("name", CASES)
def test_values_are_computed_once(name: str) -> None:
    text, built = CASES[name]
    text = entry(text, HEADER)
    assert not repeated(text)
    model = check(text)
    assert not built or templates(model) == built


@pytest.mark.parametrize("text", [
    "x = f32[] parameter(0)\n z = f32[] constant(1)\n ROOT r = f32[] reduce-window(x, z), to_apply=sum",
    "x = f32[8,6,7] parameter(0)\n z = f32[] constant(0)\n r = (f32[8,7]) reduce(x, z), dimensions={1}, to_apply=one\n"
    "ROOT g = f32[8,7] get-tuple-element(r), index=0",
])
def test_reductions_of_odd_types_run(text: str) -> None:
    """A window over a scalar, and a reduction whose result is a tuple of one."""
    one = "one { a = f32[] parameter(0)\n b = f32[] parameter(1)\n s = f32[] add(a, b)\n ROOT r = (f32[]) tuple(s) }\n"
    check(entry(text, ADD + one))


@pytest.mark.parametrize("algorithm, state", [("three_fry", 2), ("philox", 2), ("philox", 3)])
def test_a_kernel_of_one_operator_repeats_nothing(algorithm: str, state: int) -> None:
    """However much its algorithm computes, and although the next state is not read."""
    check(entry(f"""
        s = u64[{state}] parameter(0)
        a = u64[{state}] add(s, s)
        r = (u64[{state}], u32[512,256]) rng-bit-generator(a), algorithm=rng_{algorithm}
        ROOT bits = u32[512,256] get-tuple-element(r), index=1"""))


@pytest.mark.parametrize("text", [
    """x = f32[16,8,128] parameter(0)
       w = f32[16,128,64] parameter(1)
       ROOT c = f32[16,8,64] convolution(x, w), window={size=16 stride=15 lhs_dilate=16}, dim_labels=0bf_0io->0bf""",
    """x = f32[64,600] parameter(0)
       y = f32[600,8] parameter(1)
       n = s32[30] iota(), iota_dimension=0
       ROOT r = f32[30,64,8] ragged-dot(x, y, n), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}""",
])
def test_zeros_and_other_groups_are_no_repetition(text: str) -> None:
    """Zeros between the elements of an image are multiplied, and a row of a ragged product is compared with every group."""
    text = entry(text)
    assert not [w for w in work_of(primitive(module_of(text))) if w.is_repeated]
    check(text)


def test_exact_attention_is_three_kernels() -> None:
    program = running.check(entry(ATTENTION.replace("o = f32", "ROOT o = f32"), HEADER), precision="exact")
    assert [launch.kernel.schedule["template"] for launch in program.launches()] == ["contraction", "rows", "contraction"]


def test_what_lies_channels_last_is_normalised_in_rows() -> None:
    """A convolution leaves its image channels last; whoever goes over it in another order gets a copy, not an image of sums of sums."""
    text = entry("""
        x = f32[2,16,8,8] parameter(0)
        w = f32[3,3,16,16] parameter(1)
        v = f32[3,3,16,16] parameter(2)
        c = f32[2,16,8,8] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_01io->bf01
        d = f32[2,16,8,8] convolution(c, v), window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_01io->bf01
        m = f32[2,1024] reshape(c)""" + norm("m", "2,1024", "0", "2") + """
        y = f32[2,1024] reshape(d)
        ROOT r = f32[2,1024] add(n, y)""", HEADER)
    assert not repeated(text)
    check(text)


def test_sums_are_not_computed_element_by_element() -> None:
    """The template of last resort refuses a group whose sums it would repeat, however the group came about."""
    graph = primitive(module_of(entry(CASES["layer norm behind patch merging"][0], HEADER))).main()
    rows = next(g for g in policy_named("irscope").plan(graph).groups if g.kind == "rows")
    assert GENERIC.match(Problem(rows, {}, dict.fromkeys(rows.outputs))) is None  # type: ignore[arg-type]
    alone = Group("reduction", [rows.anchor], [rows.anchor], list(rows.anchor.operands), rows.anchor, dims_of(rows.anchor))  # type: ignore[list-item,union-attr,arg-type]
    assert GENERIC.match(Problem(alone, {}, dict.fromkeys(alone.outputs))) == "element"  # type: ignore[arg-type]


@pytest.mark.parametrize("sample", sorted(p.name for p in SAMPLES.iterdir() if p.suffix in (".hlo", ".relay")))
def test_kernels_of_the_samples_compute_values_once(sample: str) -> None:
    reading = load(SAMPLES / sample)
    if reading.ok:
        assert not [w for w in work_of(primitive(reading.module())) if w.is_repeated]


@pytest.mark.parametrize("seed", range(24))
def test_kernels_of_random_graphs_compute_values_once(seed: int) -> None:
    text = regrouped_text(seed)
    assert not [w for w in work_of(primitive(module_of(text))) if w.is_repeated]
    if seed < 4:
        module = module_of(text)
        given = inputs_of(module)
        for result, wanted in zip(compile_module(module, use_cache=False)(*given), reference(module, given), strict=True):
            largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
            np.testing.assert_allclose(result, wanted, rtol=0, atol=1e-5 * largest)  # sums cancel: against the largest value


def test_exceptions_are_few_and_have_reasons() -> None:
    assert len(EXCEPTIONS) <= 4 and all(most > MOST_REPEATED and why for most, why in EXCEPTIONS.values())
    assert GroupWork("k", "topk", "", (), 10.0 * SMALL, SMALL, False).is_repeated is False
    assert GroupWork("k", "map", "", (), 10.0 * SMALL, SMALL, False).is_repeated is True
