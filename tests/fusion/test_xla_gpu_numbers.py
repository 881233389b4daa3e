"""The numbers of XLA's GPU cost model, each at the place where it starts to matter."""
from __future__ import annotations

from math import prod

import pytest

from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_cycles import cycles
from irscope.fusion.xla.gpu_device import DEVICES
from irscope.fusion.xla.gpu_kinds import KernelEmitter
from irscope.fusion.xla.gpu_launch import launch, unroll_factor
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.shapes import is_race_free, is_unnested_reduction
from irscope.ops import get
from tests.fusion.xla_texts import ADD, module

H100 = DEVICES["h100"]


def reduction(dims: tuple[int, ...], over: tuple[int, ...]) -> Instruction:
    kept = ",".join(str(d) for i, d in enumerate(dims) if i not in over)
    text = f"x = f32[{','.join(map(str, dims))}] parameter(0)\n z = f32[] constant(0)\n " \
        f"ROOT r = f32[{kept}] reduce(x, z), dimensions={{{','.join(map(str, over))}}}, to_apply=add"
    return Computation.of(module(text, ADD).main()).root


@pytest.mark.parametrize("dims, over, blocks, threads", [
    # rows: a thread adds 16 elements, a block has 256 threads for rows that are short, up to 1024 for long ones
    ((1000, 512), (1,), 125, 256), ((1000, 528), (1,), 250, 256), ((1000, 544), (1,), 250, 256), ((1000, 2048), (1,), 500, 256),
    ((1000, 2049), (1,), 1000, 160), ((1000, 32768), (1,), 1000, 1024), ((8, 512), (1,), 1, 256), ((7, 512), (1,), 1, 224),
    ((1000, 16), (1,), 63, 256),
    # columns: two at once where they are many and even
    ((512, 128), (0,), 2, 1024), ((512, 64), (0,), 1, 1024), ((512, 62), (0,), 2, 1024), ((512, 65), (0,), 3, 1024)])
def test_how_a_reduction_is_launched(dims: tuple[int, ...], over: tuple[int, ...], blocks: int, threads: int) -> None:
    assert launch(H100, None, reduction(dims, over), KernelEmitter.REDUCTION) == (blocks, threads)


@pytest.mark.parametrize("dims, over, alone", [
    ((64, 32), (1,), True), ((64, 31), (1,), False), ((64, 16), (1,), True), ((64, 33), (1,), True),
    ((32, 32), (0,), True), ((31, 32), (0,), False), ((64, 31), (0,), True), ((63, 31), (0,), False), ((128, 7), (0,), True),
    ((127, 7), (0,), False), ((127, 8), (0,), True), ((256, 2), (0,), True), ((255, 2), (0,), False), ((255, 3), (0,), True)])
def test_which_reductions_deserve_a_kernel(dims: tuple[int, ...], over: tuple[int, ...], alone: bool) -> None:
    assert is_unnested_reduction(reduction(dims, over)) is alone


@pytest.mark.parametrize("dims, over, free", [
    ((4, 16384), (1,), True), ((4, 16385), (1,), False), ((8, 4, 32), (0, 2), True), ((9, 4, 32), (0, 2), False),
    ((4096, 64), (0,), True), ((4097, 64), (0,), False)])
def test_which_need_no_atomic_additions(dims: tuple[int, ...], over: tuple[int, ...], free: bool) -> None:
    assert is_race_free(reduction(dims, over)) is free


@pytest.mark.parametrize("pieces, factor", [(10, 4), (11, 1)])
def test_a_concatenation_of_many_pieces_is_not_unrolled(pieces: int, factor: int) -> None:
    lines = [f"x{i} = f32[65536] parameter({i})" for i in range(pieces)]
    text = "\n".join([*lines, f"ROOT c = f32[{65536 * pieces}] concatenate({', '.join(f'x{i}' for i in range(pieces))}), dimensions={{0}}"])
    assert unroll_factor(H100, None, Computation.of(module(text).main()).root) == factor


def test_a_loop_is_unrolled_from_so_many_elements_on_that_all_threads_have_work() -> None:
    def factor(count: int) -> int:
        return unroll_factor(H100, None, Computation.of(module(f"x = f32[{count}] parameter(0)\n ROOT n = f32[{count}] negate(x)").main()).root)

    assert [factor(132 * 2048 + more) for more in (-4, 0, 1, 2)] == [1, 4, 1, 2]


