"""The policy xla-gpu: every rule with a case that it hits and one that it just lets pass, and times as XLA logged them."""
from __future__ import annotations

import pytest

from irscope.fusion.policy import AsWritten, policy_named
from irscope.fusion.xla import gpu_cost, gpu_cost_analysis, gpu_launch, gpu_rules, reduction_launch, shapes, transposes
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_rules import GpuRules
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla_gpu import marked
from tests.fusion.xla_texts import ADD, module, read_by_many, verdicts, why

TRITON = 'backend_config={"fusion_backend_config":{"kind":"__triton","block_level_fusion_config":' \
    '{"num_warps":"1","output_tiles":[{"sizes":["1","64"]}]}}}'
SOFTMAX = ADD + """
row {
  p = f32[32,64] parameter(0)
  z = f32[] constant(0)
  r = f32[32] reduce(p, z), dimensions={1}, to_apply=add
  b = f32[32,64] broadcast(r), dimensions={0}
  ROOT d = f32[32,64] subtract(p, b) }
"""
UPDATE = """
set { p = f32[] parameter(0)
      ROOT q = f32[] parameter(1) }
"""
SCATTER = "scatter(b, i, u), to_apply=set, update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, " \
    "index_vector_dim=1"


def reductions(first: int, second: int) -> str:
    """A reduction of ``first`` elements to one behind a reduction of ``second``."""
    return f"""
        x = f32[64,{first},{second}] parameter(0)
        z = f32[] constant(0)
        a = f32[64,{first}] reduce(x, z), dimensions={{2}}, to_apply=add
        ROOT b = f32[64] reduce(a, z), dimensions={{1}}, to_apply=add"""


def epilogue(reader: str, row: int = 64) -> str:
    """A reduction of rows and something that reads it; ``y`` is another array."""
    return f"""
        x = f32[64,{row}] parameter(0)
        y = f32[64] parameter(1)
        z = f32[] constant(0)
        r = f32[64] reduce(x, z), dimensions={{1}}, to_apply=add
        ROOT e = f32[64] {reader}"""


def columns(rows: int, minor: int) -> str:
    """A reduction of columns and something that reads it together with another array."""
    return f"""
        x = f32[{rows},{minor}] parameter(0)
        y = f32[{minor}] parameter(1)
        z = f32[] constant(0)
        r = f32[{minor}] reduce(x, z), dimensions={{0}}, to_apply=add
        ROOT e = f32[{minor}] add(r, y)"""


def wide(operands: int) -> str:
    """A sum of many arrays, the last of which is computed from two."""
    lines = [f"x{i} = f32[8] parameter({i})" for i in range(operands)]
    lines.append(f"p = f32[8] multiply(x{operands - 2}, x{operands - 1})")
    lines += ["a0 = f32[8] add(x0, x1)", *(f"a{i} = f32[8] add(a{i - 1}, x{i + 1})" for i in range(1, operands - 3))]
    return "\n".join([*lines, f"ROOT r = f32[8] add(a{operands - 4}, p)"])


def many(count: int, axis: int) -> str:
    """The body of a fusion that adds ``count`` reductions of its operand."""
    size = 32 if axis else 64
    lines = ["x = f32[32,64] parameter(0)", "z = f32[] constant(0)",
             *(f"r{i} = f32[{size}] reduce(x, z), dimensions={{{axis}}}, to_apply=add" for i in range(count)),
             *(f"a{i} = f32[{size}] add({'r0' if i == 1 else f'a{i - 1}'}, r{i})" for i in range(1, count))]
    return ADD + "many {\n" + "\n".join([*lines[:-1], "ROOT " + lines[-1]]) + "\n}\n"


