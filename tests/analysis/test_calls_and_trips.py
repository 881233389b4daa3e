"""Who calls whom and how often; loops whose length the text tells."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.trips import trip_count
from tests.analysis.texts import FUSED, LOOP, node, survey


def test_a_counted_loop_runs_its_trips() -> None:
    facts = survey(LOOP)
    assert facts.calls.trips == {node(facts, "run"): 5}
    assert {graph.name: times for graph, times in facts.calls.times.items()} == {"cond": 5, "body": 5, "main": 1}


@given(start=st.integers(-20, 20), limit=st.integers(-20, 20), step=st.integers(-4, 4),
       direction=st.sampled_from(["LT", "LE", "GT", "GE", "NE"]), mirrored=st.booleans())
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
