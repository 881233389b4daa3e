"""Fusion policies and logs of compilers meet texts that no compiler writes: they end soon, with a reason in plain English."""
from __future__ import annotations

import pytest

import irscope
from irscope.fusion.inductor.policy import POLICY
from irscope.fusion.inductor.reasons import verdicts
from irscope.fusion.inductor.report import Report
from irscope.fusion.irscope import POLICY as IRSCOPE
from irscope.fusion.logs.verdicts import read_log, verdicts_by_log
from irscope.fusion.logs.xla_dump import TOKEN
from irscope.fusion.xla.gpu import run
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.instructions import Computation
from irscope.graph import Graph
from irscope.source import UserError
from tests.effort import calls_in

ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT r = f32[] add(a, b) }\n"
REFUSED = 'fusion_steps { producer_ineligible { producer_name: "p" reason: "No users" } }\n'


def graph_of(lines: str, before: str = "") -> Graph:
    return irscope.load(f"HloModule m\n{before}ENTRY e {{\n{lines}\n}}\n", format="hlo").module().main()


@pytest.mark.parametrize("work", ["negate(t{i})", "copy(t{i})"])
def test_an_index_through_many_reshapes_and_transposes_is_refused(work: str) -> None:
    """Each reshape divides the quotients of the one before: the index expression would have 2**40 atoms."""
    steps = "\n".join(f" r{i} = f32[6,4] reshape({f'n{i - 1}' if i else 'p'})\n t{i} = f32[4,6] transpose(r{i}), dimensions={{1,0}}\n"
                      f" n{i} = f32[4,6] {work.format(i=i)}" for i in range(40))
    graph = graph_of(f" p = f32[4,6] parameter(0)\n{steps}\n ROOT root = f32[4,6] negate(n39)")
    with pytest.raises(UserError, match="too many reshapes and transposes"):
        POLICY.plan(graph)


def test_a_reduction_of_nothing_takes_no_memory() -> None:
    """One of the reduced sizes is 0, the other is huge."""
    graph = graph_of(" p = f32[2,0,1000000000000] parameter(0)\n z = f32[] constant(0)\n"
                     " ROOT s = f32[2] reduce(p, z), dimensions={1,2}, to_apply=add", ADD)
    assert POLICY.plan(graph)


def test_more_dimensions_than_pytorch_has_are_refused() -> None:
    """The loops of a kernel are merged in pairs, each pair for each access, again after each merge."""
    def turned(rank: int) -> Graph:
        shape, turn = ",".join(["2"] * rank), ",".join(map(str, reversed(range(rank))))
        return graph_of(f" p = f32[{shape}] parameter(0)\n t = f32[{shape}] transpose(p), dimensions={{{turn}}}\n"
                        f" ROOT r = f32[{shape}] add(p, t)")

    assert POLICY.plan(turned(16))
    with pytest.raises(UserError, match="200 dimensions"):
        POLICY.plan(turned(200))


def test_a_time_in_a_dump_of_xla_is_a_number() -> None:
    with pytest.raises(UserError, match="us_fused is 'abc', which is not a number"):
        read_log('fusion_steps { update_priority { producer_name: "p" consumer_names: "q" us_fused: abc } }', "dump.txt")


def test_a_long_word_in_a_dump_of_xla_is_read_once() -> None:
    """A word without a colon is no field, wherever in it the search begins."""
    assert TOKEN.match("a" * 50 + ":1", 25) is None
    assert read_log(REFUSED + "a" * 90_000, "dump.txt").runs  # minutes, if the search rescanned the word


def test_a_join_of_a_log_that_closes_a_cycle_is_left_out() -> None:
    """The log fuses what is before a product with what is after it, by names that irscope matches in order."""
    module = irscope.load("HloModule m\nENTRY e {\n p = f32[8,8] parameter(0)\n a = f32[8,8] tanh(p)\n"
                          " d = f32[8,8] dot(a, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                          " ROOT t = f32[8,8] exponential(d)\n}\n", format="hlo").module()
    lines = ["===== attempting fusion (1/10): 3 nodes =====", "fuse_nodes_once, candidates:",
             "  SchedulerNode(name='op0'), Pointwise(['[64]'])", "  ExternKernelSchedulerNode(name='op1')",
             "  SchedulerNode(name='op2'), Pointwise(['[64]'])", "fusing op0 with op2"]
    verdicts, _ = verdicts_by_log(module, read_log("".join(f"[__fusion] {line}\n" for line in lines), "fusion.log"))
    assert [v.fused for v in verdicts] == ["none", "none"]


def test_a_kernel_with_hundreds_of_transposes_is_planned_in_linear_time() -> None:
    def calls(steps: int) -> int:
        lines = [f" t{i} = f32[6,6] transpose(n{i}), dimensions={{1,0}}\n n{i + 1} = f32[6,6] negate(t{i})" for i in range(steps)]
        text = "\n".join([" n0 = f32[6,6] parameter(0)", *lines, f" ROOT r = f32[6,6] tanh(n{steps})"])
        return calls_in(IRSCOPE.plan, graph_of(text))

    assert calls(280) < 2.5 * calls(140)


def joined(pieces: int) -> Computation:
    """A concatenation of many small results that are computed from one parameter."""
    lines = "\n".join(f" m{i} = f32[8] tanh(p)" for i in range(pieces))
    operands = ", ".join(f"m{i}" for i in range(pieces))
    return Computation.of(graph_of(f" p = f32[8] parameter(0)\n{lines}\n"
                                   f" ROOT r = f32[{8 * pieces}] concatenate({operands}), dimensions={{0}}"))


def test_the_gain_of_a_producer_of_a_wide_kernel_does_not_sum_all_its_reads() -> None:
    """Each of the pieces of a concatenation is timed again after each fusion."""
    def work(pieces: int) -> int:
        computation, cost = joined(pieces), CostModel(DEVICES["h100"])
        first, second = [i for i in computation.instructions if i.op.name == "tanh"][:2]
        cost.gain(first)
        return calls_in(cost.gain, second)

    assert work(400) == work(100)


def test_a_wide_kernel_knows_the_positions_of_its_operands_while_it_changes() -> None:
    computation = joined(80)
    run(computation, DEVICES["h100"])
    kernel = computation.root
    assert kernel.body is not None and len(kernel.operands) == 1
    for one in (kernel, *kernel.body.instructions):
        kept = one.positions()
        one.places = None
        assert kept == one.positions()


def test_the_pieces_of_a_concatenation_are_judged_in_linear_time() -> None:
    """Each piece is a kernel; the edge to each searched those of all pieces for the one that reads it."""
    def work(pieces: int) -> int:
        lines = "\n".join(f" m{i} = f32[8] tanh(p)" for i in range(pieces))
        operands = ", ".join(f"m{i}" for i in range(pieces))
        prepared = POLICY.prepared(graph_of(f" p = f32[8] parameter(0)\n{lines}\n"
                                            f" r = f32[{8 * pieces}] concatenate({operands}), dimensions={{0}}\n"
                                            f" s = f32[{8 * pieces}] concatenate({operands}), dimensions={{0}}\n"
                                            f" ROOT t = f32[{16 * pieces}] concatenate(r, s), dimensions={{0}}"))
        return calls_in(list, verdicts(Report(*prepared)))

    assert work(100) < 2.3 * work(50)
