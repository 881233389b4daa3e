"""Highlights: which kernel, copy, leak and edge of a program are named first."""
from __future__ import annotations

from irscope.analysis.highlights import Highlight, Highlights, drawn_node, highlights
from tests.analysis.texts import FUSED, LOOP, survey

PROGRAM = """HloModule program, is_scheduled=true

halved {
  p = f32[64,64] parameter(0)
  half = f64[] constant(0.5)
  halves = f64[64,64] broadcast(half), dimensions={}
  wide = f64[64,64] convert(p)
  scaled = f64[64,64] multiply(wide, halves)
  ROOT back = f32[64,64] convert(scaled)
}

turned {
  p = f32[64,64] parameter(0)
  ROOT copied = f32[64,64]{0,1} copy(p)
}

body {
  state = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  two = s32[] constant(2)
  next = s32[] add(i, two)
  x = f32[64,64] get-tuple-element(state), index=1
  product = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  smooth = f32[64,64] tanh(product)
  ROOT out = (s32[], f32[64,64]) tuple(next, smooth)
}

cond {
  state = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(10)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[64,64] parameter(0)
  b = bf16[32] parameter(1)
  scaled = f32[64,64] fusion(x), kind=kLoop, calls=halved
  turned = f32[64,64]{0,1} fusion(scaled), kind=kLoop, calls=turned
  zero = s32[] constant(0)
  init = (s32[], f32[64,64]) tuple(zero, turned)
  run = (s32[], f32[64,64]) while(init), condition=cond, body=body
  y = f32[64,64] get-tuple-element(run), index=1
  wider = f32[32] convert(b)
  small = f32[32] copy(wider)
  ROOT r = (f32[64,64], f32[32]) tuple(y, small)
}
"""


def told(found: list[Highlight]) -> list[tuple[str, str, list[str]]]:
    """The labels, graphs and nodes of highlights."""
    return [(one.label, one.graph.name, [node.name for node in one.nodes]) for one in found]


def test_kernels_are_ranked_over_all_runs() -> None:
    found = highlights(survey(PROGRAM))
    # 2 * 64**3 FLOPs in a trip, five trips.
    assert told(found.kernels) == [("costliest kernel", "body", ["product"])]
    assert (found.kernels[0].flops, found.kernels[0].times) == (2 * 64**3, 5.0)
    assert 0 < found.kernels[0].share <= 1


def test_equal_kernels_count_together() -> None:
    steps = [f"  s{i} = f32[64] tanh({'x' if i == 0 else f's{i - 1}'})" for i in range(9)]
    text = "\n".join(["HloModule m", "ENTRY main {", "  x = f32[64] parameter(0)", *steps, "  y = f32[80] pad(s8, s8), padding=0_16",
                      "  ROOT r = f32[80] exponential(y)", "}"]).replace("pad(s8, s8)", "pad(s8, z)").replace("  y =", "  z = f32[] constant(0)\n  y =")
    found = highlights(survey(text))
    assert ("costliest together", "main", ["s0"]) in told(found.kernels)
    assert next(one for one in found.kernels if one.label == "costliest together").times == 9


def test_a_copy_counts_wherever_it_is() -> None:
    assert told(highlights(survey(PROGRAM)).copies) == [("largest copy", "turned", ["copied"]), ("largest data movement", "main", ["turned"])]


def test_leaks_are_double_precision_and_conversions_between_floats() -> None:
    double, widened = highlights(survey(PROGRAM)).leaks
    assert (double.label, [node.name for _, node in double.members]) == ("f64", ["half", "halves", "wide", "scaled"])
    assert double.bytes == 8 + 3 * 8 * 64 * 64
    assert double.largest[1].name == "halves"
    assert (widened.label, [node.name for _, node in widened.members]) == ("bf16 -> f32", ["wider"])


def test_a_program_with_inputs_in_double_precision_has_no_leak_of_it() -> None:
    found = highlights(survey(PROGRAM.replace("b = bf16[32]", "b = f64[32]")))
    assert [leak.label for leak in found.leaks] == ["f32 -> f64", "f64 -> f32"]


