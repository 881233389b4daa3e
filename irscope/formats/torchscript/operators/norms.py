"""Norms and distances."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.decompositions import svdvals
from irscope.formats.torchscript.operators.logic import truth
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.ops.faults import TypeFault


def vector_norm(t: Torch, x: Node, order: float, dims: list[int], keep: bool) -> Node:
    """The ``order``-norm along dimensions; that of half types in float32, where squares do not overflow."""
    if not isinstance(order, int | float):
        raise TypeFault("the order of a norm is a real number that the text states")
    x = t.floating(x)
    wide = widened(t, x)
    if wide is not x:
        return t.convert(vector_norm(t, wide, order, dims, keep), t.dtype(x))
    size = t.unary("abs", x)
    if (order < 0 or order == float("inf")) and 0 in [t.shape(x)[d] for d in dims]:
        raise TypeFault(f"the {order}-norm of no elements")
    if order == float("inf"):
        return t.max(size, dims, keep)
    if order == float("-inf"):
        return t.min(size, dims, keep)
    if order == 0:
        return t.sum(t.convert(truth(t, x), t.dtype(size)), dims, keep)
    if order == 1:
        return t.sum(size, dims, keep)
    if order == 2:
        return t.unary("sqrt", t.sum(t.mul(size, size), dims, keep))
    total = t.sum(t.binary("power", size, t.like(size, order)), dims, keep)
    return t.binary("power", total, t.like(total, 1 / order))


@operator("linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def linalg_vector_norm(t: Torch, x: Node, order: float, dim: Any, keep: bool, dtype: int | None) -> Node:
    return vector_norm(t, t.convert(x, t.dtype_number(dtype, t.dtype(x))), order, t.dims(x, dim), keep)


@operator("linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def linalg_norm(t: Torch, x: Node, order: float | None, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    """The norm of vectors, or of matrices over two dimensions."""
    x = t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    if order is None:
        return vector_norm(t, x, 2, t.dims(x, dim), keep)
    if (dim is not None and len(dim) == 1) or (dim is None and t.rank(x) == 1):
        return vector_norm(t, x, order, t.dims(x, dim), keep)
    return matrix_norm(t, x, order, dim or [-2, -1], keep, None)


@operator("linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)")
def linalg_norm_named(t: Torch, x: Node, order: str, dim: list[int] | None, keep: bool, dtype: int | None) -> Node:
    return matrix_norm(t, x, order, dim or [-2, -1], keep, dtype)


@operator("linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None)",
          "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? dtype=None)")
def matrix_norm(t: Torch, x: Node, order: object, dim: list[int], keep: bool, dtype: int | None) -> Node:
    """Frobenius; the largest or smallest sum of a column (1) or row (inf); the largest, smallest or sum (nuc) of singular values."""
    x = t.convert(x, t.dtype_number(dtype, t.dtype(x)))
    if len(dims := t.dims(x, dim)) != 2:
        raise TypeFault(f"it takes two dimensions, not {len(dims)}")
    rows, columns = dims
    if order == "fro":
        return vector_norm(t, x, 2, [rows, columns], keep)
    if order in (2, -2, "nuc"):
        return _of_singular_values(t, x, order, rows, columns, keep)
    if order not in (1, -1, float("inf"), float("-inf")):
        raise TypeFault(f"there is no matrix norm {order!r}: fro, nuc, 1, 2 and inf, and the negative ones")
    if 0 in t.shape(x):
        kind = t.dtype(t.unary("abs", x))
        found = t.full(tuple(1 if i in (rows, columns) else n for i, n in enumerate(t.shape(x))), 0, kind)
        return found if keep else t.reshape(found, tuple(n for i, n in enumerate(t.shape(x)) if i not in (rows, columns)))
    inner, outer = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = t.sum(t.unary("abs", x), [inner], True)
    found = t.max(sums, [outer], True) if order > 0 else t.min(sums, [outer], True)
    return found if keep else t.reshape(found, tuple(n for i, n in enumerate(t.shape(x)) if i not in (rows, columns)))


def _of_singular_values(t: Torch, x: Node, order: object, rows: int, columns: int, keep: bool) -> Node:
    lead = [d for d in range(t.rank(x)) if d not in (rows, columns)]
    values = svdvals(t, t.transpose(t.floating(x), [*lead, rows, columns]))
    d = [t.rank(values) - 1]
    if t.shape(values)[-1] == 0 and order != "nuc":
        raise TypeFault(f"the matrix norm {order} of a matrix without elements")
    found = t.sum(values, d) if order == "nuc" else t.max(values, d) if order == 2 else t.min(values, d)
    return t.reshape(found, tuple(1 if i in (rows, columns) else n for i, n in enumerate(t.shape(x)))) if keep else found


@operator("nuclear_norm(Tensor self, bool keepdim=False)", "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False)")
def nuclear_norm(t: Torch, x: Node, *, dim: Sequence[int] = (-2, -1), keepdim: bool) -> Node:
    return matrix_norm(t, x, "nuc", list(dim), keepdim, None)


@operator("norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False)", "norm.Scalar(Tensor self, Scalar p=2)",
          "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False)",
          "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype)")
def norm(t: Torch, x: Node, *, p: float | None = None, dim: Any = None, keepdim: bool = False, dtype: int | None = None) -> Node:
    return vector_norm(t, t.convert(x, t.dtype_number(dtype, t.dtype(x))), 2 if p is None else p, t.dims(x, dim), keepdim)


@operator("dist(Tensor self, Tensor other, Scalar p=2)")
def dist(t: Torch, x: Node, y: Node, p: float) -> Node:
    away = t.sub(*t.promote(x, y))
    return vector_norm(t, away, p, t.dims(away, None), False)
