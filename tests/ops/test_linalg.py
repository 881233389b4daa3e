"""Cholesky factors, triangular systems, and what LAPACK is called for: the products give back what was taken apart."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irscope.graph import Builder, Graph, Node, TensorType, TupleType, tensor
from irscope.ops import TypeFault, get
from tests.ops.running import check, compiled_node, read, reference_of, typed
from tests.ops.test_contraction import spell

NUMPY = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}
TOLERANCE = {"f32": 2e-5, "c64": 2e-5, "f64": 1e-13, "c128": 1e-13}


def noise(shape: Any, dtype: str, seed: int = 0) -> Any:
    """Normal numbers."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if dtype.startswith("c") else x).astype(NUMPY[dtype])


def adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    return np.swapaxes(x, -1, -2).conj()


def close(x: Any, y: Any, dtype: str) -> None:
    """Equal as far as the element type can tell."""
    assert np.abs(x - y).max(initial=0) <= TOLERANCE[dtype] * max(1.0, np.abs(y).max(initial=0))


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 3, 4, 4)])
def test_cholesky(dtype: str, lower: bool, shape: tuple[int, ...]) -> None:
    a = noise(shape, dtype)
    a = a @ adjoint(a) + np.eye(shape[-1], dtype=a.dtype)
    # The other triangle is not read.
    given = np.tril(a) + np.triu(np.full_like(a, 77), 1) if lower else np.triu(a) + np.tril(np.full_like(a, 77), -1)
    found, = check(f"ENTRY e {{ a = {dtype}[{spell(shape)}] parameter(0)\n ROOT r = {dtype}[{spell(shape)}] cholesky(a), lower={str(lower).lower()} }}",
                   given, tolerance=TOLERANCE[dtype])
    close(found @ adjoint(found) if lower else adjoint(found) @ found, a, dtype)
    assert not (np.triu(found, 1) if lower else np.tril(found, -1)).any()


def test_a_matrix_without_a_factor_gives_nan() -> None:
    a = np.stack([np.eye(3), np.diag([1, -1, 1]), np.diag([1, 1, np.nan])]).astype(np.float32)
    found, = check("ENTRY e { a = f32[3,3,3] parameter(0)\n ROOT r = f32[3,3,3] cholesky(a), lower=true }", a)
    assert np.array_equal(found[0], np.eye(3)) and np.isnan(found[1:]).all()


@pytest.mark.parametrize("dtype", ["f32", "c128"])
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve(dtype: str, left: bool, lower: bool, unit: bool, transpose: str) -> None:
    a = noise((2, 4, 4), dtype) + 3 * np.eye(4, dtype=NUMPY[dtype])
    b = noise((2, 4, 3) if left else (2, 3, 4), dtype, 1)
    flags = ", ".join(f"{name}={str(value).lower()}" for name, value in (("left_side", left), ("lower", lower), ("unit_diagonal", unit)))
    found, = check(f"ENTRY e {{ a = {dtype}[2,4,4] parameter(0)\n b = {dtype}[{spell(b.shape)}] parameter(1)\n "
                   f"ROOT r = {dtype}[{spell(b.shape)}] triangular-solve(a, b), {flags}, transpose_a={transpose} }}", a, b, tolerance=TOLERANCE[dtype])
    read_part = np.tril(a) if lower else np.triu(a)
    if unit:
        read_part = read_part - read_part * np.eye(4) + np.eye(4)
    op = {"NO_TRANSPOSE": read_part, "TRANSPOSE": np.swapaxes(read_part, -1, -2), "ADJOINT": adjoint(read_part)}[transpose]
    close(op @ found if left else found @ op, b, dtype)


