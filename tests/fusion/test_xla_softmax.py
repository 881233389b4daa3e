"""XLA's pass that makes Triton kernels of normalisations, before it fuses anything else."""
from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.fusion.xla import softmax
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.normalised import normalisations
from irscope.fusion.xla.softmax import Diamond, NoDiamond
from irscope.fusion.xla.triton import lacking
from irscope.lint.fusion import remarks
from irscope.ops import hlo
from tests.fusion.xla_texts import ADD, module

H100 = DEVICES["h100"]
DIAMOND = """x = f32[16,100] parameter(0)
z = f32[] constant(0)
r = f32[16] reduce(x, z), dimensions={1}, to_apply=add
b = f32[16,100] broadcast(r), dimensions={0}
ROOT y = f32[16,100] divide(x, b)"""
MAX = "max { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT s = f32[] maximum(p, q) }\n"
SOFTMAX = """x = f32[16,100] parameter(0)
z = f32[] constant(0)
n = f32[] constant(-inf)
m = f32[16] reduce(x, n), dimensions={1}, to_apply=max
mb = f32[16,100] broadcast(m), dimensions={0}
d = f32[16,100] subtract(x, mb)
e = f32[16,100] exponential(d)
t = f32[16] reduce(e, z), dimensions={1}, to_apply=add
tb = f32[16,100] broadcast(t), dimensions={0}
ROOT y = f32[16,100] divide(e, tb)"""
RMS = """x = f32[4,8,64] parameter(0)
z = f32[] constant(0)
q = f32[4,8,64] multiply(x, x)
t = f32[4,8] reduce(q, z), dimensions={2}, to_apply=add
c = f32[] constant(0.015625)
cb = f32[4,8] broadcast(c), dimensions={}
m = f32[4,8] multiply(t, cb)
o = f32[] parameter(1)
ob = f32[4,8] broadcast(o), dimensions={}
w = f32[4,8] add(ob, m)
i = f32[4,8] rsqrt(w)
b = f32[4,8,64] broadcast(i), dimensions={0,1}
ROOT y = f32[4,8,64] multiply(x, b)"""


def entry(text: str, header: str = ADD) -> Computation:
    return Computation.of(module(text, header).main())


def changed(*edits: tuple[str, str], text: str = DIAMOND) -> str:
    for before, after in edits:
        assert before in text, before
        text = text.replace(before, after)
    return text


def answer(text: str, root: str = "y", header: str = ADD) -> str:
    """What ends in an instruction: ``producer broadcast reduce`` of a diamond, or ``words @ the one to blame``."""
    found = softmax.DiamondFinder().decide(next(i for i in entry(text, header).instructions if i.name == root))
    if isinstance(found, NoDiamond):
        assert found.cause and found.way_out and "{" not in found.cause + found.way_out
        return f"{found.words} @{found.at.name}"
    return f"{found.producer.name} {found.broadcast.name} {found.reduce.name}"


def kernels(text: str, header: str = ADD) -> list[tuple[list[str], list[str]]]:
    """The operands of each kernel, and the names of what it computes, sorted; the kernels in the order of the text."""
    computation = entry(text, header)
    made = softmax.rewrite(computation, H100)
    assert all(operand in computation.instructions for i in computation.instructions for operand in i.operands)
    assert all(k.kind == "triton" and k.tile[-1] > 1 for k in made)
    return [([o.name for o in k.operands], inside(k)) for k in reversed(made)]


def inside(kernel: Instruction) -> list[str]:
    assert kernel.body is not None
    return sorted(i.name for i in kernel.body.instructions if i.op is not hlo.parameter)


def test_a_diamond_is_one_kernel() -> None:
    assert answer(DIAMOND) == "x b r"
    assert kernels(DIAMOND) == [(["x"], ["b", "r", "y", "z"])]


