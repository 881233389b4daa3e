"""The policy ``xla-gpu``: what XLA's GPU compiler fuses on a device, by its rules and its cost model.

The graph is looked at as it is written: XLA decides on the HLO that stands right before its ``priority-fusion`` pass. Triton kernels that
it has made by then are kept and added to; cuBLAS and cuDNN calls are walls. The kernels of a plan are those behind ``multi_output_fusion``;
the verdicts on edges are those of ``priority-fusion``.
"""
from __future__ import annotations

import re
from dataclasses import replace
from operator import is_

from irscope.fusion.plan import Plan
from irscope.fusion.xla.copying import fuse_copies
from irscope.fusion.xla.gpu import run
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_cycles import CYCLES, UNMEASURED
from irscope.fusion.xla.gpu_device import Device, device_named
from irscope.fusion.xla.gpu_outputs import join_kernels
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.normalised import normalisations
from irscope.fusion.xla.releases import LATEST
from irscope.fusion.xla.stage import computations, other_release, remarks
from irscope.fusion.xla.told import from_text, groups_of, opened, plan_of, taken_apart
from irscope.graph import Graph, Module
from irscope.graph.collector import collector_paused

JOINED = "the pass behind this one (MultiOutputFusion) joins both kernels into one of several results, so that nothing is read back"


class XlaGpuPolicy:
    """See the module."""

    name = "xla-gpu"
    version = f"xla-gpu@{LATEST.name}"

    def __init__(self) -> None:
        self._last: tuple[list[Graph], Device, list[Plan]] | None = None

    def plan(self, graph: Graph) -> Plan:
        """The kernels of one graph on an H100."""
        return _tell_joined(_planned(graph, Computation.of(graph), device_named(None)))

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for every computation that runs on the device. The last ones are kept: who lints a text asks for them more than once."""
        chosen = device_named(device)
        graphs, last = computations(module), self._last
        if last is not None and last[1] == chosen and len(last[0]) == len(graphs) and all(map(is_, last[0], graphs)):
            return list(last[2])
        with collector_paused():
            plans = [self._plan(module, graph, chosen) for graph in graphs]
        self._last = (graphs, chosen, plans)
        return list(plans)

    def _plan(self, module: Module, graph: Graph, device: Device) -> Plan:
        plan = _planned(graph, marked(module, Computation.of(graph)), device, graph is module.main())
        if any(opened(node) for node in graph.nodes):
            from_text(plan, run(marked(module, taken_apart(graph)), device))
        return _tell_joined(plan)

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """See :mod:`irscope.fusion.xla.stage`; what XLA's softmax rewriter takes before; and what is not known of a device."""
        told, chosen = other_release(module, self.version), device_named(device)
        told += remarks(module, self.version, "before_priority-fusion")
        told += normalisations(module, chosen)
        if chosen.capability not in CYCLES:
            told.append(f"{chosen.name} ({chosen.capability}): XLA has measured no cycles of instructions on it and takes those of "
                        f"{UNMEASURED}, as here")
        return told


def _planned(graph: Graph, computation: Computation, device: Device, entry: bool = False) -> Plan:
    """What the passes make of a computation: the one that fuses, the one that joins kernels, and of the entry the one that joins copies."""
    outcome = run(computation, device)
    plan = plan_of(graph, outcome)
    joined = join_kernels(computation, CostModel(device))
    if entry:
        joined += fuse_copies(computation, device)
    if joined:
        plan.groups = groups_of(computation)
    return plan


def _tell_joined(plan: Plan) -> Plan:
    """Say of the edges that the first pass left and the second put into one kernel that they are in one now; XLA's words stay."""
    kernels: dict[str, set[int]] = {}
    for number, group in enumerate(plan.groups):
        for node in group.nodes if len(group.outputs) > 1 else ():
            kernels.setdefault(node.name, set()).add(number)
    for place, verdict in enumerate(plan.verdicts):
        both = kernels.get(verdict.producer, set()) & kernels.get(verdict.consumer, set())
        if verdict.fused == "none" and verdict.computation == plan.graph.name and both:
            plan.verdicts[place] = replace(verdict, cause=f"{verdict.cause}; {JOINED}", counterfactual="none is needed")
    return plan


def marked(module: Module, computation: Computation) -> Computation:
    """The computation, its Triton kernels told from other custom fusions."""
    for instruction in computation.instructions:
        if instruction.kind == "kCustom" and instruction.node is not None:
            _mark_triton(instruction, str(module.raw(instruction.node).get("backend_config", "")).replace(" ", ""))
    return computation


def _mark_triton(instruction: Instruction, config: str) -> None:
    """Tell a Triton kernel that XLA may still add to from other custom fusions, by its backend config."""
    if '"kind":"__triton"' not in config:
        return
    instruction.kind = "triton"
    sizes = re.search(r'"sizes":\[([^\]]*)\]', config)
    warps = re.search(r'"num_warps":"?(\d+)', config)
    instruction.tile = tuple(map(int, re.findall(r"\d+", sizes[1]))) if sizes else ()
    instruction.warps = int(warps[1]) if warps else 4


POLICY = XlaGpuPolicy()