@pytest.mark.parametrize(("text", "words"), [
    ("ENTRY e { a = f32[3,4] parameter(0)\n ROOT r = f32[3,4] cholesky(a), lower=true }", "square"),
    ("ENTRY e { a = s32[3,3] parameter(0)\n ROOT r = s32[3,3] cholesky(a), lower=true }", "floating"),
    ("ENTRY e { a = f32[3,3] parameter(0)\n b = f32[4,3] parameter(1)\n ROOT r = f32[4,3] triangular-solve(a, b), left_side=true, lower=true }", "rows"),
    ("ENTRY e { a = f32[3,3] parameter(0)\n b = f64[3,3] parameter(1)\n ROOT r = f64[3,3] triangular-solve(a, b), left_side=true, lower=true }", "f64"),
])
def test_what_does_not_fit_is_said(text: str, words: str) -> None:
    with pytest.raises(TypeFault) as fault:
        typed(read(text))
    assert words in fault.value.message


# ---------------------------------------------------------------- factorizations of libraries

def library(name: str, operands: list[TensorType], results: list[TensorType], attrs: dict[str, Any]) -> Node:
    """One operator of the library dialect over parameters."""
    builder = Builder(Graph("g"))
    params = [builder.param(get("parameter"), t, f"p{i}") for i, t in enumerate(operands)]
    return builder.add(get(name, "library"), params, attrs, results[0] if len(results) == 1 else TupleType(tuple(results)))


def both(node: Node, *arrays: Any, compare: bool = True) -> list[Any]:
    """Results by machine code, held against the reference where those are the only right ones."""
    made = compiled_node(node, *arrays, interpret=arrays[0].size < 13)
    want = reference_of(node, *arrays)
    for got, w in zip(made, want, strict=True):
        assert got.shape == w.shape and got.dtype == w.dtype
        if compare and got.size:
            tolerance = 1e-12 if got.dtype in (np.float64, np.complex128) else 5e-5
            assert np.abs(got - w).max() <= tolerance * max(1.0, np.abs(w).max())
    return made


def part(dtype: str) -> str:
    """The element type of absolute values."""
    return {"c64": "f32", "c128": "f64"}.get(dtype, dtype)


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 5)])
def test_lu(dtype: str, shape: tuple[int, ...]) -> None:
    a = noise(shape, dtype)
    *batch, m, n = shape
    lu, pivots, info = both(library("lu", [tensor(dtype, *shape)], [tensor(dtype, *shape), tensor("s32", *batch, min(m, n)), tensor("s32", *batch)], {}), a)
    k = min(m, n)
    lower, upper = np.tril(lu[..., :k], -1) + np.eye(m, k, dtype=a.dtype), np.triu(lu[..., :k, :])
    product = lower @ upper
    for place in np.ndindex(*batch):
        rows = a[place].copy()
        for i, p in enumerate(pivots[place]):
            rows[[i, p - 1]] = rows[[p - 1, i]]
        close(product[place], rows, dtype)
    assert not info.any() and np.abs(lower).max() < 1.5


def test_lu_says_where_it_found_no_pivot() -> None:
    a = np.array([[1, 2, 3], [2, 4, 6], [1, 1, 1]], np.float64)
    _, _, info = both(library("lu", [tensor("f64", 3, 3)], [tensor("f64", 3, 3), tensor("s32", 3), tensor("s32")], {}), a)
    assert info == 3


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("shape", [(4, 4), (6, 3), (3, 6), (2, 5, 4), (1, 1)])
def test_qr(dtype: str, shape: tuple[int, ...]) -> None:
    a = noise(shape, dtype)
    *batch, m, n = shape
    k = min(m, n)
    packed, tau = both(library("qr", [tensor(dtype, *shape)], [tensor(dtype, *shape), tensor(dtype, *batch, k)], {}), a)
    thin = tensor(dtype, *batch, m, k)
    q, = both(library("householder-product", [thin, tensor(dtype, *batch, k)], [thin], {}), packed[..., :k].copy(), tau)
    close(q @ np.triu(packed[..., :k, :]), a, dtype)
    close(adjoint(q) @ q, np.broadcast_to(np.eye(k), (*batch, k, k)), dtype)


