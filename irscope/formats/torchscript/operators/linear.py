"""Matrix products in all their forms."""
from __future__ import annotations

from functools import reduce
from typing import Any

from irscope.formats.torchscript.operators import operator
from irscope.formats.torchscript.operators.complex_numbers import conjugate
from irscope.formats.torchscript.operators.norms import vector_norm
from irscope.formats.torchscript.operators.reduction import accumulating
from irscope.formats.torchscript.operators.solving import identity_like, inverse
from irscope.formats.torchscript.operators.wide import widened
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import F32, S64
from irscope.lazy import np
from irscope.ops.checked import in_step, table
from irscope.ops.faults import TypeFault


@operator("linear(Tensor input, Tensor weight, Tensor? bias=None)")
def linear(t: Torch, x: Node, w: Node, bias: Node | None) -> Node:
    """x W^T + b."""
    t.alike(x, w, bias)
    contracting = ([t.rank(x) - 1], [len(t.shape_of(w, 1, 2)) - 1])
    y = t.dot(x, w, contracting)
    return y if bias is None else t.add(y, bias)


@operator("matmul(Tensor self, Tensor other)", "linalg_matmul(Tensor self, Tensor other)")
def matmul(t: Torch, x: Node, y: Node) -> Node:
    t.alike(x, y)
    return t.matmul(x, y)


def _product(schema: str, left: int, right: int) -> None:
    @operator(schema)
    def product(t: Torch, x: Node, y: Node) -> Node:
        """A product of tensors of fixed ranks, which broadcasts nothing."""
        t.alike(x, y)
        a, b = t.shape_of(x, left, left), t.shape_of(y, right, right)
        if left == right == 3 and a[0] != b[0]:
            raise TypeFault(f"{a[0]} matrices are multiplied with {b[0]}")
        return t.matmul(x, y)


for _schema, _left, _right in (("mm(Tensor self, Tensor mat2)", 2, 2), ("bmm(Tensor self, Tensor mat2)", 3, 3),
                               ("mv(Tensor self, Tensor vec)", 2, 1), ("dot(Tensor self, Tensor tensor)", 1, 1)):
    _product(_schema, _left, _right)


@operator("vdot(Tensor self, Tensor other)", "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1)")
def vecdot(t: Torch, x: Node, y: Node, dim: int = -1) -> Node:
    """The sum of products along a dimension, the first operand conjugated."""
    x, y = t.together(*t.promote(x, y))
    return t.sum(t.mul(conjugate(t, x), y), [t.dim(x, dim)])


@operator("inner(Tensor self, Tensor other)")
def inner(t: Torch, x: Node, y: Node) -> Node:
    if t.rank(x) == 0 or t.rank(y) == 0:
        return t.mul(x, y)
    return t.dot(x, y, ([t.rank(x) - 1], [t.rank(y) - 1]))


@operator("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)",
          "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)",
          "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)")
def addmm(t: Torch, x: Node, a: Node, b: Node, beta: Any, alpha: Any) -> Node:
    t.alike(a, b)
    y = t.scale(t.matmul(a, b), alpha)
    return y if beta == 0 else t.add(y, t.scale(x, beta))


@operator("addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)")
def addbmm(t: Torch, x: Node, a: Node, b: Node, beta: Any, alpha: Any) -> Node:
    y = t.scale(t.dot(a, b, ([0, 2], [0, 1])), alpha)
    return y if beta == 0 else t.add(y, t.scale(x, beta))


@operator("outer(Tensor self, Tensor vec2)", "ger(Tensor self, Tensor vec2)")
def outer(t: Torch, x: Node, y: Node) -> Node:
    t.shape_of(x, 1, 1)
    t.shape_of(y, 1, 1)
    x, y = t.promote(x, y)
    return t.mul(t.unsqueeze(x, 1), t.unsqueeze(y, 0))


@operator("addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1)")
def addr(t: Torch, x: Node, a: Node, b: Node, beta: Any, alpha: Any) -> Node:
    y = t.scale(outer(t, a, b), alpha)
    return y if beta == 0 else t.add(y, t.scale(x, beta))


@operator("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)")
def bilinear(t: Torch, x: Node, y: Node, w: Node, bias: Node | None) -> Node:
    made = einsum(t, "...i,oij,...j->...o", [x, w, y], None)
    return made if bias is None else t.add(made, bias)


@operator("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other)")
def tensordot(t: Torch, x: Node, y: Node, dx: list[int], dy: list[int]) -> Node:
    a, b = [t.dim(x, d) for d in dx], [t.dim(y, d) for d in dy]
    # A size of one matches any size: the other operand is summed there.
    for i, j in in_step("the contracted dimensions", a, b):
        if t.shape(x)[i] == 1:
            y = t.sum(y, [j], True)
        elif t.shape(y)[j] == 1:
            x = t.sum(x, [i], True)
    return t.dot(x, y, (a, b))


