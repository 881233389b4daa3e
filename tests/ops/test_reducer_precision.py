"""Reducers written in another float precision than the operands or the init value: XLA allows it, and so do all engines here."""
from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest

import irscope
from irscope.api import RunOptions

KINDS = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}
BODIES = """sub { a = T[] parameter(0)
 b = T[] parameter(1)
 ROOT r = T[] subtract(a, b) }
ge { a = T[] parameter(0)
 b = T[] parameter(1)
 ROOT r = pred[] compare(a, b), direction=GE }
"""
X = np.array([3, 1, 4, 1.5, 9, 2], np.float32)


def run(text: str, body: str, **arrays: np.ndarray) -> np.ndarray:
    """The only result of compiled code, which agrees with the reference."""
    result = irscope.api.run(BODIES.replace("T[]", f"{body}[]") + text, RunOptions(check=True, no_cache=True, threads=1), inputs=arrays)
    assert result.ok, result.comparisons
    return result.outputs[0]


@pytest.mark.parametrize(("operand", "init", "body"), list(product(KINDS, repeat=3)))
def test_reductions(operand: str, init: str, body: str) -> None:
    head = f"ENTRY m {{ x = {operand}[6] parameter(0)\n z = {init}[] constant(20)\n ROOT p = "
    x = X.astype(KINDS[operand])
    assert run(f"{head}{body}[] reduce(x, z), dimensions={{0}}, to_apply=sub }}", body, x=x) == -0.5
    found = run(f"{head}{init}[3] reduce-window(x, z), window={{size=2 stride=2}}, to_apply=sub }}", body, x=x)
    assert found.tolist() == [16, 14.5, 9]
    found = run(f"{head}{init}[6] reduce-window(x, z), window={{size=6 pad=5_0}}, to_apply=sub }}", body, x=x)
    assert found.tolist() == [17, 16, 12, 10.5, 1.5, -0.5]


@pytest.mark.parametrize(("operand", "source", "init", "body"), list(product(KINDS, repeat=4)))
def test_select_and_scatter(operand: str, source: str, init: str, body: str) -> None:
    found = run(f"ENTRY m {{ x = {operand}[6] parameter(0)\n s = {source}[3] parameter(1)\n z = {init}[] constant(7)\n "
                f"ROOT p = {operand}[6] select-and-scatter(x, s, z), window={{size=2 stride=2}}, select=ge, scatter=sub }}", body,
                x=X.astype(KINDS[operand]), s=np.array([1, 2, 3]).astype(KINDS[source]))
    assert found.dtype == KINDS[operand] and found.tolist() == [6, 7, 5, 7, 4, 7]


@pytest.mark.parametrize(("operand", "update", "body"), list(product(KINDS, repeat=3)))
def test_scatter(operand: str, update: str, body: str) -> None:
    found = run(f"ENTRY m {{ x = {operand}[6] parameter(0)\n i = s32[4] constant({{1, 1, 7, 3}})\n u = {update}[4] parameter(1)\n "
                f"ROOT s = {operand}[6] scatter(x, i, u), update_window_dims={{}}, inserted_window_dims={{0}}, "
                "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sub }", body,
                x=X.astype(KINDS[operand]), u=np.array([1, 2, 3, 4]).astype(KINDS[update]))
    assert found.tolist() == [3, -2, 4, -2.5, 9, 2]
