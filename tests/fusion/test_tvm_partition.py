"""Post-dominators as TVM has them: held against a plain walk, and quick where one value is read ten thousand times."""
from __future__ import annotations

import random

import irscope
from irscope.fusion.tvm import POLICY
from irscope.fusion.tvm_dominators import dominators
from irscope.fusion.tvm_kinds import TvmKind
from irscope.fusion.tvm_partition import Partition
from irscope.fusion.tvm_walk import Walk, walk
from irscope.graph import Graph, Module
from tests.effort import within

LINES = ("exp({a})", "add({a}, {b})", "transpose({a}, axes=[1, 0])", "nn.dense({a}, %w, units=8)", "sum({a}, axis=[0], keepdims=True)",
         "multiply({a}, {b})", "nn.relu({a})")


def some_graph(seed: int, lines: int = 40) -> Graph:
    rng = random.Random(seed)
    names, text = ["%x"], ["def @main(%x: Tensor[(8, 8), float32], %w: Tensor[(8, 8), float32]) {"]
    for number in range(lines):
        a, b = (rng.choice(names[-6:]) if rng.random() < 0.8 else rng.choice(names) for _ in range(2))
        text.append(f"  %{number} = {rng.choice(LINES).format(a=a, b=b)};")
        names.append(f"%{number}")
    text.append(f"  add({names[-1]}, {rng.choice(names)})\n}}")
    return irscope.load("\n".join(text) + "\n").module().main()


def plainly(found: Walk) -> list[tuple[int, TvmKind]]:
    """Where the ways from each place meet: every set of places behind it, walked."""
    above: list[list[int]] = [[] for _ in found.nodes]
    made: list[tuple[int, TvmKind]] = [(-1, TvmKind.OPAQUE)] * len(found.nodes)
    for at in range(len(found.nodes) - 1, -1, -1):
        if found.extern[at] or not found.outputs[at]:
            above[at] = [at]
            continue
        ways = [above[to] for to, _ in found.outputs[at]]
        parent = next((place for place in ways[0] if all(place in way for way in ways)), -1)
        kind = max(edge for _, edge in found.outputs[at])
        for way in ways:
            for place in way[:way.index(parent)] if parent >= 0 else []:
                kind = max(kind, made[place][1])
        made[at] = parent, kind
        above[at] = [at, *(above[parent] if parent >= 0 else [])]
    return made


def test_dominators_are_those_of_a_plain_walk() -> None:
    for seed in range(60):
        found = walk(some_graph(seed))
        expected = plainly(found)
        for at, dominator in enumerate(dominators(found)):
            assert dominator.parent == expected[at][0]
            if dominator.parent >= 0:
                assert dominator.kind is expected[at][1]


def hub(readers: int) -> Module:
    """One value that a long chain reads at every step, and that is read once more behind it."""
    lines = ["def @main(%x: Tensor[(4), float32]) {", "  %0 = exp(%x);", "  %1 = tanh(%0);", "  %2 = add(%0, 1f);"]
    lines += [f"  %{n} = add(%{n - 1}, %0);" for n in range(3, readers + 3)]
    return irscope.load("\n".join([*lines, f"  add(%1, %{readers + 2})", "}", ""])).module()


def test_a_value_that_all_read_takes_no_quadratic_time() -> None:
    module = hub(20_000)
    with within(10):  # a walk for every reader takes minutes
        partition = Partition(module.main())
        plan, = POLICY.plan_module(module)
    assert partition.dominators[1].parent == len(partition.walk.nodes) - 1
    told = next(v for v in plan.verdicts if v.producer.name == "0" and v.fused == "none")
    assert told.rule == "multi-consumer" and told.cause is not None and "and 19994 more" in told.cause
