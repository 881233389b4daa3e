"""Loops, conditions and registers: machine code and the interpreter give the same for hand-written and for random kernels."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from irscope.graph.dtypes import C64, F32, PRED, S32, S64
from irscope.lower.build import KernelBuilder
from irscope.lower.tile import Kernel
from tests.backends.running import Array, compiled, interpreted


def same(kernel: Kernel, *inputs: Array) -> list[Array]:
    got, want = compiled(kernel, inputs), interpreted(kernel, inputs)
    for g, w in zip(got, want, strict=True):
        assert (g == w).all(), (g, w)
    return got


def test_a_register_is_carried_through_nested_loops() -> None:
    k = KernelBuilder("sum")
    x, y = k.buffer("x", S64, (3, 4), "in"), k.buffer("y", S64, (3,), "out")
    total = k.reg(S64, 0)
    with k.loop(0, 3) as i:
        row = k.reg(S64, 0)
        with k.loop(0, 4) as j:
            row.set(row.get() + k.load(x, i * 4 + j))
            total.set(total.get() + k.load(x, i * 4 + j))
        k.store(y, i, row.get() * 1000 + total.get())
    xs = np.arange(12)
    got, = same(k.finish(), xs)
    assert got.tolist() == [(6 * 1000 + 6), (22 * 1000 + 28), (38 * 1000 + 66)]


def test_get_is_a_snapshot() -> None:
    k = KernelBuilder("swap")
    x, y = k.buffer("x", S32, (2,), "in"), k.buffer("y", S32, (2,), "out")
    a, b = k.reg(S32, k.load(x, 0)), k.reg(S32, k.load(x, 1))
    with k.loop(0, 5):
        old = a.get()
        a.set(b.get())
        b.set(old)
    k.store(y, 0, a.get())
    k.store(y, 1, b.get())
    got, = same(k.finish(), np.array([3, 8], np.int32))
    assert got.tolist() == [8, 3]


def test_conditions_merge_registers() -> None:
    k = KernelBuilder("collatz")
    x, y = k.buffer("x", S64, (20,), "in"), k.buffer("y", S64, (20,), "out")
    with k.par(0, 20) as i:
        n, steps = k.reg(S64, k.load(x, i)), k.reg(S64, 0)
        with k.while_(lambda: k.compare("GT", n.get(), 1)):
            value = n.get()
            with k.when(k.compare("EQ", value % 2, 0)):
                n.set(value // 2)
            with k.otherwise():
                n.set(value * 3 + 1)
            steps.set(steps.get() + 1)
        k.store(y, i, steps.get())
    got, = same(k.finish(), np.arange(20))

    def length(n: int) -> int:
        return 0 if n <= 1 else 1 + length(n // 2 if n % 2 == 0 else 3 * n + 1)
    assert got.tolist() == [length(n) for n in range(20)]


@pytest.mark.parametrize("high", [0, 1, 7])
def test_bounds_from_memory(high: int) -> None:
    k = KernelBuilder("dynamic")
    n, y = k.buffer("n", S32, (2,), "in"), k.buffer("y", F32, (1,), "out")
    low, top = (k.convert(k.load(n, i), S64) for i in (0, 1))
    total, count = k.reg(F32, 0.5), k.reg(S32, 0)
    with k.loop(low, top, 3) as i:
        total.set(k.binary("add", total.get(), k.convert(i, F32)))
        with k.when(k.compare("GT", i, 3)):
            count.set(count.get() + 1)
    k.store(y, 0, k.binary("add", total.get(), k.convert(count.get(), F32)))
    got, = same(k.finish(), np.array([1, high], np.int32))
    rounds = range(1, high, 3)
    assert got[0] == 0.5 + sum(rounds) + sum(i > 3 for i in rounds)


def test_registers_of_vectors_complex_values_and_preds() -> None:
    k = KernelBuilder("kinds", 8)
    x, y, z = k.buffer("x", C64, (32,), "in"), k.buffer("y", C64, (8,), "out"), k.buffer("z", PRED, (8,), "out")
    total, seen = k.reg(C64, 0, 8), k.reg(PRED, False, 8)
    with k.loop(0, 32, 8) as i:
        value = k.load(x, i, 8)
        total.set(k.binary("add", total.get(), value))
        seen.set(k.binary("or", seen.get(), k.compare("GT", k.real(value), 1.0)))
    k.store(y, 0, total.get())
    k.store(z, 0, seen.get())
    xs = (np.random.default_rng(0).standard_normal(32) + 1j).astype(np.complex64)
    got, flags = same(k.finish(), xs)
    assert np.allclose(got, xs.reshape(4, 8).sum(0)) and (flags == (xs.real.reshape(4, 8) > 1).any(0)).all()


def test_a_loop_that_never_runs_leaves_registers_alone() -> None:
    k = KernelBuilder("empty")
    x, y = k.buffer("x", S64, (1,), "in"), k.buffer("y", S64, (1,), "out")
    r = k.reg(S64, 7)
    with k.loop(0, k.load(x, 0)) as i, k.loop(0, i) as j:
        r.set(j)
    k.store(y, 0, r.get())
    assert same(k.finish(), np.array([0]))[0][0] == 7


def test_nothing_moves_out_of_a_condition_that_could_fault() -> None:
    k = KernelBuilder("guard")
    x, n, y = k.buffer("x", F32, (4,), "in"), k.buffer("n", S64, (1,), "in"), k.buffer("y", F32, (3,), "out")
    at = k.load(n, 0)
    with k.loop(0, 3) as i:
        k.store(y, i, 0.0)
        with k.when(k.binary("and", k.compare("GE", at, 0), k.compare("LT", at, 4))):
            k.store(y, i, k.load(x, at))
    xs = np.arange(4, dtype=np.float32)
    assert same(k.finish(), xs, np.array([1 << 50]))[0].tolist() == [0, 0, 0]


def test_several_nests_in_one_kernel() -> None:
    k = KernelBuilder("phases")
    x, y, z = k.buffer("x", F32, (8,), "in"), k.buffer("y", F32, (8,), "out"), k.buffer("z", F32, (8,), "out")
    with k.par(0, 8) as i:
        k.store(y, i, k.binary("add", k.load(x, i), 1.0))
    k.store(y, 7, 100.0)
    with k.par(0, 8) as i:
        k.store(z, i, k.binary("mul", k.load(y, i), 2.0))
    xs = np.arange(8, dtype=np.float32)
    got, twice = same(k.finish(), xs)
    assert got.tolist() == [1, 2, 3, 4, 5, 6, 7, 100] and (twice == got * 2).all()


def test_a_rare_branch_inside_loops_and_conditions() -> None:
    """sin branches for large arguments: in front of a loop that does not need it again, inside one, and in an arm."""
    k = KernelBuilder("sines", 4)
    x, y = k.buffer("x", F32, (16,), "in"), k.buffer("y", F32, (16,), "out")
    with k.loop(0, 4) as i:
        fixed = k.unary("sin", k.splat(k.load(x, i), 4))
        total = k.reg(F32, 0.0, 4)
        with k.loop(0, 4) as j, k.when(k.compare("NE", i, j)):
            total.set(k.binary("add", total.get(), k.binary("mul", fixed, k.unary("cos", k.load(x, j * 4, 4)))))
        k.store(y, i * 4, total.get())
    xs = (np.linspace(-3, 3, 16) * 10.0 ** np.arange(16)).astype(np.float32)
    kernel = k.finish()
    got, want = compiled(kernel, [xs])[0], interpreted(kernel, [xs])[0]
    assert np.allclose(got, want, rtol=1e-5, atol=1e-6)


Step = tuple[str, int, int]
steps = st.recursive(
    st.tuples(st.sampled_from(["set", "store", "load"]), st.integers(0, 3), st.integers(0, 7)),
    lambda inner: st.tuples(st.sampled_from(["loop", "if", "else", "dynamic"]), st.integers(0, 3), st.lists(inner, max_size=4)), max_leaves=14)


def write(k: KernelBuilder, body: list[Any], variables: list[Any], registers: list[Any], memory: Any, source: Any) -> None:
    """Statements from a drawn tree: loops with constant and with loaded bounds, conditions, registers, memory read and written."""
    for kind, a, b in body:
        pick = variables[a % len(variables)]
        r = registers[a % len(registers)]
        if kind == "set":
            r.set(r.get() * 3 + pick + b)
        elif kind == "store":
            k.store(memory, (pick + b) % 8, r.get())
        elif kind == "load":
            r.set(r.get() + k.load(memory, (pick * b) % 8) - k.load(source, b))
        elif kind == "loop":
            with k.loop(0, a) as i:
                write(k, b, [*variables, i], registers, memory, source)
        elif kind == "dynamic":
            with k.loop(0, k.load(source, a) % 3) as i:
                write(k, b, [*variables, i], registers, memory, source)
        else:
            with k.when(k.compare("LT", r.get() % 5, a)):
                write(k, b, variables, registers, memory, source)
            if kind == "else":
                with k.otherwise():
                    r.set(r.get() - pick)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=5), st.integers(0, 1000))
def test_random_kernels(body: list[Any], seed: int) -> None:
    k = KernelBuilder("random")
    source, memory = k.buffer("x", S64, (8,), "in"), k.buffer("y", S64, (8,), "out")
    with k.loop(0, 8) as i:
        k.store(memory, i, k.load(source, i) + i)
    registers = [k.reg(S64, n) for n in range(3)]
    write(k, body, [k.index(2), k.load(source, 1)], registers, memory, source)
    for place, register in enumerate(registers):
        k.store(memory, place, k.load(memory, place) + register.get())
    same(k.finish(), np.random.default_rng(seed).integers(-50, 50, 8))
