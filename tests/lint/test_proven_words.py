"""The answer about an edge in words: what to change, what that saves and changes besides, or what was tried in vain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irscope.lint.proven.fix import Attempt, FixAnswer, ProvenFix, Saving, TrialOutcome
from irscope.lint.proven.savings import addition_words, saving_words
from irscope.lint.proven.words import answer_lines, effects, sentence

FIX = ProvenFix("twice", "compute %t twice", Saving(1.0, 32768.0, 0.6), ("%t = tanh(%x)", "%a = add(%t, %y)"), ("%u = tanh(%x)",), nodes=12)
PAIRS = tuple((f"p{i}", f"c{i}") for i in range(5))


@pytest.mark.parametrize(("saves", "said"), [
    (Saving(1.0, 32768.0, 0.6), "1 kernel, 32 KiB"),
    (Saving(2.0, 0.0, 0.6), "2 kernels"),
    (Saving(0.0, 512.0, 0.6), "512 B"),
    (Saving(-1.0, 512.0, 0.6), "512 B (and starts 1 kernel more)"),
    (Saving(-3.0, 2048.0, 0.6), "2 KiB (and starts 3 kernels more)"),
])
def test_what_a_change_saves_in_words(saves: Saving, said: str) -> None:
    assert saving_words(saves) == said


@pytest.mark.parametrize(("more", "said"), [
    (Saving(18.0, 646.0 * 2**20, 0.0), "18 kernels, 646 MiB more"),
    (Saving(1.0, -512.0, 0.0), "1 kernel more"),
    (Saving(-1.0, 1.0, 0.0), "1 B more"),
    (Saving(0.0, 0.0, 0.0), "its time is longer"),
])
def test_what_a_change_costs_in_words(more: Saving, said: str) -> None:
    assert addition_words(more) == said


def test_the_lines_of_a_fix_show_its_operators_before_and_after() -> None:
    assert sentence(FixAnswer(FIX)) == "compute %t twice"
    assert answer_lines(FixAnswer(FIX)) == [
        "fix: compute %t twice",
        "  before: %t = tanh(%x)",
        "          %a = add(%t, %y)",
        "  after:  %u = tanh(%x)",
        "  saves 1 kernel, 32 KiB, by a plan of the changed program (all 12 operators)",
    ]


def test_a_fix_says_how_much_was_planned_and_what_takes_the_place_of_the_edge() -> None:
    around = replace(FIX, nodes=1, is_whole=False)
    assert effects(around) == "saves 1 kernel, 32 KiB, by a plan of the changed program (the 1 operator around the edge)"
    smaller = replace(FIX, outcome=TrialOutcome.SMALLER)
    assert effects(smaller).startswith("a smaller edge takes its place, which is not fused; saves 1 kernel")


def test_a_fix_names_three_of_the_other_edges_that_it_changes() -> None:
    first = "%p0 -> %c0, %p1 -> %c1, %p2 -> %c2"
    plain = effects(FIX)
    assert effects(replace(FIX, gained=PAIRS[:1])) == f"{plain}; also fuses %p0 -> %c0"
    assert effects(replace(FIX, gained=PAIRS[:3])) == f"{plain}; also fuses {first}"
    assert effects(replace(FIX, gained=PAIRS[:1], lost=PAIRS)) == f"{plain}; also fuses %p0 -> %c0; no longer fuses {first} and 2 more"


def test_without_a_fix_the_sentence_says_what_was_tried_and_what_became_of_it() -> None:
    tried = (Attempt("a", "change A", TrialOutcome.UNDONE), Attempt("b", "change B", TrialOutcome.DEARER),
             Attempt("c", "change C", TrialOutcome.UNDONE), Attempt("d", "change D", TrialOutcome.REFUSED))
    start = "nothing that irscope tried in the source changes this (tried: change A, change B, change C, change D): "
    said = ("XLA rewrites change A and change C into the same kernels; change B costs more kernels, bytes or time; "
            "with change D the edge is refused all the same")
    assert sentence(FixAnswer(attempts=tried, compiler="xla-gpu")) == start + said
    left = FixAnswer(attempts=tried, untried=("change E", "change F", "change G"), behind="it is a call", compiler="xla-gpu")
    assert sentence(left) == (f"{start}{said}; not tried, because it would take more than twice the time of the plan: "
                              "change E, change F and change G; it is a call")


def test_where_nothing_was_tried_the_sentence_says_why() -> None:
    assert sentence(FixAnswer(why_not="the text is optimised")) == "none was tried: the text is optimised"
    assert sentence(FixAnswer()) == "irscope knows no change of the source that could help"
    assert sentence(FixAnswer(behind="it is a call")) == "irscope knows no change of the source that could help; it is a call"
    assert sentence(FixAnswer(untried=("change A",))) == (
        "nothing was tried; not tried, because it would take more than twice the time of the plan: change A")
    assert answer_lines(FixAnswer()) == ["no fix: irscope knows no change of the source that could help"]


@pytest.mark.parametrize(("outcome", "said"), [
    (TrialOutcome.NOT_REFUSED, "a program from before the compiler's optimisation has no such refusal where irscope tried change A"),
    (TrialOutcome.UNPLANNED, "irscope cannot plan change A"),
])
def test_an_attempt_that_says_nothing_about_the_edge_is_told_too(outcome: TrialOutcome, said: str) -> None:
    assert sentence(FixAnswer(attempts=(Attempt("a", "change A", outcome),))).endswith(f"(tried: change A): {said}")


@pytest.mark.parametrize(("policy", "name"), [("xla-cpu", "XLA"), ("xla-gpu", "XLA"), ("tvm", "TVM"), ("inductor", "Inductor"),
                                              ("irscope", "irscope's compiler"), ("another", "another")])
def test_compilers_are_called_as_people_call_them(policy: str, name: str) -> None:
    tried = (Attempt("a", "change A", TrialOutcome.UNDONE),)
    assert sentence(FixAnswer(attempts=tried, compiler=policy)).endswith(f": {name} rewrites change A into the same kernels")
