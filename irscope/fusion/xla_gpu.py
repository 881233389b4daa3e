"""The policy ``xla-gpu``: what XLA's GPU compiler fuses for a device, by its rules and its cost model.

The graph is judged as it is written: XLA decides on the HLO right before its ``priority-fusion`` pass. Triton kernels that
exist by then are kept and extended; nothing fuses into cuBLAS and cuDNN calls. A plan has the kernels after ``multi_output_fusion``;
the verdicts on edges are those of ``priority-fusion``. Older releases also joined kernels horizontally afterwards, and before priority
fusion existed, other passes decided (:mod:`irscope.fusion.xla.releases`).
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from operator import is_

from irscope.fusion.canonicalise import BARRIERS, Canonical, attribute_plans, canonicalise, unfollowed
from irscope.fusion.canonicalise.pipeline import run_gpu
from irscope.fusion.plan import Plan
from irscope.fusion.xla import gpu, older_gpu
from irscope.fusion.xla.copying import fuse_copies
from irscope.fusion.xla.cpu import Outcome
from irscope.fusion.xla.early_gpu import put_kernels, rewritten, with_kernels
from irscope.fusion.xla.gpu_cost import CostModel
from irscope.fusion.xla.gpu_cycles import CYCLES, UNMEASURED
from irscope.fusion.xla.gpu_device import Device, device_named
from irscope.fusion.xla.gpu_outputs import join_kernels
from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.fusion.xla.multiplied import is_to_come, multiplications, products_of, report_products
from irscope.fusion.xla.normalised import normalisations
from irscope.fusion.xla.older_cost import EarlierCost, MergerCost
from irscope.fusion.xla.printed import other_release
from irscope.fusion.xla.releases import GPU_0_10_2, GPU_RELEASES, GPU_REWRITING, GpuRelease, Rewriting
from irscope.fusion.xla.report import from_text, groups_of, opened, plan_of, taken_apart
from irscope.fusion.xla.stage import HOW, computations, early_remarks, remarks
from irscope.graph import Graph, Module, Node
from irscope.graph.collector import collector_paused

JOINED = "the next pass (MultiOutputFusion) joins both kernels into one of several results, so that nothing is read back"

NEAR = "in 488 programs known from before and after, 94 % of the edges that XLA decided on were found, 99.5 % of these decided as by XLA"
"""The result of ``benchmarks/raw_coverage.py`` for the rewriting; docs/fusion/xla.md has the table."""
MORE = "; Triton kernels are those before XLA's autotuner, which may have cuBLAS compute products instead and is not simulated"
"""A further note on early texts."""


class XlaGpuPolicy:
    """XLA's GPU fusion as a policy. ``release`` is the release that it follows."""

    name = "xla-gpu"

    def __init__(self, release: GpuRelease = GPU_0_10_2) -> None:
        self.release = release
        self.version = f"xla-gpu@{release.name}"
        self._last: tuple[list[Graph], Device, list[Plan]] | None = None
        self._early: tuple[Module, Device, list[str], Canonical | None] | None = None

    def plan(self, graph: Graph) -> Plan:
        """The kernels of one graph on an H100."""
        return _report_joined(self._planned(graph, Computation.of(graph), device_named(None)))

    def plan_module(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan for each computation that runs on the device. Keeps the last ones, since linting a text requests them more than once."""
        chosen = device_named(device)
        graphs, last = computations(module), self._last
        if last is not None and last[1] == chosen and len(last[0]) == len(graphs) and all(map(is_, last[0], graphs)):
            return list(last[2])
        with collector_paused():
            _, canonical = self._rewritten(module, chosen)
            if canonical is not None:
                plans = attribute_plans(*self.plan_rewritten(canonical, chosen), graphs)
            else:
                plans = self.plan_as_written(module, chosen)
            if self.release.rewriting is not None:
                plans = report_products(plans, module, chosen, canonical.module if canonical is not None else None)
        self._last = (graphs, chosen, plans)
        return list(plans)

    def plan_changed(self, module: Module, device: str | None = None) -> list[Plan]:
        """A plan of a program that XLA has not seen: rewritten first, and reported in its own nodes."""
        chosen = device_named(device)
        with collector_paused():
            canonical = canonicalise(module, lambda body, kept: run_gpu(body, chosen, kept, self._before))
            return attribute_plans(*self.plan_rewritten(canonical, chosen), computations(module))

    def rewrites(self, module: Module, device: str | None = None) -> bool:
        """Whether a text is from before XLA's own rewriting."""
        return self._rewritten(module, device_named(device))[1] is not None

    def plan_rewritten(self, canonical: Canonical, device: Device) -> tuple[Canonical, list[Plan]]:
        """Plan a rewritten module: first adds the kernels that XLA's earlier passes make of products and normalisations."""
        with collector_paused():
            made, prepared = with_kernels(canonical, device, self.release.by_priority)
            return made, [_report_joined(self._planned(graph, computation, device, graph is made.module.main()))
                          for graph, computation in prepared]

    def plan_as_written(self, module: Module, device: Device) -> list[Plan]:
        """Plan without any rewriting; adds the kernels of products that XLA has still to make."""
        first = self.release.rewriting is not None and is_to_come(module)
        with collector_paused():
            return [self._plan(module, graph, device, lambda computation: put_kernels(computation, device, False) if first else None)
                    for graph in computations(module)]

    def _rewritten(self, module: Module, device: Device) -> tuple[list[str], Canonical | None]:
        """The module as XLA would rewrite it for a device, and the signs that it was not rewritten yet; None if it was."""
        last = self._early
        if last is None or last[0] is not module or last[1] != device:
            last = self._early = (module, device, *rewritten(module, device, self._before))
        return last[2:]

    def _plan(self, module: Module, graph: Graph, device: Device, prepare: Callable[[Computation], None]) -> Plan:
        computation = marked(module, Computation.of(graph))
        prepare(computation)
        plan = self._planned(graph, computation, device, graph is module.main())
        if any(opened(node) for node in graph.nodes):
            from_text(plan, self.fuse(marked(module, taken_apart(graph)), device))
        return _report_joined(plan)

    def _planned(self, graph: Graph, computation: Computation, device: Device, entry: bool = False) -> Plan:
        plan = plan_of(graph, self.fuse(computation, device))
        before = len(computation.instructions)
        if self.join(computation, device, entry) or len(computation.instructions) != before:
            plan.groups = groups_of(computation)
        return plan

    def fuse(self, computation: Computation, device: Device) -> Outcome:
        """Run the passes that fuse on a computation, in place."""
        return gpu.run(computation, device, self._cost(device)) if self.release.by_priority else older_gpu.run(computation, device)

    def join(self, computation: Computation, device: Device, entry: bool) -> list[tuple[str, str]]:
        """Run the later passes in place: those that join kernels and, on the entry, the one that joins copies."""
        if not self.release.by_priority:
            older_gpu.drop_dead(computation)
        joined = join_kernels(computation, self._cost(device))
        if self.release.sides is not None:
            joined += older_gpu.join_all(computation, device, self.release.sides, entry)
        return joined + fuse_copies(computation, device) if entry and self.release.by_priority else joined

    def _cost(self, device: Device) -> CostModel:
        if not self.release.by_priority:
            return MergerCost(device)
        return EarlierCost(device) if self.release.whole_rate else CostModel(device)

    @property
    def _before(self) -> Rewriting:
        """What the release does before fusion, as far as that is simulated."""
        return self.release.rewriting or GPU_REWRITING

    @property
    def _rewriting(self) -> str:
        """A note on the rewriting of early texts, where it is that of another release."""
        same = self.release.rewriting is not None
        return "" if same else f"; the rewriting, and what is made of products, is that of {GPU_0_10_2.name}, not of {self.release.name}"

    def remarks(self, module: Module, device: str | None = None) -> list[str]:
        """See :mod:`irscope.fusion.xla.stage`; for the latest release also what XLA's rewriters of normalisations and products do; the
        confidence in an older release; what is unknown about a device."""
        found, chosen = other_release(module, self.version), device_named(device)
        signs, canonical = self._rewritten(module, chosen)
        if canonical is not None:
            exact = f"{self.release.dump} {HOW}{MORE}{self._rewriting}"
            found += early_remarks(module, self.version, exact, signs, unfollowed(module), NEAR)
        else:
            found += remarks(module, self.version, self.release.dump, BARRIERS)
        if self.release.rewriting is not None:
            made = products_of(module, chosen, canonical.module if canonical is not None else None).products
            placed = canonical is not None or (is_to_come(module) and any(product.is_made for product in made))
            found += normalisations(module, chosen, placed)
            found += multiplications(module, chosen, canonical.module if canonical is not None else None)
        if self.release.more:
            found.append(f"{self.version}: {self.release.more}")
        if chosen.capability not in CYCLES:
            found.append(f"{chosen.name} ({chosen.capability}): XLA has measured no cycles of instructions on it and takes those of "
                        f"{UNMEASURED}, as here")
        return found


def _report_joined(plan: Plan) -> Plan:
    """Add to the verdicts on edges that the first pass refused and the second joined that they share a kernel now; XLA's words stay."""
    kernels: dict[Node, set[int]] = {}
    for number, group in enumerate(plan.groups):
        for node in group.nodes if len(group.outputs) > 1 else ():
            kernels.setdefault(node, set()).add(number)
    for place, verdict in enumerate(plan.verdicts):
        both = kernels.get(verdict.producer, set()) & kernels.get(verdict.consumer, set())
        if verdict.fused == "none" and verdict.graph is plan.graph and both:
            plan.verdicts[place] = replace(verdict, cause=f"{verdict.cause}; {JOINED}")
    return plan


def marked(module: Module, computation: Computation) -> Computation:
    """The computation, with its Triton kernels marked among the custom fusions, and the scopes of its nodes."""
    computation.scopes = module.scope
    for instruction in computation.instructions:
        if instruction.kind == "kCustom" and instruction.node is not None:
            _mark_triton(instruction, str(module.raw(instruction.node).get("backend_config", "")).replace(" ", ""))
    return computation


def _mark_triton(instruction: Instruction, config: str) -> None:
    """Mark a Triton kernel that XLA may still extend, by its backend config; numbers of more than :data:`MAX_DIGITS` digits are ignored."""
    if '"kind":"__triton"' not in config:
        return
    instruction.kind = "triton"
    sizes = re.search(r'sizes":\[([^\]]*)\]', config)
    warps = re.search(r'"num_warps":"?(\d+)', config)
    tile = re.findall(r"\d+", sizes[1]) if sizes else []
    if all(len(size) <= MAX_DIGITS for size in tile):
        instruction.tile = tuple(map(int, tile))
    if warps and len(warps[1]) <= MAX_DIGITS:
        instruction.warps = int(warps[1])


MAX_DIGITS = 18
"""Digits of a size or a count that surely fits in 64 bits."""
POLICY = XlaGpuPolicy()
RELEASES = {name: POLICY if release is GPU_0_10_2 else XlaGpuPolicy(release) for name, release in GPU_RELEASES.items()}
"""The policy of each release, by its name; the newest first."""