def test_qr_of_a_triangle_reflects_nothing() -> None:
    a = np.triu(noise((3, 3), "f64"))
    packed, tau = both(library("qr", [tensor("f64", 3, 3)], [tensor("f64", 3, 3), tensor("f64", 3)], {}), a)
    assert np.array_equal(packed, a) and not tau.any()


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("shape", [(1, 1), (6, 6), (2, 5, 5)])
@pytest.mark.parametrize("lower", [True, False])
def test_eigh(dtype: str, shape: tuple[int, ...], lower: bool) -> None:
    a = noise(shape, dtype)
    a = a + adjoint(a)
    given = np.tril(a) if lower else np.triu(a)
    *batch, n = shape[:-1]
    node = library("eigh", [tensor(dtype, *shape)], [tensor(dtype, *shape), tensor(part(dtype), *batch, n), tensor("s32", *batch)], {"lower": lower})
    vectors, values, info = both(node, given)
    close(a @ vectors, vectors * values[..., None, :], dtype)
    close(adjoint(vectors) @ vectors, np.broadcast_to(np.eye(n), shape), dtype)
    close(values, np.linalg.eigvalsh(a.astype(np.complex128)), dtype)
    assert not info.any()


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize(("shape", "full"), [((4, 4), True), ((6, 3), True), ((6, 3), False), ((3, 6), True), ((3, 6), False), ((2, 5, 4), True), ((1, 3), False)])
def test_svd(dtype: str, shape: tuple[int, ...], full: bool) -> None:
    a = noise(shape, dtype)
    *batch, m, n = shape
    k = min(m, n)
    types = [tensor(dtype, *batch, m, m if full else k), tensor(part(dtype), *batch, k), tensor(dtype, *batch, n if full else k, n), tensor("s32", *batch)]
    u, s, vt, _ = both(library("svd", [tensor(dtype, *shape)], types, {"full": full}), a)
    close((u[..., :k] * s[..., None, :]) @ vt[..., :k, :], a, dtype)
    for square in (adjoint(u) @ u, vt @ adjoint(vt)):
        close(square, np.broadcast_to(np.eye(square.shape[-1]), square.shape), dtype)
    close(s, np.linalg.svd(a.astype(np.complex128), compute_uv=False), dtype)


@pytest.mark.parametrize("a", [np.array([[0, 2.0], [2, 0]]), np.array([[-1.0, 0], [0, -3]]), np.array([[1.0, 2, 3], [2, 4, 6]]), np.full((3, 3), -1.0)])
def test_the_largest_component_of_a_vector_is_positive(a: Any) -> None:
    """Of the vectors on the shorter side, and of eigenvectors: the first of those that are as large."""
    m, n = a.shape
    k = min(m, n)
    u, _, vt, _ = both(library("svd", [tensor("f64", m, n)], [tensor("f64", m, k), tensor("f64", k), tensor("f64", k, n), tensor("s32")], {"full": False}), a,
                       compare=np.unique(np.linalg.svd(a, compute_uv=False).round(6)).size == k)
    short = [vt.T, u][m < n]
    vectors = [short]
    if m == n:
        vectors += [both(library("eigh", [tensor("f64", n, n)], [tensor("f64", n, n), tensor("f64", n), tensor("s32")], {"lower": True}), a, compare=False)[0]]
    for columns in vectors:
        first = np.argmax(np.abs(columns) >= np.abs(columns).max(0) * (1 - 1e-9), axis=0)
        assert (np.take_along_axis(columns, first[None], 0) > 0).all()


@pytest.mark.parametrize("a", [np.zeros((4, 3)), np.ones((4, 3)), np.outer([1, 2, 3, 4.0], [1, 0, 1]), np.diag([1e-9, 1, 1e9, 0])])
def test_svd_of_deficient_matrices(a: Any) -> None:
    m, n = a.shape
    types = [tensor("f64", m, m), tensor("f64", n), tensor("f64", n, n), tensor("s32")]
    u, s, vt, _ = both(library("svd", [tensor("f64", m, n)], types, {"full": True}), a, compare=False)
    close((u[:, :n] * s) @ vt, a, "f64")
    close(u.T @ u, np.eye(m), "f64")
    close(vt @ vt.T, np.eye(n), "f64")


