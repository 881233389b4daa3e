"""Products of matrices in the form in which XLA's CPU compiler multiplies them, and transposes that go into them."""
from __future__ import annotations

from collections.abc import Callable
from math import prod

from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.dimensions import is_sorted
from irscope.ops import hlo
from irscope.ops.attributes import Dot, Transpose

Places = tuple[int, ...]


def places(term: Term) -> tuple[Places, Places, Places, Places]:
    """Batch dimensions of both sides, then contracting dimensions of both sides."""
    attrs = Dot.of(term)
    return (*attrs.batch_dims, *attrs.contracting_dims)


def with_places(term: Term, lhs_batch: Places, rhs_batch: Places, lhs: Places, rhs: Places) -> dict[str, object]:
    """The attributes of a product with other dimensions."""
    attrs = {k: v for k, v in term.attrs.items() if not k.endswith("_dims")}
    attrs |= {"lhs_contracting_dims": lhs, "rhs_contracting_dims": rhs}
    return attrs | ({"lhs_batch_dims": lhs_batch, "rhs_batch_dims": rhs_batch} if lhs_batch else {})


def free(term: Term, batch: Places, contracted: Places) -> list[int]:
    """The dimensions of an operand that stay in the result as they are."""
    return [d for d in range(term.rank) if d not in batch and d not in contracted]


def decompose(body: Body) -> bool:
    """Products get their batch dimensions first and one dimension of each other kind: XLA's ``DotDecomposer``.

    The result is reshaped although nothing may change: an array of its own, which is rounded where the type is narrow.
    """
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.dot]:
        if _is_canonical(term):
            continue
        lhs, rhs = term.operands
        lb, rb, lc, rc = places(term)
        a, k, m = _arranged(body, lhs, lb, lc, False, term)
        b, _, n = _arranged(body, rhs, rb, rc, True, term)
        batch = tuple(lhs.dims[d] for d in lb)
        first = tuple(range(len(batch)))
        attrs = with_places(term, first, first, (len(batch) + len(m),), (len(batch),))
        dims = (*batch, *m, *n)
        made = body.make(hlo.dot, tensor_type(term.dtype, dims), (a, b), attrs, term)
        body.replace(term, body.reshape(made, term.dims, term))
        assert k == prod(rhs.dims[d] for d in rc)
        changed = True
    return changed


def _is_canonical(term: Term) -> bool:
    lb, rb, lc, _ = places(term)
    lhs, rhs = term.operands
    if len(lc) != 1 or len(lb) + 2 < lhs.rank or len(rb) + 2 < rhs.rank:
        return False
    return lb == rb == tuple(range(len(lb)))


def _arranged(body: Body, operand: Term, batch: Places, contracted: Places, inner_first: bool,
              at: Term) -> tuple[Term, int, tuple[int, ...]]:
    """An operand as [batch, free, contracted] ([batch, contracted, free]); elements contracted; the free dimension (none: empty)."""
    kept = free(operand, batch, contracted)
    order = [*batch, *contracted, *kept] if inner_first else [*batch, *kept, *contracted]
    moved = operand if is_sorted(order) else body.transpose(operand, order, at)
    size = prod(operand.dims[d] for d in contracted)
    rest = (prod(operand.dims[d] for d in kept),) if kept else ()
    dims = [operand.dims[d] for d in batch] + ([size, *rest] if inner_first else [*rest, size])
    return (moved if tuple(dims) == moved.dims else body.reshape(moved, dims, at)), size, rest


def dot(body: Body, term: Term) -> bool:
    """Simplify a product (``HandleDot``)."""
    lhs, rhs = term.operands
    if not lhs.elements or not rhs.elements or not term.elements:
        return body.replace(term, body.full(0, term, term))
    if not places(term)[2]:
        return _outer(body, term)
    if lhs.rank == rhs.rank == len(places(term)[0]) + len(places(term)[2]):
        return _inner(body, term)
    if 1 in lhs.dims or 1 in rhs.dims:
        return _without_ones(body, term)
    if lhs.op is rhs.op is hlo.transpose and Transpose.of(lhs).dimensions == Transpose.of(rhs).dimensions:
        return _both_transposed(body, term)
    return False


def _outer(body: Body, term: Term) -> bool:
    """Nothing is contracted: the product of both, spread."""
    lhs, rhs = term.operands
    lb, rb, _, _ = places(term)
    n = len(lb)
    sides = []
    for operand, batch, after in ((lhs, lb, 0), (rhs, rb, lhs.rank - n)):
        kept = free(operand, batch, ())
        order = [*batch, *kept]
        moved = operand if is_sorted(order) else body.transpose(operand, order, term)
        target = (*range(n), *(n + after + i for i in range(len(kept))))
        moved = body.convert(moved, term.dtype, term)
        sides.append(moved if moved.dims == term.dims else body.broadcast(moved, term.dims, target, term))
    return body.become(term, hlo.multiply, sides)


def _inner(body: Body, term: Term) -> bool:
    """Everything is contracted: the sum of the products."""
    lb, rb, lc, rc = places(term)
    sides = []
    for operand, batch, contracted in zip(term.operands, (lb, rb), (lc, rc), strict=True):
        order = [*batch, *contracted]
        moved = operand if is_sorted(order) else body.transpose(operand, order, term)
        sides.append(body.convert(moved, term.dtype, term))
    product = body.elementwise(hlo.multiply, sides, term)
    return body.replace(term, body.sum(product, tuple(range(len(lb), product.rank)), term))


