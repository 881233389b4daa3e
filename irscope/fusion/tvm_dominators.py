"""Where all ways from a node meet again, and what kinds of operators stand on them: the post-dominator tree of TVM's FuseOps."""
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from irscope.fusion.tvm_kinds import TvmKind
from irscope.fusion.tvm_walk import Walk


@dataclass(slots=True, eq=False)
class Dominator:
    """Where the ways from one place meet: its immediate post-dominator (-1: nowhere) and the largest kind on the ways.

    ``jump`` is an ancestor further up, and ``over`` the largest kind from here to below it: with them two ways are followed upwards in
    steps whose number grows with the logarithm of the depth (E. W. Myers, "An applicative random-access stack", 1983).
    """

    parent: int
    kind: TvmKind
    depth: int
    jump: int
    over: TvmKind

    NOWHERE: ClassVar[Dominator]


Dominator.NOWHERE = Dominator(-1, TvmKind.OPAQUE, 0, -1, TvmKind.OPAQUE)
"""What stands above every place from which the ways do not meet."""


def dominators(walk: Walk) -> list[Dominator]:
    """The dominator of each place."""
    tree = [Dominator.NOWHERE] * (len(walk.nodes) + 1)  # the last one, -1, is nowhere
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
    """One more leaf below ``parent``; it jumps as far as its parent's two jumps together when those are equally long."""
    above = tree[parent]
    first, second = tree[above.jump], tree[tree[above.jump].jump]
    if above.depth and above.depth - first.depth == first.depth - second.depth:
        return Dominator(parent, kind, above.depth + 1, first.jump, max(kind, above.over, first.over))
    return Dominator(parent, kind, above.depth + 1, parent, kind)


def _meeting(outputs: list[tuple[int, TvmKind]], tree: list[Dominator]) -> tuple[int, TvmKind]:
    """Where the ways over all outputs meet, and the largest kind met."""
    met, kind = -1, TvmKind.ELEMWISE
    for number, (at, edge) in enumerate(outputs):
        kind = max(kind, edge)
        if number == 0:
            met = at
        elif at != met and met >= 0:
            met, kind = _joined(met, at, kind, tree)
    return met, kind


def _joined(left: int, right: int, kind: TvmKind, tree: list[Dominator]) -> tuple[int, TvmKind]:
    """The nearest place above two others, and the largest kind of ``kind`` and what is passed."""
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