def cut_up(length: int) -> tuple[str, str]:
    """A kernel of ``length`` instructions (and a parameter) that another reads at 250 places; the computations of both."""
    lines = ["x0 = f32[16] parameter(0)", *(f"x{i} = f32[16] copy(x{i - 1})" for i in range(1, length + 1))]
    cuts = ["p = f32[16] parameter(0)", *(f"cut{i} = f32[4] slice(p), slice={{[{i % 12}:{i % 12 + 4}]}}" for i in range(250)),
            *(f"a{i} = f32[4] add({'cut0' if i == 1 else f'a{i - 1}'}, cut{i})" for i in range(1, 250))]
    bodies = [f"{name} {{\n" + "\n".join([*body[:-1], "ROOT " + body[-1]]) + "\n}\n" for name, body in (("long", lines), ("cuts", cuts))]
    return ("x = f32[16] parameter(0)\n p = f32[16] fusion(x), kind=kLoop, calls=long\n ROOT f = f32[4] fusion(p), kind=kLoop, calls=cuts",
            "".join(bodies))


CASES: list[tuple[str, str, str, str]] = [
    ("x = f32[64] parameter(0)\n a = f32[64] negate(x)\n ROOT b = f32[64] exponential(a)", "a b", "fused", ""),
    # kernels and calls of their own
    ("x = f32[8,8] parameter(0)\n d = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n ROOT n = f32[8,8] negate(d)",
     "d n", "producer-not-fusible", ""),
    ("x = f32[8,8] parameter(0)\n n = f32[8,8] negate(x)\n ROOT d = f32[8,8] dot(n, n), lhs_contracting_dims={1}, "
     "rhs_contracting_dims={0}", "n d", "consumer-not-fusible", ""),
    # bitcasts
    ("x = f32[8,8] parameter(0)\n n = f32[8,8] negate(x)\n ROOT b = f32[64] bitcast(n)", "n b", "only-bitcast-users", ""),
    ("x = f32[8,8] parameter(0)\n n = f32[8,8] negate(x)\n b = f32[64] bitcast(n)\n ROOT e = f32[64] exponential(b)", "n b", "fused", ""),
    # scatter
    (f"b = f32[8,4] parameter(0)\n i = s32[2,1] parameter(1)\n w = f32[2,4] parameter(2)\n u = f32[2,4] negate(w)\n s = f32[8,4] {SCATTER}\n"
     "ROOT n = f32[8,4] negate(s)", "s n", "scatter-result", UPDATE),
    (f"b = f32[8,4] parameter(0)\n i = s32[2,1] parameter(1)\n w = f32[2,4] parameter(2)\n u = f32[2,4] negate(w)\n"
     f"ROOT s = f32[8,4] {SCATTER}", "u s", "fused", UPDATE),
    (f"a = f32[8,4] parameter(0)\n b = f32[8,4] negate(a)\n i = s32[2,1] parameter(1)\n u = f32[2,4] parameter(2)\n"
     f"ROOT s = f32[8,4] {SCATTER}", "b s", "scatter-buffer", UPDATE),
    # one reduction behind another
    (reductions(16, 16), "a b", "reduce-after-reduce", ADD),
    (reductions(16, 15), "a b", "fused", ADD),
    # what may follow a reduction
    (epilogue("negate(r)"), "r e", "fused", ADD),
    (epilogue("add(r, y)"), "r e", "reduce-epilogue", ADD),
    (epilogue("add(r, y)", 16), "r e", "reduce-epilogue", ADD),
    (epilogue("add(r, y)", 31), "r e", "fused", ADD),
    (epilogue("add(r, y)", 33), "r e", "reduce-epilogue", ADD),
    (columns(64, 32), "r e", "reduce-epilogue", ADD),
    (columns(63, 31), "r e", "fused", ADD),
    (columns(32, 32), "r e", "reduce-epilogue", ADD),
    (columns(31, 32), "r e", "fused", ADD),
    # reductions in one kernel, and the shared memory that they need
    ("x = f32[32] parameter(0)\n q = f32[32,64] broadcast(x), dimensions={0}\n ROOT f = f32[32] fusion(q), kind=kLoop, calls=many",
     "q f", "fused", many(8, 1)),
    ("x = f32[32] parameter(0)\n q = f32[32,64] broadcast(x), dimensions={0}\n ROOT f = f32[32] fusion(q), kind=kLoop, calls=many",
     "q f", "too-many-reductions", many(9, 1)),
    ("x = f32[64] parameter(0)\n q = f32[32,64] broadcast(x), dimensions={1}\n ROOT f = f32[64] fusion(q), kind=kLoop, calls=many",
     "q f", "fused", many(2, 0)),
    ("x = f32[64] parameter(0)\n q = f32[32,64] broadcast(x), dimensions={1}\n ROOT f = f32[64] fusion(q), kind=kLoop, calls=many",
     "q f", "shared-memory", many(3, 0)),
    # Triton
    (f"x = f32[32,64] parameter(0)\n n = f32[32,64] exponential(x)\n ROOT t = f32[32,64] fusion(n), kind=kCustom, calls=row, {TRITON}",
     "n t", "fused", SOFTMAX),
    (f"x = f32[2048] parameter(0)\n n = f32[2048] negate(x)\n b = f32[32,64] bitcast(n)\n e = f32[32,64] exponential(b)\n"
     f"ROOT t = f32[32,64] fusion(e), kind=kCustom, calls=row, {TRITON}", "e t", "not-tiled", SOFTMAX),
    (f"x = f32[4,8,64] parameter(0)\n n = f32[4,8,64] negate(x)\n b = f32[32,64] bitcast(n)\n e = f32[32,64] exponential(b)\n"
     f"ROOT t = f32[32,64] fusion(e), kind=kCustom, calls=row, {TRITON}", "e t", "fused", SOFTMAX),
    (f"x = f32[32,64] parameter(0)\n n = f32[32,64] reverse(x), dimensions={{1}}\n"
     f"ROOT t = f32[32,64] fusion(n), kind=kCustom, calls=row, {TRITON}", "n t", "triton-unsupported", SOFTMAX),
    ("x = f32[32,64] parameter(0)\n n = f32[32,64] exponential(x)\n ROOT t = f32[32,64] fusion(n), kind=kCustom, calls=row", "n t",
     "consumer-not-fusible", SOFTMAX),
]