@operator("chain_matmul(Tensor[] matrices)", "linalg_multi_dot(Tensor[] tensors)")
def chain_matmul(t: Torch, matrices: list[Node]) -> Node:
    if not matrices:
        raise TypeFault("it takes at least one matrix")
    y = matrices[0]
    for x in matrices[1:]:
        y = t.matmul(y, x)
    return y


@operator("matrix_power(Tensor self, int n)", "linalg_matrix_power(Tensor self, int n)")
def matrix_power(t: Torch, x: Node, n: int) -> Node:
    if t.rank(x) < 2:
        raise TypeFault(f"matrix_power takes matrices, got {t.rank(x)} dimensions")
    if n == 0:
        return identity_like(t, x)
    if n < 0:
        x, n = inverse(t, x), -n
    result, square = None, x
    while n:
        if n & 1:
            result = square if result is None else t.matmul(result, square)
        n >>= 1
        square = t.matmul(square, square) if n else square
    assert result is not None
    return result


@operator("einsum(str equation, Tensor[] tensors, *, int[]? path=None)")
def einsum(t: Torch, equation: str, tensors: list[Node], path: object) -> Node:
    """Contracts operands from the left, two at a time; sums a letter as soon as no later operand needs it."""
    equation = equation.replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = [_letters(term, t.rank(x)) for term, x in in_step("the terms of the equation and the tensors", left.split(","), tensors)]
    if arrow:
        dots = max((term for term in terms), key=lambda s: sum(c.isdigit() for c in s))
        out = right.replace("...", "".join(c for c in dots if c.isdigit()))
    else:
        letters = "".join(terms)
        once = sorted(c for c in set(letters) if letters.count(c) == 1 and c.isalpha())
        out = "".join([*sorted({c for c in letters if c.isdigit()}), *once])
    if unknown := [c for c in out if not any(c in term for term in terms)]:
        raise TypeFault(f"the result names {', '.join(unknown)}, which no operand has: {equation}")
    xs = t.promote(*tensors)
    for i, term in enumerate(terms):  # torch sums a letter that only one operand has before it multiplies, and sums integers in int64
        if any(c not in out and sum(c in other for other in terms) == 1 for c in term):
            xs[i] = accumulating(t, xs[i], None)
    xs = t.promote(*xs)
    x, term = _diagonal(t, xs[0], terms[0])
    for i in range(1, len(xs)):
        later = set("".join(terms[i + 1:])) | set(out)
        y, other = _diagonal(t, xs[i], terms[i])
        x, term = _contract(t, x, term, y, other, later)
    gone = [i for i, c in enumerate(term) if c not in out]
    x = t.sum(x, gone)
    term = "".join(c for c in term if c in out)
    return t.transpose(x, [term.index(c) for c in out])


def _letters(term: str, rank: int) -> str:
    """A term with its ellipsis as digits, counted from the right."""
    n = rank - len(term.replace("...", ""))
    if n < 0 or ("..." not in term and n):
        raise TypeFault(f"the subscripts {term!r} do not fit an operand of {rank} dimensions")
    if "..." not in term:
        return term
    if n > 10:
        raise TypeFault(f"an ellipsis stands for {n} dimensions, more than 10")
    return term.replace("...", "".join(str(9 - i) for i in range(n - 1, -1, -1)))


def _diagonal(t: Torch, x: Node, term: str) -> tuple[Node, str]:
    """Take the diagonal where a letter is repeated."""
    for c in set(term):
        while term.count(c) > 1:
            i, j = term.index(c), term.rindex(c)
            shape = t.shape(x)
            on = t.compare("EQ", t.iota(shape, i, S64), t.iota(shape, j, S64))
            x = t.sum(t.select(on, x, t.like(x, 0)), [j])
            term = term[:j] + term[j + 1:]
    return x, term


def _contract(t: Torch, x: Node, a: str, y: Node, b: str, later: set[str]) -> tuple[Node, str]:
    sizes = {c: n for term, v in ((a, x), (b, y)) for c, n in in_step("a term and the sizes", term, t.shape(v)) if n != 1}
    x = t.broadcast_to(x, tuple(sizes.get(c, 1) for c in a))
    y = t.broadcast_to(y, tuple(sizes.get(c, 1) for c in b))
    alone_a, alone_b = [c for c in a if c not in b and c not in later], [c for c in b if c not in a and c not in later]
    x, a = t.sum(x, [a.index(c) for c in alone_a]), "".join(c for c in a if c not in alone_a)
    y, b = t.sum(y, [b.index(c) for c in alone_b]), "".join(c for c in b if c not in alone_b)
    both = [c for c in a if c in b]
    batch, summed = [c for c in both if c in later], [c for c in both if c not in later]
    made = t.dot(x, y, ([a.index(c) for c in summed], [b.index(c) for c in summed]),
                 ([a.index(c) for c in batch], [b.index(c) for c in batch]))
    return made, "".join(batch) + "".join(c for c in a if c not in both) + "".join(c for c in b if c not in both)


