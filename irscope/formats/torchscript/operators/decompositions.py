"""Matrix decompositions: QR, singular values, eigenvalues; and their applications: pseudo-inverse, rank, least squares.

Vectors of a decomposition are unique up to their sign (complex ones up to a phase): torch's may differ.
"""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.complex_numbers import real_type
from irscope.formats.torchscript.operators.matrices import triu
from irscope.formats.torchscript.operators.solving import adjoint, batched, identity_like, library, square
from irscope.formats.torchscript.torch import Torch
from irscope.graph import DType, Node
from irscope.graph.dtypes import C64, C128, F32, F64, S64
from irscope.ops.faults import TypeFault

EPSILONS = {F32: 2.0 ** -23, F64: 2.0 ** -52}
"""The distance from 1 to the next number."""


def epsilon(kind: DType) -> float:
    """The distance from 1 to the next number. Raises TypeFault for types whose matrices torch does not decompose."""
    if kind not in EPSILONS:
        raise TypeFault(f"torch decomposes matrices of float32, float64 and complex numbers, not {kind}")
    return EPSILONS[kind]


# ---------------------------------------------------------------------- QR


@operator("geqrf(Tensor self)")
def geqrf(t: Torch, a: Node) -> tuple[Node, Node]:
    """R and the Householder vectors below it, and their factors tau."""
    *lead, rows, columns = t.shape_of(a, 2)
    steps = min(rows, columns)
    if 0 in t.shape(a):
        return a, t.full((*lead, steps), 0, t.dtype(a))
    packed, taus = library(t, "qr", [a])
    return packed, taus


@operator("linalg_householder_product(Tensor input, Tensor tau)", "orgqr(Tensor self, Tensor input2)")
def householder_product(t: Torch, a: Node, taus: Node) -> Node:
    if 0 in t.shape(a) or 0 in t.shape(taus):
        return identity_like(t, a)
    return library(t, "householder-product", [a, taus])[0]


def _whole(t: Torch, packed: Node, taus: Node) -> Node:
    """All columns of the orthogonal matrix."""
    *lead, rows, columns = t.shape_of(packed, 2)
    steps = t.shape(taus)[-1]
    packed = t.slice_dim(packed, len(lead) + 1, 0, min(steps, columns))
    wide = t.pad(packed, t.array(0, t.dtype(packed)), [0] * t.rank(packed), [*[0] * len(lead), 0, rows - t.shape(packed)[-1]])
    return householder_product(t, wide, taus)


@operator("ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False)")
def ormqr(t: Torch, packed: Node, taus: Node, x: Node, left: bool, transpose: bool) -> Node:
    q = _whole(t, packed, taus)
    q = adjoint(t, q) if transpose else q
    return t.matmul(q, x) if left else t.matmul(x, q)


@operator("linalg_qr(Tensor A, str mode=\"reduced\")")
def qr(t: Torch, a: Node, mode: str) -> tuple[Node, Node]:
    if mode not in ("reduced", "complete", "r"):
        raise TypeFault(f"the modes of qr are reduced, complete and r, not {mode!r}")
    *lead, rows, columns = t.shape_of(a, 2)
    packed, taus = geqrf(t, a)
    d, kept = len(lead), rows if mode == "complete" else min(rows, columns)
    upper = triu(t, t.slice_dim(packed, d, 0, kept), 0)
    if mode == "r":
        return t.full((0,), 0, t.dtype(a)), upper
    if mode == "complete":
        return _whole(t, packed, taus), upper
    return householder_product(t, t.slice_dim(packed, d + 1, 0, kept), taus), upper


@operator("qr(Tensor self, bool some=True)")
def qr_old(t: Torch, a: Node, some: bool) -> tuple[Node, Node]:
    return qr(t, a, "reduced" if some else "complete")


# ---------------------------------------------------------------------- singular values


def svd(t: Torch, a: Node, full: bool) -> tuple[Node, Node, Node]:
    """U, descending singular values, V^H."""
    *lead, rows, columns = t.shape_of(a, 2)
    k, kind = min(rows, columns), t.dtype(a)
    left, right = (*lead, rows, rows if full else k), (*lead, columns if full else k, columns)
    if 0 in t.shape(a):
        u, vh = (identity_like(t, t.full(shape, 0, kind)) for shape in (left, right))
        return u, t.full((*lead, k), 0, real_type(t, a)), vh
    u, values, vh, _ = library(t, "svd", [a], {"full": full})
    return u, values, vh


