"""XLA's pass that joins kernels into one of several results: every rule with a case that it joins and one that it leaves."""
from __future__ import annotations

import pytest

from irscope.fusion import Plan
from irscope.fusion.policy import AsWritten, policy_named
from irscope.fusion.xla import gpu_cost, gpu_outputs, gpu_rules
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_outputs import join_kernels
from irscope.fusion.xla.instructions import Computation
from irscope.ops import hlo
from tests.fusion.xla_texts import ADD, module, why

BOTH = "ROOT t = ({first}, {second}) tuple(f, g)"


def joined(instructions: str, header: str = "") -> list[list[str]]:
    """What the kernels of several results give, as opcodes, when each instruction and fusion of the text is a kernel."""
    computation = Computation.of(module(instructions, header).main())
    join_kernels(computation, CostModel(DEVICES["h100"]))
    return [[o.op.name for o in i.body.root.operands] for i in computation.post_order() if i.body is not None and i.body.root.op is hlo.tuple]


def body(name: str, operand: str, lines: str) -> str:
    """A computation of one operand ``p``."""
    return f"{name} {{\n p = {operand} parameter(0)\n z = f32[] constant(0)\n {lines}\n}}\n"


def two(operand: str, first: tuple[str, str], second: tuple[str, str], kinds: tuple[str, str] = ("kLoop", "kLoop")) -> tuple[str, str]:
    """Two kernels that read the same array, each given by its result and what computes it; both results are given back."""
    text = f"""
        x = {operand} parameter(0)
        f = {first[0]} fusion(x), kind={kinds[0]}, calls=one
        g = {second[0]} fusion(x), kind={kinds[1]}, calls=other
        """ + BOTH.format(first=first[0], second=second[0])
    return text, ADD + body("one", operand, first[1]) + body("other", operand, second[1])


def update(name: str, at: int) -> str:
    return f"c = s32[] constant({at})\n m = f32[1] slice(p), slice={{[0:1]}}\n ROOT {name} = f32[64] dynamic-update-slice(p, m, c)"


NEGATE = ("f32[64,32]", "ROOT a = f32[64,32] negate(p)")
EXP = ("f32[64,32]", "ROOT b = f32[64,32] exponential(p)")
ROWS = ("f32[64]", "ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add")
COLUMNS = ("f32[32]", "ROOT q = f32[32] reduce(p, z), dimensions={0}, to_apply=add")
TURNED = ("f32[32,64]", "ROOT t = f32[32,64] transpose(p), dimensions={1,0}")

SIBLINGS: list[tuple[str, tuple[str, str], list[list[str]]]] = [
    ("loops of one shape", two("f32[64,32]", NEGATE, EXP), [["negate", "exponential"]]),
    ("loops of one size in memory", two("f32[64,32]", NEGATE, ("f32[2048]", "ROOT b = f32[2048] reshape(p)")), [["negate", "reshape"]]),
    ("loops of two sizes", two("f32[64,32]", NEGATE, ("f32[4,64,32]", "ROOT b = f32[4,64,32] broadcast(p), dimensions={1,2}")), []),
    ("one shape in two layouts", two("f32[64,32]", NEGATE, ("f32[32,64]{0,1}", "ROOT b = f32[32,64]{0,1} bitcast(p)")),
     [["negate", "bitcast"]]),
    ("only a number in common", two("f32[]", ("f32[8]", "ROOT a = f32[8] broadcast(p), dimensions={}"),
                                    ("f32[8]", "n = f32[] negate(p)\n ROOT b = f32[8] broadcast(n), dimensions={}")), []),
    ("reductions of one form", two("f32[64,32]", ROWS, ("f32[64]", "n = f32[64,32] negate(p)\n"
                                   "ROOT r2 = f32[64] reduce(n, z), dimensions={1}, to_apply=add"), ("kInput", "kInput")),
     [["reduce", "reduce"]]),
    ("reductions over two dimensions", two("f32[64,32]", ROWS, COLUMNS, ("kInput", "kInput")), []),
    ("a reduction and a loop over its operand", two("f32[64,32]", ROWS, NEGATE, ("kInput", "kLoop")), [["reduce", "negate"]]),
    ("a reduction and a transposition", two("f32[64,32]", ROWS, TURNED, ("kInput", "kInput")), []),
    ("two transpositions of one form", two("f32[64,32]", TURNED, ("f32[32,64]", "n = f32[64,32] negate(p)\n"
                                           "ROOT t2 = f32[32,64] transpose(n), dimensions={1,0}"), ("kInput", "kInput")),
     [["transpose", "transpose"]]),
    ("two transpositions of two forms", two("f32[16,32,64]",
                                            ("f32[64,32,16]", "ROOT t = f32[64,32,16] transpose(p), dimensions={2,1,0}"),
                                            ("f32[64,16,32]", "ROOT t2 = f32[64,16,32] transpose(p), dimensions={2,0,1}"),
                                            ("kInput", "kInput")), []),
    ("a transposition and a loop over its operand", two("f32[64,32]", TURNED, NEGATE, ("kInput", "kLoop")), [["transpose", "negate"]]),
    ("halves of a large array", two("f32[256]", ("f32[128]", "ROOT a = f32[128] slice(p), slice={[0:128]}"),
                                    ("f32[128]", "ROOT b = f32[128] slice(p), slice={[128:256]}")), []),
    ("parts of it that overlap", two("f32[256]", ("f32[128]", "ROOT a = f32[128] slice(p), slice={[0:128]}"),
                                     ("f32[128]", "ROOT b = f32[128] slice(p), slice={[127:255]}")), [["slice", "slice"]]),
    ("halves of a small array", two("f32[254]", ("f32[127]", "ROOT a = f32[127] slice(p), slice={[0:127]}"),
                                    ("f32[127]", "ROOT b = f32[127] slice(p), slice={[127:254]}")), [["slice", "slice"]]),
    ("halves of one byte less than large", two("s8[1023]", ("s8[511]", "ROOT a = s8[511] slice(p), slice={[0:511]}"),
                                               ("s8[511]", "ROOT b = s8[511] slice(p), slice={[511:1022]}")), [["slice", "slice"]]),
    ("halves of just large", two("s8[1024]", ("s8[512]", "ROOT a = s8[512] slice(p), slice={[0:512]}"),
                                 ("s8[512]", "ROOT b = s8[512] slice(p), slice={[512:1024]}")), []),
    ("updates in place", two("f32[64]", ("f32[64]", update("a", 3)), ("f32[64]", update("b", 5))), []),
]


