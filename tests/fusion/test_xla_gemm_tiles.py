"""The second version of XLA's GemmFusion, bitcasts that leave the kernel of a product, and how a kernel steps over what it reads.

The kernels are those that jaxlib 0.10.2 makes of these texts with ``--xla_gpu_experimental_gemm_fusion_v2=true``.
"""
from __future__ import annotations

import pytest

from irscope.fusion.xla.gemm.bitcasts import (
    Form,
    bitcast_above_broadcast,
    bitcast_above_transpose,
    broadcast_above_bitcast,
    transpose_above_bitcast,
)
from irscope.fusion.xla.gemm.hoist import hoist_bitcasts
from irscope.fusion.xla.gemm.orders import Stride
from irscope.fusion.xla.gemm.products import Settings, rewrite
from irscope.fusion.xla.gemm.rules import No
from irscope.fusion.xla.gemm.steps import operand_steps, steps
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla_gpu import marked
from tests.fusion.xla_texts import module

DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SECOND = Settings(by_tiles=True)


def second(text: str) -> Computation:
    """A computation behind the second version of the pass."""
    computation = Computation.of(module(text).main())
    assert all(product.is_made for product in rewrite(computation, DEVICES["a100"], SECOND))
    return computation


def shown(instruction: Instruction) -> str:
    """An instruction with what it reads, down to names; a kernel by its opcodes."""
    op = instruction.op
    if instruction.body is not None:
        op = "<" + " ".join(i.op for i in instruction.body.post_order() if i.op != "parameter") + ">"
    inside = " ".join(shown(o) if o.op in ("fusion", "bitcast") else o.name for o in instruction.operands)
    return f"{op}({inside})"


MOVED = [
    (f"a = s8[32,24] parameter(0)\nc = f32[32,24] convert(a)\nr = f32[64,12] reshape(c)\nb = f32[12,32] parameter(1)\n"
     f"ROOT d = f32[64,32] dot(r, b), {DOT}", "<convert dot>(b bitcast(a))"),
    (f"a = f32[12,64] parameter(0)\nt = f32[64,12] transpose(a), dimensions={{1,0}}\nr = f32[4,16,12] reshape(t)\nn = f32[4,16,12] negate(r)\n"
     f"q = f32[64,12] reshape(n)\nb = f32[12,32] parameter(1)\nROOT d = f32[64,32] dot(q, b), {DOT}", "<transpose negate dot>(b a)"),
    (f"v = f32[] parameter(0)\nw = f32[4,3,16] broadcast(v), dimensions={{}}\nb = f32[16,32] parameter(1)\n"
     f"r = f32[12,16] reshape(w)\nROOT d = f32[12,32] dot(r, b), {DOT}",
     "<broadcast dot>(b v)"),
    (f"a = f32[64,12] parameter(0)\nb = f32[12,32] parameter(1)\nd = f32[64,32] dot(a, b), {DOT}\nr = f32[2048] reshape(d)\n"
     "ROOT n = f32[2048] negate(r)", "bitcast(<dot negate>(a b))"),
    (f"a = f32[64,12] parameter(0)\nb = f32[12,32] parameter(1)\nd = f32[64,32] dot(a, b), {DOT}\nr = f32[4,16,32] reshape(d)\n"
     "c = f32[4,16,32] parameter(2)\nROOT n = f32[4,16,32] add(c, r)", "bitcast(<dot add>(bitcast(c) a b))"),
    (f"a = f32[64,12] parameter(0)\nb = f32[12,32] parameter(1)\nd = f32[64,32] dot(a, b), {DOT}\nr = f32[4,16,32] reshape(d)\n"
     "ROOT t = f32[32,4,16] transpose(r), dimensions={2,0,1}", "bitcast(<dot transpose>(a b))"),
    (f"a = f32[100] parameter(0)\ns = f32[96] slice(a), slice={{[2:98]}}\nr = f32[8,12] reshape(s)\nb = f32[12,32] parameter(1)\n"
     f"ROOT d = f32[8,32] dot(r, b), {DOT}", "<slice reshape dot>(b a)"),
]


@pytest.mark.parametrize(("text", "root"), MOVED, ids=[root for _, root in MOVED])
def test_bitcasts_leave_the_kernel(text: str, root: str) -> None:
    assert shown(second(text).root) == root


