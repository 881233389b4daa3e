"""Dependences between operations: a bit set of the operations shortly before each one, and a search for those further away."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.fusion.closure import closure
from irscope.fusion.inductor.kernels import Kernel
from irscope.fusion.memo import Memo

WINDOW = 4096
"""The number of preceding operations in a bit set; dependences on earlier ones are searched for."""
MASK = (1 << WINDOW) - 1


class Ancestors:
    """Dependences between kernels of single operations, and between kernels joined from them."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        place = {name: kernel.low for kernel in kernels for name in kernel.names}
        self._needs = [sorted({place[d.buffer] for d in kernel.needs}) for kernel in kernels]
        self._bits: list[int] = []
        for order, needs in enumerate(self._needs):
            bits = 0
            for need in needs:
                back = order - need
                if back <= WINDOW:
                    bits |= (1 | self._bits[need] << 1) << back - 1
            self._bits.append(bits & MASK)
        self._places = place
        self._masks = Memo(self._masks_of)

    def before(self, first: Kernel, second: Kernel) -> bool:
        """Whether an operation in the second kernel depends on one in the first, directly or not."""
        if first.low > second.high:
            return False
        if second.high - first.low <= WINDOW:
            members, ahead = self._masks[first][0], second.high - first.high
            return bool((members << ahead if ahead >= 0 else members >> -ahead) & self._masks[second][1])
        mine = [self._places[b.name] for b in first.buffers]
        for buffer in second.buffers:
            at = self._places[buffer.name]
            bits = self._bits[at]
            for place in mine:
                back = at - place
                if 0 < back <= WINDOW:
                    if bits >> back - 1 & 1:
                        return True
                elif back > WINDOW and self._walked(place, at):
                    return True
        return False

    def _masks_of(self, kernel: Kernel) -> tuple[int, int]:
        """The operations of a kernel and those before them, as bit sets: bit n is the operation n before the kernel's last one.

        A kernel is compared with many others; testing each pair of their operations would take quadratic time.
        """
        members = earlier = 0
        for name in kernel.names:
            back = kernel.high - self._places[name]
            members |= 1 << back
            earlier |= self._bits[self._places[name]] << back + 1
        return members, earlier

    def _walked(self, goal: int, start: int) -> bool:
        """Whether operation ``start`` depends on operation ``goal``, by a search; for those further apart than the window."""
        behind = closure([start], lambda at: [need for need in self._needs[at] if need >= goal])
        return any(goal in self._needs[at] for at in behind)
