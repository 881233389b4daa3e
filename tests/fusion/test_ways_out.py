"""By hand, rule by rule: an edge that the rule refuses, and an edit of the graph after which it is fused; every refusal has a cause."""
from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.fusion import EdgeVerdict
from irscope.graph import Module
from irscope.lint.verdicts import verdicts_of
from tests.fusion.inductor_texts import graph, tensor
from tests.fusion.test_xla_gpu import SCATTER, SOFTMAX, TRITON, UPDATE, columns, epilogue, many, reductions, wide
from tests.fusion.xla_texts import ADD, concatenation, many_reductions, many_slices, module

SAMPLES = Path(irscope.__file__).parent.parent / "samples"
POLICIES = ("irscope", "tvm", "inductor", "xla-cpu", "xla-gpu")


def hlo(instructions: str, header: str = "") -> Module:
    return module(instructions, header)


def relay(lines: str) -> Module:
    """A function of two matrices; the last line is its result."""
    head = "def @main(%x: Tensor[(8, 8), float32], %y: Tensor[(8, 8), float32]) {"
    return irscope.load(f"{head}\n{lines}\n}}\n", format="relay").module()


def torch(lines: str, result: str, **inputs: str) -> Module:
    return graph(inputs, lines, result)


LESS = "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = pred[] compare(a, b), direction=LT }\n"
BODY = "body { p = f32[4] parameter(0)\n ROOT n = f32[4] negate(p) }\n"
BOTH = "body { p = f32[4] parameter(0)\n e = f32[4] exponential(p)\n ROOT n = f32[4] negate(e) }\n"
BRANCH = "x = f32[4] parameter(0)\n c = pred[] parameter(1)\n"
TWO = "x = f32[4,8] parameter(0)\n w = f32[8,8] parameter(1)\n k = f32[4,8] parameter(2)\n"
READ_TWICE = "x = f32[8] parameter(0)\n e = f32[8] exponential(x)\n{more} a = f32[8] negate(e)\n b = f32[8] abs({second})\n" \
    "ROOT t = (f32[8], f32[8]) tuple(a, b)"
DOT = "dot({0}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"
SUMS = "x = f32[64] parameter(0)\n y = f32[64] parameter(1)\n p = f32[64] add(x, y)\n{more} s = f32[64] sort(p), dimensions={{0}}, " \
    "to_apply=less\n n = f32[64] negate({of})\n ROOT t = (f32[64], f32[64]) tuple(s, n)"
UPDATED = "b = f32[16] parameter(0)\n s = f32[4] slice(b), slice={{[{0}:{1}]}}\n n = f32[4] negate(s)\n i = s32[] constant(2)\n" \
    "ROOT u = f32[16] dynamic-update-slice(b, n, i)"
FED = "x = f32[4] parameter(0)\n t = token[] after-all()\n {ROOT} e = f32[4] negate(x)\n n = f32[4] abs(e)\n" \
    "o = token[] outfeed(n, t), outfeed_shape=f32[4]\n {more}"
OUT = "ROOT r = (f32[4], f32[4]) tuple(e, n)"
QUEUED = "x = f32[32] parameter(0)\n q = f32[32,64] broadcast(x), dimensions={0}\n ROOT f = f32[32] fusion(q), kind=kLoop, calls=many"
SHARED = "x = f32[64] parameter(0)\n q = f32[32,64] broadcast(x), dimensions={1}\n ROOT f = f32[64] fusion(q), kind=kLoop, calls=many"
ROWS = "x = f32[{0}] parameter(0)\n n = f32[{0}] negate(x)\n b = f32[32,64] bitcast(n)\n e = f32[32,64] exponential(b)\n" \
    f"ROOT t = f32[32,64] fusion(e), kind=kCustom, calls=row, {TRITON}"
LONG = "x = f32[2,{n}] parameter(0)\n zero = f32[] constant(0)\n s = f32[2] reduce(x, zero), dimensions={{1}}, to_apply=add\n" \
    "b = f32[2,{n}] broadcast(s), dimensions={{0}}\n ROOT r = f32[2,{n}] divide(x, b)"
CIRCLE = "x = f32[9] parameter(0)\n e = f32[9] exponential(x)\n{more} s = f32[9] sort(e), dimensions={{0}}, to_apply=less\n" \
    "ROOT r = f32[9] add({of}, s)"