def test_what_has_no_tiles_stays_outside() -> None:
    text = f"""a = f32[10,97] parameter(0)
s = f32[10,96] slice(a), slice={{[0:10], [0:96]}}
r = f32[15,64] reshape(s)
b = f32[64,64] parameter(1)
d = f32[15,64] dot(r, b), {DOT}
z = f32[] constant(0)
ROOT p = f32[16,64] pad(d, z), padding=0_1x0_0"""
    computation = Computation.of(module(text).main())
    [product] = rewrite(computation, DEVICES["a100"], SECOND)
    assert [asked.no.words for asked in product.asked if asked.no is not None] == ["Bailing out on reshape", "Bailing out on"]
    assert shown(computation.root.operands[0]) == "<dot>(r b)"


def test_a_kernel_reads_any_number_of_arrays() -> None:
    lines = [f"x{i} = f32[64,16] parameter({i})" for i in range(12)]
    lines += [f"q{i} = f32[64,16] add({'x0' if i == 1 else f'q{i - 1}'}, x{i})" for i in range(1, 12)]
    text = "\n".join([*lines, "b = f32[16,32] parameter(12)", f"ROOT d = f32[64,32] dot(q11, b), {DOT}"])
    assert len(second(text).root.operands) == 13


BROADCAST = "v = f32[6,4] parameter(0)\nROOT b = f32[6,5,4] broadcast(v), dimensions={0,2}"
TRANSPOSE = "v = f32[2,3,4] parameter(0)\nROOT t = f32[4,2,3] transpose(v), dimensions={2,0,1}"


def root(text: str) -> Instruction:
    return Computation.of(module(text).main()).root


def test_a_bitcast_passes_a_broadcast_that_it_does_not_mix() -> None:
    assert bitcast_above_broadcast(root(BROADCAST), Form((2, 3, 5, 4), (3, 2, 1, 0))) == (Form((2, 3, 4), (2, 1, 0)), (0, 1, 3))
    assert bitcast_above_broadcast(root(BROADCAST), Form((30, 4), (1, 0))) is None
    assert bitcast_above_broadcast(root(BROADCAST), Form((6, 1, 5, 4), (3, 2, 1, 0))) == (Form((6, 4), (1, 0)), (0, 3))


def test_a_broadcast_passes_a_bitcast_whose_dimensions_stay_together() -> None:
    text = "v = f32[12] parameter(0)\nROOT b = f32[5,12] broadcast(v), dimensions={1}"
    assert broadcast_above_bitcast(root(text), Form((3, 4), (1, 0))) == (Form((3, 4, 5), (1, 0, 2)), (0, 1))
    assert broadcast_above_bitcast(root(BROADCAST), Form((24,), (0,))) is None


def test_a_bitcast_passes_a_transpose_of_what_it_merges() -> None:
    assert bitcast_above_transpose(root(TRANSPOSE), Form((4, 6), (1, 0))) == (Form((6, 4), (1, 0)), (1, 0))
    assert bitcast_above_transpose(root(TRANSPOSE), Form((8, 3), (1, 0))) is None
    assert bitcast_above_transpose(root(TRANSPOSE), Form((2, 2, 6), (2, 1, 0))) == (Form((6, 2, 2), (2, 1, 0)), (1, 2, 0))
    assert transpose_above_bitcast(root(TRANSPOSE), Form((6, 4), (1, 0))) == (Form((4, 6), (1, 0)), (1, 0))


def dot_of(text: str) -> tuple[Instruction, Instruction]:
    computation = Computation.of(module(text).main())
    return next(i for i in computation.instructions if i.op == "dot"), computation.root


def test_how_a_kernel_steps_over_slices_of_slices() -> None:
    dot, end = dot_of(f"""a = f32[9,32] parameter(0)
s = f32[7,24] slice(a), slice={{[1:8], [2:26]}}
n = f32[7,24] negate(s)
q = f32[4,8] slice(n), slice={{[2:6], [16:24]}}
b = f32[8,16] parameter(1)
d = f32[4,16] dot(q, b), {DOT}
v = f32[16] parameter(2)
vb = f32[4,16] broadcast(v), dimensions={{1}}
ROOT r = f32[4,16] add(d, vb)""")
    left = operand_steps(dot, 0)
    assert not isinstance(left, No)
    [array] = left.parameters
    assert left.strides[array] == {0: (Stride(32, 9, 3, 4, (4,)),), 1: (Stride(1, 32, 18, 8, (8,)),)}
    scopes = steps(dot, end)
    assert not isinstance(scopes, No)
    assert [[p.name for p in scope.parameters] for scope in scopes] == [["a"], ["b"], ["v"]]
    assert scopes[2].strides[scopes[2].parameters[0]] == {1: (Stride(1, 16, 0, 16, (16,)),)}


