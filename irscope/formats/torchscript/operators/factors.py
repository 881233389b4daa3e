"""Linear algebra as AOT graphs write it: with the factors that gradients take, and a status in place of an exception."""
from __future__ import annotations

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.decompositions import eigh, eigvals, eigvalsh, svd
from irscope.formats.torchscript.operators.solving import adjoint, determinant, lu_factor_ex, slogdet, solve
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node


@operator("_linalg_det(Tensor A)")
def linalg_det(t: Torch, a: Node) -> tuple[Node, Node, Node]:
    """The determinant, and the LU factors of the transpose, as torch computes them for matrices in row order."""
    factors, pivots, _ = lu_factor_ex(t, t.swap(a, -2, -1), True, False)
    return determinant(t, a), factors, pivots


@operator("_linalg_slogdet(Tensor A)")
def linalg_slogdet(t: Torch, a: Node) -> tuple[Node, Node, Node, Node]:
    """The sign and logarithm of the determinant, and the LU factors of the transpose."""
    sign, log = slogdet(t, a)
    factors, pivots, _ = lu_factor_ex(t, t.swap(a, -2, -1), True, False)
    return sign, log, factors, pivots


@operator("_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False)")
def linalg_solve_ex(t: Torch, a: Node, b: Node, left: bool, check: bool) -> tuple[Node, Node, Node, Node]:
    """The solution, the LU factors (for a left side: of the transpose), and the status."""
    factors, pivots, status = lu_factor_ex(t, t.swap(a, -2, -1) if left else a, True, False)
    return solve(t, a, b, left), factors, pivots, status


@operator("_linalg_eigh(Tensor A, str UPLO=\"L\", bool compute_v=True)")
def linalg_eigh(t: Torch, a: Node, uplo: str, vectors: bool) -> tuple[Node, Node]:
    if vectors:
        return eigh(t, a, uplo)
    return eigvalsh(t, a, uplo), t.full((0,), 0, t.dtype(a))


@operator("_linalg_eigvals(Tensor self)")
def linalg_eigvals(t: Torch, a: Node) -> Node:
    return eigvals(t, a)


@operator("_linalg_svd(Tensor A, bool full_matrices=False, bool compute_uv=True, *, str? driver=None)")
def linalg_svd(t: Torch, a: Node, full: bool, vectors: bool, driver: str | None) -> tuple[Node, Node, Node]:
    u, values, vh = svd(t, a, full)
    nothing = t.full((0,), 0, t.dtype(a))
    return (u, values, vh) if vectors else (nothing, values, nothing)


@operator("_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix)")
def check_errors(t: Torch, status: Node, name: str, single: bool) -> None:
    """Raises in torch where a factorization failed: its numbers are then NaN here."""


@operator("_cholesky_solve_helper(Tensor self, Tensor A, bool upper)")
def cholesky_solve_helper(t: Torch, b: Node, factor: Node, upper: bool) -> Node:
    product = t.matmul(adjoint(t, factor), factor) if upper else t.matmul(factor, adjoint(t, factor))
    return solve(t, product, b, True)

