"""What the policy ``xla-gpu`` tells of matrix products: which become Triton kernels with what, and why the rest stays outside."""
from __future__ import annotations

from irscope.api import load
from irscope.fusion import EdgeVerdict
from irscope.fusion.xla.gemm import products
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.multiplied import multiplications, products_of
from irscope.graph import Module
from irscope.lint.fusion import remarks
from irscope.lint.verdicts import verdicts_of
from tests.fusion.xla_texts import ADD, module

DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
MODEL = f"""a = s8[512,256]{{1,0}} parameter(0)
c = bf16[512,256]{{1,0}} convert(a)
b = bf16[256,512]{{1,0}} parameter(1)
d = bf16[512,512]{{1,0}} dot(c, b), {DOT}
v = bf16[512]{{0}} parameter(2)
vb = bf16[512,512]{{1,0}} broadcast(v), dimensions={{1}}
s = bf16[512,512]{{1,0}} add(d, vb)
w = f32[512,512]{{1,0}} parameter(3)
wc = bf16[512,512]{{1,0}} convert(w)
e = bf16[512,512]{{1,0}} dot(s, wc), {DOT}
n = f32[512,512]{{1,0}} negate(w)
ROOT t = (bf16[512,512]{{1,0}}, f32[512,512]{{1,0}}) tuple(e, n)"""
LAST = ("afterwards XLA's autotuner times each of these kernels on the device, and may have cuBLAS compute the product, with what is around it "
        "in separate kernels, which is not simulated; the kernels reported here are those without it")


def edges(read: Module) -> dict[tuple[str, str], EdgeVerdict]:
    return {v.names: v for v in verdicts_of(read, "xla-gpu")}


def test_a_note_says_which_kernels_are_made() -> None:
    assert multiplications(module(MODEL), DEVICES["h100"]) == [
        "XLA's GemmFusion, which runs before this pass, makes a Triton kernel of 2 of 2 matrix products: %d with %c in front and %s behind; "
        f"%e alone; {LAST}"]
    assert any("GemmFusion" in told for told in remarks(module(MODEL), "xla-gpu"))


def test_edges_inside_a_kernel_say_so() -> None:
    told = edges(module(MODEL))
    for edge in (("c", "d"), ("d", "s")):
        assert told[edge].fused == "none"
        assert told[edge].cause == ("XLA's GemmFusion, which runs before this pass, would compute both in the Triton kernel of %d; "
                                    "this text is judged as it is, without that kernel")


def test_edges_that_stay_outside_say_why_in_xlas_words() -> None:
    told = edges(module(MODEL))["wc", "e"]
    assert told.reason == "the consumer is not fusible"
    assert told.cause == ("XLA's GemmFusion, which runs before this pass, leaves %wc outside of the Triton kernel of %e: \"Not obviously "
                          "profitable to fuse as input.\": %wc reads more bytes than it writes, which the kernel would read in its place, and "
                          "not all of its operands are arrays without other readers (524288 more bytes > 1024)")
    between = edges(module(MODEL))["s", "e"]
    assert '"Unimplemented instruction.": a kernel computes one product: %s and %e belong to two' in between.cause


def test_products_that_become_no_kernel() -> None:
    text = f"""a = f32[3,9] parameter(0)
n = f32[3,9] negate(a)
b = f32[9,8] parameter(1)
ROOT d = f32[3,8] dot(n, b), {DOT}"""
    assert multiplications(module(text), DEVICES["h100"]) == [
        "XLA's GemmFusion, which runs before this pass, makes a Triton kernel of 0 of 1 matrix products; not of %d (the operands of %d "
        "together are so small that XLA leaves the product to a loop (99 < 100 elements))"]
    assert "makes no Triton kernel of %d" in edges(module(text))["n", "d"].cause


def test_many_products_are_counted() -> None:
    lines = ["x = f32[64,64] parameter(0)", "y = f32[64,64] parameter(1)"]
    lines += [f"d{i} = f32[64,64] dot({'x' if i == 0 else f'd{i - 1}'}, y), {DOT}" for i in range(9)]
    [told] = multiplications(module("\n".join([*lines, "ROOT n = f32[64,64] negate(d8)"])), DEVICES["h100"])
    assert "makes a Triton kernel of 9 of 9 matrix products: %d0 alone; %d1 alone; %d2 alone and 6 more" in told


def test_texts_that_xla_has_worked_on_already_are_left_alone() -> None:
    plain = "x = f32[64,64] parameter(0)\nROOT y = f32[64,64] negate(x)"
    kernel = MODEL + '\nk = f32[1] custom-call(a), custom_call_target="__cublas$gemm"'
    assert multiplications(module(plain), DEVICES["h100"]) == []
    assert multiplications(module(kernel), DEVICES["h100"]) == []