@operator("cdist(Tensor x1, Tensor x2, float p=2., int? compute_mode=None)")
def cdist(t: Torch, x: Node, y: Node, p: float, mode: object) -> Node:
    away = t.sub(t.unsqueeze(x, -2), t.unsqueeze(y, -3))
    return vector_norm(t, away, p, [t.rank(away) - 1], False)


@operator("cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)")
def cosine_similarity(t: Torch, x: Node, y: Node, dim: int, eps: float) -> Node:
    x, y = t.together(*t.promote(x, y))
    if (wide := widened(t, x)) is not x:  # squares of half types overflow
        return t.convert(cosine_similarity(t, wide, widened(t, y), dim, eps), t.dtype(x))
    d = t.dims(x, dim)
    nx = t.unary("sqrt", t.sum(t.mul(x, x), d, True))
    ny = t.unary("sqrt", t.sum(t.mul(y, y), d, True))
    return t.sum(t.mul(t.div(x, t.maximum(nx, t.like(nx, eps))), t.div(y, t.maximum(ny, t.like(ny, eps)))), d)


@operator("pdist(Tensor self, float p=2)")
def pdist(t: Torch, x: Node, p: float) -> Node:
    """Distances of all pairs of rows."""
    rows = t.shape_of(x, 2, 2)[0]
    first, second = np.triu_indices(table("the pairs of rows", rows, rows)[0], 1)
    if not len(first):
        return t.full((0,), 0, t.dtype(x))
    away = t.sub(t.take(x, t.array(first, S64), 0), t.take(x, t.array(second, S64), 0))
    return vector_norm(t, away, p, [1], False)


@operator("pairwise_distance(Tensor x1, Tensor x2, float p=2., float eps=1e-06, bool keepdim=False)")
def pairwise_distance(t: Torch, x: Node, y: Node, p: float, eps: float, keep: bool) -> Node:
    away = t.plus(t.sub(*t.promote(x, y)), eps)
    return vector_norm(t, away, p, [t.rank(away) - 1], keep)


@operator("cross(Tensor self, Tensor other, int? dim=None)", "linalg_cross(Tensor self, Tensor other, *, int dim=-1)")
def cross(t: Torch, x: Node, y: Node, dim: int | None) -> Node:
    x, y = t.together(*t.promote(x, y))
    d = t.shape(x).index(3) if dim is None else t.dim(x, dim)
    if t.shape(x)[d] != 3:
        raise TypeFault(f"a cross product is of vectors of 3 elements, not {t.shape(x)[d]}")

    def turned(v: Node, by: int) -> Node:
        return t.concat([t.slice_dim(v, d, (i + by) % 3, (i + by) % 3 + 1) for i in range(3)], d)
    return t.sub(t.mul(turned(x, 1), turned(y, 2)), t.mul(turned(x, 2), turned(y, 1)))


@operator("_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None)")
def grouped_mm(t: Torch, x: Node, w: Node, offsets: Node | None, bias: Node | None, dtype: int | None) -> Node:
    """Rows of ``x`` up to offs[0] times matrix 0, from there to offs[1] times matrix 1, and so on."""
    if offsets is None:
        y = t.matmul(x, w)
    elif t.rank(x) == 2 and t.rank(w) == 3:
        y = _by_rows(t, x, w, offsets)
    else:
        raise TypeFault("grouped products are supported for rows of a matrix against a batch of matrices")
    if bias is not None:
        y = t.add(y, bias)
    return t.convert(y, t.dtype_number(dtype, t.dtype(y)))


def _by_rows(t: Torch, x: Node, w: Node, offsets: Node) -> Node:
    """Each row times the matrix of its group; rows from the last offset on are 0. All rows are multiplied with every matrix."""
    rows, groups = t.shape(x)[0], t.shape(w)[0]
    if not groups:
        raise TypeFault("it takes at least one matrix")
    at = t.reshape(t.iota((rows,), 0, t.dtype(offsets)), (rows, 1))
    group = t.sum(t.convert(t.compare("GE", at, t.reshape(offsets, (1, groups))), F32), [1])

    def of(g: int) -> Node:
        mine = t.compare("EQ", group, t.like(group, g))
        part = t.matmul(x, t.reshape(t.slice_dim(w, 0, g, g + 1), t.shape(w)[1:]))
        return t.select(t.reshape(mine, (rows, 1)), part, t.like(part, 0))
    return reduce(t.add, map(of, range(groups)))


@operator("_weight_norm(Tensor v, Tensor g, int dim=0)")
def weight_norm(t: Torch, v: Node, g: Node, dim: int) -> Node:
    dims = [i for i in range(t.rank(v)) if i != t.dim(v, dim)] if dim != -1 else list(range(t.rank(v)))
    return t.mul(v, t.div(g, t.unary("sqrt", t.sum(t.mul(v, v), dims, True))))
