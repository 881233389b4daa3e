"""What XLA's GPU compiler alone does to products: with a vector they become reductions, with one operand in common they are merged, and
where few blocks would run they are cut along the contracted dimension."""
from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, prod

from irscope.fusion.canonicalise.dots import Places, free, places, with_places
from irscope.fusion.canonicalise.terms import Body, Term, tensor_type
from irscope.fusion.canonicalise.values import bits
from irscope.fusion.dimensions import is_sorted, without
from irscope.fusion.xla.gemm.products import REDUCED
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.ops import hlo
from irscope.ops.attributes import Dot

WIDE = {"bf16": "f32", "f16": "f32", "s8": "s32", "u8": "s32", "s4": "s32"}
"""What a product of narrow numbers is summed in (``GetGemmAccumulatorType``); others in their own type."""
FAR = 2_000
"""Terms that are looked at to see that of two products neither needs the other; beyond, they count as dependent."""
NEXT = 64
"""Products of the same array behind one that it may be merged with; XLA tries all."""
TILE = 128
"""Rows and columns of the result that a block of the cost model computes (``kMTileSize``, ``kNTileSize``)."""
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
"""Pieces of the contracted dimension that are tried (``ChooseSplitK``)."""
ALIGNED = 128
"""Bits of which a piece is a multiple."""