def test_a_text_from_before_xlas_rewriting_is_rewritten_first() -> None:
    text = """HloModule m, entry_computation_layout={(f32[4,16,64]{2,1,0}, f32[64,32]{1,0})->f32[4,16,32]{2,1,0}}
ENTRY e {
  x = f32[4,16,64] parameter(0)
  w = f32[64,32] parameter(1)
  d = f32[4,16,32] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  o = f32[] constant(1)
  ob = f32[4,16,32] broadcast(o), dimensions={}
  ROOT y = f32[4,16,32] add(d, ob)
}"""
    [told] = multiplications(load(text).module(), DEVICES["h100"])
    assert "of 1 of 1 matrix products: %d" in told


def test_reductions_behind_a_product() -> None:
    text = f"""a = f32[64,64] parameter(0)
b = f32[64,64] parameter(1)
d = f32[64,64] dot(a, b), {DOT}
z = f32[] constant(0)
ROOT r = f32[64] reduce(d, z), dimensions={{1}}, to_apply=add"""
    assert '"Reductions are not fused yet."' in edges(module(text, ADD))["d", "r"].cause


def early(rows: int, inner: int, columns: int) -> list[str]:
    """What is told of a product with a vector, as jax prints it."""
    left, right = f"f32[{rows},{inner}]", f"f32[{inner},{columns}]"
    text = f"""HloModule m, entry_computation_layout={{({left}{{1,0}}, {right}{{1,0}})->f32[{rows},{columns}]{{1,0}}}}
ENTRY e {{
  x = {left} parameter(0)
  w = {right} parameter(1)
  ROOT d = f32[{rows},{columns}] dot(x, w), {DOT}
}}"""
    return multiplications(load(text).module(), DEVICES["h100"])


def test_small_products_with_a_vector_are_reductions_by_then() -> None:
    [told] = early(1, 3162, 3161)
    assert "of 0 of 1 matrix products; not of %d (XLA's simplifier turns a product with a vector of fewer than ten million" in told
    [told] = early(1, 3162, 3162)
    assert "of 1 of 1 matrix products" in told
    assert products.REDUCED == 10_000_000


def test_an_early_product_that_contracts_two_dimensions_contracts_one_by_then() -> None:
    text = """HloModule m, entry_computation_layout={(f32[64,4,32]{2,1,0}, f32[4,32,48]{2,1,0})->f32[64,48]{1,0}}
ENTRY e {
  x = f32[64,4,32] parameter(0)
  w = f32[4,32,48] parameter(1)
  ROOT d = f32[64,48] dot(x, w), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}
}"""
    [told] = multiplications(load(text).module(), DEVICES["h100"])
    assert "of 1 of 1 matrix products: %d" in told


def test_edges_of_a_text_that_is_rewritten_first_are_told_in_its_own_names() -> None:
    text = """HloModule m, entry_computation_layout={(f32[8,128,256]{2,1,0}, f32[256,512]{1,0})->f32[8,128,512]{2,1,0}}
ENTRY e {
  x = f32[8,128,256] parameter(0)
  c = bf16[8,128,256] convert(x)
  w = f32[256,512] parameter(1)
  k = bf16[256,512] convert(w)
  d = bf16[8,128,512] dot(c, k), lhs_contracting_dims={2}, rhs_contracting_dims={0}
  f = f32[8,128,512] convert(d)
  ROOT t = f32[8,128,512] tanh(f)
}"""
    [apart] = [v for v in edges(load(text).module()).values() if "leaves %f outside" in v.cause]
    assert 'outside of the Triton kernel of %d: "Not obviously profitable to fuse as output.": %f writes more bytes' in apart.cause


def test_an_edge_beside_a_product_says_what_would_bring_it_inside() -> None:
    known = {(e.producer.name, e.consumer.name): e.way_out for e in products_of(module(MODEL), DEVICES["h100"]).edges}
    assert known["c", "d"] == "none is needed"
    assert known["s", "e"] == "none: two products are two kernels"
    mixed = f"a = f16[64,64] parameter(0)\nn = f16[64,64] negate(a)\nb = bf16[64,64] parameter(1)\nROOT d = f32[64,64] dot(n, b), {DOT}"
    made = [e for e in products_of(module(mixed), DEVICES["h100"]).edges if e.producer.name == "n"]
    assert [e.way_out for e in made] == ["cast the operands to a type that Triton multiplies"]