@pytest.mark.parametrize(("edits", "words"), [
    ([("divide(x, b)", "negate(b)")], "Root is not elementwise binary. @y"),
    ([("ROOT y = f32[16,100] divide(x, b)", "ROOT y = c64[16,100] complex(x, b)")], "Root is not supported for Triton instruction. @y"),
    ([("divide(x, b)", "divide(b, x)")], "Could not find a trivial connection from root to a broadcast. @x"),
    ([("broadcast(r)", "broadcast(k)"), ("b =", "k = f32[16] add(r, r2)\nb ="),
      ("r = ", "w = f32[16,1] parameter(1)\nr2 = f32[16] reduce(w, z), dimensions={1}, to_apply=add\nr = ")],
     "Could not find a trivial connection from matched broadcast to a reduction. @k"),
    ([("b = f32[16,100] b", "b = f32[16,100]{0,1} b"), ("ROOT y = f32[16,100] d", "ROOT y = f32[16,100]{0,1} d")],
     "Broadcast or reduce have non-default layouts. @b"),
    ([("16,100", "16,2,50"), ("{1}", "{1,2}")], "Reduction is not a row-reduction of a single operand. @r"),
    ([("16,100", "100,16"), ("reduce(x, z), dimensions={1}", "reduce(x, z), dimensions={0}"), ("(r), dimensions={0}", "(r), dimensions={1}")],
     "The reductions in the diamond must reduce 1 dimension and that dimension must be the last dimension of the operand. @r"),
    ([("constant(0)", "parameter(1)")], "Reduction identity is not a constant or a supported convert of a constant. @r"),
    ([("z = f32[] constant(0)", "h = f16[] parameter(1)\nz = f32[] convert(h)")],
     "Reduction identity is not a constant or a supported convert of a constant. @r"),
    ([("ROOT y = f32[16,100] divide(x, b)", "y = f32[16,100] divide(x, b)\nROOT t = (f32[16,100], f32[16,100]) tuple(y, b)")],
     "More than one use of broadcast or reduce. @b"),
    ([("ROOT y = f32[16,100] divide(x, b)", "y = f32[16,100] divide(x, b)\nROOT t = (f32[16,100], f32[16]) tuple(y, r)")],
     "More than one use of broadcast or reduce. @r"),
    ([("16,100", "64,64"), ("f32[16]", "f32[64]"), ("(r), dimensions={0}", "(r), dimensions={1}")],
     "Broadcast is not along the reduction dimension. @b"),
    ([("x = f32[16,100] p", "x = f32[16,100]{0,1} p")], "Producer has non-default layout. @x"),
    ([("divide(x, b)", "divide(w, b)"), ("z =", "w = f32[16,100] parameter(1)\nz =")], "Producer is not trivially connected. @x"),
    ([("ROOT y = f32[16,100] divide(x, b)", "a = f32[16,100] abs(x)\ny = f32[16,100] divide(a, b)\n"
       "ROOT t = (f32[16,100], f32[16,100]) tuple(y, a)")], "Producer is not trivially connected. @x"),
    ([("ROOT y", "v = f32[32,50] bitcast(x)\nw = f32[32,50] bitcast(b)\nROOT y"),
      ("y = f32[16,100] divide(x, b)", "y = f32[32,50] divide(v, w)")], "Cannot tile the diamond pattern @v"),
])
def test_each_refusal(edits: list[tuple[str, str]], words: str) -> None:
    assert answer(changed(*edits)) == words


@pytest.mark.parametrize(("edits", "diamond"), [
    ([("reduce(x", "reduce(a"), ("z =", "a = f32[16,100] abs(x)\nz ="), ("divide(x, b)", "divide(a, b)")], "a b r"),
    ([("reduce(x", "reduce(a"), ("z =", "a = f32[16,100] abs(x)\nz =")], "x b r"),
    ([("reduce(x", "reduce(a"), ("z =", "a = f32[16,100] multiply(x, x)\nz =")], "x b r"),
    ([("(x, b)", "(a, b)"), ("ROOT", "l = f32[16,100] broadcast(z), dimensions={}\na = f32[16,100] add(l, x)\nROOT")], "x b r"),
    ([("(x, b)", "(a, b)"), ("ROOT", "w = f32[16] parameter(1)\nl = f32[16,100] broadcast(w), dimensions={0}\n"
                             "a = f32[16,100] add(l, x)\nROOT")], "x b r"),
    ([("(x, b)", "(x, a)"), ("ROOT", "a = f32[16,100] sqrt(b)\nROOT")], "x b r"),
    ([("broadcast(r)", "broadcast(a)"), ("b =", "a = f32[16] sqrt(r)\nb =")], "x b r"),
    ([("x = f32[16,100] parameter(0)", "h = f16[16,100] parameter(0)\nx = f32[16,100] convert(h)")], "x b r"),
    ([("z = f32[] constant(0)", "h = f16[] constant(0)\nz = f32[] convert(h)")], "x b r"),
    ([("16,100] b", "4,4,100] b"), ("(r), dimensions={0}", "(v), dimensions={0,1}"), ("b =", "v = f32[4,4] bitcast(r)\nb ="),
      ("ROOT", "w = f32[16,100] bitcast(b)\nROOT"), ("(x, b)", "(x, w)")], "x b r"),
    ([("x = f32[16,100] parameter(0)", "u = f32[4,4,100] parameter(0)\nx = f32[16,100] bitcast(u)")], "x b r"),
    ([("(r), dimensions={0}", "(k), dimensions={0}"), ("b =", "v = f32[16,1] broadcast(r), dimensions={0}\nk = f32[16] reshape(v)\nb =")],
     "x b r"),
], ids=["read by both", "to the reduction", "squares", "splat", "parameter", "behind the broadcast", "before the broadcast", "convert",
        "identity", "bitcast of results", "bitcast in front", "as JAX writes it"])