# ---------------------------------------------------------------- more of LAPACK

@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (2, 3, 4)])
def test_pivoted_qr(dtype: str, shape: tuple[int, ...]) -> None:
    a = noise(shape, dtype)
    *batch, m, n = shape
    k = min(m, n)
    types = [tensor(dtype, *shape), tensor("s32", *batch, n), tensor(dtype, *batch, k)]
    packed, order, tau = both(library("pivoted-qr", [tensor(dtype, *shape), tensor("s32", *batch, n)], types, {}), a, np.zeros((*batch, n), np.int32))
    thin = tensor(dtype, *batch, m, k)
    q, = both(library("householder-product", [thin, tensor(dtype, *batch, k)], [thin], {}), packed[..., :k].copy(), tau)
    close(q @ np.triu(packed[..., :k, :]), np.take_along_axis(a, order[..., None, :] - 1, -1), dtype)
    sizes = np.abs(np.diagonal(packed, axis1=-2, axis2=-1))
    assert (np.diff(sizes) <= 1e-5).all()


def product_of(packed: Any, tau: Any) -> Any:
    """The unitary matrix of reflections that begin one below the diagonal."""
    n = packed.shape[-1]
    q = np.eye(n, dtype=packed.dtype)
    for j in reversed(range(n - 1)):
        v = np.concatenate([np.zeros(j + 1), [1], packed[j + 2:, j]]).astype(packed.dtype)
        q = q - tau[j] * np.outer(v, v.conj() @ q)
    return q


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_hessenberg_and_tridiagonal(dtype: str, n: int) -> None:
    a = noise((n, n), dtype)
    square, short = tensor(dtype, n, n), tensor(dtype, n - 1)
    packed, tau, _ = both(library("hessenberg", [square], [square, short, tensor("s32")], {}), a)
    q = product_of(packed, tau)
    close(q @ np.triu(packed, -1) @ adjoint(q), a, dtype)
    a = a + adjoint(a)
    types = [square, tensor(part(dtype), n), tensor(part(dtype), n - 1), short, tensor("s32")]
    packed, diagonal, below, tau, _ = both(library("tridiagonal", [square], types, {}), np.tril(a))
    q = product_of(packed, tau)
    close(q @ (np.diag(diagonal) + np.diag(below, -1) + np.diag(below, 1)) @ adjoint(q), a, dtype)


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize(("lead", "n"), [((), 1), ((), 2), ((2,), 6)])
def test_tridiagonal_solve(dtype: str, lead: tuple[int, ...], n: int) -> None:
    bands = [noise((*lead, n), dtype, i) for i in range(3)]
    b = noise((*lead, n, 3), dtype, 3)
    types = [tensor(dtype, *lead, n)] * 3 + [tensor(dtype, *b.shape)]
    x, info = both(library("tridiagonal-solve", types, [types[3], tensor("s32", *lead)], {}), *bands, b, compare=False)
    for place in np.ndindex(*lead):
        lower, diagonal, upper = (v[place] for v in bands)
        matrix = np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
        assert np.abs(matrix @ x[place] - b[place]).max() <= 50 * TOLERANCE[dtype] * np.abs(x[place]).max()
    assert not info.any()


SPECIAL = [np.zeros((3, 3)), np.eye(4), np.diag([1.0, 1, 2]) + np.diag([1.0, 0], 1), np.array([[0.0, -1], [1, 0]]), np.roll(np.eye(5), 1, 0),
           np.array([[0, 0, 1], [1, 0, 0], [0, 1, 0.0]]), np.triu(np.ones((4, 4)))]


