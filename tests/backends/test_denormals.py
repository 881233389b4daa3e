"""Denormal floats: kept, or zeros while the program runs, on every thread; the caller's own arithmetic stays as it was."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.graph import DTYPES, DType
from irscope.graph.dtypes import F32, PRED
from irscope.lower.build import KernelBuilder
from tests.backends.running import assert_same, elementwise, executable, program_of

TINY = np.array([1e-40, -1e-40, 1e-45, 1.0], np.float32)


def words(flush: bool) -> list[np.ndarray]:
    kernel = elementwise(lambda k, a: [k.binary("add", a, 0.0), k.unary("sqrt", a), k.unary("log", a), k.unary("floor", a), k.convert(a, PRED),
                                       k.unary("abs", a)], [TINY], [F32] * 4 + [PRED, F32], 4)
    program = program_of(kernel)
    program.flush_denormals = flush
    return executable(program)(TINY)


def test_they_are_kept() -> None:
    total, root, logarithm, floor, flag, size = words(False)
    assert (total == TINY).all() and root[0] > 0 and np.isnan(root[1]) and np.isfinite(logarithm[0])
    assert floor.tolist() == [0, -1, 0, 1] and flag.all() and (size == np.abs(TINY)).all()


def test_they_are_zeros() -> None:
    total, root, logarithm, floor, flag, size = words(True)
    assert total.tolist() == [0, 0, 0, 1] and root.tolist() == [0, 0, 0, 1] and (logarithm[:3] == -np.inf).all()
    assert floor.tolist() == [0, 0, 0, 1] and flag.tolist() == [False, False, False, True]
    assert (size == np.abs(TINY)).all()  # only the sign is touched
    assert np.float32(1e-40) * np.float32(0.5) > 0


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_float and d.bits < 16], ids=str)
def test_small_floats_do_not_pass_through_denormals(dtype: DType) -> None:
    codes = np.arange(1 << dtype.bits).astype(np.uint8).view(dtype.numpy())
    program = program_of(elementwise(lambda k, a: [k.convert(a, F32)], [codes], [F32], 16))
    program.flush_denormals = True
    assert_same(executable(program)(codes)[0], codes.astype(np.float32), codes)


@pytest.mark.parametrize("flush", [False, True])
def test_every_thread_does_the_same(flush: bool) -> None:
    k = KernelBuilder("half", 16)
    x, y = k.buffer("x", F32, (4096,), "in"), k.buffer("y", F32, (4096,), "out")
    with k.par(0, 4096, 16) as i:
        k.store(y, i, k.binary("mul", k.load(x, i, 16), 0.5))
    program = program_of(k.finish(flops=1e9))
    program.flush_denormals = flush
    run = executable(program, threads=3)
    xs = np.full(4096, 2e-40, np.float32)
    for _ in range(50):
        assert (run(xs)[0] == (0 if flush else np.float32(1e-40))).all()