@operator("linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None)")
def linalg_svd(t: Torch, a: Node, full: bool, driver: str | None) -> tuple[Node, Node, Node]:
    return svd(t, a, full)


@operator("linalg_svdvals(Tensor A, *, str? driver=None)")
def svdvals(t: Torch, a: Node, driver: str | None = None) -> Node:
    return svd(t, a, False)[1]


@operator("svd(Tensor self, bool some=True, bool compute_uv=True)")
def svd_old(t: Torch, a: Node, some: bool, vectors: bool) -> tuple[Node, Node, Node]:
    """``svd`` with V in place of V^H; zeros for vectors that are not requested."""
    u, values, vh = svd(t, a, not some)
    if vectors:
        return u, values, adjoint(t, vh)
    *lead, rows, columns = t.shape_of(a, 2)
    return t.full((*lead, rows, rows), 0, t.dtype(a)), values, t.full((*lead, columns, columns), 0, t.dtype(a))


# ---------------------------------------------------------------------- eigenvalues


@operator("linalg_eigh(Tensor self, str UPLO=\"L\")")
def eigh(t: Torch, a: Node, uplo: str) -> tuple[Node, Node]:
    """Ascending eigenvalues of symmetric or Hermitian matrices, of which one triangle is read, and their vectors in columns."""
    if uplo.upper() not in ("L", "U"):
        raise TypeFault(f"UPLO of eigh is L or U, not {uplo!r}")
    n, lead = square(t, a), t.shape(a)[:-2]
    if 0 in t.shape(a):
        return t.full((*lead, n), 0, real_type(t, a)), a
    vectors, values, _ = library(t, "eigh", [a], {"lower": uplo.upper() == "L"})
    return values, vectors


@operator("linalg_eigvalsh(Tensor self, str UPLO=\"L\")")
def eigvalsh(t: Torch, a: Node, uplo: str) -> Node:
    return eigh(t, a, uplo)[0]


@operator("linalg_eig(Tensor self)")
def eig(t: Torch, a: Node) -> tuple[Node, Node]:
    """Complex eigenvalues and vectors of any square matrix."""
    n, lead, wide = square(t, a), t.shape(a)[:-2], C128 if real_type(t, a) is F64 else C64
    if 0 in t.shape(a):
        return t.full((*lead, n), 0, wide), t.full(t.shape(a), 0, wide)
    found = library(t, "eig", [a], {"left": False, "right": True})
    return found[0] if t.dtype(a).is_complex else t.emit("complex", found[:2]), found[-2]


@operator("linalg_eigvals(Tensor self)")
def eigvals(t: Torch, a: Node) -> Node:
    return eig(t, a)[0]


# ---------------------------------------------------------------------- applications


def _tolerance(t: Torch, a: Node, largest: Node, atol: object, rtol: object) -> Node:
    """The limit up to which singular values count as zero: the larger of the absolute tolerance and the relative one times ``largest``.

    It is [..., 1], as ``largest`` is. A relative tolerance that is not given is 0 where the absolute one is positive, else
    eps * max(rows, columns).
    """
    kind = t.dtype(largest)
    default = epsilon(kind) * max(t.shape_of(a, 2)[-2:])

    def node(value: object) -> Node:
        made = t.convert(value, kind) if isinstance(value, Node) else t.array(value, kind)
        return t.unsqueeze(made, -1) if t.rank(made) else made
    if rtol is None and isinstance(atol, Node):
        absolute = node(atol)
        relative = t.select(t.compare("GT", absolute, t.like(absolute, 0)), t.like(absolute, 0), t.like(absolute, default))
    else:
        absolute = node(0.0 if atol is None else atol)
        relative = node((0.0 if atol else default) if rtol is None else rtol)
    return t.maximum(*t.together(absolute, t.mul(relative, largest)))


def _sizes(t: Torch, a: Node, hermitian: bool) -> Node:
    return t.unary("abs", eigvalsh(t, a, "L")) if hermitian else svdvals(t, a)


