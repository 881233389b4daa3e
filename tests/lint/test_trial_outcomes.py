"""What a change makes of an edge, from the plans before and after it: each outcome beside the nearest that is another."""

from __future__ import annotations

from dataclasses import replace

import irscope
from irscope.graph import Node
from irscope.lint.proven.fix import Saving, TrialOutcome
from irscope.lint.proven.trial import Standing, outcome_of

GRAPH = irscope.load("HloModule m\n\nENTRY e {\n  x = f32[4]{0} parameter(0)\n  p = f32[4]{0} tanh(x)\n  c = f32[4]{0} sine(p)\n"
                     "  o = f32[4]{0} cosine(p)\n  ROOT r = f32[4]{0} add(c, o)\n}\n").module().main()
P, C, S, R = (next(node for node in GRAPH.nodes if node.name == name) for name in "pcor")
EDGE = (P, C)
BEFORE = Standing({EDGE: "none", (P, S): "all"}, {EDGE: 100.0}, {("tanh",): 1, ("sine",): 1}, 2.0, 1000.0, 10.0)
FUSED = Standing({EDGE: "all"}, {}, {("sine", "tanh"): 1}, 1.0, 800.0, 8.0)


def after(fused: str = "all", carried: float = 0.0, edge: tuple[Node, Node] = EDGE, kernels: float = 1.0, bytes: float = 800.0,
          us: float = 8.0) -> Standing:
    return replace(FUSED, edges={edge: fused}, carried={edge: carried} if carried else {}, kernels=kernels, bytes=bytes, us=us)


def test_an_edge_that_is_fused_at_lower_costs_is_a_fix() -> None:
    assert outcome_of(BEFORE, FUSED, EDGE) is TrialOutcome.FUSED
    assert outcome_of(BEFORE, after(kernels=2.0), EDGE) is TrialOutcome.FUSED  # fewer bytes
    assert outcome_of(BEFORE, after(bytes=1000.0), EDGE) is TrialOutcome.FUSED  # fewer kernels
    assert BEFORE.less(replace(FUSED, us=8.12345)) == Saving(1.0, 200.0, 1.877)


def test_the_same_kernels_at_the_same_costs_mean_that_the_compiler_undid_the_change() -> None:
    assert outcome_of(BEFORE, replace(BEFORE, edges={EDGE: "all"}), EDGE) is TrialOutcome.UNDONE
    assert outcome_of(BEFORE, replace(BEFORE, edges={EDGE: "all"}, bytes=900.0), EDGE) is TrialOutcome.FUSED
    assert outcome_of(BEFORE, replace(BEFORE, edges={EDGE: "all"}, kernels=1.0), EDGE) is TrialOutcome.FUSED


def test_an_edge_that_stays_is_refused_whatever_the_costs() -> None:
    for fused in ("none", "some"):
        assert outcome_of(BEFORE, after(fused, 10.0), EDGE) is TrialOutcome.REFUSED
    other = (P, S)
    assert outcome_of(BEFORE, after("none", 10.0, other), EDGE) is TrialOutcome.FUSED  # another edge of the producer


def test_other_kernels_at_the_same_costs_are_no_fix() -> None:
    assert outcome_of(BEFORE, after(kernels=2.0, bytes=1000.0, us=9.0), EDGE) is TrialOutcome.REFUSED


def test_more_bytes_or_time_are_too_dear() -> None:
    assert outcome_of(BEFORE, after(bytes=1001.0), EDGE) is TrialOutcome.DEARER
    assert outcome_of(BEFORE, after(us=10.1), EDGE) is TrialOutcome.DEARER
    assert outcome_of(BEFORE, after(us=10.0), EDGE) is TrialOutcome.FUSED


def test_more_kernels_are_too_dear_unless_all_that_the_edge_carries_is_saved() -> None:
    assert outcome_of(BEFORE, after(kernels=3.0, bytes=900.0), EDGE) is TrialOutcome.FUSED  # 100 bytes
    assert outcome_of(BEFORE, after(kernels=3.0, bytes=901.0), EDGE) is TrialOutcome.DEARER
    nothing = replace(BEFORE, carried={})  # then at least one byte
    assert outcome_of(nothing, after(kernels=3.0, bytes=1000.0), EDGE) is TrialOutcome.DEARER
    assert outcome_of(nothing, after(kernels=3.0, bytes=999.0), EDGE) is TrialOutcome.FUSED


def test_what_took_the_place_of_the_edge_may_carry_half_of_its_bytes() -> None:
    """Nothing stands for the consumer any more: the edge to what replaced another changed node counts."""
    place = (P, R)
    assert outcome_of(BEFORE, after("none", 50.0, place), EDGE, {R}) is TrialOutcome.SMALLER
    assert outcome_of(BEFORE, after("none", 51.0, place), EDGE, {R}) is TrialOutcome.REFUSED
    assert outcome_of(BEFORE, after("some", 80.0, place), EDGE, {R}) is TrialOutcome.FUSED  # fused into this reader
    assert outcome_of(BEFORE, after("none", 80.0, place), EDGE) is TrialOutcome.FUSED  # it was not changed
    both = replace(FUSED, edges={EDGE: "all", place: "none"}, carried={place: 80.0})
    assert outcome_of(BEFORE, both, EDGE, {R}) is TrialOutcome.FUSED  # the consumer is there still