SPECS = [  # cores, units of a core, GHz, bytes a second, bytes of L2: XLA's target texts
    ("h100", 132, 128, 1.98, 3352320000000, 52428800), ("a100", 108, 64, 1.41, 2039040000000, 41943040),
    ("b200", 148, 128, 1.965, 7672320000000, 132644864)]


@pytest.mark.parametrize("name, cores, units, clock, bandwidth, l2", SPECS, ids=[s[0] for s in SPECS])
def test_a_device_reads_and_computes_at_its_pace(name: str, cores: int, units: int, clock: float, bandwidth: float, l2: int) -> None:
    model = CostModel(DEVICES[name])

    def read(size: int, times: int, coalesced: bool = True, blocks: int = 1 << 20) -> float:
        array = Computation.of(module(f"ROOT x = f32[{size // 4}] parameter(0)").main()).root
        return model._read(array, float(size * times), blocks, coalesced)

    def time(size: int, speed: float = 1.0) -> object:
        return pytest.approx(size / bandwidth * 1e9 / speed, abs=0.26)

    l1 = cores * 2048
    assert read(l2, 1) == time(l2)
    assert read(l2, 2) - read(l2, 1) == time(l2)
    assert read(l2 - 4, 2) - read(l2 - 4, 1) == time(l2 - 4, 2.5)
    assert read(l1, 1001) - read(l1, 1) == time(1000 * l1, 2.5)
    assert read(l1 - 4, 1001) - read(l1 - 4, 1) == time(1000 * (l1 - 4), 20)
    assert read(l2, 1, coalesced=False) == time(l2, 4 / 64)
    assert read(l2, 1, blocks=3) == pytest.approx(l2 / (3 * clock * 32), abs=0.26)
    assert model._compute(1e9, 1 << 20, 1024) == pytest.approx(1e9 / int(clock * 2 * cores * units), abs=0.26)


@pytest.mark.parametrize("capability, op, dtype, count", [
    ("sm_90", "tanh", "f32", 467), ("sm_80", "tanh", "f32", 504), ("sm_80", "exponential", "f32", 3), ("sm_100", "tanh", "f32", 137),
    ("sm_90", "compare", "f32", 3), ("sm_60", "divide", "f32", 35),
    ("sm_89", "tanh", "f32", 190), ("sm_120", "cbrt", "f32", 867)])
def test_cycles(capability: str, op: str, dtype: str, count: int) -> None:
    assert cycles(capability, get(op), dtype) == count


def test_work_is_the_cycles_of_all_elements() -> None:
    text = "x = f32[64,32] parameter(0)\n ROOT c = pred[64,32] compare(x, x), direction=GT"
    assert CostModel(H100).facts(Computation.of(module(text).main()).root).flops == 3 * prod((64, 32))


def scattered(slices: int, named: int = 1, index: str = "s32", said: str = ", indices_are_sorted=true") -> tuple[int, int]:
    """Blocks and threads of a scatter of so many updates into ``f32[1000,16]``: rows of it, or elements for two index components."""
    each = "1,16" if named == 1 else "1,1"
    text = f"""t = f32[1000,16] parameter(0)
        i = {index}[{slices},{named}] parameter(1)
        u = f32[{slices},{each}] parameter(2)
        ROOT s = f32[1000,16] scatter(t, i, u), update_window_dims={{1,2}}, inserted_window_dims={{}}, index_vector_dim=1,
            scatter_dims_to_operand_dims={{{'0' if named == 1 else '0,1'}}}, to_apply=add{said}"""
    return launch(DEVICES["a100"], None, Computation.of(module(text, ADD).main()).root, KernelEmitter.SCATTER)