def _without_ones(body: Body, term: Term) -> bool:
    """Dimensions of size 1 are left out."""
    lhs, rhs = term.operands
    lb, rb, lc, rc = places(term)
    maps = []
    made = []
    for operand in (lhs, rhs):
        kept = [d for d, n in enumerate(operand.dims) if n != 1]
        maps.append({d: i for i, d in enumerate(kept)})
        made.append(operand if len(kept) == operand.rank else body.reshape(operand, [operand.dims[d] for d in kept], term))

    def left(dims: Places, side: int) -> Places:
        return tuple(maps[side][d] for d in dims if d in maps[side])

    batch = [(maps[0][a], maps[1][b]) for a, b in zip(lb, rb, strict=True) if a in maps[0]]
    attrs = with_places(term, tuple(a for a, _ in batch), tuple(b for _, b in batch), left(lc, 0), left(rc, 1))
    dims = tuple(n for n in term.dims if n != 1)
    small = body.make(hlo.dot, tensor_type(term.dtype, dims), made, attrs, term)
    return body.replace(term, small if dims == term.dims else body.reshape(small, term.dims, term))


def _both_transposed(body: Body, term: Term) -> bool:
    """Both sides transposed alike: the product is transposed instead."""
    lhs, rhs = term.operands
    lb, rb, lc, rc = places(term)
    rank = term.rank
    order = Transpose.of(lhs).dimensions
    if lb != rb or lc != (rank - 1,) or rc != (rank - 2,) or rank != len(lb) + 2:
        return False
    if order[-2:] == (rank - 2, rank - 1):
        operands = (lhs.operands[0], rhs.operands[0])
    elif order[-2:] == (rank - 1, rank - 2):
        operands = (rhs.operands[0], lhs.operands[0])
    else:
        return False
    dims = [0] * rank
    for i, d in enumerate(order):
        dims[d] = term.dims[i]
    small = body.make(hlo.dot, tensor_type(term.dtype, dims), operands, term.attrs, term)
    return body.become(term, hlo.transpose, (small,), {"dimensions": order})


def widen_vectors(body: Body) -> bool:
    """A vector beside a matrix becomes a matrix of one column: XLA's ``GemvRewriter``. Beside one transposed matrix it stays a vector."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.dot]:
        lhs, rhs = term.operands
        lb, rb, lc, rc = places(term)
        mine, theirs = lhs.rank == len(lb) + len(lc) + 1, rhs.rank == len(rb) + len(rc) + 1
        if mine == theirs or (not lb and (lhs if mine else rhs).op is hlo.transpose):
            continue
        a = lhs if mine else body.reshape(lhs, (*lhs.dims, 1), term)
        b = rhs if theirs else body.reshape(rhs, (*rhs.dims, 1), term)
        dims = (*term.dims, 1) if mine else (*term.dims[:-1], 1, term.dims[-1])
        made = body.make(hlo.dot, tensor_type(term.dtype, dims), (a, b), term.attrs, term)
        body.replace(term, body.reshape(made, term.dims, term))
        changed = True
    return changed


def fold_transposes(body: Body) -> bool:
    """A transpose of the two matrix dimensions of an operand goes into the product: XLA's ``TransposeFolding``."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.dot]:
        lb, rb, lc, rc = places(term)
        operands = list(term.operands)
        if not all(free(o, b, c) for o, b, c in zip(operands, (lb, rb), (lc, rc), strict=True)):
            continue
        for side, batch, contracted in ((0, lb, lc), (1, rb, rc)):
            operand = operands[side]
            if operand.op is not hlo.transpose or not _swaps_matrix(operand, batch, contracted):
                continue
            order = Transpose.of(operand).dimensions
            operands[side] = operand.operands[0]
            if side == 0:
                lb, lc = tuple(order[d] for d in lb), tuple(order[d] for d in lc)
            else:
                rb, rc = tuple(order[d] for d in rb), tuple(order[d] for d in rc)
        if operands != term.operands:
            body.replace(term, body.make(hlo.dot, term.type, operands, with_places(term, lb, rb, lc, rc), term))
            changed = True
    return changed


def _swaps_matrix(operand: Term, batch: Places, contracted: Places) -> bool:
    """Whether a transpose leaves the batch dimensions and swaps the contracted with the free one."""
    kept = free(operand, batch, contracted)
    order = Transpose.of(operand).dimensions
    return len(contracted) == 1 and len(kept) == 1 and all(order[d] == d for d in batch) and order[kept[0]] == contracted[0] \
        and order[contracted[0]] == kept[0]


def upcast_whole_numbers(body: Body, in_library: Callable[[Term], bool]) -> bool:
    """Operands of products of whole numbers get the element type of the result: XLA's ``OperandUpcaster``."""
    changed = False
    for term in [t for t in body.instructions if t.op in (hlo.dot, hlo.convolution)]:
        if in_library(term) or all(o.dtype == term.dtype for o in term.operands):
            continue
        for i, operand in enumerate(list(term.operands)):
            term.set_operand(i, body.convert(operand, term.dtype, term))
        changed = True
    return changed
