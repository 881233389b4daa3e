"""The second version of XLA's GemmFusion, bitcasts that leave the kernel of a product, and how a kernel steps over what it reads.

The kernels are those that jaxlib 0.10.2 makes of these texts with ``--xla_gpu_experimental_gemm_fusion_v2=true``.
"""
from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.xla_gemm.bitcasts import (
    bitcast_above_broadcast,
    bitcast_above_transpose,
    broadcast_above_bitcast,
    transpose_above_bitcast,
)
from benchmarks.xla_gemm.hoist import hoist_bitcasts
from benchmarks.xla_gemm.search import searched
from irscope.fusion.xla.gemm.bitcasts import ArrayForm
from irscope.fusion.xla.gemm.orders import Order, Piece, Stride, strides_of
from irscope.fusion.xla.gemm.products import GemmSettings, rewrite
from irscope.fusion.xla.gemm.rules import No
from irscope.fusion.xla.gemm.steps import operand_steps, steps
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla_gpu import marked
from irscope.ops import hlo
from tests.fusion.xla_texts import module

DOT = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
SECOND = GemmSettings(search=searched)


def second(text: str) -> Computation:
    """A computation behind the second version of the pass."""
    computation = Computation.of(module(text).main())
    assert all(product.is_made for product in rewrite(computation, DEVICES["a100"], SECOND))
    return computation


def shown(instruction: Instruction) -> str:
    """An instruction with what it reads, down to names; a kernel by its opcodes."""
    op = instruction.op.name
    if instruction.body is not None:
        op = "<" + " ".join(i.op.name for i in instruction.body.post_order() if i.op is not hlo.parameter) + ">"
    inside = " ".join(shown(o) if o.op in (hlo.fusion, hlo.bitcast) else o.name for o in instruction.operands)
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
    (f"a = f32[32,24] parameter(0)\nq = f32[64,12] reshape(a)\nn = f32[32,24] negate(a)\ns = f32[64,12] reshape(n)\n"
     f"m = f32[64,12] add(q, s)\nb = f32[12,32] parameter(1)\nROOT d = f32[64,32] dot(m, b), {DOT}", "<negate add dot>(b bitcast(a))"),
    (f"a = f32[64,12] parameter(0)\nb = f32[12,32] parameter(1)\nd = f32[64,32] dot(a, b), {DOT}\nr = f32[2048] reshape(d)\n"
     "n = f32[2048] negate(r)\nROOT q = f32[4,512] reshape(n)", "reshape(bitcast(<dot negate>(a b)))"),
    (f"a = f32[64,12] parameter(0)\nn = f32[64,12] negate(a)\nm = f32[64,12] multiply(n, n)\nb = f32[12,32] parameter(1)\n"
     f"ROOT d = f32[64,32] dot(m, b), {DOT}", "<negate multiply dot>(b a)"),
    (f"a = f32[64,64] parameter(0)\ne = f32[64,64] parameter(1)\nc = f32[64,128] concatenate(a, e), dimensions={{1}}\nb = f32[128,32] parameter(2)\n"
     f"ROOT d = f32[64,32] dot(c, b), {DOT}", "<concatenate dot>(b a e)"),
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
    assert bitcast_above_broadcast(root(BROADCAST), ArrayForm((2, 3, 5, 4), (3, 2, 1, 0))) == (ArrayForm((2, 3, 4), (2, 1, 0)), (0, 1, 3))
    assert bitcast_above_broadcast(root(BROADCAST), ArrayForm((30, 4), (1, 0))) is None
    assert bitcast_above_broadcast(root(BROADCAST), ArrayForm((6, 1, 5, 4), (3, 2, 1, 0))) == (ArrayForm((6, 4), (1, 0)), (0, 3))


def test_a_broadcast_passes_a_bitcast_whose_dimensions_stay_together() -> None:
    text = "v = f32[12] parameter(0)\nROOT b = f32[5,12] broadcast(v), dimensions={1}"
    assert broadcast_above_bitcast(root(text), ArrayForm((3, 4), (1, 0))) == (ArrayForm((3, 4, 5), (1, 0, 2)), (0, 1))
    assert broadcast_above_bitcast(root(BROADCAST), ArrayForm((24,), (0,))) is None


def test_a_bitcast_passes_a_transpose_of_what_it_merges() -> None:
    assert bitcast_above_transpose(root(TRANSPOSE), ArrayForm((4, 6), (1, 0))) == (ArrayForm((6, 4), (1, 0)), (1, 0))
    assert bitcast_above_transpose(root(TRANSPOSE), ArrayForm((8, 3), (1, 0))) is None
    assert bitcast_above_transpose(root(TRANSPOSE), ArrayForm((2, 2, 6), (2, 1, 0))) == (ArrayForm((6, 2, 2), (2, 1, 0)), (1, 2, 0))
    assert transpose_above_bitcast(root(TRANSPOSE), ArrayForm((6, 4), (1, 0))) == (ArrayForm((4, 6), (1, 0)), (1, 0))


def dot_of(text: str) -> tuple[Instruction, Instruction]:
    computation = Computation.of(module(text).main())
    return next(i for i in computation.instructions if i.op is hlo.dot), computation.root


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