@pytest.mark.parametrize("text, expected", [case[1:] for case in SIBLINGS], ids=[case[0] for case in SIBLINGS])
def test_kernels_that_read_the_same(text: tuple[str, str], expected: list[list[str]]) -> None:
    assert joined(*text) == expected


SUMS = ADD + body("sums", "f32[64,32]", "ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add")
PRODUCT = "d = f32[64,64] dot(e, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}"


def read(by: str, producer: str = "e = f32[64,32] exponential(x)", end: str = "(f32[64], f32[64,32]) tuple(s, e)") -> str:
    """A value that a kernel and something else read."""
    return f"x = f32[64,32] parameter(0)\n {producer}\n {by}\n ROOT t = {end}"


READERS: list[tuple[str, str, list[list[str]]]] = [
    ("a value and its sums", read("s = f32[64] fusion(e), kind=kInput, calls=sums"), [["reduce", "exponential"]]),
    ("nobody else reads it", read("s = f32[64] fusion(e), kind=kInput, calls=sums", end="(f32[64]) tuple(s)"), []),
    ("the way back would be a circle", read("m = f32[64,64] dot(e, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n"
                                            "k = f32[64,32] slice(m), slice={[0:64], [0:32]}\n s = f32[64,32] add(e, k)",
                                            end="(f32[64,32]) tuple(s)"), []),
    ("a bitcast is no kernel", read("s = f32[2048] negate(e)", "e = f32[2048] bitcast(x)", "(f32[2048], f32[2048]) tuple(s, e)"), []),
    ("who turns an array gives it to nobody", read("s = f32[32,64] negate(e)", "e = f32[32,64] transpose(x), dimensions={1,0}",
                                                   "(f32[32,64], f32[32,64]) tuple(s, e)"), []),
    ("a transposition of nothing", read("s = f32[32,64]{0,1} negate(e)", "e = f32[32,64]{0,1} transpose(x), dimensions={1,0}",
                                        "(f32[32,64], f32[32,64]) tuple(s, e)"), [["negate", "transpose"]]),
    ("a product reads by itself", read(f"{PRODUCT}\n s = f32[64] fusion(d), kind=kInput, calls=sums",
                                       end="(f32[64], f32[64,32]) tuple(s, e)").replace("f32[64,64] dot", "f32[64,32] dot")
     .replace("rhs_contracting_dims={1}", "rhs_contracting_dims={0}").replace("dot(e, x)", "dot(e, w)")
     .replace(" e =", " w = f32[32,32] parameter(1)\n e ="), []),
    ("the result of a program stays as it is", "x = f32[64,32] parameter(0)\n e = f32[64,32] exponential(x)\n"
     "ROOT s = f32[64] fusion(e), kind=kInput, calls=sums", []),
]


@pytest.mark.parametrize("text, expected", [case[1:] for case in READERS], ids=[case[0] for case in READERS])
def test_a_kernel_and_what_it_reads(text: str, expected: list[list[str]]) -> None:
    assert joined(text, SUMS) == expected


