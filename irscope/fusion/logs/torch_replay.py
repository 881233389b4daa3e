"""Inductor's steps done again on the operations that irscope's own lowering makes of a graph."""
from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from irscope.fusion.inductor.kernels import Kernel, fused
from irscope.fusion.inductor.scheduler import Refused, Scheduler
from irscope.fusion.inductor.values import Buffer
from irscope.fusion.logs.events import Operation, Step


def matched(operations: Sequence[Operation], kernels: Sequence[Kernel]) -> dict[str, str]:
    """For operations of the log the names of our buffers: the longest common runs of operations of one kind over the same sizes."""
    theirs = [(o.kind, tuple(s for s in o.sizes if s != 1)) for o in operations]
    ours = [_kind(kernel.buffers[0]) for kernel in kernels]
    found: dict[str, str] = {}
    for block in SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks():
        for i in range(block.size):
            found[operations[block.a + i].name] = kernels[block.b + i].buffers[0].name
    return found


def _kind(buffer: Buffer) -> tuple[str, tuple[int, ...]]:
    if buffer.kind in ("extern", "nop"):
        return buffer.kind, ()
    sizes = buffer.reduced or (buffer.iterated if buffer.iterated is not None else buffer.shape)
    return buffer.kind, tuple(s for s in sizes if s != 1)


def replayed(scheduler: Scheduler, names: dict[str, str], steps: Sequence[Step]) -> None:
    """Join in ``scheduler``, which has joined nothing yet, what the log joins, and enter the reasons that it gives."""
    for step in steps:
        first, second = _kernel(scheduler, names, step.producer), _kernel(scheduler, names, step.consumer)
        if first is None or second is None or first is second:
            continue
        if step.made is None:
            refused = Refused(step.words, step.words or "")
            for a in first.buffers:
                for b in second.buffers:
                    scheduler.refused[a.number, b.number] = refused
            continue
        made = fused(first, second)
        scheduler.home.update(dict.fromkeys(made.names, made))
        scheduler.joined.append((step.producer, step.consumer))
    scheduler.kernels = list(dict.fromkeys(scheduler.home[kernel.buffers[0].name] for kernel in scheduler.kernels))


def _kernel(scheduler: Scheduler, names: dict[str, str], label: str) -> Kernel | None:
    """The kernel of an operation, or of several joined: ``op3_op4``."""
    first = names.get(label.split("_")[0])
    return scheduler.home[first] if first is not None else None