@pytest.mark.parametrize("instructions, edge, rule, header", CASES, ids=[f"{i}-{c[2]}" for i, c in enumerate(CASES)])
def test_rules(instructions: str, edge: str, rule: str, header: str) -> None:
    assert why("xla-gpu", instructions, edge, header) == rule


def outcome() -> list[str]:
    return [why("xla-gpu", instructions, edge, header) for instructions, edge, _, header in CASES]


TIMES: list[tuple[str, str, str, str, float, float]] = [
    # What XLA logged for our own models: device, computation, producer, microseconds apart and fused.
    ("h100", "c = f32[] parameter(0)\n x = f32[4096,4096] parameter(1)\n b = f32[4096,4096] broadcast(c), dimensions={}\n"
     "ROOT m = f32[4096,4096] multiply(x, b)", "", "b", 83.1135, 42.076),
    ("h100", "x = f32[4096,4096] parameter(0)\n y = f32[4096,4096] parameter(1)\n d = f32[4096,4096] divide(x, y)\n"
     "ROOT s = f32[4096,4096] sqrt(d)", "", "d", 103.27225, 62.23475),
    ("h100", "x = f32[] parameter(0)\n y = f32[] parameter(1)\n p = f32[] power(x, y)\n ROOT s = f32[] subtract(y, p)", "", "p",
     2.17225, 1.17225),
    ("h100", "x = f32[] parameter(0)\n y = f32[] parameter(1)\n s = f32[] subtract(x, y)\n"
     "ROOT b = f32[4096,4096] broadcast(s), dimensions={}", "", "s", 23.022, 23.1085),
    ("h100", "x = f32[32,128] parameter(0)\n z = f32[] constant(0)\n r = f32[32] reduce(x, z), dimensions={1}, to_apply=add\n"
     "ROOT n = f32[32] negate(r)", ADD, "r", 2.068, 1.066),
    ("h100", "x = f32[32,128] parameter(0)\n y = f32[32,128] parameter(1)\n z = f32[] constant(0)\n m = f32[32,128] multiply(x, y)\n"
     "ROOT r = f32[128] reduce(m, z), dimensions={0}, to_apply=add", ADD, "m", 2.15575, 1.26475),
    ("h100", "x = f32[2,4,16,16] parameter(0)\n y = f32[2,4,16,16] parameter(1)\n s = f32[2,4,16,16] subtract(x, y)\n"
     "ROOT c = f32[2,4,16,32] concatenate(s, y), dimensions={3}", "", "s", 2.2215, 1.20525),
    # Blackwell: cycles of its own, and more elements a thread where they are narrow
    ("b200", "x = f32[256,256] parameter(0)\n y = f32[256,256] parameter(1)\n a = f32[256,256] add(x, y)\n"
     "ROOT s = f32[256,256] sine(a)", "", "a", 2.978, 1.883),
    ("b200", "c = f16[] parameter(0)\n x = f16[1024,128,4] parameter(1)\n b = f16[1024,128,4] broadcast(c), dimensions={}\n"
     "ROOT a = f16[1024,128,4] add(x, b)", "", "b", 2.582, 1.3085),
    # a value that its reader reads twice
    ("h100", "x = f32[256,512] parameter(0)\n y = f32[256,512] parameter(1)\n a = f32[256,512] add(x, y)\n"
     "ROOT m = f32[256,512] multiply(a, a)", "", "a", 2.94, 1.47125),
    ("a100", "x = f32[2,4,16,16] parameter(0)\n y = f32[2,4,16,16] parameter(1)\n s = f32[2,4,16,16] subtract(x, y)\n"
     "ROOT c = f32[2,4,16,32] concatenate(s, y), dimensions={3}", "", "s", 2.5955, 1.57175),
]


