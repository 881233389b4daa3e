"""A compiler's own log: read, replayed, and told beside irscope's policy."""
from __future__ import annotations

from pathlib import Path

import pytest

from irscope.api import load
from irscope.fusion import EdgeVerdict
from irscope.fusion.logs import torch_log, xla_dump, xla_vlog
from irscope.fusion.logs.events import LoggedStep
from irscope.fusion.logs.verdicts import load_log, read_log, verdicts_by_log
from irscope.source import UserError
from tests.effort import within

DATA = Path(__file__).parent.parent / "data" / "fusion_logs"
CASES = sorted(path.stem for path in DATA.glob("inductor_*.log"))


def told(name: str, log: str | None = None) -> tuple[dict[tuple[str, str], EdgeVerdict], list[str]]:
    """The verdicts on a program by its log, by producer and consumer."""
    program = next(path for path in (DATA / f"{name}.hlo", DATA / f"{name}.txt") if path.is_file())
    text = log if log is not None else (DATA / f"{name}.log").read_text()
    edges, notes = verdicts_by_log(load(program).module(), read_log(text, f"{name}.log"))
    return {e.names: e for e in edges}, notes


def test_a_vlog_is_read_step_by_step() -> None:
    log = xla_vlog.read((DATA / "cpu_exp.log").read_text(), "vlog")
    assert log.runs == [[
        LoggedStep("x_1_.1", "mul.7", words="Operand (%x_1_.1 = f32[256,128]{1,0} parameter(1), metadata={op_name=\"x[1]\"}) is not fusible"),
        LoggedStep("mul.6", "mul.7", made="broadcast_multiply_fusion"),
        LoggedStep("x_1_.1", "broadcast_multiply_fusion",
             words="Operand (%x_1_.1 = f32[256,128]{1,0} parameter(1), metadata={op_name=\"x[1]\"}) is not fusible"),
        LoggedStep("exp.1", "broadcast_multiply_fusion", words="Fusion is not profitable."),
        LoggedStep("x_0_.1", "exp.1", words="Operand (%x_0_.1 = f32[256]{0} parameter(0), metadata={op_name=\"x[0]\"}) is not fusible"),
    ]]


def test_prefixes_of_glog_and_lines_of_other_passes_do_not_matter() -> None:
    plain = (DATA / "cpu_exp.log").read_text()
    prefixed = "".join(f"I0000 00:00:1735.123   42 {line}\nI0000 00:00:1735.124   42 hlo_pass.cc:1] other\n" for line in plain.splitlines())
    assert xla_vlog.read(prefixed, "vlog").runs == xla_vlog.read(plain, "vlog").runs


def test_xla_says_why_and_the_policy_says_what_that_means() -> None:
    edges, notes = told("cpu_exp")
    assert edges["mul.6", "mul.7"].fused == "all"
    apart = edges["exp.1", "mul.6"]
    assert (apart.fused, apart.reason, apart.rule) == ("none", "Fusion is not profitable.", "not-profitable")
    assert "%exp.1 is expensive" in apart.cause and "%exp.1 is from /src/oracle/models.py:100" in apart.cause
    assert notes[-1] == "xla-cpu@jaxlib-0.12.0.1 agrees with the log on 2 of 2 edges, and on 1 of the 1 that are not fused"


def test_what_the_pass_did_not_see_keeps_the_verdict_of_the_policy(tmp_path: Path) -> None:
    """XLA has removed an instruction that nothing reads before it fuses."""
    program = (DATA / "cpu_exp.hlo").read_text()
    path = tmp_path / "more.hlo"
    path.write_text(program.replace("  ROOT %mul.7", "  %unread = f32[256]{0} negate(%exp.1)\n  ROOT %mul.7"))
    edges, _ = verdicts_by_log(load(path).module(), load_log(str(DATA / "cpu_exp.log")))
    assert {edge.names: (edge.fused, edge.rule) for edge in edges} == {
        ("exp.1", "mul.6"): ("none", "not-profitable"), ("mul.6", "mul.7"): ("all", ""), ("exp.1", "unread"): ("none", "expensive-twice")}


def test_one_producer_in_two_kernels() -> None:
    edges, _ = told("cpu_shared")
    assert all(e.fused in ("all", "some", "none") for e in edges.values())
    assert {e.fused for (p, _), e in edges.items() if p.startswith("exp")} == {"none"}


def test_where_the_policy_would_say_otherwise_the_log_stands() -> None:
    lines = (DATA / "cpu_exp.log").read_text()
    edges, notes = told("cpu_exp", lines.replace("because Fusion is not profitable.", "because of the weather"))
    assert edges["exp.1", "mul.6"].reason == "of the weather"
    assert "xla-cpu@jaxlib-0.12.0.1 gives another reason: Fusion is not profitable." in edges["exp.1", "mul.6"].cause
    kept = [line for line in lines.splitlines() if "Fusing %" not in line and "created new" not in line]
    edges, notes = told("cpu_exp", "\n".join(kept))
    other = edges["mul.6", "mul.7"]
    assert (other.fused, other.rule) == ("none", "disagreement") and "would have fused it" in other.cause
    assert "agrees with the log on 1 of 2 edges, and on 1 of the 2 that are not fused" in notes[-1]


