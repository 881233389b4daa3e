"""Inputs on which rules, outlines, gates and diffs failed, took minutes or took gigabytes."""
from __future__ import annotations

import tracemalloc
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

import irscope
from irscope.analysis import by_graph
from irscope.analysis.scopes import LEVELS, layers, scope_of
from irscope.analysis.survey import Survey
from irscope.diff import compare
from irscope.graph import Module
from irscope.graph.contents import contents
from irscope.lint import claims, lint_module
from irscope.lint.config import read_config
from irscope.lint.gates.require_fused import RequireFused
from irscope.lint.machine import machine_named
from irscope.lint.planned import Planned
from irscope.lint.rules.cast_ping_pong import CastPingPong
from irscope.lint.rules.control_flow_boundary import ControlFlowBoundary
from irscope.lint.rules.sort_for_few import SortForFew
from irscope.lint.rules.stretched_both_ways import StretchedBothWays
from irscope.lint.rules.traced_away_branch import TracedAwayBranch
from tests.effort import calls_in, within


def hlo(text: str) -> Module:
    return irscope.load("HloModule m\n" + dedent(text), format="hlo").module()


def torchscript(text: str) -> Module:
    return irscope.load(dedent(text).strip() + "\n", format="torchscript").module()


def named(*scopes: str) -> Module:
    lines = [f' a{i} = f32[8] tanh({f"a{i - 1}" if i else "x"}), metadata={{op_name="{scope}"}}\n' for i, scope in enumerate(scopes)]
    return hlo(f"ENTRY e {{\n x = f32[8] parameter(0)\n{''.join(lines)} ROOT r = f32[8] abs(a{len(scopes) - 1})\n}}\n")


def test_scopes_nest_up_to_a_limit() -> None:
    """Each level is a section, and is found by all levels above it."""
    module = named("a/" * 20_000 + "b", "c/d", "c/e", "c/f")
    with within(2):
        outline = Survey(module).scope_outline
    deepest = scope_of(module, module.main().nodes[1])
    assert deepest == ("a",) * LEVELS
    assert len(list(outline.walk())) < 2 * LEVELS
    assert len(layers(("1_" * 20_000 + "b",))) == LEVELS


def test_bodies_that_many_call_are_listed_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_graph, "MAX_NODES", 1000)
    steps = "".join(f" a{i} = f32[8] {'tanh' if i * i % 7 < 3 else 'abs'}({f'a{i - 1}' if i else 'x'})\n" for i in range(100))
    calls = "".join(f" b{i} = f32[8] call(x), to_apply=f\n c{i} = f32[{i + 1},8] broadcast(x), dimensions={{1}}\n" for i in range(50))
    module = hlo(f"f {{\n x = f32[8] parameter(0)\n{steps} ROOT r = f32[8] abs(a99)\n}}\n"
                 f"ENTRY e {{\n x = f32[8] parameter(0)\n{calls} ROOT r = f32[8] abs(b0)\n}}\n")
    outline = Survey(module).graph_outline
    assert 1000 < outline.n_nodes < 2000


def test_a_conditional_of_tokens_is_no_finding() -> None:
    module = hlo("""
        a { ROOT t = token[] parameter(0) }
        b { ROOT t = token[] parameter(0) }
        ENTRY e {
          p = pred[] parameter(0)
          t = token[] after-all()
          ROOT r = token[] conditional(p, t, t), true_computation=a, false_computation=b
        }
    """)
    assert lint_module(module, [ControlFlowBoundary]) == []


ENDLESS = """
    body { ROOT p = (s32[]) parameter(0) }
    condition {
      p = (s32[]) parameter(0)
      ROOT c = pred[] constant(true)
    }
    less {
      p = f32[] parameter(0)
      q = f32[] parameter(1)
      z = s32[] constant(0)
      t = (s32[]) tuple(z)
      w = (s32[]) while(t), condition=condition, body=body
      g = s32[] get-tuple-element(w), index=0
      f = f32[] convert(g)
      k = f32[] add(p, f)
      ROOT a = pred[] compare(k, q), direction=LT
    }
"""
UNKNOWN = """
    less {
      p = f32[] parameter(0)
      q = f32[] parameter(1)
      ROOT a = pred[] custom-call(p, q), custom_call_target="z"
    }
"""


