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


MEASURED = {  # operators and the sum of their cycles by element type, from the profiles that the GPU plug-in of jaxlib 0.10.2 holds as text
    "sm_60": "s8 4 649, s16 4 643, s32 4 877, s64 4 2671, u8 4 519, u16 4 530, u32 4 625, u64 4 2517, f16 16 4912, f32 16 4525, "
             "f64 16 11589, c64 15 38837, c128 15 83149",
    "sm_70": "s8 3 534, s16 3 537, s32 3 394, s64 4 1076, u8 3 491, u16 3 485, u32 3 220, u64 4 990, f16 16 3729, f32 16 3155, "
             "f64 16 8171, c64 15 32675, c128 15 59569",
    "sm_75": "s8 2 696, s16 2 696, s32 1 296, s64 2 1474, u8 2 627, u16 2 626, u32 1 118, u64 2 1327, f16 14 5647, f32 13 5053, "
             "f64 17 33164, c64 11 23433, c128 15 136641",
    "sm_80": "s8 1 417, s16 1 468, s64 1 1094, u8 2 837, u16 2 845, u64 2 1652, f16 5 2485, f32 3 1984, f64 11 9960, c64 4 12815, "
             "c128 10 44891",
    "sm_86": "s8 2 762, s16 2 763, s32 1 306, s64 2 1519, u8 2 694, u16 2 701, u32 1 115, u64 2 1442, f16 12 4759, f32 13 5091, "
             "f64 17 33348, c64 9 19519, c128 15 137741",
    "sm_90": "s8 3 485, s16 3 493, s32 3 371, s64 3 949, u8 3 429, u16 3 437, u32 3 196, u64 3 893, f16 16 4670, f32 16 4372, "
             "f64 16 9606, c64 15 31280, c128 15 51816",
    "sm_100": "s8 3 533, s16 3 521, s32 3 481, s64 3 1039, u8 3 462, u16 3 458, u32 3 300, u64 3 937, f16 18 4496, f32 18 4317, "
              "f64 18 9288, c64 16 31427, c128 16 63760",
    "sm_103": "s8 5 425, s16 5 433, s32 5 355, s64 5 1141, u8 5 351, u16 5 346, u32 5 189, u64 5 959, f16 20 3522, f32 20 3192, "
              "f64 20 42582, c64 16 25320, c128 16 259189",
}


@pytest.mark.parametrize("device", CYCLES)
def test_tables_of_cycles_are_those_of_xla(device: str) -> None:
    table = CYCLES[device]
    assert ", ".join(f"{dtype} {len(ops)} {sum(ops.values())}" for dtype, ops in table.items()) == MEASURED[device]
    assert table.keys() <= DTYPES.keys()
    for ops in table.values():
        assert len(hlo.named(" ".join(ops))) == len(ops), "each is an operator"


def test_the_plan_of_one_graph_is_that_of_an_h100() -> None:
    policy = policy_named("xla-gpu")
    assert isinstance(policy, AsWritten)
    made = module("x = f32[64] parameter(0)\n y = f32[64] negate(x)\n ROOT z = f32[64] exponential(y)")
    assert policy.plan(made.main()).kernels() == policy.plan_module(made, "h100")[0].kernels() == 1


@pytest.mark.parametrize(("type", "elements", "size"), [
    ("s8[3]", 3, 3), ("pred[5]", 5, 5), ("f32[2]", 2, 8), ("s4[3]", 3, 3), ("c128[2]", 2, 32), ("f32[0]", 0, 0),
    ("(s8[3], f32[2])", 5, 11), ("(pred[5], (bf16[4], s4[3]))", 12, 16), ("(s8[7], f32[])", 8, 11), ("token[]", 0, 0), ("(token[], u8[2])", 2, 2),
])
def test_elements_and_bytes_are_those_of_all_parts(type: str, elements: int, size: int) -> None:
    made = last(f"ROOT p = {type} parameter(0)", "")
    assert (made.elements, made.size) == (elements, size)