@pytest.mark.parametrize("device, instructions, header, producer, apart, fused", TIMES, ids=[f"{i}" for i in range(len(TIMES))])
def test_times_are_those_that_xla_logged(device: str, instructions: str, header: str, producer: str, apart: float, fused: float) -> None:
    assert [t / 1000 for t in gain(device, instructions, header, producer)] == pytest.approx([apart, fused], abs=0.0011)


def gain(device: str, instructions: str, header: str, producer: str) -> tuple[float, float]:
    computation = Computation.of(module(instructions, header).main())
    found = next(i for i in computation.instructions if i.name == producer)
    return CostModel(DEVICES[device]).gain(found)


@pytest.mark.parametrize("device, apart, fused", [("h100", 7.19475, 5.891), ("a100", 8.604, 7.096)])
def test_a_triton_kernel_that_is_read_twice_reads_for_it_twice(device: str, apart: float, fused: float) -> None:
    """As XLA logged it for a normalisation that four multiplications read."""
    config = TRITON.replace('"1","64"', '"1","512"').replace('"num_warps":"1"', '"num_warps":"2"')
    header = ADD + """
        row { p = f32[256,512] parameter(0)
              z = f32[] constant(0)
              r = f32[256] reduce(p, z), dimensions={1}, to_apply=add
              k = f32[] constant(0.001953125)
              l = f32[256] broadcast(k), dimensions={}
              m = f32[256] multiply(r, l)
              b = f32[256,512] broadcast(m), dimensions={0}
              ROOT d = f32[256,512] subtract(p, b) }"""
    text = f"""
        x = f32[256,512] parameter(0)
        y = f32[256,512] parameter(1)
        n = f32[256,512] fusion(x), kind=kCustom, calls=row, {config}
        s = f32[256,512] multiply(n, n)
        a = f32[256,512] multiply(n, y)
        b = f32[256,512] multiply(n, y)
        c = f32[256,512] multiply(n, y)
        ROOT t = (f32[256,512], f32[256,512], f32[256,512], f32[256,512]) tuple(s, a, b, c)"""
    made = module(text, header)
    computation = marked(made, Computation.of(made.main()))
    producer = next(i for i in computation.instructions if i.name == "n")
    assert [t / 1000 for t in CostModel(DEVICES[device]).gain(producer)] == pytest.approx([apart, fused], abs=0.0011)


