"""The text of the tile IR, read as golden files."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irscope.graph.dtypes import BF16, F32, PRED, S32, S64
from irscope.lower.build import KernelBuilder
from irscope.lower.printer import print_kernel, print_program
from irscope.lower.program import Copy, Launch, Loop, Program, Slot, Switch
from irscope.lower.tile import Kernel

Golden = Callable[[str, str], None]


def gemm() -> Kernel:
    """A product with two rows and two vectors in registers."""
    k = KernelBuilder("gemm", 16)
    a, b = k.buffer("A", F32, (128, 64), "in"), k.buffer("B", F32, (3, 64, 32), "in")
    bias, c = k.buffer("bias", F32, (96,), "in"), k.buffer("C", F32, (128, 96), "out")
    with k.par(0, 3) as j, k.loop(0, 128, 2) as i:
        sums = [[k.reg(F32, 0.0, 16) for _ in range(2)] for _ in range(2)]
        with k.loop(0, 64) as n:
            k.prefetch(b, (j + 1) * 64 * 32 + n * 32)
            vectors = [k.load(b, j * 2048 + n * 32 + v * 16, 16) for v in range(2)]
            for r in range(2):
                for v in range(2):
                    sums[r][v].set(k.fma(k.load(a, (i + r) * 64 + n), vectors[v], sums[r][v].get()))
        for r in range(2):
            for v in range(2):
                value = k.binary("add", sums[r][v].get(), k.load(bias, j * 32 + v * 16, 16))
                k.store(c, (i + r) * 96 + j * 32 + v * 16, k.binary("max", value, 0.0), nontemporal=True)
    return k.finish()


def everything() -> Kernel:
    """One of each statement."""
    k = KernelBuilder("everything", 8)
    x, n, y = k.buffer("x", F32, (64,), "in"), k.buffer("n", S32, (64,), "in"), k.buffer("y", F32, (8, 8), "inout", elements=70)
    h = k.buffer("h", BF16, (64,), "out")
    weights = k.table(np.arange(4), F32)
    row = k.scratch(F32, (8,))
    k.comment("the head")
    mask = k.vector([True] * 5 + [False] * 3, PRED)
    k.store(y, 0, k.load(x, 3, 8, mask), mask)
    k.store(y, 8, k.gather(x, k.load(n, 0, 8)))
    total, count = k.reg(F32, float("-inf"), 8), k.reg(S64, 0)
    with k.while_(lambda: k.compare("LT", count.get(), k.convert(k.load(n, 0), S64))):
        value = k.load(x, count.get() % 56, 8)
        total.set(k.binary("max", total.get(), k.unary("exp", k.binary("sub", value, weights.load([2])))))
        count.set(count.get() + 1)
    with k.when(k.binary("and", k.compare("GT", count.get(), 3), k.compare("NE", k.load(n, 1), 0))):
        row.store([0], k.reduce("add", total.get()))
    with k.otherwise():
        row.store([0], k.const(1e-5, F32))
    k.store(h, count.get() // 3, k.convert(row.load([0]), BF16))
    shuffled = k.shuffle(total.get(), k.convert(k.lane(8), F32), [0, 8, 1, 9])
    twice = k.unary("tanh", shuffled)
    k.store(y, 60, k.binary("sub", k.binary("mul", twice, twice), k.binary("div", k.select(k.compare("LT", twice, 0.5), twice, 1.0), 3.0)))
    return k.finish()


def test_a_product(golden: Golden) -> None:
    golden("gemm.txt", print_kernel(gemm()))


def test_one_of_each(golden: Golden) -> None:
    golden("everything.txt", print_kernel(everything()))


def test_a_program(golden: Golden) -> None:
    k = KernelBuilder("less")
    x, y = k.buffer("x", S32, (1,), "in"), k.buffer("y", PRED, (1,), "out")
    k.store(y, 0, k.compare("LT", k.load(x, 0), 10))
    less = k.finish()
    n, out = Slot("n", S32, 1, "input", 0), Slot("out", S32, 1, "output", 0)
    flag, state = Slot("flag", PRED, 1, "temp", offset=0), Slot("state", S32, 4, "temp", offset=64, zeroed=True)
    table = Slot("table", S32, 4, "constant", data=np.arange(4, dtype=np.int32))
    steps = [Copy(n, state, 4, 0, 8), Loop([Launch(less, [(state, 2), (flag, 0)])], flag, [Copy(table, state, 16)]),
             Switch(n, [[Copy(table, out, 4)], [Copy(table, out, 4, 4)]])]
    golden("program.txt", print_program(Program("demo", [n], [out], [flag, state], [table], steps, 80)))


def test_long_expressions_are_cut() -> None:
    k = KernelBuilder("long")
    x, y = k.buffer("x", F32, (1,), "in"), k.buffer("y", F32, (1,), "out")
    value = k.load(x, 0)
    for n in range(3000):
        value = k.unary("exp" if n % 2 else "log", value)
    k.store(y, 0, value)
    text = print_kernel(k.finish())
    assert max(map(len, text.splitlines())) < 100 and text.count("exp") == 1500