def test_what_stands_between(edits: list[tuple[str, str]], diamond: str) -> None:
    assert answer(changed(*edits)) == diamond


def test_a_softmax_is_a_chain_of_two() -> None:
    header = ADD + MAX
    found = softmax.diamonds(entry(SOFTMAX, header))
    assert [[d.root.name for d in chain] for chain in softmax.chains(found)] == [["d", "y"]]
    assert kernels(SOFTMAX, header) == [(["x"], ["d", "m", "mb", "n"]), (["e"], ["t", "tb", "y", "z"])]


def test_diamonds_of_different_values_are_no_chain() -> None:
    text = DIAMOND.replace("ROOT y", "y") + """
v = f32[16,100] parameter(1)
s = f32[16] reduce(v, z), dimensions={1}, to_apply=add
c = f32[16,100] broadcast(s), dimensions={0}
w = f32[16,100] divide(v, c)
ROOT t = (f32[16,100], f32[16,100]) tuple(y, w)"""
    assert [[d.root.name for d in chain] for chain in softmax.chains(softmax.diamonds(entry(text)))] == [["y"], ["w"]]


def test_rms_normalisation() -> None:
    assert answer(RMS) == "x b t"
    assert kernels(RMS) == [(["x", "o"], ["b", "c", "cb", "i", "m", "ob", "q", "t", "w", "y", "z"])]


@pytest.mark.parametrize(("size", "words"), [
    (16384, "x b r"),
    (16385, "Run time estimate for without applying the custom normalization rewrite is faster. @x"),
    (1048576, "Run time estimate for without applying the custom normalization rewrite is faster. @x"),
    (1048577, "SymbolicTileAnalysis failed: No valid tilings found. @x"),
])
def test_rows_fit_into_registers(size: int, words: str) -> None:
    """A row counts as the next power of two; 0.4 of 65,536 registers are 26,214."""
    assert answer(changed(("100", str(size)))) == words


@pytest.mark.parametrize(("size", "warps"), [(512, 1), (513, 2), (1024, 2), (1025, 4), (16384, 4)])
def test_warps_follow_the_row(size: int, warps: int) -> None:
    (kernel,) = softmax.rewrite(entry(changed(("100", str(size)))), H100)
    assert (kernel.tile, kernel.warps) == ((1, size), warps)


def test_devices_before_ampere_are_refused() -> None:
    old = replace(H100, capability="sm_75")
    assert softmax.bails_out(old).endswith("but got compute capability 7.5.")
    assert softmax.bails_out(replace(H100, capability="sm_80")) == softmax.bails_out(replace(H100, capability="sm_100")) == ""
    assert softmax.rewrite(entry(DIAMOND), old) == []
    assert "compute capability 7.5" in normalisations(module(DIAMOND, ADD), old)[0]


def test_a_reducer_that_triton_lacks() -> None:
    header = "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n c = c64[] complex(p, q)\n ROOT s = f32[] real(c) }\n"
    assert answer(DIAMOND, header=header) == "Unsupported reduction computation by Triton. @r"


