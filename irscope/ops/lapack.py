"""Calls of LAPACK, as JAX emits them on a CPU: with typed options (``lapack_sgetrf_ffi``) or, before 2024, with numbers as operands.

Layouts of operands and results are column-major, which does not change the values.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from irscope.graph import NO_ATTRS, Node, TensorType, TupleType
from irscope.graph.dtypes import S32
from irscope.ops.calls import WrittenCall
from irscope.ops.matrices import cost_of_factorization

_UPPER, _LEFT, _UNIT, _FULL = ord("U"), ord("L"), ord("U"), ord("A")
_TRANSPOSE = {ord("N"): "NO_TRANSPOSE", ord("T"): "TRANSPOSE", ord("C"): "ADJOINT"}


def _arrays(call: WrittenCall) -> list[Node]:
    """The operands that are matrices or vectors of numbers; in old calls, sizes and flags precede them."""
    return [o for o in call.operands if isinstance(o.type, TensorType) and o.type.rank and not o.type.dtype.is_integer]


def _option(call: WrittenCall, name: str, place: int, old: Mapping[int, int]) -> int | None:
    """An option: by name, or (in old calls) the operand at a place, translated."""
    options = call.options()
    if name in options:
        return options[name]
    number = call.number(place)
    return old.get(number) if number is not None else None


def _potrf(call: WrittenCall) -> Node | None:
    uplo = _option(call, "uplo", 0, {0: _UPPER, 1: ord("L")})
    arrays = _arrays(call)
    if uplo is None or len(arrays) != 1:
        return None
    factor = call.add("cholesky", arrays, {"lower": uplo != _UPPER})
    types = call.types()
    if len(types) < 2 or not types[0].dims()[-1]:
        return call.result([factor])
    # A matrix without a factor makes all of it NaN; LAPACK reports the same by a nonzero status.
    t = types[0]
    corner = tuple((0, 1 if d >= t.rank - 2 else n, 1) for d, n in enumerate(t.dims()))
    first = call.add("slice", (factor,), {"slice": corner})
    first = call.add("reshape", (first,), {}, TensorType(t.dtype, t.shape[:-2]))
    failed = call.add("compare", (first, first), {"direction": "NE"})
    return call.result([factor, call.convert(failed, S32)])


def _trsm(call: WrittenCall) -> Node | None:
    side = _option(call, "side", 0, {0: _LEFT, 1: ord("R")})
    uplo = _option(call, "uplo", 1, {0: _UPPER, 1: ord("L")})
    transpose = _TRANSPOSE.get(_option(call, "trans_x", 2, {0: ord("N"), 1: ord("T"), 2: ord("C")}) or 0)
    diagonal = _option(call, "diag", 3, {0: ord("N"), 1: _UNIT})
    arrays = _arrays(call)
    if side is None or uplo is None or transpose is None or diagonal is None or len(arrays) != 2:
        return None
    attrs = {"left_side": side == _LEFT, "lower": uplo != _UPPER, "unit_diagonal": diagonal == _UNIT, "transpose_a": transpose}
    return call.result([call.add("triangular-solve", arrays, attrs)])


def _library(call: WrittenCall, name: str, operands: Sequence[Node], types: Sequence[TensorType], attrs: Mapping[str, bool]) -> list[Node]:
    """Build a multi-result operator; returns its results."""
    plain = tuple(TensorType(t.dtype, t.shape) for t in types)
    made = call.add(name, operands, attrs, TupleType(plain), dialect="library")
    return [call.element(made, i) for i in range(len(plain))]


def _factored(call: WrittenCall, name: str, count: int, attrs: Mapping[str, bool] = NO_ATTRS) -> Node | None:
    """The library operator ``name`` of one stack of matrices, which has the first ``count`` results of the call. None where the call has
    other operands or fewer results."""
    arrays, types = _arrays(call), call.types()
    return call.result(_library(call, name, arrays, types[:count], attrs)) if len(arrays) == 1 and len(types) >= count else None


def _orgqr(call: WrittenCall) -> Node | None:
    arrays, types = _arrays(call), call.types()
    if len(arrays) != 2 or not types:
        return None
    t = TensorType(types[0].dtype, types[0].shape)
    return call.result([call.add("householder-product", arrays, {}, t, dialect="library")])


def _syevd(call: WrittenCall) -> Node | None:
    uplo = _option(call, "uplo", 0, {0: _UPPER, 1: ord("L")})
    return None if uplo is None else _factored(call, "eigh", 3, {"lower": uplo != _UPPER})


def _gesdd(call: WrittenCall) -> Node | None:
    arrays, types = _arrays(call), call.types()
    mode = call.options().get("mode")
    if mode is None:
        full, vectors = call.number(0), call.number(1)
        if full is None or vectors is None:
            return None
        mode = ord("N") if not vectors else _FULL if full else ord("S")
    if len(arrays) != 1 or len(types) < 5 or not isinstance(arrays[0].type, TensorType):
        return None
    a, full_vectors = arrays[0].type, mode == _FULL
    rows, columns = a.dims()[-2:]
    inner, batch = min(rows, columns), a.shape[:-2]
    u = TensorType(a.dtype, (*batch, rows, rows if full_vectors else inner))
    vt = TensorType(a.dtype, (*batch, columns if full_vectors else inner, columns))
    left, values, right, status = _library(call, "svd", arrays, (u, types[1], vt, types[4]), {"full": full_vectors})
    if mode == ord("N"):
        left, right = call.constant(0, types[2]), call.constant(0, types[3])
    return call.result([arrays[0], values, left, right, status])


def _geqp3(call: WrittenCall) -> Node | None:
    """The input permutation is zero: no column is fixed. JAX never fixes one."""
    arrays, types = _arrays(call), call.types()
    places = [o for o in call.operands if isinstance(o.type, TensorType) and o.type.dtype is S32 and o.type.rank]
    if len(arrays) != 1 or len(places) != 1 or len(types) < 3:
        return None
    return call.result(_library(call, "pivoted-qr", [*arrays, *places], types[:3], {}))


def _gehrd(call: WrittenCall) -> Node | None:
    options, n = call.options(), call.types()[0].dims()[-1]
    return _factored(call, "hessenberg", 3) if options.get("low", 1) == 1 and options.get("high", n) == n else None


def _sytrd(call: WrittenCall) -> Node | None:
    return _factored(call, "tridiagonal", 5) if call.options().get("uplo") == ord("L") else None


def _gtsv(call: WrittenCall) -> Node | None:
    arrays, types = _arrays(call), call.types()
    if len(arrays) != 4 or len(types) < 5:
        return None
    found, status = _library(call, "tridiagonal-solve", arrays, [types[3], types[4]], {})
    return call.result([*arrays[:3], found, status])


def _gees(call: WrittenCall) -> Node | None:
    """Without selection of eigenvalues, so the number of selected ones is 0."""
    arrays, types, options = _arrays(call), call.types(), call.options()
    split = not types[0].dtype.is_complex
    if len(arrays) != 1 or len(types) != 5 + split or options.get("sort", ord("N")) != ord("N"):
        return None
    *parts, status = _library(call, "schur", arrays, [*types[:3 + split], types[-1]], {})
    return call.result([*parts, call.constant(0, types[-2]), status])


def _geev(call: WrittenCall) -> Node | None:
    arrays, types, options = _arrays(call), call.types(), call.options()
    if len(arrays) != 1 or not isinstance(arrays[0].type, TensorType) or len(types) != 4 + (not arrays[0].type.dtype.is_complex):
        return None
    wanted = {side: options.get(f"compute_{side}", ord("V")) == ord("V") for side in ("left", "right")}
    return call.result(_library(call, "eig", arrays, types, wanted))


_ROUTINES: Mapping[str, tuple[Callable[[WrittenCall], Node | None], float]] = {
    "potrf": (_potrf, 1 / 3), "trsm": (_trsm, 1.0), "getrf": (partial(_factored, name="lu", count=3), 2 / 3),
    "geqrf": (partial(_factored, name="qr", count=2), 4 / 3), "orgqr": (_orgqr, 4 / 3), "ungqr": (_orgqr, 4 / 3), "geqp3": (_geqp3, 2.0),
    "syevd": (_syevd, 9.0), "heevd": (_syevd, 9.0), "gesdd": (_gesdd, 20.0), "gesvd": (_gesdd, 20.0),
    "gehrd": (_gehrd, 10 / 3), "sytrd": (_sytrd, 4 / 3), "hetrd": (_sytrd, 4 / 3), "gtsv": (_gtsv, 0.0),
    "gees": (_gees, 25.0), "geev": (_geev, 30.0),
}


def _names(routine: str) -> list[str]:
    """The targets of a routine, for every element type."""
    old = "blas" if routine == "trsm" else "lapack"
    return [name for letter in "sdcz" for name in (f"lapack_{letter}{routine}_ffi", f"{old}_{letter}{routine}")]


MEANINGS: Mapping[str, Callable[[WrittenCall], Node | None]] = {name: _ROUTINES[r][0] for r in _ROUTINES for name in _names(r)}


def _cost(share: float) -> Callable[[Node], float]:
    whole = cost_of_factorization(share)

    def cost(node: Node) -> float:
        # Old calls have sizes before the matrix.
        matrices = [o.type for o in node.operands if isinstance(o.type, TensorType) and o.type.rank >= 2]
        return whole(node) if matrices and matrices[0] is node.operands[0].type else 0.0
    return cost


COSTS: Mapping[str, Callable[[Node], float]] = {name: _cost(_ROUTINES[r][1]) for r in _ROUTINES for name in _names(r)}
