"""Options of XLA that change what its passes before fusion leave to them: data for proposals of another command line."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from irscope.fusion.xla.releases import CpuRelease, Library


@dataclass(frozen=True, slots=True)
class CompilerOption:
    """An option by its text for ``XLA_FLAGS``, what it does, and a release under it; None where the release has nothing to switch."""

    flag: str
    does: str
    under: Callable[[CpuRelease], CpuRelease | None]


def _without_library(release: CpuRelease) -> CpuRelease | None:
    if release.rewriting.library is Library.NONE:
        return None
    return replace(release, rewriting=replace(release.rewriting, library=Library.NONE))


CPU_OPTIONS: tuple[CompilerOption, ...] = (
    CompilerOption("--xla_cpu_experimental_ynn_fusion_type=",
           "XLA then calls YNNPACK for no product and no reduction of the whole program, which may make products slower: measure it",
           _without_library),
)
"""Compared with XLA: docs/fusion/releases.md, the programs without YNNPACK."""
