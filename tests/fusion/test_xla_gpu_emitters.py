"""Which emitter a kernel gets decides how it is launched, and so what it costs: times that XLA logged for programs of our own."""
from __future__ import annotations

import pytest

from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_kinds import KernelEmitter, kind_of, kind_with
from irscope.fusion.xla.gpu_launch import launch
from irscope.fusion.xla.instructions import Computation, Instruction
from tests.fusion.test_xla_gpu import gain
from tests.fusion.xla_texts import ADD, module, why

LARGEST = """
    largest { a = f32[] parameter(0)
              c = f32[] parameter(2)
              g = pred[] compare(a, c), direction=GT
              n = pred[] compare(a, a), direction=NE
              o = pred[] or(g, n)
              v = f32[] select(o, a, c)
              e = pred[] compare(a, c), direction=EQ
              b = s32[] parameter(1)
              d = s32[] parameter(3)
              l = pred[] compare(b, d), direction=LT
              t = pred[] and(e, l)
              w = pred[] or(o, t)
              i = s32[] select(w, b, d)
              ROOT r = (f32[], s32[]) tuple(v, i) }"""
SUM = """
    sum { a = f32[] parameter(0)
          b = f32[] parameter(1)
          d = f32[] subtract(a, b)
          c = pred[] compare(d, d), direction=NE
          o = f32[] add(a, b)
          m = f32[] maximum(a, b)
          v = f32[] abs(d)
          n = f32[] negate(v)
          e = f32[] exponential(n)
          l = f32[] log-plus-one(e)
          t = f32[] add(m, l)
          ROOT r = f32[] select(c, o, t) }"""


def largest(rows: int, length: int) -> str:
    """The largest element of each row and its place."""
    return f"""x = f32[{rows},{length}] parameter(0)
        i = s32[{rows},{length}] iota(), iota_dimension=1
        l = f32[] constant(-inf)
        z = s32[] constant(0)
        ROOT r = (f32[{rows}], s32[{rows}]) reduce(x, i, l, z), dimensions={{1}}, to_apply=largest"""


def pieces(*lengths: int, rows: int = 4096) -> str:
    """The first piece is computed, the others are read."""
    first, *others = lengths
    text = f"x = f32[{rows},{first}] parameter(0)\n p = f32[{rows},{first}] exponential(x)\n"
    text += "".join(f"y{i} = f32[{rows},{n}] parameter({i + 1})\n" for i, n in enumerate(others))
    return text + f"ROOT c = f32[{rows},{sum(lengths)}] concatenate(p{''.join(f', y{i}' for i in range(len(others)))}), dimensions={{1}}"


TIMES = [
    # A concatenation: the first piece alone decides whether warps cross its end ...
    ("h100", pieces(64, 63), "", "p", 3.88475, 2.25925),
    ("h100", pieces(16, 16, 16), "", "p", 3.35925, 2.27625),
    # ... and the kernel loops over the largest piece, unless there are more than four
    ("h100", pieces(1, 1), "", "p", 2.224, 1.22325),
    # an update in place loops over what is written; what it writes over is not computed
    ("h100", "x = f32[64,32] parameter(0)\n u = f32[4,32] parameter(1)\n i = s32[] parameter(2)\n z = s32[] constant(0)\n c = f32[] constant(2)\n"
     "b = f32[64,32] broadcast(c), dimensions={}\n m = f32[64,32] multiply(x, b)\n d = f32[4,32] broadcast(c), dimensions={}\n"
     "a = f32[4,32] add(u, d)\n ROOT w = f32[64,32] dynamic-update-slice(m, a, i, z)", "", "m", 2.02675, 1.01575),
    ("h100", "x = f32[64,32] parameter(0)\n u = f32[4,32] parameter(1)\n i = s32[] parameter(2)\n z = s32[] constant(0)\n c = f32[] constant(2)\n"
     "d = f32[4,32] broadcast(c), dimensions={}\n a = f32[4,32] add(u, d)\n"
     "ROOT w = f32[64,32] dynamic-update-slice(x, a, i, z)", "", "a", 2.0245, 1.01625),
    # a scatter loops over its updates, and reads and writes as much as they are
    ("h100", "t = s32[256] parameter(0)\n i = s32[65536,1] parameter(1)\n c = s32[] constant(1)\n u = s32[65536,1] broadcast(c), dimensions={}\n"
     "ROOT s = s32[256] scatter(t, i, u), update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
     "index_vector_dim=1, to_apply=add", ADD.replace("f32", "s32"), "u", 2.3295, 1.173),
    ("h100", "t = f32[32000,256] parameter(0)\n i = s32[4096,1] parameter(1)\n b = bf16[4096,1,256] parameter(2)\n"
     "u = f32[4096,1,256] convert(b)\n ROOT s = f32[32000,256] scatter(t, i, u), update_window_dims={1,2}, inserted_window_dims={}, "
     "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add", ADD, "u", 7.64325, 4.14075),
    # a reduction of several arrays at once: as many results as one has, and no short rows that share a warp
    ("h100", largest(30, 40), LARGEST, "i", 2.04125, 1.02075),
    ("h100", largest(64, 4), LARGEST, "i", 2.0055, 1.00325),
    ("h100", largest(200, 10), LARGEST, "i", 2.1445, 1.07875),
    # a map does all that its function does
    ("h100", "x = f32[16,7,16] parameter(0)\n y = f32[16,7] parameter(1)\n b = f32[16,7,16] broadcast(y), dimensions={0,1}\n"
     "ROOT m = f32[16,7,16] map(x, b), dimensions={0,1,2}, to_apply=sum", SUM, "b", 2.098, 1.08775),
    # short rows: two elements a thread where there are blocks for all cores
    ("a100", "x = f32[4096,16] parameter(0)\n z = f32[] constant(0)\n e = f32[4096,16] exponential(x)\n"
     "ROOT r = f32[4096] reduce(e, z), dimensions={1}, to_apply=add", ADD, "e", 2.39725, 1.14025),
    # columns of halves: four at a time
    ("a100", "x = bf16[1024,512] parameter(0)\n h = bf16[] parameter(1)\n z = f32[] convert(h)\n c = f32[1024,512] convert(x)\n"
     "ROOT r = f32[512] reduce(c, z), dimensions={0}, to_apply=add", ADD, "c", 9.418, 7.04025),
    # bytes by bandwidth in 32 bits, and durations that are multiplied by what they were divided by
    ("a100", "x = f32[64,50] parameter(0)\n c = f32[] constant(1.5)\n b = f32[64,50] broadcast(c), dimensions={}\n"
     "ROOT p = f32[64,50] power(x, b)", "", "b", 2.88525, 1.86775),
    # Blackwell: a comparison reads wider elements than it makes
    ("b200", "x = f32[1024,4096] parameter(0)\n c = f32[] constant(0)\n b = f32[1024,4096] broadcast(c), dimensions={}\n"
     "ROOT l = pred[1024,4096] compare(x, b), direction=LT", "", "b", 9.22475, 3.85125),
]