def many(count: int, lines: str, out: str, kind: str) -> tuple[str, str]:
    """``count`` kernels that read the same array."""
    header = ADD + "".join(body(f"c{i}", "f32[64,32]", lines) for i in range(count))
    calls = "\n".join(f"k{i} = {out} fusion(x), kind={kind}, calls=c{i}" for i in range(count))
    names = ", ".join(f"k{i}" for i in range(count))
    return f"x = f32[64,32] parameter(0)\n {calls}\n ROOT t = ({', '.join([out] * count)}) tuple({names})", header


def sizes(text: tuple[str, str]) -> list[int]:
    return sorted(map(len, joined(*text)))


def test_a_kernel_takes_what_fits() -> None:
    rows = "ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add"
    assert sizes(many(8, rows, "f32[64]", "kInput")) == [8]
    assert sizes(many(10, rows, "f32[64]", "kInput")) == [2, 8], "8 reductions"
    loops = "ROOT n = f32[64,32] negate(p)"
    assert sizes(many(94, loops, "f32[64,32]", "kLoop")) == [94], "one operand, 94 results and their tuple"
    assert sizes(many(96, loops, "f32[64,32]", "kLoop")) == [2, 94]
    columns = "ROOT r = f32[32] reduce(p, z), dimensions={0}, to_apply=add"
    assert sizes(many(5, columns, "f32[32]", "kInput")) == [2, 2], "16512 bytes of shared memory each, 49152 in all"