def test_edges_join_kernels_through_what_renames_values() -> None:
    edges = highlights(survey(PROGRAM)).edges
    # Of values of one size, one that is written in each of five trips.
    assert told(edges) == [("costliest unfused edge", "body", ["product", "smooth"]),
                           ("costliest unfused edge without products", "main", ["scaled", "turned"])]
    assert (edges[0].bytes, edges[0].times) == (4 * 64 * 64, 5.0)


def test_a_program_that_nobody_fused_has_no_unfused_edges() -> None:
    assert highlights(survey(LOOP)).edges == []


def test_what_is_in_a_body_is_drawn_as_its_caller() -> None:
    facts = survey(PROGRAM)
    main, body = facts.module.main(), facts.module.graphs["body"]
    product = next(node for node in body.nodes if node.name == "product")
    caller = drawn_node(facts, body, product, main)
    assert caller is not None and caller.name == "run"
    assert drawn_node(facts, main, main.nodes[0], body) is None


def test_a_program_without_work_has_no_highlights() -> None:
    assert highlights(survey("HloModule m\nENTRY main { ROOT x = f32[4] parameter(0) }")) == Highlights()
    assert [one.label for one in highlights(survey(FUSED)).singles][:1] == ["costliest kernel"]


def test_the_smallest_kernel_counts() -> None:
    facts = survey('HloModule m\nENTRY e {\n  ROOT r = pred[] custom-call(), custom_call_target="Go"\n}\n')
    assert [(one.label, one.bytes) for one in highlights(facts).kernels] == [("costliest kernel", 1)]


EDGES = """HloModule edges, is_scheduled=true

neg {
  p = f32[64] parameter(0)
  ROOT n = f32[64] negate(p)
}

pair {
  p = f32[64] parameter(0)
  n = f32[64] negate(p)
  a = f32[8] slice(p), slice={[0:8]}
  ROOT t = (f32[64], f32[8]) tuple(n, a)
}

ENTRY main {
  x = f32[64] parameter(0)
  small = f32[8] parameter(1)
  a = f32[64] fusion(x), kind=kLoop, calls=neg
  s = f32[8] negate(small)
  t = (f32[8], f32[64]) tuple(s, a)
  o = (f32[8], f32[64]) opt-barrier(t)
  g = f32[64] get-tuple-element(o), index=1
  v = f32[8,8] bitcast(g)
  b = f32[8,8] negate(v)
  two = (f32[64], f32[8]) fusion(x), kind=kLoop, calls=pair
  part = f32[8] get-tuple-element(two), index=1
  ROOT r = (f32[8,8], f32[8]) tuple(b, part)
}
"""


def test_an_edge_goes_through_what_renames_a_value() -> None:
    [edge] = highlights(survey(EDGES)).edges
    assert ([node.name for node in edge.nodes], edge.bytes) == (["a", "b"], 256)


def test_a_kernel_of_the_branch_that_does_not_count_is_at_most_the_whole() -> None:
    facts = survey("""HloModule m
computes { p = f32[8,8] parameter(0)
  ROOT d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
moves { p = f32[8,8] parameter(0)
  w = f32[64,8,8] broadcast(p), dimensions={1,2}
  ROOT r = f32[8,8] slice(w), slice={[0:1],[0:8],[0:8]} }
ENTRY main { c = pred[] parameter(0)
  x = f32[8,8] parameter(1)
  ROOT r = f32[8,8] conditional(c, x, x), true_computation=computes, false_computation=moves }
""")
    shares = {one.nodes[0].name: one.share for one in highlights(facts).kernels}
    assert shares["w"] == 1.0
    assert 0 < shares["d"] <= 1.0


def test_the_copy_that_moves_most_runs_most() -> None:
    text = LOOP.replace("y = f32[4] multiply(x, x)", "m = f32[4] multiply(x, x)\n  y = f32[4] copy(m)").replace("constant(10)", "constant(1000)")
    text = text.replace("  x = f32[4] parameter(0)\n  zero", "  x = f32[4] parameter(0)\n  big = f32[512] parameter(1)\n  kept = f32[512] copy(big)\n  zero")
    found = [f"{one.label}: {one.nodes[0].name} {one.bytes} {one.times:.0f}" for one in highlights(survey(text)).copies]
    assert found[:2] == ["largest copy: kept 2048 1", "most copied: y 16 500"]
