"""Who calls whom and how often; loops whose length the text tells."""
from __future__ import annotations

from math import isfinite

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from irscope.analysis.calls import MOST_RUNS
from irscope.analysis.trips import trip_count
from irscope.render.page_data import page_data
from tests.analysis.texts import FUSED, LOOP, node, survey


def test_a_counted_loop_runs_its_trips() -> None:
    facts = survey(LOOP)
    assert facts.calls.trips == {node(facts, "run"): 5}
    assert {graph.name: times for graph, times in facts.calls.times.items()} == {"cond": 5, "body": 5, "main": 1}


@given(start=st.integers(-20, 20), limit=st.integers(-20, 20), step=st.integers(-4, 4),
       direction=st.sampled_from(["LT", "LE", "GT", "GE", "NE"]), mirrored=st.booleans())
@example(start=1, limit=13, step=4, direction="NE", mirrored=False)
@example(start=13, limit=1, step=-4, direction="NE", mirrored=True)
@example(start=1, limit=13, step=5, direction="NE", mirrored=False)  # it steps over its limit
@example(start=1, limit=13, step=-4, direction="NE", mirrored=False)  # away from it
def test_trip_counts_are_those_of_running_the_counter(start: int, limit: int, step: int, direction: str, mirrored: bool) -> None:
    test = {"LT": int.__lt__, "LE": int.__le__, "GT": int.__gt__, "GE": int.__ge__, "NE": int.__ne__}[direction]
    value, trips = start, 0
    while test(value, limit) and trips < 200:
        value, trips = value + step, trips + 1
    mirror = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "NE": "NE"}[direction]
    compare = f"compare(n, i), direction={mirror}" if mirrored else f"compare(i, n), direction={direction}"
    text = LOOP.replace("compare(i, n), direction=LT", compare).replace("one = s32[] constant(2)", f"one = s32[] constant({step})")
    text = text.replace("constant(10)", f"constant({limit})").replace("zero = s32[] constant(0)", f"zero = s32[] constant({start})")
    facts = survey(text)
    found = trip_count(facts.module, node(facts, "run"))
    assert found == trips if trips < 200 else found is None


@pytest.mark.parametrize("note", ['{"known_trip_count":{"n":"7"}}', '{"known_induction_variable":{"tuple_index":"0"},"known_trip_count":{"n":"7"}}'])
def test_the_compilers_own_note_is_believed(note: str) -> None:
    facts = survey(LOOP.replace("body=body", f"body=body, backend_config={note}"))
    assert facts.calls.trips[node(facts, "run")] == 7


def test_a_loop_on_data_counts_as_one_trip_and_is_told() -> None:
    facts = survey(LOOP.replace("n = s32[] constant(10)", "n = s32[] negate(i)"))
    assert facts.calls.open_loops == [node(facts, "run")]
    assert facts.calls.times[facts.module.graphs["body"]] == 1


def test_reducers_and_fusions_are_told_apart_from_what_runs_alone() -> None:
    facts = survey(FUSED)
    graphs = facts.module.graphs
    assert facts.calls.scalar == {graphs["add_f32"]}
    assert facts.calls.fused == {graphs["fused_computation"]}
    assert [g.name for g in facts.calls.order if facts.calls.runs_alone(g)] == ["main"]


@pytest.mark.parametrize(("operands", "carried", "again", "trips"), [
    ("%three, %yes", "", "%own", 3),
    ("%three, %yes", "", "%yes", 3),
    ("%three, %yes", "", "%no", None),
    ("%three, %yes, %x", "%v : Tensor", "%yes", 3),
    ("%three, %no, %x", "%v : Tensor", "%yes", None),
    ("%n, %yes, %x", "%v : Tensor", "%yes", None),
    ("%less, %yes, %x", "%v : Tensor", "%yes", None),
    ("%none, %yes, %x", "%v : Tensor", "%yes", 0),
    ("%three, %yes, %x", "%v : Tensor", "%going", None),
], ids=["no values", "captured", "stops at once", "carried", "never begins", "unknown count", "negative count", "zero trips", "decided by the body"])
def test_counted_loops_of_torch(operands: str, carried: str, again: str, trips: int | None) -> None:
    inner = {"%own": "      %own : bool = prim::Constant[value=1]()\n", "%going": "      %going : bool = aten::lt(%i, %n)\n"}.get(again, "")
    result, given = ("%r : Tensor = ", ", %v") if carried else ("", "")
    text = f"""graph(%x : Tensor, %n : int):
  %three : int = prim::Constant[value=3]()
  %none : int = prim::Constant[value=0]()
  %less : int = prim::Constant[value=-1]()
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  {result}prim::Loop({operands})
    block0(%i : int{", " * bool(carried)}{carried}):
{inner}      -> ({again}{given})
  return (%x)
"""
    facts = survey(text)
    [loop] = [n for graph in facts.module.graphs.values() for n in graph.nodes if n.op.name == "prim::Loop"]
    assert trip_count(facts.module, loop) == trips


@pytest.mark.parametrize(("dtype", "start", "step", "limit", "direction", "trips"), [
    ("s8", 0, 1, 127, "LT", 127), ("s8", 0, 2, 127, "LT", None), ("s8", 0, 1, 127, "LE", None), ("s8", 0, -1, -127, "GE", 128), ("s8", 0, -1, -128, "GE", None),
    ("u8", 0, 1, 255, "LT", 255), ("u8", 0, 2, 255, "LT", None), ("u8", 0, 5, 255, "LT", 51),
    ("s32", 0, 1, 2147483647, "LT", 2147483647), ("s32", 0, 1, 2147483647, "LE", None),
])
def test_a_counter_that_wraps_around_has_no_trips(dtype: str, start: int, step: int, limit: int, direction: str, trips: int | None) -> None:
    text = LOOP.replace("s32[]", f"{dtype}[]").replace("direction=LT", f"direction={direction}").replace("constant(2)", f"constant({step})")
    text = text.replace("constant(10)", f"constant({limit})").replace("zero = " + dtype + "[] constant(0)", f"zero = {dtype}[] constant({start})")
    facts = survey(text)
    assert trip_count(facts.module, node(facts, "run")) == trips