THRESHOLDS = [
    (gpu_rules, "SIGNIFICANT", 1), (gpu_rules, "MAX_REDUCTIONS", 1), (gpu_cost, "LAUNCH", 10),
    (gpu_cost, "OVERLAP", 0.04), (gpu_cost_analysis, "UNEVEN_CONCATENATION", 50), (reduction_launch, "THREADS", 128), (gpu_launch, "THREADS", 64),
    (shapes, "WARP", 1)]


@pytest.mark.parametrize("place, name, step", THRESHOLDS, ids=[t[1] for t in THRESHOLDS])
@pytest.mark.parametrize("sign", [-1, 1])
def test_every_threshold_matters(place: object, name: str, step: float, sign: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, name, getattr(place, name) + sign * step)
    times = [t for device, text, header, producer, *_ in TIMES for t in gain(device, text, header, producer)]
    expected = [1000 * t for *_, apart, fused in TIMES for t in (apart, fused)]
    assert outcome() != [rule for _, _, rule, _ in CASES] or times != pytest.approx(expected, abs=1.1)


def copied(length: int) -> tuple[str, str]:
    """Why the two kernels of :func:`cut_up` stay apart: the rule and the numbers; empty where nothing speaks against one kernel."""
    computation = Computation.of(module(*cut_up(length)).main())
    producer, consumer = (i for i in computation.instructions if i.body is not None)
    refusal = GpuRules(computation, CostModel(DEVICES["h100"])).refusal(producer, consumer)
    return ("", "") if refusal is None else (refusal.rule.name, refusal.numbers)


def test_code_that_is_copied_too_often_stays_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert copied(36) == ("", "")  # 250 * 37 + 749 instructions
    assert copied(37) == ("code-duplication", "10249 instructions of IR > 10000")
    monkeypatch.setattr(gpu_cost_analysis, "MAX_IR", 10249)
    assert copied(37) == ("", "")
    monkeypatch.setattr(gpu_cost_analysis, "MAX_IR", 9998)
    assert copied(36) == ("code-duplication", "9999 instructions of IR > 9998")


