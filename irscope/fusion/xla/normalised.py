"""What XLA's softmax rewriter makes of the normalisations of a text, told in sentences."""
from __future__ import annotations

from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.softmax import Diamond, Refused, bails_out, chains, of_reductions
from irscope.fusion.xla.stage import computations
from irscope.graph import Module

SHOWN = 4
"""Normalisations that are named; a model repeats them layer by layer."""


def normalisations(module: Module, device: Device) -> list[str]:
    """One remark on what the rewriter takes and what it leaves; none where no reduction is broadcast back, or XLA has run it already."""
    if module.format != "hlo" or '"__triton' in module.source.text:
        return []
    if words := bails_out(device):
        return [f"XLA's softmax rewriter makes no kernel of a normalisation on {device.name}: {words}"]
    taken: list[Diamond] = []
    left: list[tuple[Instruction, Refused]] = []
    for graph in computations(module):
        for reduce, decision in of_reductions(Computation.of(graph)).items():
            if isinstance(decision, Diamond):
                taken.append(decision)
            else:
                left.append((reduce, decision))
    if not taken and not left:
        return []
    parts = [f"XLA's softmax rewriter (SoftmaxRewriterTriton), which runs before this pass, takes {len(taken)} of "
             f"{len(taken) + len(left)} reductions that are broadcast back"]
    if taken:
        ways = [" then ".join(f"%{d.reduce.name} to %{d.root.name}" for d in chain) for chain in chains(taken)]
        parts.append(f"each a Triton kernel where XLA's cost model, which is not simulated, agrees: {_some(ways)}; the kernels "
                     "told here are those without it")
    if left:
        parts.append("not " + _some([f'%{reduce.name}: "{no.words}" ({no.cause})' for reduce, no in left]))
    return ["; ".join(parts)]


def _some(parts: list[str]) -> str:
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return ", ".join(parts[:SHOWN]) + more
