"""Functions of complex numbers as machine code against numpy's, over the plane and near zero."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import irscope

Array = np.ndarray[Any, Any]

UNARY: dict[str, Callable[[Array], Array]] = {
    "exponential": np.exp, "exponential-minus-one": np.expm1, "log": np.log, "log-plus-one": np.log1p, "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z), "cbrt": lambda z: z ** (1 / 3), "tanh": np.tanh, "tan": np.tan, "sine": np.sin, "cosine": np.cos,
    "logistic": lambda z: 1 / (1 + np.exp(-z)), "sign": lambda z: z / np.abs(z), "negate": np.negative,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "power": np.power,
    # The principal value, as the documentation of XLA defines it.
    "atan2": lambda y, x: -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y)),
}
LINES = [*(f"  r{i} = c128[80] {op}(x)" for i, op in enumerate(UNARY)), *(f"  r{i} = c128[80] {op}(x, y)" for i, op in enumerate(BINARY, len(UNARY))),
         f"  r{len(UNARY) + len(BINARY)} = f64[80] abs(x)"]
COUNT = len(LINES)
TEXT = "ENTRY e {\n  x = c128[80] parameter(0)\n  y = c128[80] parameter(1)\n" + "\n".join(LINES) + \
    f"\n  ROOT t = ({', '.join(['c128[80]'] * (COUNT - 1))}, f64[80]) tuple({', '.join(f'r{i}' for i in range(COUNT))})\n}}\n"


def test_functions_of_complex_numbers() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(80) + 1j * rng.standard_normal(80) for _ in range(2))
    x[40:60] *= 1e-3
    got = irscope.compile(TEXT, threads=1)(x, y)
    wanted = [*(f(x) for f in UNARY.values()), *(f(x, y) for f in BINARY.values()), np.abs(x)]
    for name, found, want in zip([*UNARY, *BINARY, "abs"], got, wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-11, atol=1e-13, err_msg=name)