@pytest.mark.parametrize("comparator", [ENDLESS, UNKNOWN], ids=["endless", "unknown"])
def test_comparators_that_do_more_than_arithmetic_are_not_run(comparator: str) -> None:
    module = hlo(comparator + """
    ENTRY e {
      x = f32[32,1024] parameter(0)
      s = f32[32,1024] sort(x), dimensions={1}, is_stable=true, to_apply=less
      ROOT r = f32[32,8] slice(s), slice={[0:32],[0:8]}
    }
    """)
    with within(5):
        finding, = lint_module(module, [SortForFew])
    assert finding.node == "s"


def test_declared_types_of_too_low_rank_are_not_compared_axis_by_axis() -> None:
    module = torchscript("""
        graph(%a : Float(1, 1, 3), %b : Float(2), %one : int):
          %y : Float(4, 4) = aten::add(%a, %b, %one)
          return (%y)
    """)
    assert lint_module(module, [StretchedBothWays]) == []


@pytest.mark.parametrize("given", ["%t", ""])
def test_a_tuple_may_be_unpacked_into_too_many_values(given: str) -> None:
    module = torchscript(f"""
        graph(%x : Float(2),
              %1 : int):
          %t : (Tensor) = prim::TupleConstruct(%x)
          %3 : Tensor, %4 : Tensor, %5 : Tensor = prim::TupleUnpack({given})
          %6 : bool = aten::Bool(%5)
          %7 : Tensor = aten::relu(%x)
          return (%7)
    """)
    assert {finding.node for finding in lint_module(module, [TracedAwayBranch])} == {"6"}


def adds(n: int) -> Module:
    """The paths through the additions double with each of them."""
    lines = "".join(f" a{i} = f32[8] add(a{i - 1}, b{i - 1})\n b{i} = f32[8] add(b{i - 1}, a{i - 1})\n" for i in range(1, n))
    return hlo(f"ENTRY e {{\n x = f32[8] parameter(0)\n a0 = f32[8] add(x, x)\n b0 = f32[8] add(x, x)\n{lines}"
               f" ROOT r = f32[8] add(a{n - 1}, b{n - 1})\n}}\n")


def test_chains_are_counted_up_to_a_limit() -> None:
    planned = Planned(adds(40), "irscope")
    with within(5):
        with pytest.raises(irscope.UserError, match="more than 20,000 chains"):
            RequireFused.judge(planned, ",".join(["add"] * 30))
        found, = RequireFused.judge(planned, ",".join(["add"] * 30 + ["tanh"]))
        assert "no operator is called tanh" in found.help
        found, = RequireFused.judge(planned, ",".join(["add"] * 45))
        assert "follows add,add" in found.help


def test_conversions_behind_a_long_movement_are_judged_each_at_once() -> None:
    def converted(n: int) -> Module:
        copies = "".join(f" v{i} = bf16[8] copy(v{i - 1})\n" for i in range(1, n))
        casts = "".join(f" k{i} = f32[8] convert(v{n - 1})\n" for i in range(n))
        return hlo(f"ENTRY e {{\n x = f32[8] parameter(0)\n h = bf16[8] convert(x)\n v0 = bf16[8] copy(h)\n{copies}{casts}"
                   f" ROOT r = f32[8] add(k{n - 1}, x)\n}}\n")
    small, large = (calls_in(lint_module, converted(n), [CastPingPong]) for n in (100, 400))
    assert large < 8 * small


