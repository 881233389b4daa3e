"""The GPU passes that XLA ran before priority fusion, or behind it for a while, as its tests run them."""
from __future__ import annotations

from irscope.fusion.xla import cpu
from irscope.fusion.xla.fusion_merger import Merger
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.horizontal_loops import join_side_by_side
from irscope.fusion.xla.horizontal_reductions import join_reductions
from irscope.fusion.xla.instruction_fusion import InstructionRules
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.older_cost import MergerCost
from irscope.fusion.xla.releases import SideBySide
from irscope.fusion.xla.stage import computations
from irscope.graph import Module

FAMILIES = ("legacy-gpu-instruction", "legacy-gpu-merger", "legacy-gpu-horizontal-loop", "legacy-gpu-horizontal-input")
DEVICE = Device("rtx_a6000", 84, 128, 1.41, 768e9, 6 * 1024 * 1024, threads_per_core=1536, capability="sm_89")
"""The device that the tests name (``RTXA6000DeviceInfo``)."""
SIDES = SideBySide(later=False, results=8)
WITHOUT_COPIES = "may_duplicate=*/false"
"""Of the two runs of instruction fusion the one that does not copy; the tests mean the other, where they do not say."""
FUSED_BEFORE = "(fusion.Run("
"""Instruction fusion is run before the pass that is tested."""


def run(family: str, module: Module, assertions: list[str]) -> tuple[list[Computation], list[tuple[str, str]]]:
    """The computations behind the pass of a family, and what it did to them."""
    made = [Computation.of(graph) for graph in computations(module)]
    said = " ".join(assertions)
    if family == "legacy-gpu-instruction":
        return made, _fuse(made, copies=WITHOUT_COPIES not in said)
    if family == "legacy-gpu-merger":
        mergers = [Merger(one, MergerCost(DEVICE)) for one in made]
        for merger in mergers:
            merger.run()
        return made, [pair for merger in mergers for pair in merger.merged]
    if family == "legacy-gpu-horizontal-input":
        return made, [pair for one in made for pair in join_reductions(one, DEVICE)]
    if FUSED_BEFORE in said:
        _fuse(made, copies=False)
        _fuse(made, copies=True)
    done: list[tuple[str, str]] = []
    while joined := join_side_by_side(made[-1], SIDES):
        done += joined
    return made, done


def _fuse(made: list[Computation], copies: bool) -> list[tuple[str, str]]:
    return [pair for one in made for pair in cpu.run(one, rules=InstructionRules(one, DEVICE, copies)).fused]