def test_how_a_kernel_steps_over_split_rows_and_a_parameter_that_others_put_together() -> None:
    dot, end = dot_of("""a = f32[16,8,4] parameter(0)
c = f32[32,8,4] concatenate(a, a), dimensions={0}
s = f32[16,4,8] transpose(a), dimensions={0,2,1}
r = f32[64,8] reshape(s)
b = f32[8,16] parameter(1)
d = f32[64,16] dot(r, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
ROOT t = (f32[64,16], f32[32,8,4]) tuple(d, c)""")
    left = operand_steps(dot, 0)
    assert not isinstance(left, No)
    assert left.strides[left.parameters[0]] == {0: (Stride(1, 4, 0, 4, (4,)), Stride(32, 16, 0, 16, (16,))), 1: (Stride(4, 8, 0, 8, (8,)),)}
    assert left.split == 16
    no = steps(dot, end)
    assert isinstance(no, No) and no.words == "Unimplemented instruction."


HOISTED = [
    (f"a = s8[32,24] parameter(0)\nc = f32[32,24] convert(a)\nr = f32[64,12] reshape(c)\nb = f32[12,32] parameter(1)\n"
     f"ROOT d = f32[64,32] dot(r, b), {DOT}", "<convert dot>(bitcast(a) b)"),
    (f"a = f32[64,12] parameter(0)\nb = f32[12,32] parameter(1)\nd = f32[64,32] dot(a, b), {DOT}\nr = f32[4,16,32] reshape(d)\n"
     "c = f32[4,16,32] parameter(2)\nROOT n = f32[4,16,32] add(c, r)", "bitcast(<dot add>(a b bitcast(c)))"),
    (f"a = f32[64,12] parameter(0)\nb = f32[12,32] parameter(1)\nd = f32[64,32] dot(a, b), {DOT}\nr = f32[4,16,32] reshape(d)\n"
     "ROOT t = f32[32,4,16] transpose(r), dimensions={2,0,1}", "bitcast(<dot transpose>(a b))"),
    (f"v = f32[4,3] parameter(0)\nw = f32[4,3,16] broadcast(v), dimensions={{0,1}}\nr = f32[12,16] reshape(w)\nb = f32[16,32] parameter(1)\n"
     f"ROOT d = f32[12,32] dot(r, b), {DOT}", "<broadcast dot>(bitcast(v) b)"),
    (f"a = f32[100] parameter(0)\ns = f32[96] slice(a), slice={{[2:98]}}\nr = f32[8,12] reshape(s)\nb = f32[12,32] parameter(1)\n"
     f"ROOT d = f32[8,32] dot(r, b), {DOT}", "<dot>(bitcast(s) b)"),
    (f"a = f32[16,16] parameter(0)\nn = f32[16,16] negate(a)\ns = f32[16,16] sine(n)\nm = f32[16,16] maximum(n, s)\nr = f32[8,32] reshape(m)\n"
     f"b = f32[32,32] parameter(1)\nROOT d = f32[8,32] dot(r, b), {DOT}", "<negate sine maximum dot>(bitcast(a) b)"),
]


@pytest.mark.parametrize(("text", "root"), HOISTED, ids=[root for _, root in HOISTED])
def test_bitcasts_are_hoisted_out_of_kernels_that_have_them(text: str, root: str) -> None:
    computation = Computation.of(module(text).main())
    rewrite(computation, DEVICES["a100"])
    hoist_bitcasts(computation)
    assert shown(computation.root) == root


def test_a_bitcast_of_what_another_reads_too_stays() -> None:
    kernel = """k { a = f32[8,4] parameter(0)
 n = f32[8,4] negate(a)
 r = f32[4,8] reshape(n)
 q = f32[8,4] exponential(n)
 d = f32[4,4] dot(r, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT z = f32[4,4] negate(d) }"""
    text = 'a = f32[8,4] parameter(0)\nROOT f = f32[4,4] fusion(a), kind=kCustom, calls=k, backend_config={"fusion_backend_config":' \
        '{"kind":"__triton_gemm"}}'
    read = module(text, kernel)
    computation = marked(read, Computation.of(read.main()))
    assert not hoist_bitcasts(computation)
    assert shown(computation.root) == "<negate reshape exponential dot negate>(a)"
