"""The reference evaluator: control flow, asynchronous work, deep calls, and what it cannot run."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import Evaluator, evaluate, flatten, holds
from irscope.graph import tensor
from irscope.source import UserError
from tests.ops.running import read


def test_while_with_a_tuple() -> None:
    module = read("""
        more { s = (s32[], f32[]) parameter(0)
               i = s32[] get-tuple-element(s), index=0
               n = s32[] constant(5)
               ROOT c = pred[] compare(i, n), direction=LT }
        step { s = (s32[], f32[]) parameter(0)
               i = s32[] get-tuple-element(s), index=0
               x = f32[] get-tuple-element(s), index=1
               one = s32[] constant(1)
               j = s32[] add(i, one)
               y = f32[] add(x, x)
               ROOT r = (s32[], f32[]) tuple(j, y) }
        ENTRY e { s = (s32[], f32[]) parameter(0)
                  ROOT w = (s32[], f32[]) while(s), condition=more, body=step }""")
    count, value = Evaluator(check=True).run(module.main(), [(np.int32(0), np.float32(1))])
    assert (int(count), float(value)) == (5, 32.0)


@pytest.mark.parametrize(("index", "want"), [(0, -3.0), (1, 9.0), (7, 9.0), (-1, 9.0)])
def test_conditional_out_of_range_takes_the_last_branch(index: int, want: float) -> None:
    module = read("""
        neg { x = f32[] parameter(0)
              ROOT n = f32[] negate(x) }
        square { x = f32[] parameter(0)
                 ROOT n = f32[] multiply(x, x) }
        ENTRY e { i = s32[] parameter(0)
                  x = f32[] parameter(1)
                  ROOT c = f32[] conditional(i, x, x), branch_computations={neg, square} }""")
    assert float(evaluate(module.main(), [np.int32(index), np.float32(3)])) == want


def test_calls_nest_deeper_than_python_does() -> None:
    graphs = ["call0 { x = s32[] parameter(0)\none = s32[] constant(1)\nROOT y = s32[] add(x, one) }"]
    for i in range(1, 3000):
        graphs.append(f"call{i} {{ x = s32[] parameter(0)\nROOT y = s32[] call(x), to_apply=call{i - 1} }}")
    module = read("\n".join(graphs) + "\nENTRY e { x = s32[] parameter(0)\nROOT y = s32[] call(x), to_apply=call2999 }")
    assert int(evaluate(module.main(), [np.int32(4)])) == 5


def test_asynchronous_work_is_done_at_once() -> None:
    module = read("""
        work { x = f32[2] parameter(0)
               ROOT n = f32[2] negate(x) }
        ENTRY e { x = f32[2] parameter(0)
                  s = ((f32[2]), f32[2], u32[]) async-start(x), calls=work
                  u = ((f32[2]), f32[2], u32[]) async-update(s)
                  d = f32[2] async-done(u)
                  c = (f32[2], f32[2], u32[]) copy-start(d)
                  ROOT r = f32[2] copy-done(c) }""")
    assert Evaluator(check=True).run(module.main(), [np.array([1, 2], np.float32)]).tolist() == [-1, -2]


def test_operands_may_be_bound_later() -> None:
    module = read("""
        work { x = f32[2] parameter(0)
               y = f32[2] parameter(1)
               ROOT n = f32[2] subtract(x, y) }
        ENTRY e { x = f32[2] parameter(0)
                  y = f32[2] parameter(1)
                  s = ((f32[2]), f32[2], u32[]) async-start(x), calls=work
                  u = ((f32[2], f32[2]), f32[2], u32[]) async-update(s, y)
                  ROOT d = f32[2] async-done(u) }""")
    assert evaluate(module.main(), [np.array([5, 2], np.float32), np.array([1, 1], np.float32)]).tolist() == [4, 1]


def test_nested_tuples_come_out_flat() -> None:
    module = read("""ENTRY e { x = (f32[], (s32[], token[])) parameter(0)
                               ROOT y = (f32[], (s32[], token[])) copy(x) }""")
    value = evaluate(module.main(), [(np.float32(1), (np.int32(2), None))])
    assert [float(v) for v in flatten(value)] == [1, 2]


def test_an_elided_constant_needs_a_value() -> None:
    module = read("ENTRY e { ROOT c = f32[20] constant({...}) }")
    with pytest.raises(UserError, match="elides the value of %c"):
        evaluate(module.main(), [])
    given = Evaluator({"c": np.ones(20, np.float32)}).run(module.main(), [])
    assert given.sum() == 20


def test_what_waits_for_somebody_else_is_told() -> None:
    module = read("""ENTRY e { t = token[] after-all()
                               i = (f32[2], token[]) infeed(t)
                               ROOT x = f32[2] get-tuple-element(i), index=0 }""")
    with pytest.raises(UserError, match="waits for data from the host"):
        evaluate(module.main(), [])


def test_wrong_values_are_caught_when_checking() -> None:
    assert holds(tensor("f32", 2), np.zeros(2, np.float32))
    assert not holds(tensor("f32", 2), np.zeros(2, np.float64))
    assert not holds(tensor("f32", 2), np.zeros(3, np.float32))
    module = read("ENTRY e { x = f32[2] parameter(0)\nROOT n = f32[3] negate(x) }")
    with pytest.raises(ValueError, match="the reference gives"):
        Evaluator(check=True).run(module.main(), [np.zeros(2, np.float32)])


def test_an_update_of_a_number_may_follow_what_returns_a_number_of_numpy() -> None:
    module = read("ENTRY e { x = f32[] parameter(0)\n u = f32[] parameter(1)\n s = f32[] dynamic-slice(x), dynamic_slice_sizes={}\n"
                       "ROOT r = f32[] dynamic-update-slice(s, u) }")
    assert evaluate(module.main(), [np.float32(1), np.float32(2)]) == np.float32(2)