@pytest.mark.parametrize(("line", "words"), [
    ("y = f32[8] tanh(a)", ""),
    ("y = bf16[8] convert(a)", ""),
    ("y = f8e5m2[8] convert(a)", ""),
    ("y = u8[8] convert(a)", "Unsupported conversion in Triton: f32 to u8"),
    ("y = s4[8] convert(a)", "Unsupported conversion in Triton: f32 to s4"),
    ("y = f16[8] divide(h, h)", ""),
    ("y = f32[8] divide(a, a)", ""),
    ("y = f32[8] sinh(a)", ""),
    ("y = f16[8] round-nearest-even(h)", ""),
    ("y = f32[8] sign(a)", "Unsupported elementwise operation."),
    ("y = s32[8] remainder(i, i)", ""),
    ("y = pred[8] compare(a, a), direction=LT", ""),
    ("y = c64[8] complex(a, a)", "Unsupported output data type."),
    ("y = f32[8] real(c)", "Unsupported input data type."),
    ("y = s32[8] divide(i, i)", ""),
    ("y = s32[8] power(i, i)", "Unsupported elementwise operation."),
    ("y = f32[4] slice(a), slice={[0:4]}", ""),
    ("y = f32[8] reverse(a), dimensions={0}", "Unsupported instruction opcode reverse"),
    ("y = f32[2] constant({1, 2})", "Only scalar constants are supported in Triton."),
    ("y = s4[8] reshape(n)", "S4 is not supported."),
])
def test_what_triton_computes(line: str, words: str) -> None:
    text = "a = f32[8] parameter(0)\nh = f16[8] parameter(1)\nc = c64[8] parameter(2)\ni = s32[8] parameter(3)\n" \
        f"n = s4[8] parameter(4)\nROOT {line}"
    assert lacking(entry(text).root) == words


def test_the_refusal_that_came_nearest_is_told_of_a_reduction() -> None:
    text = changed(("ROOT y = f32[16,100] divide(x, b)", "w = f32[16,100] negate(b)\ny = f32[16,100] divide(x, b)\n"
                    "ROOT t = (f32[16,100], f32[16,100]) tuple(y, w)"))
    told = {r.name: d for r, d in softmax.of_reductions(entry(text)).items()}
    assert isinstance(told["r"], NoDiamond) and told["r"].words == "More than one use of broadcast or reduce."


def test_a_reduction_that_is_not_broadcast_back_is_none() -> None:
    text = "x = f32[16,100] parameter(0)\nz = f32[] constant(0)\nROOT r = f32[16] reduce(x, z), dimensions={1}, to_apply=add"
    assert softmax.of_reductions(entry(text)) == {} and normalisations(module(text, ADD), H100) == []


@pytest.mark.parametrize("line", ["v{i} = f32[16,100] add(k, v{j})", "v{i} = f32[16,100] negate(v{j})"])
def test_a_long_chain_takes_linear_time(line: str) -> None:
    """Each of the additions may be a root, and all of them stand on one chain."""
    steps = "\n".join(line.format(i=i, j=i - 1) for i in range(1, 20_000))
    text = changed(("ROOT y", f"k = f32[16,100] broadcast(z), dimensions={{}}\nv0 = f32[16,100] abs(x)\n{steps}\nROOT y"),
                   ("divide(x, b)", "divide(v19999, b)"))
    (found,) = softmax.diamonds(entry(text))
    assert isinstance(found, Diamond) and found.producer.name == "x"


def test_the_policy_says_what_is_rewritten_before_it() -> None:
    told = [r for r in remarks(module(SOFTMAX, ADD + MAX), "xla-gpu") if "SoftmaxRewriterTriton" in r]
    assert len(told) == 1 and "takes 2 of 2" in told[0] and "%m to %d then %t to %y" in told[0]
    (left,) = normalisations(module(changed(("divide(x, b)", "divide(b, x)")), ADD), H100)
    assert "takes 0 of 1" in left and 'not %r: "Could not find a trivial connection from root to a broadcast."' in left
    assert not [r for r in remarks(module(SOFTMAX, ADD + MAX), "xla-cpu") if "SoftmaxRewriterTriton" in r]


@pytest.mark.parametrize(("steps", "told"), [(softmax.NEAR - 2, 1), (softmax.NEAR - 1, 0)])
def test_what_lies_far_behind_a_reduction_is_no_normalisation(steps: int, told: int) -> None:
    """The broadcast and the root count too."""
    chain = "\n".join(f"v{i} = f32[16] negate({f'v{i - 1}' if i else 'r'})" for i in range(steps))
    text = changed(("broadcast(r)", f"broadcast(v{steps - 1})"), ("b =", f"{chain}\nb ="))
    assert len(softmax.of_reductions(entry(text))) == told and len(softmax.diamonds(entry(text))) == 1


def test_near_is_sixty_four() -> None:
    assert softmax.NEAR == 64
