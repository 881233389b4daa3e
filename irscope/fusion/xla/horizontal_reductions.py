"""XLA's pass that joined independent reductions with one common user into one kernel (``HorizontalInputFusion``).

As of jaxlib 0.4.38 (horizontal_input_fusion.cc): reductions of arrays of one shape, along the same dimensions, as far as the budgets allow.
"""
from __future__ import annotations

from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_outputs import hero_of, is_input_reduction, one_loop
from irscope.fusion.xla.gpu_rules import fits_budget
from irscope.fusion.xla.horizontal_loops import PARTS, count_of, only_read_by
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.joining import join_outputs
from irscope.graph.walk import behind


def join_reductions(computation: Computation, device: Device) -> list[tuple[str, str]]:
    """Join reductions with one common user, in place; returns the joined pairs (removed, kept), in order."""
    joined: list[tuple[str, str]] = []
    for consumer in computation.post_order():
        if consumer not in computation.instructions:
            continue
        found = [kernel for kernel in dict.fromkeys(behind(o, PARTS) for o in consumer.operands) if kernel.kind not in ("kCustom", "triton")
                 and is_input_reduction(kernel) and only_read_by(kernel, consumer, computation.root)]
        if len(found) < 2:
            continue
        found.sort(key=_order)
        kernels = [kernel if kernel.body is not None else computation.wrap(kernel, "kInput") for kernel in found]
        anchor = kernels[0]
        for kernel in kernels[1:]:
            if one_loop(anchor, kernel) and fits_budget(anchor, kernel, device):
                joined.append((kernel.name, anchor.name))
                anchor = join_outputs(computation, anchor, kernel, anchor.kind)
            else:
                anchor = kernel
    return joined


def _order(kernel: Instruction) -> tuple[int, tuple[int, ...], int]:
    """The sort key that puts reductions of one shape next to each other, and those of similar size too."""
    read = hero_of(kernel).operands[0].dims
    return len(read), read, count_of(kernel)
