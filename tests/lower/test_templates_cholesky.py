"""Cholesky factors in vectors: either triangle, any size, matrices that are not positive definite."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.analysis.reference import evaluate, flatten
from irscope.api import load
from irscope.lower.interpret import interpret_program
from irscope.lower.program import Program
from tests.lower.running import compiled, entry


def factor(size: int, lower: bool, dtype: str = "f32") -> str:
    return entry(f"""
      a = {dtype}[2,{size},{size}] parameter(0)
      ROOT l = {dtype}[2,{size},{size}] cholesky(a), lower={str(lower).lower()}""")


def matrices(size: int, lower: bool, dtype: str = "f32") -> np.ndarray:
    """Positive definite ones; the triangle that must not be read holds NaN."""
    x = np.random.default_rng(0).standard_normal((2, size, size))
    found = (x @ x.swapaxes(1, 2) / size + np.eye(size)).astype({"f32": np.float32, "f64": np.float64}[dtype])
    found[:, *(np.triu_indices(size, 1) if lower else np.tril_indices(size, -1))] = np.nan
    return found


def check(text: str, a: np.ndarray, interpreted: bool = False) -> Program:
    (expected,) = flatten(evaluate(load(text).module().main(), [a]))
    program, executable = compiled(text)
    found = interpret_program(program, [a])[0].reshape(a.shape) if interpreted else executable(a)[0]
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    return program


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sizes(lower: bool, dtype: str) -> None:
    for size in (16, 17, 64, 101):
        program = check(factor(size, lower, dtype), matrices(size, lower, dtype))
        assert [k.schedule["template"] for k in program.kernels()] == ["cholesky"]
    check(factor(19, lower, dtype), matrices(19, lower, dtype), interpreted=True)


@pytest.mark.parametrize("place", [0, 7, 20, 39])
def test_a_matrix_that_is_not_positive_definite(place: int) -> None:
    """Its factor is NaN; that of the other matrix is not."""
    for value in (0.0, -3.0, np.nan):
        a = matrices(40, True)
        a[1, place, place] = value
        check(factor(40, True), a)


def test_what_is_left_to_single_elements() -> None:
    program = check(factor(9, True), matrices(9, True))
    assert [k.schedule["template"] for k in program.kernels()] == ["generic"]
    program, _ = compiled(factor(40, True), precision="exact")
    assert [k.schedule["template"] for k in program.kernels()] == ["generic"]
