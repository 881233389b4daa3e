"""The matrices of Winograd convolution F(m x m, 3 x 3), and linear combinations of values by their rows.

``output = A^T [(G w G^T) * (B^T d B)] A`` for tiles ``d`` of (m + 2) x (m + 2) pixels: m*m results by (m + 2)^2 multiplications
instead of 9 m*m. F(2) has only the weights 0, 1 and 1/2 and is as accurate as the direct sum; F(4) has weights up to 8 and loses about
three bits.
"""
from __future__ import annotations

from collections.abc import Sequence

from irscope.lazy import Array, np
from irscope.lower.build import KernelBuilder
from irscope.lower.tile import Expr

Matrix = tuple[tuple[float, ...], ...]

INPUT: dict[int, Matrix] = {
    2: ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    4: ((4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0), (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0), (0, 4, 0, -5, 0, 1)),
}
WEIGHT: dict[int, Matrix] = {
    2: ((1, 0, 0), (.5, .5, .5), (.5, -.5, .5), (0, 0, 1)),
    4: ((1 / 4, 0, 0), (-1 / 6, -1 / 6, -1 / 6), (-1 / 6, 1 / 6, -1 / 6), (1 / 24, 1 / 12, 1 / 6), (1 / 24, -1 / 12, 1 / 6), (0, 0, 1)),
}
OUTPUT: dict[int, Matrix] = {
    2: ((1, 1, 1, 0), (0, 1, -1, -1)),
    4: ((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)),
}
"""B^T, G and A^T, by m."""


def combination(k: KernelBuilder, weights: Sequence[float], values: Sequence[Expr]) -> Expr:
    """``sum of weights[i] * values[i]``, without multiplying by one."""
    terms = sorted(((w, v) for w, v in zip(weights, values) if w), key=lambda term: abs(term[0]) != 1 or term[0] == -1)
    total: Expr | None = None
    for weight, value in terms:
        if total is None:
            if weight == 1:
                total = value
            else:
                total = k.unary("neg", value) if weight == -1 else k.binary("mul", value, k.const(weight, value.dtype))
        elif abs(weight) == 1:
            total = k.binary("add" if weight == 1 else "sub", total, value)
        else:
            total = k.fma(value, k.const(weight, value.dtype), total)
    assert total is not None, "no row of a transform is empty"
    return total


def both_sides(k: KernelBuilder, matrix: Matrix, square: Sequence[Sequence[Expr]], rows: int, columns: int) -> list[list[Expr]]:
    """``matrix @ square @ matrix.T``, its first ``rows`` x ``columns``."""
    half = [[combination(k, matrix[i], [line[j] for line in square]) for j in range(len(square[0]))] for i in range(rows)]
    return [[combination(k, matrix[j], line) for j in range(columns)] for line in half]


def weights(w: Array, m: int) -> Array:
    """``G w G^T`` of windows [3, 3, inputs, outputs]: [(m + 2)^2, inputs, outputs], summed in double where that is cheap."""
    g = np.array(WEIGHT[m], np.float64)
    transform = np.einsum("ai,bj->abij", g, g).reshape((m + 2) ** 2, 9).astype(w.dtype)
    made: Array = transform @ np.ascontiguousarray(w).reshape(9, -1)
    return made.reshape((m + 2) ** 2, w.shape[2], w.shape[3])