@pytest.mark.parametrize("dtype", ["f64", "c128"])
@pytest.mark.parametrize("a", [noise((1, 1), "f64"), noise((4, 4), "f64"), noise((9, 9), "f64", 5), noise((2, 6, 6), "f64", 1), *SPECIAL])
def test_schur(a: Any, dtype: str) -> None:
    a = a.astype(NUMPY[dtype]) if dtype == "f64" or len(a) < 4 else noise(a.shape, dtype, 2)
    square, values = tensor(dtype, *a.shape), tensor(dtype, *a.shape[:-1])
    parts = [values, values] if dtype == "f64" else [values]
    t, z, *w, _ = both(library("schur", [square], [square, square, *parts, tensor("s32", *a.shape[:-2])], {}), a, compare=False)
    close(z @ t @ adjoint(z), a, dtype)
    close(z @ adjoint(z), np.broadcast_to(np.eye(a.shape[-1]), a.shape), dtype)
    under = np.tril(t, -2 if dtype == "f64" else -1)
    assert not under.any()
    found = w[0] + 1j * w[1] if dtype == "f64" else w[0]
    for place in np.ndindex(*a.shape[:-2]):
        for x in np.linalg.eigvals(a[place]):
            assert np.abs(found[place] - x).min() < 1e-6


@pytest.mark.parametrize("dtype", NUMPY)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (2, 4, 4)])
def test_eig(dtype: str, shape: tuple[int, ...]) -> None:
    a = noise(shape, dtype, 3)
    wide, lead = tensor("c64" if dtype in ("f32", "c64") else "c128", *shape), shape[:-1]
    values = [tensor(dtype, *lead)] * (1 if dtype.startswith("c") else 2)
    node = library("eig", [tensor(dtype, *shape)], [*values, wide, wide, tensor("s32", *shape[:-2])], {"left": True, "right": True})
    *parts, left, right, _ = both(node, a, compare=False)
    w = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
    close(a @ right, right * w[..., None, :], dtype)
    close(adjoint(left) @ a, w[..., :, None] * adjoint(left), dtype)
    close(np.linalg.norm(right, axis=-2), np.ones(lead), dtype)


def test_a_tridiagonal_matrix_without_an_inverse_is_told() -> None:
    """The others of the batch are solved."""
    diagonal, zeros = np.array([[2.0, 4.0], [0.0, 0.0]]), np.zeros((2, 2))
    b = np.ones((2, 2, 1))
    band, right = tensor("f64", 2, 2), tensor("f64", 2, 2, 1)
    node = library("tridiagonal-solve", [band, band, band, right], [right, tensor("s32", 2)], {})
    x, info = reference_of(node, zeros, diagonal, zeros, b)
    assert x[0].ravel().tolist() == [0.5, 0.25] and np.isnan(x[1]).all() and (info != 0).tolist() == [False, True]


@pytest.mark.parametrize(("left", "right"), [(False, True), (True, False), (False, False)])
def test_eigenvectors_of_one_side(left: bool, right: bool) -> None:
    """Those that nobody asked for are zeros."""
    a = np.array([[2.0, 1.0], [0.0, 3.0]])
    vectors = tensor("c128", 2, 2)
    node = library("eig", [tensor("f64", 2, 2)], [tensor("f64", 2), tensor("f64", 2), vectors, vectors, tensor("s32")], {"left": left, "right": right})
    re, im, lefts, rights, info = compiled_node(node, a, interpret=True)
    assert sorted(re.tolist()) == [2, 3] and not im.any() and info == 0
    assert lefts.any() == left and rights.any() == right
    assert np.allclose(a @ rights, rights * re) and np.allclose(lefts.conj().T @ a, re[:, None] * lefts.conj().T)


def test_eigenvectors_of_a_matrix_without_elements() -> None:
    node = library("eigh", [tensor("f64", 3, 0, 0)], [tensor("f64", 3, 0, 0), tensor("f64", 3, 0), tensor("s32", 3)], {"lower": True})
    vectors, values, info = reference_of(node, np.zeros((3, 0, 0)))
    assert vectors.shape == (3, 0, 0) and values.shape == (3, 0) and info.tolist() == [0, 0, 0]