WRAPPED = LOOP.replace("HloModule loop\n", """HloModule loop

test {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}

step {
  a = s32[] parameter(0)
  k = s32[] constant(2)
  ROOT s = s32[] add(a, k)
}
""").replace("ROOT less = pred[] compare(i, n), direction=LT", "f = pred[] fusion(i, n), kind=kLoop, calls=test\n  ROOT less = pred[] copy(f)").replace(
    "next = s32[] add(i, one)", "next = s32[] call(i), to_apply=step")


@pytest.mark.parametrize(("before", "after", "trips"), [
    ("", "", 5),
    ("add(a, k)", "add(k, a)", 5),
    ("add(a, k)", "subtract(k, a)", None),
    ("add(a, k)", "multiply(a, k)", None),
    ("add(a, k)", "add(a, a)", None),
    ("add(a, k)", "add(k, k)", None),
    ("l = pred[] compare(a, b)", "m = s32[] negate(a)\n  ROOT l = pred[] compare(m, b)", None),
    ("init = (s32[], f32[4]) tuple(zero, x)", "i0 = (s32[], f32[4]) tuple(zero, x)\n  init = (s32[], f32[4]) copy(i0)", 5),
    ("zero = s32[] constant(0)", "z0 = s32[] constant(0)\n  zero = s32[] copy(z0)", 5),
    ("zero = s32[] constant(0)", "z0 = s32[] constant(0)\n  zero = s32[] negate(z0)", None),
    ("direction=LT", "direction=EQ", 0),
])
def test_a_counter_is_seen_through_calls_and_copies(before: str, after: str, trips: int | None) -> None:
    text = WRAPPED.replace("ROOT " + before, after).replace(before, after) if "ROOT" in after else WRAPPED.replace(before, after) if before else WRAPPED
    facts = survey(text)
    assert trip_count(facts.module, node(facts, "run")) == trips


def test_a_single_value_counts_itself() -> None:
    facts = survey("""HloModule m
c { i = s32[] parameter(0)
  n = s32[] constant(7)
  ROOT l = pred[] compare(i, n), direction=LT }
b { i = s32[] parameter(0)
  o = s32[] constant(3)
  ROOT j = s32[] add(i, o) }
ENTRY main { z = s32[] constant(1)
  ROOT run = s32[] while(z), condition=c, body=b }
""")
    assert trip_count(facts.module, node(facts, "run")) == 2


@pytest.mark.parametrize(("shape", "dimension", "trips"), [("[5,2]", 0, 5), ("[5,2]", 1, 2)])
def test_a_scan_runs_over_a_dimension(shape: str, dimension: int, trips: int) -> None:
    facts = survey(f"""HloModule m
f {{ c = f32[] parameter(0)
  x = f32[] parameter(1)
  s = f32[] add(c, x)
  ROOT t = (f32[], f32[]) tuple(s, s) }}
ENTRY main {{ x = f32{shape} parameter(0)
  i = f32[] constant(0)
  ROOT run = (f32{shape}, f32[]) scan(x, i), dimensions={{{dimension}}}, num_carries=1, is_associative=false, to_apply=f }}
""")
    assert trip_count(facts.module, node(facts, "run")) == trips


def test_a_note_may_be_ignored() -> None:
    facts = survey(LOOP.replace("body=body", 'body=body, backend_config={"known_trip_count":{"n":"7"}}'))
    assert (trip_count(facts.module, node(facts, "run")), trip_count(facts.module, node(facts, "run"), noted=False)) == (7, 5)


@pytest.mark.parametrize("digits", ["9223372036854775808", "9" * 400, "9" * 5000])
def test_a_note_beyond_64_bits_is_not_believed(digits: str) -> None:
    facts = survey(LOOP.replace("body=body", f'body=body, backend_config={{"known_trip_count":{{"n":"{digits}"}}}}'))
    plain = survey(LOOP)
    assert facts.calls.trips[node(facts, "run")] == plain.calls.trips[node(plain, "run")]


INNERMOST = """HloModule deep

cond {
  p = (s32[], f32[8]) parameter(0)
  ROOT c = pred[] constant(true)
}

b0 {
  p = (s32[], f32[8]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  v = f32[8] get-tuple-element(p), index=1
  e = f32[8] exponential(v)
  ROOT t = (s32[], f32[8]) tuple(i, e)
}
"""


def test_runs_of_loops_in_loops_stay_finite() -> None:
    note = 'backend_config={"known_trip_count":{"n":"9000000000000000000"}}'
    loops = "".join(f"""
{'ENTRY ' if depth == 20 else ''}b{depth} {{
  p = (s32[], f32[8]) parameter(0)
  ROOT w = (s32[], f32[8]) while(p), condition=cond, body=b{depth - 1}, {note}
}}
""" for depth in range(1, 21))
    facts = survey(INNERMOST + loops)
    assert facts.calls.times[facts.module.graphs["b0"]] == MOST_RUNS
    assert 0 < facts.totals.flops < float("inf")
    assert isfinite(page_data(facts)["graphs"][0]["times"])
