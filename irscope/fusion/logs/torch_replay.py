"""Replays Inductor's steps on the operations of irscope's own lowering of a graph."""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher

from irscope.formats.inductor.fusion_log import Candidate
from irscope.fusion.inductor.kernels import Kernel, fused
from irscope.fusion.inductor.scheduler import RefusedPair, Scheduler
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.logs.events import LoggedStep

MOST = 2000
"""The search stops at more differences than this: the log is of another program."""


def matched(operations: Sequence[Candidate], kernels: Sequence[Kernel]) -> dict[str, str]:
    """For operations of the log the names of irscope's buffers: as many as possible of one kind and the same sizes, both in order."""
    theirs = [(o.kind, tuple(s for s in o.sizes if s != 1)) for o in operations]
    ours = [_kind(kernel.buffers[0]) for kernel in kernels]
    return {operations[a].name: kernels[b].buffers[0].name for a, b in aligned(theirs, ours)}


def aligned(first: Sequence[Hashable], second: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest in-order matching of equal elements in two sequences, as pairs of positions.

    The greedy algorithm of Myers, "An O(ND) difference algorithm and its variations" (1986). Sequences with more than ``MOST`` differences
    are aligned by their longest common runs instead.
    """
    reach = [0]  # reach[k + rounds]: how far in ``first`` a path on diagonal k (position in first minus position in second) has come
    rounds: list[list[int]] = []
    n, m = len(first), len(second)
    for differences in range(min(n + m, MOST) + 1):
        here = [-1] * (2 * differences + 1)
        for k in range(-differences, differences + 1, 2):
            if differences == 0:
                x = 0
            else:
                down = reach[k + differences] if k < differences - 1 else -1  # reach of diagonal k + 1
                right = reach[k + differences - 2] + 1 if k > 1 - differences else -1
                x = max(down, right)
            while x < n and x - k < m and first[x] == second[x - k]:
                x += 1
            here[k + differences] = x
            if x >= n and x - k >= m:
                return _traced(rounds, differences, k, x)
        rounds.append(here)
        reach = here
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return [(block.a + i, block.b + i) for block in blocks for i in range(block.size)]


def _traced(rounds: list[list[int]], differences: int, k: int, x: int) -> list[tuple[int, int]]:
    """The pairs on the path that ended at ``x`` on diagonal ``k``, from the last to the first."""
    pairs: list[tuple[int, int]] = []
    for left in range(differences, -1, -1):
        start = 0
        if left:
            reach = rounds[left - 1]
            down = reach[k + left] if k < left - 1 else -1
            right = reach[k + left - 2] + 1 if k > 1 - left else -1
            start = max(down, right)
        while x > start:
            x -= 1
            pairs.append((x, x - k))
        if left:
            k, x = (k + 1, start) if down >= right else (k - 1, start - 1)
    return pairs[::-1]


def _kind(buffer: Buffer) -> tuple[str, tuple[int, ...]]:
    if buffer.kind in ("extern", "nop"):
        return buffer.kind, ()
    sizes = buffer.reduced or (buffer.iterated if buffer.iterated is not None else buffer.shape)
    return buffer.kind, tuple(s for s in sizes if s != 1)


def replayed(scheduler: Scheduler, names: dict[str, str], steps: Sequence[LoggedStep]) -> None:
    """Replay the joins of the log in ``scheduler``, which has joined nothing yet, and record the reasons that the log has."""
    for step in steps:
        first, second = _kernel(scheduler, names, step.producer), _kernel(scheduler, names, step.consumer)
        if first is None or second is None or first is second:
            continue
        if step.made is None:
            scheduler.refuse(first, second, RefusedPair(step.words, step.words or ""))
            continue
        if scheduler.closes_cycle(first, second):
            continue  # the log is of another program, or its operations were matched to the wrong ones
        made = fused(first, second)
        scheduler.home.update(dict.fromkeys(made.names, made))
        scheduler.joined.append((step.producer, step.consumer))
    scheduler.kernels = list(dict.fromkeys(scheduler.home[kernel.buffers[0].name] for kernel in scheduler.kernels))


def _kernel(scheduler: Scheduler, names: dict[str, str], label: str) -> Kernel | None:
    """The kernel of an operation, or of several joined: ``op3_op4``."""
    first = names.get(label.split("_")[0])
    return scheduler.home[first] if first is not None else None