def test_integers_of_settings_have_a_limit(tmp_path: Path) -> None:
    """Python prints no integer of more than 4,300 digits."""
    settings, machine = tmp_path / "irscope.toml", tmp_path / "machine.toml"
    settings.write_text(f"policy = 0x{'f' * 6000}\n")
    machine.write_text(f"read_gbs = 0x{'f' * 6000}\n")
    with pytest.raises(irscope.UserError, match="more than 2048 bits"):
        read_config(str(settings))
    with pytest.raises(irscope.UserError, match="more than 2048 bits"):
        machine_named(str(machine))


def test_a_count_beyond_64_bits_wraps_like_its_type() -> None:
    text = """HloModule m
a { x = s32[] parameter(0)
 y = s32[] parameter(1)
 ROOT s = s32[] add(x, y) }
ENTRY e { p = s32[] parameter(0)
 z = s32[] constant(0)
 b = s32[4294967296,4294967296,3] broadcast(p), dimensions={}
 ROOT r = s32[3] reduce(b, z), dimensions={0,1}, to_apply=a }
"""
    lint_module(irscope.load(text, format="hlo").module())


def test_nested_calls_are_planned_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding in each of a chain of calls had its whole chain planned: time and memory grew with the square of the chain."""
    planned = []

    class Recorded(Planned):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            planned.append(sum(len(plan.graph.nodes) for plan in self.plans))

    monkeypatch.setattr(claims, "Planned", Recorded)
    monkeypatch.setattr(claims, "MAX_APART", 500)
    chain = [f"g{i} {{ x = f32[8] parameter(0)\n a = f64[8] convert(x)\n b = f32[8] convert(a)\n ROOT c = f32[8] call(b), to_apply=g{i - 1} }}"
             for i in range(1, 60)]
    text = "\n".join(["g0 { x = f32[8] parameter(0)\n a = f64[8] convert(x)\n ROOT b = f32[8] convert(a) }", *chain,
                      "ENTRY e { x = f32[8] parameter(0)\n ROOT r = f32[8] call(x), to_apply=g59 }"])
    assert lint_module(hlo(text))
    assert 0 < sum(planned) < 1500  # 60 * 61 / 2 graphs of 3 nodes otherwise


def test_constants_that_repeat_one_element_are_compared_by_it() -> None:
    """Two texts of 300 bytes took 2.4 GB."""
    def dense(value: str, n: int = 600_000_000) -> Module:
        of = f"tensor<{n}xf32>"
        return irscope.load(f"module @m {{\n  func.func public @main(%x: {of}) -> {of} {{\n    %c = stablehlo.constant dense<{value}> : {of}\n"
                            f"    %y = stablehlo.add %x, %c : {of}\n    return %y : {of}\n  }}\n}}\n", format="stablehlo").module()
    one, two, third = dense("1.0"), dense("2.0"), dense("[1.0, 1.0, 1.0]", 3)
    tracemalloc.start()
    try:
        assert compare(one, dense("1.0")).same
        assert compare(one, two).kinds()["changed"] == 1
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
    assert compare(third, dense("1.0", 3)).same
    assert contents(np.asarray([0.0, -0.0])) != contents(np.zeros(2))


@pytest.mark.parametrize("shape", [(), (0,), (1, 3), (2, 2)])
def test_contents_are_the_bits(shape: tuple[int, ...]) -> None:
    nan = np.broadcast_to(np.float32("nan"), shape)
    assert contents(nan) == contents(nan.copy())
    assert (contents(nan) == contents(np.ones(shape, np.float32))) == (0 in shape)


def test_changes_in_one_large_kernel_share_its_region() -> None:
    """3,000 conversions in a row took 14 s and 870 MB: each finding looked at the whole kernel."""
    def converted(n: int) -> Module:
        steps = "".join(f" m{i} = {'f32' if i % 2 else 'f16'}[8] convert({f'm{i - 1}' if i else 'x'})\n" for i in range(n))
        return hlo(f"ENTRY e {{\n x = f32[8] parameter(0)\n{steps} ROOT r = f32[8] tanh(m{n - 1})\n}}\n")
    small, large = (calls_in(lint_module, converted(n), [CastPingPong]) for n in (200, 1600))
    assert large < 6 * small
