"""Differences between releases of XLA's fusion passes, and of what its CPU compiler does before them: one row for each release.

How a release is added, and what was compared with it, is in docs/fusion/releases.md. Sources: for jaxlib 0.10.2 and later,
cpu_instruction_fusion.cc, cpu_compiler.cc and ynn_support.cc; every row was compared with the texts and logs of its release.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum


class Library(Enum):
    """What XLA's LibraryRewriter hands to YNNPACK before fusion (ynn_matcher.h, ynn_support.cc; see ``canonicalise/ynnpack.py``)."""

    NONE = "nothing"
    LONG_SUMS = "sums and extremes of 32768 elements of f32 or more, alone"
    WIDE = "dots with results of f64, f32 or s32, convolutions, and reductions together with their neighbours"
    ALL = "the same, and dots with results of bf16"


@dataclass(frozen=True, slots=True)
class Rewriting:
    """What the CPU compiler of a release does before its fusion pass, as far as releases differ (cpu_compiler.cc).

    ``library``: what it hands to YNNPACK. ``columns``: it multiplies by a vector as by a matrix of one column (GemvRewriter).
    ``sums_products``: it computes a dot that contracts everything as a sum of products. ``inverts``: it divides by a broadcast by
    multiplying with the inverse (AlgebraicSimplifier). ``opens_barriers``: it removes optimisation barriers (CseBarrierExpander) before
    fusion, not after it. ``keeps_narrow``: it moves, compares and negates bf16 as it is, and does not make f32 of it
    (FloatNormalization). ``reassociates``: it computes with two constants of floats that are added or multiplied one after the other
    (AlgebraicSimplifier, as for integers); ``without``: the identities that its simplifier lacks.
    """

    library: Library = Library.ALL
    columns: bool = True
    sums_products: bool = True
    inverts: bool = True
    opens_barriers: bool = False
    keeps_narrow: bool = True
    reassociates: bool = False
    without: frozenset[str] = frozenset(("multiply-exponentials",))


@dataclass(frozen=True, slots=True)
class MinorConcatenations:
    """The concatenations along the minor dimension that are not fused, for they would branch in the innermost loop.

    Those with at least so many elements along it, so many bytes along it, and so many bytes in all.
    """

    elements: int = 0
    row_bytes: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class CpuRelease:
    """One release by name (``jaxlib-0.12.0.1``), and the tests that it makes.

    ``concatenations``: those of many pieces, or along a long minor dimension, are not fused; None: they are. ``reduction_limit``: a kernel
    holds only so many reductions. ``major_reductions``: nothing is fused into or out of a reduction that keeps the minor dimension.
    ``narrow_is_expensive``: conversions of f32 to bf16 are. ``divisor``: the operand that makes an integer division cheap if it is
    constant. ``stores_shifted``: the operand of a maximum that is subtracted from it under an exponential is stored
    (``IsCoupledReductionShiftExpProducer``). ``rewriting``: what it does before.
    """

    name: str
    concatenations: MinorConcatenations | None = MinorConcatenations(row_bytes=64, bytes=2048)
    reduction_limit: bool = True
    major_reductions: bool = False
    narrow_is_expensive: bool = True
    divisor: int = 0
    stores_shifted: bool = True
    rewriting: Rewriting = Rewriting()


LONG = MinorConcatenations(elements=128)
"""Until jaxlib 0.11."""
LATEST = CpuRelease("jaxlib-0.12.0.1")
CPU_0_11_2 = CpuRelease("jaxlib-0.11.2", concatenations=LONG, rewriting=Rewriting(reassociates=True))
_UNTIL_0_10 = Rewriting(library=Library.WIDE, opens_barriers=True, keeps_narrow=False, reassociates=True, without=frozenset())
CPU_0_10_2 = CpuRelease("jaxlib-0.10.2", concatenations=LONG, stores_shifted=False, rewriting=_UNTIL_0_10)
_UNTIL_0_9 = replace(_UNTIL_0_10, library=Library.LONG_SUMS, columns=False, sums_products=False, inverts=False)
CPU_0_9_2 = CpuRelease("jaxlib-0.9.2", concatenations=LONG, stores_shifted=False, rewriting=_UNTIL_0_9)
_UNTIL_0_8 = replace(_UNTIL_0_9, library=Library.NONE)
CPU_0_8_3 = CpuRelease("jaxlib-0.8.3", concatenations=LONG, stores_shifted=False, narrow_is_expensive=False, divisor=1,
                       rewriting=_UNTIL_0_8)
CPU_0_7_2 = CpuRelease("jaxlib-0.7.2", concatenations=LONG, stores_shifted=False, narrow_is_expensive=False, divisor=1,
                       rewriting=_UNTIL_0_8)
OLD = CpuRelease("jaxlib-0.4.38", concatenations=None, reduction_limit=False, major_reductions=True, stores_shifted=False,
                 narrow_is_expensive=False, divisor=1, rewriting=_UNTIL_0_8)
CPU_RELEASES: dict[str, CpuRelease] = {
    release.name: release for release in (LATEST, CPU_0_11_2, CPU_0_10_2, CPU_0_9_2, CPU_0_8_3, CPU_0_7_2, OLD)}
"""By name, the newest first."""


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
    at the first piece of a concatenation. ``sides``: how it joins kernels horizontally, None if it does not. ``rewriting``: what it does
    before, as far as the GPU compiler does it too; None: what it does, and makes of products, is not simulated, and that of
    ``GPU_0_10_2`` is assumed. ``dump``: the suffix of its dumps from before fusion. ``more``: a further note on its results.
    """

    name: str
    by_priority: bool = True
    whole_rate: bool = False
    sides: SideBySide | None = None
    rewriting: Rewriting | None = None
    dump: str = "before_priority-fusion"
    more: str = ""


GPU_REWRITING = CPU_0_10_2.rewriting
"""What the GPU compiler of jaxlib 0.10.2 does of it."""
GPU_0_10_2 = GpuRelease("jaxlib-0.10.2", rewriting=GPU_REWRITING)
GPU_0_12_0_1 = replace(GPU_0_10_2, name="jaxlib-0.12.0.1", rewriting=replace(GPU_REWRITING, reassociates=False))
GPU_0_4_38 = GpuRelease("jaxlib-0.4.38", whole_rate=True, sides=SideBySide(later=True, results=32))
GPU_0_4_35 = GpuRelease(
    "jaxlib-0.4.35-instruction-fusion", by_priority=False, whole_rate=True, sides=SideBySide(later=False, results=8),
    dump="before_fusion",
    more="these are the passes that jaxlib 0.4.35 runs with --xla_gpu_enable_priority_fusion=false, and was compared with; jaxlib ran "
         "earlier versions of them by default until 0.4.24, which were not compared: confidence near for 0.4.35, low for those")
GPU_RELEASES: dict[str, GpuRelease] = {release.name: release for release in (GPU_0_12_0_1, GPU_0_10_2, GPU_0_4_38, GPU_0_4_35)}
"""By name, the newest first; ``xla-gpu`` means ``GPU_0_10_2``."""
RELEASES: Mapping[str, Mapping[str, CpuRelease | GpuRelease]] = {"xla-cpu": CPU_RELEASES, "xla-gpu": GPU_RELEASES}
"""The releases of each compiler's policy."""
