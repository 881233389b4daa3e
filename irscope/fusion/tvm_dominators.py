"""The post-dominator tree of TVM's FuseOps: where all paths from a node meet again, and the largest operator kind on them."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from irscope.fusion.tvm_kinds import TvmKind
from irscope.fusion.tvm_walk import Walk


@dataclass(slots=True, eq=False)
class Dominator:
    """The immediate post-dominator of one position (-1: none) and the largest operator kind on the paths to it.

    ``jump`` is an ancestor further up, and ``over`` the largest kind from here to below it: they let the search follow two paths upwards in
    a number of steps that is logarithmic in the depth (E. W. Myers, "An applicative random-access stack", 1983).
    """

    parent: int
    kind: TvmKind
    depth: int
    jump: int
    over: TvmKind

    NOWHERE: ClassVar[Dominator]


Dominator.NOWHERE = Dominator(-1, TvmKind.OPAQUE, 0, -1, TvmKind.OPAQUE)
"""The root above every position whose paths do not meet."""


def dominators(walk: Walk) -> list[Dominator]:
    """The dominator of each position."""
    tree = [Dominator.NOWHERE] * (len(walk.nodes) + 1)  # the last one, -1, has none
    for at in range(len(walk.nodes) - 1, -1, -1):
        outputs = walk.outputs[at]
        if walk.extern[at]:
            tree[at] = _under(-1, TvmKind.OPAQUE, tree)
        elif len(outputs) == 1:
            tree[at] = _under(*outputs[0], tree)
        else:
            tree[at] = _under(*_meeting(outputs, tree), tree)
    return tree[:-1]


def _under(parent: int, kind: TvmKind, tree: list[Dominator]) -> Dominator:
    """Add a leaf below ``parent``; it jumps as far as both of its parent's jumps together if those are equally long."""
    above = tree[parent]
    first, second = tree[above.jump], tree[tree[above.jump].jump]
    if above.depth and above.depth - first.depth == first.depth - second.depth:
        return Dominator(parent, kind, above.depth + 1, first.jump, max(kind, above.over, first.over))
    return Dominator(parent, kind, above.depth + 1, parent, kind)


def _meeting(outputs: list[tuple[int, TvmKind]], tree: list[Dominator]) -> tuple[int, TvmKind]:
    """Where the paths over all outputs meet, and the largest kind on them."""
    met, kind = -1, TvmKind.ELEMWISE
    for number, (at, edge) in enumerate(outputs):
        kind = max(kind, edge)
        if number == 0:
            met = at
        elif at != met and met >= 0:
            met, kind = _joined(met, at, kind, tree)
    return met, kind


def _joined(left: int, right: int, kind: TvmKind, tree: list[Dominator]) -> tuple[int, TvmKind]:
    """The nearest common ancestor of two positions, and the largest of ``kind`` and the kinds on the way to it."""
    if tree[left].depth < tree[right].depth:
        left, right = right, left
    level = tree[right].depth
    while tree[left].depth > level:
        at = tree[left]
        far = tree[at.jump].depth >= level
        left, kind = (at.jump, max(kind, at.over)) if far else (at.parent, max(kind, at.kind))
    while left != right:
        one, other = tree[left], tree[right]
        if one.jump != other.jump:
            left, right, kind = one.jump, other.jump, max(kind, one.over, other.over)
        else:
            left, right, kind = one.parent, other.parent, max(kind, one.kind, other.kind)
    return left, kind