@pytest.mark.parametrize("device, instructions, header, producer, apart, fused", TIMES, ids=[f"{i}" for i in range(len(TIMES))])
def test_times_are_those_that_xla_logged(device: str, instructions: str, header: str, producer: str, apart: float, fused: float) -> None:
    assert [t / 1000 for t in gain(device, instructions, header, producer)] == [apart, fused]


def root(instructions: str, header: str = "") -> Instruction:
    return Computation.of(module(instructions, header).main()).root


@pytest.mark.parametrize("lengths, kind", [((8, 8), "kInput"), ((8, 8, 8, 8), "kInput"), ((8, 8, 8, 8, 8), "kLoop")])
def test_a_concatenation_of_up_to_four_pieces_has_a_kernel_of_its_own_kind(lengths: tuple[int, ...], kind: str) -> None:
    """As the kernels of jaxlib 0.10.2 say of themselves."""
    kernel = root(pieces(*lengths))
    assert kind_with(kernel, kernel.operands[0]) == kind
    assert (kind_of(kernel) is KernelEmitter.CONCATENATE) is (kind == "kInput")


def test_a_concatenation_that_is_read_otherwise_too_decides_nothing() -> None:
    body = """both { a = f32[64,8] parameter(0)
                     b = f32[64,8] parameter(1)
                     c = f32[64,16] concatenate(a, b), dimensions={1}
                     s = f32[64,16] reverse(c), dimensions={0}
                     ROOT r = f32[64,16] add(%s, s) }"""
    text = "x = f32[64,8] parameter(0)\n y = f32[64,8] parameter(1)\n ROOT f = f32[64,16] fusion(x, y), kind=kLoop, calls=both"
    assert kind_of(root(text, body % "c")) is KernelEmitter.LOOP
    assert kind_of(root(text, body.replace("s = f32[64,16] reverse(c), dimensions={0}", "s = f32[64,16] negate(c)") % "c")) is KernelEmitter.CONCATENATE


def test_a_concatenation_takes_a_reduction_in() -> None:
    """What a reduction is fused into must not be a plain loop, and a concatenation of up to four pieces is none."""
    text = """x = f32[256,64] parameter(0)
        z = f32[] constant(0)
        r = f32[256] reduce(x, z), dimensions={1}, to_apply=add
        ROOT c = f32[%d] concatenate(%s), dimensions={0}"""
    assert why("xla-gpu", text % (512, "r, r"), "r c", ADD) != "reduce-epilogue"
    assert why("xla-gpu", text % (1280, "r, r, r, r, r"), "r c", ADD) == "reduce-epilogue"


def test_an_update_of_something_computed_is_not_in_place() -> None:
    """Then the kernel loops over all: the same update, of a parameter and of a negated one."""
    text = """x = f32[64,32] parameter(0)
        u = f32[4,32] parameter(1)
        i = s32[] parameter(2)
        ROOT f = f32[64,32] fusion(x, u, i), kind=kLoop, calls=update"""
    body = """update { x = f32[64,32] parameter(0)
                       u = f32[4,32] parameter(1)
                       i = s32[] parameter(2)
                       z = s32[] constant(0)
                       n = f32[64,32] negate(x)
                       e = f32[4,32] exponential(u)
                       ROOT d = f32[64,32] dynamic-update-slice(%s, e, i, z) }"""
    assert launch(DEVICES["h100"], None, root(text, body % "x"), KernelEmitter.LOOP) == (1, 128)
    assert launch(DEVICES["h100"], None, root(text, body % "n"), KernelEmitter.LOOP) == (16, 128)