def test_a_log_of_several_programs_is_read_for_the_one_that_fits() -> None:
    little = "instruction_fusion.cc:1] Fusing %exp.1 = f32[] exp(%a) into %mul.6 = f32[] b(%exp.1)\ninstruction_fusion.cc:2] Fusion count: 1\n"
    both = little + (DATA / "cpu_shared.log").read_text() + (DATA / "cpu_exp.log").read_text() + little
    edges, notes = told("cpu_exp", both)
    assert edges["mul.6", "mul.7"].fused == "all" and not any("not in this text" in note for note in notes)
    _, notes = told("cpu_exp", (DATA / "cpu_shared.log").read_text())
    assert any("instructions of the log are not in this text" in note for note in notes)


def test_a_dump_is_read_step_by_step() -> None:
    log = xla_dump.read((DATA / "gpu_exp.log").read_text(), "dump")
    assert log.device == "dump" and log.runs == [[
        LoggedStep("exp.1.0", "mul.6.0", times=(1.04925, 2.06775)),
        LoggedStep("mul.6.0", "mul.7.0", times=(1.08625, 2.16425)),
        LoggedStep("mul.6.0", "mul.7.0", made="fusion"),
        LoggedStep("exp.1.0", "fusion", times=(1.039, 1.039)),
        LoggedStep("fusion", "", words="No users to fuse"),
        LoggedStep("exp.1.0", "fusion", made="fusion"),
        LoggedStep("fusion", "", words="No users to fuse"),
    ]]


def test_the_gpu_pass_is_replayed() -> None:
    path = DATA / "gpu_exp.log"
    edges, notes = verdicts_by_log(load(DATA / "gpu_exp.hlo").module(), load_log(str(path)))
    assert {e.fused for e in edges} == {"all"} and "agrees with the log on 2 of 2 edges" in notes[-1]


def test_a_refused_producer_and_a_loss_are_told() -> None:
    text = """
        fusion_steps { update_priority { producer_name: "mul.6.0" consumer_names: "mul.7.0" us_fused: 3.5 us_unfused: 2 } }
        fusion_steps { producer_ineligible { producer_name: "exp.1.0" reason: "the \\"producer\\" is not fusible" } }"""
    edges, _ = told("gpu_exp", text)
    assert edges["exp.1.0", "mul.6.0"].reason == 'the "producer" is not fusible'
    assert edges["mul.6.0", "mul.7.0"].reason is None and "XLA expects a loss: 3.5 us fused, 2 us apart" in edges["mul.6.0", "mul.7.0"].cause


@pytest.mark.parametrize("case", CASES)
def test_inductor_agrees_with_its_own_log(case: str) -> None:
    edges, notes = told(case)
    assert edges or case == "inductor_horizontal"
    log = read_log((DATA / f"{case}.log").read_text(), case)
    count = len(log.operations[0])
    assert f"{count} of the {count} operations of the log were matched" in notes[1]
    assert not [e for e in edges.values() if e.rule == "disagreement"]


def test_a_log_of_another_program_is_called_so() -> None:
    """What is not found again is told as the policy sees it, and not counted as agreement."""
    edges, notes = told("inductor_cat", (DATA / "inductor_extern_chain.log").read_text())
    assert "less than half: the log may be of another program, or of a GPU" in notes
    unseen = [e for e in edges.values() if "were not matched" in e.cause]
    assert len(unseen) == 3 and notes[-1].endswith("agrees with the log on 2 of 2 edges")


def test_an_inductor_log_with_stack_traces_is_read() -> None:
    log = torch_log.read((DATA / "inductor_extern_chain.log").read_text(), "log")
    kinds = [(o.name, o.kind, o.sizes) for o in log.operations[0]]
    assert kinds == [("op0", "extern", ()), ("op1", "pointwise", (64, 64)), ("op2", "extern", ()), ("op3", "reduction", (128,)),
                     ("op4", "pointwise", (64, 128)), ("op5", "reduction", (128,)), ("op6", "pointwise", (64, 128))]
    assert log.operations[0][4].origins == ("exp", "sub") and log.operations[0][1].lines[0].endswith("inductor_logs.py:16")
    assert log.runs[0][:2] == [LoggedStep("op4", "op6", words="intermediate nodes between node1 & node2"), LoggedStep("op4", "op5", made="op4_op5")]


@pytest.mark.parametrize("text", ["", "HloModule m", "fusing nothing", "instruction_fusion.cc:12] hello"])
def test_what_is_no_log_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UserError):
        read_log(text, "x.log")


def test_blank_lines_take_linear_time() -> None:
    with within(1):
        assert not xla_dump.sniff("\n" * 40_000)


def test_the_command_line_takes_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    from irscope.cli.main import main

    program, log = str(DATA / "cpu_exp.hlo"), str(DATA / "cpu_exp.log")
    assert main(["lint", program, "--why-not-fused", "--fusion-log", log, "--select", "DTY001"]) == 0
    said = capsys.readouterr().out
    assert "2 edges under XLA, 1 of them not fused" in said and "XLA says: Fusion is not profitable." in said
    assert main(["lint", program, "--fusion-log", log]) == 2
    assert main(["lint", program, "--why-not-fused", "--policy", "tvm", "--fusion-log", log]) == 2


def test_a_log_that_breaks_off_keeps_its_last_step() -> None:
    lines = ["instruction_fusion.cc:1] Considering fusion of: %mul.6 = f32[] multiply(%exp.1, %exp.1) with operand exp.1",
             "instruction_fusion.cc:2] Fusing %exp.1 = f32[] exponential(%a) into %mul.6 = f32[] multiply(%exp.1, %exp.1)"]
    [[step]] = xla_vlog.read("\n".join(lines) + "\n", "vlog").runs
    assert (step.producer, step.consumer, step.made) == ("exp.1", "mul.6", "mul.6")
