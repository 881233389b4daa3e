"""The loops of a depthwise convolution: lanes walk the channels, which are independent; a window's weights stay in registers.

    par channel of 16:  w0..w8 = load.vec weights
      for y:  for x of 6 pixels:  every pixel that the windows touch is loaded once, and used by each window that holds it
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from irscope.graph import DType
from irscope.graph.node import Index
from irscope.lower.build import KernelBuilder
from irscope.lower.templates.shares import stepped, vectors
from irscope.lower.tile import Expr
from irscope.lower.view import Address

Finish = Callable[[Expr, tuple[Index, Index, Index, Index], Expr | None], None]


@dataclass(slots=True)
class DepthwiseNest:
    """``source`` is the first tap of the first result; ``strides`` apply from there, by (image, y, x).

    Channels are contiguous. ``tap(channel, number, mask)`` returns the weights of a window's element, from a channel on. ``step`` is the
    stride of the window, ``reach`` the distance of its taps (dilation), each (y, x).
    """

    k: KernelBuilder
    source: Address
    tap: Callable[[Index, int, Expr | None], Expr]
    strides: tuple[int, int, int]
    results: tuple[int, int, int]
    channels: int
    window: tuple[int, int]
    step: tuple[int, int]
    reach: tuple[int, int]
    pixels: int
    dtype: DType
    lanes: int
    finish: Finish

    def write(self) -> None:
        """Emit all loops."""
        k, lanes = self.k, self.lanes
        for c, mask in vectors(k, self.channels, lanes):
            w = [self.tap(c, number, mask) for number in range(self.window[0] * self.window[1])]
            with k.loop(0, self.results[0]) as n, k.loop(0, self.results[1]) as y:
                for x, pixels in stepped(k, self.results[2], self.pixels, False):
                    self._pixels(w, (n, y, x, c), pixels, mask)

    def _pixels(self, w: list[Expr], first: tuple[Index, Index, Index, Index], pixels: int, mask: Expr | None) -> None:
        k, strides, (n, y, x, c) = self.k, self.strides, first
        base = self.source + (n * strides[0] + y * (self.step[0] * strides[1]) + x * (self.step[1] * strides[2]) + c)
        total: list[Expr | None] = [None] * pixels
        for i in range(self.window[0]):
            for at in range((pixels - 1) * self.step[1] + (self.window[1] - 1) * self.reach[1] + 1):
                taps = [(p, at - p * self.step[1]) for p in range(pixels)]
                users = [(p, tap // self.reach[1]) for p, tap in taps
                         if 0 <= tap <= (self.window[1] - 1) * self.reach[1] and tap % self.reach[1] == 0]
                if not users:
                    continue
                value = k.convert((base + (i * self.reach[0] * strides[1] + at * strides[2])).load(self.lanes, mask), self.dtype)
                for p, j in users:
                    before, weight = total[p], w[i * self.window[1] + j]
                    total[p] = k.binary("mul", value, weight) if before is None else k.fma(value, weight, before)
        for p, result in enumerate(total):
            assert result is not None, "every window has a tap"
            self.finish(result, (n, y, x + p, c), mask)
