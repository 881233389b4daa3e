"""Sums of many terms keep their digits: blocks in the accumulator's own type, totals in f64. Held against sums in f64."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.backends.model import compile_module
from irscope.lower.options import Options
from tests.lower.whole import ADD, entry, module_of, templates

Array = np.ndarray[Any, Any]
CONSTANT, UNIFORM = 1e-6, 1e-7
"""Largest relative error of a sum of equal terms (whose roundings all go one way) and of one of uniformly drawn terms."""


def run(text: str, *arrays: Array, precision: str = "default") -> tuple[list[Array], list[str]]:
    """The outputs of a text, and the templates of its kernels."""
    model = compile_module(module_of(text), {}, Options(precision=precision), use_cache=False)
    return model(*arrays), templates(model)


def terms(shape: tuple[int, ...], kind: str) -> Array:
    return np.full(shape, 0.1, np.float32) if kind == "constant" else np.random.default_rng(0).random(shape, dtype=np.float32)


def error(got: Array, expected: Array) -> float:
    """The largest relative error."""
    return float(np.max(np.abs(got.astype(np.float64) - expected) / np.abs(expected)))


def reduce_text(shape: tuple[int, ...], dims: tuple[int, ...], before: str = "") -> str:
    kept = ",".join(str(n) for d, n in enumerate(shape) if d not in dims)
    sizes, reduced = ",".join(map(str, shape)), ",".join(map(str, dims))
    return entry(f"""
        x = f32[{sizes}] parameter(0)
        z = f32[] constant(0)
        {before}
        ROOT r = f32[{kept}] reduce({"y" if before else "x"}, z), dimensions={{{reduced}}}, to_apply=sum
    """, ADD)


@pytest.mark.parametrize("precision", ["default", "exact"])
@pytest.mark.parametrize("kind", ["constant", "uniform"])
@pytest.mark.parametrize(("shape", "dims", "template"), [
    ((1 << 20,), (0,), "rows"),
    ((3, 200_003), (1,), "rows"),
    ((5, 700, 61), (1, 2), "rows"),
    ((64, 5000, 3), (0, 1), "reduction"),
    ((100_003, 19), (0,), "reduction"),
    ((100, 7, 1000), (0, 2), "reduction"),
    ((6, 9000, 20), (1,), "reduction"),
])
def test_reduce(shape: tuple[int, ...], dims: tuple[int, ...], template: str, kind: str, precision: str) -> None:
    x = terms(shape, kind)
    (got,), used = run(reduce_text(shape, dims), x, precision=precision)
    assert template in used
    assert error(got, x.astype(np.float64).sum(dims)) <= (CONSTANT if kind == "constant" else UNIFORM)


@pytest.mark.parametrize("kind", ["constant", "uniform"])
def test_reduce_element_by_element(kind: str) -> None:
    """A window too large for unrolling is a scalar loop."""
    x = terms((300_000,), kind)
    (got,), _ = run(entry("""
        x = f32[300000] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[1] reduce-window(x, z), window={size=300000}, to_apply=sum
    """, ADD), x)
    assert error(got, x.astype(np.float64).sum()) <= (CONSTANT if kind == "constant" else UNIFORM)


@pytest.mark.parametrize("kind", ["constant", "uniform"])
def test_cumulative_sum(kind: str) -> None:
    x = terms((200_000,), kind)
    (got,), _ = run(entry("""
        x = f32[200000] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[200000] reduce-window(x, z), window={size=200000 pad=199999_0}, to_apply=sum
    """, ADD), x)
    assert error(got, np.cumsum(x.astype(np.float64))) <= UNIFORM


@pytest.mark.parametrize(("dtype", "round_off"), [("f16", 2.0 ** -11), ("bf16", 2.0 ** -8)])
def test_narrow_floats_round_once(dtype: str, round_off: float) -> None:
    x = (terms((2, 60_000), "uniform") * 0.5).astype(np.float32)
    (got,), _ = run(entry(f"""
        x = f32[2,60000] parameter(0)
        n = {dtype}[2,60000] convert(x)
        z = {dtype}[] constant(0)
        s = {dtype}[2] reduce(n, z), dimensions={{1}}, to_apply=sum
        ROOT r = f32[2] convert(s)
    """, ADD.replace("f32", dtype)), x)
    assert error(got, x.astype(np.float64).sum(1)) <= 1.5 * round_off


def test_complex_sums() -> None:
    x = terms((2, 100_000), "uniform")
    (got,), _ = run(entry("""
        x = f32[2,100000] parameter(0)
        sa = f32[1,100000] slice(x), slice={[0:1],[0:100000]}
        sb = f32[1,100000] slice(x), slice={[1:2],[0:100000]}
        a = f32[100000] reshape(sa)
        b = f32[100000] reshape(sb)
        c = c64[100000] complex(a, b)
        z = c64[] constant((0, 0))
        ROOT r = c64[] reduce(c, z), dimensions={0}, to_apply=sum
    """, ADD.replace("f32", "c64")), x)
    total = complex(*x.astype(np.float64).sum(1))
    assert abs(complex(got) - total) <= UNIFORM * abs(total)


def dot_text(left: str, right: str, out: str, numbers: str) -> str:
    return entry(f"""
        x = f32[{left}] parameter(0)
        y = f32[{right}] parameter(1)
        ROOT r = f32[{out}] dot(x, y), {numbers}
    """)


@pytest.mark.parametrize(("text", "left", "right", "formula"), [
    (dot_text("600000", "600000", "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"), (600_000,), (600_000,), "k,k->"),
    (dot_text("3,70001", "70001,20", "3,20", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"), (3, 70_001), (70_001, 20), "mk,kn->mn"),
    (dot_text("70001,3", "20,70001", "3,20", "lhs_contracting_dims={0}, rhs_contracting_dims={1}"), (70_001, 3), (20, 70_001), "km,nk->mn"),
    (dot_text("40001,2,17", "40001,3,17", "17,2,3", "lhs_batch_dims={2}, rhs_batch_dims={2}, lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
     (40_001, 2, 17), (40_001, 3, 17), "kmb,knb->bmn"),
], ids=["vectors", "rows by columns", "transposed", "batches in lanes"])
def test_long_products(text: str, left: tuple[int, ...], right: tuple[int, ...], formula: str) -> None:
    """Blocks of 2,048 products: drawn terms lose 1e-6 at most, equal ones, whose roundings all go one way, 3e-5."""
    for kind, bound in (("uniform", 1e-6), ("constant", 3e-5)):
        x, y = terms(left, kind), terms(right, kind)
        (got,), _ = run(text, x, y)
        assert error(got, np.einsum(formula, x.astype(np.float64), y.astype(np.float64))) <= bound
