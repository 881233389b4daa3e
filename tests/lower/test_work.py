"""Operations of kernels and of nodes are counted as they run: loops, vectors, what moves out of loops, what is computed once."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from irscope.expand import expand
from irscope.graph.dtypes import F32, S32
from irscope.lower.build import KernelBuilder
from irscope.lower.kernels import flops_of_node
from irscope.lower.work import has_open_loops, node_operations, operations
from tests.lower.whole import ADD, MAX, entry, module_of


def counted(write: Callable[[KernelBuilder], None]) -> float:
    """The operations of a kernel that a function writes."""
    k = KernelBuilder("k")
    write(k)
    return operations(k.finish())


def test_loops_and_lanes_multiply() -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.buffer("x", F32, (64, 128), "in"), k.buffer("y", F32, (64, 128), "out")
        with k.par(0, 64) as i, k.loop(0, 128, 16) as j:
            v = k.load(x, i * 128 + j, 16)
            k.store(y, i * 128 + j, k.binary("mul", v, v))
    assert counted(write) == 64 * 128 * 2  # a product and a store


def test_what_a_loop_does_not_change_counts_outside_of_it() -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.buffer("x", F32, (64,), "in"), k.buffer("y", F32, (64, 128), "out")
        with k.par(0, 64) as i:
            v = k.load(x, i)
            with k.loop(0, 128) as j:
                k.store(y, i * 128 + j, k.unary("exp", v))
    assert counted(write) == 64 + 64 * 128


def test_a_sum_inside_a_loop_counts_as_often_as_it_runs() -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.buffer("x", F32, (64,), "in"), k.buffer("y", F32, (64,), "out")
        with k.par(0, 64) as i:
            total = k.reg(F32, 0)
            with k.loop(0, 64) as j:
                total.set(k.fma(k.load(x, j), k.load(x, j), total.get()))
            k.store(y, i, total.get())
    assert counted(write) == 64 * (64 * 2 + 1)


def test_loops_whose_bounds_change_count_by_the_middle_of_the_loop_around_them() -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.buffer("x", F32, (101,), "in"), k.buffer("y", F32, (101,), "out")
        with k.par(0, 101) as i:
            total = k.reg(F32, 0)
            with k.loop(0, i) as j:
                total.set(k.binary("add", k.load(x, j), total.get()))
            k.store(y, i, total.get())
    assert counted(write) == 101 * 50 + 101


def test_a_block_at_the_end_of_an_array_counts_no_more_than_the_others() -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.buffer("x", F32, (1000,), "in"), k.buffer("y", F32, (1000,), "out")
        with k.par(0, 1000, 100) as b, k.loop(b, k.binary("min", b + 100, k.index(1000))) as i:
            k.store(y, i, k.binary("add", k.load(x, i), k.load(x, i)))
    assert counted(write) == 2000


def test_addresses_and_masks_are_free() -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.buffer("x", F32, (64,), "in"), k.buffer("y", F32, (64,), "out")
        with k.par(0, 64) as i, k.when(k.compare("LT", i * 7 % 64, k.index(32))):
            k.store(y, i, k.load(x, i * 7 % 64))
    assert counted(write) == 64


def test_a_loop_that_depends_on_data_is_open() -> None:
    k = KernelBuilder("k")
    x, y = k.buffer("x", F32, (1,), "in"), k.buffer("y", F32, (1,), "out")
    left = k.reg(F32, k.load(x, 0))
    with k.while_(lambda: k.compare("GT", left.get(), k.const(0, F32))):
        left.set(k.binary("sub", left.get(), k.const(1, F32)))
    k.store(y, 0, left.get())
    assert has_open_loops(k.finish())


@pytest.mark.parametrize(("text", "expected"), [
    ("ROOT r = f32[6,40] add(x, x)", 240),
    ("ROOT r = c64[6,40] complex(x, x)", 0),
    ("ROOT r = f32[40,6] transpose(x), dimensions={1,0}", 0),
    ("z = f32[] constant(0)\n ROOT r = f32[6] reduce(x, z), dimensions={1}, to_apply=sum", 240),
    ("ROOT r = f32[6,6] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}", 2 * 6 * 6 * 40),
    ("z = f32[] constant(0)\n ROOT r = f32[6,39] reduce-window(x, z), window={size=1x2}, to_apply=sum", 6 * 39 * 2),
])
def test_a_node_counts_what_computing_it_once_takes(text: str, expected: float) -> None:
    module = expand(module_of(entry(f"x = f32[6,40] parameter(0)\n {text}", ADD + MAX)))
    assert node_operations(module.main().result()) == expected


def test_the_border_of_an_image_counts() -> None:
    module = expand(module_of(entry("""
        x = f32[1,1,1,8] parameter(0)
        w = f32[3,3,8,16] parameter(1)
        ROOT c = f32[1,1,1,16] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f""")))
    convolution = module.main().result()
    assert node_operations(convolution) == 2 * 9 * 8 * 16 and flops_of_node(convolution) == 2 * 8 * 16


def test_a_body_that_lowering_does_not_know_counts_as_one_operation() -> None:
    graph = module_of(entry("""
      x = f32[6,40] parameter(0)
      z = f32[] constant(0)
      ROOT r = f32[6] reduce(x, z), dimensions={1}, to_apply=foreign""", """foreign { a = f32[] parameter(0)
        b = f32[] parameter(1)
        ROOT r = f32[] custom-call(a, b), custom_call_target="mine" }
      """)).main()
    assert node_operations(graph.result()) == 6 * 40


def test_integers_of_the_data_count_and_addresses_do_not() -> None:
    def write(k: KernelBuilder) -> None:
        x, y = k.buffer("x", S32, (64,), "in"), k.buffer("y", S32, (64,), "out")
        with k.loop(0, 64) as i:
            k.store(y, i, k.binary("add", k.load(x, i), k.convert(i * 3 + 1, S32)))
    assert counted(write) == 64 * 2  # a sum and a store

    def double(k: KernelBuilder) -> None:
        y = k.buffer("y", S32, (64,), "out")
        total = k.reg(S32, k.variable("n", S32))
        with k.loop(0, 64) as i:
            k.store(y, i, k.binary("add", total.now, total.now))
    assert counted(double) == 64 * 2
