"""Triangular systems in vectors: every side, triangle and transposition, any number of unknowns and right-hand sides."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.lower.interpret import interpret_program
from irscope.lower.values import tensor_of
from tests.lower.running import compiled, entry


def solve(size: int, columns: int, left: bool = True, lower: bool = True, unit: bool = False, transpose: str = "NO_TRANSPOSE",
          dtype: str = "f32") -> str:
    b = f"{dtype}[2,{size},{columns}]" if left else f"{dtype}[2,{columns},{size}]"
    flags = f"left_side={str(left).lower()}, lower={str(lower).lower()}, unit_diagonal={str(unit).lower()}, transpose_a={transpose}"
    return entry(f"""
      a = {dtype}[2,{size},{size}] parameter(0)
      b = {b} parameter(1)
      ROOT x = {b} triangular-solve(a, b), {flags}""")


def check(text: str, template: str = "triangular", interpreted: bool = False, precision: str = "default") -> None:
    """Compare with the reference; the triangle that must not be read holds NaN."""
    module = load(text).module()
    node = module.main().result()
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.standard_normal(t.dims()), t.dtype.numpy()) for t in map(tensor_of, node.operands))
    a = a / a.shape[-1] + 2 * np.eye(a.shape[-1], dtype=a.dtype)
    a[:, *(np.triu_indices(a.shape[-1], 1) if "lower=true" in text else np.tril_indices(a.shape[-1], -1))] = np.nan
    clean = np.nan_to_num(a)
    (expected,) = flatten(evaluate(module.main(), [clean, b]))
    program, executable = compiled(text, precision=precision)
    assert [k.schedule.get("template") for k in program.kernels()] == [template]
    found = interpret_program(program, [a, b])[0].reshape(expected.shape) if interpreted else executable(a, b)[0]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_every_form(left: bool, lower: bool, transpose: str) -> None:
    for unit in (False, True):
        check(solve(19, 37, left, lower, unit, transpose))
    check(solve(9, 5, left, lower, transpose=transpose), interpreted=True)


@pytest.mark.parametrize(("size", "columns"), [(8, 2), (64, 64), (130, 3), (33, 100)])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sizes(size: int, columns: int, dtype: str) -> None:
    check(solve(size, columns, dtype=dtype))


def test_what_is_left_to_single_elements() -> None:
    check(solve(20, 1), "generic")
    check(solve(7, 20), "generic")
    check(solve(20, 20), "generic", precision="exact")
