"""Who reads an instruction, in XLA's order."""
from __future__ import annotations

import random

import pytest

from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_outputs import join_kernels
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph import DTYPES, TensorType
from irscope.graph.users import FEW, Users
from irscope.ops import hlo
from tests.fusion.xla_texts import ADD, module


def instructions(count: int) -> list[Instruction]:
    return [Instruction(hlo.add, TensorType(DTYPES["f32"], ()), ()) for _ in range(count)]


@pytest.mark.parametrize("count", [3, FEW, FEW + 1, 40])
def test_the_last_takes_the_place_of_one_that_goes(count: int) -> None:
    users: Users[Instruction] = Users()
    pick = random.Random(count)
    expected: list[Instruction] = []
    some = instructions(count)
    for _ in range(400):
        one = pick.choice(some)
        if pick.random() < 0.6:
            users.add(one)
            expected += [one] if one not in expected else []
        else:
            users.discard(one)
            if one in expected:
                expected[expected.index(one)] = expected[-1]
                expected.pop()
        assert list(users) == expected and len(users) == len(expected) and (one in users) == (one in expected)


def test_a_reader_that_becomes_a_kernel_keeps_its_place() -> None:
    """Of three readers the first is joined with what it can be joined with, though it became a kernel last."""
    text = """
        x = f32[64,32] parameter(0)
        z = f32[] constant(0)
        a = f32[64] reduce(x, z), dimensions={1}, to_apply=add
        b = f32[32] reduce(x, z), dimensions={0}, to_apply=add
        c = f32[64,32] negate(x)
        ROOT t = (f32[64], f32[32], f32[64,32]) tuple(a, b, c)"""
    computation = Computation.of(module(text, ADD).main())
    by_name = {i.name: i for i in computation.instructions}
    for name in ("b", "c", "a"):
        computation.wrap(by_name[name], "kInput" if name != "c" else "kLoop")
    assert [i.name for i in by_name["x"].users] == ["a", "b", "c"]
    assert join_kernels(computation, CostModel(DEVICES["h100"])) == [("c", "a")]
    assert [[o.op.name for o in i.body.root.operands] for i in computation.instructions if i.body is not None and i.body.root.op is hlo.tuple] \
        == [["reduce", "negate"]]
