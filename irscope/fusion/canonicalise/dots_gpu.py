"""Rewrites of dots in XLA's GPU compiler only: strength reduction of products with a vector, merging of dots that share an operand,
and split-K for dots that would launch few blocks."""
from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from math import ceil, prod

from irscope.fusion.canonicalise.computation import HloComputation, HloInstruction, Rule, tensor_type
from irscope.fusion.canonicalise.dots import Places, free, places, with_places
from irscope.fusion.canonicalise.values import bits
from irscope.fusion.dimensions import without
from irscope.fusion.xla.gemm.products import REDUCED
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.opcodes import ELEMENTWISE
from irscope.ops import hlo
from irscope.ops.attributes import Dot

WIDE = {"bf16": "f32", "f16": "f32", "s8": "s32", "u8": "s32", "s4": "s32"}
"""The accumulator type of narrow element types (``GetGemmAccumulatorType``); others accumulate in their own type."""
FAR = 2_000
"""Instructions that are visited to prove that two dots are independent; beyond that, they count as dependent."""
NEXT = 64
"""How many later dots of the same array a dot is tried with; XLA tries all."""
TILE = 128
"""Rows and columns of the result that one block of the cost model computes (``kMTileSize``, ``kNTileSize``)."""
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
"""Numbers of splits that are tried (``ChooseSplitK``)."""
ALIGNED = 128
"""The alignment of a split, in bits."""