def rank_of(t: Torch, a: Node, sizes: Node, atol: object, rtol: object) -> Node:
    """s64[...]: the number of singular values ``sizes`` of ``a`` above the tolerance."""
    d = [t.rank(sizes) - 1]
    if t.shape(sizes)[-1] == 0:
        return t.full(t.shape(a)[:-2], 0, S64)
    limit = _tolerance(t, a, t.max(sizes, d, True), atol, rtol)
    return t.sum(t.convert(t.compare("GT", sizes, limit), S64), [-1 + t.rank(limit)])


@operator("linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False)",
          "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False)",
          "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False)",
          "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False)")
def matrix_rank(t: Torch, a: Node, *, tol: object = None, atol: object = None, rtol: object = None, hermitian: bool) -> Node:
    atol, rtol = (atol, rtol) if tol is None else (tol, 0.0)
    return rank_of(t, a, _sizes(t, a, hermitian), atol, rtol)


def pseudo_inverse(t: Torch, a: Node, atol: object, rtol: object, hermitian: bool) -> Node:
    """[..., columns, rows]: singular values up to the tolerance count as zero."""
    *lead, rows, columns = t.shape_of(a, 2)
    if 0 in t.shape(a):
        return t.full((*lead, columns, rows), 0, t.dtype(a))
    if hermitian:
        values, vectors = eigh(t, a, "L")
        sizes, left, right = t.unary("abs", values), vectors, adjoint(t, vectors)
    else:
        left, values, right = svd(t, a, False)
        sizes = values
    limit = _tolerance(t, a, t.max(sizes, [t.rank(sizes) - 1], True), atol, rtol)
    one = t.array(1, t.dtype(values))
    kept = t.compare("GT", sizes, limit)
    inverse = t.select(kept, t.div(one, t.select(kept, values, one)), t.array(0, t.dtype(values)))
    scaled = t.mul(adjoint(t, right), t.convert(t.unsqueeze(inverse, -2), t.dtype(a)))
    return t.matmul(scaled, adjoint(t, left))


@operator("linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False)",
          "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False)",
          "linalg_pinv(Tensor self, float rcond, bool hermitian=False)",
          "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False)", "pinverse(Tensor self, float rcond=1e-15)")
def pinv(t: Torch, a: Node, *, atol: object = None, rtol: object = None, rcond: object = None, hermitian: bool = False) -> Node:
    atol, rtol = (atol, rtol) if rcond is None else (0.0, rcond)
    return pseudo_inverse(t, a, atol, rtol, hermitian)


@operator("linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None)")
def lstsq(t: Torch, a: Node, b: Node, rcond: float | None, driver: str | None) -> tuple[Node, Node, Node, Node]:
    """The solution of least squares (the shortest one), its residuals, the rank, and for two drivers the singular values."""
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise TypeFault(f"the drivers of lstsq are gels, gelsy, gelsd and gelss, not {driver!r}")
    vector = t.rank(a) - 1 == t.rank(b) and t.shape(b) == t.shape(a)[:-1]
    rows, columns = t.shape_of(a, 2)[-2:]
    x, right = batched(t, a, t.unsqueeze(b, -1) if vector else b)
    rcond = epsilon(real_type(t, a)) * max(rows, columns) if rcond is None else rcond
    solution = t.matmul(pseudo_inverse(t, x, 0.0, rcond, False), right)
    nothing = t.full((0,), 0, real_type(t, a))
    sizes = svdvals(t, a)
    rank = rank_of(t, a, sizes, 0.0, rcond)
    residuals, full = nothing, True
    if rows > columns and columns and driver != "gels":
        deficient = t.compare("LT", t.reshape(rank, (prod(t.shape(rank)),)), t.array(columns, S64))
        full = t.size_from_data(t.sum(t.convert(deficient, S64), [0])) == 0
    if rows > columns and full:
        away = t.unary("abs", t.sub(t.matmul(x, solution), right))
        residuals = t.sum(t.mul(away, away), [t.rank(away) - 2])
    found = t.reshape(solution, t.shape(solution)[:-1]) if vector else solution
    if driver == "gels":
        return found, residuals, t.full((0,), 0, S64), nothing
    return found, residuals, rank, nothing if driver == "gelsy" else sizes
