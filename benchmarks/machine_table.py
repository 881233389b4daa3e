"""A table for ``irscope lint --machine FILE.toml`` of the machine that this runs on: ``python benchmarks/machine_table.py > host.toml``.

Needs numpy alone, and half a minute. Products are those of its BLAS on one thread; additions count half of their rate, as one operation of
a lane where a product does two. On a machine with other work the rates come out too low.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable

for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402 (the variables are read when it is imported)

SECONDS = 1.0
CACHES = (256 * 1024, 8 * 1024 * 1024)
"""Bytes that a triad moves in a cache of the core, and in the shared one."""
MEMORY = 256 * 1024 * 1024


def seconds(call: Callable[[], object]) -> float:
    """The CPU time of a call that a tenth of the calls is faster than."""
    call()
    times: list[float] = []
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 5:
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return sorted(times)[len(times) // 10]


def bandwidth(size: int) -> float:
    """GB/s of an addition of two arrays into a third, of so many bytes together."""
    n = size // 12
    a, b, c = (np.full(n, float(i), "float32") for i in range(3))
    calls = max(1, 2_000_000 // n)

    def add() -> None:
        for _ in range(calls):
            np.add(a, b, out=c)

    return calls * 12 * n / seconds(add) / 1e9


def products(dtype: str) -> float:
    """GFLOP/s of products of 512 x 512."""
    a = np.random.default_rng(0).normal(size=(512, 512)).astype(dtype)
    c = np.empty_like(a)
    return float(2 * 512.0**3 / seconds(lambda: np.matmul(a, a, out=c)) / 1e9)


def main() -> None:
    f32, f64 = products("float32"), products("float64")
    memory = bandwidth(MEMORY)
    print('base = "cpu"\ntitle = "one core of this machine, by numpy"\nfast = 2.0\nslow = 2.0')
    print(f"read_gbs = {memory:.1f}\nwrite_gbs = {memory:.1f}\n"
          f"vector_gflops = {f32 / 0.88 / 2:.0f}\n")  # products reach 85 to 90 % of the peak
    for size in CACHES:
        print(f"[[caches]]\nbytes = {int(size * 1.5)}\ngbs = {bandwidth(size):.0f}\n")
    print(f"[matrix_gflops]\nf32 = {f32:.0f}\nf64 = {f64:.0f}\nbf16 = {f32:.0f}\nf16 = {f32:.0f}")


if __name__ == "__main__":
    main()
