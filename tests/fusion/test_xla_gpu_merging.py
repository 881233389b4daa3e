"""Kernels that grow: what is known of them step by step is what a walk over the whole finds, and a long chain takes linear time."""
from __future__ import annotations

import random

import pytest

from irscope.fusion.xla import gpu, gpu_cost_analysis
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_cost_analysis import Before
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_kinds import moves_minor_within, traits
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.joining import merge_into
from tests.fusion.xla_texts import ADD, module


def program(seed: int, length: int = 120) -> str:
    """Arithmetic, reductions, broadcasts, transposes, slices and concatenations of arrays of 64 by 32, read by one another at random."""
    pick = random.Random(seed)
    lines = ["x0 = f32[64,32] parameter(0)", "x1 = f32[64,32] parameter(1)", "z = f32[] constant(0)"]
    arrays, rows = ["x0", "x1"], list[str]()
    for i in range(length):
        a, b, kind = pick.choice(arrays[-6:]), pick.choice(arrays), pick.randrange(8)
        if kind < 2:
            lines.append(f"v{i} = f32[64,32] {pick.choice(('negate', 'tanh', 'exponential'))}({a})")
        elif kind < 4:
            lines.append(f"v{i} = f32[64,32] {pick.choice(('add', 'divide'))}({a}, {b})")
        elif kind == 4:
            lines.append(f"r{i} = f32[64] reduce({a}, z), dimensions={{1}}, to_apply=add")
            rows.append(f"r{i}")
            continue
        elif kind == 5 and rows:
            lines.append(f"v{i} = f32[64,32] broadcast({pick.choice(rows)}), dimensions={{0}}")
        elif kind == 6:
            lines += [f"t{i} = f32[32,64] transpose({a}), dimensions={{1,0}}", f"v{i} = f32[64,32] reshape(t{i})"]
        else:
            lines += [f"cut{i} = f32[32,32] slice({a}), slice={{[0:32], [0:32]}}",
                      f"v{i} = f32[64,32] concatenate(cut{i}, cut{i}), dimensions={{0}}"]
        arrays.append(f"v{i}")
    ends = [*arrays[-3:], *rows[-2:]]
    types = ", ".join("f32[64]" if end in rows else "f32[64,32]" for end in ends)
    return "\n".join([*lines, f"ROOT out = ({types}) tuple({', '.join(ends)})"])


@pytest.mark.parametrize("seed", range(8))
def test_step_by_step_as_by_the_whole(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    after, into = CostModel.after, gpu._Queue._into
    steps = 0

    def checked(self: CostModel, fusion: Instruction, before: Before) -> None:
        nonlocal steps
        after(self, fusion, before)
        made, walked = self._facts[fusion], self._of_fusion(fusion)
        assert (made.flops, made.used, made.read, made.written, made.code, made.emitted) \
            == (walked.flops, walked.used, walked.read, walked.written, walked.code, walked.emitted)
        steps += 1

    def sound(self: gpu._Queue, producer: Instruction, consumer: Instruction) -> Instruction:
        fusion = into(self, producer, consumer)
        moves, known, fusion.traits = moves_minor_within(fusion), traits(fusion), None
        found = traits(fusion)
        assert (known.plain, moves, known.turns, known.unroll_stops, known.reductions) \
            == (found.plain, moves_minor_within(fusion), found.turns, found.unroll_stops, found.reductions)
        assert fusion.body is not None
        assert len(fusion.body.params) == len(fusion.operands) == len(set(fusion.operands))
        for inner in fusion.body.instructions:
            assert all(operand in fusion.body.instructions and inner in operand.users for operand in inner.operands)
            assert all(inner in user.operands for user in inner.users)
        return fusion

    monkeypatch.setattr(CostModel, "after", checked)
    monkeypatch.setattr(gpu._Queue, "_into", sound)
    gpu.run(Computation.of(module(program(seed), ADD).main()), DEVICES["h100"])
    assert steps > 5


@pytest.mark.parametrize("line", ["v{i} = f32[64] {op}(v{j})", "v{i} = f32[64] {two}(v{j}, v0)"], ids=["unary", "with a shared operand"])
def test_a_long_chain_is_not_walked_at_each_step(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    length, walked = 2000, 0
    post_order = Computation.post_order

    def counted(self: Computation) -> list[Instruction]:
        nonlocal walked
        order = post_order(self)
        walked += len(order)
        return order

    lines = ["v0 = f32[64] parameter(0)"]
    lines += [line.format(i=i, j=i - 1, op=("negate", "tanh", "abs")[i % 3], two=("add", "multiply")[i % 2]) for i in range(1, length)]
    text = "\n".join([*lines[:-1], "ROOT " + lines[-1]])
    computation = Computation.of(module(text).main())
    monkeypatch.setattr(Computation, "post_order", counted)
    gpu.run(computation, DEVICES["h100"])
    assert [i.op.name for i in computation.instructions] == ["parameter", "fusion"]
    assert walked < 15 * length


def test_a_kernel_grows_up_to_the_limit_of_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_cost_analysis, "MAX_IR", 500)
    lines = ["v0 = f32[64] parameter(0)", *(f"v{i} = f32[64] negate(v{i - 1})" for i in range(1, 1000))]
    computation = Computation.of(module("\n".join([*lines[:-1], "ROOT " + lines[-1]])).main())
    gpu.run(computation, DEVICES["h100"])
    sizes = [len(i.body.instructions) for i in computation.instructions if i.body is not None]
    assert max(sizes) <= 500 and len(sizes) == 3 and sum(sizes) == 999 + 3


SAME = "same { q = f32[64] parameter(0)\n ROOT s = f32[64] parameter(1) }\n"
ONE = "one { p = f32[64] parameter(0)\n ROOT e = f32[64] exponential(p) }\n"
SUM = "sum { p = f32[64] parameter(0)\n q = f32[64] parameter(1)\n ROOT a = f32[64] add(p, q) }\n"


def kernels(text: str, header: str) -> dict[str, Instruction]:
    return {i.name: i for i in Computation.of(module(text, header).main()).instructions}


def test_a_kernel_that_returns_its_operand_returns_what_is_merged_into_it() -> None:
    text = ("x = f32[64] parameter(0)\n y = f32[64] parameter(1)\n a = f32[64] fusion(x), kind=kLoop, calls=one\n"
            " ROOT b = f32[64] fusion(y, a), kind=kLoop, calls=same")
    found = kernels(text, ONE + SAME)
    merge_into(found["b"], found["a"])
    body = found["b"].body
    assert body is not None and body.root.op.name == "exponential" and body.root in body.instructions
    assert found["b"].operands == [found["y"], found["x"]]


@pytest.mark.parametrize("reader", ["", "\n c = f32[64] negate(b)"], ids=["moved", "copied"])
def test_the_operand_that_a_merged_kernel_returns_is_read_in_its_place(reader: str) -> None:
    """``sum(x, same(y, x))`` reads x twice, whichever parameter for it is kept."""
    text = ("x = f32[64] parameter(0)\n y = f32[64] parameter(1)\n b = f32[64] fusion(y, x), kind=kLoop, calls=same" + reader +
            "\n ROOT d = f32[64] fusion(x, b), kind=kLoop, calls=sum")
    found = kernels(text, SAME + SUM)
    merge_into(found["d"], found["b"])
    body = found["d"].body
    assert body is not None
    one, two = body.root.operands
    assert one is two is body.params[found["d"].operands.index(found["x"])] and one in body.instructions