def test_what_takes_longer_together_stays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a large array by columns after computing it costs more than a launch and a reading."""
    text = read("s = f32[64] fusion(e), kind=kInput, calls=sums")
    assert joined(text, SUMS)
    monkeypatch.setattr(gpu_cost, "LAUNCH", -1000.0)
    assert not joined(text, SUMS)


THRESHOLDS = [(gpu_outputs, "SMALL", 16), (gpu_rules, "MAX_REDUCTIONS", 1), (gpu_rules, "MAX_BUFFERS", 1)]


@pytest.mark.parametrize("place, name, step", THRESHOLDS, ids=[t[1] for t in THRESHOLDS])
@pytest.mark.parametrize("sign", [-1, 1])
def test_every_threshold_matters(place: object, name: str, step: int, sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome() -> list[object]:
        rows = "ROOT r = f32[64] reduce(p, z), dimensions={1}, to_apply=add"
        return [*(joined(*text) for _, text, _ in SIBLINGS), *(sizes(many(n, rows, "f32[64]", "kInput")) for n in (8, 10)),
                *(sizes(many(n, "ROOT n = f32[64,32] negate(p)", "f32[64,32]", "kLoop")) for n in (94, 96))]

    before = outcome()
    monkeypatch.setattr(place, name, getattr(place, name) + sign * step)
    assert outcome() != before


def test_joined_kernels_are_in_each_others_way() -> None:
    """Two kernels that were joined come before all that either came before."""
    loop = body("one", "f32[64,32]", "ROOT a = f32[64,32] negate(p)")
    text = """
        x = f32[64,32] parameter(0)
        y = f32[64,32] parameter(1)
        w = f32[32,32] parameter(2)
        f = f32[64,32] fusion(x), kind=kLoop, calls=one
        g = f32[64,32] fusion(x), kind=kLoop, calls=one
        d = f32[64,32] dot(g, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        h = f32[64,32] add(d, y)
        k = f32[64,32] dot(f, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        l = f32[64,32] add(k, h)
        ROOT t = (f32[64,32], f32[64,32]) tuple(l, f)"""
    assert joined(text, loop) == [["negate", "negate"]]


def test_a_join_closes_the_way_of_the_next() -> None:
    """``add`` could join its reader, or ``mul`` its own; both would need each other."""
    loop = ADD + """
        twice { p = f32[32,64] parameter(0)
                ROOT t = f32[32,64] add(p, p) }
        first { p = f32[32,64] parameter(0)
                q = f32[64,64] parameter(1)
                z = f32[] constant(0)
                s = f32[32,64] slice(q), slice={[0:32], [0:64]}
                a = f32[32,64] add(p, s)
                ROOT r = f32[32] reduce(a, z), dimensions={1}, to_apply=add }
        square { p = f32[64,64] parameter(0)
                 ROOT t = f32[64,64] multiply(p, p) }
        second { p = f32[32,64] parameter(0)
                 q = f32[64,64] parameter(1)
                 z = f32[] constant(0)
                 s = f32[64,64] pad(p, z), padding=16_16x0_0
                 a = f32[64,64] multiply(s, q)
                 ROOT r = f32[64] reduce(a, z), dimensions={1}, to_apply=add }"""
    text = """
        x = f32[32,64] parameter(0)
        y = f32[64,64] parameter(1)
        add = f32[32,64] fusion(x), kind=kLoop, calls=twice
        mul = f32[64,64] fusion(y), kind=kLoop, calls=square
        one = f32[32] fusion(add, mul), kind=kInput, calls=first
        other = f32[64] fusion(add, mul), kind=kInput, calls=second
        ROOT t = (f32[32,64], f32[32], f32[64], f32[64,64]) tuple(add, one, other, mul)"""
    assert joined(text, loop) == [["reduce", "multiply"]]


def plan(text: str, header: str = "") -> Plan:
    chosen = policy_named("xla-gpu")
    assert isinstance(chosen, AsWritten)
    return chosen.plan_module(module(text, header))[0]


TALLER = """
    x = f32[64,32] parameter(0)
    z = f32[] constant(0)
    e = f32[64,32] exponential(x)
    s = f32[64] reduce(e, z), dimensions={1}, to_apply=add
    d = f32[64,64] dot(e, e), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    ROOT t = (f32[64], f32[64,64]) tuple(s, d)"""


def test_the_plan_counts_kernels_behind_the_pass_and_keeps_the_verdicts_of_the_one_before() -> None:
    made = plan(TALLER, ADD)
    assert made.kernels() == 2, "the exponential with its sums, and the product"
    verdict = next(v for v in made.verdicts if v.names == ("e", "s"))
    assert verdict.fused == "none" and verdict.rule == "consumer-not-fusible"
    assert "so that nothing is read back" in verdict.cause
    assert why("xla-gpu", TALLER, "e d", ADD) == "consumer-not-fusible"
    assert made.decisions == [("z", "s")]


def test_a_value_that_each_layer_reads_takes_no_cubic_time() -> None:
    """Of 400 kernels that read ``y`` each needs the one before it, so that 80,000 pairs are asked for a way."""
    lines = ["x0 = f32[64,64] parameter(0)", "y = f32[64,64] parameter(1)"]
    for i in range(400):
        lines += [f"a{i} = f32[64,64] add(x{i}, y)", f"e{i} = f32[64,64] tanh(a{i})",
                  f"x{i + 1} = f32[64,64] dot(e{i}, e{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"]
    lines[-1] = "ROOT " + lines[-1]
    assert plan("\n".join(lines)).kernels() == 800


def test_what_a_kernel_of_several_results_alone_reads_is_no_result_of_it() -> None:
    header = """
        one { p = f32[256,256] parameter(0)
              ROOT t = f32[256,256] negate(p) }
        two { p = f32[256,256] parameter(0)
              a = f32[256,256] abs(p)
              b = f32[256,256] sign(p)
              ROOT t = (f32[256,256], f32[256,256]) tuple(a, b) }"""
    text = """
        x = f32[256,256] parameter(0)
        f = f32[256,256] fusion(x), kind=kLoop, calls=one
        g = (f32[256,256], f32[256,256]) fusion(f), kind=kLoop, calls=two
        a = f32[256,256] get-tuple-element(g), index=0
        b = f32[256,256] get-tuple-element(g), index=1
        ROOT t = (f32[256,256], f32[256,256]) tuple(a, b)"""
    computation = Computation.of(module(text, header).main())
    assert join_kernels(computation, CostModel(DEVICES["h100"])) == [("f", "g")]
    [kernel] = [i for i in computation.instructions if i.body is not None]
    assert kernel.body is not None and [o.op.name for o in kernel.body.root.operands] == ["abs", "sign"]
    assert [o.op.name for o in kernel.body.root.operands[0].operands] == ["negate"]


def test_a_detour_through_the_operands_of_a_branch_is_one() -> None:
    text = """
        x = f32[1024] parameter(0)
        flag = pred[] parameter(1)
        f = f32[1024] fusion(x), kind=kLoop, calls=one
        t = (f32[1024]) tuple(f)
        c = f32[1024] conditional(flag, t, t), true_computation=way, false_computation=way
        ROOT g = f32[1024] fusion(f, c), kind=kLoop, calls=sum
        """
    way = "way {\n p = (f32[1024]) parameter(0)\n ROOT r = f32[1024] get-tuple-element(p), index=0\n}\n"
    add = "sum {\n p = f32[1024] parameter(0)\n q = f32[1024] parameter(1)\n ROOT r = f32[1024] add(p, q)\n}\n"
    computation = Computation.of(module(text, body("one", "f32[1024]", "ROOT r = f32[1024] tanh(p)") + way + add).main())
    assert not join_kernels(computation, CostModel(DEVICES["h100"]))
    assert len(computation.post_order()) == 6
