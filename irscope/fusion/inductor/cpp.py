"""What the C++ backend lets the scheduler join (``CppScheduling`` of codegen/cpp.py); its refusals are not logged."""
from __future__ import annotations

from math import prod

from irscope.fusion.inductor.kernels import Kernel, fused, looped
from irscope.fusion.inductor.limits import Limits
from irscope.fusion.inductor.loops import Nest


class Cpp:
    """The C++ backend's rules for two kernels. ``after(first, second)`` says whether the second reads a result of the first."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    def horizontal(self, first: Kernel, second: Kernel) -> str:
        """The rule that refuses two kernels that do not read each other, or the empty string."""
        if len(first.buffers) + len(second.buffers) > self.limits.horizontal:
            return "horizontal-size"
        return "" if self._same_loops(first, second) else "loops"

    def vertical(self, first: Kernel, second: Kernel) -> str:
        """The rule that refuses a kernel that reads another one, or the empty string."""
        if (self._same_loops(first, second) and not first.reduces) or self.outer_depth(first, second):
            return ""
        return "reduction-first" if first.reduces else "loops"

    def last(self, first: Kernel, second: Kernel, vertical: bool) -> bool:
        """Whether this join waits until nothing else can be joined, because the two would share only outer loops."""
        return vertical and not (self._same_loops(first, second) and not first.reduces) and self.outer_depth(first, second) > 0

    def join(self, first: Kernel, second: Kernel, vertical: bool) -> Kernel:
        """Join two kernels into one."""
        if not first.outer and not second.outer and self._alike(first, second) is None:
            aligned = self._aligned(first, second)
            if aligned is not None:
                for kernel, nest in aligned:
                    looped(kernel, nest)
                return fused(first, second)
        if self.last(first, second, vertical):
            depth = self.outer_depth(first, second)
            return fused(first, second, (*(first.outer or (first,)), *(second.outer or (second,))), depth)
        return fused(first, second)

    @staticmethod
    def _alike(first: Kernel, second: Kernel) -> str | None:
        """How the loops fit without changes: ``same``, or ``reduction`` if the second reduces inner loops of the first; else None."""
        (loops1, reduced1), (loops2, reduced2) = first.group, second.group
        if loops1 == loops2 and reduced1 == reduced2:
            return "same"
        return "reduction" if not reduced1 and loops1 == loops2 + reduced2 else None

    def _same_loops(self, first: Kernel, second: Kernel) -> bool:
        if first.outer or second.outer:
            return False
        return self._alike(first, second) is not None or self._aligned(first, second) is not None

    @staticmethod
    def _aligned(first: Kernel, second: Kernel) -> list[tuple[Kernel, Nest]] | None:
        """The loops with which both kernels run alike, if one was a single long loop over the same shape (``compatible ranges``)."""
        (loops1, reduced1), (loops2, reduced2) = first.group, second.group
        if reduced1 or reduced2 or prod(loops1) != prod(loops2) or 1 not in (len(loops1), len(loops2)):
            return None
        changed, kept = (first, second) if len(loops1) < len(loops2) else (second, first)
        if changed.single is None:
            return None
        others = [kept] if kept.single is not None else list(kept.parts)
        if any(other.single is None or other.single.sizes != changed.single.sizes for other in others):
            return None
        nest = changed.single.nest(form for other in others if other.single for form in (*other.single.forms, *other.single.counts))
        if nest.iterated == kept.group[0]:
            return [(changed, nest)]
        if kept.single is None:
            return None
        other = kept.single.nest((*changed.single.forms, *changed.single.counts))
        return [(changed, nest), (kept, other)] if nest.iterated == other.iterated else None

    @staticmethod
    def outer_depth(first: Kernel, second: Kernel) -> int:
        """The number of outer loops that two kernels can share (``_get_outer_loop_fusion_depth``); 0 if none."""
        (loops1, reduced1) = (first.outer[-1] if first.outer else first).group
        (loops2, reduced2) = (second.outer[0] if second.outer else second).group
        if not loops1 and not loops2 and reduced1 and reduced2:
            return 0
        if first.outer and second.outer:
            return first.depth if first.depth == second.depth else 0
        depth = min(len(loops1), len(loops2))
        if depth < 1 or loops1[:depth] != loops2[:depth]:
            return 0
        held = first.depth if first.outer else second.depth if second.outer else depth
        return depth if held == depth else 0
