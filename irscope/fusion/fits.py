"""Whether irscope's compiler can compute a node inside a kernel that reads it, and if it cannot, why."""
from __future__ import annotations

from math import prod

from irscope.fusion.drafts import BEHIND, MOVED, WHOLE, Draft, Reach, dims_of
from irscope.fusion.verdicts import Refusal
from irscope.fusion.views import Chain, Strides, access
from irscope.graph import Node
from irscope.ops import hlo

MAX_NODES = 300
"""A kernel with more pointwise nodes than this compiles slowly and gains nothing."""
MAX_REPEATED = 4
"""Simple operations that a kernel may recompute for every element of a broadcast."""
MAX_ROW = 1 << 16
"""Elements of a row that is read more than once; it should stay in the caches."""

MULTIPLIERS = {hlo.dot: "contraction", hlo.convolution: "convolution", hlo.reduce_window: "window"}
"""Operators that do many multiplications, each with the kind of kernel that it anchors."""


def pointwise_fits(node: Node, draft: Draft, reach: Reach) -> Refusal | None:
    """Why a kernel cannot compute a pointwise node where it reads it, repeating at most a few operations; None if it can."""
    if reach in (WHOLE, BEHIND):
        return Refusal.READ_WHOLE
    if len(draft.nodes) >= MAX_NODES:
        return Refusal.TOO_LARGE
    work = prod(draft.space) if draft.kind != "reduction" else _read_by_reduction(draft)
    elements = prod(dims_of(node))
    if reach is None and elements:
        return None  # element i in iteration i: no work is repeated
    if reach is MOVED:
        return None if work <= elements and draft.kind in ("map", "reduction") else Refusal.REPEATED
    walk = access(reach, node) if isinstance(reach, Chain | None) else None
    if walk is None:
        return None if draft.kind == "map" and work <= elements else Refusal.MOVED
    if evaluations(walk) <= elements:
        return None
    if node.op.weight + draft.repeated > MAX_REPEATED:
        return Refusal.REPEATED
    draft.repeated += node.op.weight
    return None


def _read_by_reduction(draft: Draft) -> int:
    assert draft.anchor is not None
    return prod(dims_of(draft.anchor.operands[0]))


def moving_fits(node: Node, draft: Draft, reach: Reach) -> Refusal | None:
    """Why a gather, or another node that reads at computed indices, cannot be a load of the kernel; None if it can."""
    if reach in (WHOLE, BEHIND):
        return Refusal.READ_WHOLE
    if draft.kind != "map" and not (draft.kind == "rows" and node.op is hlo.dynamic_slice):
        return Refusal.OTHER_LOOPS
    if not isinstance(reach, Chain | None) or access(reach, node) is None:
        return Refusal.MOVED
    return None if prod(draft.space) <= prod(dims_of(node)) else Refusal.REPEATED


def epilogue_fits(node: Node, draft: Draft, reach: Reach) -> Refusal | None:
    """Why the kernel cannot be an epilogue, which visits the results of a contraction, convolution or window in order; None if it can."""
    if reach in (WHOLE, BEHIND):
        return Refusal.READ_WHOLE
    if draft.kind in MULTIPLIERS.values():
        return Refusal.ONE_ANCHOR
    if draft.kind != "map" or draft.moved:
        return Refusal.OTHER_LOOPS
    if reach is not None:
        walk = access(reach, node) if isinstance(reach, Chain) else None
        if walk is None or not walk.is_plain() or prod(draft.space) != prod(dims_of(node)):
            return Refusal.MOVED
    return None if draft.space == dims_of(node) else Refusal.RESHAPED


def row_fits(node: Node, draft: Draft, reach: Reach, rows: int, columns: int) -> Refusal | None:
    """Why a reduction over trailing axes cannot be a pass of a kernel over its rows, or be followed by that kernel; None if it can."""
    if draft.kind not in ("map", "rows") or draft.moved:
        return Refusal.OTHER_LOOPS
    if len(draft.nodes) >= MAX_NODES:
        return Refusal.TOO_LARGE
    if not isinstance(reach, Chain | None):
        return Refusal.MOVED if reach is MOVED else Refusal.READ_WHOLE
    walk = access(reach, node)
    if walk is None:
        return Refusal.MOVED
    if draft.kind == "map" and prod(draft.space) == rows and walk.is_plain():
        return None
    if prod(draft.space) != rows * columns or columns > MAX_ROW:
        return Refusal.LONG_ROW if prod(draft.space) == rows * columns else Refusal.OTHER_LOOPS
    split = draft.rows if draft.kind == "rows" else leading(draft.space, rows)
    if split < 0 or prod(draft.space[:split]) != rows:
        return Refusal.OTHER_LOOPS
    inner = walk.strides[split:]
    outer = Strides(walk.shape[:split], walk.strides[:split], walk.offset)
    return None if not any(s for s, n in zip(inner, draft.space[split:]) if n > 1) and outer.is_plain() else Refusal.OTHER_LOOPS


def evaluations(walk: Strides) -> int:
    """How often an element is computed once it is hoisted out of the inner loops that it does not depend on."""
    last = max((d for d, (s, n) in enumerate(zip(walk.strides, walk.shape)) if s and n > 1), default=-1)
    return prod(walk.shape[:last + 1])


def leading(space: tuple[int, ...], rows: int) -> int:
    """How many leading axes of a space make up ``rows``, axes of size 1 included; -1 if none do."""
    total = 1
    for d, n in enumerate(space):
        if total == rows and n != 1:
            return d
        total *= n
    return len(space) if total == rows else -1