def test_a_producer_goes_into_all_its_readers_or_into_none() -> None:
    text = """
        x = f32[64,64] parameter(0)
        n = f32[64,64] negate(x)
        a = f32[64,64] exponential(n)
        d = f32[64,64] dot(n, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT t = (f32[64,64], f32[64,64]) tuple(a, d)"""
    verdict = verdicts("xla-gpu", text)["n", "a"]
    assert verdict.rule == "consumer-not-fusible"
    assert "into all its readers or none, and this one is %d" in verdict.cause
    both = text.replace("dot(n, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "tanh(n)")
    assert why("xla-gpu", both, "n a") == why("xla-gpu", both, "n d") == "fused"


def test_what_would_be_slower_is_not_fused() -> None:
    text = """
        x = f32[] parameter(0)
        y = f32[] parameter(1)
        p = f32[] power(x, y)
        ROOT b = f32[4096,4096] broadcast(p), dimensions={}"""
    verdict = verdicts("xla-gpu", text)["p", "b"]
    assert verdict.rule == "slower"
    assert "us fused >" in verdict.cause
    small = text.replace("4096,4096", "8,8")
    assert why("xla-gpu", small, "p b") == "fused"


def test_kernels_of_the_text_are_explained_by_what_is_inside_them() -> None:
    header = ADD + """
        sums { p = f32[64,64] parameter(0)
               z = f32[] constant(0)
               ROOT r1 = f32[64] reduce(p, z), dimensions={1}, to_apply=add }
        more { q = f32[64] parameter(0)
               w = f32[64] parameter(1)
               m = f32[64] multiply(q, w)
               ROOT n1 = f32[64] negate(m) }"""
    text = """
        x = f32[64,64] parameter(0)
        y = f32[64] parameter(1)
        f = f32[64] fusion(x), kind=kInput, calls=sums
        ROOT g = f32[64] fusion(f, y), kind=kLoop, calls=more"""
    verdict = verdicts("xla-gpu", text, header)["f", "g"]
    assert verdict.rule == "reduce-epilogue" and "with %m after it" in verdict.cause


def buffers(operands: int) -> set[str]:
    return {v.rule for v in verdicts("xla-gpu", wide(operands)).values()}


def test_a_kernel_names_at_most_96_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert buffers(94) == {""}
    assert buffers(95) == {"", "too-many-buffers"}
    monkeypatch.setattr(gpu_rules, "MAX_BUFFERS", 97)
    monkeypatch.setattr(policy_named("xla-gpu"), "_last", None)
    assert buffers(95) == {""}


@pytest.mark.parametrize("name, factor", [("L2_SPEEDUP", 1.5), ("L1_SPEEDUP", 1.5)])
def test_caches_speed_up_what_is_read_again(name: str, factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        x = f32[8192] parameter(0)
        b = f32[8192,1024] broadcast(x), dimensions={0}
        ROOT n = f32[8192,1024] negate(b)"""
    before = gain("h100", text, "", "b")
    monkeypatch.setattr(gpu_cost, name, getattr(gpu_cost, name) * factor)
    assert gain("h100", text, "", "b") < before


def test_a_part_of_several_results_is_an_edge_to_their_operator() -> None:
    text = """
        x = f32[8] parameter(0)
        s = (f32[8], f32[8]) custom-call(x), custom_call_target="two"
        g = f32[8] get-tuple-element(s), index=0
        ROOT n = f32[8] negate(g)"""
    assert verdicts("xla-gpu", text)["s", "n"].reason == "the producer is not fusible"


@pytest.mark.parametrize("shape, layout, tiled", [
    ("16,16", "1,0", True), ("15,16", "1,0", False), ("8,1024", "1,0", True), ("8,1023", "1,0", False), ("7,4096", "1,0", False)])
def test_a_transpose_that_needs_a_tile(shape: str, layout: str, tiled: bool) -> None:
    rows, columns_ = shape.split(",")
    text = f"x = f32[{shape}]{{{layout}}} parameter(0)\n ROOT t = f32[{columns_},{rows}]{{1,0}} transpose(x), dimensions={{1,0}}"
    transpose = Computation.of(module(text).main()).root
    assert (transposes.tiled_transpose(transpose) is not None) is tiled


def test_a_transpose_that_only_renames_dimensions_is_a_bitcast() -> None:
    text = "x = f32[16,32]{1,0} parameter(0)\n ROOT t = f32[32,16]{0,1} transpose(x), dimensions={1,0}"
    transpose = Computation.of(module(text).main()).root
    assert transposes.transpose_is_bitcast(transpose) and transposes.tiled_transpose(transpose) is None


@pytest.mark.parametrize("policy", ["xla-cpu", "xla-gpu"])
def test_a_value_with_two_thousand_readers_goes_into_each_of_their_kernels(policy: str) -> None:
    count = 2000
    made = module(read_by_many(count))
    chosen = policy_named(policy)
    assert isinstance(chosen, AsWritten)
    plan = chosen.plan_module(made)[0]
    assert plan.kernels() == (count if policy == "xla-cpu" else -(-count // 94)), "behind it XLA joins kernels, up to 96 buffers each"
    assert {v.fused for v in plan.verdicts} == {"all"}
    assert len(plan.decisions) == 4 * count, "constants are put into kernels too"
