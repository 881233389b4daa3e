"""Differences between releases of XLA's fusion passes: tests that one makes and another does not.

For jaxlib 0.10.2, the source was read (cpu_instruction_fusion.cc) and its log replayed. For jaxlib 0.4.38, the log was replayed over 229
programs; each field of a CPU release is a difference found there, and with all of them nothing else differs. The GPU releases were
compared with the results of the plugins of jaxlib 0.4.35 and 0.4.38 on 209 and 210 programs (docs/fusion/xla.md has all figures).
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpuRelease:
    """One release by name (``jaxlib-0.10.2``), and the tests that it makes.

    ``concatenations``: those of many pieces, or along a long minor dimension, are not fused. ``reduction_limit``: a kernel holds only so
    many reductions. ``major_reductions``: nothing is fused into or out of a reduction that keeps the minor dimension.
    ``narrow_is_expensive``: conversions of f32 to bf16 are. ``divisor``: the operand that makes an integer division cheap if it is
    constant. ``frames``: its dumps refer to the user's program by ``stack_frame_id``, else by ``source_file``.
    """

    name: str
    concatenations: bool = True
    reduction_limit: bool = True
    major_reductions: bool = False
    narrow_is_expensive: bool = True
    divisor: int = 0
    frames: bool = True


LATEST = CpuRelease("jaxlib-0.10.2")
OLD = CpuRelease("jaxlib-0.4.38", concatenations=False, reduction_limit=False, major_reductions=True, narrow_is_expensive=False, divisor=1,
                 frames=False)
CPU_RELEASES: dict[str, CpuRelease] = {release.name: release for release in (LATEST, OLD)}
"""By name; the first is the one that ``xla-cpu`` means."""


@dataclass(frozen=True, slots=True)
class SideBySide:
    """The conditions of a release on independent kernels that it joins (horizontal_loop_fusion.cc).

    ``later``: as in jaxlib 0.4.38, in all computations, not in the entry alone; bitcasts between kernels and their user do not
    matter, kernels that concatenate are included, and kernels need not have equally many instructions nor a row-major layout; only kernels
    whose results become slices, or that update in place, must not share a parameter. ``results``: one loop has fewer than these.
    """

    later: bool
    results: int


@dataclass(frozen=True, slots=True)
class GpuRelease:
    """One release of the GPU passes by name.

    ``by_priority``: priority fusion decides; else instruction fusion and the merger, which a release may have as an option
    (``--xla_gpu_enable_priority_fusion=false``). ``whole_rate``: its cost model truncates a unit's operations per nanosecond and looks only
    at the first piece of a concatenation. ``sides``: how it joins kernels horizontally, None if it does not. ``frames``: as in a
    CPU release. ``dump``: the suffix of its dumps from before fusion. ``more``: a further note on its results.
    """

    name: str
    by_priority: bool = True
    whole_rate: bool = False
    sides: SideBySide | None = None
    frames: bool = True
    dump: str = "before_priority-fusion"
    more: str = ""


GPU_LATEST = GpuRelease(LATEST.name)
GPU_0_4_38 = GpuRelease("jaxlib-0.4.38", whole_rate=True, sides=SideBySide(later=True, results=32), frames=False)
GPU_0_4_35 = GpuRelease(
    "jaxlib-0.4.35-instruction-fusion", by_priority=False, whole_rate=True, sides=SideBySide(later=False, results=8), frames=False,
    dump="before_fusion",
    more="these are the passes that jaxlib 0.4.35 runs with --xla_gpu_enable_priority_fusion=false, and was compared with; jaxlib ran "
         "earlier versions of them by default until 0.4.24, which were not compared: confidence near for 0.4.35, low for those")
GPU_RELEASES: dict[str, GpuRelease] = {release.name: release for release in (GPU_LATEST, GPU_0_4_38, GPU_0_4_35)}
"""By name; the first is the one that ``xla-gpu`` means."""
RELEASES: Mapping[str, Mapping[str, CpuRelease | GpuRelease]] = {"xla-cpu": CPU_RELEASES, "xla-gpu": GPU_RELEASES}
"""The releases of each compiler's policy."""