def test_sorted_updates_are_added_up_by_warps() -> None:
    """Four warps a block on 108 cores: from 433 updates on, each warp takes its share of all rows that updates can be written to."""
    assert scattered(433) == (109, 128), "1000 rows: one update a warp"
    assert scattered(4000) == (1000 // 4, 128), "four updates a warp"
    assert scattered(4001) == (126, 128), "five would be 201 blocks; a multiple of the four indices that are loaded at once is eight"
    assert scattered(3001, index="s64") == (188, 128), "of long indices two are loaded at once, so that four updates are a multiple"
    assert scattered(2001, index="s64") == (126, 128) and scattered(2001) == (167, 128), "four updates, and three"
    assert scattered(20000, named=2) == (2500, 128), "16000 places: two updates a warp, however many are loaded at once"
    assert scattered(90000, named=2) == (3750, 128), "six, which stay six"


def test_other_updates_are_added_in_a_loop() -> None:
    """A thread adds as many neighbours of one update as fit, up to four, where all threads of the device have work."""
    assert scattered(432) == (54, 128), "fewer than 221184 elements: one a thread"
    assert scattered(13825) == (217, 128) and scattered(13825, said="") == (433, 128), "221200 elements: four a thread"
    assert scattered(13825, said=", indices_are_sorted=true, unique_indices=true") == (433, 128)
    assert scattered(1000, said="") == (125, 128)


def test_indices_need_no_dimension_of_their_own() -> None:
    text = """t = f32[1000] parameter(0)
        i = s32[4001] parameter(1)
        u = f32[4001] parameter(2)
        ROOT s = f32[1000] scatter(t, i, u), update_window_dims={}, inserted_window_dims={0}, index_vector_dim=1,
            scatter_dims_to_operand_dims={0}, to_apply=add, indices_are_sorted=true"""
    kernel = Computation.of(module(text, ADD).main()).root
    # Nothing is known of the dimension that the updates leave out: a warp on each of 432 places, twelve updates each.
    assert launch(DEVICES["a100"], None, kernel, KernelEmitter.SCATTER) == (84, 128)


def test_blackwell_loads_no_more_than_four_elements_of_what_is_reduced() -> None:
    def factor(instructions: str) -> int:
        computation = Computation.of(module(instructions, ADD.replace("f32", "f16")).main())
        producer = next(i for i in computation.instructions if i.name == "p")
        return unroll_factor(DEVICES["b200"], producer, computation.root)

    shape = f"f16[{148 * 2048}"
    assert factor(f"x = {shape}] parameter(0)\n p = {shape}] negate(x)\n ROOT n = {shape}] abs(p)") == 8
    assert factor(f"x = {shape},2] parameter(0)\n z = f16[] constant(0)\n p = {shape}] reduce(x, z), dimensions={{1}}, to_apply=add\n "
                  f"ROOT n = {shape}] abs(p)") == 4


WIDE = [  # what a kernel does with 8 million numbers of eight bits, and how many a thread loads at once on Blackwell
    ("x = s8[8388608] parameter(0)\n y = s8[8388608] parameter(1)\n ROOT r = s8[8388608] add(x, y)", 16),
    ("x = s8[] parameter(0)\n ROOT r = s8[8388608] broadcast(x), dimensions={}", 16),
    ("x = s8[8388608] parameter(0)\n y = s8[8388608] parameter(1)\n ROOT r = pred[8388608] compare(x, y), direction=LT", 16),
    ("x = s8[8192,1024] parameter(0)\n ROOT r = s8[8192,1024] reverse(x), dimensions={0}", 8),
    ("x = s16[8388608] parameter(0)\n ROOT r = s8[8388608] convert(x)", 8),
    ("x = s4[8388608] parameter(0)\n ROOT r = s8[8388608] convert(x)", 16),
    ("x = s8[64,128,1024] parameter(0)\n ROOT r = s8[128,64,1024] transpose(x), dimensions={1,0,2}", 8),
    ("x = s8[64,16384,8] parameter(0)\n ROOT r = s8[16384,64,8] transpose(x), dimensions={1,0,2}", 8),
    ("x = s8[1024,2048,4] parameter(0)\n ROOT r = s8[2048,1024,4] transpose(x), dimensions={1,0,2}", 4),
    ("x = s8[1024,8192] parameter(0)\n ROOT r = s8[1024,8192]{0,1} copy(x)", 4),
    ("x = s8[1024,8192] parameter(0)\n ROOT r = s8[8192,1024]{0,1} transpose(x), dimensions={1,0}", 8),
]


@pytest.mark.parametrize("instructions, factor", WIDE)
def test_blackwell_fills_a_load_of_128_bits_where_elements_stay_side_by_side(instructions: str, factor: int) -> None:
    kernel = Computation.of(module(instructions).main()).root
    assert unroll_factor(DEVICES["b200"], None, kernel) == factor
    assert unroll_factor(H100, None, kernel) == 4