EDITS: list[tuple[str, str, Module, str, Module, str]] = [
    # policy, rule, the program, the edge, the program with the edit made, the edge as it is then (empty: it is gone)
    ("xla-cpu", "can-not-duplicate", hlo(SUMS.format(more="", of="p"), LESS), "p n",
     hlo(SUMS.format(more=" q = f32[64] add(x, y)\n", of="q"), LESS), "q n"),
    ("xla-cpu", "concatenate", hlo(concatenation(9, 4, 0)), "n0 c", hlo(concatenation(8, 4, 0)), "n0 c"),
    ("xla-cpu", "not-profitable", hlo("x = f32[8] parameter(0)\n e = f32[8] exponential(x)\n ROOT b = f32[8,4] broadcast(e), dimensions={0}"),
     "e b", hlo("x = f32[8] parameter(0)\n b = f32[8,4] broadcast(x), dimensions={0}\n ROOT e = f32[8,4] exponential(b)"), "b e"),
    ("xla-cpu", "root", hlo(FED.replace("{ROOT}", "ROOT").replace("{more}", "")), "e n",
     hlo(FED.replace("{ROOT}", "").replace("{more}", OUT)), "e n"),
    ("xla-cpu", "expensive-twice", hlo(READ_TWICE.format(more="", second="e")), "e a",
     hlo(READ_TWICE.format(more=" f = f32[8] exponential(x)\n", second="f")), "e a"),
    ("xla-cpu", "in-place", hlo(UPDATED.format(3, 7)), "s n", hlo(UPDATED.format(2, 6)), "s n"),
    ("xla-cpu", "too-many-reductions", hlo(many_reductions(7), ADD), "r0 m1", hlo(many_reductions(6), ADD), "r0 m1"),
    ("xla-cpu", "too-many-copies", hlo(many_slices(16)), "p cut0", hlo(many_slices(15)), "p cut0"),
    ("xla-cpu", "consumer-not-fusible", hlo(BRANCH + "e = f32[4] exponential(x)\n ROOT r = f32[4] conditional(c, e, e), "
                                            "true_computation=body, false_computation=body", BODY), "e r",
     hlo(BRANCH + "ROOT r = f32[4] conditional(c, x, x), true_computation=body, false_computation=body", BOTH), "e n"),
    ("xla-cpu", "producer-is-fusion", hlo("x = f32[4] parameter(0)\n f = f32[4] fusion(x), kind=kLoop, calls=body\n ROOT r = f32[4] negate(f)",
                                          BODY), "f r",
     hlo("x = f32[4] parameter(0)\n n = f32[4] negate(x)\n ROOT r = f32[4] negate(n)"), "n r"),
    ("xla-cpu@jaxlib-0.4.38", "major-reduction", hlo("x = f32[8,16] parameter(0)\n e = f32[8,16] negate(x)\n z = f32[] constant(0)\n"
                                                     "ROOT r = f32[16] reduce(e, z), dimensions={0}, to_apply=add", ADD), "e r",
     hlo("x = f32[16,8] parameter(0)\n e = f32[16,8] negate(x)\n z = f32[] constant(0)\n"
         "ROOT r = f32[16] reduce(e, z), dimensions={1}, to_apply=add", ADD), "e r"),

    ("xla-gpu", "reduce-after-reduce", hlo(reductions(16, 16), ADD), "a b", hlo(
        "x = f32[64,16,16] parameter(0)\n n = f32[64,16,16] negate(x)\n z = f32[] constant(0)\n"
        "ROOT b = f32[64] reduce(n, z), dimensions={1,2}, to_apply=add", ADD), "n b"),
    ("xla-gpu", "reduce-epilogue", hlo(epilogue("add(r, y)"), ADD), "r e", hlo(epilogue("negate(r)"), ADD), "r e"),
    ("xla-gpu", "reduce-epilogue", hlo(columns(64, 32), ADD), "r e", hlo(columns(64, 32).replace("add(r, y)", "negate(r)"), ADD), "r e"),
    ("xla-gpu", "too-many-reductions", hlo(QUEUED, many(9, 1)), "q f", hlo(QUEUED, many(8, 1)), "q f"),
    ("xla-gpu", "shared-memory", hlo(SHARED, many(3, 0)), "q f", hlo(SHARED, many(2, 0)), "q f"),
    ("xla-gpu", "only-bitcast-users", hlo("x = f32[8,8] parameter(0)\n n = f32[8,8] negate(x)\n ROOT b = f32[64] bitcast(n)"), "n b",
     hlo("x = f32[8,8] parameter(0)\n b = f32[64] bitcast(x)\n ROOT n = f32[64] negate(b)"), "b n"),
    ("xla-gpu", "not-tiled", hlo(ROWS.replace("{0}", "2048"), SOFTMAX), "e t", hlo(ROWS.replace("{0}", "4,8,64"), SOFTMAX), "e t"),
    ("xla-gpu", "triton-unsupported", hlo("x = f32[32,64] parameter(0)\n n = f32[32,64] reverse(x), dimensions={1}\n"
                                          f"ROOT t = f32[32,64] fusion(n), kind=kCustom, calls=row, {TRITON}", SOFTMAX), "n t",
     hlo("x = f32[32,64] parameter(0)\n r = f32[32,64] reverse(x), dimensions={1}\n n = f32[32,64] negate(x)\n"
         f"t = f32[32,64] fusion(n), kind=kCustom, calls=row, {TRITON}\n ROOT s = f32[32,64] add(t, r)", SOFTMAX), "n t"),
    ("xla-gpu", "scatter-buffer", hlo(f"a = f32[8,4] parameter(0)\n b = f32[8,4] negate(a)\n i = s32[2,1] parameter(1)\n"
                                      f"u = f32[2,4] parameter(2)\n ROOT s = f32[8,4] {SCATTER}", UPDATE), "b s",
     hlo(f"a = f32[8,4] parameter(0)\n i = s32[2,1] parameter(1)\n u = f32[2,4] parameter(2)\n z = f32[] constant(0)\n"
         f"b = f32[8,4] broadcast(z), dimensions={{}}\n s = f32[8,4] {SCATTER}\n n = f32[8,4] negate(a)\n"
         f"ROOT r = f32[8,4] add(s, n)", UPDATE), "n r"),
    ("xla-gpu", "in-place", hlo(UPDATED.format(3, 7)), "s n", hlo(UPDATED.format(2, 6)), "s n"),
    ("xla-gpu", "root", hlo(FED.replace("{ROOT}", "ROOT").replace("{more}", "")), "e n", hlo("x = f32[4] parameter(0)\n t = token[] after-all()\n ROOT e = f32[4] negate(x)\n f = f32[4] negate(x)\n n = f32[4] abs(f)\n"
         "o = token[] outfeed(n, t), outfeed_shape=f32[4]"), "f n"),
    ("xla-gpu", "too-many-buffers", hlo(wide(96)), "a92 r", hlo(wide(94)), "a90 r"),

    ("tvm", "let", relay("let %a = exp(%x); %0 = nn.relu(%a); %0"), "a 0", relay("%0 = exp(%x); %1 = nn.relu(%0); %1"), "0 1"),
    ("tvm", "multi-consumer", relay("%0 = exp(%x); %1 = nn.relu(%0); %2 = nn.dense(%0, %y, units=8); (%1, %2)"), "0 1",
     relay("%0 = exp(%x); %1 = exp(%x); %2 = nn.relu(%0); %3 = nn.dense(%1, %y, units=8); (%2, %3)"), "0 2"),
    ("tvm", "complex-into-shape", relay("%0 = nn.dense(%x, %y, units=8); %1 = reshape(%0, newshape=[64]); %1"), "0 1",
     relay("%0 = nn.dense(%x, %y, units=8); %1 = nn.relu(%0); %2 = reshape(%1, newshape=[64]); %2"), "0 1"),
    ("tvm", "prologue", relay("%0 = multiply(%x, 2f); %1 = nn.dense(%0, %y, units=8); %1"), "0 1",
     relay("%0 = nn.dense(%x, %y, units=8); %1 = multiply(%0, 2f); %1"), "0 1"),
    ("tvm", "injective-into-reduce", relay("%0 = transpose(%x, axes=[1, 0]); %1 = sum(%0, axis=[0]); %1"), "0 1",
     relay("%0 = sum(%x, axis=[1]); %0"), ""),
    ("tvm", "injective-into-complex",
     relay("%0 = nn.dense(%x, %y, units=8); %1 = transpose(%x, axes=[1, 0]); %2 = add(%0, %1); %2"), "1 2",
     relay("%0 = nn.dense(%x, %y, units=8); %1 = add(%0, %x); %1"), ""),
    ("tvm", "path", relay("%0 = exp(%x); %1 = nn.dense(%0, %y, units=8); %2 = add(%0, %1); %2"), "0 2",
     relay("%0 = exp(%x); %1 = exp(%x); %2 = nn.dense(%0, %y, units=8); %3 = add(%1, %2); %3"), "1 3"),
    ("tvm", "output", relay("%0 = exp(%x); %1 = ref(%0); %2 = nn.relu(%0); (%1, %2)"), "0 2",
     relay("%0 = exp(%x); %1 = exp(%x); %2 = ref(%0); %3 = nn.relu(%1); (%2, %3)"), "1 3"),

    ("irscope", "reads-whole", hlo(TWO + "s = f32[4,8] multiply(x, k)\n ROOT d = f32[4,8] " + DOT.format("s")), "s d",
     hlo(TWO + "d = f32[4,8] " + DOT.format("x") + "\n ROOT s = f32[4,8] multiply(d, k)"), "d s"),
    ("irscope", "repeated-work", hlo("x = f32[8] parameter(0)\n y = f32[100,8] parameter(1)\n e = f32[8] exponential(x)\n"
                                     "b = f32[100,8] broadcast(e), dimensions={1}\n ROOT r = f32[100,8] add(y, b)"), "e b",
     hlo("x = f32[8] parameter(0)\n y = f32[100,8] parameter(1)\n b = f32[100,8] broadcast(x), dimensions={1}\n"
         "e = f32[100,8] exponential(b)\n ROOT r = f32[100,8] add(y, e)"), "b e"),
    ("irscope", "stored-for-others", hlo("x = f32[8,4] parameter(0)\n e = f32[8,4] exponential(x)\n s = f32[8,4] sort(e), dimensions={1}, "
                                         "to_apply=less\n c = f32[8,4] cosine(e)\n d = f32[8,4] sort(c), dimensions={1}, to_apply=less\n"
                                         "n = f32[8,4] negate(e)\n ROOT t = (f32[8,4], f32[8,4], f32[8,4]) tuple(s, d, n)", LESS), "e c",
     hlo("x = f32[8,4] parameter(0)\n e = f32[8,4] exponential(x)\n f = f32[8,4] exponential(x)\n s = f32[8,4] sort(e), dimensions={1}, "
         "to_apply=less\n c = f32[8,4] cosine(f)\n d = f32[8,4] sort(c), dimensions={1}, to_apply=less\n"
         "n = f32[8,4] negate(e)\n ROOT t = (f32[8,4], f32[8,4], f32[8,4]) tuple(s, d, n)", LESS), "f c"),
    ("irscope", "reordered", hlo("x = f32[4,6,8] parameter(0)\n t = f32[6,4,8] transpose(x), dimensions={1,0,2}\n r = f32[6,32] reshape(t)\n"
                                 "z = f32[] constant(0)\n s = f32[6] reduce(r, z), dimensions={1}, to_apply=add\n"
                                 "b = f32[6,32] broadcast(s), dimensions={0}\n ROOT d = f32[6,32] subtract(r, b)", ADD), "t r",
     hlo("x = f32[4,6,8] parameter(0)\n t = f32[6,4,8] transpose(x), dimensions={1,0,2}\n z = f32[] constant(0)\n"
         "s = f32[6] reduce(t, z), dimensions={1,2}, to_apply=add\n b = f32[6,4,8] broadcast(s), dimensions={0}\n"
         "ROOT d = f32[6,4,8] subtract(t, b)", ADD), "t d"),
    ("irscope", "reshaped", hlo(TWO + "d = f32[4,8] " + DOT.format("x") + "\n r = f32[32] reshape(d)\n ROOT n = f32[32] negate(r)"), "d r",
     hlo(TWO + "d = f32[4,8] " + DOT.format("x") + "\n n = f32[4,8] negate(d)\n r = f32[32] reshape(n)\n"
         "ROOT s = f32[32] sort(r), dimensions={0}, to_apply=less", LESS), "d n"),
    ("irscope", "moved", hlo(TWO + "d = f32[4,8] " + DOT.format("x") + "\n t = f32[8,4] transpose(d), dimensions={1,0}\n"
                             "ROOT n = f32[8,4] negate(t)"), "d t",
     hlo(TWO + "d = f32[4,8] " + DOT.format("x") + "\n n = f32[4,8] negate(d)\n t = f32[8,4] transpose(n), dimensions={1,0}\n"
         "ROOT s = f32[8,4] sort(t), dimensions={0}, to_apply=less", LESS), "d n"),
    ("irscope", "read-twice", hlo("x = f32[8,8] parameter(0)\n e = f32[8,8] exponential(x)\n t = f32[8,8] transpose(e), dimensions={1,0}\n"
                                  "r = f32[8,8] add(e, t)\n ROOT s = (f32[8,8], f32[8,8]) tuple(r, e)"), "e t",
     hlo("x = f32[8,8] parameter(0)\n e = f32[8,8] exponential(x)\n f = f32[8,8] exponential(x)\n"
         "t = f32[8,8] transpose(f), dimensions={1,0}\n r = f32[8,8] add(e, t)\n ROOT s = (f32[8,8], f32[8,8]) tuple(r, e)"), "f t"),
    ("irscope", "other-loops", hlo("x = f32[8] parameter(0)\n y = f32[8,4] parameter(1)\n e = f32[8] exponential(x)\n"
                                   "b = f32[8,4] broadcast(e), dimensions={0}\n r = f32[8,4] add(y, b)\n"
                                   "ROOT t = (f32[8,4], f32[8]) tuple(r, e)"), "e b",
     hlo("x = f32[8] parameter(0)\n y = f32[8,4] parameter(1)\n e = f32[8] exponential(x)\n b = f32[8,4] broadcast(x), dimensions={0}\n"
         "f = f32[8,4] exponential(b)\n r = f32[8,4] add(y, f)\n ROOT t = (f32[8,4], f32[8]) tuple(r, e)"), "f r"),
    ("irscope", "cycle", hlo(CIRCLE.format(more="", of="e"), LESS), "e r",
     hlo(CIRCLE.format(more=" f = f32[9] exponential(x)\n", of="f"), LESS), "f r"),
    ("irscope", "long-row", hlo(LONG.format(n=100000), ADD), "s b", hlo(LONG.format(n=50000), ADD), "s b"),

    ("inductor", "intermediate-node", torch("e = aten::relu(%a)\np = aten::mm(%e, %w)\ns = aten::sub(%e, %p, 1)", "s",
                                            a=tensor(8, 64), w=tensor(64, 64)), "e s",
     torch("e = aten::relu(%a)\np = aten::mm(%a, %w)\ns = aten::sub(%e, %p, 1)", "s", a=tensor(8, 64), w=tensor(64, 64)), "e s"),
    ("inductor", "no-shared-data", torch("e = aten::exp(%a)\nt = aten::transpose(%e, 0, 1)\ns = aten::mul(%t, %b)\nr = aten::mm(%e, %s)", "r",
                                         a=tensor(64, 128), b=tensor(128, 64)), "e s",
     torch("e = aten::exp(%a)\ns = aten::mul(%e, %c)\nt = aten::transpose(%s, 0, 1)\nr = aten::mm(%e, %t)", "r",
           a=tensor(64, 128), c=tensor(64, 128)), "e s"),
]


def edge(module: Module, policy: str, ends: str) -> EdgeVerdict:
    producer, consumer = ends.split()
    return next(v for v in verdicts_of(module, policy) if v.names == (producer, consumer))


@pytest.mark.parametrize("policy, rule, before, ends, after, then", EDITS, ids=[f"{i}-{e[0]}-{e[1]}" for i, e in enumerate(EDITS)])
def test_the_edit_fuses_the_edge(policy: str, rule: str, before: Module, ends: str, after: Module, then: str) -> None:
    told = edge(before, policy, ends)
    assert (told.fused, told.rule) == ("none", rule)
    if then:
        assert edge(after, policy, then).fused in ("all", "some")
    else:
        assert ends.split() not in [[*v.names] for v in verdicts_of(after, policy)]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("path", [path for path in sorted(SAMPLES.glob("*.[hrt]*")) if path.name != "risky.scripted.txt"], ids=lambda path: path.name)
def test_no_refusal_in_the_samples_is_without_a_cause(path: Path, policy: str) -> None:
    reading = irscope.load(path)
    for one in reading.modules:
        if one.entry:
            assert all(v.cause for v in verdicts_of(one, policy) if v.fused == "none")
