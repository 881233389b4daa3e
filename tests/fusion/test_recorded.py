"""Plans that a compiler recorded: kernels, outputs, refusals in its own words, and what its silence means."""
from __future__ import annotations

import pytest

from irscope.api import load
from irscope.formats.inductor.fusion_log import Candidate
from irscope.fusion.inductor.reasons import RULES
from irscope.fusion.logs.events import FusionLog, LoggedStep
from irscope.fusion.plan import EdgeVerdict
from irscope.fusion.recorded import CAUSES, FusionRecord, LoggedRefusal, record_of_log, recorded_plans, with_record
from irscope.graph import Module

TEXT = """HloModule m
ENTRY e {
 x = f32[8,8] parameter(0)
 a = f32[8,8] negate(x)
 b = f32[8,8] exponential(a)
 d = f32[8,8] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 c = f32[8,8] add(b, d)
 s = f32[8,8] sine(c)
 ROOT r = (f32[8,8], f32[8,8]) tuple(s, a)
}
"""



def module(*groups: str, refusals: tuple[LoggedRefusal, ...] = ()) -> Module:
    return with_record(load(TEXT).module(), FusionRecord("Inductor", tuple(tuple(group.split()) for group in groups), refusals))


def verdicts(made: Module) -> dict[str, EdgeVerdict]:
    plans = recorded_plans(made)
    assert plans is not None and all(v.recorded and v.graph is made.main() for v in plans[-1].verdicts)
    return {">".join(v.names): v for v in plans[-1].verdicts}


def test_a_module_without_a_record_has_no_such_plan() -> None:
    assert recorded_plans(load(TEXT).module()) is None


def test_kernels_and_their_outputs() -> None:
    plans = recorded_plans(module("a b", "c s"))
    assert plans is not None
    assert [(g.kind, " ".join(n.name for n in g.nodes), " ".join(n.name for n in g.outputs), " ".join(n.name for n in g.inputs))
            for g in plans[0].groups] == [
        ("whole", "x", "x", ""), ("map", "a b", "a b", "x"), ("whole", "d", "d", "b x"), ("map", "c s", "s", "b d")]


def test_verdicts_without_a_log() -> None:
    found = verdicts(module("a b", "c s"))
    assert {edge: (v.fused, v.rule) for edge, v in found.items()} == {
        "x>a": ("none", "not-recorded"), "a>b": ("all", ""), "b>d": ("none", "extern-kernel"), "x>d": ("none", "extern-kernel"),
        "b>c": ("none", "not-recorded"), "d>c": ("none", "extern-kernel"), "c>s": ("all", ""), "s>r": ("none", "no-kernel"),
        "a>r": ("none", "no-kernel")}
    assert found["s>r"].cause == "%r needs no kernel: it only names a part of another buffer" and found["s>r"].reason is None
    assert found["d>c"].cause == "%d calls dot, which Inductor does not fuse"
    assert found["b>c"].cause == "no log of the fusion pass is beside this text: TORCH_LOGS=fusion records the reasons"


@pytest.mark.parametrize("words", CAUSES)
def test_refusals_are_quoted_with_their_cause(words: str) -> None:
    found = verdicts(module("a b", "c s", refusals=(LoggedRefusal("a_b", "c_s", "first words"), LoggedRefusal("c_s", "a_b", words + " (more)", "scheduler.py:7"))))
    refused = found["b>c"]
    assert (refused.fused, refused.reason, refused.rule) == ("none", "first words", "other"), "the order of the log comes first"
    assert refused.cause == ""
    turned = verdicts(module("a b", "c s", refusals=(LoggedRefusal("c_s", "a_b", words + " (more)", "scheduler.py:7"),)))["b>c"]
    assert turned.reason == words + " (more)" and turned.rule == RULES.get(words, turned.rule) != "other"
    assert turned.cause == f"{CAUSES[words]}; scheduler.py:7 decided it"
    assert verdicts(module("a b", "c s", refusals=(LoggedRefusal("x", "s", words),)))["b>c"].rule == "not-tried"
    assert verdicts(module(refusals=(LoggedRefusal("a", "b", words),)))["a>b"].cause == CAUSES[words]


def test_the_last_refusal_of_a_pair_counts() -> None:
    found = verdicts(module(refusals=(LoggedRefusal("a", "b", "one"), LoggedRefusal("a", "b", "two"))))
    assert found["a>b"].reason == "two"
    assert found["b>c"].cause == "the log names no attempt: Inductor tries pairs that share a buffer and may be scored"


def log(*steps: LoggedStep, names: str = "x a b d c s r") -> FusionLog:
    candidates = [Candidate(name, "") for name in names.split()]
    return FusionLog("inductor", "run.log", "Inductor", [[], list(steps)], [[Candidate("other", "")], candidates])


def test_the_record_of_a_log() -> None:
    made = load(TEXT).module()
    record = record_of_log(made, log(
        LoggedStep("a", "b", "a_b"), LoggedStep("a_b", "d", None, "no way"), LoggedStep("c", "s", "c_s"), LoggedStep("a", "b", "a_b"), LoggedStep("b", "erased", "x"),
        LoggedStep("x", "r", None, None)))
    assert record is not None
    assert sorted(record.groups) == [("a", "b"), ("c", "s"), ("d",), ("r",), ("x",)] and record.compiler == "Inductor"
    assert record.refusals == (LoggedRefusal("a_b", "d", "no way"),) and record.files == ("run.log",)
    assert record_of_log(made, log(names="a b")) is None and record_of_log(made, FusionLog("inductor", "n", "Inductor")) is None