def reduce_vector(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Rewrite a dot with a vector to a multiplication and a reduction in f32: XLA's ``DotStrengthReduction``."""
    lb, rb, lc, rc = places(instr)
    lhs, rhs = instr.operands
    is_left = lhs.rank == len(lb) + len(lc)
    if not (is_left or rhs.rank == len(rb) + len(rc)) or not lc or prod(without(lhs.dims, lb)) + prod(without(rhs.dims, rb)) >= REDUCED:
        return False
    vector, matrix, (mb, mc), (vb, vc) = (lhs, rhs, (rb, rc), (lb, lc)) if is_left else (rhs, lhs, (lb, lc), (rb, rc))
    to = dict(zip((*vb, *vc), (*mb, *mc), strict=True))
    order = sorted(range(vector.rank), key=lambda d: to[d])
    small = rewriter.transpose(rewriter.convert(vector, instr.dtype), order)
    spread = small if small.rank == matrix.rank else rewriter.broadcast(small, matrix.dims, sorted(to.values()))
    large = rewriter.convert(matrix, instr.dtype)
    product = rewriter.elementwise(hlo.multiply, (spread, large) if is_left else (large, spread))
    wide = "f32" if instr.dtype in ("bf16", "f16") else instr.dtype
    total = rewriter.convert(rewriter.sum(rewriter.convert(product, wide), mc), instr.dtype)
    left = [d for d in range(matrix.rank) if d not in mc]
    return rewriter.replace(instr, rewriter.transpose(total, [left.index(d) for d in (*mb, *free(matrix, mb, mc))]))


def merge_products(rewriter: HloComputation) -> bool:
    """Merge several dots of one array into one dot with all their other operands, and slice its result: XLA's ``DotMerger``.

    The size does not matter: jaxlib 0.10.2 merges even products of 500 MB.
    """
    readers: dict[HloInstruction, list[HloInstruction]] = defaultdict(list)
    place: dict[HloInstruction, int] = {}
    order = rewriter.post_order()
    for number, instr in enumerate(order):
        place[instr] = number
        if instr.op is hlo.dot:
            for operand in dict.fromkeys(instr.operands):
                readers[operand].append(instr)
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
                merged = _merge(rewriter, shared, a, b, place)
                if merged is not None:
                    dots[i] = merged
                    changed = True
    return changed


def _needed(order: list[HloInstruction], dots: dict[HloInstruction, None]) -> dict[HloInstruction, int]:
    """For each of these dots, as a bit set, the dots that it depends on and itself; its own bit is the lowest."""
    bit = {dot: 1 << (len(dots) - 1 - number) for number, dot in enumerate(dot for dot in order if dot in dots)}
    found: dict[HloInstruction, int] = {}
    readers = {instr: len(instr.users) for instr in order}
    for instr in order:
        mask = bit.get(instr, 0)
        for operand in dict.fromkeys(instr.operands):
            mask |= found.get(operand, 0)
            readers[operand] -= 1
            if not readers[operand] and operand not in bit:
                found.pop(operand, None)
        if mask:
            found[instr] = mask
    return {dot: found[dot] for dot in dots}


def _merge(rewriter: HloComputation, shared: HloInstruction, a: HloInstruction, b: HloInstruction,
           place: dict[HloInstruction, int]) -> HloInstruction | None:
    """Merge two dots that read ``shared`` on the same side; None if they differ in more than the other operand."""
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
    first, both = one.dims[kept[0]], one.dims[kept[0]] + other.dims[kept[0]]
    joined = rewriter.concatenate((one, other), kept[0], a)
    along = len(lb) if side == 1 else a.rank - 1  # of [batch, left, right]
    dims = [both if d == along else n for d, n in enumerate(a.dims)]
    merged = rewriter.like(a, (shared, joined) if side == 0 else (joined, shared), dims)
    merged.origin = (*a.origin, *b.origin)
    place[merged] = place[joined] = max(place.get(a, 0), place.get(b, 0))
    for old, begin, end in ((a, 0, first), (b, first, both)):
        piece = rewriter.slice_along(merged, along, begin, end, old)
        place[piece] = place[merged]
        rewriter.replace(old, piece)
    return merged


def _needs(top: HloInstruction, below: HloInstruction, place: dict[HloInstruction, int]) -> bool:
    """Whether an instruction depends on another; also True if there are too many instructions between them to decide."""
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


def merge_batches(rewriter: HloComputation, instr: HloInstruction) -> bool:
    """Merge several leading batch dimensions into one: XLA's ``DotDimensionMerger``."""
    lb, rb, lc, rc = places(instr)
    n = len(lb)
    if n < 2 or lb != tuple(range(n)) or rb != lb:
        return False
    operands = [rewriter.reshape(o, (prod(o.dims[:n]), *o.dims[n:])) for o in instr.operands]
    attrs = with_places(instr, (0,), (0,), tuple(d - n + 1 for d in lc), tuple(d - n + 1 for d in rc))
    merged = rewriter.make(hlo.dot, tensor_type(instr.dtype, (prod(instr.dims[:n]), *instr.dims[n:])), operands, attrs)
    return rewriter.replace(instr, rewriter.reshape(merged, instr.dims))


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of ``SplitkRewriter``'s cost model: an operation, a byte of the dot, a byte of the reduction after it, and its launch."""

    compute: float
    memory: float
    reduction: float
    launch: float


WEIGHTS = {"ampere": Weights(100, 0.0666955, 467.815, 5.65307e7), "hopper": Weights(100, 0.194136, 193.1384, 4.36e7),
           "blackwell": Weights(100, 0.0848863, 189.711, 1.21563e8)}
"""By GPU generation (``GetCostWeights``)."""


def split_products(device: Device) -> Rule:
    """Split dots along the contracting dimension where XLA's cost model expects a gain: XLA's ``SplitkRewriter``."""
    def split(rewriter: HloComputation, instr: HloInstruction) -> bool:
        _, _, lc, rc = places(instr)
        if len(lc) != 1 or len(rc) != 1 or any(o.dtype == "s32" for o in instr.operands):
            return False
        pieces = _pieces(instr, device)
        return pieces > 1 and _split(rewriter, instr, pieces)

    return split


def _pieces(dot: HloInstruction, device: Device) -> int:
    """The number of splits with the lowest cost; the smallest of equal ones."""
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


def _source_bits(operand: HloInstruction) -> int:
    """The width of an operand before unary elementwise operations, which the kernel may compute."""
    while operand.op in ELEMENTWISE and len(operand.operands) == 1:
        operand = operand.operands[0]
    return bits(operand.dtype)


def _split(rewriter: HloComputation, dot: HloInstruction, pieces: int) -> bool:
    lb, rb, lc, rc = places(dot)
    narrowest = min(ALIGNED, *(_source_bits(o) for o in dot.operands))
    length = dot.operands[0].dims[lc[0]]
    unit = max(1, pieces * ALIGNED // narrowest)
    padded = -(-length // unit) * unit
    operands = []
    for operand, (at,) in zip(dot.operands, (lc, rc), strict=True):
        if padded != length:
            padding = [(0, padded - length if d == at else 0, 0) for d in range(operand.rank)]
            operand = rewriter.pad(operand, rewriter.constant(0, operand.dtype), padding)
        operands.append(rewriter.reshape(operand, (*operand.dims[:at], pieces, padded // pieces, *operand.dims[at + 1:])))

    def moved(dims: Places, at: int) -> Places:
        return tuple(d + (d >= at) for d in dims)

    left, right = [*moved(lb, lc[0])], [*moved(rb, rc[0])]
    number = sum(d < lc[0] for d in left)  # the new batch dimension has the position that it has on the left side
    left.insert(number, lc[0])
    right.insert(number, rc[0])
    type = tensor_type(WIDE.get(dot.dtype, dot.dtype), (*dot.dims[:number], pieces, *dot.dims[number:]))
    attrs = with_places(dot, tuple(left), tuple(right), moved(lc, lc[0]), moved(rc, rc[0]))
    partial = rewriter.make(hlo.dot, type, operands, attrs)
    return rewriter.replace(dot, rewriter.convert(rewriter.sum(partial, (number,)), dot.dtype))