def test_a_kernel_that_reads_an_array_twice_through_a_bitcast_reads_it_no_more_directly() -> None:
    text = f"a = f32[32,24] parameter(0)\nc = f32[32,24] negate(a)\nr = f32[64,12] reshape(c)\nb = f32[12,32] parameter(1)\n" \
        f"ROOT d = f32[64,32] dot(r, b), {DOT}"
    computation = Computation.of(module(text).main())
    rewrite(computation, DEVICES["a100"])
    hoist_bitcasts(computation)
    assert [user.op.name for user in computation.params[0].users] == ["bitcast"]
    assert list(computation.params[1].users) == [computation.root]


def test_sizes_of_one_are_in_nobodys_way() -> None:
    broadcast = "v = f32[6] parameter(0)\nROOT b = f32[6,1,5] broadcast(v), dimensions={0}"
    assert bitcast_above_broadcast(root(broadcast), ArrayForm((2, 3, 5), (2, 1, 0))) == (ArrayForm((2, 3), (1, 0)), (0, 1))
    transpose = "v = f32[2,1,3] parameter(0)\nROOT t = f32[3,2,1] transpose(v), dimensions={2,0,1}"
    assert bitcast_above_transpose(root(transpose), ArrayForm((3, 2), (1, 0))) == (ArrayForm((2, 3), (1, 0)), (1, 0))
    assert bitcast_above_transpose(root(TRANSPOSE), ArrayForm((4, 1, 6), (2, 1, 0))) is not None
    turned = "v = f32[2,3]{0,1} parameter(0)\nROOT t = f32[3,2]{1,0} transpose(v), dimensions={1,0}"
    assert bitcast_above_transpose(root(turned), ArrayForm((6,), (0,))) is None


@given(st.integers(0, 10 ** 9))
def test_moved_bitcasts_keep_every_element(seed: int) -> None:
    """Held against numpy on random shapes, row by row in memory."""
    rng = random.Random(seed)
    dims = [rng.choice((1, 2, 3, 4)) for _ in range(rng.randint(1, 4))]
    shape, permutation = ",".join(map(str, dims)), rng.sample(range(len(dims)), len(dims))
    turned = [dims[d] for d in permutation]
    values = np.arange(np.prod(dims)).reshape(dims)
    target = regrouped(rng, turned)
    instruction = root(f"v = f32[{shape}] parameter(0)\nROOT t = f32[{','.join(map(str, turned))}] transpose(v), "
                       f"dimensions={{{','.join(map(str, permutation))}}}")
    found = bitcast_above_transpose(instruction, rows(target))
    if found is not None:
        assert np.array_equal(values.reshape(found[0].dims).transpose(found[1]), values.transpose(permutation).reshape(target))
    source = regrouped(rng, dims)
    found = transpose_above_bitcast(instruction, rows(source))
    if found is not None:
        moved = values.reshape(source).transpose(found[1])
        assert moved.shape == found[0].dims and np.array_equal(moved.reshape(turned), values.transpose(permutation))
    kept = sorted(rng.sample(range(len(dims)), rng.randint(0, len(dims))))
    part = np.arange(np.prod([dims[d] for d in kept], dtype=int)).reshape([dims[d] for d in kept])
    repeated = root(f"v = f32[{','.join(str(dims[d]) for d in kept)}] parameter(0)\nROOT b = f32[{shape}] broadcast(v), "
                    f"dimensions={{{','.join(map(str, kept))}}}")
    target = regrouped(rng, dims)
    found = bitcast_above_broadcast(repeated, rows(target))
    if found is not None:
        assert np.array_equal(spread(part.reshape(found[0].dims), found[1], target), spread(part, kept, dims).reshape(target))


def regrouped(rng: random.Random, dims: list[int]) -> list[int]:
    """Other sizes with the same product: neighbours merged, split, ones put in or left out."""
    made: list[int] = []
    for size in dims:
        if made and rng.random() < 0.4:
            made[-1] *= size
        elif size == 4 and rng.random() < 0.5:
            made += [2, 2]
        elif size != 1 or rng.random() < 0.5:
            made.append(size)
        if rng.random() < 0.2:
            made.append(1)
    return made or [1]


def rows(dims: list[int]) -> ArrayForm:
    return ArrayForm(tuple(dims), tuple(range(len(dims) - 1, -1, -1)))


def spread(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]], kept: Sequence[int], dims: Sequence[int],
           ) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """HLO's broadcast: each dimension goes to a place of its own."""
    wide = values.reshape([dims[d] if d in kept else 1 for d in range(len(dims))])
    return np.broadcast_to(wide, dims)


def test_strides_join_neighbours_and_leave_ones_out() -> None:
    whole = Piece.whole
    order = Order((whole(1, 8), whole(0, 1), whole(0, 4), whole(0, 1), whole(1, 1)), {0: (1, 2, 3), 1: (0, 4)})
    assert strides_of(order) == {0: (Stride(8, 4, 0, 4, (4,)),), 1: (Stride(1, 8, 0, 8, (8,)),)}
    assert strides_of(Order((whole(0, 1),), {0: (0,)})) == {0: (Stride(1, 1, 0, 1, (1,)),)}


def test_a_product_that_is_read_twice_has_no_steps() -> None:
    dot, end = dot_of(f"""a = f32[4,8] parameter(0)
b = f32[8,16] parameter(1)
d = f32[4,16] dot(a, b), {DOT}
n = f32[4,16] negate(d)
ROOT r = f32[4,16] add(d, n)""")
    no = steps(dot, end)
    assert isinstance(no, No) and no.rule.name == "gemm-several-readers"
