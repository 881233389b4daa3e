"""What differs between releases of XLA's CPU fusion pass: the tests that one makes and another does not.

Of jaxlib 0.10.2 the source was read (cpu_instruction_fusion.cc) and its log replayed. Of jaxlib 0.4.38 the log was replayed over 229
programs; each field below is a difference that showed there, and with all of them nothing else differs (docs/fusion/xla.md has figures).
"""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CpuRelease:
    """One release by name (``jaxlib-0.10.2``), and the tests that it makes.

    ``concatenations``: those of many pieces, or along a long minor dimension, are left alone. ``reduction_limit``: a kernel holds only so
    many reductions. ``major_reductions``: nothing goes into or out of a reduction that keeps the minor dimension. ``narrow_is_expensive``:
    conversions of f32 to bf16 are. ``divisor``: the operand that makes an integer division cheap when it is constant. ``frames``: its
    dumps say where in the user's program an instruction comes from by ``stack_frame_id``, else by ``source_file``.
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