def reduce_vectors(body: Body) -> bool:
    """A product with a vector is a multiplication and a reduction in f32: XLA's ``DotStrengthReduction``."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.dot]:
        lb, rb, lc, rc = places(term)
        lhs, rhs = term.operands
        vector = 0 if lhs.rank == len(lb) + len(lc) else 1 if rhs.rank == len(rb) + len(rc) else None
        if vector is None or not lc or _elements(lhs, lb) + _elements(rhs, rb) >= REDUCED:
            continue
        matrix, (mb, mc), (vb, vc) = (rhs, (rb, rc), (lb, lc)) if vector == 0 else (lhs, (lb, lc), (rb, rc))
        to = dict(zip((*vb, *vc), (*mb, *mc), strict=True))
        small = term.operands[vector]
        order = sorted(range(small.rank), key=lambda d: to[d])
        small = body.convert(small, term.dtype, term)
        if not is_sorted(order):
            small = body.transpose(small, order, term)
        spread = small if small.rank == matrix.rank else body.broadcast(small, matrix.dims, sorted(to.values()), term)
        large = body.convert(matrix, term.dtype, term)
        product = body.elementwise(hlo.multiply, (spread, large) if vector == 0 else (large, spread), term)
        wide = "f32" if term.dtype in ("bf16", "f16") else term.dtype
        made = body.convert(body.sum(body.convert(product, wide, term), mc, term), term.dtype, term)
        left = [d for d in range(matrix.rank) if d not in mc]
        wanted = [*mb, *free(matrix, mb, mc)]
        if left != wanted:
            made = body.transpose(made, [left.index(d) for d in wanted], term)
        body.replace(term, made)
        changed = True
    return changed


def _elements(operand: Term, batch: Places) -> int:
    return prod(without(operand.dims, batch))


def merge_products(body: Body) -> bool:
    """Products of one array with several become one product with all of these, cut apart again: XLA's ``DotMerger``.

    How large they are does not matter: jaxlib 0.10.2 merges products of 500 MB, too.
    """
    readers: dict[Term, list[Term]] = defaultdict(list)
    place: dict[Term, int] = {}
    order = body.post_order()
    for number, term in enumerate(order):
        place[term] = number
        if term.op is hlo.dot:
            for operand in dict.fromkeys(term.operands):
                readers[operand].append(term)
    several = [found for found in readers.values() if len(found) > 1]
    needed = _needed(order, dict.fromkeys(dot for found in several for dot in found))
    changed = False
    for shared, found in readers.items():
        dots = [dot for dot in found if not dot.erased]
        for i in range(len(dots)):
            for j in range(i + 1, min(len(dots), i + 1 + NEXT)):
                a, b = dots[i], dots[j]
                own = needed.get(a, 0) & -needed.get(a, 0)
                if a.erased or b.erased or needed.get(b, 0) & own:
                    continue
                merged = _merged(body, shared, a, b, place)
                if merged is not None:
                    dots[i] = merged
                    changed = True
    return changed


def _needed(order: list[Term], dots: dict[Term, None]) -> dict[Term, int]:
    """For each of these products, as bits, those that it needs and itself, itself the lowest bit of all."""
    bit = {dot: 1 << (len(dots) - 1 - number) for number, dot in enumerate(dot for dot in order if dot in dots)}
    found: dict[Term, int] = {}
    readers = {term: len(term.users) for term in order}
    for term in order:
        mask = bit.get(term, 0)
        for operand in dict.fromkeys(term.operands):
            mask |= found.get(operand, 0)
            readers[operand] -= 1
            if not readers[operand] and operand not in bit:
                found.pop(operand, None)
        if mask:
            found[term] = mask
    return {dot: found[dot] for dot in dots}


def _merged(body: Body, shared: Term, a: Term, b: Term, place: dict[Term, int]) -> Term | None:
    """One product in place of two that read ``shared`` on the same side; None where they differ in more than the other operand."""
    side = 0 if a.operands[0] is shared and b.operands[0] is shared else 1
    if a.operands[side] is not shared or b.operands[side] is not shared or a.operands[1 - side] is b.operands[1 - side]:
        return None
    one, other = a.operands[1 - side], b.operands[1 - side]
    mine, theirs = Dot.of(a), Dot.of(b)
    if places(a) != places(b) or a.dtype != b.dtype or one.dtype != other.dtype or one.rank != other.rank or \
            mine.algorithm != theirs.algorithm or mine.operand_precision != theirs.operand_precision:
        return None
    lb, rb, lc, rc = places(a)
    batch, contracted = ((lb, lc), (rb, rc))[1 - side]
    kept = free(one, batch, contracted)
    if len(kept) != 1 or _needs(b, a, place) or _needs(a, b, place):
        return None
    [along] = kept
    first, both = one.dims[along], one.dims[along] + other.dims[along]
    sizes = [both if d == along else n for d, n in enumerate(one.dims)]
    joined = body.make(hlo.concatenate, tensor_type(one.dtype, sizes), (one, other), {"dimensions": (along,)}, a)
    result = len(lb) if side == 1 else a.rank - 1  # of [batch, left, right]
    dims = [both if d == result else n for d, n in enumerate(a.dims)]
    made = body.make(hlo.dot, tensor_type(a.dtype, dims), (shared, joined) if side == 0 else (joined, shared), a.attrs, a)
    made.origin = (*a.origin, *b.origin)
    place[made] = max(place.get(a, 0), place.get(b, 0))
    place[joined] = place[made]
    for old, begin, end in ((a, 0, first), (b, first, both)):
        cut = tuple((begin, end, 1) if d == result else (0, n, 1) for d, n in enumerate(dims))
        piece = body.make(hlo.slice, old.type, (made,), {"slice": cut}, old)
        place[piece] = place[made]
        body.replace(old, piece)
    return made


def _needs(top: Term, below: Term, place: dict[Term, int]) -> bool:
    """Whether a term needs another; also where too many terms lie between to tell."""
    floor = place.get(below, 0)
    seen = {top}
    stack = [top]
    while stack:
        for operand in stack.pop().operands:
            if operand is below or len(seen) > FAR:
                return True
            if operand not in seen and place.get(operand, floor) >= floor:
                seen.add(operand)
                stack.append(operand)
    return False


def merge_batches(body: Body) -> None:
    """Several batch dimensions in front become one: XLA's ``DotDimensionMerger``."""
    for term in [t for t in body.instructions if t.op is hlo.dot]:
        lb, rb, lc, rc = places(term)
        n = len(lb)
        if n < 2 or lb != tuple(range(n)) or rb != lb:
            continue
        operands = [body.reshape(o, (prod(o.dims[:n]), *o.dims[n:]), term) for o in term.operands]
        attrs = with_places(term, (0,), (0,), tuple(d - n + 1 for d in lc), tuple(d - n + 1 for d in rc))
        made = body.make(hlo.dot, tensor_type(term.dtype, (prod(term.dims[:n]), *term.dims[n:])), operands, attrs, term)
        body.replace(term, body.reshape(made, term.dims, term))


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the cost model of ``SplitkRewriter``: an operation, a byte of the product, a byte of the reduction behind it, and its launch."""

    compute: float
    memory: float
    reduction: float
    launch: float


WEIGHTS = {"ampere": Weights(100, 0.0666955, 467.815, 5.65307e7), "hopper": Weights(100, 0.194136, 193.1384, 4.36e7),
           "blackwell": Weights(100, 0.0848863, 189.711, 1.21563e8)}
"""By generation (``GetCostWeights``)."""


def split_products(body: Body, device: Device) -> bool:
    """Cut products along the contracted dimension where XLA's cost model expects a gain: XLA's ``SplitkRewriter``."""
    changed = False
    for term in [t for t in body.instructions if t.op is hlo.dot]:
        _, _, lc, rc = places(term)
        if len(lc) != 1 or len(rc) != 1 or any(o.dtype == "s32" for o in term.operands):
            continue
        pieces = _pieces(term, device)
        if pieces > 1:
            _split(body, term, pieces)
            changed = True
    return changed


def _pieces(dot: Term, device: Device) -> int:
    """How many pieces cost least; the fewest of equal ones."""
    lhs, rhs = dot.operands
    lb, rb, lc, rc = places(dot)
    batch, k = prod(lhs.dims[d] for d in lb), prod(lhs.dims[d] for d in lc)
    m, n = prod(lhs.dims[d] for d in free(lhs, lb, lc)), prod(rhs.dims[d] for d in free(rhs, rb, rc))
    number = int(device.capability.removeprefix("sm_")) if device.capability.removeprefix("sm_").isdecimal() else 0
    weights = WEIGHTS["blackwell" if number >= 100 else "hopper" if number >= 90 else "ampere"]
    width, out = bits(WIDE.get(dot.dtype, dot.dtype)) / 8, bits(dot.dtype) / 8
    read = batch * k * (m * _source_bits(lhs) + n * _source_bits(rhs)) / 8
    m_tile, n_tile = min(m, TILE), min(n, TILE)
    slots = device.cores * (TILE * TILE / max(1, m_tile * n_tile))

    def cost(pieces: int) -> float:
        length = ceil(k / pieces)
        blocks = batch * pieces * ceil(m / TILE) * ceil(n / TILE)
        compute = 2 * m_tile * n_tile * length * max(1.0, blocks / slots) * weights.compute
        written = m * n * batch * pieces * (width if pieces > 1 else out)
        product = max(compute, (read + written) * weights.memory)
        return product if pieces == 1 else product + weights.launch + (written + batch * m * n * out) * weights.reduction

    return min(SPLITS, key=cost)


def _source_bits(operand: Term) -> int:
    """The width of what an operand is made of by operations of one operand, which may be computed inside the kernel."""
    while operand.op in ELEMENTWISE and len(operand.operands) == 1:
        operand = operand.operands[0]
    return bits(operand.dtype)


def _split(body: Body, dot: Term, pieces: int) -> None:
    lb, rb, lc, rc = places(dot)
    narrowest = min(ALIGNED, *(_source_bits(o) for o in dot.operands))
    length = dot.operands[0].dims[lc[0]]
    unit = max(1, pieces * ALIGNED // narrowest)
    padded = -(-length // unit) * unit
    operands = []
    for operand, (at,) in zip(dot.operands, (lc, rc), strict=True):
        if padded != length:
            wide = [padded if d == at else n for d, n in enumerate(operand.dims)]
            padding = tuple((0, padded - length if d == at else 0, 0) for d in range(operand.rank))
            operand = body.make(hlo.pad, tensor_type(operand.dtype, wide), (operand, body.constant(0, operand.dtype, dot)),
                                {"padding": padding}, dot)
        operands.append(body.reshape(operand, (*operand.dims[:at], pieces, padded // pieces, *operand.dims[at + 1:]), dot))

    def moved(dims: Places, at: int) -> Places:
        return tuple(d + (d >= at) for d in dims)

    left, right = [*moved(lb, lc[0])], [*moved(rb, rc[0])]
    number = sum(d < lc[0] for d in left)  # the new batch dimension stands where it is on the left side
    left.insert(number, lc[0])
    right.insert(number, rc[0])
    wide_type = WIDE.get(dot.dtype, dot.dtype)
    dims = list(dot.dims)
    dims.insert(number, pieces)
    made = body.make(hlo.dot, tensor_type(wide_type, dims), operands,
                     with_places(dot, tuple(left), tuple(right), moved(lc, lc[0]), moved(rc, rc[0])), dot)
    body.replace(dot, body.convert(body.sum(made, (number,), dot), dot.dtype, dot))
