"""How XLA's GPU compiler sees reductions and windows, and in which types devices compute: the sizes worked out by hand."""
from __future__ import annotations

import pytest

from irscope.fusion.policy import AsWritten, policy_named
from irscope.fusion.xla.gpu_cycles import CYCLES
from irscope.fusion.xla.gpu_floats import is_native
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.shapes import is_unnested_reduction, reduction_dims, window_reductions
from irscope.graph import DTYPES
from irscope.ops import hlo
from tests.fusion.xla_texts import ADD, module


def last(instructions: str, header: str = ADD) -> Instruction:
    return Computation.of(module(instructions, header).main()).root


@pytest.mark.parametrize(("source", "dimensions", "result", "rows", "sizes"), [
    ("8,64", "1", "8", True, (1, 8, 64)),
    ("8,64", "0", "64", False, (1, 8, 64)),
    ("8,64", "0,1", "", True, (1, 1, 512)),
    ("8,16,32", "0,2", "16", True, (8, 16, 32)),
    ("8,16,32", "1", "8,32", False, (8, 16, 32)),
    ("8,16,32", "2", "8,16", True, (1, 128, 32)),
    ("8,16,32", "1,2", "8", True, (1, 8, 512)),
    ("8,16,32", "0", "16,32", False, (1, 8, 512)),
    ("8,1,32", "0,2", "1", True, (1, 1, 256)),
])
def test_the_sizes_of_a_reduction(source: str, dimensions: str, result: str, rows: bool, sizes: tuple[int, int, int]) -> None:
    reduce = last(f"x = f32[{source}] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[{result}] reduce(x, z), dimensions={{{dimensions}}}, to_apply=add")
    assert reduction_dims(reduce) == (rows, sizes)


@pytest.mark.parametrize(("source", "dimensions", "result", "alone"), [
    ("8,64", "1", "8", True), ("8,31", "1", "8", False), ("8,16", "1", "8", True),  # a row of a warp, or of a part of one
    ("31,64", "0", "64", False), ("64,64", "0", "64", True),  # a short column is computed in a loop
    ("63,16", "0", "16", False), ("64,16", "0", "16", True),
    ("4,4,4,4", "0,2", "4,4", False),  # neither side is consecutive
])
def test_which_reductions_get_a_kernel_of_their_own(source: str, dimensions: str, result: str, alone: bool) -> None:
    reduce = last(f"x = f32[{source}] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[{result}] reduce(x, z), dimensions={{{dimensions}}}, to_apply=add")
    assert is_unnested_reduction(reduce) is alone


@pytest.mark.parametrize(("size", "window", "result", "elements", "repeats"), [
    (4, "size=7 pad=3_3", 4, 4, 4),  # every window covers everything: a sum of 4, once and 3 more times
    (4, "size=4 pad=3_0", 4, 4, 12),  # a running sum: 3 additions for each of 4
    (4, "size=5 pad=2_2", 4, 5, 16),
    (6, "size=2", 5, 2, 5),
])
def test_the_work_of_a_window(size: int, window: str, result: int, elements: int, repeats: int) -> None:
    made = last(f"x = f32[{size}] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[{result}] reduce-window(x, z), window={{{window}}}, to_apply=add")
    assert window_reductions(made, result) == (elements, repeats)


NARROW = "join {{ p = {0}[] parameter(0)\n q = {0}[] parameter(1)\n ROOT s = {0}[] {1}(p, q) }}\n"


@pytest.mark.parametrize(("dtype", "op", "capability", "native"), [
    ("bf16", "add", 90, True), ("bf16", "add", 80, False), ("bf16", "maximum", 80, True), ("bf16", "maximum", 75, False), ("bf16", "multiply", 80, False), ("f8e5m2", "add", 90, False),
])
def test_a_reduction_is_native_where_its_combiner_is(dtype: str, op: str, capability: int, native: bool) -> None:
    instructions = f"x = {dtype}[8,64] parameter(0)\n z = {dtype}[] constant(0)\n ROOT r = {dtype}[8] reduce(x, z), dimensions={{1}}, to_apply=join"
    assert is_native(last(instructions, NARROW.format(dtype, op)), dtype, capability) is native


def test_tables_of_cycles_name_operators_and_types() -> None:
    for device, table in CYCLES.items():
        assert table.keys() <= DTYPES.keys(), device
        for ops in table.values():
            assert hlo.named(" ".join(ops)), device
            assert all(cycles > 0 for cycles in ops.values()), device


def test_the_plan_of_one_graph_is_that_of_an_h100() -> None:
    policy = policy_named("xla-gpu")
    assert isinstance(policy, AsWritten)
    made = module("x = f32[64] parameter(0)\n y = f32[64] negate(x)\n ROOT z = f32[64] exponential(y)")
    assert policy.plan(made.main()).kernels() == policy.plan_module(made, "h100")[0].kernels() == 1
